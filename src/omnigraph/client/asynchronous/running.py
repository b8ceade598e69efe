"""How calls of a graph run beside an event loop: on threads, because the engine blocks.

A1  A write that is cancelled before its effects begin leaves nothing; afterwards it goes on to its end. In
    both cases the cancellation is delivered when that is settled, with a note if the call was completed.
A2  A read that is cancelled is not waited for: it leaves nothing behind, and ends where it next looks.
A3  An iterator makes some items at a time on a thread. Left early, it is closed there.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from itertools import islice
from typing import Any, TypeVar

from omnigraph.core.cancellation import CallCancelled, Cancellation, cancellable

THREADS_MAX = 32  # of one handle: most calls wait for a disk, a store or a server
ITEMS_AT_ONCE = 256  # waking a thread for every record would take longer than making it
Called = TypeVar("Called")


class CallThreads:
    """The threads of one handle and of all that it hands out."""

    def __init__(self) -> None:
        """Start none yet."""
        self._pool = ThreadPoolExecutor(THREADS_MAX, "omnigraph-async")

    async def read(self, call: Callable[[], Called]) -> Called:
        """Run a call that changes nothing (A2)."""
        cancellation = Cancellation()
        future = self._pool.submit(_within, cancellation, call)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            cancellation.ask()
            raise

    async def write(self, call: Callable[[], Called]) -> Called:
        """Run a call that may change the graph (A1)."""
        cancellation = Cancellation()
        future = self._pool.submit(_within, cancellation, call)
        running = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError as cancelled:
            cancellation.ask()
            while not running.done():
                try:
                    await asyncio.wait([running])
                except asyncio.CancelledError:  # asked once more: it is settled soon, and delivered once
                    continue
            if not running.cancelled():
                running.exception()  # an error that nobody looks at would be logged as one that got lost
            _note(cancelled, future)
            raise

    async def items(self, items: Iterable[Called], *, at_once: int = ITEMS_AT_ONCE) -> AsyncGenerator[Called]:
        """Yield what an iterable gives (A3)."""
        lock, iterator = threading.Lock(), iter(items)

        def some() -> list[Called]:
            with lock:
                return list(islice(iterator, at_once))

        try:
            while made := await self.read(some):
                for item in made:
                    yield item
        finally:
            self._close_behind(lock, iterator)

    def _close_behind(self, lock: threading.Lock, iterator: Iterator[Any]) -> None:
        """Close an iterator, after the items that a thread may still be making."""
        close = getattr(iterator, "close", None)
        if close is None:
            return

        def closing() -> None:
            with lock:
                close()

        try:
            self._pool.submit(closing)
        except RuntimeError:  # the handle is closed, and nothing of it can be used
            closing()

    def end(self) -> None:
        """Take no more calls; those that run end by themselves."""
        self._pool.shutdown(wait=False)


def leave(entered: AbstractContextManager[object], error: BaseException) -> None:
    """Leave a block that an error ended, as the block of a `with` statement is left; the caller raises it."""
    with suppress(type(error)):
        entered.__exit__(type(error), error, error.__traceback__)


def _within(cancellation: Cancellation, call: Callable[[], Called]) -> Called:
    with cancellable(cancellation):
        cancellation.check()
        try:
            return call()
        except StopIteration as error:  # which no future can hold
            raise RuntimeError("a call ended as an iterator does") from error


def _note(cancelled: BaseException, future: "Future[Any]") -> None:
    """Say on a cancellation what became of the write, where there is something to say."""
    if future.cancelled():
        return
    error = future.exception()
    if error is not None:
        if not isinstance(error, CallCancelled):
            cancelled.add_note(f"the call failed: {error}")
        return
    commit = getattr(future.result(), "commit", None)
    if commit is None:  # a branch that was made or deleted, or nothing to change
        cancelled.add_note("the call had already been completed")
    else:
        cancelled.add_note(f"the write had already landed, as commit {commit.graph_commit_id}")
