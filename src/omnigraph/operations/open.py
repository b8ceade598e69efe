"""`open`: from a place to a graph that can be read and written, with the file checks of every open.

O1  A dead writer never makes an open fail. A live one never makes it wait, on an object store for no longer
    than its next sign of life.
O2  A read-only open writes nothing and holds no lock.
O3  An open that fails is no writer any more.
O4  On an object store a process that wants to be the only writer takes the lease before it looks for others,
    and every other one becomes a writer before it looks at the lease: of two, one sees the other.

L1  An open compares lengths, of the newest files of the newest tables on main: a fixed number of files,
    however large the graph is. That is where a power cut, or copying a graph in use, leaves its traces.
L2  Where checksums are asked for, a version of a table is checked before the handle reads anything from it,
    each file once. What was never recorded is not checked.
L3  A mismatch is a `GraphDamaged`, and nothing of that version is read.
"""

import logging
import sys
import threading
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.commit.parts import Parts, WriteQueueManager, boot_id, host_name, process_id
from omnigraph.commit.rewritten import Level, damaged, level_from_environment
from omnigraph.core.clock import boot_clock
from omnigraph.core.environment import number_setting, word_setting
from omnigraph.core.errors import BadRequest, GraphNotFound, StorageError, UnsupportedError, WriterLeaseHeld
from omnigraph.core.failpoint import hit
from omnigraph.history.branches import Branches
from omnigraph.history.contract import check_against_manifest, current_contract
from omnigraph.history.coordinator import Coordinator
from omnigraph.history.fold import TableEntry
from omnigraph.history.head_note import HeadNotes
from omnigraph.history.identity import MAIN, MAIN_BRANCH
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.history.readers import Readers
from omnigraph.history.recorded_sums import recorded_sums
from omnigraph.history.state import Snapshot
from omnigraph.operations.clone.journal import refuse_unfinished
from omnigraph.operations.context import OpenGraph, make_publisher
from omnigraph.policy.gate import OPEN_GATE, Gate
from omnigraph.policy.request import Action
from omnigraph.storage.control.durability import Durability, Syncer, setting_from_environment
from omnigraph.storage.control.graph_files import GraphFiles, graph_files
from omnigraph.storage.control.lease import (
    LEASE_LIFETIME,
    LIFETIME_MAX_S,
    WRITER_LEASE,
    LeaseRecord,
    WriterLease,
)
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.probe import probe_store
from omnigraph.storage.control.uri import GraphRoot, refuse_file
from omnigraph.storage.control.writers import Writer
from omnigraph.storage.files.sums import FileSum, Summer, is_recording
from omnigraph.storage.files.version_file import HollowContent, NamedFile, decode_version, version_file_name
from omnigraph.storage.tables.handle import TableAddress, ref_path
from omnigraph.storage.tables.manifest_table import ManifestTable
from omnigraph.storage.tables.stage import TableStager
from omnigraph.storage.tables.table import TableStore

if TYPE_CHECKING:
    from omnigraph.commit.publish import ManifestPublisher
    from omnigraph.embedding import EmbeddingConfig

_log = logging.getLogger("omnigraph")

TABLES_COMPARED_MAX = 8  # with the fragments, about a millisecond: a few percent of an open
FRAGMENTS_COMPARED_MAX = 8
_INDEXES = "_indices/"  # below a table


class Writers(StrEnum):
    """How many processes may write a graph on an object store."""

    MANY = "many"
    ONE = "one"


MAINTENANCE = "OMNIGRAPH_MAINTENANCE"


class MaintenanceMode(StrEnum):
    """Where a process maintains the tables that it writes: inside its writes, or on a thread of its own."""

    INLINE = "inline"
    BACKGROUND = "background"


def make_parts(uri: str, *, durability: Durability | None = None, upkeep: bool = True) -> Parts:
    """Return the parts of a graph at a place, whether or not it exists."""
    _refuse_windows()
    root = GraphRoot.parse(uri)
    durability = durability or setting_from_environment()
    store = TableStore(root.storage_options)
    adapter = open_adapter(root, durability)
    notes = None if root.is_local else HeadNotes(root, adapter, store, _log.warning)
    return Parts(
        root=root,
        adapter=adapter,
        store=store,
        stager=TableStager(store),
        branches=Branches(adapter, Path(root.uri) if root.is_local else None),
        coordinator=Coordinator(root, ManifestTable(store), notes),
        syncer=Syncer(durability, root.is_local, root.uri if root.is_local else None),
        queues=WriteQueueManager.for_root(root.identity),
        warn=_log.warning,
        upkeep=upkeep,
        summer=Summer(root.uri if root.is_local else None, is_on=is_recording()),
        readers=Readers.for_root(root.identity),
    )


