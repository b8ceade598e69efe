"""Answers: documents as JSON, and errors as the documents of `wire.error_document`.

E1  Every error has a JSON body with `error`, and a `code` from a closed list, or none.
E2  No body shows where a graph is stored beyond the fields that are there for it, what is in the environment,
    or a traceback: of an internal error it shows what kind it is and the id under which the log has the rest.
"""

import logging
from collections.abc import Mapping

import orjson
from starlette.requests import Request
from starlette.responses import Response

from omnigraph.core.access_errors import AuthenticationError, RateLimited
from omnigraph.core.blob_errors import BlobRangeError
from omnigraph.core.errors import (
    EmbeddingError,
    FormatVersionError,
    HandleClosed,
    HandleForked,
    OmnigraphError,
    SparkUnavailable,
    StorageError,
)
from omnigraph.core.values import Json
from omnigraph.server.refusal import Refusal
from omnigraph.wire.error_document import CLASS_HEADER, error_document

_log = logging.getLogger("omnigraph.server")
# Internal errors whose texts say what is missing, and never where something is stored.
_TELLING = (EmbeddingError, FormatVersionError, HandleClosed, HandleForked, SparkUnavailable)
INTERNAL = 500


def accepts(request: Request, media_type: str) -> bool:
    """Say whether a caller names a type among those it accepts; a type of many kinds names none."""
    accepted = request.headers.get("accept", "")
    return media_type in accepted.lower() and any(_names(part, media_type) for part in accepted.split(","))


def _names(part: str, media_type: str) -> bool:
    named, *parameters = (piece.strip().lower() for piece in part.split(";"))
    return named == media_type and "q=0" not in parameters


def json_answer(
    document: Mapping[str, object], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a document as an answer."""
    content = orjson.dumps(document)
    return Response(content, status, dict(headers or {}), media_type="application/json")


def error_answer(
    error: BaseException, *, request_id: str, hidden: Mapping[str, str] | None = None
) -> Response:
    """Return what a caller is told of an error; `hidden` has places, and what is said in their stead (E2)."""
    if isinstance(error, Refusal):
        document: Json = {"error": str(error), "code": error.code}
        return json_answer(document, status=error.status, headers=error.headers)
    if not isinstance(error, OmnigraphError):
        _log.error("request %s failed", request_id, exc_info=error)
        return _internal("internal error", request_id)
    if error.status == INTERNAL and not isinstance(error, _TELLING):
        _log.error("request %s failed: %s: %s", request_id, type(error).__name__, error)
        kind = f"storage request failed ({error.kind})" if isinstance(error, StorageError) else _kind(error)
        return _internal(kind, request_id, _headers(error))
    content = _written(error_document(error))
    for place, word in (hidden or {}).items():
        content = content.replace(orjson.dumps(place)[1:-1], word.encode())
    return Response(content, error.status, _headers(error), media_type="application/json")


def _written(document: object) -> bytes:
    """Return an error as JSON, whatever values of a request it repeats: this is where errors end."""
    try:
        return orjson.dumps(document)
    except TypeError:
        return orjson.dumps(_writable(document))


def _writable(value: object) -> object:
    """Return a value that can be written: integers beyond 64 bits and what JSON lacks become texts."""
    match value:
        case dict():
            return {str(_writable(str(name))): _writable(item) for name, item in value.items()}
        case list() | tuple():
            return [_writable(item) for item in value]
        case None | bool() | float():
            return value
        case int() if value.bit_length() < 64:
            return value
        case str():
            return value.encode("utf-8", "replace").decode()  # half of a surrogate pair is no text
        case _:
            return _writable(str(value))


def _internal(what: str, request_id: str, headers: Mapping[str, str] | None = None) -> Response:
    text = f"{what}; the server's log has more under request {request_id}"
    return json_answer({"error": text, "code": "internal"}, status=INTERNAL, headers=headers)


def _kind(error: OmnigraphError) -> str:
    """Return the name of an error's class as words: `SidecarCorrupt` is a sidecar corrupt."""
    name = type(error).__name__
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


def _headers(error: OmnigraphError) -> dict[str, str]:
    headers = {CLASS_HEADER: type(error).__name__}
    if isinstance(error, RateLimited):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, AuthenticationError):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, BlobRangeError):
        headers["Content-Range"] = f"bytes */{error.length}"
    return headers
