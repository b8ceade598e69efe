"""Loads: NDJSON inside of JSON, as a body of its own, and rows of one type as a stream of Arrow's.

A load over HTTP runs in this process: its size is bounded by the limit of bodies, and no JVM is started.

I1  What a caller sends is data, never the name of data: a type is looked up in the catalog, and no text of a
    request becomes a path, a pattern or an address.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response

from omnigraph.bulk.sources.model import Format, SourceInput
from omnigraph.bulk.sources.names import find_type
from omnigraph.bulk.sources.packed import IPC_FILE_MAGIC
from omnigraph.core.errors import BadRequest, BranchNotFound, NotFoundError
from omnigraph.core.values import Json
from omnigraph.history.branches import given_name
from omnigraph.history.identity import MAIN
from omnigraph.policy.request import Action
from omnigraph.server.access import Need
from omnigraph.server.answers import json_answer
from omnigraph.server.bodies import JSON_TYPE
from omnigraph.server.lenient import strict_lines
from omnigraph.server.route import Answers, GraphRoute, JsonBody, RawBody, RouteCall
from omnigraph.server.routes.exports import NDJSON
from omnigraph.server.routes.queries import WRITE_ERRORS
from omnigraph.server.spool import SpooledBody
from omnigraph.wire.arrow_stream import ARROW_STREAM
from omnigraph.wire.documents import load_document, load_progress_document
from omnigraph.wire.requests import ArrowLoadQuery, IngestRequest, LoadQuery
from omnigraph.wire.responses import IngestOutput, LoadOutput

if TYPE_CHECKING:
    from omnigraph.catalog.model import Catalog
    from omnigraph.operations.load.inputs import GivenData
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
    document = _loaded(call, call.query, [SourceInput(_path(call), Format.NDJSON)])
    del document["uri"]
    return json_answer(document)


def _load_arrow(call: RouteCall) -> Response:
    wanted: ArrowLoadQuery = call.query
    path = _path(call)
    with Path(path).open("rb") as file:
        head = file.read(len(IPC_FILE_MAGIC))
    if head == IPC_FILE_MAGIC:  # files of users may be either; a body is what its type says
        raise BadRequest(f"the body is an Arrow IPC file, and an Arrow IPC stream is wanted ({ARROW_STREAM})")

    def rows(catalog: "Catalog") -> "list[LoadInput]":
        table_key = find_type(wanted.type, catalog, "the query string").table_key  # I1
        return [SourceInput(path, Format.ARROW, table_key=table_key)]

    document = _loaded(call, wanted, rows)
    del document["uri"]
    return json_answer(document)


def _path(call: RouteCall) -> str:
    """Return where the body is, which no text of an error may show."""
    body: SpooledBody = call.body
    call.request.state.hidden = {str(body.path): "the body"}
    return str(body.path)


def _loaded(call: RouteCall, wanted: IngestRequest | LoadQuery, data: "GivenData") -> Json:
    try:
        result = call.graph.load(
            data,
            wanted.mode,
            branch=wanted.branch,
            from_=wanted.from_,
            index=wanted.index,
            message=wanted.message,
            engine="local",
            progress=lambda event: None if event.is_done else call.tell(load_progress_document(event)),
            actor=call.actor,
        )
    except BranchNotFound as error:
        if wanted.from_ is None:
            raise NotFoundError(f"{error}; pass from to create it") from error
        raise
    return load_document(result, call.uri, call.actor)


def _needs(wanted: IngestRequest | LoadQuery) -> list[Need]:
    return [Need(Action.CHANGE, given_name(wanted.branch))]


def _raw_admit(call: RouteCall) -> None:
    _admit(call, call.query, call.query.from_)


def _json_admit(call: RouteCall) -> None:
    _admit(call, call.body, call.body.from_)


def _ingest_admit(call: RouteCall) -> None:
    _admit(call, call.body, MAIN if call.body.from_ is None else call.body.from_)


def _admit(call: RouteCall, wanted: IngestRequest | LoadQuery, from_: str | None) -> None:
    """Ask for the branch that a load would make, before anything of the load is looked at."""
    if from_ is not None:
        call.graph.require_load(branch=wanted.branch, from_=from_)


def _raw_needs(call: RouteCall) -> list[Need]:
    return _needs(call.query)


def _json_needs(call: RouteCall) -> list[Need]:
    return _needs(call.body)


def _raw_weight(call: RouteCall) -> int:
    body: SpooledBody = call.body
    return body.size


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
        admit=_json_admit,
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
        admit=_ingest_admit,
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
        Answers(LoadOutput, (JSON_TYPE, NDJSON), "What the load did; as NDJSON, its progress first."),
        query=LoadQuery,
        body=RawBody(NDJSON, "load"),
        may_tell=NDJSON,
        admit=_raw_admit,
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
        admit=_raw_admit,
        weight=_raw_weight,
        errors=WRITE_ERRORS,
    ),
)
