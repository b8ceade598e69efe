"""Copies of graphs whose schema has changed: at commits from before, and with branches that differ in it."""

from pathlib import Path

import pytest

from omnigraph.graph.graph import Graph
from omnigraph.operations.clone.check_copy import check_copy
from omnigraph.operations.clone.clone import clone
from omnigraph.operations.verify.verify import verify_place
from tests.support.engine import assert_settled, edge, new_graph, node, reopen

FIRST = """\
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""
SECOND = """\
node Person { name: String @key  years: I32? @rename_from("age") }
node City { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> City
"""
THIRD = """\
node Person { name: String @key  years: I64? }
node City { name: String @key  note: String? @index }
"""
FURTHER = "node Extra { name: String @key }\n"


def evolved(place: Path) -> Path:
    """Make a graph whose commits have three schemas."""
    with new_graph(place, FIRST, node("Person", name="ann", age=1)) as graph:
        graph.load([node("Person", name="bob", age=2), edge("Knows", "ann", "bob")], "append")
        graph.apply_schema(SECOND)
        graph.load([node("City", name="Rome"), edge("LivesIn", "ann", "Rome")], "append")
        graph.apply_schema(THIRD)
        graph.load([node("Person", name="cid", years=3)], "append")
    return place


def seen(graph: Graph, commit: str) -> dict[str, list[dict[str, object]]]:
    """Return all rows at a commit, by type."""
    return {
        table_key: graph.scan(table_key, snapshot=commit).to_arrow().sort_by("id").to_pylist()
        for table_key in sorted(graph.at(commit).snapshot.entries)
    }


@pytest.mark.case("engine", 837)
def test_a_copy_may_end_before_a_change_of_the_schema(tmp_path: Path) -> None:
    source = evolved(tmp_path / "source")
    with reopen(source) as graph:
        commits = [commit.graph_commit_id for commit in graph.commits()]
        schemas = {commit: graph.at(commit).schema() for commit in commits}
        rows = {commit: seen(graph, commit) for commit in commits}
    assert len(set(schemas.values())) == 3

    for number, commit in enumerate(commits):
        target = tmp_path / f"copy-{number}"

        clone(str(source), str(target), at=commit)

        assert verify_place(str(target), deep=True).is_whole
        with reopen(target) as graph:
            found = [entry.graph_commit_id for entry in graph.commits()]
            assert found == commits[number:]
            assert graph.at(commit).schema() == schemas[commit]
            assert {one: seen(graph, one) for one in found} == {one: rows[one] for one in found}
            graph.load([node("Person", name="new")], "append")
            graph.apply_schema(f"{graph.schema()}\n{FURTHER}")
            graph.load([node("Extra", name="more")], "append")
            graph.create_branch("june")
            graph.load([node("Person", name="on a branch")], "append", branch="june")
            assert graph.table("Extra")["name"].to_pylist() == ["more"]
            assert "new" in graph.table("Person")["name"].to_pylist()
            assert_settled(graph)
        assert verify_place(str(target), deep=True).is_whole


@pytest.mark.case("engine", 838)
def test_branches_of_a_copy_keep_their_own_schemas(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "copy"
    with new_graph(source, FIRST, node("Person", name="ann", age=1)) as graph:
        graph.create_branch("old")
        graph.load([node("Person", name="old", age=9)], "append", branch="old")
        graph.apply_schema(SECOND)
        graph.create_branch("middle")
        graph.load([node("City", name="Rome")], "append", branch="middle")
        graph.apply_schema(THIRD, allow_data_loss=True)
        graph.load([node("Person", name="cid", years=3)], "append")
        branches = graph.branches()
        expected = {name: (graph.schema(branch=name), seen(graph, head(graph, name))) for name in branches}
    assert len({schema for schema, _ in expected.values()}) == 3

    clone(str(source), str(target))

    assert check_copy(str(source), str(target), deep=True).is_same
    assert verify_place(str(target), deep=True).is_whole
    with reopen(target) as graph:
        assert {
            name: (graph.schema(branch=name), seen(graph, head(graph, name))) for name in branches
        } == expected
        graph.load([node("Person", name="late", age=8)], "append", branch="old")
        graph.upgrade_branch("middle", allow_data_loss=True)
        graph.merge("middle")
        graph.upgrade_branch("old", allow_data_loss=True)
        graph.merge("old")
        assert graph.table("Person").sort_by("name")["name"].to_pylist() == ["ann", "cid", "late", "old"]
        assert graph.table("City")["name"].to_pylist() == ["Rome"]
        assert_settled(graph)
    assert verify_place(str(target), deep=True).is_whole
    with reopen(source) as graph:
        assert {
            name: (graph.schema(branch=name), seen(graph, head(graph, name))) for name in branches
        } == expected


def head(graph: Graph, branch: str) -> str:
    """Return the newest commit of a branch."""
    return graph.snapshot(branch).commit_id
