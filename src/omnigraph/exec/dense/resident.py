"""What is in memory: families of views, each a function of pins, within a number of bytes.

M1  A view is found under the very pins it was made for: version and transaction, never a number alone.
M2  A family is made or advanced by one thread at a time; others wait for it and find it done.
M3  The least recently used goes first; a view in use stays alive while something holds it.

`Counter` counts how often each thing was derived, because tests assert counts and never times.
"""

import threading
from collections import Counter as Tally
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar, cast, final

from omnigraph.core.recent import Recent
from omnigraph.exec.dense.slots import TableLineage, TablePin
from omnigraph.storage.versions.difference import VersionDelta

DELTAS_MAX, DELTAS_BYTES_MAX = 32, 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DerivedCounts:
    """Builds read a table, advances its changes, loads a file."""

    slot_rebuilds: int = 0
    slot_advances: int = 0
    slot_refusals: int = 0  # changes that were in doubt, each followed by a rebuild
    slot_loads: int = 0
    id_builds: int = 0
    id_advances: int = 0
    id_loads: int = 0
    csr_builds: int = 0
    csr_overlays: int = 0
    csr_loads: int = 0
    column_builds: int = 0
    column_advances: int = 0
    vector_builds: int = 0
    vector_advances: int = 0


@final
class Counter:
    """The counts of one graph, from any thread."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._lock = threading.Lock()
        self._tally: Tally[str] = Tally()

    def add(self, name: str) -> None:
        """Count one."""
        with self._lock:
            self._tally[name] += 1

    def counts(self) -> DerivedCounts:
        """Return the counts so far."""
        with self._lock:
            return DerivedCounts(**{field.name: self._tally[field.name] for field in fields(DerivedCounts)})


Pins = tuple[TablePin, ...]


@dataclass(frozen=True, slots=True)
class ResidentKey:
    """What a family is of: its kind, each table with the generation of its slots, and the part of it."""

    kind: Literal["slots", "ids", "column", "vectors", "adjacency"]
    tables: tuple[tuple[TableLineage, TablePin | None], ...]
    part: str | int = ""

    def is_about(self, lineage: TableLineage, generation: TablePin) -> bool:
        """Say whether it holds rows of a table under a generation."""
        return self.tables[0] == (lineage, generation)


class View(Protocol):
    """Something derived; `parts` are its pieces by identity, because views share them."""

    @property
    def pins(self) -> Pins:
        """The versions that it is a function of."""
        ...

    def parts(self) -> dict[int, int]:
        """Return the bytes of each piece, by the identity of the piece."""
        ...


V = TypeVar("V", bound=View)


class Family(Generic[V]):
    """The views of one structure at several pins."""

    def __init__(self, views_max: int) -> None:
        """Take how many views are kept."""
        self.lock = threading.Lock()  # held while a view is made
        self.nbytes = 0
        self._views: Recent[Pins, V] = Recent(views_max)

    def get(self, pins: Pins) -> V | None:
        """Return the view at these very pins; it counts as used."""
        return self._views.get(pins)

    def before(self, pins: Pins) -> V | None:
        """Return the newest view from which one can go forward to these pins.

        A version that is known under another transaction means that the table was replaced: there is no view.
        """
        best: V | None = None
        for view in self.views():
            known = view.pins
            if any(k.version == p.version and k.uuid != p.uuid for k, p in zip(known, pins, strict=True)):
                return None
            if all(k.version <= p.version for k, p in zip(known, pins, strict=True)) and (
                best is None or _versions(known) > _versions(best.pins)
            ):
                best = view
        return best

    def put(self, view: V) -> None:
        """Keep a view; the least recently used one goes."""
        self._views.put(view.pins, view)
        pieces: dict[int, int] = {}
        for kept in self.views():
            pieces.update(kept.parts())
        self.nbytes = sum(pieces.values())

    def views(self) -> list[V]:
        """Return the views that are kept."""
        return self._views.values()


class Residents:
    """All families of one open graph."""

    def __init__(self, *, bytes_max: int, views_max: int) -> None:
        """Take the limits."""
        self._bytes_max, self._views_max = bytes_max, views_max
        self._lock = threading.Lock()
        self._families: OrderedDict[ResidentKey, Family[View]] = OrderedDict()

    def family(self, key: ResidentKey) -> Family[View]:
        """Return a family, new if need be; it counts as used."""
        with self._lock:
            family = self._families.get(key)
            if family is None:
                family = self._families[key] = Family(self._views_max)
            self._families.move_to_end(key)
            return family

    def view(
        self,
        key: ResidentKey,
        pins: Pins,
        *,
        advance: Callable[[V], V | None],
        build: Callable[[], V],
        load: Callable[[], V | None] = lambda: None,
    ) -> V:
        """Return the view of a family at some pins, kept or derived; what is too much then goes (M3)."""
        family = cast("Family[V]", self.family(key))
        found = family.get(pins)
        if found is None:
            found = derive(family, pins, advance=advance, load=load, build=build)
            self.trim()
        return found

    def known(self, key: ResidentKey) -> Family[View] | None:
        """Return a family if it is there."""
        with self._lock:
            return self._families.get(key)

    def all_keys(self) -> list[ResidentKey]:
        """Return the keys of all families."""
        with self._lock:
            return list(self._families)

    def forget(self, lineage: TableLineage, alive: set[TablePin]) -> None:
        """Drop what rests on generations of a lineage that no slots have any more."""
        with self._lock:
            for key in list(self._families):
                for known, generation in key.tables:
                    if known == lineage and generation is not None and generation not in alive:
                        self._families.pop(key, None)

    def trim(self) -> None:
        """Drop families until the rest fits (M3); the one used last stays."""
        with self._lock:
            total = sum(family.nbytes for family in self._families.values())
            # Everything else rests on the slots: they go last.
            for key in sorted(list(self._families)[:-1], key=lambda key: key.kind == "slots"):
                if total <= self._bytes_max:
                    return
                total -= self._families.pop(key).nbytes

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._families.clear()


def derive(
    family: Family[V],
    pins: Pins,
    *,
    advance: Callable[[V], V | None],
    load: Callable[[], V | None],
    build: Callable[[], V],
) -> V:
    """Return the view at some pins: kept, advanced from one that is kept or on disk, or built (M2)."""
    view = family.get(pins)
    if view is not None:
        return view
    with family.lock:
        view = family.get(pins)
        if view is not None:
            return view
        start = family.before(pins) or load()
        if start is not None:
            family.put(start)
            if start.pins == pins:
                return start
            view = advance(start)
        if view is None:
            view = build()
        assert view.pins == pins, "a view was made for other pins"
        family.put(view)
        return view


def _versions(pins: Pins) -> tuple[int, ...]:
    return tuple(pin.version for pin in pins)


DeltaKey: TypeAlias = tuple[TableLineage, TablePin, TablePin]


@final
class DeltaMemo:
    """The newest deltas: the structures of a table are advanced by the same one, one after another."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lock = threading.Lock()
        self._deltas: OrderedDict[DeltaKey, VersionDelta] = OrderedDict()

    def get(self, key: DeltaKey, make: Callable[[], VersionDelta]) -> VersionDelta:
        """Return the delta between two pins, made if need be; large ones go first."""
        with self._lock:
            delta = self._deltas.get(key)
        if delta is not None:
            return delta
        made = make()
        with self._lock:
            delta = self._deltas.setdefault(key, made)
            held = sum(known.new_rows.nbytes for known in self._deltas.values())
            for old, known in list(self._deltas.items()):
                if len(self._deltas) > DELTAS_MAX or (held > DELTAS_BYTES_MAX and known is not delta):
                    held -= known.new_rows.nbytes
                    del self._deltas[old]
            return delta

    def clear(self) -> None:
        """Drop all of them."""
        with self._lock:
            self._deltas.clear()
