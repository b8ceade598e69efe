"""`Graph.status`: what maintenance would do is what maintenance then does."""

from pathlib import Path

import pytest

from tests.support.engine import new_graph, node, reopen
from tests.support.queries import mutation


@pytest.mark.case("surfaces", 430)
def test_what_is_announced_is_what_maintenance_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    made = new_graph(tmp_path / "g", "node Person { name: String @key }", node("Person", name="a"))
    made.close()
    with reopen(tmp_path / "g", upkeep=False) as graph:
        for number in range(12):
            graph.mutate(mutation(f'insert Person {{ name: "p{number}" }}'))
        announced = graph.status()

        optimized = graph.optimize()
        cleaned = graph.cleanup(keep=announced.cleanup.keep, dry_run=True)
        after = graph.status()

    (work,) = announced.optimize
    (table,) = (table for table in optimized.tables if table.table_key == "node:Person")
    assert work.fragments_to_fold == table.fragments_removed == announced.tables[0].fragments
    assert work.indexes_to_build == ("id", "name")
    assert after.optimize == ()
    assert announced.cleanup.versions > 0
    assert (after.cleanup.versions, after.cleanup.bytes) == (
        cleaned.old_versions_removed,
        cleaned.bytes_removed,
    )
    assert announced.rows == 13
