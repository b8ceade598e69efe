"""Errors of a server as the classes that the engine raises for them.

A server names the class in a header; without it (a proxy, an older server), detail and status decide.

E1  A body says all that its detail has, or the error is not of the class that has this detail.
E2  What a body never says of a class, such as the branch of `BranchNotFound`, is there and is None.
"""

from collections.abc import Mapping
from inspect import Parameter, signature

from omnigraph.client.answer import Document
from omnigraph.client.understood import check_document
from omnigraph.core import access_errors, blob_errors, damage, errors, source_errors
from omnigraph.core.cleared_property import ClearedProperty
from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.merge_conflict import MergeConflict, MergeConflictKind
from omnigraph.core.span import Source
from omnigraph.wire.responses import ErrorOutput

_BY_DETAIL: Mapping[str, type[OmnigraphError]] = {
    of.detail: of
    for module in (errors, blob_errors)
    for of in vars(module).values()
    if isinstance(of, type) and issubclass(of, OmnigraphError) and of.detail is not None
} | {"resource_limit": errors.ResourceLimit, "change_diff_refusal": errors.ChangeSchemaBoundary}
_BY_STATUS: Mapping[int, type[OmnigraphError]] = {
    401: access_errors.AuthenticationError,
    403: errors.PolicyDenied,
    404: errors.NotFoundError,
    409: errors.ConflictError,
    412: errors.PreconditionFailed,
    429: access_errors.RateLimited,
}
# They say of a client that no answer came, which no answer can say.
_SAID_BY_NO_SERVER = {access_errors.TransportError, access_errors.CommitOutcomeUnknown}
# What some classes have that their constructors do not take under this name, or that is not None (E2).
_ABSENT: Mapping[type[OmnigraphError], Document] = {
    errors.ValidationError: {
        "kind": "record",
        "table_key": None,
        "row_id": None,
        "file": None,
        "line": None,
        "violations": (),
        "total": 1,
        "consequences": 0,
        "is_cut_short": False,
    },
    access_errors.RateLimited: {"retry_after_s": 0},
    errors.ChangeSchemaBoundary: {"before_commit_id": None},
    errors.StorageError: {"kind": "unknown"},
    errors.AmbiguousMergeBase: {"ancestors": ()},
    errors.BranchesBlockSchemaApply: {"branches": ()},
    errors.CommitHasNoParent: {"graph_commit_id": None},
    errors.PendingRecovery: {"operation_ids": ()},
    errors.SchemaError: {"steps": ()},
    damage.GraphDamaged: {"versions": (), "commits": (), "readable": None},
}


def error_of(status: int, body: Document, class_name: str | None) -> OmnigraphError:
    """Return the error that a body describes; its text is the server's.

    Raises:
        TransportError: the body is none of this API.
    """
    if body:
        check_document(body, ErrorOutput)
    of = _class_of(status, body, class_name)
    error = of.__new__(of)
    vars(error).update(dict.fromkeys(_taken(of)))
    Exception.__init__(error, str(body.get("error", f"the server answered with status {status}")))
    for parent, fields in _ABSENT.items():
        if isinstance(error, parent):
            vars(error).update(fields)
    if isinstance(error, source_errors.SourceError):
        text = str(error).removeprefix(f"{error.label}: ")
        error.diagnostics, error.source = (Diagnostic(text),), Source("")
    if isinstance(error, errors.ExecutionError):
        error.message = str(error).removeprefix("execution error: ")
    vars(error).update(_detail(of, body))
    if isinstance(error, errors.ConflictError):
        error.recovery_operation_id = body.get("recovery_operation_id")
    return error


def _class_of(status: int, body: Document, class_name: str | None) -> type[OmnigraphError]:
    for module in (errors, access_errors, blob_errors, source_errors, damage):
        found = getattr(module, class_name or "", None)
        if not isinstance(found, type) or not issubclass(found, OmnigraphError):
            continue
        if found not in _SAID_BY_NO_SERVER and (found.detail is None or found.detail in body):  # E1
            return found
    for detail, of in _BY_DETAIL.items():
        if detail in body:
            return of
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return errors.BadRequest if 400 <= status < 500 else errors.StorageError


def _detail(of: type[OmnigraphError], body: Document) -> Document:
    """Return the fields that the detail of a body gives an error."""
    if of is errors.MergeConflicts:
        return {"conflicts": tuple(_conflict(item) for item in body["merge_conflicts"])}
    if of is errors.ColumnsLeftOut:
        return {"cleared": tuple(ClearedProperty(**item) for item in body["cleared"])}
    detail = body.get(of.detail or "")
    fixed = vars(of)
    return {name: value for name, value in (detail or {}).items() if name not in fixed}


def _taken(of: type[OmnigraphError]) -> list[str]:
    """Return what the constructor of a class takes by name, which are its fields."""
    variable = {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}
    parameters = [*signature(of.__init__).parameters.values()][1:]
    return [item.name for item in parameters if item.kind not in variable and item.name != "message"]


def _conflict(item: Document) -> MergeConflict:
    return MergeConflict(
        item["table_key"], item.get("row_id"), MergeConflictKind(item["kind"]), item["message"]
    )
