"""One snapshot as queries read it: its tables at their pins, with what is derived from them.

V1  Every read of a query goes through one view, so all of them see the same commit.
V2  A view is a function of the snapshot; what it keeps is shared by threads and never changes an answer.
"""

import math
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog.bound import BoundProjection, Direction
from omnigraph.catalog.index_kind import IndexKind, index_specs
from omnigraph.catalog.model import Catalog, EdgeType
from omnigraph.core.arrays import SlotArray, Values
from omnigraph.exec.dense import Adjacency, Derived, IdIndex, OpenTable, Slots
from omnigraph.exec.dense.columns import DenseColumn
from omnigraph.exec.dense.slots import plain
from omnigraph.exec.dense.vectors import VectorBlock
from omnigraph.exec.operators.operand import result_schema
from omnigraph.exec.settings import QuerySettings
from omnigraph.history.fold import TableEntry
from omnigraph.history.state import Snapshot
from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.storage.tables.rows import take_rows
from omnigraph.storage.tables.table import TableStore

BUILD_MS_PER_EDGE = 0.000_2
BUILD_MS_PER_EDGE_LARGE = 0.000_4  # once the ids of the nodes no longer fit the processor's caches
PATIENCE = 0.25  # the share: sessions in between are rare, people look once or stay
LARGE_NODE_TABLE = 500_000
CostKey = tuple[object, ...]


SCHEMAS_MAX = 256
REMEMBERED_S = 1.0  # how long a view keeps what it was given without asking again


def predicted_ms(frontier: int) -> float:
    """Return what one hop through an index will take."""
    return 1 + 0.35 * min(frontier, 100) + 0.07 * max(0, frontier - 100)


def build_ms(edges: int, nodes: int) -> float:
    """Return what building the arrays will take."""
    return edges * (BUILD_MS_PER_EDGE_LARGE if nodes > LARGE_NODE_TABLE else BUILD_MS_PER_EDGE)


class HopCosts:
    """Milliseconds spent per edge table; safe to share between threads."""

    def __init__(self) -> None:
        """Start with nothing spent."""
        self._lock = threading.Lock()
        self._spent: dict[CostKey, float] = {}

    def is_worth_building(self, lineage: CostKey, next_ms: float, price_ms: float) -> bool:
        """Return whether the next hop would bring what was spent above the share of the price."""
        with self._lock:
            return self._spent.get(lineage, 0.0) + next_ms > price_ms * PATIENCE

    def spend(self, lineage: CostKey, ms: float) -> None:
        """Add what a hop took."""
        with self._lock:
            self._spent[lineage] = self._spent.get(lineage, 0.0) + ms


