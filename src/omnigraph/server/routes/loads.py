"""Loads: NDJSON inside of JSON, as a body of its own, and rows of one type as a stream of Arrow's.

A load over HTTP runs in this process: its size is bounded by the limit of bodies, and no JVM is started.

I1  What a caller sends is data, never the name of data: a type is looked up in the catalog, and no text of a
    request becomes a path, a pattern or an address.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response

from omnigraph.bulk.sources.model import Format, SourceInput
from omnigraph.bulk.sources.names import find_type
from omnigraph.core.errors import BranchNotFound, NotFoundError, StorageError
from omnigraph.core.values import Json
from omnigraph.history.identity import MAIN
from omnigraph.server.access import Need
from omnigraph.server.answers import json_answer
from omnigraph.server.arrow_answer import ARROW_STREAM
from omnigraph.server.lenient import strict_lines
from omnigraph.server.route import Answers, GraphRoute, JsonBody, RawBody, RouteCall
from omnigraph.server.routes.branches import CREATE
from omnigraph.server.routes.exports import NDJSON
from omnigraph.server.routes.queries import CHANGE, WRITE_ERRORS
from omnigraph.wire.documents import load_document
from omnigraph.wire.requests import ArrowLoadQuery, IngestRequest, LoadQuery
from omnigraph.wire.responses import IngestOutput, LoadOutput

if TYPE_CHECKING:
    from omnigraph.operations.load.model import LoadInput


def _load(call: RouteCall) -> Response:
    wanted: IngestRequest = call.body
    return json_answer(_loaded(call, wanted, wanted.data.encode()))


def _ingest(call: RouteCall) -> Response:
    """Load as older clients expect it: from main unless they say otherwise, and leniently."""
    wanted: IngestRequest = call.body
    base = MAIN if wanted.from_ is None else wanted.from_
    wanted = wanted.model_copy(update={"from_": base})
    document = _loaded(call, wanted, strict_lines(wanted.data))
    document["base_branch"] = base
    return json_answer(document)


def _load_ndjson(call: RouteCall) -> Response:
    document = _loaded(call, call.query, call.body)
    del document["uri"]
    return json_answer(document)


def _load_arrow(call: RouteCall) -> Response:
    wanted: ArrowLoadQuery = call.query
    catalog = call.graph.catalog_on(wanted.branch, wanted.from_)
    table_key = find_type(wanted.type, catalog, "the query string").table_key  # I1
    with _as_file(call.body) as path:
        call.request.state.hidden = {str(path): "the body"}
        document = _loaded(call, wanted, [SourceInput(str(path), Format.ARROW, table_key=table_key)])
    del document["uri"]
    return json_answer(document)


@contextmanager
def _as_file(body: bytes) -> Iterator[Path]:
    """Hold a body in a file, because files are read with every check that hostile buffers need.

    Raises:
        StorageError: the disk of the server does not take it.
    """
    with ExitStack() as held:
        try:
            folder = held.enter_context(tempfile.TemporaryDirectory(prefix="omnigraph-load-"))
            path = Path(folder, "rows.arrow")
            path.write_bytes(body)
        except OSError as error:
            raise StorageError(f"cannot hold a body in a file: {error}", kind="unknown") from error
        yield path


def _loaded(call: RouteCall, wanted: IngestRequest | LoadQuery, data: "bytes | Sequence[LoadInput]") -> Json:
    try:
        result = call.graph.load(
            data,
            wanted.mode,
            branch=wanted.branch,
            from_=wanted.from_,
            index=wanted.index,
            message=wanted.message,
            engine="local",
            actor=call.actor,
        )
    except BranchNotFound as error:
        if wanted.from_ is None:
            raise NotFoundError(f"{error}; pass from to create it") from error
        raise
    return load_document(result, call.uri, call.actor)


def _needs(wanted: IngestRequest | LoadQuery) -> list[Need]:
    change = Need(CHANGE, wanted.branch)
    return [change] if wanted.from_ is None else [Need(CREATE, wanted.from_, wanted.branch), change]


def _raw_needs(call: RouteCall) -> list[Need]:
    return _needs(call.query)


def _json_needs(call: RouteCall) -> list[Need]:
    return _needs(call.body)


def _raw_weight(call: RouteCall) -> int:
    return len(call.body)


def _json_weight(call: RouteCall) -> int:
    return len(call.body.data)


ROUTES = (
    GraphRoute(
        "POST",
        "/load",
        "load",
        "Load NDJSON, as one commit.",
        _load,
        _json_needs,
        Answers(IngestOutput),
        body=JsonBody(IngestRequest, is_load=True),
        weight=_json_weight,
        errors=WRITE_ERRORS,
    ),
    GraphRoute(
        "POST",
        "/ingest",
        "ingest",
        "Load NDJSON, with the defaults and the leniency of older clients.",
        _ingest,
        _json_needs,
        Answers(IngestOutput),
        body=JsonBody(IngestRequest, is_load=True),
        weight=_json_weight,
        errors=WRITE_ERRORS,
        successor="load",
    ),
    GraphRoute(
        "POST",
        "/load/ndjson",
        "loadNdjson",
        "Load a body of NDJSON, as one commit.",
        _load_ndjson,
        _raw_needs,
        Answers(LoadOutput),
        query=LoadQuery,
        body=RawBody(NDJSON, "load"),
        weight=_raw_weight,
        errors=WRITE_ERRORS,
    ),
    GraphRoute(
        "POST",
        "/load/arrow",
        "loadArrow",
        "Load a stream of Arrow's with rows of one type, as one commit.",
        _load_arrow,
        _raw_needs,
        Answers(LoadOutput),
        query=ArrowLoadQuery,
        body=RawBody(ARROW_STREAM, "load"),
        weight=_raw_weight,
        errors=WRITE_ERRORS,
    ),
)
