"""What two sides of a merge have in common for one table, whether that is one version or several.

V1  Several versions in common are merged with each other, over what they in turn have in common, row by row
    by the truth table: what only one of them changed is taken from that one.
V2  A row that they changed differently is in doubt: nothing is said about it, and a caller that needs it asks
    the two sides of the merge.
V3  A table that has the same version in all of them, or that only one of them changed, is one version.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.changed_ids import rows_equal
from omnigraph.history.ancestry import MergedBase
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import TableIdentity
from omnigraph.history.state import Snapshot
from omnigraph.merge.rows import RowReader, as_texts
from omnigraph.merge.truth_table import Verdict, change_of, judge
from omnigraph.storage.tables.pinned import PinnedTable

_compute: Any = pc  # the stubs know too little of arrays of text

PinnedOf = Callable[[TableEntry], PinnedTable]
Base: TypeAlias = "Snapshot | MergedBase[Snapshot]"
TableBase: TypeAlias = (
    "PinnedTable | MergedBase[PinnedTable | None] | None"  # None is a table that does not exist
)


def table_base(base: Base, identity: TableIdentity, pinned: PinnedOf) -> TableBase:
    """Return one table of what two sides have in common (V3)."""
    if isinstance(base, MergedBase):
        one, other, over = (table_base(part, identity, pinned) for part in (base.one, base.other, base.over))
        if other in {one, over}:
            return one
        return other if one == over else MergedBase(one, other, over)
    for entry in base.entries.values():
        if entry.identity == identity:
            return pinned(entry)
    return None


def points_of(base: TableBase) -> list[PinnedTable | None]:
    """Return the versions that are merged with each other; each row of the base is as one of them has it."""
    return [*points_of(base.one), *points_of(base.other)] if isinstance(base, MergedBase) else [base]


def base_rows(
    reader: RowReader, base: TableBase, ids: pa.StringArray
) -> tuple[pa.Table | None, frozenset[str]]:
    """Return the rows of ids in the base, ascending by id, and the ids that are in doubt (V1, V2).

    Missing rows are left out; None is a table that does not exist.
    """
    if not isinstance(base, MergedBase):
        return None if base is None else reader.find(base, ids), frozenset()
    (one, doubt), (other, more_doubt) = (base_rows(reader, part, ids) for part in (base.one, base.other))
    like = one if one is not None else other
    if like is None:
        return None, doubt | more_doubt
    one, other = like.slice(0, 0) if one is None else one, like.slice(0, 0) if other is None else other
    agreed = equal_ids(one, other)
    in_one, in_other = set(as_texts(one["id"])), set(as_texts(other["id"]))
    left = sorted((in_one | in_other) - agreed - doubt - more_doubt)
    over, doubt_over = base_rows(reader, base.over, pa.array(left, pa.utf8()))
    over = like.slice(0, 0) if over is None else over
    in_over, one_is_over, other_is_over = (
        set(as_texts(over["id"])),
        equal_ids(over, one),
        equal_ids(over, other),
    )
    doubts = {*doubt, *more_doubt, *(doubt_over & set(left))}
    kept, taken = set(agreed), set[str]()
    for row_id in left:
        here = change_of(in_base=row_id in in_over, in_side=row_id in in_one, is_equal=row_id in one_is_over)
        there = change_of(
            in_base=row_id in in_over, in_side=row_id in in_other, is_equal=row_id in other_is_over
        )
        match judge(there, here, is_equal=False):
            case Verdict.KEEP:
                kept.add(row_id)
            case Verdict.TAKE_SOURCE:
                taken.add(row_id)
            case Verdict.DELETE:
                pass
            case _:
                doubts.add(row_id)
    rows = pa.concat_tables([_rows_of(one, kept - doubts), _rows_of(other, taken - doubts)])
    return rows.sort_by("id"), frozenset(doubts)


def equal_ids(one: pa.Table, other: pa.Table) -> set[str]:
    """Return the ids that both have, with equal values; both are ascending by id."""
    here = one.filter(_compute.is_in(one["id"], value_set=other["id"].combine_chunks()))
    there = other.filter(_compute.is_in(other["id"], value_set=one["id"].combine_chunks()))
    return set(as_texts(here["id"].filter(rows_equal(here, there))))


def _rows_of(rows: pa.Table, ids: set[str]) -> pa.Table:
    return rows.filter(_compute.is_in(rows["id"], value_set=pa.array(sorted(ids), pa.utf8())))
