"""Errors of a server as the classes that the engine raises for them.

A server names the class in a header; without it (a proxy, an older server), detail and status decide.
"""

from collections.abc import Mapping

from omnigraph.client.answer import Document
from omnigraph.core import access_errors, errors, source_errors
from omnigraph.core.cleared_property import ClearedProperty
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.merge_conflict import MergeConflict, MergeConflictKind

_BY_DETAIL: Mapping[str, type[OmnigraphError]] = {
    of.detail: of
    for of in vars(errors).values()
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
# What some classes have besides their text, where the body does not say it.
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
    },
    access_errors.RateLimited: {"retry_after_s": 0},
    errors.StorageError: {"kind": "unknown"},
    source_errors.SourceError: {"diagnostics": (), "source": None},
}


def error_of(status: int, body: Document, class_name: str | None) -> OmnigraphError:
    """Return the error that a body describes; its text is the server's."""
    of = _class_of(status, body, class_name)
    error = of.__new__(of)
    Exception.__init__(error, str(body.get("error", f"the server answered with status {status}")))
    for parent, fields in _ABSENT.items():
        if isinstance(error, parent):
            vars(error).update(fields)
    if isinstance(error, errors.ExecutionError):
        error.message = str(error).removeprefix("execution error: ")
    vars(error).update(_detail(of, body))
    if isinstance(error, errors.ConflictError):
        error.recovery_operation_id = body.get("recovery_operation_id")
    return error


def _class_of(status: int, body: Document, class_name: str | None) -> type[OmnigraphError]:
    for module in (errors, access_errors, source_errors):
        found = getattr(module, class_name or "", None)
        if isinstance(found, type) and issubclass(found, OmnigraphError):
            return found
    for detail, of in _BY_DETAIL.items():
        if detail in body:
            return of
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return errors.BadRequest if 400 <= status < 500 else errors.StorageError


def _detail(of: type[OmnigraphError], body: Document) -> Document:
    """Return the fields that the detail of a body gives an error."""
    if "merge_conflicts" in body:
        return {"conflicts": tuple(_conflict(item) for item in body["merge_conflicts"])}
    if "cleared" in body:
        return {"cleared": tuple(ClearedProperty(**item) for item in body["cleared"])}
    detail = body.get(of.detail or "")
    fixed = vars(of)
    return {name: value for name, value in (detail or {}).items() if name not in fixed}


def _conflict(item: Document) -> MergeConflict:
    return MergeConflict(
        item["table_key"], item.get("row_id"), MergeConflictKind(item["kind"]), item["message"]
    )
