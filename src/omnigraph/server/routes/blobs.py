"""`/blob`: the bytes of one property, whole or in part, or where a reference says that they are."""

from starlette.responses import Response

from omnigraph.core.errors import BadRequest
from omnigraph.operations.blob import Blob
from omnigraph.server.ranges import ByteSpan, Weighed, wanted_span, weigh
from omnigraph.server.refusal import Refusal
from omnigraph.server.route import Answers, GraphRoute, RouteCall
from omnigraph.server.routes.queries import read_need
from omnigraph.server.streams import STREAM_BYTES, PieceAnswer
from omnigraph.wire.requests import BlobQuery

OCTETS = "application/octet-stream"
KIND_HEADER = "Omnigraph-Blob-Kind"
SNAPSHOT_HEADER = "Omnigraph-Snapshot-Id"


def _get(call: RouteCall) -> Response:
    found, headers = _found(call)
    if found.uri is not None:
        return _redirect(found.uri, headers)
    assert found.size is not None, "of bytes it is known how many they are"
    if (settled := _settled(call, found, headers)) is not None:
        return settled
    span = wanted_span(call.request, found.etag, found.size)
    status = 200
    if span is None:
        span = ByteSpan(0, found.size)
    else:
        status = 206
        headers["Content-Range"] = f"bytes {span.start}-{span.end - 1}/{found.size}"
    length = span.end - span.start
    if length <= STREAM_BYTES:  # read here: it takes no share of what may be under way
        content = found.read(span.start, span.end) if length else b""
        return Response(content, status, headers, media_type=OCTETS)
    headers["Content-Length"] = str(length)
    return PieceAnswer(
        found.stream(span.start, span.end),
        OCTETS,
        threads=call.serving.threads,
        shares=call.serving.streams,
        status=status,
        headers=headers,
    )


def _head(call: RouteCall) -> Response:
    found, headers = _found(call)
    if found.uri is not None:
        return _redirect(found.uri, headers)
    if (settled := _settled(call, found, headers)) is not None:
        return settled
    return Response(b"", 200, {**headers, "Content-Length": str(found.size)}, media_type=OCTETS)


def _found(call: RouteCall) -> tuple[Blob, dict[str, str]]:
    """Return the value that is asked for, without its bytes, and the headers of every answer about it."""
    wanted: BlobQuery = call.query
    found = call.graph.blob(
        wanted.entity,
        wanted.type,
        wanted.id,
        wanted.property,
        branch=wanted.branch,
        snapshot=wanted.snapshot,
        actor=call.actor,
    )
    headers = {"ETag": found.etag, SNAPSHOT_HEADER: found.commit_id, KIND_HEADER: found.kind}
    return found, headers


def _redirect(uri: str, headers: dict[str, str]) -> Response:
    """Return where the bytes of a reference are; conditions and ranges are the business of that place.

    The URI has no character that a header cannot have: what is stored was checked again when it was read.
    """
    return Response(b"", 302, {**headers, "Location": uri, "Cache-Control": "no-store"})


def _settled(call: RouteCall, found: Blob, headers: dict[str, str]) -> Response | None:
    """Return the answer of a request that no byte is read for; else complete the headers of one that is.

    Raises:
        Refusal: the value is not the one that the caller has.
    """
    match weigh(call.request, found.etag):
        case Weighed.FAILED:
            message = f"the value is not the one that If-Match names; its ETag is {found.etag}"
            raise Refusal(412, "conflict", message, headers)
        case Weighed.NOT_MODIFIED:
            return Response(b"", 304, headers)
        case Weighed.SEND:
            headers |= {"Accept-Ranges": "bytes", "X-Content-Type-Options": "nosniff"}
            return None


def _check(call: RouteCall) -> None:
    wanted: BlobQuery = call.query
    if wanted.branch is not None and wanted.snapshot is not None:
        raise BadRequest("'branch' and 'snapshot' exclude each other")


def _route(method: str, id: str, summary: str) -> GraphRoute:
    return GraphRoute(
        method,
        "/blob",
        id,
        summary,
        _head if method == "HEAD" else _get,
        lambda call: [read_need(call.query.branch, call.query.snapshot)],
        Answers(
            None,
            (OCTETS,),
            "The bytes; of HEAD, only how many.",
            {
                206: "The bytes of one range.",
                302: "The value is a reference: its bytes are at the URI in `Location`.",
                304: "The caller has this value.",
            },
        ),
        query=BlobQuery,
        check=_check,
        errors=(410, 412, 416, 424),
    )


ROUTES = (
    _route("GET", "getBlob", "Read the bytes of a Blob property, or one range of them."),
    _route("HEAD", "headBlob", "Show the length and the ETag of a Blob property; no byte of it is read."),
)
