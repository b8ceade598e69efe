"""`repair`: tables that something else has committed to, published where they are, or left alone.

M1  Nothing happens without `confirm`: a preview says what was committed, which rows that changes, and which
    rules of the schema they would break.
M2  `confirm` publishes what moved rows only. Where it is not known that no row changed, only `force` does.
M3  One publish, which expects the old pins; no data is rewritten. What is published is synced first, for
    whoever committed it may not have done so.
M4  A live writer is waited for; beside a dead one's sidecar nothing is repaired.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum

from omnigraph.catalog.model import Catalog
from omnigraph.changes.changed_ids import changed_ids
from omnigraph.commit.changes import Expectation, LineageIntent, UpdateTable
from omnigraph.commit.parts import Parts
from omnigraph.commit.recovery.drift import DriftClass, TableDrift, observe_drift, pin_at_head
from omnigraph.commit.recovery.quiet import Patience
from omnigraph.commit.schema_lock import living_holder
from omnigraph.core.errors import BadRequest, SchemaApplyInProgress
from omnigraph.core.failpoint import hit
from omnigraph.core.shield import shielded
from omnigraph.history.commits import FORCED_REPAIR_ACTOR, REPAIR_ACTOR, GraphCommit
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import BranchIdentity
from omnigraph.history.state import ManifestState
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.progress import TableProgressCallback, Tables, unmoved, unseen
from omnigraph.operations.verify.rows import PinnedRows, row_steps
from omnigraph.policy.request import Action
from omnigraph.storage.files.added_files import files_between
from omnigraph.storage.tables.pinned import PinnedTable


class RepairAction(StrEnum):
    """What a repair does about one table."""

    NO_OP = "no_op"
    PREVIEW = "preview"
    HEALED = "healed"
    FORCED = "forced"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class RowsInDoubt:
    """What publishing a table would change: rows, and rules of the schema that would no longer hold.

    Each is None where it cannot be known. `broken` has the first rules in words, `broken_total` counts all.
    """

    added: int | None = None
    changed: int | None = None
    removed: int | None = None
    broken: tuple[str, ...] = ()
    broken_total: int | None = None


@dataclass(frozen=True, slots=True)
class RepairedTable:
    """One table: where it was published, where it is, why, and what was done about it."""

    table_key: str
    pinned_version: int
    head_version: int
    classification: DriftClass
    action: RepairAction
    operations: tuple[str, ...]
    rows: RowsInDoubt
    error: str | None = None


@dataclass(frozen=True, slots=True)
class DriftRepair:
    """What a repair found on a branch, and the commit that published it, if there is one."""

    branch: str
    confirm: bool
    force: bool
    manifest_version: int
    tables: tuple[RepairedTable, ...]
    commit: GraphCommit | None = None

    @property
    def is_refused(self) -> bool:
        """Whether something was to be published and could not be."""
        return any(table.action is RepairAction.REFUSED for table in self.tables)


def repair_drift(
    graph: OpenGraph,
    *,
    confirm: bool = False,
    force: bool = False,
    branch: str | None = None,
    actor: str | None = None,
    progress: TableProgressCallback = unseen,
) -> DriftRepair:
    """Say which tables of a branch are ahead of their pins, and publish them if that is confirmed (M1, M2).

    Raises:
        BadRequest: `force` without `confirm`, or a handle that only reads is to publish.
        PendingRecovery: a dead writer left something that a read-write open settles first (M4).
        SchemaApplyInProgress: a schema change is being applied.
        ConflictError: another writer was first.
    """
    name = graph.enter(actor, Action.ADMIN, branch)
    if force and not confirm:
        raise BadRequest("force publishes what is in doubt, and needs confirm")
    if confirm:
        graph.require_writable()
    found = graph.require_branch(name)
    with _held(graph, found) as (state, drifts):
        rows = {drift.entry.table_key: drift.entry.row_count for drift in drifts}
        at_hand, tables = Tables("repair", rows, progress), list[RepairedTable]()
        for drift in drifts:
            with at_hand.at(drift.entry.table_key):
                tables.append(_judged(graph, state, drift, drifts, confirm=confirm, force=force))
        moved = [
            drift
            for drift, table in zip(drifts, tables, strict=True)
            if table.action in {RepairAction.HEALED, RepairAction.FORCED}
        ]
        is_forced = any(table.action is RepairAction.FORCED for table in tables)
        commit = _publish(graph, found, moved, FORCED_REPAIR_ACTOR if is_forced else REPAIR_ACTOR)
    if commit is not None:
        graph.follow_write(found)
    version = state.sequence if commit is None else commit.manifest_version
    return DriftRepair(name, confirm, force, version, tuple(tables), commit)


@contextmanager
def _held(graph: OpenGraph, branch: BranchIdentity) -> Iterator[tuple[ManifestState, tuple[TableDrift, ...]]]:
    """Hold every table of a branch while nobody writes it, and yield what nobody explains (M4)."""
    parts, queues, patience = graph.parts, graph.parts.queues, Patience("repair")
    while True:
        patience.await_quiet(parts)
        if living_holder(parts) is not None:
            raise SchemaApplyInProgress("repair is unavailable while a schema change is in progress")
        state = graph.state(branch.name)
        keys = [(entry.table_key, branch.name) for entry in state.tables.entries()]
        with queues.schema_gate, queues.branch_gates([branch.name]), queues.acquire_many(keys):
            found = observe_drift(parts, branch, graph.catalog_of(state), patience)
            if found is not None:
                yield found
                return
        patience.check()


def _judged(
    graph: OpenGraph,
    state: ManifestState,
    drift: TableDrift,
    drifts: Collection[TableDrift],
    *,
    confirm: bool,
    force: bool,
) -> RepairedTable:
    action = _action(drift, confirm=confirm, force=force)
    error = drift.obstacle
    if action is RepairAction.REFUSED and error is None:
        error = "it is not known that no row changed: look at the rows, then publish them with force"
    return RepairedTable(
        drift.entry.table_key,
        drift.entry.version,
        drift.head,
        drift.classification,
        action,
        drift.operations,
        _in_doubt(graph, state, drift, drifts),
        error if drift.classification is not DriftClass.NO_DRIFT else None,
    )


def _action(drift: TableDrift, *, confirm: bool, force: bool) -> RepairAction:
    """Return what is done: the table of the engine specification, 11.5."""
    if drift.classification is DriftClass.NO_DRIFT:
        return RepairAction.NO_OP
    if not confirm:
        return RepairAction.PREVIEW
    if drift.obstacle is not None:
        return RepairAction.REFUSED
    if drift.classification is DriftClass.VERIFIED_MAINTENANCE:
        return RepairAction.HEALED
    return RepairAction.FORCED if force else RepairAction.REFUSED


def _in_doubt(
    graph: OpenGraph, state: ManifestState, drift: TableDrift, drifts: Collection[TableDrift]
) -> RowsInDoubt:
    """Compare the rows of a table with those that are published, and check them as a write would (M1)."""
    if drift.classification is DriftClass.NO_DRIFT:
        return RowsInDoubt(0, 0, 0, (), 0)
    if drift.obstacle is not None:
        return RowsInDoubt()
    parts, entry = graph.parts, drift.entry
    head = PinnedTable(parts.address(entry), drift.head, entry.table_key)
    changed = changed_ids(parts.store, parts.pinned(entry), head)
    rows = RowsInDoubt(len(changed.inserted), len(changed.updated), len(changed.deleted), (), 0)
    if len(changed) == 0:
        return rows
    broken, total = _broken(graph, state, drift, drifts)
    return replace(rows, broken=broken, broken_total=total)


def _broken(
    graph: OpenGraph, state: ManifestState, drift: TableDrift, drifts: Collection[TableDrift]
) -> tuple[tuple[str, ...], int]:
    """Return what the table, and edges to it, would break if every table were published where it is."""
    entries = {entry.table_key: entry for entry in state.tables.entries()}
    shown = entries | {other.entry.table_key: _at_head(other) for other in drifts if other.obstacle is None}
    rows = PinnedRows(graph.parts, shown, unmoved)
    catalog = graph.catalog_of(state)
    touched = _touched(catalog, drift.entry.table_key)
    fitting = frozenset(key for key in shown if rows.fits(key, catalog))
    texts: list[str] = []
    total = 0
    for step in row_steps(rows, catalog, fitting):
        if step.table_key in touched:
            log = step.run()
            texts += [violation.message for violation in log.first_violations()]
            total += log.total
    return tuple(texts), total


def _touched(catalog: Catalog, table_key: str) -> frozenset[str]:
    """Return a table, and for one of nodes those of the edges that may end there."""
    edges = (
        edge.table_key
        for edge in catalog.edges.values()
        if table_key in {f"node:{edge.source}", f"node:{edge.target}"}
    )
    return frozenset((table_key, *edges))


def _at_head(drift: TableDrift) -> TableEntry:
    return replace(drift.entry, pin=replace(drift.entry.pin, version=drift.head))


def _publish(
    graph: OpenGraph, branch: BranchIdentity, moved: Sequence[TableDrift], author: str
) -> GraphCommit | None:
    """Publish tables where they are, in one commit that expects their old pins (M3)."""
    if not moved:
        return None
    parts = graph.parts
    changes = [
        UpdateTable(drift.entry.identity, drift.entry.table_key, pin_at_head(parts, drift)) for drift in moved
    ]
    expected = {drift.entry.identity: Expectation.of(drift.entry) for drift in moved}
    with shielded():
        files = _files(parts, moved)
        parts.syncer.sync(files, stage="table")
        lineage = LineageIntent(parts.new_id(), author, parts.clock(), sums=parts.summer.sum(files))
        hit("repair.post_sync_pre_publish")
        parts.check_writer()
        return graph.publisher.publish(branch, changes, expected, lineage).commit


def _files(parts: Parts, moved: Sequence[TableDrift]) -> list[str]:
    return [
        file
        for drift in moved
        for file in files_between(
            parts.store, parts.address(drift.entry), older=drift.entry.version, newer=drift.head
        )
    ]