def open_graph(
    uri: str,
    *,
    is_writable: bool = True,
    durability: Durability | None = None,
    upkeep: bool = True,
    embedding: "EmbeddingConfig | None" = None,
    writers: Writers | None = None,
    lifetime_s: float | None = None,
    heals: bool = True,
    maintenance: MaintenanceMode | None = None,
    gate: Gate = OPEN_GATE,
    needs_indexes: bool = True,
) -> OpenGraph:
    """Open a graph: probe, sweep what dead writers left behind, read and check the schema.

    `writers` and the lifetime of a writer are for object stores; None takes them from the environment, and
    `maintenance` as well. Only maintenance that refuses to run beside unfinished writes opens without healing
    them, and only what builds indexes anew opens without their files.

    Raises:
        GraphNotFound: there is no graph at this place.
        CloneUnfinished: there is a part of a copy of one.
        BadRequest: the place is a file, or is on a disk, where no process can be the only writer.
        WriterLeaseHeld: a process that writes this graph on an object store stands in the way.
        FormatVersionError: this build does not read its format.
        SchemaContractConflict: schema files and manifest contradict each other.
        InvariantViolation: a table is behind its published version.
        GraphDamaged: a file of a table is missing or has the wrong length.
    """
    parts = make_parts(uri, durability=durability, upkeep=upkeep)
    refuse_file(parts.root)
    if not parts.coordinator.recall():
        refuse_unfinished(parts.adapter, parts.root)
        if not parts.adapter.exists(MANIFEST_DIR):
            raise GraphNotFound(f"no graph at {parts.root.uri}: create one with init")
    if is_writable:
        parts = _as_writer(parts, writers, lifetime_s)
        parts.coordinator.leave_notes()
    publisher = make_publisher(parts) if is_writable else None
    try:
        with parts.queues.schema_gate:
            if publisher is not None and heals:
                from omnigraph.commit.recovery.quarantine import quarantine_manifest, quarantine_tables
                from omnigraph.commit.recovery.sweep import SweepMode, sweep
                from omnigraph.commit.schema_lock import remove_dead_lock

                quarantine_manifest(parts)
                _migrate_main(parts, publisher)
                _prove_newest(parts, publisher)
                quarantine_tables(parts)
                sweep(parts, publisher, SweepMode.FULL)
                remove_dead_lock(parts)
            hit("open.before_schema_contract_read")
            contract = current_contract(parts.adapter, parts.coordinator, may_write=publisher is not None)
            snapshot = parts.coordinator.known().snapshot()  # what the contract was compared with
            check_against_manifest(contract, snapshot)
        if not is_writable and snapshot.stamp < INTERNAL_SCHEMA_VERSION:
            parts = _with_native_branches(parts)
        check_files_at_open(parts, snapshot, needs_indexes=needs_indexes)
        graph = OpenGraph(parts, contract, is_writable, publisher, gate, embedding=embedding)
        if is_writable and upkeep:
            _begin_maintenance(graph, maintenance)
        return graph
    except BaseException:
        _end(parts)
        raise


def _migrate_main(parts: Parts, publisher: "ManifestPublisher") -> None:
    """Bring main to the newest format, before any branch is looked at.

    What this reads is what the open needs anyway. In an object store a head note says that a writer of this
    format has been there, and nothing is read: if the stamp was lost all the same, the next publish notices.

    Raises:
        FormatVersionError: this build does not read its format.
        ConflictError: another process holds the publish lock of main, or keeps changing its manifest.
        StorageError: something cannot be read: a lineage that is not proven absent is never taken for empty.
    """
    if not parts.coordinator.is_recalled and parts.coordinator.is_older():
        with publisher.turn(MAIN):
            publisher.bring_up(MAIN_BRANCH)


def _with_native_branches(parts: Parts) -> Parts:
    """Return parts whose branches are the refs of the manifest: nothing else says which ones there are."""
    from omnigraph.history.native_branches import NativeBranches

    return replace(parts, branches=NativeBranches(parts.adapter, parts.local_root, parts.coordinator))


def _begin_maintenance(graph: OpenGraph, mode: MaintenanceMode | None) -> None:
    if mode is None:
        mode = word_setting(MAINTENANCE, MaintenanceMode.INLINE)
    if mode is MaintenanceMode.BACKGROUND:
        from omnigraph.operations.background import Maintenance

        graph.maintenance = Maintenance(graph)
        graph.maintenance.begin()


