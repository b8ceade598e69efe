"""What following branches leaves behind: nothing."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

import omnigraph
from omnigraph.server.events import EventResponse, EventStreams
from omnigraph.server.threads import Threads


async def no_lines() -> AsyncGenerator[bytes, None]:
    """Yield one line."""
    yield b"never sent"


@pytest.mark.case("surfaces", 907)
def test_a_branch_that_nobody_follows_any_more_is_forgotten(tmp_path: Path) -> None:
    streams, threads = EventStreams(), Threads()

    async def answered_to_nobody() -> None:
        response = EventResponse(streams, first, no_lines())

        async def gone(_message: Message) -> None:
            raise OSError("the caller has gone")

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        with pytest.raises(ClientDisconnect):
            await response({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, gone)

    with omnigraph.init(tmp_path / "graph", "node Craft { code: String @key }") as graph:
        first = streams.follow(graph, None, threads)
        streams.reserve(first)
        assert streams.follow(graph, "main", threads) is first
        streams.reserve(first)
        streams.release(first)
        assert streams.follow(graph, None, threads) is first

        asyncio.run(answered_to_nobody())

        assert streams.follow(graph, None, threads) is not first
    threads.close()
