"""Records that a server streams as NDJSON: an export, and the baseline of a feed.

L1  What is in memory does not grow with the stream: one line, and the piece that it came in.
L2  A stream that breaks off raises: records that were taken are no whole export, and a file does not appear.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import orjson

from omnigraph.client.answer import Document
from omnigraph.client.http import BrokenAnswer, HttpReply
from omnigraph.client.record_stream import lines_of, record_of, whole_lines
from omnigraph.client.remote.times import Times
from omnigraph.core.errors import BadRequest

Opened = Callable[[], AbstractContextManager[HttpReply]]


class RemoteExport:
    """The records of a branch as a server sends them: iterate over dicts, or write them with `to_file`.

    Each iteration asks anew, and shows what the branch has then.
    """

    def __init__(self, open_: Opened, times: Times) -> None:
        """Take what asks for the stream, and which properties are times."""
        self._open, self._times = open_, times

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Yield the records in the form a load takes; times are dates and aware datetimes."""
        with self._open() as answer:
            for line in lines_of(answer):
                yield self._times.record(record_of(line))

    def lines(self) -> Iterator[bytes]:
        """Yield NDJSON in pieces that end anywhere.

        Raises:
            TransportError: it was cut off.
        """
        with self._open() as answer:
            yield from whole_lines(answer)

    def to_file(self, path: str | Path) -> None:
        """Write one file of NDJSON; it appears when it is complete.

        Raises:
            BadRequest: it cannot be written.
        """
        from omnigraph.bulk.files import whole_file

        with whole_file(path) as file:
            file.writelines(self.lines())


class RemoteBaseline:
    """Every entity of a branch as a server sends them; the cursor is known behind the last one."""

    def __init__(self, open_: Opened, times: Times) -> None:
        """Take what asks for the stream, and which properties are times."""
        self._open, self._times = open_, times
        self._end: Document | None = None

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Yield the records: nodes before edges, types by name, entities by id."""
        return map(self._times.record, self._records())

    def _records(self) -> Iterator[dict[str, object]]:
        self._end = None
        with self._open() as answer:
            for line in lines_of(answer):
                record = record_of(line)
                if "baseline" in record:
                    self._end = _end_of(record)
                else:
                    yield record
            if self._end is None:
                raise BrokenAnswer("a baseline ends with its cursor")

    @property
    def snapshot_commit_id(self) -> str:
        """The commit that the records are of.

        Raises:
            BadRequest: not every record has been taken; a server says it at the end.
        """
        return str(self._ended["snapshot_commit_id"])

    @property
    def resume_cursor(self) -> str:
        """Where the feed continues.

        Raises:
            BadRequest: not every record has been taken.
        """
        return str(self._ended["resume_cursor"])

    @property
    def _ended(self) -> Document:
        if self._end is None:
            raise BadRequest("the cursor of a baseline is known once all of its records have been taken")
        return self._end

    def lines(self) -> Iterator[bytes]:
        """Yield NDJSON, a record at a time, and after the last one the commit and the cursor."""
        for record in self._records():
            yield orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        yield orjson.dumps({"baseline": self._ended}, option=orjson.OPT_APPEND_NEWLINE)

    def to_file(self, path: str | Path) -> None:
        """Write one file of NDJSON; it appears when it is complete.

        Raises:
            BadRequest: it cannot be written.
        """
        from omnigraph.bulk.files import whole_file

        with whole_file(path) as file:
            file.writelines(self.lines())


def _end_of(record: Document) -> Document:
    end = record["baseline"]
    if not (isinstance(end, dict) and {"snapshot_commit_id", "resume_cursor"} <= set(end)):
        raise BrokenAnswer("a baseline ends with its commit and its cursor")
    return end
