"""Rows as a stream of Arrow's, for callers that ask for it by their Accept header."""

from collections.abc import Iterator
from urllib.parse import quote

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from omnigraph.graph.result import Result

ARROW_STREAM = "application/vnd.apache.arrow.stream"


def wants_arrow(request: Request) -> bool:
    """Say whether a caller names Arrow's type among those it accepts."""
    accepted = request.headers.get("accept", "")
    return ARROW_STREAM in accepted.lower() and any(_is_wanted(part) for part in accepted.split(","))


def arrow_answer(result: Result) -> Response:
    """Return the rows as one stream; what JSON says about them is in headers."""
    sink = pa.BufferOutputStream()
    table = result.to_arrow()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Response(sink.getvalue().to_pybytes(), 200, dict(_headers(result)), media_type=ARROW_STREAM)


def _headers(result: Result) -> Iterator[tuple[str, str]]:
    yield "Omnigraph-Query-Name", result.query_name
    yield "Omnigraph-Row-Count", str(result.row_count)
    yield "Omnigraph-Graph-Commit-Id", result.commit_id
    for name, value in result.target.items():
        if value is not None:
            yield f"Omnigraph-{name.capitalize()}", quote(value, safe="/")


def _is_wanted(part: str) -> bool:
    media_type, *parameters = (piece.strip().lower() for piece in part.split(";"))
    return media_type == ARROW_STREAM and "q=0" not in parameters
