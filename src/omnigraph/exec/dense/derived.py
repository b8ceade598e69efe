"""Everything that queries derive from pinned tables, kept for as long as it pays off.

V1  All of it is a function of pins: it may be thrown away at any time and changes no answer.
V2  After a small commit, what is here is advanced by the rows that changed, in about a millisecond.
V3  Locks are taken in one order: adjacency, ids, column, slots.
V4  While a query reads with the slots of a version, no other slots are given out for it: the numbers of two
    generations mean different rows.
"""

import threading
from collections.abc import Iterable
from typing import assert_never, cast, final
from weakref import WeakValueDictionary

import numpy as np

from omnigraph.catalog.bound import Direction
from omnigraph.core.arrays import SlotArray, Values
from omnigraph.core.errors import StorageError
from omnigraph.exec.dense import files
from omnigraph.exec.dense.adjacency import Adjacency
from omnigraph.exec.dense.adjacency_build import (
    Resolve,
    advance_adjacency,
    build_adjacency,
    ends_of,
    turned_round,
)
from omnigraph.exec.dense.columns import DenseColumn, VectorBlocks, Worth, advance_column, build_column
from omnigraph.exec.dense.disk import CacheSettings, DiskCache
from omnigraph.exec.dense.ids import ID, IdIndex, advance_ids, build_ids
from omnigraph.exec.dense.resident import (
    Counter,
    DeltaMemo,
    DerivedCounts,
    Family,
    ResidentKey,
    Residents,
    derive,
)
from omnigraph.exec.dense.slots import (
    OpenTable,
    Slots,
    TableLineage,
    TablePin,
    advance_slots,
    build_slots,
    plain,
)
from omnigraph.storage.tables.rows import field_id, row_ids_of, take_rows
from omnigraph.storage.tables.table import TableStore
from omnigraph.storage.versions.difference import Layout, VersionDelta

SMALL_TABLE = 20_000  # rows up to which building anything takes milliseconds
LOOKUPS_PER_ROWS = 1_250  # a lookup by B-tree costs as much as indexing this many ids
LOOKUPS_MAX = 300
FEW_IDS = 64  # up to this many ids of edge ends are looked up one by one while they have no index


