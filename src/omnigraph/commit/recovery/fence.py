"""Fences: how a healer on an object store keeps a dead writer from ever moving a table again.

N1  A look at oneself is no fence: a process can stall between the look and its commit, for any length of
    time. A process that takes over a sidecar moves the HEAD of every table that it names by a commit without
    effect, before it judges; a commit that was staged earlier is refused from then on.
N2  A fence belongs to the writer that put it there: recovery never counts it as movement, and publishes it.
N3  A first write of a branch is not fenced: it works on its own fork. Either everything on it was committed,
    and nothing more can come; or the fork is dropped, and what comes later cannot be read.
N4  On a local disk a lock tells whether a writer is alive, and there are no fences.

Commits of indexes and layout can land after a fence. They change no row: `adopt` publishes them. So can the
restore of a healer that was stopped right before it: what it hid is published, and `adopt` shows it again.
"""

from collections.abc import Sequence

from omnigraph.commit.changes import Expectation, LineageIntent, UpdateTable
from omnigraph.commit.parts import Parts
from omnigraph.commit.publish import ManifestPublisher
from omnigraph.commit.recovery.pending import list_pending
from omnigraph.commit.sidecar import Sidecar, WriterKind
from omnigraph.core.errors import CommitConflict, StaleCommit, StorageError
from omnigraph.core.failpoint import hit
from omnigraph.history.commits import MAINTENANCE_ACTOR
from omnigraph.history.fold import TableEntry
from omnigraph.history.manifest_rows import PublishedPin
from omnigraph.history.state import ManifestState
from omnigraph.storage.files.transactions import TransactionInfo
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.stage import OPERATION_ID_PROPERTY, WRITER_KIND_PROPERTY
from omnigraph.storage.tables.undo import FENCE_PROPERTY, TableUndo

FENCES_MAX = 10  # tries on one table: what comes in between is the last commit of the dead writer
_LAYOUT_OPERATIONS = frozenset({"reserve", "rewrite", "create_index", "config"})
_LAYOUT_WRITERS = frozenset({WriterKind.ENSURE_INDICES.value, WriterKind.OPTIMIZE.value})


def fence(parts: Parts, sidecar: Sidecar, state: ManifestState) -> None:
    """Make sure that nothing staged earlier moves the tables of a sidecar (N1, N3).

    That includes what this process itself has sent: the store may act on a request after its failure.

    Raises:
        WriterEnded: another process has taken over from us as well.
        StorageError: the store failed.
    """
    if parts.writer is None:
        return  # N4
    for table in sidecar.tables:
        pin = state.tables.pins.get(table.identity)
        is_dead = state.tables.is_dead(table.identity)  # nobody can publish it, and its files may be gone
        if pin is not None and pin.ref == table.ref and not is_dead:
            address = parts.address_of(table.table_path, table.ref)
            _fence(parts, address, sidecar.operation_id, parts.writer.writer_id)


def _fence(parts: Parts, address: TableAddress, operation_id: str, healer: str) -> None:
    # One that we put there for an earlier write stands below what this one may have staged since.
    ours = {FENCE_PROPERTY: healer, OPERATION_ID_PROPERTY: operation_id}
    for _ in range(FENCES_MAX):
        head = parts.store.open_head(address)
        newest = parts.store.transaction_info(address, head.version)
        if ours.items() <= newest.properties.items():
            return
        parts.check_writer()
        hit("recovery.before_fence")
        try:
            TableUndo(parts.store).commit_fence(head, operation_id=operation_id, healer=healer)
        except (CommitConflict, StaleCommit):
            continue  # somebody was faster; the dead writer for the last time
        return
    raise StorageError(f"{address.open_uri} moves too often to be fenced", kind="transient")


def is_fence(made: TransactionInfo) -> bool:
    """Return whether a version is a fence, whoever put it there."""
    return FENCE_PROPERTY in made.properties


def without_fences(made: Sequence[TransactionInfo]) -> Sequence[TransactionInfo]:
    """Return versions without the fences after the last other one (N2)."""
    end = len(made)
    while end and is_fence(made[end - 1]):
        end -= 1
    return made[:end]


