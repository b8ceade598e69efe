"""Rows as Arrow: short ones at once, long ones a piece at a time."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from starlette.types import Message

from omnigraph.graph.result import Result
from omnigraph.operations.query import QueryAnswer, ReadTarget
from omnigraph.server.arrow_answer import arrow_answer, arrow_pieces
from omnigraph.server.streams import CHUNK_BYTES, PROCESS_BYTES, STREAM_BYTES, StreamAnswer
from omnigraph.server.threads import Threads
from tests.support.seam import patched

SCOPE = {"type": "http", "asgi": {"spec_version": "2.4"}}
MIB = 1024 * 1024
SHORT, LONG = "s" * 10, "l" * (2 * STREAM_BYTES)


def result(texts: "pa.Array[Any]") -> Result:
    return Result(QueryAnswer("q", pa.table({"text": texts}), ReadTarget("main", None), "01"))


async def never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError("nobody comes")


def taken(answer: StreamAnswer, look: list[int], made: list[int]) -> bytes:
    """Take an answer slowly, and note how much was made beyond what was taken, each time."""
    sent = bytearray()

    async def send(message: Message) -> None:
        sent.extend(message.get("body", b""))
        await asyncio.sleep(0)  # whoever makes pieces ahead gets on with it
        look.append(sum(made) - len(sent))

    asyncio.run(answer(SCOPE, never, send))
    return bytes(sent)


@pytest.mark.case("surfaces", 833)
def test_a_long_answer_is_made_as_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    look: list[int] = []
    pieces_of = arrow_pieces

    def counted(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
        for piece in pieces_of(schema, batches):
            made.append(len(piece))
            yield piece

    patched(monkeypatch, "omnigraph.server.arrow_answer.arrow_pieces", counted)
    rows = result(pa.array([f"{number:0220}" for number in range(100_000)]))

    answer = arrow_answer(rows, Threads())
    at_first = sum(made)
    assert isinstance(answer, StreamAnswer)
    body = taken(answer, look, made)

    assert len(body) > 20 * MIB
    assert at_first <= 2 * STREAM_BYTES + CHUNK_BYTES  # what it takes to know that it is no short one
    assert max(made) <= STREAM_BYTES + CHUNK_BYTES
    assert max(look) <= at_first
    assert pa.ipc.open_stream(body).read_all().equals(rows.to_arrow())
    assert answer.headers["omnigraph-row-count"] == "100000"


@pytest.mark.case("surfaces", 833)
def test_rows_of_any_size_are_divided() -> None:
    made: list[int] = []
    rows = result(pa.array([SHORT] * 5_000 + [LONG] + [SHORT] * 50_000 + [LONG, LONG, None]))

    answer = arrow_answer(rows, Threads())
    assert isinstance(answer, StreamAnswer)
    body = taken(answer, [], made)

    batches = list(pa.ipc.open_stream(body))
    assert pa.Table.from_batches(batches).equals(rows.to_arrow())
    assert max(batch.nbytes for batch in batches) <= len(LONG) + STREAM_BYTES


@pytest.mark.case("surfaces", 833)
def test_many_callers_may_read_long_answers_at_a_time() -> None:
    rows, callers = result(pa.array([LONG] * 4)), 2 * PROCESS_BYTES // STREAM_BYTES

    async def story() -> None:
        begun, all_have_begun = [], asyncio.Event()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun.append(message["status"])
                if len(begun) == callers:
                    all_have_begun.set()
                await all_have_begun.wait()

        await asyncio.gather(*(arrow_answer(rows, threads)(SCOPE, never, send) for _ in range(callers)))
        assert begun == [200] * callers

    threads = Threads()
    asyncio.run(story())


@pytest.mark.case("surfaces", 331)
@pytest.mark.parametrize("texts", [[], ["a", None]])
def test_a_short_answer_is_sent_at_once(texts: list[str | None]) -> None:
    rows = result(pa.array(texts, pa.string()))

    answer = arrow_answer(rows, Threads())

    assert not isinstance(answer, StreamAnswer)
    assert pa.ipc.open_stream(bytes(answer.body)).read_all().equals(rows.to_arrow())
