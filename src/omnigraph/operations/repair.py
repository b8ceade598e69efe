"""Operations on a graph that may be too damaged to open: going back on purpose, and the quarantine."""

from contextlib import ExitStack
from dataclasses import dataclass

from omnigraph.commit.parts import Parts
from omnigraph.commit.publish import publish_lock_file
from omnigraph.commit.recovery.repair import Loss, carry_out, plan_repair
from omnigraph.commit.recovery.restore import Quarantined, list_quarantined, restore_quarantined
from omnigraph.commit.recovery.sweep import SweepMode, sweep
from omnigraph.core.errors import ConflictError, GraphNotFound, OmnigraphError
from omnigraph.history.branches import given_name
from omnigraph.history.contract import promote_schema
from omnigraph.history.identity import MAIN
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.operations.context import check_actor, make_publisher
from omnigraph.storage.control.locks import PublishLock


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What was given up, and by which operation; a dry run has none."""

    loss: Loss
    operation_id: str | None


def foresee(parts: Parts, to_version: int, branch: str | None) -> Loss:
    """Return what `repair` would give up; nothing is changed.

    Raises:
        GraphNotFound, BranchNotFound, VersionNotFound: there is no such graph, branch or version.
        GraphDamaged: that version is damaged too.
        ConflictError: a writer is active.
    """
    _require_graph(parts)
    return plan_repair(parts, to_version, given_name(branch)).loss


def repair(parts: Parts, loss: Loss, *, actor: str | None = None) -> RepairResult:
    """Give up what was announced; the audit gets a row about it.

    Raises:
        ConflictError: something has been published since.
        StorageError: the system failed; the same call continues from there.
    """
    if actor is not None:
        check_actor(actor)
    operation_id = carry_out(parts, loss, actor)
    try:
        sweep(parts, make_publisher(parts), SweepMode.FULL)
    except OmnigraphError as error:
        parts.warn(f"the tables go back with the next read-write open: {error}")
    if loss.branch is None:
        _restore_schema_files(parts)
    return RepairResult(loss, operation_id)


def _restore_schema_files(parts: Parts) -> None:
    """Write the schema that main has again to the files that repeat it; otherwise the next open does."""
    try:
        parts.coordinator.forget()
        promote_schema(parts.adapter, parts.coordinator)
    except OmnigraphError as error:
        parts.warn(f"the schema files are written by the next read-write open: {error}")


def quarantined(parts: Parts) -> tuple[Quarantined, ...]:
    """Return what is in quarantine, newest first.

    Raises:
        GraphNotFound: there is no graph.
    """
    _require_graph(parts)
    return list_quarantined(parts)


def put_back(parts: Parts, quarantine_id: str) -> Quarantined:
    """Put back versions that were moved to quarantine, if they fit.

    Raises:
        GraphNotFound, NotFoundError: there is no graph, or nothing under this id.
        AlreadyExistsError: something was published over it.
        GraphDamaged: what would come back is itself damaged.
        ConflictError: a writer is publishing.
    """
    _require_graph(parts)
    branches, _ = parts.branches.readable()
    root = parts.local_root
    with ExitStack() as held:
        held.enter_context(parts.queues.schema_gate)
        for name in [MAIN, *(branch.name for branch in branches)] if root is not None else []:
            assert root is not None, "only a folder has lock files"
            if not held.enter_context(PublishLock(root / publish_lock_file(name))):
                raise ConflictError(f"a writer is publishing on branch '{name}': try again")
        return restore_quarantined(parts, quarantine_id)


def _require_graph(parts: Parts) -> None:
    if not parts.adapter.exists(MANIFEST_DIR):
        raise GraphNotFound(f"no graph at {parts.root.uri}: create one with init")
