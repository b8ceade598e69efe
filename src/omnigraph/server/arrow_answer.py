"""Rows as a stream of Arrow's, for callers that ask for it by their Accept header.

W1  A piece is a batch of some kilobytes, and is made when its reader has taken the one before: of a long
    answer one piece is in memory, however slowly it is read, besides the rows that it is made of.
W2  A short answer is sent at once.
"""

import io
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from omnigraph.graph.result import Result
from omnigraph.server.answers import accepts
from omnigraph.server.streams import STREAM_BYTES, StreamAnswer, StreamShares
from omnigraph.server.threads import Threads
from omnigraph.wire.arrow_stream import ARROW_STREAM, COMMIT_ID, QUERY_NAME, ROW_COUNT, target_header


def wants_arrow(request: Request) -> bool:
    """Say whether a caller names Arrow's type among those it accepts."""
    return accepts(request, ARROW_STREAM)


def arrow_answer(result: Result, threads: Threads) -> Response:
    """Return the rows as one stream; what JSON says about them is in headers.

    It takes no share of what streams may have under way: its rows are there, and reads wait for no others.
    """
    table = result.to_arrow()
    batches = (part for batch in table.to_batches() for part in _parts(batch))
    pieces = arrow_pieces(table.schema, batches)
    return pieces_answer(pieces, dict(_headers(result)), threads=threads, shares=None)


def pieces_answer(
    pieces: Iterator[bytes],
    headers: Mapping[str, str],
    *,
    threads: Threads,
    shares: StreamShares | None,
) -> Response:
    """Return one stream of Arrow's: a short one at once (W2), otherwise as it is taken (W1)."""
    first = b""
    for piece in pieces:
        first += piece
        if len(first) > STREAM_BYTES:
            return StreamAnswer(
                _from_first(first, pieces), ARROW_STREAM, threads=threads, shares=shares, headers=headers
            )
    return Response(first, 200, headers, media_type=ARROW_STREAM)


def _from_first(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    """Yield all pieces; closing this closes what makes the others."""
    yield first
    yield from others


def arrow_pieces(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """Yield one stream of batches as it is made, a batch at a time."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield _taken(sink)
    yield _taken(sink)


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in halves of halves, until each is a piece; a row is never divided (W1)."""
    if batch.nbytes <= STREAM_BYTES or batch.num_rows < 2:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _parts(batch.slice(0, half))
    yield from _parts(batch.slice(half))


def _taken(sink: io.BytesIO) -> bytes:
    piece = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return piece


def _headers(result: Result) -> Iterator[tuple[str, str]]:
    yield QUERY_NAME, result.query_name
    yield ROW_COUNT, str(result.row_count)
    yield COMMIT_ID, result.commit_id
    for name, value in result.target.items():
        if value is not None:
            yield target_header(name), quote(value, safe="/")
