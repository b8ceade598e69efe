"""The rows that a server answered with, as the `Result` that a graph in its storage gives.

A server that knows the types of the rows sends a stream of Arrow's; from another one come JSON values, whose
types the schema says (`json_rows.py`).
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.client.answer import Document
from omnigraph.client.http import BrokenAnswer, HttpReply
from omnigraph.client.understood import understood
from omnigraph.core.arrays import Values
from omnigraph.graph.result import Result
from omnigraph.operations.query import QueryAnswer, ReadTarget
from omnigraph.wire.arrow_stream import COMMIT_ID, QUERY_NAME, ROW_COUNT, TARGET_KINDS, target_header


def result_of_stream(answer: HttpReply) -> Result:
    """Return the rows of a stream; it is read as it comes, so that they are in memory once.

    Raises:
        BrokenAnswer: it was cut off, or is no such stream.
    """
    with reader_of(answer) as reader:
        table = pa.Table.from_batches(batches_of(reader, answer), reader.schema)
    with understood():
        headers = answer.headers
        named = {kind: headers.get(target_header(kind)) for kind in TARGET_KINDS}
        target = ReadTarget(**{kind: None if name is None else unquote(name) for kind, name in named.items()})
        return Result(QueryAnswer(headers[QUERY_NAME], table, target, headers[COMMIT_ID]))


def entity_of_stream(answer: HttpReply, id: str) -> dict[str, object]:
    """Return the one row of a stream.

    Raises:
        BrokenAnswer: it was cut off, or is no stream of the row of this entity.
    """
    with reader_of(answer) as reader:
        rows = [row for batch in batches_of(reader, answer) for row in batch.to_pylist()]
    if len(rows) != 1 or rows[0].get("id") != id:
        raise BrokenAnswer("it is not the row of the entity that was asked for")
    return dict(rows[0])


@contextmanager
def reader_of(answer: HttpReply) -> Iterator[pa.RecordBatchReader]:
    """Yield what reads the stream of an answer, as it comes.

    Raises:
        BrokenAnswer: it was cut off, or is no such stream.
    """
    try:
        with pa.ipc.open_stream(pa.PythonFile(_Pieces(answer.pieces), mode="r")) as reader:
            yield reader
    except (pa.ArrowException, OSError, UnicodeError) as error:  # of a body that ends too soon: OSError
        raise BrokenAnswer(f"it is not a stream of rows: {error}") from error


def batches_of(reader: pa.RecordBatchReader, answer: HttpReply) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a stream in batches.

    Raises:
        BrokenAnswer: there are not as many of them as the answer says.
    """
    with understood():
        missing = int(answer.headers[ROW_COUNT])
    for batch in reader:
        batch.validate(full=True)  # who answers may be anybody
        check_times(batch)
        missing -= batch.num_rows
        yield batch
    if missing:
        raise BrokenAnswer("it has other rows than it says")


def result_of_document(document: Document, table: pa.Table) -> Result:
    """Return the rows of a document, of which the table is made already."""
    with understood():
        target = ReadTarget(*(document["target"].get(kind) for kind in TARGET_KINDS))
        commit_id = document.get("graph_commit_id") or ""
        return Result(QueryAnswer(str(document["query_name"]), table, target, str(commit_id)))


def check_times(batch: pa.RecordBatch) -> None:
    """Make sure that every time is one of a year from 1 to 9999, which programs have objects for.

    Raises:
        BrokenAnswer: one is not.
    """
    for column in batch.columns:
        _check_times(column)


def _check_times(column: Values) -> None:
    type_ = column.type
    if isinstance(column, pa.StructArray):
        for place in range(type_.num_fields):
            _check_times(column.field(place))
    elif isinstance(column, pa.ListArray | pa.FixedSizeListArray | pa.LargeListArray):
        _check_times(column.flatten())
    elif pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        try:
            pc.min_max(column).as_py()
        except (ValueError, OverflowError, LookupError) as error:  # a zone may be none either
            raise BrokenAnswer("it has a time that no calendar has") from error


class _Pieces(io.RawIOBase):
    """Bytes as they come, for a reader that takes a short answer for the end."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, memoryview(b"")

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return as many bytes as are asked for, fewer only at the end; no more is held than has come."""
        taken: list[memoryview] = []
        while size:
            if not self._rest:
                piece = next(self._pieces, None)
                if piece is None:
                    break
                self._rest = memoryview(piece)
            count = len(self._rest) if size < 0 else min(size, len(self._rest))
            taken.append(self._rest[:count])
            self._rest = self._rest[count:]
            size -= count if size > 0 else 0
        return b"".join(taken)
