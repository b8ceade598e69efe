"""Indexes: built after a load, by the engine, and never at the expense of the load."""

from collections.abc import Iterable
from pathlib import Path

import lance
import pytest

from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import MAINTENANCE_ACTOR
from tests.support.engine import (
    assert_settled,
    chain,
    edge,
    head,
    ids,
    ndjson,
    new_graph,
    node,
    pins,
    reopen,
    table_path,
)
from tests.support.queries import mutation

PERSONS = ndjson([node("Person", name="ann"), node("Person", name="bob")])
INDEXED = """\
node Doc {
    code:  String @key
    text:  String? @index
    kind:  enum(a, b)? @index
    mail:  String? @unique @index
    tags:  [String]?
    place: Vector(2)? @index
}
node Empty { code: String @key }
"""
EVERY_KIND = """\
node Item {
    code:  String @key
    label: String? @index
    kind:  enum(a, b)? @index
    mail:  String? @unique @index
    nick:  String? @unique
    state: enum(on, off)? @unique @index
    row:   I32?
    seat:  U64?
    size:  I64? @index
    ratio: F32? @index
    open:  Bool? @index
    day:   Date? @index
    at:    DateTime? @index
    tags:  [String]?
    raw:   Blob?
    place: Vector(2)? @index
    plain: I32?
    @unique(row, seat)
    @index(plain, size)
}
edge Link: Item -> Item {
    serial: I32? @unique
    title:  String? @unique @index
    note:   String? @index
    rank:   I32?
    slot:   I32?
    weight: F64?
    @unique(rank, slot)
}
"""


def indexes(graph: Graph, table_key: str) -> list[str]:
    """Return the names of a table's indexes."""
    dataset = lance.dataset(str(table_path(graph, table_key)))
    return sorted(index.name for index in dataset.describe_indices())


def index_types(graph: Graph, table_key: str) -> dict[str, str]:
    """Return what the indexes of a table are to Lance, by name."""
    dataset = lance.dataset(str(table_path(graph, table_key)))
    return {index.name: index.index_type for index in dataset.describe_indices()}


def actors(graph: Graph) -> list[str | None]:
    """Return who made the commits after genesis."""
    return [commit.actor_id for commit in chain(graph)[1:]]


def pending_properties(pending: Iterable[object]) -> list[tuple[str, str]]:
    """Return table and property of pending indexes."""
    return [(item.table_key, item.property) for item in pending]  # type: ignore[attr-defined]


# At the end of a load


@pytest.mark.case("engine", 304)
def test_a_load_is_followed_by_one_index_commit(graph: Graph) -> None:
    result = graph.load(PERSONS, "append")

    assert actors(graph) == [None, MAINTENANCE_ACTOR]
    assert result.commit == chain(graph)[1]
    assert result.index_commit == head(graph)
    assert (result.pending_indexes, result.warnings) == ((), ())
    assert indexes(graph, "node:Person") == ["id__btree", "name__fts"]
    assert_settled(graph)

    second = graph.load(ndjson([node("Person", name="cid")]), "append")
    assert (actors(graph)[2:], second.index_commit) == ([None], None)


@pytest.mark.case("engine", 304)
def test_a_load_without_indexes_is_one_commit(graph: Graph) -> None:
    result = graph.load(PERSONS, "append", index=False)

    assert actors(graph) == [None]
    assert result.index_commit is None
    assert indexes(graph, "node:Person") == []


@pytest.mark.case("engine", 304)
@pytest.mark.parametrize(
    "place",
    [
        "load.post_publish_pre_index",
        "ensure_indices.post_stage_pre_commit",
        "ensure_indices.post_sidecar_pre_commit",
        "ensure_indices.post_table_commit",
        "ensure_indices.post_phase_b_pre_manifest_commit",
    ],
)
def test_a_load_succeeds_whatever_becomes_of_its_indexes(graph: Graph, place: str) -> None:
    with failpoint(place, "raise"):
        result = graph.load(PERSONS, "append")

    assert result.commit is not None
    assert dict(result.tables) == {"node:Person": 2}
    assert ids(graph, "Person") == ["ann", "bob"]
    assert len(result.warnings) == 1
    missing = [("node:Person", "id"), ("node:Person", "name")]
    assert pending_properties(result.pending_indexes) == missing
    assert all("fault injected" in item.reason for item in result.pending_indexes)
    graph.mutate(mutation('insert Person { name: "cid" }'))
    assert ids(graph, "Person") == ["ann", "bob", "cid"]
    assert_settled(graph)


def test_an_overwrite_loses_the_indexes_and_builds_them_again(graph: Graph) -> None:
    graph.load(PERSONS, "append")

    result = graph.load(PERSONS, "overwrite")

    assert result.index_commit == head(graph)
    assert indexes(graph, "node:Person") == ["id__btree", "name__fts"]


# Which


