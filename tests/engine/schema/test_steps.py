"""Every kind of step: what it does to rows, to versions of tables and to files."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.core.errors import SchemaError
from omnigraph.core.failpoint import failpoint
from omnigraph.core.source_errors import TypeCheckError
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import MAINTENANCE_ACTOR
from tests.engine.schema.world import (
    PEOPLE,
    TEAM,
    Pins,
    coverage,
    data_files,
    field_ids,
    replaced,
    row_marks,
    snapshot_at,
    team,
)
from tests.support.engine import assert_settled, chain, head, ids, ndjson, node, reopen, rows
from tests.support.queries import mutation

Rows = dict[str, dict[str, Any]]


def people(**changes: Callable[[dict[str, Any]], object]) -> Rows:
    """Return the persons with some values worked out anew."""
    return {
        key: {**row, **{name: made(row) for name, made in changes.items()}} for key, row in PEOPLE.items()
    }


def without(name: str) -> Rows:
    return {key: {k: v for k, v in row.items() if k != name} for key, row in PEOPLE.items()}


@dataclass(frozen=True, slots=True)
class Kind:
    """A change, the steps of its plan, the rows of persons afterwards, and what moves."""

    schema: str
    steps: tuple[str, ...]
    people: Rows = field(default_factory=lambda: dict(PEOPLE))
    moves: tuple[str, ...] = ()  # the types whose table gets another version
    writes: tuple[str, ...] = ()  # the types that get data files
    type_name: str = "Person"


KINDS = {
    "add property": Kind(
        replaced("note: String", "note: String\n email: String?"),
        ("AddProperty",),
        people(email=lambda _: None),
        moves=("Person",),
    ),
    "add property with a default": Kind(
        replaced("note: String", 'note: String\n team: String @default("red")'),
        ("AddProperty",),
        people(team=lambda _: "red"),
        moves=("Person",),
        writes=("Person",),
    ),
    "rename property": Kind(
        replaced("nick: String?", 'alias: String? @rename_from("nick")'),
        ("RenameProperty",),
        {
            key: {**{k: v for k, v in row.items() if k != "nick"}, "alias": row["nick"]}
            for key, row in PEOPLE.items()
        },
        moves=("Person",),
    ),
    "drop property": Kind(
        replaced("    score: F32?\n", ""), ("DropProperty",), without("score"), moves=("Person",)
    ),
    "relax property": Kind(replaced("note: String", "note: String?"), ("RelaxProperty",), moves=("Person",)),
    "widen property": Kind(
        replaced("age: I32?", "age: I64?"), ("WidenProperty",), moves=("Person",), writes=("Person",)
    ),
    "widen a float": Kind(
        replaced("score: F32?", "score: F64?"), ("WidenProperty",), moves=("Person",), writes=("Person",)
    ),
    "extend enum": Kind(replaced("calm, glad", "calm, glad, grim"), ("ExtendEnum",)),
    "add index": Kind(replaced("age: I32?", "age: I32? @index"), ("AddIndex",)),
    "change default": Kind(replaced("age: I32?", "age: I32? @default(7)"), ("ChangeDefault",)),
    "describe type": Kind(
        replaced("node Company {", 'node Company @description("who pays") {'), ("UpdateTypeMetadata",)
    ),
    "describe property": Kind(
        replaced("age: I32?", 'age: I32? @description("in years")'), ("UpdatePropertyMetadata",)
    ),
    "add node type": Kind(TEAM + "node City { name: String @key }\n", ("AddType",)),
    "add edge type": Kind(
        TEAM + "edge Likes: Person -> Company\n", ("AddType",), moves=("Company", "Person")
    ),
    "rename type": Kind(
        TEAM.replace("Person ->", "Human ->")
        .replace("-> Person", "-> Human")
        .replace("node Person {", 'node Human @rename_from("Person") {'),
        ("RenameType",),
        type_name="Human",
    ),
    "drop edge type": Kind(replaced("edge WorksAt: Person -> Company\n", ""), ("DropType",)),
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return team(tmp_path / "graph")


@pytest.mark.case("engine", 246)
@pytest.mark.case("engine", 530)
@each_kind
def test_a_step_keeps_rows_and_moves_only_what_it_must(kind: Kind, graph: Graph) -> None:
    graph.ensure_indices()
    pins, files, marks = Pins.of(graph), data_files(graph), row_marks(graph, "node:Person")
    places = {entry.location: key.partition(":")[2] for key, entry in graph.snapshot().entries.items()}
    covered = coverage(graph, "node:Person")
    edges = {name: rows(graph, name) for name in ("Knows",)}

    result = graph.apply_schema(kind.schema, actor="eve", message="why", index=False)

    assert tuple(type(step).__name__ for step in result.steps) == kind.steps
    assert (result.supported, result.applied, result.index_commit, result.warnings) == (True, True, None, ())
    assert result.commit == head(graph)
    assert (head(graph).actor_id, head(graph).message) == ("eve", "why")
    assert rows(graph, kind.type_name) == kind.people
    assert {name: rows(graph, name) for name in edges} == edges
    moved = Pins.of(graph).moved(pins)
    assert {places[key] for key in moved} == set(kind.moves)
    assert set(moved.values()) <= {1}
    new = {name: text for name, text in data_files(graph).items() if "latest_version_hint" not in name}
    written = {places[name.rsplit("/data/")[0]] for name in new.keys() - files.keys() if "/data/" in name}
    assert written == set(kind.writes)
    assert {name: new.get(name) for name in files if "latest_version_hint" not in name} == {
        name: text for name, text in files.items() if "latest_version_hint" not in name
    }
    found = row_marks(graph, f"node:{kind.type_name}")
    if kind.writes:  # the rows count as changed by this commit: they have another value
        assert {mark.pop("_row_last_updated_at_version") for mark in found.values()} == {4}
        marks = {key: {k: v for k, v in mark.items() if "updated" not in k} for key, mark in marks.items()}
    assert found == marks
    now = coverage(graph, f"node:{kind.type_name}")
    assert {now[name] for name in covered if name in now} <= {"indexed"}
    assert_settled(graph)
    again = reopen(graph, mode="ro")
    assert rows(again, kind.type_name) == kind.people
    assert again.schema() == kind.schema


@pytest.mark.case("engine", 63)
@pytest.mark.case("engine", 247)
@pytest.mark.case("languages", 81)
def test_a_renamed_type_keeps_its_table_rows_and_past(graph: Graph) -> None:
    kind, before, commit = KINDS["rename type"], graph.snapshot(), head(graph).graph_commit_id
    old = before.entry("node:Person")

    graph.apply_schema(kind.schema, index=False)

    new = graph.snapshot().entry("node:Human")
    assert (new.identity, new.location, new.version) == (old.identity, old.location, old.version)
    assert "node:Person" not in graph.snapshot().entries
    assert rows(graph, "Human") == PEOPLE
    assert graph.query("query q() { match { $h: Human { age: 40 } } return { $h.name } }").to_pylist() == [
        {"h.name": "bob"}
    ]
    past = "query q() { match { $p: Person { age: 40 } } return { $p.name } }"
    assert graph.query(past, snapshot=commit).to_pylist() == [{"p.name": "bob"}]
    with pytest.raises(TypeCheckError):
        graph.query(past)
    with pytest.raises(TypeCheckError):
        graph.query(past.replace("Person", "Human"), snapshot=commit)
    graph.mutate(mutation('insert Knows { from: "bob", to: "ann" }'))
    assert len(rows(graph, "Knows")) == 2


@pytest.mark.case("engine", 63)
@pytest.mark.case("engine", 248)
@pytest.mark.case("languages", 93)
def test_a_type_that_comes_again_is_another_one(graph: Graph) -> None:
    dropped = replaced("edge WorksAt: Person -> Company\n", "")
    first, commit = graph.snapshot().entry("edge:WorksAt"), head(graph).graph_commit_id
    numbers = graph.catalog.type_of("edge:WorksAt").id

    graph.apply_schema(dropped)
    graph.apply_schema(TEAM)

    second = graph.snapshot().entry("edge:WorksAt")
    assert graph.catalog.type_of("edge:WorksAt").id > numbers
    assert (second.identity == first.identity, second.location == first.location) == (False, False)
    assert rows(graph, "WorksAt") == {}
    text = "query q() { match { $p worksAt $c } return { $p.name, $c.name } }"
    assert graph.query(text).to_pylist() == []
    assert graph.query(text, snapshot=commit).to_pylist() == [{"p.name": "ann", "c.name": "acme"}]


@pytest.mark.case("engine", 531)
def test_a_property_that_comes_again_is_another_one(graph: Graph) -> None:
    before, commit = field_ids(graph, "node:Person"), head(graph).graph_commit_id

    graph.apply_schema(replaced("    score: F32?\n", ""))
    graph.apply_schema(TEAM)

    after = field_ids(graph, "node:Person")
    assert after["score"] != before["score"]
    assert {name: number for name, number in after.items() if name != "score"} == {
        name: number for name, number in before.items() if name != "score"
    }
    assert rows(graph, "Person")["ann"]["score"] is None
    text = 'query q() { match { $p: Person { name: "ann" } } return { $p.score } }'
    assert graph.query(text, snapshot=commit).to_pylist() == [{"p.score": 1.5}]


@pytest.mark.case("engine", 532)
def test_an_index_follows_its_column_and_a_new_one_of_the_old_name_gets_its_own(graph: Graph) -> None:
    graph.ensure_indices()
    assert coverage(graph, "node:Person")["nick:fulltext"] == "indexed"
    renamed = replaced("nick: String? @index", 'alias: String? @index @rename_from("nick")')
    second = replaced("nick: String? @index", "alias: String? @index\n nick: String? @index")

    graph.apply_schema(renamed, index=False)
    graph.apply_schema(second, index=False)

    assert coverage(graph, "node:Person")["alias:fulltext"] == "indexed"
    assert coverage(graph, "node:Person")["nick:fulltext"] == "missing"
    built = graph.ensure_indices()
    assert built.pending == ()
    assert coverage(graph, "node:Person")["nick:fulltext"] == "indexed"
    graph.mutate(mutation('update Person set { nick: "n" } where name = "bob"'))
    for text, names in (('$p.alias = "a"', ["ann"]), ('$p.nick = "n"', ["bob"])):
        found = graph.query(f"query q() {{ match {{ $p: Person  {text} }} return {{ $p.name }} }}")
        assert [row["p.name"] for row in found.to_pylist()] == names


@pytest.mark.case("engine", 533)
def test_two_columns_can_change_names(graph: Graph) -> None:
    graph.apply_schema(replaced("age: I32?", 'spare: I32? @rename_from("age")'), index=False)
    spare = replaced("age: I32?", "spare: I32?")
    graph.apply_schema(replaced("score: F32?", 'age: F32? @rename_from("score")', spare), index=False)
    graph.apply_schema(
        replaced("age: I32?", 'score: I32? @rename_from("spare")').replace("score: F32?", "age: F32?"),
        index=False,
    )

    assert (rows(graph, "Person")["ann"]["age"], rows(graph, "Person")["ann"]["score"]) == (1.5, 30)
    graph.mutate(mutation('update Person set { score: 31 } where name = "ann"'))
    assert (rows(graph, "Person")["ann"]["age"], rows(graph, "Person")["ann"]["score"]) == (1.5, 31)
    assert (rows(graph, "Person")["bob"]["age"], rows(graph, "Person")["bob"]["score"]) == (None, 40)


@pytest.mark.case("engine", 249)
def test_a_dropped_type_is_read_by_time_travel(graph: Graph) -> None:
    state, before = graph.snapshot(), head(graph)

    result = graph.apply_schema(replaced("edge WorksAt: Person -> Company\n", ""))

    assert result.commit is not None
    text = "query q() { match { $p worksAt $c } return { $p.name } }"
    assert graph.query(text, snapshot=before.graph_commit_id).to_pylist() == [{"p.name": "ann"}]
    with pytest.raises(TypeCheckError):
        graph.query(text)
    assert "edge:WorksAt" in snapshot_at(graph, before.manifest_version).entries
    assert "edge:WorksAt" not in snapshot_at(graph, result.commit.manifest_version).entries
    assert snapshot_at(graph, before.manifest_version).entries == state.entries


@pytest.mark.case("engine", 251)
@pytest.mark.case("languages", 94)
def test_an_unsupported_plan_changes_nothing_and_an_empty_one_applies_nothing(graph: Graph) -> None:
    commits, text = chain(graph), graph.schema()

    with pytest.raises(SchemaError, match=r"^\[OG-MF-103\]"):
        graph.apply_schema(replaced("note: String", "note: String\n must: String"))
    result = graph.apply_schema("// a comment\n" + TEAM)

    assert (result.applied, result.commit, result.steps) == (False, None, ())
    assert result.manifest_version == head(graph).manifest_version
    assert (chain(graph), graph.schema()) == (commits, text)
    assert not (Path(graph.uri) / "__numbers.json").exists()
    assert_settled(graph)


@pytest.mark.case("engine", 252)
@pytest.mark.parametrize(
    "desired",
    [
        replaced("city: String?", "city: String?\n size: I64 @default(3)"),
        replaced("city: String?", "city: String?\n size: I64?"),
        replaced("node Company { name: String @key  city: String? }", "node Company { name: String @key }"),
    ],
)
def test_the_columns_of_an_empty_table_change_without_a_data_file(desired: str, tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", TEAM, durability="process")
    files = data_files(graph)

    graph.apply_schema(desired)

    assert {name for name in data_files(graph) if name.endswith(".lance")} == {
        name for name in files if name.endswith(".lance")
    }
    graph.load(ndjson([node("Company", name="ibex")]), "append", index=False)
    assert ids(graph, "Company") == ["ibex"]


@pytest.mark.case("engine", 253)
def test_a_new_value_of_an_enum_is_taken_at_once(graph: Graph) -> None:
    pins = Pins.of(graph)

    result = graph.apply_schema(replaced("calm, glad", "calm, glad, grim"))

    assert result.commit is not None
    assert (
        snapshot_at(graph, result.commit.manifest_version).entries["node:Person"].version
        == (pins.versions[graph.snapshot().entry("node:Person").location])
    )
    assert result.index_commit is not None
    assert result.index_commit.parent_commit_id == result.commit.graph_commit_id
    graph.mutate(mutation('update Person set { mood: "grim" } where name = "ann"'))
    graph.load(ndjson([node("Person", name="cid", mood="grim", note="z")]), "append", index=False)
    graph.create_branch("june")
    graph.mutate(mutation('update Person set { mood: "grim" } where name = "bob"'), branch="june")
    graph.merge("june")
    assert {row["mood"] for row in rows(graph, "Person").values()} == {"grim"}


@pytest.mark.case("languages", 92)
def test_a_composite_key_keeps_the_ids_of_its_rows_when_names_change(tmp_path: Path) -> None:
    graph = omnigraph.init(
        tmp_path / "graph", "node T { alpha: String  zeta: String  n: I32?  @key(alpha, zeta) }"
    )
    graph.load(ndjson([node("T", alpha="a", zeta="z", n=1)]), "append", index=False)
    before = ids(graph, "T")

    graph.apply_schema(
        'node T { omega: String @rename_from("alpha")  zeta: String  n: I32?  @key(omega, zeta) }'
    )
    graph.load(ndjson([node("T", omega="a", zeta="z", n=2)]), "merge", index=False)

    assert ids(graph, "T") == before
    assert rows(graph, "T")[before[0]] == {"id": before[0], "omega": "a", "zeta": "z", "n": 2}


@pytest.mark.case("engine", 534)
def test_a_plan_tells_how_many_rows_each_step_writes(graph: Graph) -> None:
    desired = replaced("age: I32?", "age: I64?").replace(
        "note: String", 'note: String\n team: String @default("red")\n email: String?'
    )
    commits = chain(graph)

    plan = graph.plan_schema(desired)

    written = dict(zip((str(getattr(s, "property_name", "")) for s in plan.steps), plan.rows, strict=True))
    assert written == {"age": 2, "team": 2, "email": 0}
    assert chain(graph) == commits


@pytest.mark.case("engine", 354)
@pytest.mark.parametrize("how", ["index", "no index", "failing"])
def test_a_rewritten_table_gets_its_indexes_by_a_commit_of_their_own(graph: Graph, how: str) -> None:
    before, kind = len(chain(graph)), KINDS["widen property"]

    with failpoint("ensure_indices.post_stage_pre_commit", "raise") if how == "failing" else nullcontext():
        result = graph.apply_schema(kind.schema, index=how != "no index")

    assert result.applied
    made = [commit.actor_id for commit in chain(graph)[before:]]
    assert made == ([None, MAINTENANCE_ACTOR] if how == "index" else [None])
    assert len(result.warnings) == (how == "failing")
    assert bool(result.pending_indexes) == (how == "failing")
    assert coverage(graph, "node:Person")["nick:fulltext"] == ("indexed" if how == "index" else "missing")
    assert rows(graph, "Person") == kind.people
