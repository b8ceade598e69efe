"""What becomes of one entity that either side may have changed: a pure function.

T1  `judge` is the table in 9.3 of the engine specification: every pair of changes has one row here, and a
    pair that contradicts itself about the base is a mistake of ours.
"""

from enum import StrEnum

from omnigraph.core.merge_conflict import MergeConflictKind


class SideChange(StrEnum):
    """What one side did to an entity since the base."""

    NONE = "none"
    INSERTED = "inserted"
    CHANGED = "changed"
    DELETED = "deleted"


class Verdict(StrEnum):
    """What the merge does with the target's entity."""

    KEEP = "keep"
    TAKE_SOURCE = "take_source"
    DELETE = "delete"


def change_of(*, in_base: bool, in_side: bool, is_equal: bool) -> SideChange:
    """Return what a side did; `is_equal` is whether base and side both have the entity with equal values."""
    if not in_base:
        return SideChange.INSERTED if in_side else SideChange.NONE
    if not in_side:
        return SideChange.DELETED
    return SideChange.NONE if is_equal else SideChange.CHANGED


def judge(source: SideChange, target: SideChange, *, is_equal: bool) -> Verdict | MergeConflictKind:
    """Return what to do, or why nothing can be done (T1); `is_equal` is whether both sides now agree."""
    match source, target:
        case SideChange.NONE, _:
            return Verdict.KEEP
        case SideChange.INSERTED | SideChange.CHANGED, SideChange.NONE:
            return Verdict.TAKE_SOURCE
        case SideChange.DELETED, SideChange.NONE:
            return Verdict.DELETE
        case SideChange.INSERTED, SideChange.INSERTED:
            return Verdict.KEEP if is_equal else MergeConflictKind.DIVERGENT_INSERT
        case SideChange.CHANGED, SideChange.CHANGED:
            return Verdict.KEEP if is_equal else MergeConflictKind.DIVERGENT_UPDATE
        case SideChange.DELETED, SideChange.DELETED:
            return Verdict.KEEP
        case (SideChange.DELETED, SideChange.CHANGED) | (SideChange.CHANGED, SideChange.DELETED):
            return MergeConflictKind.DELETE_VS_UPDATE
        case _:
            raise AssertionError(f"one base cannot be both absent and present: {source}, {target}")
