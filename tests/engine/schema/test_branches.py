"""Changes of schema while branches live: each branch has its own schema until it is merged or upgraded."""

from pathlib import Path
from typing import Any

import pytest

from omnigraph.core.errors import BadRequest, ValidationError
from omnigraph.core.source_errors import TypeCheckError
from omnigraph.graph.graph import Graph
from omnigraph.operations.merge.merge import MergeOutcome
from tests.engine.schema.world import EMAIL, PEOPLE, TEAM, Pins, replaced, row_marks, team
from tests.support.engine import assert_settled, head, ndjson, node, reopen
from tests.support.queries import mutation

RENAMED = replaced("age: I32?", 'years: I64? @rename_from("age")')
DEFAULTED = replaced("note: String", 'note: String\n team: String @default("red")')


def insert(graph: Graph, name: str, branch: str | None = None, **more: object) -> None:
    """Insert one person, with a note."""
    graph.load(ndjson([node("Person", name=name, note="n", **more)]), "merge", branch=branch, index=False)


def rows(graph: Graph, type_name: str, branch: str | None = None) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in graph.table(type_name, branch=branch).to_pylist()}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph with a branch that has a person of its own."""
    graph = team(tmp_path / "graph")
    graph.create_branch("june")
    insert(graph, "cid", "june", age=50, nick="c")
    return graph


@pytest.mark.case("engine", 535)
@pytest.mark.case("engine", 250)
@pytest.mark.case("languages", 94)
def test_a_branch_keeps_the_schema_it_has(graph: Graph) -> None:
    before, commits = rows(graph, "Person", "june"), graph.commits(branch="june")

    graph.apply_schema(replaced("    score: F32?\n", "").replace("age: I32?", "years: I64?"))
    graph.apply_schema(TEAM + "node City { name: String @key }\n")

    assert graph.schema(branch="june") == TEAM
    assert (rows(graph, "Person", "june"), graph.commits(branch="june")) == (before, commits)
    text = "query q() { match { $p: Person  $p.age > 45 } return { $p.name, $p.score } }"
    assert graph.query(text, branch="june").to_pylist() == [{"p.name": "cid", "p.score": None}]
    graph.mutate(mutation('update Person set { score: 2.5 } where name = "cid"'), branch="june")
    insert(graph, "dan", "june", score=3.5)
    assert [rows(graph, "Person", "june")[name]["score"] for name in ("cid", "dan")] == [2.5, 3.5]
    with pytest.raises(TypeCheckError):
        graph.query("query q() { match { $c: City } return { $c.name } }", branch="june")
    assert set(rows(graph, "Person")) == {"ann", "bob"}
    again = reopen(graph)
    assert (again.schema(branch="june"), again.schema()) == (TEAM, TEAM + "node City { name: String @key }\n")
    assert rows(again, "Person", "june")["dan"]["score"] == 3.5


@pytest.mark.case("engine", 536)
def test_a_branch_changes_its_own_schema_and_brings_it_along(graph: Graph) -> None:
    pins, files = Pins.of(graph), {p.name: p.read_bytes() for p in Path(graph.uri).glob("*schema*")}
    graph.create_branch("july")

    result = graph.apply_schema(EMAIL, branch="june", index=False)

    assert result.branch == "june"
    assert (graph.schema(), graph.schema(branch="july"), graph.schema(branch="june")) == (TEAM, TEAM, EMAIL)
    assert Pins.of(graph) == pins
    assert {p.name: p.read_bytes() for p in Path(graph.uri).glob("*schema*")} == files
    insert(graph, "dan", "june", email="d@x.org")
    with pytest.raises(ValidationError):
        insert(graph, "dan", None, email="d@x.org")
    here = rows(graph, "Person", "june")

    merged = graph.merge("june")

    assert merged.commit == head(graph)
    assert graph.schema() == EMAIL
    assert rows(graph, "Person") == here
    assert (Path(graph.uri) / "_schema.pg").read_text() == EMAIL
    assert_settled(graph)
    assert rows(reopen(graph), "Person") == here
    assert graph.schema(branch="july") == TEAM


@pytest.mark.case("engine", 537)
@pytest.mark.case("engine", 544)
@pytest.mark.parametrize("schema", [EMAIL, RENAMED, DEFAULTED, replaced("    score: F32?\n", "")])
def test_an_older_branch_is_merged_in_the_schema_of_main(graph: Graph, schema: str) -> None:
    graph.apply_schema(schema, index=False)

    result = graph.merge("june")

    assert result.outcome is MergeOutcome.MERGED
    assert (graph.schema(), graph.schema(branch="june")) == (schema, TEAM)
    found = rows(graph, "Person")
    assert set(found) == {"ann", "bob", "cid"}
    columns = {item.name for item in graph.catalog.type_of("node:Person").properties.values()}
    assert all(set(row) == columns | {"id"} for row in found.values())
    cid = found["cid"]
    assert (cid.get("age", cid.get("years")), cid["nick"], cid.get("email"), cid.get("team", "red")) == (
        50,
        "c",
        None,
        "red",
    )
    assert graph.merge("june").outcome is MergeOutcome.ALREADY_UP_TO_DATE


@pytest.mark.case("engine", 538)
def test_a_branch_takes_the_schema_of_main_with_its_rows(graph: Graph) -> None:
    graph.apply_schema(DEFAULTED + "node City { name: String @key }\n", index=False)
    graph.load(ndjson([node("City", name="Bonn")]), "append", index=False)
    insert(graph, "dan", team="blue")

    graph.merge("main", into="june")

    assert graph.schema(branch="june") == graph.schema()
    assert {key: row["team"] for key, row in rows(graph, "Person", "june").items()} == {
        "ann": "red",
        "bob": "red",
        "cid": "red",
        "dan": "blue",
    }
    assert set(rows(graph, "City", "june")) == {"Bonn"}
    graph.load(ndjson([node("City", name="Graz")]), "append", index=False, branch="june")
    assert set(rows(graph, "City")) == {"Bonn"}
    graph.merge("june")
    assert set(rows(graph, "City")) == {"Bonn", "Graz"}
    assert rows(graph, "Person") == rows(graph, "Person", "june")


@pytest.mark.case("engine", 539)
def test_an_upgrade_brings_the_schema_and_no_row(graph: Graph) -> None:
    schema = DEFAULTED + "node City { name: String @key }\nedge In: Company -> City\n"
    graph.apply_schema(schema, index=False)
    graph.load(ndjson([node("City", name="Bonn")]), "append", index=False)
    insert(graph, "dan")
    marks = row_marks(graph, "node:Person", "june")

    result = graph.upgrade_branch("june", actor="eve", message="why", index=False)

    assert (result.applied, result.branch) == (True, "june")
    assert graph.commits(branch="june", limit=1)[0] == result.commit
    assert result.commit is not None
    assert (result.commit.actor_id, result.commit.message) == ("eve", "why")
    assert graph.schema(branch="june") == schema
    assert {key: row["team"] for key, row in rows(graph, "Person", "june").items()} == {
        "ann": "red",
        "bob": "red",
        "cid": "red",
    }
    created = {key: mark["_rowid"] for key, mark in row_marks(graph, "node:Person", "june").items()}
    assert created == {key: mark["_rowid"] for key, mark in marks.items()}
    assert (rows(graph, "City", "june"), rows(graph, "In", "june")) == ({}, {})
    assert graph.upgrade_branch("june").commit is None
    graph.load(ndjson([node("City", name="Graz")]), "append", index=False, branch="june")
    assert set(rows(graph, "City")) == {"Bonn"}
    assert set(rows(graph, "City", "june")) == {"Graz"}

    graph.merge("main", into="june")
    graph.merge("june")

    assert set(rows(graph, "City")) == {"Bonn", "Graz"}
    assert set(rows(graph, "Person")) == {"ann", "bob", "cid", "dan"}
    assert rows(graph, "Person") == rows(graph, "Person", "june")
    assert graph.schema() == schema
    with pytest.raises(BadRequest, match="name a branch"):
        graph.upgrade_branch("main")


@pytest.mark.case("engine", 543)
def test_what_each_side_did_to_the_schema_is_in_the_result(graph: Graph) -> None:
    ours = replaced("age: I32?", 'years: I32? @rename_from("age")')
    ours = replaced("calm, glad", "calm, glad, grim", ours)
    ours = replaced("note: String", "note: String\n email: String?", ours)
    theirs = replaced("age: I32?", "age: I64?")
    theirs = replaced("calm, glad", "calm, glad, wild", theirs)
    theirs = replaced("note: String", "note: String\n phone: String?", theirs)
    graph.apply_schema(ours, index=False)
    graph.apply_schema(theirs, branch="june", index=False)
    insert(graph, "dan", mood="grim", email="d")
    insert(graph, "eve", "june", mood="wild", phone="1", age=2**40)

    graph.merge("june")

    person = graph.catalog.type_of("node:Person").properties
    assert str(person["years"].type) == "I64?"
    assert set(person["mood"].type.enum_values or ()) == {"calm", "glad", "grim", "wild"}
    assert "age" not in person
    found = rows(graph, "Person")
    assert {key: row["years"] for key, row in found.items()} == {
        "ann": 30,
        "bob": 40,
        "cid": 50,
        "dan": None,
        "eve": 2**40,
    }
    assert [found["dan"][name] for name in ("mood", "email", "phone")] == ["grim", "d", None]
    assert [found["eve"][name] for name in ("mood", "email", "phone")] == ["wild", None, "1"]
    graph.merge("main", into="june")
    assert rows(graph, "Person", "june") == found


@pytest.mark.case("engine", 561)
def test_branches_of_two_schemas_are_merged_without_main(graph: Graph) -> None:
    graph.create_branch("july")
    graph.apply_schema(EMAIL, branch="july", index=False)
    insert(graph, "dan", "july", email="d@x.org")

    graph.merge("june", into="july")

    assert graph.schema(branch="july") == EMAIL
    found = rows(graph, "Person", "july")
    assert {key: row["email"] for key, row in found.items()} == {
        "ann": None,
        "bob": None,
        "cid": None,
        "dan": "d@x.org",
    }
    graph.merge("july", into="june")
    assert (graph.schema(branch="june"), rows(graph, "Person", "june")) == (EMAIL, found)
    assert (graph.schema(), rows(graph, "Person")) == (TEAM, PEOPLE)


@pytest.mark.case("engine", 872)
def test_rows_of_a_type_that_a_branch_added_come_along_beside_one_commit_of_another_table(
    graph: Graph,
) -> None:
    graph.apply_schema(TEAM + "node City { name: String @key }\n", branch="june")
    graph.load(ndjson([node("City", name="rome")]), "append", branch="june", index=False)

    assert graph.merge("june").commit is not None

    assert set(rows(graph, "City")) == {"rome"}
    assert set(rows(graph, "Person")) == {"ann", "bob", "cid"}
    assert_settled(graph)
