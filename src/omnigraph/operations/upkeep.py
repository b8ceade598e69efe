"""Upkeep: small fragments folded and new rows indexed, every 64 commits of a table, as part of writing.

K1  Whether a table is due is read from its pins: every process agrees, and a restart forgets nothing. A round
    is due 64 versions after the previous one; a failed one is retried after 64 more. A write that brings the
    rows without an index to a number is followed by a round as well: every later write looks through them.
K2  Nothing that goes wrong here makes the write before it fail, delays it by a reopen, or changes its result.
K3  One sidecar per table: what moved can always go forward.
K4  A round ends with the removal of copies that nobody reads; versions that a pin names, past ones included,
    are the history and stay.
K5  A process with a maintenance thread leaves all of this to it (`background.py`).
K6  Damage is not copied: files are compared before they are written anew (N1 of `commit/rewritten.py`).
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from omnigraph.commit.changes import published_version
from omnigraph.commit.parts import QueueKey
from omnigraph.commit.publish import UPKEEP_INTERVAL
from omnigraph.commit.rewritten import Chosen, compare_before_rewrite
from omnigraph.commit.section import FailpointNames, TableCommit
from omnigraph.commit.sidecar import WriterKind
from omnigraph.commit.table_locks import turn_of_tables
from omnigraph.commit.write import Attempt, Change, owns
from omnigraph.core.failpoint import hit
from omnigraph.core.limits import SMALL_FRAGMENT_ROWS
from omnigraph.history.commits import GraphCommit
from omnigraph.history.fold import TableEntry
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.storage.files.dataset_file import remove_transactions
from omnigraph.storage.tables.index import uncovered_rows
from omnigraph.storage.tables.residual import InlineCommitResidual, names_before_upkeep
from omnigraph.storage.tables.staged import CommittedTable

UNCOVERED_ROWS_MAX = SMALL_FRAGMENT_ROWS  # looking through so many costs a lookup half as much as the rest

_FAILPOINTS = FailpointNames(
    post_sidecar="upkeep.post_sidecar_pre_compact",
    post_table=None,
    pre_publish="upkeep.post_phase_b_pre_manifest_commit",
    post_publish="upkeep.post_publish_pre_sidecar_delete",
)


def after_write(graph: OpenGraph, before: Snapshot, commit: GraphCommit, *, rows: int) -> None:
    """Do what a landed write pays for: upkeep of its tables, then what queries derive from them.

    `rows` is how many it wrote, at most, that an index should cover.
    """
    if graph.maintenance is not None:
        graph.maintenance.wrote(before.branch_identity, rows)  # K5
    elif graph.parts.upkeep:
        _run(graph, before, commit, rows)
    graph.follow_write(before.branch_identity)


def _run(graph: OpenGraph, before: Snapshot, commit: GraphCommit, rows: int) -> None:
    """Maintain the tables that a commit took to the end of an interval, or left with many uncovered rows."""
    branch = before.branch_identity.name
    try:
        hit("upkeep.post_write_pre_plan")
        state = graph.last_seen(before.branch_identity)
        moved = [entry for entry in state.tables.entries() if _has_moved(entry, before, commit)]
        for entry in moved:
            former = before.entries[entry.table_key]
            if _has_crossed(former, entry) or has_many_uncovered(graph, entry, rows):
                tend(graph, branch, entry)
    except Exception as error:  # noqa: BLE001 - the write has already landed; this is only upkeep
        graph.parts.warn(f"upkeep failed and will be retried later: {error}")


def _has_moved(entry: TableEntry, before: Snapshot, commit: GraphCommit) -> bool:
    """Say whether a table is as the commit left it, on the branch's own storage."""
    if entry.table_key not in before.entries or entry.pin.published_at != commit.manifest_version:
        return False
    return owns(before.branch_identity, entry)  # a merge may have set a branch on versions of main


def _has_crossed(former: TableEntry, entry: TableEntry) -> bool:
    start = entry.pin.upkeep_version
    return (former.version - start) // UPKEEP_INTERVAL != (entry.version - start) // UPKEEP_INTERVAL


