"""The fold: from manifest rows to the state of the tables, for scans, time travel and publishes alike.

O1  One function folds. The state at manifest version v keeps the rows with `published_at <= v`; per lifetime
    the greatest `published_at` decides name and pin; a tombstone not older than the pin ends the lifetime.
O2  Folding rows onto a state equals folding all rows at once: the order in which rows arrive does not matter.
O3  A malformed row of a known kind is a loud error that names it. Unknown kinds are skipped.

Rows are chosen by column with plain values; the stubs of Arrow's functions accept only its own scalars.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.errors import InvariantViolation
from omnigraph.core.values import is_text
from omnigraph.history.identity import TableIdentity, branch_name, stored_name
from omnigraph.history.manifest_rows import (
    TABLE,
    TABLE_KINDS,
    TABLE_VERSION,
    ManifestRow,
    PublishedPin,
    metadata_members,
)
from omnigraph.storage.files.version_file import check_ref

_ROWS_BY_HAND = 64  # up to this, a list in Python is quicker than one call of Arrow; a publish has three rows
_ROWS_TO_GROUP = 256  # below this, looking at every row is cheaper than grouping them


_compute: Any = pc


@dataclass(frozen=True, slots=True)
class Registration:
    """The name and place of a lifetime, as of a manifest version."""

    table_key: str
    location: str
    published_at: int


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One visible table: its name, its location, and the version that counts."""

    identity: TableIdentity
    table_key: str
    location: str
    pin: PublishedPin

    @property
    def version(self) -> int:
        """The pinned Lance version."""
        return self.pin.version

    @property
    def owner(self) -> str | None:
        """The Lance ref that holds the pinned version; None is main's.

        Snapshots show it under this name. Inside the engine a ref is called `ref`, as in `pin.ref`.
        """
        return self.pin.ref

    @property
    def branch(self) -> str | None:
        """The branch whose write made the pinned version; None is main."""
        return stored_name(self.pin.branch)

    @property
    def row_count(self) -> int:
        """Rows at that version."""
        return self.pin.row_count


@dataclass(frozen=True, slots=True)
class TableStates:
    """Every lifetime that the rows name, dead ones included."""

    registrations: Mapping[TableIdentity, Registration] = field(default_factory=dict)
    pins: Mapping[TableIdentity, PublishedPin] = field(default_factory=dict)
    tombstones: Mapping[TableIdentity, tuple[int, int]] = field(default_factory=dict)

    def is_dead(self, identity: TableIdentity) -> bool:
        """Return whether a tombstone ends this lifetime."""
        pin = self.pins.get(identity)
        tombstone = self.tombstones.get(identity)
        return tombstone is not None and (pin is None or tombstone[1] >= pin.published_at)

    def entries(self) -> tuple[TableEntry, ...]:
        """Return the visible tables by name.

        Raises:
            InvariantViolation: a pin has no registration, or two lifetimes have the same name.
        """
        found: dict[str, TableEntry] = {}
        for identity, pin in self.pins.items():
            if self.is_dead(identity):
                continue
            registration = self.registrations.get(identity)
            if registration is None:
                raise InvariantViolation(
                    f"manifest: table {identity.object_part} is pinned but not registered"
                )
            entry = TableEntry(identity, registration.table_key, registration.location, pin)
            if entry.table_key in found:
                raise InvariantViolation(f"manifest: two tables are called {entry.table_key}")
            found[entry.table_key] = entry
        return tuple(found[key] for key in sorted(found))


def fold(base: TableStates, rows: pa.Table, up_to: int | None = None) -> TableStates:
    """Return the state with more rows in it (O1, O2)."""
    if up_to is not None:
        rows = where_at_most(rows, "published_at", up_to)
    selected = where_one_of(rows, "object_type", TABLE_KINDS)
    registrations, pins, tombstones = dict(base.registrations), dict(base.pins), dict(base.tombstones)
    for row in _checked(_decisive(selected)):
        identity = TableIdentity(row["stable_table_id"], row["table_incarnation_id"])
        at = row["published_at"]
        if row["object_type"] == TABLE:
            known = registrations.get(identity)
            if known is None or at >= known.published_at:
                registrations[identity] = Registration(row["table_key"], row["location"], at)
        elif row["object_type"] == TABLE_VERSION:
            pinned = pins.get(identity)
            if pinned is None or at >= pinned.published_at:
                pins[identity] = _pin(row)
        else:
            ended = tombstones.get(identity)
            if ended is None or at >= ended[1]:
                tombstones[identity] = (row["table_version"], at)
    return TableStates(registrations, pins, tombstones)


def _decisive(rows: pa.Table) -> pa.Table:
    """Return, of many rows, those that can decide a fold: per lifetime and kind the newest one.

    Rows that are malformed stay, so that they are found (O3).
    """
    if rows.num_rows <= _ROWS_TO_GROUP:
        return rows
    keys = ["object_type", "stable_table_id", "table_incarnation_id"]
    newest = rows.group_by(keys).aggregate([("published_at", "max")])
    newest = newest.rename_columns([*keys, "published_at"])
    columns = [*keys, "published_at"]
    decisive = rows.join(newest, columns, columns, join_type="left semi")
    malformed = where_null(rows, "published_at", "stable_table_id").select(decisive.column_names)
    return pa.concat_tables([decisive, malformed.cast(decisive.schema)])  # a join forgets what is non-null


def _pin(row: ManifestRow) -> PublishedPin:
    metadata = metadata_members(row["metadata"])
    return PublishedPin(
        version=row["table_version"],
        ref=row["table_branch"],
        row_count=row["row_count"] or 0,
        transaction_uuid=metadata.get("transaction_uuid"),
        branch=branch_name(metadata.get("branch")),
        published_at=row["published_at"],
        upkeep_version=metadata.get("upkeep_version", 0),
    )