@final
class Derived:
    """Dense ids, adjacency and columns of one open graph; safe to share between threads."""

    def __init__(self, store: TableStore, graph_id: str, settings: CacheSettings) -> None:
        """Take the store that reads tables, the graph's genesis id, and the limits."""
        self._store = store
        self._settings = settings
        self._worth = Worth(settings.memory_bytes)
        self._disk = DiskCache(settings.directory, graph_id, settings.disk_bytes)
        self._residents = Residents(bytes_max=settings.memory_bytes, views_max=settings.views_max)
        self._counter = Counter()
        self._lock = threading.Lock()
        self._deltas = DeltaMemo()
        self._newest: dict[TableLineage, int] = {}
        self._held: WeakValueDictionary[tuple[TableLineage, TablePin], Slots] = WeakValueDictionary()
        self._lookups: dict[tuple[TableLineage, TablePin], int] = {}
        self.vectors = VectorBlocks(self._residents, self._counter, self._worth, self.slots, self._delta)

    @property
    def counts(self) -> DerivedCounts:
        """What was built, advanced and loaded so far."""
        return self._counter.counts()

    def close(self) -> None:
        """Drop everything, and wait for files that are being written."""
        self._residents.clear()
        self._deltas.clear()
        self._disk.close()

    # Slots

    def slots(self, table: OpenTable) -> Slots:
        """Return the dictionary of a table's rows."""
        lineage = table.lineage
        name = files.file_name("slots", lineage)

        def advance(view: Slots) -> Slots | None:
            delta = self._delta(table, view.pin, view.layout, view.generation)
            advanced = advance_slots(view, table, delta, self._store)
            self._counter.add("slot_advances" if advanced is not None else "slot_refusals")
            return advanced

        def load() -> Slots | None:
            stored = self._disk.load(name)
            found = None if stored is None else files.slots_from(stored)
            if found is None or not self._is_of(table, found.pin):
                return None
            self._counter.add("slot_loads")
            return found

        def build() -> Slots:
            self._counter.add("slot_rebuilds")
            built = build_slots(table)
            if self._is_for_disk(table):
                self._disk.save(name, *files.slots_file(built))
            return built

        self._see(table)
        family = cast("Family[Slots]", self._residents.family(ResidentKey("slots", ((lineage, None),))))
        view = family.get((table.pin,))
        if view is not None:
            return view
        held = self._held.get((lineage, table.pin))
        if held is not None:  # V4
            family.put(held)
            return held
        view = derive(family, (table.pin,), advance=advance, load=load, build=build)
        self._held[lineage, table.pin] = view
        if view.pin == view.generation:
            self._residents.forget(lineage, {kept.generation for kept in family.views()})
        return view

    # Ids

    def ids(self, table: OpenTable) -> IdIndex:
        """Return the index of a table's ids."""
        slots = self.slots(table)
        name = files.file_name("ids", table.lineage)

        def advance(index: IdIndex) -> IdIndex:
            column = index.column
            delta = self._delta(table, column.pin, column.layout, slots.generation)
            advanced = advance_ids(index, slots, delta)
            self._counter.add("id_advances")
            if advanced.base is not index.base:
                save(advanced)
            return advanced

        def load() -> IdIndex | None:
            stored = self._disk.load(name)
            found = None if stored is None else files.ids_from(stored, slots)
            if found is None or not self._is_of(table, found.pin):
                return None
            self._counter.add("id_loads")
            return found

        def build() -> IdIndex:
            self._counter.add("id_builds")
            built = build_ids(table, slots)
            save(built)
            return built

        def save(index: IdIndex) -> None:
            if self._is_for_disk(table) and index.is_folded:
                self._disk.save(name, *files.ids_file(index))

        key = self._ids_key(table, slots)
        return self._residents.view(key, slots.pins, advance=advance, load=load, build=build)

    def find(self, table: OpenTable, id: str) -> int:
        """Return the slot of one id, or -1: by index if there is one, else by B-tree until an index pays."""
        slots = self.slots(table)
        if self._residents.known(self._ids_key(table, slots)) is not None:
            return self.ids(table).slot(id)
        key = (table.lineage, slots.generation)
        with self._lock:
            lookups = self._lookups[key] = self._lookups.get(key, 0) + 1
        if lookups > min(LOOKUPS_MAX, 1 + slots.live_count // LOOKUPS_PER_ROWS):
            return self.ids(table).slot(id)
        return int(self._look_up(table, slots, [id])[0])

    def _look_up(self, table: OpenTable, slots: Slots, ids: list[str]) -> SlotArray:
        """Return the slots of a few ids through the table's own index."""
        found = self._store.rows_by_id(table.handle, ids, [ID], with_row_id=True)
        by_id = dict(zip(found[ID].to_pylist(), slots.of_row_ids(row_ids_of(found)).tolist(), strict=True))
        return np.array([by_id.get(id, -1) for id in ids], np.int32)

    def _ids_key(self, table: OpenTable, slots: Slots) -> ResidentKey:
        return ResidentKey("ids", ((table.lineage, slots.generation),))

    # Adjacency

    def adjacency(self, edges: OpenTable, src: OpenTable, dst: OpenTable, direction: Direction) -> Adjacency:
        """Return the adjacency: from `src` to `dst` slots going out, from `dst` to `src` going in."""
        near, far = (src, dst) if direction is Direction.OUT else (dst, src)
        views = (self.slots(edges), self.slots(near), self.slots(far))
        edge_slots, sources, targets = views
        name = files.file_name(f"csr-{direction}", edges.lineage, near.lineage, far.lineage)

        def advance(adjacency: Adjacency) -> Adjacency | None:
            before = adjacency.edges
            delta = self._delta(edges, before.pin, before.layout, edge_slots.generation)
            advanced = advance_adjacency(
                adjacency,
                edges=edge_slots,
                sources=sources,
                targets=targets,
                delta=delta,
                direction=direction,
                resolve_source=self._resolver(near, sources),
                resolve_target=self._resolver(far, targets),
            )
            if advanced is not None:
                self._counter.add("csr_overlays")
            return advanced

        def load() -> Adjacency | None:
            stored = self._disk.load(name)
            if stored is None:
                return None
            found = files.adjacency_from(stored, edges=edge_slots, sources=sources, targets=targets)
            tables = (edges, near, far)
            if found is None or not all(map(self._is_of, tables, found.pins)):
                return None
            self._counter.add("csr_loads")
            return found

        def build() -> Adjacency:
            self._counter.add("csr_builds")
            kept = opposite()
            if kept is not None:
                built = turned_round(kept)
            else:
                built = build_adjacency(
                    edges,
                    edges=edge_slots,
                    sources=sources,
                    targets=targets,
                    direction=direction,
                    resolve_source=self._resolver(near, sources),
                    resolve_target=self._resolver(far, targets),
                )
            if self._is_for_disk(edges):
                self._disk.save(name, *files.adjacency_file(built))
            return built

        def opposite() -> Adjacency | None:
            """Return the other direction at the same pins, if it is there and only a base."""
            key = self._adjacency_key((edges, far, near), (views[0], views[2], views[1]), direction.reversed)
            family = self._residents.known(key)
            kept = None if family is None else family.get((views[0].pin, views[2].pin, views[1].pin))
            return kept if isinstance(kept, Adjacency) and not kept.overlay.size else None

        key = self._adjacency_key((edges, near, far), views, direction)
        pins = tuple(view.pin for view in views)
        return self._residents.view(key, pins, advance=advance, load=load, build=build)

    def adjacency_is_cheap(
        self, edges: OpenTable, src: OpenTable, dst: OpenTable, direction: Direction
    ) -> bool:
        """Say whether the adjacency is there, or can be advanced or loaded: no full build is needed."""
        if edges.handle.row_count <= SMALL_TABLE:
            return True
        near, far = (src, dst) if direction is Direction.OUT else (dst, src)
        views = (self.slots(edges), self.slots(near), self.slots(far))
        known = self._residents.known(self._adjacency_key((edges, near, far), views, direction))
        if known is not None and known.before(tuple(view.pin for view in views)) is not None:
            return True
        about = self._disk.about(
            files.file_name(f"csr-{direction}", edges.lineage, near.lineage, far.lineage)
        )
        parts = ("edges", "sources", "targets")
        return about is not None and all(
            files.is_of_generation(about[part], view) and about[part]["version"] <= view.pin.version
            for part, view in zip(parts, views, strict=True)
        )

    def _adjacency_key(
        self,
        tables: tuple[OpenTable, OpenTable, OpenTable],
        views: tuple[Slots, Slots, Slots],
        direction: Direction,
    ) -> ResidentKey:
        pairs = tuple((table.lineage, view.generation) for table, view in zip(tables, views, strict=True))
        return ResidentKey("adjacency", pairs, direction)

    def _resolver(self, table: OpenTable, slots: Slots) -> Resolve:
        """Return how ids of edge ends become slots: by index, or a few by lookup while there is no index."""

        def resolve(ids: Values) -> SlotArray:
            has_index = self._residents.known(self._ids_key(table, slots)) is not None
            if len(ids) <= FEW_IDS and not has_index and slots.live_count > SMALL_TABLE:
                return self._look_up(table, slots, cast("list[str]", ids.to_pylist()))
            return self.ids(table).slots(ids)

        return resolve

    # Columns

    def column(self, table: OpenTable, name: str, slots: SlotArray) -> Values:
        """Return the values of a column for slots, in their order; kept where that pays off, else fetched."""
        view = self.slots(table)
        has_ids = self._residents.known(self._ids_key(table, view)) is not None
        if name == ID and has_ids:
            return self.ids(table).take(slots)
        key = self._column_key(table, view, name)
        if self._residents.known(key) is None:
            is_due = self._worth.is_due(key, fetched=len(slots), rows=view.size, is_in_use=has_ids)
            if not is_due or not self._worth.is_short(key, table, view, name):
                return plain(take_rows(table.handle, view.row_ids(slots), [name])[name])
        return self._column(table, view, name).take(slots)

    def resident(self, table: OpenTable, name: str) -> DenseColumn | IdIndex | None:
        """Return what holds a column in memory, or `None` while values are fetched from the table."""
        view = self.slots(table)
        if name == ID and self._residents.known(self._ids_key(table, view)) is not None:
            return self.ids(table)
        if self._residents.known(self._column_key(table, view, name)) is None:
            return None
        return self._column(table, view, name)

    def cached_column(self, table: OpenTable, name: str) -> "Values | None":
        """Return the value of every slot, null where it has no row; `None` for columns that are not kept.

        Strings that repeat come dictionary-encoded.
        """
        view = self.slots(table)
        if not self._worth.is_short(self._column_key(table, view, name), table, view, name):
            return None
        return self._column(table, view, name).whole

    def _column(self, table: OpenTable, view: Slots, name: str) -> DenseColumn:
        def advance(column: DenseColumn) -> DenseColumn:
            delta = self._delta(table, column.pin, column.layout, view.generation)
            self._counter.add("column_advances")
            return advance_column(column, view, delta, name)

        def build() -> DenseColumn:
            self._counter.add("column_builds")
            return build_column(table, view, name)

        key = self._column_key(table, view, name)
        return self._residents.view(key, view.pins, advance=advance, build=build)

    def _column_key(self, table: OpenTable, view: Slots, name: str) -> ResidentKey:
        return ResidentKey("column", ((table.lineage, view.generation),), field_id(table.handle, name))

    # What they share

    def _delta(self, table: OpenTable, since: TablePin, before: Layout, generation: TablePin) -> VersionDelta:
        """Return what changed since a pin; one object for all structures that are advanced by it."""

        def make() -> VersionDelta:
            along = _columns_wanted(self._residents.all_keys(), table, generation)
            return VersionDelta(since=since.version, before=before, handle=table.handle, along=along)

        return self._deltas.get((table.lineage, since, table.pin), make)

    def _see(self, table: OpenTable) -> None:
        with self._lock:
            known = self._newest.get(table.lineage, 0)
            self._newest[table.lineage] = max(known, table.pin.version)

    def _is_for_disk(self, table: OpenTable) -> bool:
        """Say whether a build is worth a file: not of a small table, nor of a version of the past."""
        is_newest = self._newest.get(table.lineage) == table.pin.version
        return is_newest and table.handle.row_count >= self._settings.disk_rows_min

    def _is_of(self, table: OpenTable, pin: TablePin) -> bool:
        """Say whether a pin is a version of this very table, not of another with equal numbers."""
        if pin.version >= table.pin.version:
            return pin == table.pin
        try:
            handle = self._store.open_at(table.handle.address, pin.version)
            return handle.transaction_uuid == pin.uuid
        except StorageError:
            return False


def _columns_wanted(keys: Iterable[ResidentKey], table: OpenTable, generation: TablePin) -> list[str]:
    """Return the columns of changed rows that structures of a generation want: one read serves them all."""
    wanted: set[str] = set()
    fields: set[str | int] = set()
    for key in keys:
        if not key.is_about(table.lineage, generation):
            continue
        match key.kind:
            case "ids":
                wanted.add(ID)
            case "column" | "vectors":
                fields.add(key.part)
            case "adjacency":
                wanted.update(ends_of(Direction.OUT))
            case "slots":
                pass
            case _:
                assert_never(key.kind)
    names = table.handle.schema.names
    if fields:
        wanted.update(name for name in names if field_id(table.handle, name) in fields)
    return [name for name in names if name in wanted]
