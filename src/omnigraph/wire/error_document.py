"""An error as the document that `--json` prints, the same as the body of an HTTP error."""

from omnigraph.core.cleared_property import ClearedProperty
from omnigraph.core.errors import ColumnsLeftOut, ConflictError, MergeConflicts, OmnigraphError
from omnigraph.core.merge_conflict import MergeConflict
from omnigraph.core.values import Json

CLASS_HEADER = "Omnigraph-Error"  # the header of an error's answer that names its class

_FIELDS = {
    "manifest_conflict": ("table_key", "expected", "actual"),
    "ambiguous_merge_base": ("source", "target", "ancestors"),
    "read_set_conflict": ("member", "expected", "actual"),
    "key_conflict": ("table_key", "row_id"),
    "precondition_failure": ("expected", "actual"),
    "version_reclaimed": ("table_key", "version"),
    "change_diff_refusal": ("reason", "graph_commit_id", "before_commit_id", "type_name"),
    "change_feed_gap": ("cursor", "first_unreadable_commit_id"),
    "resource_limit": ("resource", "limit", "actual"),
    "blob_range": ("start", "end", "length"),
    "external_blob_source": ("uri", "reason"),
    "recovery_required": ("operation_id",),
}


def error_document(error: OmnigraphError) -> Json:
    """Return message, code and at most one detail object; an error without a code gets none here either."""
    document: Json = {"error": str(error)}
    if error.code is not None:
        document["code"] = error.code
    if isinstance(error, ConflictError) and error.recovery_operation_id is not None:
        # Other conflicts may be sent again at once; this one may still land, and would then be there twice.
        waiting = error.recovery_operation_id
        document["error"] = (
            f"{error}; do not send it again before operation {waiting} is in the recovery audit"
        )
        document["recovery_operation_id"] = waiting
    if isinstance(error, MergeConflicts):
        document["merge_conflicts"] = [conflict_document(conflict) for conflict in error.conflicts]
    elif isinstance(error, ColumnsLeftOut):
        document["cleared"] = [cleared_document(item) for item in error.cleared]
    elif error.detail is not None:
        document[error.detail] = {name: getattr(error, name) for name in _FIELDS[error.detail]}
    return document


def conflict_document(conflict: MergeConflict) -> Json:
    """Return one conflict of a merge."""
    return {
        "table_key": conflict.table_key,
        "row_id": conflict.row_id,
        "kind": conflict.kind.value,
        "message": conflict.message,
    }


def cleared_document(item: ClearedProperty) -> Json:
    """Return one property that an upsert clears."""
    return {"table_key": item.table_key, "property": item.property, "rows": item.rows}
