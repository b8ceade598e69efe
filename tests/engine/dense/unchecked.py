"""Writes that no validator has seen: what a defect, or another program, could leave."""

from typing import Any

import pyarrow as pa

from omnigraph.commit.changes import UpdateTable
from omnigraph.graph.graph import Graph
from omnigraph.history.manifest_rows import PublishedPin
from omnigraph.storage.tables.residual import InlineCommitResidual
from omnigraph.storage.tables.stage import StagedWrite
from omnigraph.storage.tables.table import SnapshotHandle
from omnigraph.storage.tables.undo import TableUndo
from tests.support.engine import Publisher
from tests.support.seam import internals


def publish_rows(graph: Graph, table_key: str, rows: list[dict[str, Any]]) -> None:
    """Append rows and publish them."""
    handle = _handle(graph, table_key)
    table = pa.Table.from_pylist(rows, schema=handle.schema)
    _publish(graph, table_key, internals(graph).parts.stager.stage_append(handle, table))


def publish_delete(graph: Graph, table_key: str, ids: list[str]) -> None:
    """Delete rows, and nothing that hangs on them, and publish that."""
    staged = internals(graph).parts.stager.stage_delete(_handle(graph, table_key), ids)
    assert staged is not None
    _publish(graph, table_key, staged)


def publish_restore(graph: Graph, table_key: str, version: int) -> None:
    """Bring back an older version of a table and publish that."""
    parts, entry = internals(graph).parts, graph.snapshot().entry(table_key)
    older = parts.store.open_at(parts.address(entry), version)
    staged, _ = TableUndo(parts.store).stage_rollback(_handle(graph, table_key), older)
    _publish(graph, table_key, staged)


def publish_compaction(graph: Graph, table_key: str) -> int:
    """Fold all fragments, publish that, and return how many went."""
    parts, entry = internals(graph).parts, graph.snapshot().entry(table_key)
    outcome = InlineCommitResidual(parts.store).compact_files(parts.address(entry), target_rows=1 << 20)
    handle = parts.store.open_at(parts.address(entry), outcome.version)
    _pin(graph, table_key, outcome.version, handle.row_count, str(handle.transaction_uuid))
    return outcome.fragments_removed


def _handle(graph: Graph, table_key: str) -> SnapshotHandle:
    parts, entry = internals(graph).parts, graph.snapshot().entry(table_key)
    return parts.open(entry)


def _publish(graph: Graph, table_key: str, staged: StagedWrite) -> None:
    committed = internals(graph).parts.stager.commit_staged(staged, operation_id="t", writer_kind="t")
    _pin(graph, table_key, committed.version, committed.row_count, committed.transaction_uuid)


def _pin(graph: Graph, table_key: str, version: int, rows: int, uuid: str) -> None:
    entry = graph.snapshot().entry(table_key)
    pin = PublishedPin(version, entry.owner, rows, uuid, entry.pin.branch)
    Publisher(graph).publish(UpdateTable(entry.identity, table_key, pin))
