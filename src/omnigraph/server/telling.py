"""An answer that tells how the work gets on: lines of NDJSON, and how it ended as the last of them.

L1  Until the first thing is told, work that fails is answered as ever, with its status. Afterwards the last
    line says how it ended: `result` or `error`. A body without either was cut off, and says nothing.
L2  The work never waits for its reader: of what was told and not taken the newest lines are kept.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any

import orjson
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from omnigraph.core.values import Json

LINES_MAX = 64  # a load tells of every 4 MiB that it has read


class Telling:
    """What the work of one request has told, and nobody has taken yet."""

    def __init__(self) -> None:
        """Begin with nothing; the loop is that of the request."""
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes] = deque(maxlen=LINES_MAX)
        self._is_more = asyncio.Event()
        self._has_begun = False

    def tell(self, document: Json) -> None:
        """Tell something, from the thread of the work."""
        with suppress(RuntimeError):  # the loop has ended, and with it whoever listened
            self._loop.call_soon_threadsafe(self._put, orjson.dumps(document) + b"\n")

    async def answer(
        self, work: Coroutine[Any, Any, Response], failed: Callable[[Exception], Response], media_type: str
    ) -> Response:
        """Start the work, and return its answer as it will be told.

        Raises:
            Exception: the work failed before it told anything (L1).
        """
        working = asyncio.ensure_future(work)
        working.add_done_callback(_looked_at)
        await self._until_more(working)
        if not self._has_begun and working.done():
            await working
        return StreamingResponse(self._told(working, failed), media_type=media_type)

    async def _told(
        self, working: "asyncio.Future[Response]", failed: Callable[[Exception], Response]
    ) -> AsyncIterator[bytes]:
        is_over = False
        while not is_over:
            await self._until_more(working)
            is_over = working.done()
            self._is_more.clear()
            while self._lines:
                yield self._lines.popleft()
        try:
            made = await working
        except ClientDisconnect:
            raise  # there is nobody to tell
        except Exception as error:  # noqa: BLE001 - the head is sent: this is where errors end
            yield bytes(failed(error).body) + b"\n"
        else:
            yield b'{"result":' + bytes(made.body) + b"}\n"

    async def _until_more(self, working: "asyncio.Future[Response]") -> None:
        """Wait until something was told, or the work has ended."""
        more = asyncio.ensure_future(self._is_more.wait())
        both: set[asyncio.Future[Any]] = {working, more}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            more.cancel()

    def _put(self, line: bytes) -> None:
        self._lines.append(line)  # L2
        self._has_begun = True
        self._is_more.set()


def _looked_at(working: "asyncio.Future[Response]") -> None:
    """Look at how the work ended, although its caller may have gone: it is known elsewhere."""
    if not working.cancelled():
        working.exception()
