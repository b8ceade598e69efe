"""Streams: small chunks, one share each, given back at every end."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from omnigraph.core.errors import ResourceLimit
from omnigraph.server.streams import CHUNK_BYTES, PROCESS_BYTES, STREAM_BYTES, StreamAnswer, StreamShares
from omnigraph.server.threads import Threads

WAIT_S = 30.0
SCOPE = {"type": "http", "asgi": {"spec_version": "2.4"}}
Send = Callable[[Message], Awaitable[None]]


async def never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError("nobody comes")


def stream(pieces: Iterator[bytes], shares: StreamShares) -> StreamAnswer:
    return StreamAnswer(pieces, "application/x-ndjson", threads=Threads(), shares=shares)


def test_a_stream_is_sent_in_small_chunks() -> None:
    sent: list[bytes] = []

    async def send(message: Message) -> None:
        sent.append(message.get("body", b""))

    data = [b"a" * 200_000, b"", b"b" * 10]
    asyncio.run(_run(stream(iter(data), StreamShares()), send))

    assert b"".join(sent) == b"".join(data)
    assert max(map(len, sent)) == CHUNK_BYTES


@pytest.mark.case("surfaces", 139)
def test_a_stream_that_ends_early_gives_its_share_back() -> None:
    async def broken(message: Message) -> None:
        if message.get("body"):
            raise OSError("the reader has gone")

    async def story() -> None:
        shares = StreamShares()
        for _ in range(2 * PROCESS_BYTES // STREAM_BYTES):
            with pytest.raises(ClientDisconnect):
                await stream(iter([b"x"]), shares)(SCOPE, never, broken)
        await shares.take()

    asyncio.run(story())


@pytest.mark.case("surfaces", 679)
def test_what_makes_a_stream_is_closed_when_its_reader_has_gone() -> None:
    closed = threading.Event()

    async def broken(message: Message) -> None:
        if message.get("body"):
            raise OSError("the reader has gone")

    async def story() -> None:
        held = noted(iter([b"x", b"x"]), closed)  # held, so that nothing else closes it
        with pytest.raises(ClientDisconnect):
            await stream(held, StreamShares())(SCOPE, never, broken)
        assert await asyncio.to_thread(closed.wait, WAIT_S)

    asyncio.run(story())


@pytest.mark.case("surfaces", 679)
def test_a_piece_that_is_being_made_is_finished_before_its_maker_is_closed() -> None:
    begun, go, closed = threading.Event(), threading.Event(), threading.Event()

    def slow() -> Iterator[bytes]:
        begun.set()
        assert go.wait(WAIT_S)
        yield b"x"

    async def story() -> None:
        held, threads = noted(slow(), closed), Threads()
        answer = StreamAnswer(held, "application/x-ndjson", threads=threads, shares=StreamShares())
        sending = asyncio.ensure_future(_run(answer, never_sent_body))
        assert await asyncio.to_thread(begun.wait, WAIT_S)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await threads.read(lambda: None)  # comes behind the attempt to close
        assert not closed.is_set()
        go.set()
        assert await asyncio.to_thread(closed.wait, WAIT_S)

    asyncio.run(story())


def noted(pieces: Iterator[bytes], closed: threading.Event) -> Iterator[bytes]:
    """Yield pieces, and note when that has ended."""
    try:
        yield from pieces
    finally:
        closed.set()


def test_more_streams_than_a_process_may_have_are_refused_before_they_begin() -> None:
    async def story() -> None:
        shares = StreamShares()
        for _ in range(PROCESS_BYTES // STREAM_BYTES):
            await shares.take()
        with pytest.raises(ResourceLimit, match="stream_export_transport_bytes"):
            await stream(iter([b"x"]), shares)(SCOPE, never, never_sent)
        shares.give_back()
        await shares.take()

    asyncio.run(story())


def test_a_piece_is_made_when_the_last_one_was_taken() -> None:
    made: list[int] = []
    taken = 0

    def pieces() -> Iterator[bytes]:
        for number in range(5):
            made.append(number)
            yield b"x"

    async def send(message: Message) -> None:
        nonlocal taken
        if message.get("body"):
            taken += 1
            assert len(made) == taken

    asyncio.run(_run(stream(pieces(), StreamShares()), send))

    assert taken == 5


async def never_sent_body(message: Message) -> None:
    assert not message.get("body"), "its caller has gone"


async def never_sent(_message: Message) -> None:
    raise AssertionError("nothing is sent")


async def _run(answer: StreamAnswer, send: Send) -> None:
    await answer(SCOPE, never, send)
