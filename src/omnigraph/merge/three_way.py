"""The difference that one table contributes to a merge: base, source and target, entity by entity.

H1  The work depends on what the two sides changed: ids that only the target changed are not read, ids that
    only the source inserted or deleted are decided without a look at the target.
H2  Rows that were written again with equal values count as unchanged, so that a merge writes only changed
    rows, and a table whose content ends up equal is not written.
H3  A row id of the base names the same row in the target, with the same values, if the target's history goes
    through the base and the target has not touched the row: such rows are compared where the base has them.
    Elsewhere rows are found by id.
H4  If the base is not one version, every row in which the source differs from one of its versions is decided
    individually.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.changed_ids import (
    TouchedRows,
    changed_ids,
    rows_equal,
    shared_version,
    touched_rows,
)
from omnigraph.core.merge_conflict import MergeConflict, MergeConflictKind
from omnigraph.history.ancestry import MergedBase
from omnigraph.merge.base import TableBase, base_rows, equal_ids, points_of
from omnigraph.merge.rows import NOWHERE, DeltaRows, PlacedIds, RowReader, as_texts
from omnigraph.merge.truth_table import SideChange, Verdict, change_of, judge
from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.storage.tables.rows import ReplacedRows
from omnigraph.storage.versions.difference import lie_alike

_compute: Any = pc  # the stubs know too little of arrays of text


@dataclass(frozen=True, slots=True)
class Points:
    """One table in the three snapshots of a merge; the base is None if it does not have the table."""

    table_key: str
    base: TableBase
    source: PinnedTable
    target: PinnedTable

    @property
    def is_target_unchanged(self) -> bool:
        """Whether the target shows exactly the version of the base."""
        return self.base == self.target


@dataclass(frozen=True, slots=True)
class TableDelta:
    """What a merge does to one table of the target, and what it cannot decide."""

    points: Points
    inserted: DeltaRows
    changed: DeltaRows
    deleted: pa.StringArray
    conflicts: tuple[MergeConflict, ...] = ()
    is_new: bool = False  # the target does not have the table

    @property
    def table_key(self) -> str:
        """The table."""
        return self.points.table_key

    @property
    def is_empty(self) -> bool:
        """Whether the target's content stays the same."""
        return not len(self.inserted) and not len(self.changed) and not len(self.deleted)

    @property
    def rows(self) -> int:
        """How many rows the merge writes."""
        return len(self.inserted) + len(self.changed)

    def written_chunks(self) -> Iterator[pa.Table]:
        """Yield every row that the merge writes."""
        yield from self.inserted.chunks()
        yield from self.changed.chunks()


def table_delta(reader: RowReader, points: Points) -> TableDelta:
    """Return what a merge takes from the source's side of a table.

    Raises:
        HistoricalVersionReclaimed: a version of the table was cleaned up.
        StorageError: the store failed.
    """
    base = points.base
    if isinstance(base, MergedBase):
        return _delta(reader, points, _NOTHING, _together(reader, points, _touched_since_any(reader, points)))
    ours = _touched(reader, base, points.source)
    if ours.is_empty or points.is_target_unchanged:
        return _delta(reader, points, ours, _Both())
    elsewhere = touched_rows(reader.store, base, points.target)
    reader.rows_read += elsewhere.rows_read
    both, alone = ours.parted(elsewhere)
    if both.is_empty:
        return _delta(reader, points, ours, _Both())
    return _delta(reader, points, alone, _together(reader, points, both))


def new_table_delta(reader: RowReader, table_key: str, source: PinnedTable) -> TableDelta:
    """Return what a merge takes of a table that the target does not have: every row of the source.

    Raises:
        HistoricalVersionReclaimed: the version was cleaned up.
        StorageError: the store failed.
    """
    points = Points(table_key, None, source, source)
    return replace(_delta(reader, points, _touched(reader, None, source), _Both()), is_new=True)


