"""The asynchronous twins: written from the same definitions, with the same answers, and cancelled safely."""

import asyncio
import gc
from collections.abc import AsyncIterable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import omnigraph
from omnigraph.client.asynchronous.embedded import AsyncGraph
from omnigraph.client.asynchronous.remote import AsyncRemoteGraph
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.graph.stored_files import given_queries
from omnigraph.server.serving import Serving
from tests.support import async_source
from tests.support.cancelled import Stop, cancelled_at
from tests.support.http_app import listening, settings_for
from tests.support.http_server import WAIT_S
from tests.support.parity import ADD, SCAN, STEPS, place_parity, told

Whatever: TypeAlias = Any  # steps are written for every kind of graph
LOADS = b'{"type":"Mission","data":{"title":"Saturn"}}\n'


def test_the_twins_are_what_their_classes_say(request: pytest.FixtureRequest) -> None:
    for name, text in async_source.render().items():
        file = async_source.FOLDER / name
        if request.config.getoption("--accept"):
            file.write_text(text, encoding="utf-8")
        assert file.read_text(encoding="utf-8") == text, "pytest tests/surfaces/client --accept rewrites it"


@pytest.mark.case("surfaces", 617)
def test_every_public_name_is_known_to_read_or_to_write() -> None:
    names = {name for of in (Graph, RemoteGraph) for name in dir(of) if not name.startswith("_")}

    known = async_source.READS | async_source.WRITES
    assert sorted(names - known) == [], "say in tests/support/async_source.py whether it writes"
    assert not async_source.READS & async_source.WRITES


class Sync:
    """A twin for steps that know of no event loop: coroutines are awaited, iterators read to their end."""

    def __init__(self, it: object, loop: asyncio.AbstractEventLoop) -> None:
        self._it, self._loop = it, loop

    def __getattr__(self, name: str) -> Whatever:
        found = getattr(self._it, name)
        return self._called(found) if callable(found) else found

    def _called(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: object, **options: object) -> Whatever:
            return self._waited(method(*arguments, **options))

        return call

    def _waited(self, value: Whatever) -> Whatever:
        if asyncio.iscoroutine(value):
            value = self._loop.run_until_complete(value)
        return Sync(value, self._loop) if type(value).__name__.startswith(("Async", "_Async")) else value

    def __iter__(self) -> Iterator[Any]:
        async def read() -> list[object]:
            assert isinstance(self._it, AsyncIterable)
            return [item async for item in self._it]

        return iter(self._loop.run_until_complete(read()))

    def __enter__(self) -> "Sync":
        entered: Any = self._it
        return Sync(self._loop.run_until_complete(entered.__aenter__()), self._loop)

    def __exit__(self, *raised: object) -> object:
        entered: Any = self._it
        return self._loop.run_until_complete(entered.__aexit__(*raised))


def run_steps(graph: object) -> list[str]:
    # `catalog` and `queries` are methods here; the context manager of `branch` is no coroutine.
    with asyncio.Runner() as runner:
        twin = Sync(graph, runner.get_loop())
        found = [told(step, twin) for step in STEPS]
        twin.close()
    return found


@pytest.mark.case("surfaces", 189)
@pytest.mark.case("surfaces", 617)
@pytest.mark.case("surfaces", 880)
@pytest.mark.case("surfaces", 882)
def test_the_twins_give_what_the_storage_gives(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("sync", "async", "served")]
    for place in places:
        place_parity(place)
    with omnigraph.open(places[0] / "g.omni", queries=places[0] / "stored.gq") as graph:
        expected = [told(step, graph) for step in STEPS]
    embedded = run_steps(AsyncGraph(omnigraph.open(places[1] / "g.omni", queries=places[1] / "stored.gq")))
    serving = Serving.begin(
        settings_for(places[2] / "g.omni", queries=given_queries(places[2] / "stored.gq"))
    )
    try:
        with listening(serving) as url:
            graph_there = omnigraph.connect(url)
            assert isinstance(graph_there, RemoteGraph)
            served = run_steps(AsyncRemoteGraph(graph_there))
    finally:
        serving.close()

    for found in (embedded, served):
        assert [(s.name, a, b) for s, a, b in zip(STEPS, expected, found, strict=True) if a != b] == []


# Cancellation


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return place_parity(tmp_path)


CALLS: dict[str, Callable[[AsyncGraph], Any]] = {
    "mutate": lambda graph: graph.mutate(ADD, params={"code": "C-1"}),
    "load": lambda graph: graph.load(LOADS, "append", engine="local"),
}


@pytest.mark.case("surfaces", 618)
@pytest.mark.parametrize("name", CALLS)
def test_a_write_cancelled_before_its_effects_leaves_nothing(name: str, place: Path) -> None:
    async def main() -> None:
        stop = Stop()
        async with AsyncGraph(omnigraph.open(place)) as graph:
            before = await graph.commits()
            with failpoint("write.post_stage_pre_gate", call=stop):
                ended = await cancelled_at(graph, stop, CALLS[name])
            assert not getattr(ended, "__notes__", [])
            assert await graph.commits() == before
            result = await graph.mutate(ADD, params={"code": "C-2"})  # nobody stands in the way
            assert result.commit is not None
            report = await graph.verify(deep=True)
            assert report.is_whole
            assert not list((place / "__recovery").glob("*.json"))

    asyncio.run(main())


