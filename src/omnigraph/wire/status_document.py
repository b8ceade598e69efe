"""The document of `status`."""

from typing import TYPE_CHECKING

from omnigraph.core.values import Json
from omnigraph.history.identity import branch_name
from omnigraph.wire.documents import commit_document, index_document

if TYPE_CHECKING:
    from omnigraph.operations.status import GraphStatus, OptimizeWork, PendingWrite, TableStatus


def status_document(found: "GraphStatus", uri: str) -> Json:
    """Return everything that a look at a graph has found."""
    return {
        "uri": uri,
        "branch": branch_name(found.branch),
        "internal_schema_version": found.stamp,
        "manifest_version": found.head.manifest_version,
        "commit": commit_document(found.head),
        "branch_count": found.branches,
        "pending": [_pending(write) for write in found.pending],
        "tables": [_table(table) for table in found.tables],
        "manifest": {"bytes": found.manifest.bytes, "versions": found.manifest.versions},
        "bytes": found.bytes,
        "maintenance": {
            "optimize": [_optimize(work) for work in found.optimize],
            "cleanup": {
                "keep_versions": found.cleanup.keep,
                "old_versions": found.cleanup.versions,
                "bytes": found.cleanup.bytes,
                "obstacle": found.cleanup.obstacle,
            },
        },
    }


def _pending(write: "PendingWrite") -> Json:
    return {
        "operation_id": write.operation_id,
        "writer_kind": write.writer_kind,
        "branch": branch_name(write.branch),
        "actor_id": write.actor_id,
        "started_at": write.started_at_micros,
        "alive": write.is_alive,
        "tables": list(write.tables),
    }


def _table(table: "TableStatus") -> Json:
    return {
        "table_key": table.table_key,
        "table_version": table.version,
        "row_count": table.rows,
        "fragments": table.fragments,
        "bytes": table.bytes,
        "versions": table.versions,
        "indexes": [index_document(index) for index in table.indexes],
    }


def _optimize(work: "OptimizeWork") -> Json:
    return {
        "table_key": work.table_key,
        "fragments_to_fold": work.fragments_to_fold,
        "indexes_to_fold": list(work.indexes_to_fold),
        "indexes_to_build": list(work.indexes_to_build),
        "skipped": work.skipped,
    }
