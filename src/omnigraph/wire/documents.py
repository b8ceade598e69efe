"""The documents of results: what `--json` prints is what HTTP answers.

Fields are named as in the tables, times are in microseconds, and a commit on main has no branch. Of the
fields that may be empty, only `message`, `reason` and those a recovery lacks are left out; the rest are null.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from omnigraph.catalog.migration_steps import step_json
from omnigraph.core.values import Json
from omnigraph.history.identity import branch_name
from omnigraph.wire.error_document import cleared_document, conflict_document

if TYPE_CHECKING:
    from omnigraph.bulk.connect.progress import ProgressEvent
    from omnigraph.catalog.migrate import MigrationPlan
    from omnigraph.catalog.stored_queries import RegistryCheck, StoredQuery
    from omnigraph.changes.model import EntityChange
    from omnigraph.commit.recovery.audit import RecoveryRecord
    from omnigraph.commit.recovery.repair import Loss
    from omnigraph.commit.recovery.restore import Quarantined
    from omnigraph.history.branches import Branch
    from omnigraph.history.commits import GraphCommit
    from omnigraph.history.state import Snapshot
    from omnigraph.operations.blob import Blob
    from omnigraph.operations.changes.diff import Diff
    from omnigraph.operations.cleanup.model import CleanupResult
    from omnigraph.operations.clone.check_copy import CopyReport
    from omnigraph.operations.clone.clone import CloneResult
    from omnigraph.operations.embed.model import EmbedResult
    from omnigraph.operations.ensure_indices import IndexResult, PendingIndex
    from omnigraph.operations.index_status import IndexState, TableIndexes
    from omnigraph.operations.load.load import LoadResult
    from omnigraph.operations.merge.merge import MergeResult
    from omnigraph.operations.mutate import MutationResult
    from omnigraph.operations.optimize import OptimizeResult
    from omnigraph.operations.repair_drift import DriftRepair
    from omnigraph.operations.schema.apply import SchemaApplyResult
    from omnigraph.operations.verify.report import VerifyReport


_WORK_ON_ROWS = {"column", "rewrite"}


def commit_document(commit: "GraphCommit") -> Json:
    """Return one commit."""
    document: Json = {
        "graph_commit_id": commit.graph_commit_id,
        "manifest_branch": commit.manifest_branch,
        "manifest_version": commit.manifest_version,
        "parent_commit_id": commit.parent_commit_id,
        "merged_parent_commit_id": commit.merged_parent_commit_id,
        "actor_id": commit.actor_id,
        "created_at": commit.created_at_micros,
    }
    if commit.message is not None:
        document["message"] = commit.message
    if commit.operations:
        document["operations"] = [asdict(item) for item in commit.operations]
    return document


def loss_document(loss: "Loss") -> Json:
    """Return what a repair gives up."""
    return {
        "branch": branch_name(loss.branch),
        "to_version": loss.to_version,
        "newest_version": loss.newest_version,
        "commits": [commit_document(commit) for commit in loss.commits],
        "untold_versions": list(loss.untold),
        "tables": [
            {"table_key": found.table_key, "rows": found.rows, "rows_after": found.rows_after}
            for found in loss.tables
        ],
    }


def drift_document(result: "DriftRepair", uri: str) -> Json:
    """Return which tables were ahead of their pins, and what was done about them."""
    return {
        "uri": uri,
        "branch": result.branch,
        "confirm": result.confirm,
        "force": result.force,
        "manifest_version": result.manifest_version,
        "commit": _commit_or_null(result.commit),
        "tables": [
            {
                "table_key": table.table_key,
                "manifest_version": table.pinned_version,
                "lance_head_version": table.head_version,
                "classification": table.classification.value,
                "action": table.action.value,
                "operations": list(table.operations),
                "rows_added": table.rows.added,
                "rows_changed": table.rows.changed,
                "rows_removed": table.rows.removed,
                "broken_rules": list(table.rows.broken),
                "broken_rules_total": table.rows.broken_total,
                "error": table.error,
            }
            for table in result.tables
        ],
    }


def quarantined_document(found: "Quarantined") -> Json:
    """Return one folder of the quarantine."""
    return {
        "quarantine_id": found.quarantine_id,
        "created_at": found.created_at_micros,
        "datasets": [{"dataset": part.dataset, "versions": list(part.versions)} for part in found.datasets],
        "obstacle": found.obstacle,
    }


def mutation_document(result: "MutationResult", actor: str | None) -> Json:
    """Return what a mutation did."""
    return {
        "branch": branch_name(result.branch),
        "query_name": result.query_name,
        "affected_nodes": result.affected_nodes,
        "affected_edges": result.affected_edges,
        "actor_id": actor,
        "commit": _commit_or_null(result.commit),
    }


def load_document(result: "LoadResult", uri: str, actor: str | None) -> Json:
    """Return what a load did; what not every load does is named only where it occurs."""
    document: Json = {
        "uri": uri,
        "branch": branch_name(result.branch),
        "mode": result.mode,
        "base_branch": result.base_branch,
        "branch_created": result.branch_created,
        "tables": [{"table_key": key, "rows_loaded": count} for key, count in result.tables],
        "actor_id": actor,
        "commit": _commit_or_null(result.commit),
        "index_commit": _commit_or_null(result.index_commit),
        "pending_indexes": pending_document(result.pending_indexes),
        "warnings": list(result.warnings),
    }
    if result.is_dry_run:
        document["dry_run"] = True
    if result.rejected_rows:
        document["rejected_rows"] = result.rejected_rows
    if result.cleared:
        document["cleared"] = [cleared_document(item) for item in result.cleared]
    if result.vectors:
        document["vectors"] = result.vectors
    return document


def load_progress_document(event: "ProgressEvent") -> Json:
    """Return how far a load in process has got: its phase, and the rows that it has read."""
    tables = [{"table_key": key, "rows_read": count} for key, count in event.tables or ()]
    return {"progress": {"phase": event.stage.value, "rows_read": event.rows, "tables": tables}}


def branch_created_document(made: "Branch", uri: str, actor: str | None) -> Json:
    """Return a branch that was made."""
    return {"uri": uri, "from": branch_name(made.parent_branch), "name": made.name, "actor_id": actor}


def branch_deleted_document(name: str, uri: str, actor: str | None) -> Json:
    """Return a branch that was deleted."""
    return {"uri": uri, "name": name.strip(), "actor_id": actor}


def schema_plan_document(migration: "MigrationPlan", rows: "Sequence[int]", uri: str) -> Json:
    """Return the steps from one schema to another, with the rows that each of them writes."""
    steps = [step_json(step) for step in migration.steps]
    for step, written in zip(steps, rows, strict=False):
        if step.get("work") in _WORK_ON_ROWS:
            step["rows"] = written
    return {
        "uri": uri,
        "supported": migration.is_supported,
        "step_count": len(steps),
        "steps": steps,
        "notes": [note.text for note in migration.diagnostics],
    }


def schema_apply_document(result: "SchemaApplyResult", uri: str) -> Json:
    """Return what a change of schema did."""
    return {
        "uri": uri,
        "branch": branch_name(result.branch),
        "supported": result.supported,
        "applied": result.applied,
        "manifest_version": result.manifest_version,
        "step_count": len(result.steps),
        "steps": [step_json(step) for step in result.steps],
        "commit": _commit_or_null(result.commit),
        "index_commit": _commit_or_null(result.index_commit),
        "pending_indexes": pending_document(result.pending_indexes),
        "warnings": list(result.warnings),
        "notes": [note.text for note in result.diagnostics],
    }


def embed_document(result: "EmbedResult", uri: str) -> Json:
    """Return which rows of a graph got vectors."""
    return {
        "uri": uri,
        "branch": branch_name(result.branch),
        "mode": result.mode,
        "model": result.model,
        "engine": result.engine,
        "tables": [
            {"table_key": table.table_key, "rows_embedded": table.rows, "vectors": table.vectors}
            for table in result.tables
        ],
        "commit": _commit_or_null(result.commit),
        "index_commit": _commit_or_null(result.index_commit),
        "pending_indexes": pending_document(result.pending_indexes),
        "warnings": list(result.warnings),
    }


def stored_query_document(query: "StoredQuery") -> Json:
    """Return the entry of a stored query in a catalog; what it lacks is left out."""
    document: Json = {"name": query.name, "tool_name": query.tool_name}
    if query.description is not None:
        document["description"] = query.description
    if query.instruction is not None:
        document["instruction"] = query.instruction
    document["mutation"] = query.is_mutation
    document["params"] = [parameter.to_json() for parameter in query.parameters]
    return document


def registry_check_document(found: "RegistryCheck") -> Json:
    """Return what a check of stored queries found."""
    return {
        "ok": not found.breakages,
        "breakages": [{"query": item.query, "message": item.message} for item in found.breakages],
        "warnings": [{"query": item.query, "message": item.message} for item in found.warnings],
    }


def blob_document(found: "Blob") -> Json:
    """Return what a value is, without its bytes."""
    return {
        "kind": found.kind,
        "size": found.size,
        "etag": found.etag,
        "uri": found.uri,
        "graph_commit_id": found.commit_id,
    }


def snapshot_document(snapshot: "Snapshot") -> Json:
    """Return a view: its version and every table."""
    tables = [
        {
            "table_key": entry.table_key,
            "table_path": entry.location,
            "table_version": entry.version,
            "table_branch": entry.branch,
            "row_count": entry.row_count,
        }
        for entry in snapshot.tables
    ]
    return {
        "branch": branch_name(snapshot.branch),
        "graph_commit_id": snapshot.commit_id,
        "manifest_version": snapshot.head.manifest_version,
        "internal_schema_version": snapshot.stamp,
        "tables": tables,
    }


def diff_document(found: "Diff", *, with_changes: bool) -> Json:
    """Return the differences between two snapshots, or only how many there are."""
    return _diff(found, found if with_changes else None)


def diff_page_document(found: "Diff", changes: "Iterable[EntityChange]", next_page_token: str | None) -> Json:
    """Return some of the differences between two snapshots, how many there are, and where to go on."""
    document = _diff(found, changes)
    if next_page_token is not None:
        document["next_page_token"] = next_page_token
    return document


def _diff(found: "Diff", changes: "Iterable[EntityChange] | None") -> Json:
    from omnigraph.changes.documents import change_document

    stats = {
        counts.table_key: {
            "inserted": counts.inserted,
            "updated": counts.updated,
            "deleted": counts.deleted,
        }
        for counts in found.stat()
    }
    document: Json = {"from": _target(found.from_snapshot), "to": _target(found.to_snapshot)}
    if changes is not None:
        document["changes"] = [change_document(change) for change in changes]
    return {**document, "stats": stats}


def merge_document(
    result: "MergeResult", actor: str | None, *, is_dry_run: bool, is_delete_asked: bool
) -> Json:
    """Return what a merge did; conflicts are those of a dry run, a deletion appears only if asked for."""
    document: Json = {
        "source": result.source,
        "target": result.target,
        "outcome": result.outcome.value,
        "actor_id": actor,
        "commit": _commit_or_null(result.commit),
    }
    if is_delete_asked and not is_dry_run:
        document["branch_deleted"] = result.branch_deleted
    if result.branch_delete_error is not None:
        document["branch_delete_error"] = result.branch_delete_error
        document["branch_delete_refusal"] = str(result.branch_delete_refusal)
    if is_dry_run:
        document["conflicts"] = [conflict_document(conflict) for conflict in result.conflicts]
    return document


def recovery_document(record: "RecoveryRecord") -> Json:
    """Return one finished recovery."""
    from omnigraph.commit.sidecar import WriterKind

    writer = None if record.writer_kind is None else WriterKind(record.writer_kind).wire
    optional: Json = {
        "graph_commit_id": record.graph_commit_id,
        "recovery_for_actor": record.recovery_for_actor,
        "writer_kind": writer,
    }
    tables = [
        {"table_key": found.table_key, "from_version": found.from_version, "to_version": found.to_version}
        for found in record.outcomes
    ]
    return {
        "operation_id": record.operation_id,
        "recovery_kind": record.recovery_kind.wire,
        **{name: value for name, value in optional.items() if value is not None},
        "created_at": record.created_at_micros,
        "tables": tables,
    }


def index_status_document(tables: "Iterable[TableIndexes]", *, uri: str, branch: str | None) -> Json:
    """Return every declared index with what it covers."""
    return {"uri": uri, "branch": branch_name(branch), "tables": [_table_indexes(table) for table in tables]}


def index_result_document(result: "IndexResult", *, uri: str, branch: str | None) -> Json:
    """Return what an index build did, and what it could not do."""
    return {
        "uri": uri,
        "branch": branch_name(branch),
        "pending": pending_document(result.pending),
        "commit": _commit_or_null(result.commit),
    }


def optimize_document(result: "OptimizeResult", *, uri: str, branch: str | None) -> Json:
    """Return what became of every table, and of the manifest."""
    return {
        "uri": uri,
        "branch": branch_name(branch),
        "tables": [
            {
                "table_key": table.table_key,
                "fragments_removed": table.fragments_removed,
                "fragments_added": table.fragments_added,
                "committed": table.committed,
                "skipped": table.skipped,
                "manifest_version": table.manifest_version,
                "lance_head_version": table.lance_head_version,
                "pending_indexes": [
                    {"property": index.property, "reason": index.reason} for index in table.pending_indexes
                ],
            }
            for table in result.tables
        ],
        "commit": _commit_or_null(result.commit),
    }


def _table_indexes(table: "TableIndexes") -> Json:
    return {"table_key": table.table_key, "indexes": [index_document(index) for index in table.indexes]}


def index_document(index: "IndexState") -> Json:
    """Return one declared index with what it covers."""
    document: Json = {"property": index.property, "kind": index.kind, "coverage": index.coverage}
    if index.reason is not None:
        document["reason"] = index.reason
    if index.coverage == "degraded":
        document["rows_uncovered"] = index.rows_uncovered
    return document


def _target(snapshot: "Snapshot") -> Json:
    return {
        "branch": branch_name(snapshot.branch),
        "snapshot": snapshot.commit_id,
        "manifest_version": snapshot.head.manifest_version,
    }


def _commit_or_null(commit: "GraphCommit | None") -> Json | None:
    return None if commit is None else commit_document(commit)


def pending_document(indexes: "Iterable[PendingIndex]") -> list[Json]:
    """Return the indexes that are missing, each with the reason."""
    return [
        {"table_key": index.table_key, "property": index.property, "reason": index.reason}
        for index in indexes
    ]


def verify_document(report: "VerifyReport", uri: str) -> Json:
    """Return what a verification found: what is wrong, and what became of each file."""
    return {
        "uri": uri,
        "is_whole": report.is_whole,
        "is_deep": report.is_deep,
        "branches": list(report.branches),
        "findings": [
            {
                "kind": finding.kind.value,
                "where": finding.where,
                "what": finding.what,
                "meaning": finding.meaning,
                "remedy": finding.remedy,
            }
            for finding in report.findings
        ],
        "untold": report.untold,
        "pending": list(report.pending),
        "rows_checked": report.rows_checked,
        "unread": list(report.unread),
        "repeated": list(report.repeated),
        "counts": report.counts,
        "files": [
            {
                "path": file.path,
                "status": file.status.value,
                "length": file.length,
                "found_length": file.found_length,
            }
            for file in report.files
        ],
        "unreferenced": [{"path": file.path, "length": file.length} for file in report.unreferenced],
    }


def cleanup_document(result: "CleanupResult", uri: str) -> Json:
    """Return what a cleanup removed, or would remove, table by table."""
    return {
        "uri": uri,
        "keep_versions": result.keep,
        "older_than_secs": None if result.older_than_s is None else int(result.older_than_s),
        "dry_run": result.is_dry_run,
        "tables": [
            {
                "table_key": row.table_key,
                "bytes_removed": row.bytes_removed,
                "old_versions_removed": row.old_versions_removed,
                "error": row.error,
            }
            for row in result.tables
        ],
        "leftovers": list(result.leftovers),
        "warnings": list(result.warnings),
    }


def clone_document(result: "CloneResult") -> Json:
    """Return what a copy holds, and how much of it was copied by this run."""
    return {
        "source": result.source,
        "target": result.target,
        "branches": list(result.branches),
        "head": result.head,
        "files": result.files,
        "bytes": result.bytes,
        "files_copied": result.files_copied,
        "bytes_copied": result.bytes_copied,
        "unreadable": result.unreadable,
    }


def check_copy_document(report: "CopyReport") -> Json:
    """Return what differs between two graphs."""
    return {
        "source": report.source,
        "target": report.target,
        "is_same": report.is_same,
        "branches": list(report.branches),
        "commits": report.commits,
        "files": report.files,
        "bytes": report.bytes,
        "differences": [
            {
                "kind": difference.kind.value,
                "what": difference.what,
                "source": difference.source,
                "target": difference.target,
            }
            for difference in report.differences
        ],
    }