@pytest.mark.case("surfaces", 807)
@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_logged_about_a_write_that_was_cancelled(
    name: str, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        stop = Stop()
        async with AsyncGraph(omnigraph.open(place)) as graph:
            with failpoint("write.post_stage_pre_gate", call=stop):
                await cancelled_at(graph, stop, CALLS[name])
            await asyncio.sleep(0)
        gc.collect()  # what is wrong with a future is logged when it goes

    asyncio.run(main())
    gc.collect()

    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.case("surfaces", 618)
@pytest.mark.parametrize("name", CALLS)
def test_a_write_cancelled_after_phase_a_is_completed_and_then_cancelled(name: str, place: Path) -> None:
    async def main() -> None:
        stop = Stop()
        async with AsyncGraph(omnigraph.open(place)) as graph:
            before = await graph.commits()
            with failpoint("write.post_sidecar_pre_commit", call=stop):
                ended = await cancelled_at(graph, stop, CALLS[name])
            landed = (await graph.commits())[0]
            assert landed.parent_commit_id == before[0].graph_commit_id
            assert ended.__notes__ == [f"the write had already landed, as commit {landed.graph_commit_id}"]

    asyncio.run(main())


@pytest.mark.case("surfaces", 618)
def test_a_write_that_waits_for_its_turn_leaves_the_line(place: Path) -> None:
    async def main() -> None:
        stop = Stop()
        async with AsyncGraph(omnigraph.open(place)) as graph:
            with failpoint("write.post_sidecar_pre_commit", call=stop):
                first = asyncio.ensure_future(CALLS["mutate"](graph))
                assert await asyncio.to_thread(stop.reached.wait, WAIT_S)
                waiting = asyncio.ensure_future(graph.mutate(ADD, params={"code": "C-3"}))
                await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting  # while the first one still stands
                assert not first.done()
                stop.go_on.set()
                assert (await first).affected_nodes == 1
            codes = [row["c.code"] for row in await graph.query(_CODES)]
            assert "C-3" not in codes

    asyncio.run(main())


_CODES = "query q() { match { $c: Craft } return { $c.code } }"


@pytest.mark.case("surfaces", 618)
def test_a_read_that_is_cancelled_is_not_waited_for(place: Path) -> None:
    async def main() -> None:
        stop = Stop()
        async with AsyncGraph(omnigraph.open(place)) as graph:
            with failpoint("query.post_pin_pre_read", call=stop):
                task = asyncio.ensure_future(graph.query(_CODES))
                assert await asyncio.to_thread(stop.reached.wait, WAIT_S)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task  # and the read still stands
                stop.go_on.set()
            assert len(await graph.query(_CODES)) == 3

    asyncio.run(main())


@pytest.mark.case("surfaces", 617)
def test_an_iterator_that_is_left_early_is_closed(place: Path) -> None:
    async def main() -> None:
        async with await omnigraph.connect_async(place) as graph:
            assert isinstance(graph, AsyncGraph)
            async for record in await graph.export():
                assert record["type"]
                break
            async with graph.branch("june", from_="main") as june:
                await june.mutate(ADD, params={"code": "C-4"})
            assert await graph.branches() == ["june", "main"]
        with pytest.raises(RuntimeError):
            await graph.branches()

    asyncio.run(main())


# Values and rows


@pytest.mark.case("surfaces", 721)
def test_a_blob_and_rows_of_a_twin_are_read_on_threads(tmp_path: Path) -> None:
    serving = Serving.begin(settings_for(place_parity(tmp_path)))

    async def read(graph: AsyncGraph | AsyncRemoteGraph) -> tuple[object, ...]:
        blob = await graph.blob("node", "Paper", "P-1", "scan")
        pieces = [piece async for piece in blob.stream(1)]
        await blob.save(tmp_path / "saved")
        batches = [batch async for batch in await graph.scan("Mission", columns=["title"])]
        titles = sorted(row["title"] for batch in batches for row in batch.to_pylist())
        return blob.kind, blob.size, blob.etag, await blob.read(), pieces, titles

    async def both(url: str) -> list[tuple[object, ...]]:
        there = omnigraph.connect(url)
        assert isinstance(there, RemoteGraph)
        found = []
        for graph in (AsyncGraph(omnigraph.open(tmp_path / "g.omni", mode="ro")), AsyncRemoteGraph(there)):
            async with graph:
                found.append(await read(graph))
        return found

    try:
        with listening(serving) as url:
            embedded, served = asyncio.run(both(url))
    finally:
        serving.close()

    assert served == embedded
    assert served[3:] == (SCAN, [SCAN[1:]], ["Grand Tour", "Jupiter"])
    assert (tmp_path / "saved").read_bytes() == SCAN
