"""Which tables two snapshots have in common, and which differ.

J1  Tables are paired by lifetime, never by name: a rename keeps the pair, dropping and adding a type again
    does not.
J2  Rows of a pair are compared only if both sides provably have the same properties; otherwise the answer is
    a typed refusal, never a guess.
"""

from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.catalog.model import Catalog, NodeType
from omnigraph.catalog.reshape import EntityType
from omnigraph.changes.model import KINDS, ChangeFilter, TypeRef, type_id
from omnigraph.core.errors import ChangeSchemaBoundary
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import TableIdentity, identity_of
from omnigraph.history.state import Snapshot
from omnigraph.storage.tables.pinned import PinnedTable


@dataclass(frozen=True, slots=True)
class Side:
    """One of two snapshots, with the schema that was accepted then."""

    snapshot: Snapshot
    catalog: Catalog

    def tables(self) -> "dict[TableIdentity, tuple[TableEntry, EntityType]]":
        """Return every table with its type, by lifetime."""
        types = {identity_of(type_): type_ for type_ in self.catalog.types}
        entries = self.snapshot.entries.values()
        return {entry.identity: (entry, types[entry.identity]) for entry in entries}


@dataclass(frozen=True, slots=True)
class Boundary:
    """A type whose rows cannot be compared, because its schema differs on the two sides."""

    identity: TableIdentity
    before: Side
    after: Side


@dataclass(frozen=True, slots=True)
class TablePair:
    """One type whose tables differ; `type` is that of the later side, or of the only side that has it."""

    kind: str
    ref: TypeRef
    type: EntityType
    before: PinnedTable | None
    after: PinnedTable | None

    @property
    def order(self) -> tuple[int, str]:
        """The place of its changes: nodes before edges, then by opaque id."""
        return KINDS.index(self.kind), self.ref.id


def differing_tables(
    before: Side,
    after: Side,
    wanted: ChangeFilter,
    *,
    domain: str,
    pinned: Callable[[TableEntry], PinnedTable],
    refuse_drops: bool,
    way_out: Callable[[Boundary], str],
) -> tuple[TablePair, ...]:
    """Return the wanted pairs that do not pin the same version, in order (J1).

    `way_out` says what the caller can do where they are refused; it is asked only then.

    Raises:
        ChangeSchemaBoundary: a type has different properties on the two sides, or a populated one was dropped
            where that is refused (J2).
    """
    older, newer = before.tables(), after.tables()
    pairs = []
    for identity in older.keys() | newer.keys():
        was, now = older.get(identity), newer.get(identity)
        type_ = (now or was or _nothing())[1]
        kind = "node" if isinstance(type_, NodeType) else "edge"
        ref = TypeRef(type_id(domain, identity), type_.name)
        if not wanted.wants_table(kind, ref.id):
            continue
        is_other = bool(was and now and properties_of(was[1]) != properties_of(now[1]))
        is_dropped = bool(was and not now and was[0].row_count and refuse_drops)
        if is_other or is_dropped:
            raise ChangeSchemaBoundary(
                type_name=type_.name,
                before_commit_id=before.snapshot.commit_id,
                commit_id=after.snapshot.commit_id,
                way_out=way_out(Boundary(identity, before, after)),
            )
        points = [None if side is None else pinned(side[0]) for side in (was, now)]
        if points[0] != points[1]:
            pairs.append(TablePair(kind, ref, type_, *points))
    return tuple(sorted(pairs, key=lambda pair: pair.order))


def properties_of(type_: EntityType) -> dict[int, object]:
    """Return what makes rows of a type comparable: its properties, whatever they are called (J2)."""
    return {item.id: item.type for item in type_.properties.values()}


def _nothing() -> tuple[TableEntry, EntityType]:
    raise AssertionError("an identity comes from one of the sides")