class _Touched(NamedTuple):
    """The ids that the source touched; updated ones may have equal values.

    Deleted ids have their row ids of the base, the others those of the source; `before` are the updated ones
    as the base has them.
    """

    inserted: PlacedIds
    updated: PlacedIds
    deleted: PlacedIds
    before: PlacedIds

    @property
    def is_empty(self) -> bool:
        return not (len(self.inserted) or len(self.updated) or len(self.deleted))

    def parted(self, elsewhere: TouchedRows) -> "tuple[_Touched, _Touched]":
        """Return those that were also touched elsewhere, and the others."""
        inserted = _compute.is_in(self.inserted.ids, value_set=elsewhere.ids)
        updated, deleted = self.before.are_in(elsewhere), self.deleted.are_in(elsewhere)
        invert = _compute.invert
        return (
            self._filtered(inserted, updated, deleted),
            self._filtered(invert(inserted), invert(updated), invert(deleted)),
        )

    def _filtered(
        self, inserted: pa.BooleanArray, updated: pa.BooleanArray, deleted: pa.BooleanArray
    ) -> "_Touched":
        return _Touched(
            self.inserted.filter(inserted),
            self.updated.filter(updated),
            self.deleted.filter(deleted),
            self.before.filter(updated),
        )


_NOTHING = _Touched(NOWHERE, NOWHERE, NOWHERE, NOWHERE)


def _touched_since_any(reader: RowReader, points: Points) -> _Touched:
    """Return the ids in which the source differs from a version of the base, or which it lacks (H4)."""
    at_source: dict[str, int] = {}
    gone: set[str] = set()
    for point in points_of(points.base):
        found = _touched(reader, point, points.source)
        for placed in (found.inserted, found.updated):
            at_source |= zip(as_texts(placed.ids), placed.rows.tolist(), strict=True)
        gone |= set(as_texts(found.deleted.ids))
    deleted = sorted(gone)
    return _Touched(
        PlacedIds.of(list(at_source), list(at_source.values())),
        NOWHERE,
        PlacedIds.of(deleted, [-1] * len(deleted)),
        NOWHERE,
    )


def _touched(reader: RowReader, base: PinnedTable | None, source: PinnedTable) -> _Touched:
    found = changed_ids(reader.store, base, source, with_images=source not in reader.shapes)
    reader.rows_read += found.rows_read
    inserted, updated, images = len(found.inserted), len(found.updated), found.images
    come, changed = (None, None) if images is None else (images.slice(0, inserted), images.slice(inserted))
    return _Touched(
        PlacedIds(found.inserted, found.rows_after[:inserted], come),
        PlacedIds(found.updated, found.rows_after[inserted:], changed),
        PlacedIds(found.deleted, found.rows_before[updated:]),
        PlacedIds(found.updated, found.rows_before[:updated], addresses=found.addresses),
    )


