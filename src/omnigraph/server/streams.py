"""Long answers, sent as they are made.

X1  A piece is made when the last one was taken: a stalled reader holds up its own answer and nothing else, no
    thread included, and what a stream holds in memory does not grow with the answer.
X2  A stream begins once it has its share of what the process may have under way, and is refused after a
    moment if there is none. The share is given back when the stream ends, however it ends.
X3  A failure after the beginning cuts the body off: what has no proper end is no answer.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

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
        self, pieces: Iterator[bytes], media_type: str, *, threads: Threads, shares: StreamShares
    ) -> None:
        """Take the pieces, of any size, and what they are made with."""
        super().__init__(self._chunks(pieces), media_type=media_type)
        self._threads, self._shares = threads, shares

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer, or refuse it before it has begun."""
        await self._shares.take()
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._shares.give_back()

    async def _chunks(self, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
        while (piece := await self._threads.read(_next(pieces))) is not None:
            for start in range(0, len(piece), CHUNK_BYTES):
                yield piece[start : start + CHUNK_BYTES]


def _next(pieces: Iterator[bytes]) -> Callable[[], bytes | None]:
    return lambda: next(pieces, None)
