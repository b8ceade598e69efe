"""`open`: from a place to a graph that can be read and written.

O1  A dead writer never makes an open fail; a live one never makes it wait.
O2  A read-only open writes nothing and holds no lock.
O3  An open that fails gives its lease back.
"""

import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.commit.parts import Parts, boot_id, host_name, process_id
from omnigraph.commit.queues import WriteQueueManager
from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import GraphNotFound, StorageError, UnsupportedError
from omnigraph.core.failpoint import hit
from omnigraph.history.branches import Branches
from omnigraph.history.contract import check_against_manifest, read_contract
from omnigraph.history.coordinator import Coordinator
from omnigraph.history.identity import MAIN
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.operations.context import OpenGraph, make_publisher
from omnigraph.operations.file_checks import check_files_at_open
from omnigraph.storage.control.durability import Durability, Syncer, setting_from_environment
from omnigraph.storage.control.lease import LEASE_LIFETIME, WriterLease
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.probe import probe_store, refuse_file
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.files.sums import Summer, is_recording
from omnigraph.storage.tables.audit_table import AuditTable
from omnigraph.storage.tables.manifest_table import ManifestTable
from omnigraph.storage.tables.refs import RefStore
from omnigraph.storage.tables.stage import TableStager
from omnigraph.storage.tables.table import TableStore

if TYPE_CHECKING:
    from omnigraph.commit.publish import ManifestPublisher
    from omnigraph.embedding import EmbeddingConfig

_log = logging.getLogger("omnigraph")


def make_parts(uri: str, *, durability: Durability | None = None, upkeep: bool = True) -> Parts:
    """Return the parts of a graph at a place, whether or not it exists."""
    _refuse_windows()
    root = GraphRoot.parse(uri)
    durability = durability or setting_from_environment()
    store = TableStore(root.storage_options)
    adapter = open_adapter(root, durability)
    return Parts(
        root=root,
        adapter=adapter,
        store=store,
        stager=TableStager(store),
        refs=RefStore(store),
        branches=Branches(adapter, Path(root.uri) if root.is_local else None),
        coordinator=Coordinator(root, ManifestTable(store)),
        audit=AuditTable(store),
        syncer=Syncer(durability, root.is_local, root.uri if root.is_local else None),
        queues=WriteQueueManager.for_root(root.identity),
        warn=_log.warning,
        upkeep=upkeep,
        summer=Summer(root.uri if root.is_local else None, is_on=is_recording()),
    )


def open_graph(
    uri: str,
    *,
    is_writable: bool = True,
    durability: Durability | None = None,
    upkeep: bool = True,
    embedding: "EmbeddingConfig | None" = None,
    lease_lifetime_s: float = LEASE_LIFETIME,
) -> OpenGraph:
    """Open a graph: probe, sweep what dead writers left behind, read and check the schema.

    Every process that may write a graph on an object store must use the same lease lifetime.

    Raises:
        GraphNotFound: there is no graph at this place.
        BadRequest: the place is a file.
        FormatVersionError: this build does not read its format.
        SchemaContractConflict: schema files and manifest contradict each other.
        InvariantViolation: a table is behind its published version.
        GraphDamaged: a file of a table is missing or has the wrong length.
    """
    parts = make_parts(uri, durability=durability, upkeep=upkeep)
    refuse_file(parts.root)
    if not parts.adapter.exists(MANIFEST_DIR):
        raise GraphNotFound(f"no graph at {parts.root.uri}: create one with init")
    if is_writable:
        probe_store(parts.adapter, parts.root)
        parts = _with_lease(parts, lease_lifetime_s)
    publisher = make_publisher(parts) if is_writable else None
    try:
        with parts.queues.schema_gate:
            if publisher is not None:
                from omnigraph.commit.recovery.quarantine import quarantine_manifest, quarantine_tables
                from omnigraph.commit.recovery.sweep import SweepMode, sweep

                quarantine_manifest(parts)
                _prove_newest(parts, publisher)
                quarantine_tables(parts)
                sweep(parts, publisher, SweepMode.FULL)
            hit("open.before_schema_contract_read")
            contract = read_contract(parts.adapter)
            snapshot = parts.coordinator.state().snapshot()
            check_against_manifest(contract, snapshot)
        check_files_at_open(parts, snapshot)
        return OpenGraph(parts, contract, is_writable, publisher, embedding=embedding)
    except BaseException:
        _give_back_lease(parts)
        raise


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


def _with_lease(parts: Parts, lifetime_s: float) -> Parts:
    """Become the one writer process of a graph on an object store; a local disk has locks instead.

    Raises:
        WriterLeaseHeld: another process is the writer.
    """
    if parts.root.is_local:
        return parts
    lease = WriterLease.take(
        parts.adapter,
        host=host_name(),
        boot_id=boot_id(),
        pid=process_id(),
        clock=parts.clock,
        boot_clock=boot_clock,
        lifetime_s=lifetime_s,
    )
    return replace(parts, lease=lease)


def _give_back_lease(parts: Parts) -> None:
    """Let other processes try at once: otherwise it would be renewed for a handle that nobody holds (O3)."""
    try:
        if parts.lease is not None:
            parts.lease.close()
    except StorageError as error:
        parts.warn(f"the writer lease could not be given back and will expire by itself: {error}")


def close(graph: OpenGraph) -> None:
    """Release what is cached, and the writer's lease; a second call does nothing.

    From then on the handle refuses every call.
    """
    graph.is_closed = True
    graph.close_reading()
    graph.parts.coordinator.forget()
    if graph.parts.lease is not None:
        graph.parts.lease.close()


def refresh(graph: OpenGraph) -> None:
    """Heal, and read schema and manifest again."""
    graph.enter(None, "read", None)
    if graph.is_writable:
        graph.heal()
    with graph.parts.queues.schema_gate:
        hit("refresh.before_schema_reload")
        graph.parts.coordinator.forget()
        contract = read_contract(graph.parts.adapter)
        check_against_manifest(contract, graph.state().snapshot())
        graph.contract = contract


def _refuse_windows() -> None:
    if sys.platform == "win32":
        raise UnsupportedError("omnigraph runs on Linux and macOS, not on Windows")
