"""Columns whose values are worked out, and the past of a graph whose schema has changed."""

from pathlib import Path

import pytest

from omnigraph.changes.model import ChangeBlock
from omnigraph.core.errors import ChangeSchemaBoundary
from omnigraph.graph.graph import Graph
from tests.engine.schema.world import EMAIL, coverage, replaced, row_marks, team
from tests.support.engine import head, ndjson, node, rows
from tests.support.queries import mutation


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return team(tmp_path / "graph")


@pytest.mark.case("engine", 558)
@pytest.mark.parametrize("branch", [None, "june"])
def test_every_live_row_of_every_fragment_gets_a_default(graph: Graph, branch: str | None) -> None:
    for number in range(4):
        people = [node("Person", name=f"p{number}{each}", note="n") for each in range(3)]
        graph.load(ndjson(people), "append", index=False)
    graph.mutate(mutation('delete Person where name = "p10"'))
    graph.mutate(mutation('update Person set { age: 5 } where name = "p21"'))
    graph.ensure_indices()
    graph.create_branch("june")
    ids = {key: mark["_rowid"] for key, mark in row_marks(graph, "node:Person", branch).items()}

    graph.apply_schema(
        replaced("note: String", "note: String\n crew: I64 @default(3)"), branch=branch, index=False
    )

    found = {row["id"]: row for row in graph.table("Person", branch=branch).to_pylist()}
    assert {row["crew"] for row in found.values()} == {3}
    assert "p10" not in found
    assert found["p21"]["age"] == 5
    assert {key: mark["_rowid"] for key, mark in row_marks(graph, "node:Person", branch).items()} == ids
    assert coverage(graph, "node:Person", branch)["id:btree"] == "indexed"
    graph.mutate(mutation('update Person set { crew: 4 } where name = "p00"'), branch=branch)
    graph.mutate(mutation('insert Person { name: "new", note: "n" }'), branch=branch)
    text = "query q() { match { $p: Person  $p.crew = 3 } return { $p.name } }"
    assert len(graph.query(text, branch=branch).to_pylist()) == len(found)


@pytest.mark.case("engine", 559)
def test_a_wider_and_a_relaxed_column_change_together(graph: Graph) -> None:
    graph.apply_schema(replaced("note: String", "note: String?").replace("age: I32?", "age: I64?"))

    graph.load(ndjson([node("Person", name="cid", age=2**40)]), "append", index=False)

    found = rows(graph, "Person")
    assert {key: (row["age"], row["note"]) for key, row in found.items()} == {
        "ann": (30, "x"),
        "bob": (40, "y"),
        "cid": (2**40, None),
    }


@pytest.mark.case("engine", 562)
def test_each_commit_is_read_in_its_own_schema(graph: Graph) -> None:
    first = head(graph).graph_commit_id
    graph.apply_schema(EMAIL, index=False)
    graph.mutate(mutation('update Person set { email: "a" } where name = "ann"'))
    second = head(graph).graph_commit_id
    graph.apply_schema(replaced("    score: F32?\n", "", EMAIL), index=False)
    third = head(graph).graph_commit_id
    text = 'query q() {{ match {{ $p: Person {{ name: "ann" }} }} return {{ $p.{} }} }}'

    assert graph.query(text.format("score"), snapshot=first).to_pylist() == [{"p.score": 1.5}]
    assert graph.query(text.format("score"), snapshot=second).to_pylist() == [{"p.score": 1.5}]
    assert graph.query(text.format("email"), snapshot=third).to_pylist() == [{"p.email": "a"}]
    for commit_id, has_email, has_score in ((first, False, True), (second, True, True), (third, True, False)):
        whole = graph.query("query q() { match { $p: Person } return { $p } }", snapshot=commit_id)
        person = whole.to_pylist()[0]["p"]
        assert isinstance(person, dict)
        assert ("email" in person, "score" in person) == (has_email, has_score)
    with pytest.raises(ChangeSchemaBoundary):
        list(graph.commit_changes(third))
    assert graph.schema() == replaced("    score: F32?\n", "", EMAIL)


@pytest.mark.case("engine", 562)
def test_a_diff_a_feed_and_exports_say_where_the_schema_changed(graph: Graph) -> None:
    """What is on one side of the change is shown in the schema of that side."""
    first, cursor = head(graph).graph_commit_id, graph.poll_changes().cursor
    before, old = graph.export(types=["Person"]), graph.at(first)
    graph.apply_schema(EMAIL, index=False)
    changed = head(graph).graph_commit_id
    graph.mutate(mutation('update Person set { email: "a" } where name = "ann"'))

    for targets in ((first,), (first, changed), (changed, first)):
        with pytest.raises(ChangeSchemaBoundary) as raised:
            list(graph.diff(*targets))
        assert raised.value.type_name == "Person"
    [update] = graph.diff("main", changed)
    assert update.before is not None
    assert update.after is not None
    assert (update.before.properties["email"], update.after.properties["email"]) == (None, "a")
    assert list(graph.diff(first, changed, types=["Company"])) == []
    with pytest.raises(ChangeSchemaBoundary) as raised:
        graph.poll_changes(cursor=cursor)
    assert (raised.value.graph_commit_id, raised.value.cursor) == (changed, cursor)
    assert not any("email" in str(record) for record in before)
    assert all("email" in str(record) for record in graph.export(types=["Person"]))
    assert "email" not in str(old.query("query q() { match { $p: Person } return { $p } }").rows)


@pytest.mark.case("engine", 726)
def test_a_feed_keeps_its_position_at_a_change_of_the_schema(graph: Graph) -> None:
    cursor = graph.poll_changes().cursor
    graph.mutate(mutation('update Person set { age: 5 } where name = "ann"'))
    last = head(graph).graph_commit_id
    graph.apply_schema(EMAIL, index=False)
    changed = head(graph).graph_commit_id
    graph.mutate(mutation('update Person set { email: "a" } where name = "ann"'))
    feed = graph.changes(cursor)
    taken: list[ChangeBlock] = []

    with pytest.raises(ChangeSchemaBoundary) as raised:
        taken.extend(feed)

    assert [block.cause.graph_commit_id for block in taken] == [last]
    assert "email" not in str(taken[0].changes[0].after)
    assert feed.cursor == raised.value.cursor
    with pytest.raises(ChangeSchemaBoundary) as again:
        list(graph.changes(feed.cursor))
    assert (again.value.graph_commit_id, again.value.cursor) == (changed, feed.cursor)

    rest = graph.changes(start=f"after:{changed}")
    [block] = rest
    assert "'email': 'a'" in str(block.changes[0].after)
    assert list(graph.changes(rest.cursor)) == []
    others = graph.changes(start=f"after:{last}", types=["Company"])
    assert next(iter(others)).cause.graph_commit_id == changed