class _Both(NamedTuple):
    """What becomes of entities that both sides touched."""

    inserted: PlacedIds = NOWHERE
    changed: PlacedIds = NOWHERE
    deleted: tuple[str, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()


def _delta(reader: RowReader, points: Points, ours: _Touched, both: _Both) -> TableDelta:
    """Combine what the source did to entities that the target left alone with what both did."""
    deleted = ours.deleted.with_others(PlacedIds.of(list(both.deleted), [-1] * len(both.deleted)))
    return TableDelta(
        points,
        DeltaRows(reader, points.source, ours.inserted.with_others(both.inserted)),
        _changed(reader, points, ours, both.changed),
        deleted.ids,
        both.conflicts,
    )


def _changed(reader: RowReader, points: Points, ours: _Touched, others: PlacedIds) -> DeltaRows:
    """Return the updated rows whose values differ from the target's (H2)."""
    base = _as_base(reader, points) if len(ours.updated) else None
    differing: list[PlacedIds] = []
    replaced: list[PlacedIds] = []
    for chunk, before in zip(ours.updated.chunks(), ours.before.chunks(), strict=True):
        mine = reader.fetch(points.source, chunk)
        if base is not None:
            differs = reader.differing(base, before, mine)
        else:
            differs = _compute.invert(rows_equal(reader.find(points.target, chunk.ids), mine))
        differing.append(chunk.seen(mine).filter(differs))
        replaced.append(before.filter(differs))
    placed = PlacedIds.concat(differing)
    if len(others):
        return DeltaRows(reader, points.source, placed.with_others(others))
    known = None if base is None else _replaced(reader, base, points.target, PlacedIds.concat(replaced))
    return DeltaRows(reader, points.source, placed, replaced=known)


def _as_base(reader: RowReader, points: Points) -> PinnedTable | None:
    """Return the base if it can stand for rows of the target: by its row ids, in its columns (H3)."""
    base = points.base
    if not isinstance(base, PinnedTable):
        return None
    if not reader.shapes.keys().isdisjoint({base, points.source, points.target}):
        return None
    schemas = [point.open(reader.store).schema for point in (base, points.source)]
    if not schemas[0].equals(schemas[1]):
        return None
    if points.is_target_unchanged:
        return base
    shared = shared_version(reader.store, base.address, points.target.address)
    return base if shared >= base.version else None


def _replaced(reader: RowReader, base: PinnedTable, target: PinnedTable, before: PlacedIds) -> ReplacedRows:
    """Return rows of the base as rows of the target, which has not touched them (H3)."""
    handles = base.open(reader.store), target.open(reader.store)
    lies_there = before.addresses is not None and lie_alike(*handles, before.addresses)
    return ReplacedRows(before.rows, before.addresses if lies_there else None)


def _together(reader: RowReader, points: Points, both: _Touched) -> _Both:
    """Decide about entities that both sides touched."""
    at_source = both.inserted.with_others(both.updated)
    row_of = dict(zip(as_texts(at_source.ids), at_source.rows.tolist(), strict=True))
    taken: dict[SideChange, list[str]] = {SideChange.INSERTED: [], SideChange.CHANGED: []}
    deleted: list[str] = []
    conflicts: list[MergeConflict] = []
    for chunk in at_source.with_others(both.deleted).chunks():
        for row_id, change, verdict in _verdicts(reader, points, chunk.ids):
            match verdict:
                case Verdict.KEEP:
                    pass
                case Verdict.TAKE_SOURCE:
                    taken[change].append(row_id)
                case Verdict.DELETE:
                    deleted.append(row_id)
                case _:
                    conflicts.append(_conflict(points.table_key, row_id, verdict, change))
    inserted, changed = (
        PlacedIds.of(taken[change], [row_of[row_id] for row_id in taken[change]])
        for change in (SideChange.INSERTED, SideChange.CHANGED)
    )
    return _Both(inserted, changed, tuple(deleted), tuple(conflicts))


def _verdicts(
    reader: RowReader, points: Points, ids: pa.StringArray
) -> Iterator[tuple[str, SideChange, Verdict | MergeConflictKind]]:
    """Yield, for each id, what the source did and what becomes of it."""
    source, target = reader.find(points.source, ids), reader.find(points.target, ids)
    known, doubts = base_rows(reader, points.base, ids)
    base = source.slice(0, 0) if known is None else known
    in_base, in_source, in_target = (set(as_texts(rows["id"])) for rows in (base, source, target))
    source_is_base, target_is_base = equal_ids(base, source), equal_ids(base, target)
    sides_agree = equal_ids(source, target)
    for row_id in as_texts(ids):
        if row_id in doubts:
            yield row_id, *_without_base(row_id in in_source, row_id in in_target, row_id in sides_agree)
            continue
        here, there = (
            change_of(in_base=row_id in in_base, in_side=row_id in in_side, is_equal=row_id in unchanged)
            for in_side, unchanged in ((in_source, source_is_base), (in_target, target_is_base))
        )
        yield row_id, here, judge(here, there, is_equal=row_id in sides_agree)


def _without_base(
    in_source: bool, in_target: bool, is_equal: bool
) -> tuple[SideChange, Verdict | MergeConflictKind]:
    """Decide about an entity on which the common commits disagree: possible only if both sides agree."""
    change = SideChange.CHANGED if in_source else SideChange.DELETED
    if is_equal or not (in_source or in_target):
        return change, Verdict.KEEP
    is_update = in_source and in_target
    return change, MergeConflictKind.DIVERGENT_UPDATE if is_update else MergeConflictKind.DELETE_VS_UPDATE


_TEXTS = {
    MergeConflictKind.DIVERGENT_INSERT: "both sides inserted it, with different values",
    MergeConflictKind.DIVERGENT_UPDATE: "both sides changed it, to different values",
}


def _conflict(table_key: str, row_id: str, kind: MergeConflictKind, source: SideChange) -> MergeConflict:
    text = _TEXTS.get(kind)
    if text is None:
        here, there = ("deleted", "changed") if source is SideChange.DELETED else ("changed", "deleted")
        text = f"the source {here} it, the target {there} it"
    return MergeConflict(table_key, row_id, kind, text)
