"""A refusal at a change of the schema names the commits on both sides, and advice that can be followed."""

import json
import re
from pathlib import Path

import pytest

from omnigraph.core.errors import ChangeSchemaBoundary
from omnigraph.graph.graph import Graph
from omnigraph.wire.error_document import error_document
from tests.engine.schema.world import EMAIL, replaced, team
from tests.support.engine import head
from tests.support.queries import mutation

RENAMED_AND_ADDED = replaced("age: I32?", 'years: I32? @rename_from("age")  email: String?')
DROPPED = replaced("    score: F32?\n", "")
PERSON = "query q() { match { $p: Person } return { $p } }"
UPDATE = mutation('update Person set { nick: "n" } where name = "ann"')


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph with a branch that has changed a row."""
    graph = team(tmp_path / "graph")
    graph.create_branch("june")
    graph.mutate(UPDATE, branch="june")
    return graph


def last(graph: Graph, branch: str | None = None) -> str:
    return graph.commits(branch=branch, limit=1)[0].graph_commit_id


def refused(graph: Graph, a: str, b: str = "main") -> ChangeSchemaBoundary:
    with pytest.raises(ChangeSchemaBoundary) as raised:
        graph.diff(a, b)
    return raised.value


def named_commit(error: ChangeSchemaBoundary) -> str:
    found = re.search(r"compare with commit '(\w+)' from before the change", str(error))
    assert found is not None, error
    return found[1]


@pytest.mark.case("engine", 820)
@pytest.mark.parametrize("schema", [EMAIL, RENAMED_AND_ADDED, DROPPED], ids=["added", "renamed", "dropped"])
def test_a_branch_behind_main_is_upgraded_or_compared_with_what_was_before(graph: Graph, schema: str) -> None:
    before, on_june = last(graph), last(graph, "june")
    graph.apply_schema(schema, index=False, allow_data_loss=True)

    error = refused(graph, "june")

    assert (error.type_name, error.before_commit_id, error.graph_commit_id) == (
        "Person",
        last(graph),
        on_june,
    )
    assert str(error) == (
        f"the schema of 'Person' differs between commits '{last(graph)}' and '{on_june}': "
        f"upgrade branch 'june' to the schema of main, compare with commit '{before}' from before the change "
        "in place of 'main', or leave the type out by naming others"
    )
    assert "upgrade branch 'june'" in str(refused(graph, "main", "june"))
    assert [change.id for change in graph.diff("june", named_commit(error))] == ["ann"]
    assert list(graph.diff("june", types=["Company"])) == []
    graph.upgrade_branch("june", index=False)
    assert [change.id for change in graph.diff("june")] == ["ann"]


@pytest.mark.case("engine", 820)
def test_a_branch_ahead_of_main_is_compared_with_its_commit_before_the_change(graph: Graph) -> None:
    before = last(graph, "june")
    graph.apply_schema(EMAIL, branch="june", index=False)

    error = refused(graph, "june")

    assert "upgrade" not in str(error)
    assert "in place of 'june'" in str(error)
    assert named_commit(error) == before
    assert [change.id for change in graph.diff(before)] == ["ann"]


@pytest.mark.case("engine", 820)
def test_between_commits_of_one_branch_the_last_one_before_the_change_is_named(graph: Graph) -> None:
    first = last(graph)
    graph.mutate(UPDATE)
    before = last(graph)
    graph.apply_schema(EMAIL, index=False)
    graph.apply_schema(EMAIL + "node City { name: String @key }\n", index=False)
    changed = last(graph)

    error = refused(graph, changed, first)

    assert (error.before_commit_id, error.graph_commit_id) == (first, changed)
    assert "upgrade" not in str(error)
    assert named_commit(error) == before
    assert [change.id for change in graph.diff(before, first)] == ["ann"]


@pytest.mark.case("engine", 820)
def test_where_both_sides_changed_the_type_both_can_be_queried(graph: Graph) -> None:
    graph.apply_schema(EMAIL, index=False)
    graph.apply_schema(replaced("age: I32?", "age: I64?"), branch="june", index=False)

    error = refused(graph, "june")

    assert str(error).endswith(": query the type at both or leave the type out by naming others")
    for commit_id in (error.before_commit_id, error.graph_commit_id):
        assert len(graph.query(PERSON, snapshot=commit_id).rows) == 2
    assert list(graph.diff("june", types=["Company"])) == []


@pytest.mark.case("engine", 820)
def test_a_commit_names_its_parent_and_both_can_be_queried(graph: Graph) -> None:
    before = last(graph)
    graph.apply_schema(EMAIL, index=False)
    changed = last(graph)

    with pytest.raises(ChangeSchemaBoundary) as raised:
        list(graph.commit_changes(changed))

    assert (raised.value.before_commit_id, raised.value.graph_commit_id) == (before, changed)
    assert str(raised.value).endswith(": query the type at both or leave the type out by naming others")
    assert [len(graph.query(PERSON, snapshot=at).rows) for at in (before, changed)] == [2, 2]
    assert list(graph.commit_changes(changed, types=["Company"])) == []


@pytest.mark.case("engine", 820)
@pytest.mark.case("surfaces", 522)
def test_a_feed_goes_on_behind_the_commit_or_without_the_type_before_it(graph: Graph) -> None:
    cursor, before = graph.poll_changes().cursor, last(graph)
    graph.apply_schema(EMAIL, index=False)
    changed = head(graph).graph_commit_id
    graph.mutate(UPDATE)

    with pytest.raises(ChangeSchemaBoundary) as raised:
        graph.poll_changes(cursor=cursor)

    assert str(raised.value).endswith(
        f": go on with start 'after:{changed}', take a baseline, which has what it made of the rows, "
        f"or leave the type out by naming others, with start 'after:{before}'"
    )
    [block] = graph.changes(start=f"after:{changed}")
    assert [change.id for change in block.changes] == ["ann"]
    others = list(graph.changes(start=f"after:{before}", types=["Company"]))
    assert [item.cause.graph_commit_id for item in others] == [changed, last(graph)]
    base = graph.baseline()
    assert "email" in json.dumps(list(base))
    assert list(graph.changes(base.resume_cursor)) == []
    assert error_document(raised.value) == {
        "error": str(raised.value),
        "code": "conflict",
        "change_diff_refusal": {
            "reason": "schema_boundary",
            "graph_commit_id": changed,
            "before_commit_id": before,
            "type_name": "Person",
        },
    }
