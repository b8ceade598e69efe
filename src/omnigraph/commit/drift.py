"""The drift guard: a writer looks once more before its first effect.

The order is HEAD, then the sidecars, then the pin: a sidecar is durable before HEAD moves and is deleted only
after the pin has moved, so one of the last two looks always sees a live writer.
"""

from collections.abc import Iterable

from omnigraph.commit.parts import Parts
from omnigraph.commit.recovery.pending import list_pending
from omnigraph.core.errors import (
    ConflictError,
    DriftNeedsRepair,
    ExpectedVersionMismatch,
    InvariantViolation,
    OmnigraphError,
    RecoveryRequired,
)
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import BranchIdentity

_ROLLBACK = "a pending recovery sidecar requires rollback — reopen the graph read-write"


def refuse_drift(
    parts: Parts,
    entries: Iterable[TableEntry],
    branch: BranchIdentity,
    *,
    has_swept: bool = True,
) -> None:
    """Compare HEAD with the pin of every table that is about to be written.

    `has_swept` says that the caller heals at its entry, and will do so again if told to retry.

    Raises:
        ExpectedVersionMismatch: a live writer is between its commit and its publish, or has just finished.
        RecoveryRequired: a dead writer's movement must be undone by a read-write open, or it is unknown
            whether the table's newest commit is on the disk.
        DriftNeedsRepair: it is unknown why the table moved.
        InvariantViolation: HEAD is behind the pin.
    """
    for entry in entries:
        parts.doubts.refuse(entry)
        head = parts.store.latest_version(parts.address(entry))
        if head < entry.version:
            raise InvariantViolation(
                f"{entry.table_key} is at {head}, behind its published version {entry.version}"
            )
        if head > entry.version:
            _explain(parts, entry, head, branch, has_swept=has_swept)


def _explain(parts: Parts, entry: TableEntry, head: int, branch: BranchIdentity, *, has_swept: bool) -> None:
    try:
        pending = list_pending(parts)
    except OmnigraphError as error:
        message = (
            f"{entry.table_key} is at {head}, published at {entry.version}: repair or recovery could apply"
        )
        raise ConflictError(f"{message}, but the pending sidecars cannot be listed ({error})") from error
    naming = [found for found in pending if found.sidecar.names(entry.identity, entry.pin.ref)]
    for sidecar in naming:
        if sidecar.is_alive:
            raise ExpectedVersionMismatch(
                table_key=entry.table_key,
                expected=entry.version,
                actual=head,
                in_flight_operation_id=sidecar.operation_id,
            )
    published = parts.coordinator.state(branch).tables.pins.get(entry.identity)
    if published is not None and published.version != entry.version:
        raise ExpectedVersionMismatch(
            table_key=entry.table_key, expected=entry.version, actual=published.version
        )
    for sidecar in naming:
        if sidecar.operation_id in parts.doubts.waiting or not has_swept:
            raise RecoveryRequired(sidecar.operation_id, _ROLLBACK)
    if naming:
        # Its writer, or one that shared its tables, has ended since the sweep: the next write heals it.
        raise ExpectedVersionMismatch(table_key=entry.table_key, expected=entry.version, actual=head)
    raise DriftNeedsRepair(table_key=entry.table_key, pin=entry.version, head=head)
