"""Rows whose batches are larger than what a socket gives at a time: read whole, or an error."""

import asyncio
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.client.asynchronous.remote import AsyncRemoteGraph
from omnigraph.server.serving import Serving
from tests.support.http_app import listening, settings_for
from tests.support.scripted import HEAD, Answer, serving

SCHEMA = "node Craft { code: String @key }"
CODES = "query codes() { match { $c: Craft } return { $c.code } }"
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}


@pytest.fixture(scope="module", params=[5_000, 50_000])
def count(request: pytest.FixtureRequest) -> int:
    """How many rows there are: fewer than a batch of a stream has, and several of those."""
    number: int = request.param
    return number


@pytest.fixture(scope="module")
def url(count: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a graph of so many short keys."""
    place = tmp_path_factory.mktemp("codes") / "g.omni"
    with omnigraph.init(place, SCHEMA, durability="process") as graph:
        rows = pa.table({"code": [f"C-{number:06}" for number in range(count)]})
        graph.load_tables({"Craft": rows}, "append", index=False)
    served = Serving.begin(settings_for(place))
    try:
        with listening(served) as url:
            yield url
    finally:
        served.close()


def in_order(column: "pa.ChunkedArray[Any]") -> list[str | None]:
    """Return the values of a column, ascending."""
    found: list[str | None] = column.sort().to_pylist()
    return found


@pytest.mark.case("surfaces", 725)
def test_rows_of_any_number_are_read(url: str, count: int) -> None:
    expected = [f"C-{number:06}" for number in range(count)]

    with omnigraph.connect(url) as graph:
        result = graph.query(CODES)
        assert in_order(result.to_arrow().column(0)) == expected
        assert graph.table("Craft")["code"].to_pylist() == expected
        assert in_order(graph.scan("Craft").to_arrow()["code"]) == expected
        assert in_order(pa.chunked_array([batch["code"] for batch in graph.scan("Craft")])) == expected


@pytest.mark.case("surfaces", 725)
def test_rows_of_any_number_are_read_asynchronously(url: str, count: int) -> None:
    expected = [f"C-{number:06}" for number in range(count)]

    async def main() -> None:
        async with await omnigraph.connect_async(url) as graph:
            assert isinstance(graph, AsyncRemoteGraph)
            result = await graph.query(CODES)
            assert in_order(result.to_arrow().column(0)) == expected
            assert (await graph.table("Craft"))["code"].to_pylist() == expected
            scanned = await graph.scan("Craft")
            assert in_order((await scanned.to_arrow())["code"]) == expected

    asyncio.run(main())


def stream_of(batches: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    whole: bytes = sink.getvalue().to_pybytes()
    return whole


@pytest.mark.case("surfaces", 725)
@pytest.mark.parametrize("parts", [1, 3])
def test_a_large_stream_that_is_cut_off_is_no_table(parts: int) -> None:
    batch = pa.record_batch({"id": [f"C-{number:06}" for number in range(50_000)]})
    size = len(batch) // parts
    batches = [batch.slice(part * size, size) for part in range(parts)]
    table, rows = pa.Table.from_batches(batches), stream_of(batches)
    said = {**ARROW, "Omnigraph-Row-Count": str(len(table)), "Omnigraph-Graph-Commit-Id": HEAD}
    # The last batch is without its last bytes, without its half, or not there.
    cuts = [len(rows) - 16, len(rows) - 200_000, len(stream_of(batches[:-1])) - 8 if parts > 1 else 1_000]
    answers: list[Answer] = [(200, rows[:cut], said) for cut in cuts]
    with serving(*answers, (200, rows, said)) as script, script.remote() as graph:
        found = graph.scan("Mission", snapshot=HEAD)
        for _ in cuts:
            with pytest.raises(omnigraph.TransportError):
                found.to_arrow()
        assert found.to_arrow() == table


@pytest.mark.case("surfaces", 787)
def test_what_is_held_is_what_came_and_not_what_was_announced() -> None:
    rows = stream_of([pa.record_batch({"id": ["a", "b"]})])
    length = struct.pack("<q", 24)  # of the body of the one batch: offsets and letters
    assert rows.count(length) == 1
    said = {**ARROW, "Omnigraph-Row-Count": "2", "Omnigraph-Graph-Commit-Id": HEAD}
    with (
        serving((200, rows.replace(length, struct.pack("<q", 2**44)), said)) as script,
        script.remote() as graph,
        pytest.raises(omnigraph.TransportError),
    ):
        graph.scan("Mission", snapshot=HEAD).to_arrow()
