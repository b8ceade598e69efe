"""Where the engine runs: it blocks, so never on the thread that serves connections.

T1  Reads do not wait for writes: each kind has threads of its own.
T2  A write that has begun is finished, also when its caller has gone and when the server is told to stop.
    Work that still waits for a thread when its caller goes never begins.
T3  Nobody waits for a read whose caller is no longer waited for: it leaves nothing behind.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.requests import ClientDisconnect

from omnigraph.server.read_threads import ReadThreads, Worked

READERS = max(8, 2 * (os.cpu_count() or 1))  # a read that waits for a disk or a store leaves a core to others
WRITERS = 32  # two actors at their limit; writes mostly wait for each other and for the disk


class Threads:
    """The threads of one server."""

    def __init__(self, *, writers: int = WRITERS) -> None:
        """Start none yet: each is started when there is work for it."""
        self._readers = ReadThreads(READERS)
        self._writers = ThreadPoolExecutor(writers, "omnigraph-write")

    @property
    def is_reading(self) -> bool:
        """Whether a read still runs, or waits to."""
        return self._readers.is_busy

    async def read(self, work: Callable[[], Worked]) -> Worked:
        """Run a read and return what it made."""
        return await self._readers.run(work)

    async def write(
        self, work: Callable[[], Worked], *, done: Callable[[], None], gone: Awaitable[object]
    ) -> Worked:
        """Run a write and return what it made; `done` is called when it has ended or will never begin.

        Raises:
            ClientDisconnect: the caller had gone, which `gone` tells, before the write began (T2).
        """
        future = self._writers.submit(work)
        future.add_done_callback(lambda _: done())
        waiting, watch = asyncio.wrap_future(future), asyncio.ensure_future(gone)
        try:
            both: set[asyncio.Future[Any]] = {waiting, watch}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done() and future.cancel():
                raise ClientDisconnect
            return await waiting
        finally:
            watch.cancel()

    def close(self) -> None:
        """Wait until the writes that have begun are done (T2), and for no read (T3)."""
        self._readers.close()
        self._writers.shutdown()
