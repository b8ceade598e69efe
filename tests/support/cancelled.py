"""Cancelling an asynchronous call at a place: its thread stands still while its task is cancelled."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from tests.support.http_server import WAIT_S

Twin = TypeVar("Twin")


class Stop:
    """A place in the engine at which a call stands still until it is let go."""

    def __init__(self) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.go_on.wait(WAIT_S)


async def cancelled_at(graph: Twin, stop: Stop, call: Callable[[Twin], Any]) -> asyncio.CancelledError:
    """Cancel a call that stands at a place, twice, let it go on, and return how it ends."""
    task = asyncio.ensure_future(call(graph))
    assert await asyncio.to_thread(stop.reached.wait, WAIT_S)
    task.cancel()
    await asyncio.sleep(0)  # the task takes the cancellation
    task.cancel()
    assert not task.done()
    stop.go_on.set()
    with pytest.raises(asyncio.CancelledError) as ended:
        await task
    return ended.value