def is_due_on_a_thread(entry: TableEntry, *, tried: int) -> bool:
    """Say whether a thread should begin a round: no write waits for it, so it need not wait so long.

    With the fragments that segments of indexes keep apart, a table then stays below an interval of them.
    `tried` is the version at which a round was last tried.
    """
    return entry.version - max(entry.pin.upkeep_version, tried) >= UPKEEP_INTERVAL * 3 // 4


def has_many_uncovered(graph: OpenGraph, entry: TableEntry, rows: int) -> bool:
    """Say whether lookups look through many rows, after a write of so many that an interval may add up."""
    if rows <= UNCOVERED_ROWS_MAX // UPKEEP_INTERVAL:
        return False
    return uncovered_rows(graph.parts.open(entry)) >= UNCOVERED_ROWS_MAX


Fold = Callable[[OpenGraph, TableEntry, str], CommittedTable | None]


def tend(
    graph: OpenGraph,
    branch: str,
    due: TableEntry,
    fold: "Fold | None" = None,
    names: FailpointNames = _FAILPOINTS,
    *,
    chosen: Chosen = names_before_upkeep,
    waits: bool = False,
) -> bool:
    """Maintain one table under a sidecar of its own; return whether that was tried.

    `fold` is given the table and the id of the operation; what it writes anew is `chosen` and compared (K6).
    A table that somebody else writes is left alone, unless the caller `waits` for its queue.

    Raises:
        ConflictError, RecoveryRequired, StorageError: as every write.
        GraphDamaged: a file that would be written anew is not what its commit wrote.
    """
    parts = graph.parts
    with _held(graph, (due.table_key, branch), waits=waits) as is_held:
        if not is_held:
            return False
        state = graph.state(branch)
        entry = _current(state, due) if not waits else state.snapshot().entries.get(due.table_key)
        if entry is None or not owns(state.branch, entry):
            return False
        compare_before_rewrite(parts, state.branch, entry, chosen)
        moved = frozenset({entry.table_key})
        change = Change(WriterKind.OPTIMIZE, state.snapshot(), moved, names)
        attempt = Attempt(parts, graph.publisher, change)
        attempt.look_again([entry], state)
        work = fold or _fold
        attempt.commit([TableCommit(entry, None, (), lambda operation_id: work(graph, entry, operation_id))])
        # What made the versions up to the pin is settled, and in the version files as well (K4).
        remove_transactions(parts.open(entry), below=entry.version)
    return True


@contextmanager
def _held(graph: OpenGraph, key: QueueKey, *, waits: bool) -> Iterator[bool]:
    """Hold a table inside this process and between those of this host; yield whether it is held."""
    parts, (table_key, branch) = graph.parts, key
    with _queue(graph, key, waits=waits) as is_held:
        if not is_held:
            yield False
            return
        with turn_of_tables(parts, branch, moved=[table_key], wait_s=None if waits else 0) as is_ours:
            yield is_ours or waits or parts.local_root is None


@contextmanager
def _waiting(graph: OpenGraph, key: QueueKey) -> Iterator[bool]:
    with graph.parts.queues.acquire_many([key]):
        yield True


def _queue(graph: OpenGraph, key: QueueKey, *, waits: bool) -> AbstractContextManager[bool]:
    return _waiting(graph, key) if waits else graph.parts.queues.try_one(key)


def _current(state: ManifestState, due: TableEntry) -> TableEntry | None:
    """Return the current state of the table, or None if another writer has moved it."""
    if published_version(state.tables, due.identity) != due.version:
        return None
    return next(entry for entry in state.tables.entries() if entry.identity == due.identity)


def _fold(graph: OpenGraph, entry: TableEntry, _operation_id: str) -> CommittedTable | None:
    """Fold small fragments, then index the rows that no index covers."""
    parts = graph.parts
    address = parts.address(entry)
    inline = InlineCommitResidual(parts.store)
    compaction = inline.compact_files(address, target_rows=SMALL_FRAGMENT_ROWS)
    hit("upkeep.post_compact_pre_index")
    parts.check_writer()
    folded = inline.optimize_indices(address)
    if folded.version == entry.version:
        return None
    handle = parts.store.open_at(address, folded.version)
    files = (*compaction.files, *folded.files)
    return CommittedTable(address, folded.version, handle.row_count, str(handle.transaction_uuid), files)
