"""Changes of schema in graphs that earlier builds made: their branches, and rows that lack a source."""

from pathlib import Path

import pytest

import omnigraph
from tests.support.older_graphs import SCHEMA, write_older_graph

WIDER = SCHEMA.replace("age: I32?", "age: I32?  nick: String?")


@pytest.mark.parametrize("stamp", [1, 3])
def test_a_branch_that_is_brought_up_after_a_change_on_main_keeps_its_schema(
    tmp_path: Path, stamp: int
) -> None:
    write_older_graph(tmp_path / "graph", stamp)

    with omnigraph.open(tmp_path / "graph") as graph:
        assert graph.apply_schema(WIDER, index=False).applied
        graph.mutate('query m() { insert Person { name: "eve" } }', branch="feature")

        assert graph.table("Person").column_names == ["id", "age", "name", "nick"]
        assert graph.table("Person", branch="feature").column_names == ["id", "age", "name"]
        assert "nick" not in graph.schema(branch="feature")
        graph.merge("feature")
        assert "eve" in graph.table("Person")["name"].to_pylist()


def test_a_schema_whose_text_was_not_kept_is_written_from_what_was_accepted(tmp_path: Path) -> None:
    write_older_graph(tmp_path / "graph", 3)

    with omnigraph.open(tmp_path / "graph") as graph:
        graph.create_branch("june")
        graph.apply_schema(WIDER, index=False)

        text = graph.schema(branch="june")

        assert graph.plan_schema(text, branch="june").steps == ()
        assert graph.plan_schema(SCHEMA, branch="june").steps == ()