class GraphView:
    """The tables of a snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        catalog: Catalog,
        *,
        store: TableStore,
        pinned: Callable[[TableEntry], PinnedTable],
        derived: Derived,
        costs: HopCosts,
        settings: QuerySettings,
    ) -> None:
        """Take the snapshot, its types, and where to find and remember things."""
        self.snapshot = snapshot
        self.catalog = catalog
        self.store = store
        self.derived = derived
        self.costs = costs
        self.settings = settings
        self._pinned = pinned
        self._tables: dict[str, OpenTable] = {}
        self._slots: dict[str, Slots] = {}
        self._adjacency: dict[tuple[str, Direction], weakref.ref[Adjacency]] = {}
        self._columns: dict[tuple[str, str], weakref.ref[DenseColumn | IdIndex]] = {}
        self._vectors: dict[tuple[str, str], weakref.ref[VectorBlock]] = {}
        self._magnitudes: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._schemas: dict[int, tuple[tuple[BoundProjection, ...], pa.Schema]] = {}
        self._fresh_until = 0.0
        self.was_asked = False

    def table(self, table_key: str) -> OpenTable:
        """Return a table at its pin.

        Raises:
            HistoricalVersionReclaimed: the version of an old snapshot was cleaned up.
        """
        table = self._tables.get(table_key)
        if table is None:
            entry = self.snapshot.entry(table_key)
            table = self._tables[table_key] = OpenTable(entry, self._pinned(entry).open(self.store))
        return table

    def slots(self, table_key: str) -> Slots:
        """Return the dictionary of a table's rows."""
        slots = self._slots.get(table_key)
        if slots is None:
            slots = self._slots[table_key] = self.derived.slots(self.table(table_key))
        return slots

    def column(self, table_key: str, name: str, slots: SlotArray) -> Values:
        """Return the values of a column for slots, in their order, never as a dictionary."""
        kept = self._resident(table_key, name)
        return (
            kept.take(slots) if kept is not None else self.derived.column(self.table(table_key), name, slots)
        )

    def columns(self, table_key: str, names: Sequence[str], slots: SlotArray) -> list[Values]:
        """Return several columns for slots; those that are not in memory are fetched together."""
        kept = {name: self._resident(table_key, name) for name in names}
        fetched = [name for name, column in kept.items() if column is None]
        rows: dict[str, Values] = {}
        if fetched:
            row_ids = self.slots(table_key).row_ids(slots)
            table = take_rows(self.table(table_key).handle, row_ids, fetched)
            rows = {name: plain(table[name]) for name in fetched}
        return [column.take(slots) if column is not None else rows[name] for name, column in kept.items()]

    def find(self, table_key: str, id: str) -> int:
        """Return the slot of one id, or -1."""
        kept = self._resident(table_key, "id")
        return kept.slot(id) if isinstance(kept, IdIndex) else self.derived.find(self.table(table_key), id)

    def _resident(self, table_key: str, name: str) -> "DenseColumn | IdIndex | None":
        known = self._columns.get((table_key, name))
        kept = None if known is None else known()
        if kept is None:
            kept = self.derived.resident(self.table(table_key), name)
            if kept is not None:
                self._columns[table_key, name] = weakref.ref(kept)
        return kept

    def vectors(self, table_key: str, name: str, rows: int, *, few: int) -> VectorBlock | None:
        """Return where to compare the vectors of some rows in memory, or `None` where the table is asked."""
        known = self._vectors.get((table_key, name))
        kept = None if known is None else known()
        if kept is None:
            kept = self.derived.vectors.for_search(self.table(table_key), name, rows, few=few)
            if kept is not None:
                self._vectors[table_key, name] = weakref.ref(kept)
        return kept

    def row_ids(self, table_key: str, slots: SlotArray) -> npt.NDArray[np.int64]:
        """Return the stable row ids of slots."""
        return self.slots(table_key).row_ids(slots)

    def edge_type(self, name: str) -> EdgeType:
        """Return an edge type."""
        return self.catalog.edges[name]

    def ends(self, edge: EdgeType) -> tuple[OpenTable, OpenTable, OpenTable]:
        """Return the tables of an edge type, of its sources and of its targets."""
        return (
            self.table(edge.table_key),
            self.table(f"node:{edge.source}"),
            self.table(f"node:{edge.target}"),
        )

    def adjacency(self, edge: EdgeType, direction: Direction) -> Adjacency:
        """Return the arrays of an edge type in one direction."""
        known = self.known_adjacency(edge, direction)
        if known is None:
            known = self.derived.adjacency(*self.ends(edge), direction)
            self._adjacency[edge.name, direction] = weakref.ref(known)
        return known

    def known_adjacency(self, edge: EdgeType, direction: Direction) -> Adjacency | None:
        """Return the arrays if a query of this snapshot had them a moment ago and they are still there."""
        known = self._adjacency.get((edge.name, direction))
        return None if known is None else known()

    def schema_of(self, projections: tuple[BoundProjection, ...]) -> pa.Schema:
        """Return the schema of a result; it is worked out once for a plan."""
        known = self._schemas.get(id(projections))
        if known is None or known[0] is not projections:
            if len(self._schemas) > SCHEMAS_MAX:
                self._schemas.clear()
            known = self._schemas[id(projections)] = (projections, result_schema(projections, self.catalog))
        return known[1]

    def begin(self) -> None:
        """Say that a query begins.

        Now and then, derived structures are asked for again, so that those in use do not count as forgotten.
        """
        self.was_asked = True
        now = time.monotonic()
        if now > self._fresh_until:
            self._adjacency.clear()
            self._columns.clear()
            self._vectors.clear()
            self._fresh_until = now + REMEMBERED_S

    def magnitudes(self, table_keys: tuple[str, ...]) -> tuple[int, ...]:
        """Return the sizes of tables, rounded so that a small write changes none.

        Statistics follow from them and from the schema: plans made for equal magnitudes are equally good.
        """
        known = self._magnitudes.get(table_keys)
        if known is None:
            entries = self.snapshot.entries
            known = tuple(round(math.log2(entries[key].row_count + 1) * 8) for key in table_keys)
            self._magnitudes[table_keys] = known
        return known

    def follow(self, other: "GraphView") -> None:
        """Derive now what queries of the previous snapshot were using, so that the next one finds it done."""
        for table_key in list(other._slots):
            self.slots(table_key)
        for edge_name, direction in list(other._adjacency):
            self.adjacency(self.edge_type(edge_name), direction)
        for table_key, name in list(other._columns):
            self._resident(table_key, name)
        for table_key, name in list(other._vectors):
            block = self.derived.vectors.resident(self.table(table_key), name)
            if block is not None:
                self._vectors[table_key, name] = weakref.ref(block)
        self._fresh_until = time.monotonic() + REMEMBERED_S

    # What the planner asks

    def rows(self, table_key: str) -> int:
        """Return how many rows a table has."""
        return self.snapshot.entry(table_key).row_count

    def distinct(self, table_key: str, column: str) -> float | None:
        """Return how many values a column has, where the schema says so."""
        type_ = self.catalog.type_of(table_key)
        if column == "id" or (column,) in type_.unique or (column,) == getattr(type_, "key", None):
            return float(self.rows(table_key))
        item = type_.properties.get(column)
        if item is not None and item.type.enum_values is not None:
            return float(len(item.type.enum_values))
        return None

    def is_indexed(self, table_key: str, column: str) -> bool:
        """Return whether a column has, or should have, an index that finds values."""
        return (table_key, column) in self._indexed

    @cached_property
    def _indexed(self) -> frozenset[tuple[str, str]]:
        return frozenset(
            (type_.table_key, spec.column)
            for type_ in self.catalog.types
            for spec in index_specs(type_)
            if spec.kind is IndexKind.BTREE
        )