def is_layout(made: TransactionInfo) -> bool:
    """Return whether a version was made by the library itself and changes no row."""
    is_unmarked = OPERATION_ID_PROPERTY not in made.properties
    return is_fence(made) or (is_unmarked and made.operation in _LAYOUT_OPERATIONS)


def fenced_tables(parts: Parts, sidecar: Sidecar, state: ManifestState) -> list[UpdateTable]:
    """Return the pins of tables that only fences have moved, for a writer that had published after all."""
    if parts.writer is None:
        return []
    moved = []
    for table in sidecar.tables:
        pin = state.tables.pins.get(table.identity)
        if pin is None or pin.ref != table.ref or state.tables.is_dead(table.identity):
            continue
        address = parts.address_of(table.table_path, table.ref)
        made = _made_since(parts, address, pin.version)
        if made and all(is_fence(version) for version in made):
            moved.append(UpdateTable(table.identity, table.table_key, _pin(parts, address, pin, made)))
    return moved


def adopt(parts: Parts, publisher: ManifestPublisher, branch: str, table_key: str) -> bool:
    """Settle what a writer that was taken for dead did to a table too late, if no row is in doubt.

    That is indexes, layout or fences, which are published, and restores of healers, which are taken back.
    Returns whether the table can be written now: also if others have settled it, or are about to.
    """
    if parts.writer is None:
        return False
    with parts.queues.acquire_many([(table_key, branch)]):
        found = parts.branches.resolve(branch)
        entry = parts.coordinator.state(found).snapshot().entries.get(table_key)
        if entry is None:
            return False
        address = parts.address(entry)
        made = _made_since(parts, address, entry.version)
        if not made or _is_named(parts, entry):
            return True
        if not all(_changes_no_row(version) or _is_late_restore(version) for version in made):
            return False
        parts.check_writer()
        if any(_is_late_restore(version) for version in made):
            made = [_take_back(parts, entry, made[-1].version)]
        change = UpdateTable(entry.identity, table_key, _pin(parts, address, entry.pin, made))
        lineage = LineageIntent(parts.new_id(), MAINTENANCE_ACTOR, parts.clock())
        publisher.publish(found, [change], {entry.identity: Expectation.of(entry)}, lineage)
    return True


def _changes_no_row(made: TransactionInfo) -> bool:
    is_ours = made.properties.get(WRITER_KIND_PROPERTY) in _LAYOUT_WRITERS
    return is_layout(made) or (is_ours and made.operation in _LAYOUT_OPERATIONS)


def _is_late_restore(made: TransactionInfo) -> bool:
    """Return whether a version was made by recovery, and by the one operation that no fence refuses."""
    return made.operation == "restore" and OPERATION_ID_PROPERTY in made.properties


def _take_back(parts: Parts, entry: TableEntry, newest: int) -> TransactionInfo:
    """Show the published content again; nobody else commits rows to a table that is ahead of its pin."""
    address = parts.address(entry)
    head, pinned = parts.store.open_at(address, newest), parts.store.open_at(address, entry.version)
    staged, _ = TableUndo(parts.store).stage_rollback(head, pinned)
    committed = parts.stager.commit_staged(
        staged, operation_id=parts.new_id(), writer_kind=WriterKind.OPTIMIZE.value
    )
    return parts.store.transaction_info(address, committed.version)


def _is_named(parts: Parts, entry: TableEntry) -> bool:
    place = (entry.identity, entry.pin.ref)
    named = (table for pending in list_pending(parts) for table in pending.sidecar.tables)
    return any((table.identity, table.ref) == place for table in named)


def _made_since(parts: Parts, address: TableAddress, version: int) -> list[TransactionInfo]:
    newest = parts.store.latest_version(address)
    return parts.store.transactions(address, range(version + 1, newest + 1))


def _pin(
    parts: Parts, address: TableAddress, pin: PublishedPin, made: Sequence[TransactionInfo]
) -> PublishedPin:
    """Return the pin at the last of some versions that changed no row."""
    handle = parts.store.open_at(address, made[-1].version)
    return PublishedPin(
        handle.version,
        pin.ref,
        handle.row_count,
        handle.transaction_uuid,
        pin.branch,
        upkeep_version=pin.upkeep_version,
    )
