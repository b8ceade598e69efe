"""The threads of reads: one at a time as long as that is enough."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from omnigraph.server.read_threads import ReadThreads

WAIT_S = 30.0
READS = 3_000  # each passes in some 20 microseconds: far more than fit into the patience of one


def test_short_reads_are_taken_by_one_thread() -> None:
    async def story() -> set[str]:
        readers = ReadThreads(8)
        names = await asyncio.gather(*(readers.run(_name) for _ in range(50)))
        assert not readers.is_busy
        readers.close()
        return set(names)

    assert len(asyncio.run(story())) <= 2  # a second one, should the machine have stopped for a moment


def test_a_read_does_not_wait_for_one_that_takes_long() -> None:
    async def story() -> None:
        readers, end = ReadThreads(2), threading.Event()
        long = asyncio.ensure_future(readers.run(lambda: end.wait(WAIT_S)))
        async with asyncio.timeout(WAIT_S / 2):
            for _ in range(3):
                assert await readers.run(_name)
        assert readers.is_busy
        end.set()
        assert await long
        readers.close()

    asyncio.run(story())


def test_as_many_reads_run_at_once_as_there_may_be_threads() -> None:
    async def story() -> None:
        readers, together = ReadThreads(4), threading.Barrier(4)
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*(readers.run(lambda: together.wait(WAIT_S)) for _ in range(8)))
        readers.close()

    asyncio.run(story())


def test_reads_that_have_waited_long_get_a_second_thread() -> None:
    """One read after the other is let through, so that the first thread always gets on."""

    async def story() -> set[str]:
        readers, gate, names = ReadThreads(2), threading.Semaphore(0), set[str]()

        def pass_gate() -> None:
            assert gate.acquire(timeout=WAIT_S)
            names.add(_name())

        reads = [asyncio.ensure_future(readers.run(pass_gate)) for _ in range(READS)]
        while not all(read.done() for read in reads[-2:]):
            gate.release()
            await asyncio.sleep(0)
        await asyncio.gather(*reads)
        readers.close()
        return names

    assert len(asyncio.run(story())) == 2


def test_a_read_whose_caller_goes_before_it_begins_never_begins() -> None:
    async def story() -> list[str]:
        readers, end, begun = ReadThreads(1), threading.Event(), list[str]()
        first = asyncio.ensure_future(readers.run(lambda: end.wait(WAIT_S)))
        second = asyncio.ensure_future(readers.run(_noting(begun, "second")))
        third = asyncio.ensure_future(readers.run(_noting(begun, "third")))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        end.set()
        await asyncio.gather(first, third)
        assert second.cancelled()
        readers.close()
        return begun

    assert asyncio.run(story()) == ["third"]


def test_what_a_read_raises_is_its_caller_s() -> None:
    def fail() -> None:
        raise LookupError("no such thing")

    async def story() -> None:
        readers = ReadThreads(1)
        with pytest.raises(LookupError, match="no such thing"):
            await readers.run(fail)
        assert await readers.run(_name)
        readers.close()

    asyncio.run(story())


def test_closing_waits_for_nobody() -> None:
    begun, end, told = threading.Event(), threading.Event(), threading.Event()

    def long() -> None:
        begun.set()
        end.wait(WAIT_S)
        told.set()

    async def story() -> ReadThreads:
        readers = ReadThreads(1)
        running = asyncio.ensure_future(readers.run(long))
        waiting = asyncio.ensure_future(readers.run(_name))
        await asyncio.sleep(0)
        assert begun.wait(WAIT_S)
        running.cancel()
        waiting.cancel()
        await asyncio.gather(running, waiting, return_exceptions=True)
        readers.close()
        return readers

    readers = asyncio.run(story())
    assert readers.is_busy
    end.set()
    assert told.wait(WAIT_S)  # its loop has ended, and nothing comes of that


def _name() -> str:
    return threading.current_thread().name


def _noting(notes: list[str], note: str) -> Callable[[], None]:
    return lambda: notes.append(note)