def _prove_newest(parts: Parts, publisher: "ManifestPublisher") -> None:
    """Sync main's newest version and note it, if a power cut or a dead publisher left no note of it.

    From now on it may be read, which amounts to an acknowledgement. One that cannot be synced stays unproven.
    """
    if not parts.syncer.is_active:
        return
    address = parts.coordinator.address()
    try:
        if parts.coordinator.manifest.synced_version(address) >= parts.store.latest_version(address):
            return  # without taking a lock needlessly
        with publisher.publish_lock(MAIN, wait_s=0) as is_held:
            if is_held:
                publisher.supersede_unsynced(None)
                publisher.make_durable(None, parts.store.latest_version(address))
    except StorageError as error:
        parts.warn(f"the newest version of the manifest could not be synced: {error}")


def _as_writer(parts: Parts, writers: Writers | None, lifetime_s: float | None) -> Parts:
    """Become a writer of a graph on an object store, or the only one; a local disk has locks instead (O4).

    What the place promises is proven on the way: in a store with the object of the writer, unless a lease is
    to rest on it before.

    Raises:
        StorageError: a promise does not hold (kind `configuration`), or the store failed.
        WriterLeaseHeld: another process is the only writer, or writes beside one that wants to be that.
        BadRequest: nobody can be the only writer on a local disk.
    """
    if writers is None and not parts.root.is_local:
        writers = word_setting("OMNIGRAPH_WRITERS", Writers.MANY)
    if parts.root.is_local or writers is Writers.ONE:
        probe_store(parts.adapter, parts.root)
    if parts.root.is_local:
        if writers is Writers.ONE:
            raise BadRequest("writers='one' is for object stores: on a disk any process may write")
        return parts
    if lifetime_s is None:
        name, default = "OMNIGRAPH_WRITER_LIFETIME", int(LEASE_LIFETIME)
        lifetime_s = float(number_setting(name, default, least=1, most=LIFETIME_MAX_S))
    lease = _take_lease(parts, lifetime_s) if writers is Writers.ONE else None
    try:
        writer = Writer.begin(
            parts.adapter,
            host=host_name(),
            boot_id=boot_id(),
            pid=process_id(),
            boot_clock=boot_clock,
            lifetime_s=lifetime_s,
            unproven=parts.root if lease is None else None,
        )
    except BaseException:
        if lease is not None:
            lease.close()
        raise
    writer.lease = lease
    parts = replace(parts, writer=writer)
    try:
        if lease is None:
            _refuse_the_only_writer(parts, lifetime_s)
        else:
            _refuse_others(writer)
    except BaseException:
        _end(parts)
        raise
    return parts


def _take_lease(parts: Parts, lifetime_s: float) -> WriterLease:
    return WriterLease.take(
        parts.adapter,
        host=host_name(),
        boot_id=boot_id(),
        pid=process_id(),
        clock=parts.clock,
        boot_clock=boot_clock,
        lifetime_s=lifetime_s,
    )


def _refuse_the_only_writer(parts: Parts, lifetime_s: float) -> None:
    """Refuse to write beside a process that is to be the only one; one that is dead loses its lease.

    Raises:
        WriterLeaseHeld: there is one.
    """
    text = parts.adapter.read_text_if_exists(WRITER_LEASE)
    if text is not None and not LeaseRecord.from_json(text).is_free:
        _take_lease(parts, lifetime_s).close()


def _refuse_others(writer: Writer) -> None:
    """Refuse to be the only writer beside others; of one that is silent, its end is awaited.

    Raises:
        WriterLeaseHeld: there is one.
    """
    for other in writer.watch.others():
        if writer.watch.await_sign(other, lambda: False):
            continue
        found = writer.watch.describe(other)
        if found is not None and found.ended_by is None:
            raise WriterLeaseHeld(host=found.host, pid=found.pid, expires_at="it closes the graph")


def _end(parts: Parts) -> None:
    """Let other processes go on at once: otherwise this one would count as a writer that nobody is (O3)."""
    try:
        if parts.writer is not None:
            parts.writer.close()
    except StorageError as error:
        parts.warn(f"that this process no longer writes could not be said, and will show by itself: {error}")


def close(graph: OpenGraph) -> None:
    """Release what is cached, and stop being a writer; a second call does nothing.

    From then on the handle refuses every call.
    """
    if graph.maintenance is not None:
        graph.maintenance.end()
    graph.is_closed = True
    graph.close_reading()
    graph.parts.coordinator.close()
    _end(graph.parts)


def refresh(graph: OpenGraph, *, actor: str | None = None, branch: str | None = None) -> None:
    """Heal, and read schema and manifest again."""
    graph.enter(actor, Action.READ, branch)
    if graph.is_writable:
        graph.heal()
    with graph.parts.queues.schema_gate:
        hit("refresh.before_schema_reload")
        graph.parts.coordinator.forget()
        contract = current_contract(graph.parts.adapter, graph.parts.coordinator, may_write=graph.is_writable)
        check_against_manifest(contract, graph.parts.coordinator.known().snapshot())
        graph.learn(contract)


