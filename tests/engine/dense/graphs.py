"""Graphs for the tests of dense structures, and what these structures say about them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.catalog.bound import Direction
from omnigraph.exec.dense import CacheSettings, Derived, OpenTable
from omnigraph.graph.graph import Graph
from omnigraph.history.state import Snapshot
from tests.support.seam import internals

SCHEMA = """\
node Person { name: String @key  age: I32?  city: String?  bio: String? }
node Place  { name: String @key }
edge Knows: Person -> Person { tag: String?  since: I32? }
edge Lives: Person -> Place
"""
NODES = ("Person", "Place")
EDGES = {"Knows": ("Person", "Person"), "Lives": ("Person", "Place")}
COLUMNS = {
    "node:Person": ("name", "age", "city"),
    "node:Place": ("name",),
    "edge:Knows": ("since", "src"),
    "edge:Lives": ("dst",),
}
DIRECTIONS = (Direction.OUT, Direction.IN)


def derived_of(graph: Graph, directory: Path | None = None, **limits: int) -> Derived:
    """Return new derived state of a graph, with nothing in it."""
    settings = CacheSettings(directory=directory, **{"disk_rows_min": 0, **limits})
    return Derived(internals(graph).parts.store, "01GRAPH", settings)


def pinned(graph: Graph, table_key: str, snapshot: Snapshot | None = None) -> OpenTable:
    """Return a table as a snapshot pins it."""
    entry = (snapshot or graph.snapshot()).entry(table_key)
    return OpenTable(entry, internals(graph).parts.open(entry))


@dataclass(frozen=True, slots=True)
class Reader:
    """One snapshot of a graph through derived state."""

    graph: Graph
    derived: Derived
    snapshot: Snapshot

    def table(self, table_key: str) -> OpenTable:
        return pinned(self.graph, table_key, self.snapshot)

    def ends(self, edge: str) -> tuple[OpenTable, OpenTable, OpenTable]:
        src, dst = EDGES[edge]
        return self.table(f"edge:{edge}"), self.table(f"node:{src}"), self.table(f"node:{dst}")


def reader(graph: Graph, derived: Derived, snapshot: Snapshot | None = None) -> Reader:
    return Reader(graph, derived, snapshot or graph.snapshot())


def stored(read: Reader, table_key: str) -> list[dict[str, Any]]:
    """Return the rows of a table as they lie on the disk, by id."""
    store = internals(read.graph).parts.store
    return store.scan(read.table(table_key).handle, with_row_id=True).sort_by("id").to_pylist()


def check(read: Reader) -> None:
    """Hold everything derived against the rows themselves."""
    for type_name in NODES:
        check_table(read, f"node:{type_name}")
    for edge in EDGES:
        check_table(read, f"edge:{edge}")
        for direction in DIRECTIONS:
            check_adjacency(read, edge, direction)


def check_table(read: Reader, table_key: str) -> None:
    table, rows = read.table(table_key), stored(read, table_key)
    slots, index = read.derived.slots(table), read.derived.ids(table)
    ids = [row["id"] for row in rows]
    found = index.slots(ids)
    row_ids = np.array([row["_rowid"] for row in rows], np.int64)

    assert slots.live_count == len(rows)
    assert sorted(found.tolist()) == slots.all().tolist()
    assert slots.row_ids(found).tolist() == row_ids.tolist()
    assert slots.of_row_ids(row_ids).tolist() == found.tolist()
    assert slots.of_row_ids(np.array([-1, slots.next_row_id, 2**40])).tolist() == [-1, -1, -1]
    live = slots.live()
    assert live is None if slots.live_count == slots.size else live is not None
    assert live is None or np.flatnonzero(live).tolist() == slots.all().tolist()
    assert index.take(found).to_pylist() == ids
    assert [index.slot(id) for id in ids[:20]] == found[:20].tolist()
    assert index.slot("nobody") == -1
    assert index.slots(["nobody", *ids[:1]]).tolist() == [-1, *found[:1].tolist()]
    assert [read.derived.find(table, id) for id in [*ids[:2], "nobody"]] == [*found[:2].tolist(), -1]
    repeated = np.concatenate([found[::-1], found[:3]])
    for column in COLUMNS[table_key]:
        values = {row["_rowid"]: row[column] for row in rows}
        expected = [values[row_id] for row_id in slots.row_ids(repeated).tolist()]
        assert read.derived.column(table, column, repeated).to_pylist() == expected
        whole = read.derived.cached_column(table, column)
        assert whole is not None
        assert len(whole) == slots.size
        assert whole.take(pa.array(repeated)).to_pylist() == expected
        assert whole.null_count == slots.size - sum(row[column] is not None for row in rows)


def check_adjacency(read: Reader, edge: str, direction: Direction) -> None:
    """Compare every row of an adjacency with the edges themselves."""
    edges, src, dst = read.ends(edge)
    adjacency = read.derived.adjacency(edges, src, dst, direction)
    near, far = (src, dst) if direction is Direction.OUT else (dst, src)
    near_ids, far_ids = read.derived.ids(near), read.derived.ids(far)
    rows = stored(read, f"edge:{edge}")
    start, end = ("src", "dst") if direction is Direction.OUT else ("dst", "src")
    by_node: dict[str, list[tuple[str, str]]] = {}
    starts = near_ids.slots([row[start] for row in rows])
    ends = far_ids.slots([row[end] for row in rows])
    for row, has_ends in zip(rows, (starts >= 0) & (ends >= 0), strict=True):
        if has_ends:
            by_node.setdefault(row[start], []).append((row[end], row["id"]))
    frontier = read.derived.slots(near).all()
    frontier = np.concatenate([frontier, frontier[:5]])
    names = [str(name) for name in near_ids.take(frontier).to_pylist()]

    index, neighbours, edge_slots = adjacency.expand(frontier)
    got: list[list[tuple[str, str]]] = [[] for _ in names]
    edge_ids = read.derived.ids(edges).take(edge_slots).to_pylist()
    for place, neighbour, edge_id in zip(index, far_ids.take(neighbours).to_pylist(), edge_ids, strict=True):
        got[place].append((neighbour, edge_id))

    assert (np.diff(index) >= 0).all()
    assert [sorted(found) for found in got] == [sorted(by_node.get(name, [])) for name in names]
    assert adjacency.edge_count == sum(len(found) for found in by_node.values())
    assert adjacency.degrees(frontier).tolist() == [len(found) for found in got]
    assert sorted(adjacency.neighbours(frontier).tolist()) == sorted(neighbours.tolist())
    pairs = {(name, neighbour) for name, found in by_node.items() for neighbour, _ in found}
    assert adjacency.has_parallel or len(pairs) == adjacency.edge_count
    left, right = frontier[:30], read.derived.slots(far).all()[:30]
    lefts, rights = np.repeat(left, len(right)), np.tile(right, len(left))
    asked = zip(near_ids.take(lefts).to_pylist(), far_ids.take(rights).to_pylist(), strict=True)
    assert adjacency.contains(lefts, rights).tolist() == [pair in pairs for pair in asked]
    for place, slot in enumerate(frontier[:5]):
        _, nearby, _ = adjacency.expand(np.array([slot], np.int32))
        assert sorted(nearby.tolist()) == sorted(neighbours[index == place].tolist())
