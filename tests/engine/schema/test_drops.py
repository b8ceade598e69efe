"""Drops: soft ones leave the past readable until a cleanup, hard ones purge it behind the publish."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import HistoricalVersionReclaimed
from omnigraph.core.failpoint import failpoint
from omnigraph.core.source_errors import TypeCheckError
from omnigraph.graph.graph import Graph
from tests.support.engine import reopen
from tests.support.queries import mutation

BEFORE = "node Person { name: String @key  age: I32? }\nnode Note { body: String @key }\n"
AFTER = "node Person { name: String @key }\n"
ROWS = b'{"type":"Person","data":{"name":"ann","age":30}}\n{"type":"Note","data":{"body":"hello"}}\n'
PEOPLE = "query people() { match { $p: Person } return { $p } }"
NOTES = "query notes() { match { $n: Note } return { $n.body } }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "graph", BEFORE)
    made.load(ROWS, "append", index=False)
    return made


@pytest.mark.case("engine", 249)
def test_a_soft_drop_is_readable_until_cleanup_and_a_hard_one_is_not(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = graph.commits()[0].graph_commit_id

    dropped = graph.apply_schema(AFTER, index=False).commit

    assert dropped is not None
    assert sorted(graph.at(full).snapshot.entries) == ["node:Note", "node:Person"]
    assert sorted(graph.at(dropped.graph_commit_id).snapshot.entries) == ["node:Person"]
    assert graph.query(PEOPLE, snapshot=full).rows == [{"p": {"id": "ann", "name": "ann", "age": 30}}]
    assert graph.query(NOTES, snapshot=full).rows == [{"n.body": "hello"}]
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    graph.cleanup(keep=1)
    assert_reclaimed(graph, full)

    other = omnigraph.init(tmp_path / "other", BEFORE)
    other.load(ROWS, "append", index=False)
    full = other.commits()[0].graph_commit_id
    result = other.apply_schema(AFTER, allow_data_loss=True, index=False)
    assert result.warnings == ()
    assert_reclaimed(other, full)


@pytest.mark.case("engine", 361)
def test_a_name_that_is_taken_again_leaves_the_past_as_it_was(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = graph.commits()[0].graph_commit_id
    title = "query titles() { match { $n: Note } return { $n.title } }"
    age = "query ages() { match { $p: Person } return { $p.age } }"

    graph.apply_schema(AFTER, index=False)
    graph.apply_schema(AFTER + "node Note { title: String @key }\n", index=False)

    assert graph.query(NOTES, snapshot=full).rows == [{"n.body": "hello"}]
    assert graph.query(age, snapshot=full).rows == [{"p.age": 30}]
    assert graph.query(title).rows == []
    for text, snapshot in ((title, full), (NOTES, None), (age, None)):
        with pytest.raises(TypeCheckError):
            graph.query(text, snapshot=snapshot)
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    graph.cleanup(keep=1)
    assert_reclaimed(graph, full)


def test_a_hard_drop_keeps_what_another_branch_shows(graph: Graph) -> None:
    graph.create_branch("june")

    graph.apply_schema(AFTER, allow_data_loss=True, index=False)

    assert graph.query(NOTES, branch="june").rows == [{"n.body": "hello"}]
    assert graph.query(PEOPLE, branch="june").rows == [{"p": {"id": "ann", "name": "ann", "age": 30}}]
    assert graph.verify().is_whole


@pytest.mark.parametrize(("place", "warnings"), [("cleanup.table_gc", 2), ("schema_apply.pre_purge", 1)])
def test_a_purge_that_fails_is_a_warning(graph: Graph, place: str, warnings: int) -> None:
    full = graph.commits()[0].graph_commit_id

    with failpoint(place, "raise"):
        result = graph.apply_schema(AFTER, allow_data_loss=True, index=False)

    assert result.applied
    assert len(result.warnings) == warnings
    assert graph.query(NOTES, snapshot=full).rows == [{"n.body": "hello"}]
    assert graph.query(PEOPLE).rows == [{"p": {"id": "ann", "name": "ann"}}]


@pytest.mark.case("engine", 771)
@pytest.mark.parametrize("is_upgrade", [False, True])
def test_a_branch_that_cannot_be_read_is_a_warning_of_a_hard_drop(
    graph: Graph, tmp_path: Path, *, is_upgrade: bool
) -> None:
    if is_upgrade:
        graph.create_branch("june")
        graph.apply_schema(AFTER, allow_data_loss=True, index=False)
    known = set(tmp_path.rglob("*.lance"))
    graph.create_branch("torn")
    graph.mutate(mutation('insert Person { name: "bob" }'), branch="torn")
    for path in set(tmp_path.rglob("*.lance")) - known:
        if "__manifest" in path.parts:
            path.unlink()

    with reopen(graph) as opened:
        if is_upgrade:
            result = opened.upgrade_branch("june", allow_data_loss=True, index=False)
        else:
            result = opened.apply_schema(AFTER, allow_data_loss=True, index=False)

        assert result.commit is not None
        assert any(warning.startswith("whether other branches keep values") for warning in result.warnings)
        branch = "june" if is_upgrade else "main"
        assert opened.query(PEOPLE, branch=branch).rows == [{"p": {"id": "ann", "name": "ann"}}]


def assert_reclaimed(graph: Graph, commit_id: str) -> None:
    """Say that nothing of a commit is left, the commit itself excepted, and the present is whole."""
    for text in (PEOPLE, NOTES):
        with pytest.raises(
            HistoricalVersionReclaimed, match="cleaned up, or removed by a change of the schema"
        ):
            graph.query(text, snapshot=commit_id)
    assert graph.commit(commit_id).graph_commit_id == commit_id
    assert graph.query(PEOPLE).rows == [{"p": {"id": "ann", "name": "ann"}}]
    assert graph.verify().is_whole


@pytest.mark.case("engine", 690)
def test_a_hard_drop_says_which_branches_keep_the_values(graph: Graph) -> None:
    graph.create_branch("june")
    graph.create_branch("july")

    [warning] = graph.apply_schema(AFTER, allow_data_loss=True, index=False).warnings

    assert warning.startswith("values that were dropped from node:Note, node:Person can still be read")
    assert "on 'july', 'june'" in warning