def _refuse_windows() -> None:
    if sys.platform == "win32":
        raise UnsupportedError("omnigraph runs on Linux and macOS, not on Windows")


def check_files_at_open(parts: Parts, snapshot: Snapshot, *, needs_indexes: bool = True) -> None:
    """Check what an open checks (L1), and, where that is asked for, what is read from then on (L2).

    Files of indexes are left out for those who come to build them anew.

    Raises:
        GraphDamaged: a file is missing, or has the wrong length.
    """
    level = level_from_environment()
    if level is Level.OFF or not parts.root.is_local:
        return
    files = graph_files(parts.root)
    newest = sorted(snapshot.entries.values(), key=lambda entry: entry.pin.published_at, reverse=True)
    for entry in newest[:TABLES_COMPARED_MAX]:
        _check_lengths(files, entry, needs_indexes=needs_indexes)
    if level is Level.CHECKSUMS:
        parts.store.before_open = ReadChecks(parts, files, needs_indexes=needs_indexes).check


def _check_lengths(files: GraphFiles, entry: TableEntry, *, needs_indexes: bool) -> None:
    dataset = ref_path(entry.location, entry.pin.ref)
    for file in _named(files, dataset, entry.version, fragments_max=FRAGMENTS_COMPARED_MAX):
        if needs_indexes or not file.path.startswith(_INDEXES):
            _check_length(files, f"{dataset}/{file.path}", file.size)


def _named(
    files: GraphFiles, dataset: str, version: int, *, fragments_max: int | None = None
) -> tuple[NamedFile, ...]:
    """Return the files that a version names in its own folder."""
    path = f"{dataset}/{version_file_name(version)}"
    content = files.read(path)
    if content is None:
        raise damaged(path, "is missing")
    try:
        return decode_version(content, fragments_max=fragments_max).files
    except HollowContent as hollow:
        raise damaged(path, str(hollow)) from hollow


def _check_length(files: GraphFiles, path: str, expected: int | None) -> None:
    found = files.length(path)
    if found is None:
        raise damaged(path, "is missing")
    if expected is not None and found != expected:
        raise damaged(path, f"has {found} bytes instead of {expected}")


class ReadChecks:
    """Compares the files of tables with their checksums the first time a handle opens a version (L2)."""

    def __init__(self, parts: Parts, files: GraphFiles, *, needs_indexes: bool = True) -> None:
        """Take the graph and its files."""
        self._parts = parts
        self._files = files
        self._needs_indexes = needs_indexes
        self._sums: dict[str, FileSum] = {}
        self._read_at: dict[str | None, int] = {}  # by manifest ref, the version whose sums are known
        self._done: set[str] = set()
        self._lock = threading.Lock()

    def check(self, address: TableAddress, version: int) -> None:
        """Compare all files of a version of a table, including those that a fork shares with its source.

        A version that is not there has no files: it may have been cleaned up, or have stayed behind when the
        graph was copied. Whoever opens it is told.

        Raises:
            GraphDamaged: one is missing, or is not what its commit wrote.
        """
        dataset = address.open_uri.removeprefix(self._parts.root.child(""))
        if self._files.length(f"{dataset}/{version_file_name(version)}") is None:
            return
        with self._lock:
            named = [
                f"{dataset}/{file.path}"
                for file in _named(self._files, dataset, version)
                if self._needs_indexes or not file.path.startswith(_INDEXES)
            ]
            self._compare([f"{dataset}/{version_file_name(version)}", *named])
        start = self._parts.store.ref_start(address) if address.ref is not None else None
        if start is not None:
            self.check(TableAddress(address.uri, start.parent), start.version)

    def _compare(self, paths: list[str]) -> None:
        fresh = [path for path in paths if path not in self._done]
        if any(path not in self._sums for path in fresh):
            self._learn()
        for path in fresh:
            expected = self._sums.get(path)
            _check_length(self._files, path, None if expected is None else expected.length)
            if expected is not None and self._files.checksum(path) != expected.checksum:
                raise damaged(path, "does not hold what its commit wrote")
            self._done.add(path)

    def _learn(self) -> None:
        """Read the checksums that were recorded since the last time, on every branch."""
        coordinator = self._parts.coordinator
        for ref in (branch.ref for branch in self._parts.branches.live()):
            handle = coordinator.manifest.open_fresh(coordinator.address(ref))
            known = self._read_at.get(ref)
            if known != handle.version:
                self._sums |= recorded_sums(coordinator.manifest, handle, published_after=known)
                self._read_at[ref] = handle.version
