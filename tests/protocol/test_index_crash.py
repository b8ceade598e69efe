"""An index build on a branch that dies at each of its steps; on main it is a row of the crash matrix."""

import pytest

import omnigraph
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS
from omnigraph.graph.graph import Graph
from tests.protocol.conftest import NewRoot
from tests.support.forked import Forked
from tests.support.protocol import TABLE_KEYS, WRITERS, sidecars

pytestmark = pytest.mark.usefixtures("no_syncs")

BUILD = """
import sys
import omnigraph
omnigraph.open(sys.argv[1]).ensure_indices(branch="june")
"""
ENDS = {
    "post_sidecar_pre_commit": ("rolled_back", ()),
    "post_table_commit": ("rolled_forward", TABLE_KEYS[:1]),
    "post_phase_b_pre_manifest_commit": ("rolled_forward", TABLE_KEYS),
    "post_publish_pre_sidecar_delete": ("rolled_forward", TABLE_KEYS),
}


@pytest.mark.case("engine", 181)
@pytest.mark.parametrize("healer", ["open", "write"])
@pytest.mark.parametrize("place", ENDS)
def test_a_killed_index_build_on_a_branch_is_finished(place: str, healer: str, root_for: NewRoot) -> None:
    root = root_for("branch_merge")
    known = omnigraph.open(root)
    before = rows_of(known)
    with Forked(BUILD, root, **{ENVIRONMENT: f"ensure_indices.{place}=exit"}) as script:
        assert script.wait() == EXIT_STATUS

    graph = omnigraph.open(root) if healer == "open" else known
    graph.mutate('query q() { insert Person { name: "zed" } }', branch="june")

    kind, tables = ENDS[place]
    (record,) = graph.recoveries()
    assert (record.recovery_kind.wire, record.writer_kind) == (kind, "EnsureIndices")
    assert tuple(outcome.table_key for outcome in record.outcomes) == tables
    assert [row for row in rows_of(graph) if row[1] != "zed"] == before
    assert {key for key in TABLE_KEYS if is_built(graph, key)} == set(tables)
    assert sidecars(root) == ()
    graph.ensure_indices(branch="june")
    assert {key for key in TABLE_KEYS if is_built(graph, key)} == set(TABLE_KEYS)
    assert WRITERS["branch_merge"].run(graph) is not None


def rows_of(graph: Graph) -> list[tuple[object, ...]]:
    """Return the rows that June has written, and those beside them."""
    people = [("Person", row["name"], row["age"]) for row in graph.table("Person", branch="june").to_pylist()]
    knows = [("Knows", row["src"], row["dst"]) for row in graph.table("Knows", branch="june").to_pylist()]
    return sorted([*people, *knows], key=str)


def is_built(graph: Graph, table_key: str) -> bool:
    """Say whether a table has indexes on June, whether or not they cover its newest rows."""
    (found,) = [status for status in graph.index_status(branch="june") if status.table_key == table_key]
    return all(index.coverage != "missing" for index in found.indexes)
