"""`optimize` on a branch: the tables that it owns in their best layout, and nothing else anywhere."""

from pathlib import Path
from typing import Any

import pytest

from omnigraph.core.errors import BranchNotFound, CommitConflict
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import MAINTENANCE_ACTOR
from omnigraph.history.fold import TableEntry
from omnigraph.operations.layout import LayoutWork, plan_table
from omnigraph.storage.files.version_file import version_file_name
from tests.support.engine import contents, edge, foreign, ndjson, new_graph, node, recovery_files
from tests.support.foreign import foreign as another_program
from tests.support.queries import mutation
from tests.support.seam import internals, patched

LIBRARY = """\
node Doc {
    code: String @key
    text: String? @index
}
node Shelf { code: String @key  room: String? @index }
edge Cites: Doc -> Doc
"""
SEARCH = 'query q() { match { $d: Doc search($d.text, "apple") } return { $d.code } order { $d.code } }'
OWN = ("edge:Cites", "node:Doc")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph whose branches `june` and `july` have written two of three tables, in small pieces."""
    graph = new_graph(tmp_path / "library", LIBRARY)
    graph.load(ndjson([node("Shelf", code="s1", room="north"), document(0), document(1)]), "append")
    graph.load(ndjson([node("Shelf", code="s2")]), "append", index=False)
    for branch in ("june", "july"):
        graph.create_branch(branch)
        for number in range(2, 5):
            records = [document(number), edge("Cites", f"d{number}", "d0")]
            graph.load(ndjson(records), "append", index=False, branch=branch)
        graph.mutate(mutation('delete Doc where code = "d1"'), branch=branch)
    return graph


def document(number: int) -> dict[str, object]:
    return node("Doc", code=f"d{number}", text=f"apple {number}")


def on(graph: Graph, branch: str) -> Graph:
    return graph._bound(branch)


def entries(graph: Graph, branch: str) -> dict[str, TableEntry]:
    return dict(graph.snapshot(branch).entries)


def seen(graph: Graph, branch: str) -> tuple[object, ...]:
    """Return all that a branch shows."""
    return contents(on(graph, branch)), graph.query(SEARCH, branch=branch).to_pylist()


def layout(graph: Graph, branch: str) -> dict[str, tuple[int, set[str]]]:
    """Return how many fragments each table of a branch has, and what its indexes cover."""
    parts = internals(graph).parts
    indexes = {table.table_key: table.indexes for table in graph.index_status(branch=branch)}
    return {
        key: (parts.open(entry).fragment_count, {index.coverage for index in indexes[key]})
        for key, entry in entries(graph, branch).items()
    }


def folders(graph: Graph) -> set[str]:
    """Return the folders of forks."""
    root = Path(graph.uri)
    return {str(path.relative_to(root)) for path in root.glob("*/*/tree/*")}


@pytest.mark.case("engine", 780)
def test_the_tables_of_the_branch_are_laid_out_in_one_commit_and_no_others(graph: Graph) -> None:
    others = {name: (entries(graph, name), seen(graph, name)) for name in ("main", "july")}
    before, shelf, forks = seen(graph, "june"), entries(graph, "june")["node:Shelf"], folders(graph)
    past = graph.commits(branch="june")[2].graph_commit_id
    then = graph.at(past).query(SEARCH).to_pylist()
    parent = graph.commits(branch="june", limit=1)[0]
    assert all(layout(graph, "june")[key][0] > 2 for key in OWN)

    result = graph.optimize(branch="june")

    assert result.commit is not None
    assert graph.commits(branch="june", limit=1) == [result.commit]
    assert result.commit.parent_commit_id == parent.graph_commit_id
    assert (result.commit.actor_id, result.commit.manifest_branch) == (MAINTENANCE_ACTOR, "june")
    assert [(table.table_key, table.skipped) for table in result.tables] == [
        *((key, None) for key in OWN),
        ("__manifest", None),
    ]
    assert all(table.committed for table in result.tables)
    assert result.tables[-1].fragments_added == 1
    assert {key: layout(graph, "june")[key] for key in OWN} == dict.fromkeys(OWN, (1, {"indexed"}))
    assert entries(graph, "june")["node:Shelf"] == shelf
    assert folders(graph) == forks
    assert seen(graph, "june") == before
    assert graph.at(past).query(SEARCH).to_pylist() == then
    assert {name: (entries(graph, name), seen(graph, name)) for name in others} == others
    assert graph.verify().is_whole
    assert graph.verify(branch="june").is_whole
    assert recovery_files(graph) == []

    sidecars: list[int] = []
    with failpoint("recovery.sidecar_write", call=lambda: sidecars.append(1)):
        again = graph.optimize(branch="june")
    assert (again.commit, sidecars) == (None, [])
    assert not any(table.committed for table in again.tables)


@pytest.mark.case("engine", 780)
def test_a_branch_without_a_table_of_its_own_and_an_unknown_one(graph: Graph) -> None:
    graph.create_branch("bare")

    result = graph.optimize(branch="bare")

    assert (result.commit, [table.table_key for table in result.tables]) == (None, ["__manifest"])
    with pytest.raises(BranchNotFound):
        graph.optimize(branch="nobody")


@pytest.mark.case("engine", 781)
@pytest.mark.parametrize("has_moved", [False, True], ids=["forward", "three_way"])
def test_it_merges_as_it_would_have(graph: Graph, has_moved: bool) -> None:
    done = graph.optimize(branch="june").commit
    assert done is not None
    assert list(graph.commit_changes(done.graph_commit_id)) == []
    if has_moved:
        graph.load(ndjson([document(9)]), "append", index=False)
    expected = contents(on(graph, "june"))
    if has_moved:
        expected["Doc"]["d9"] = contents(graph)["Doc"]["d9"]

    merged = graph.merge("june")

    assert merged.outcome.value == ("merged" if has_moved else "fast_forward")
    assert contents(graph) == expected


@pytest.mark.case("engine", 783)
def test_a_table_of_the_branch_that_drifted_is_skipped(graph: Graph) -> None:
    entry = entries(graph, "june")["node:Doc"]
    another_program(graph, "node:Doc", "june").delete("code = 'd2'")

    result = graph.optimize(branch="june")

    done, skipped, _ = result.tables
    assert (skipped.table_key, skipped.skipped, skipped.committed) == (
        "node:Doc",
        "drift_needs_repair",
        False,
    )
    assert (skipped.manifest_version, skipped.lance_head_version) == (entry.version, entry.version + 1)
    assert (done.table_key, done.committed) == ("edge:Cites", True)
    assert "d2" in contents(on(graph, "june"))["Doc"]


@pytest.mark.case("engine", 783)
@pytest.mark.parametrize("place", ["post_recovery_check_pre_gates", "before_manifest_compaction"])
def test_a_branch_that_is_deleted_meanwhile_is_not_found(graph: Graph, place: str) -> None:
    other = foreign(graph)

    with (
        failpoint(f"optimize.{place}", call=lambda: other.delete_branch("june")),
        pytest.raises(BranchNotFound),
    ):
        graph.optimize(branch="june")

    assert graph.branches() == ["july", "main"]
    assert recovery_files(graph) == []
    assert graph.optimize().commit is not None


@pytest.mark.case("engine", 783)
@pytest.mark.case("engine", 843)
def test_a_branch_that_is_deleted_behind_the_plan_is_not_found(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = foreign(graph)

    def plan_and_delete(*given: Any) -> LayoutWork:  # noqa: ANN401 - passed on
        planned = plan_table(*given)
        if "june" in other.branches() and planned.entry.table_key == "node:Doc":
            other.delete_branch("june")
        return planned

    patched(monkeypatch, "omnigraph.operations.optimize.plan_table", plan_and_delete)
    with pytest.raises(BranchNotFound):
        graph.optimize(branch="june")

    assert recovery_files(graph) == []


@pytest.mark.case("engine", 843)
def test_a_table_that_is_moved_and_cleaned_up_behind_the_plan_is_no_damage(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.load(ndjson([document(8)]), "append", index=False)  # something to fold
    other = foreign(graph)

    def plan_and_move(*given: Any) -> LayoutWork:  # noqa: ANN401 - passed on
        planned = plan_table(*given)
        if planned.entry.table_key == "node:Doc" and other.snapshot().entry("node:Doc") == planned.entry:
            other.load(ndjson([document(9)]), "append", index=False)
            version = version_file_name(planned.entry.version)
            Path(graph.uri, planned.entry.location, version).unlink()  # as a cleanup of another host does
        return planned

    patched(monkeypatch, "omnigraph.operations.optimize.plan_table", plan_and_move)
    with pytest.raises(CommitConflict, match="node:Doc has moved on in the meantime: try again"):
        graph.optimize()

    assert recovery_files(graph) == []
