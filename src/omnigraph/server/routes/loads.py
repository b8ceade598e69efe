"""Loads: NDJSON inside of JSON, as a body of its own, and rows of one type as a stream of Arrow's.

A load over HTTP runs in this process: its size is bounded by the limit of bodies, and no JVM is started.

Checks of a load have routes of their own: a server that does not know them answers 404, and loads nothing.

I1  What a caller sends is data, never the name of data: a type is looked up in the catalog, and no text of a
    request becomes a path, a pattern or an address.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel
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
from omnigraph.wire.requests import (
    ArrowLoadQuery,
    CheckedArrowLoadQuery,
    CheckedLoadQuery,
    IngestRequest,
    LoadQuery,
)
from omnigraph.wire.responses import IngestOutput, LoadOutput

if TYPE_CHECKING:
    from omnigraph.catalog.model import Catalog
    from omnigraph.operations.load.inputs import GivenData
    from omnigraph.operations.load.model import LoadInput

AnyLoad = IngestRequest | LoadQuery | CheckedLoadQuery


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
    wanted: ArrowLoadQuery | CheckedArrowLoadQuery = call.query
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


def _loaded(call: RouteCall, wanted: AnyLoad, data: "GivenData") -> Json:
    checked = wanted if isinstance(wanted, CheckedLoadQuery) else None
    try:
        result = call.graph.load(
            data,
            wanted.mode,
            branch=wanted.branch,
            from_=wanted.from_,
            index=wanted.index,
            message=wanted.message,
            engine="local",
            dry_run=checked is not None and checked.dry_run,
            strict_columns=checked is not None and checked.strict_columns,
            progress=lambda event: None if event.is_done else call.tell(load_progress_document(event)),
            actor=call.actor,
        )
    except BranchNotFound as error:
        if wanted.from_ is None:
            raise NotFoundError(f"{error}; pass from to create it") from error
        raise
    return load_document(result, call.uri, call.actor)


def _needs(wanted: AnyLoad) -> list[Need]:
    return [Need(Action.CHANGE, given_name(wanted.branch))]


def _raw_admit(call: RouteCall) -> None:
    _admit(call, call.query, call.query.from_)


def _json_admit(call: RouteCall) -> None:
    _admit(call, call.body, call.body.from_)


def _ingest_admit(call: RouteCall) -> None:
    _admit(call, call.body, MAIN if call.body.from_ is None else call.body.from_)


def _admit(call: RouteCall, wanted: AnyLoad, from_: str | None) -> None:
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


@dataclass(frozen=True, slots=True)
class _Raw:
    """What the routes of one kind of raw body have in common."""

    word: str
    media_type: str
    work: Callable[[RouteCall], Response]
    answers: Answers
    may_tell: str | None = None


_NDJSON = _Raw(
    "ndjson",
    NDJSON,
    _load_ndjson,
    Answers(LoadOutput, (JSON_TYPE, NDJSON), "What the load did; as NDJSON, its progress first."),
    NDJSON,
)
_ARROW = _Raw("arrow", ARROW_STREAM, _load_arrow, Answers(LoadOutput))


def _raw_load(behind: str, summary: str, raw: _Raw, query: type[BaseModel]) -> GraphRoute:
    return GraphRoute(
        "POST",
        f"/load/{raw.word}{behind}",
        f"load{raw.word.capitalize()}{behind[1:].capitalize()}",
        summary,
        raw.work,
        _raw_needs,
        raw.answers,
        query=query,
        body=RawBody(raw.media_type, "load"),
        may_tell=raw.may_tell,
        admit=_raw_admit,
        weight=_raw_weight,
        errors=WRITE_ERRORS,
    )


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
    _raw_load("", "Load a body of NDJSON, as one commit.", _NDJSON, LoadQuery),
    _raw_load("/checked", "Check a body of NDJSON, and perhaps load it.", _NDJSON, CheckedLoadQuery),
    _raw_load("", "Load a stream of Arrow's with rows of one type, as one commit.", _ARROW, ArrowLoadQuery),
    _raw_load("/checked", "Check a stream of Arrow's, and perhaps load it.", _ARROW, CheckedArrowLoadQuery),
)