def _checked(rows: pa.Table) -> Iterator[ManifestRow]:
    for row in rows.to_pylist():
        fault = _fault(row)
        if fault:
            raise InvariantViolation(f"manifest row {row['object_id']!r}: {fault}")
        yield row


def _fault(row: ManifestRow) -> str | None:
    kind = row["object_type"]
    if not row["stable_table_id"] or not row["table_incarnation_id"]:
        return "a table row without identity"
    if row["published_at"] is None:
        return "no published_at"
    identity = TableIdentity(row["stable_table_id"], row["table_incarnation_id"])
    if not f"{row['object_id']}:".startswith(f"{kind}:{identity.object_part}:"):
        return "the object id does not begin with its type and identity"
    if kind == TABLE:
        if row["location"] != identity.location(row["table_key"]):
            return f"path {row['location']!r} is not that of its identity"
        return None
    if row["table_version"] is None:
        return "no table version"
    if row["table_branch"] is not None:
        check_ref(row["table_branch"], f"manifest row {row['object_id']!r}")
    return "no metadata" if kind == TABLE_VERSION and row["metadata"] is None else None


def where_equal(rows: pa.Table, column: str, value: str | int) -> pa.Table:
    """Return the rows whose column has a value."""
    if rows.num_rows <= _ROWS_BY_HAND:
        return _picked(rows, [found == value for found in rows[column].to_pylist()])
    return rows.filter(_compute.equal(rows[column], value))


def where_one_of(rows: pa.Table, column: str, values: Iterable[str]) -> pa.Table:
    """Return the rows whose column has one of the values."""
    if rows.num_rows <= _ROWS_BY_HAND:
        wanted = frozenset(values)
        return _picked(rows, [found in wanted for found in rows[column].to_pylist()])
    return rows.filter(_compute.is_in(rows[column], value_set=pa.array(list(values))))


def where_in(rows: pa.Table, others: pa.Table) -> pa.Table:
    """Return the rows whose object is among those of other rows."""
    return rows.filter(_is_in(rows, others))


def where_not_in(rows: pa.Table, others: pa.Table) -> pa.Table:
    """Return the rows whose object is not among those of other rows."""
    return rows.filter(_compute.invert(_is_in(rows, others)))


def where_at_most(rows: pa.Table, column: str, value: int) -> pa.Table:
    """Return the rows whose column is not above a number; null is not among them."""
    return rows.filter(_compute.less_equal(rows[column], value))


def where_above(rows: pa.Table, column: str, value: int) -> pa.Table:
    """Return the rows whose column is above a number; null is not among them."""
    return rows.filter(_compute.greater(rows[column], value))


def where_above_or_equal_to(rows: pa.Table, column: str, value: int, other: str, text: str) -> pa.Table:
    """Return the rows whose column is above a number, and those whose other column has a text."""
    if rows.num_rows <= _ROWS_BY_HAND:
        pairs = zip(rows[column].to_pylist(), rows[other].to_pylist(), strict=True)
        return _picked(
            rows, [(number is not None and number > value) or found == text for number, found in pairs]
        )
    is_above = _compute.fill_null(_compute.greater(rows[column], value), False)
    return rows.filter(_compute.or_(is_above, _compute.equal(rows[other], text)))


def _picked(rows: pa.Table, mask: list[bool]) -> pa.Table:
    """Return the rows that a mask marks; if they follow each other, without a copy."""
    marked = [place for place, is_marked in enumerate(mask) if is_marked]
    if not marked:
        return rows.slice(0, 0)
    if marked[-1] - marked[0] == len(marked) - 1:
        return rows.slice(marked[0], len(marked))
    return rows.take(marked)


def where_null(rows: pa.Table, *columns: str) -> pa.Table:
    """Return the rows that lack one of the columns."""
    mask = _compute.is_null(rows[columns[0]])
    for column in columns[1:]:
        mask = _compute.or_(mask, _compute.is_null(rows[column]))
    return rows.filter(mask)


def _is_in(rows: pa.Table, others: pa.Table) -> "pa.ChunkedArray[pa.BooleanScalar]":
    found: pa.ChunkedArray[pa.BooleanScalar] = _compute.is_in(
        rows["object_id"], value_set=others["object_id"].combine_chunks()
    )
    return found


def greatest(rows: pa.Table, column: str) -> int:
    """Return the greatest value of a column."""
    return int(_compute.max(rows[column]).as_py())


def least(rows: pa.Table, column: str) -> int:
    """Return the smallest value of a column."""
    return int(_compute.min(rows[column]).as_py())


def position_of(rows: pa.Table, column: str, value: str) -> int:
    """Return the first position of a value, or -1."""
    if not is_text(value):
        return -1  # Arrow cannot be asked for it, and holds no such text
    if rows.num_rows <= _ROWS_BY_HAND:
        found = rows[column].to_pylist()
        return found.index(value) if value in found else -1
    return int(_compute.index(rows[column], value).as_py())


def descending(rows: pa.Table, column: str) -> list[int]:
    """Return the positions of the rows, greatest value first."""
    order: list[int] = _compute.sort_indices(rows, sort_keys=[(column, "descending")]).to_pylist()
    return order


def ascending(rows: pa.Table, column: str) -> list[int]:
    """Return the positions of the rows, smallest value first."""
    order: list[int] = _compute.sort_indices(rows, sort_keys=[(column, "ascending")]).to_pylist()
    return order