@pytest.mark.case("engine", 257)
def test_every_column_has_the_indexes_of_its_type_and_no_other(tmp_path: Path) -> None:
    full = node(
        "Item",
        code="one",
        label="x",
        kind="a",
        mail="m",
        nick="n",
        state="on",
        row=1,
        seat=2,
        size=3,
        ratio=0.5,
        open=True,
        day="2020-01-01",
        at="2020-01-01T00:00:00Z",
        tags=["t"],
        raw="base64:AAAA",
        place=[0, 1],
        plain=4,
    )
    link = edge("Link", "one", "one", serial=1, title="t", note="n", rank=1, slot=2, weight=0.5)
    graph = new_graph(tmp_path / "items", EVERY_KIND)

    result = graph.load(ndjson([full, link]), "append")

    assert (result.pending_indexes, result.warnings) == ((), ())
    values = ["kind", "size", "ratio", "open", "day", "at"]
    looked_up = ["id", "mail", "nick", "state", "row", "seat", *values]
    assert index_types(graph, "node:Item") == {
        **{f"{column}__btree": "BTree" for column in looked_up},
        **{f"{column}__fts": "Inverted" for column in ("code", "label", "mail")},
        "place__vector": "IVF_FLAT",
    }
    ends_and_unique = ["id", "src", "dst", "serial", "title", "rank", "slot"]
    assert index_types(graph, "edge:Link") == {f"{column}__btree": "BTree" for column in ends_and_unique}
    for table in graph.index_status():
        assert {index.coverage for index in table.indexes} == {"indexed"}
        assert len(table.indexes) == len(index_types(graph, table.table_key))


# By hand


@pytest.mark.case("engine", 258)
def test_a_vector_index_waits_for_a_vector(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "docs", INDEXED)

    first = graph.load(ndjson([node("Doc", code="one", text="x")]), "append")
    assert pending_properties(first.pending_indexes) == [("node:Doc", "place")]
    built = ["code__fts", "id__btree", "kind__btree", "mail__btree", "mail__fts", "text__fts"]
    assert indexes(graph, "node:Doc") == built

    vectors = [node("Doc", code=f"v{number}", place=[number, 1]) for number in range(20)]
    second = graph.load(ndjson(vectors), "append")
    assert second.pending_indexes == ()
    assert indexes(graph, "node:Doc") == sorted([*built, "place__vector"])
    assert actors(graph) == [None, MAINTENANCE_ACTOR, None, MAINTENANCE_ACTOR]


@pytest.mark.case("engine", 259)
def test_building_twice_builds_once_and_leaves_empty_tables_alone(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "docs", INDEXED, node("Doc", code="one", text="x", place=[0, 1]))
    before = pins(graph)

    first = graph.ensure_indices(actor="ann")
    assert first.commit == head(graph)
    assert head(graph).actor_id == MAINTENANCE_ACTOR
    after = pins(graph)
    assert {key for key in after if after[key] != before[key]} == {"node:Doc"}

    second = reopen(graph).ensure_indices()
    assert (second.commit, second.pending) == (None, ())
    assert pins(graph) == after
    assert_settled(graph)


@pytest.mark.case("engine", 259)
def test_a_build_that_fails_while_staging_leaves_tables_writable(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "docs", INDEXED, node("Doc", code="one"))
    before = pins(graph)

    with pytest.raises(InjectedFault), failpoint("ensure_indices.post_stage_pre_commit", "raise"):
        graph.ensure_indices()

    assert pins(graph) == before
    assert_settled(graph)
    graph.mutate(mutation('insert Doc { code: "two" }'))
    assert graph.ensure_indices().commit is not None


def test_a_direct_build_fails_loudly_and_the_next_write_goes_on(graph: Graph) -> None:
    graph.load(PERSONS, "append", index=False)

    with (
        pytest.raises(RecoveryRequired),
        failpoint("ensure_indices.post_phase_b_pre_manifest_commit", "raise"),
    ):
        graph.ensure_indices()

    graph.mutate(mutation('insert Person { name: "cid" }'))
    assert "id__btree" in indexes(graph, "node:Person")
    assert_settled(graph)


# What is not covered, and why


def reasons(graph: Graph, table_key: str) -> dict[tuple[str, str], tuple[str, str | None, int]]:
    """Return coverage, reason and uncovered rows of every declared index of a table."""
    (found,) = [table for table in graph.index_status() if table.table_key == table_key]
    return {
        (index.property, index.kind): (index.coverage, index.reason, index.rows_uncovered)
        for index in found.indexes
    }


@pytest.mark.case("engine", 492)
def test_every_index_that_does_not_cover_all_rows_says_why(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "docs", INDEXED)
    assert {state[:2] for state in reasons(graph, "node:Doc").values()} == {("pending", "no row to index")}

    graph.load(ndjson([node("Doc", code="one"), node("Doc", code="two")]), "append", index=False)
    found = reasons(graph, "node:Doc")
    assert found.pop(("place", "vector")) == ("pending", "no vector to train on", 0)
    assert set(found.values()) == {("missing", "not built yet", 2)}

    graph.ensure_indices()
    graph.mutate(mutation('update Doc set { kind: "a" } where code = "one"'))
    found = reasons(graph, "node:Doc")
    del found["place", "vector"]
    uncovered = "1 of 2 rows not covered: written since it was built"
    assert set(found.values()) == {("degraded", uncovered, 1)}

    graph.mutate(mutation('update Doc set { kind: "b" } where code = "two"'))
    assert reasons(graph, "node:Doc")["id", "btree"][:2] == (
        "degraded",
        "2 of 2 rows not covered: written since it was built",
    )

    graph.optimize()
    found = reasons(graph, "node:Doc")
    assert found.pop(("place", "vector"))[0] == "pending"
    assert set(found.values()) == {("indexed", None, 0)}
