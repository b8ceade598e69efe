"""Long answers, sent as they are made.

X1  A piece is made when the last one was taken: a stalled reader holds up its own answer and nothing else, no
    thread included, and what a stream holds in memory does not grow with the answer.
X2  A stream begins once it has its share of what the process may have under way, and is refused after a
    moment if there is none. The share is given back when the stream ends, however it ends.
X3  A failure after the beginning cuts the body off: what has no proper end is no answer.
X4  Bytes of a value come in pieces of megabytes: the next one is read while one is sent, and no third.
X5  What makes the pieces is closed when the stream ends, however it ends: an export has as much as a table in
    temporary files, and these do not wait for a collector of garbage.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Generator, Iterator, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from omnigraph.core.errors import ResourceLimit
from omnigraph.server.threads import Threads

CHUNK_BYTES = 64 * 1024
STREAM_BYTES = 256 * 1024  # what one stream counts: some chunks in the buffers of the connection
PROCESS_BYTES = 2 * 1024 * 1024
WAIT_S = 0.25
RESOURCE = "stream_export_transport_bytes"


class StreamShares:
    """How many streams may be under way."""

    def __init__(self) -> None:
        """Begin with none."""
        self._free = asyncio.Semaphore(PROCESS_BYTES // STREAM_BYTES)

    async def take(self) -> None:
        """Take the share of one stream (X2).

        Raises:
            ResourceLimit: none became free within a moment.
        """
        try:
            async with asyncio.timeout(WAIT_S):
                await self._free.acquire()
        except TimeoutError:
            raise ResourceLimit(
                resource=RESOURCE, limit=PROCESS_BYTES, actual=PROCESS_BYTES + STREAM_BYTES
            ) from None

    def give_back(self) -> None:
        """Let another stream begin."""
        self._free.release()


class StreamAnswer(StreamingResponse):
    """An answer that is made piece by piece on threads, while its reader takes it."""

    def __init__(
        self,
        pieces: Iterator[bytes],
        media_type: str,
        *,
        threads: Threads,
        shares: StreamShares | None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Take the pieces, of any size, and what they are made with; without shares, none is taken."""
        self._pieces = _Pieces(pieces)
        super().__init__(self._chunks(), status, headers, media_type=media_type)
        self._threads, self._shares = threads, shares

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer, or refuse it before it has begun."""
        try:
            if self._shares is None:
                await super().__call__(scope, receive, send)
            else:
                await self._send_sharing(self._shares, scope, receive, send)
        finally:
            self._threads.begin_read(self._pieces.end)  # X5

    async def _send_sharing(self, shares: StreamShares, scope: Scope, receive: Receive, send: Send) -> None:
        await shares.take()
        try:
            await super().__call__(scope, receive, send)
        finally:
            shares.give_back()

    async def _chunks(self) -> AsyncIterator[bytes]:
        while (piece := await self._threads.read(self._pieces.next)) is not None:
            for chunk in _chunks_of(piece):
                yield chunk


class PieceAnswer(StreamAnswer):
    """An answer of large pieces, of which one is read ahead (X4)."""

    async def _chunks(self) -> AsyncIterator[bytes]:
        ahead = asyncio.ensure_future(self._threads.read(self._pieces.next))
        try:
            while (piece := await ahead) is not None:
                ahead = asyncio.ensure_future(self._threads.read(self._pieces.next))
                for chunk in _chunks_of(piece):
                    yield chunk
        finally:
            ahead.cancel()


def _chunks_of(piece: bytes) -> Iterator[bytes]:
    for start in range(0, len(piece), CHUNK_BYTES):
        yield piece[start : start + CHUNK_BYTES]


class _Pieces:
    """Pieces that threads make one at a time, until no more are wanted."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._lock, self._is_over = pieces, threading.Lock(), False

    def next(self) -> bytes | None:
        """Make a piece; None behind the last one, or when no more are wanted."""
        try:
            with self._lock:
                return None if self._is_over else next(self._pieces, None)
        finally:
            if self._is_over:
                self.end()

    def end(self) -> None:
        """Close what makes them, here or, if one is being made, when it is made."""
        self._is_over = True
        if self._lock.acquire(blocking=False):
            try:
                if isinstance(self._pieces, Generator):
                    self._pieces.close()
            finally:
                self._lock.release()
