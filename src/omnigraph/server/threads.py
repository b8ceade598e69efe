"""Where the engine runs: it blocks, so never on the thread that serves connections.

T1  Reads do not wait for writes: each kind has threads of its own.
T2  A write whose caller goes before its effects begin has none: one that waits for a thread never gets it,
    one that runs ends where it next looks. From then on it is finished, whoever has gone; and a write that
    runs when the server is told to stop is finished, too.
T3  Nobody waits for a read whose caller is no longer waited for: it leaves nothing behind.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.requests import ClientDisconnect

from omnigraph.core.cancellation import CallCancelled, Cancellation, cancellable
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

    def begin_read(self, work: Callable[[], object]) -> None:
        """Run a read that nobody waits for."""
        self._readers.begin(work)

    async def write(
        self, work: Callable[[], Worked], *, done: Callable[[], None], gone: Awaitable[object]
    ) -> Worked:
        """Run a write and return what it made; `done` is called when it has ended or will never begin.

        Raises:
            ClientDisconnect: the caller had gone, which `gone` tells, before the write had effects (T2).
        """
        cancellation = Cancellation()
        future = self._writers.submit(_within, cancellation, work)
        future.add_done_callback(lambda _: done())
        waiting, watch = asyncio.wrap_future(future), asyncio.ensure_future(gone)
        try:
            both: set[asyncio.Future[Any]] = {waiting, watch}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                if future.cancel():
                    raise ClientDisconnect
                cancellation.ask()
            return await waiting
        except CallCancelled:
            raise ClientDisconnect from None
        finally:
            watch.cancel()

    def close(self) -> None:
        """Wait until the writes that have begun are done (T2), and for no read (T3)."""
        self._readers.close()
        self._writers.shutdown()


def _within(cancellation: Cancellation, work: Callable[[], Worked]) -> Worked:
    with cancellable(cancellation):
        cancellation.check()
        return work()
