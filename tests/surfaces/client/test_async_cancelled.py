"""Every write of an asynchronous graph, cancelled before it has effects and behind: undone, or completed."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.client.asynchronous.embedded import AsyncGraph
from omnigraph.client.asynchronous.remote import AsyncRemoteGraph
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history import branches
from omnigraph.server.serving import Serving
from tests.protocol.interrupts.scenes import WITH_TYPE, look, new_graph, open_graph, write_everywhere
from tests.support.cancelled import Stop, cancelled_at
from tests.support.http_app import listening, settings_for
from tests.support.seam import patched

AnyTwin: TypeAlias = Any  # embedded or remote: the calls are the same
LINES = b'{"type":"Person","data":{"name":"eve"}}\n'
ROWS = {"Person": pa.table({"name": ["eve"]})}
NAMING = "the name of a branch that is made"
GUS = 'query gus() { insert Person { name: "gus" } }'


@dataclass(frozen=True)
class Write:
    """A call, and the places before its first effect and behind it at which it is cancelled."""

    call: Callable[[AnyTwin], Any]
    before: str
    after: str
    is_commit: bool = True


WRITES = {
    "mutate": Write(
        lambda graph: graph.mutate(GUS), "write.post_stage_pre_gate", "write.post_sidecar_pre_commit"
    ),
    "load": Write(
        lambda graph: graph.load(LINES, "append", index=False),
        "write.post_stage_pre_gate",
        "write.post_sidecar_pre_commit",
    ),
    "load_tables": Write(
        lambda graph: graph.load_tables(ROWS, "append", index=False),
        "write.post_stage_pre_gate",
        "write.post_sidecar_pre_commit",
    ),
    "load onto a new branch": Write(
        lambda graph: graph.load(LINES, "append", branch="july", from_="june", index=False),
        NAMING,
        "write.post_sidecar_pre_commit",
    ),
    # The branch is an effect: what comes behind it is not given up.
    "load onto a branch that was made": Write(
        lambda graph: graph.load(LINES, "append", branch="july", from_="june", index=False),
        NAMING,
        "write.post_stage_pre_gate",
    ),
    "merge": Write(
        lambda graph: graph.merge("june"),
        "branch_merge.post_capture",
        "branch_merge.post_sidecar_pre_commit",
    ),
    "apply_schema": Write(
        lambda graph: graph.apply_schema(WITH_TYPE, index=False),
        "schema_apply.post_stage_pre_gate",
        "schema_apply.post_sidecar_pre_commit",
    ),
    "create_branch": Write(
        lambda graph: graph.create_branch("july", "june"),
        NAMING,
        "branch_create.post_ref_pre_control",
        is_commit=False,
    ),
    "delete_branch": Write(
        lambda graph: graph.delete_branch("june"),
        "branch_delete.post_look_pre_control",
        "branch_delete.post_control_pre_refs",
        is_commit=False,
    ),
}
EMBED = Write(
    lambda graph: graph.embed(engine="local", index=False),
    "write.post_stage_pre_gate",
    "write.post_sidecar_pre_commit",
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A graph with texts to embed, and a branch that has something to merge."""
    with new_graph(tmp_path / "g.omni") as graph:
        graph.create_branch("june")
        graph.mutate('query fay() { insert Person { name: "fay" } }', branch="june")
    return tmp_path / "g.omni"


@contextmanager
def stopped_at(name: str, stop: Stop) -> Iterator[None]:
    """Let calls stand still at a failpoint, or where a branch that they make gets its name."""
    if name != NAMING:
        with failpoint(name, call=stop):
            yield
        return

    def minted(name: str, ulid: str) -> str:
        stop()
        return branches.mint_ref(name, ulid)

    with pytest.MonkeyPatch.context() as patch:
        patched(patch, "omnigraph.operations.branches.mint_ref", minted)
        yield


def seen(place: Path) -> tuple[object, ...]:
    with open_graph(place) as graph:
        commits = [graph.commits(branch=name) for name in graph.branches()]
        return look(graph), commits, sorted(path.name for path in (place / "__recovery").glob("*.json"))


@pytest.mark.case("surfaces", 681)
@pytest.mark.parametrize("name", [*WRITES, "embed"])
def test_a_write_cancelled_before_its_first_effect_leaves_nothing(name: str, place: Path) -> None:
    write, stop, before = WRITES.get(name, EMBED), Stop(), seen(place)

    async def main() -> None:
        async with AsyncGraph(open_graph(place)) as graph:
            with stopped_at(write.before, stop):
                ended = await cancelled_at(graph, stop, write.call)
            assert not getattr(ended, "__notes__", [])

    asyncio.run(main())
    assert seen(place) == before
    with open_graph(place) as graph:
        write_everywhere(graph)
        assert graph.verify(deep=True).is_whole


@pytest.mark.case("surfaces", 681)
@pytest.mark.parametrize("name", [*WRITES, "embed"])
def test_a_write_cancelled_behind_its_first_effect_is_completed_and_told(name: str, place: Path) -> None:
    write, stop, before = WRITES.get(name, EMBED), Stop(), seen(place)

    async def main() -> asyncio.CancelledError:
        async with AsyncGraph(open_graph(place)) as graph:
            with stopped_at(write.after, stop):
                return await cancelled_at(graph, stop, write.call)

    ended = asyncio.run(main())
    with open_graph(place) as graph:
        told = note_of(write, graph, "july" if "onto" in name else "main")
        assert graph.verify(deep=True).is_whole
    assert ended.__notes__ == [told]
    assert seen(place) != before


def note_of(write: Write, graph: Graph, branch: str) -> str:
    if not write.is_commit:
        return "the call had already been completed"
    return f"the write had already landed, as commit {graph.commits(branch=branch)[0].graph_commit_id}"


# Behind a server


@pytest.fixture
def url(place: Path) -> Iterator[str]:
    """The address of a server of the graph."""
    serving = Serving.begin(settings_for(place))
    try:
        with listening(serving) as url:
            yield url
    finally:
        serving.close()


@pytest.mark.case("surfaces", 681)
@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_was_sent_to_a_server_is_completed_and_told(name: str, url: str) -> None:
    write, stop = WRITES[name], Stop()

    async def main() -> asyncio.CancelledError:
        graph = omnigraph.connect(url)
        assert isinstance(graph, RemoteGraph)
        async with AsyncRemoteGraph(graph) as twin:
            with stopped_at(write.before, stop):  # nothing has happened there yet, and nobody asks it to stop
                return await cancelled_at(twin, stop, write.call)

    ended = asyncio.run(main())

    with omnigraph.connect(url) as graph:
        branch = "july" if "onto" in name else "main"
        if write.is_commit:
            landed = graph.commits(branch=branch)[0].graph_commit_id
            assert ended.__notes__ == [f"the write had already landed, as commit {landed}"]
        else:
            assert ended.__notes__ == ["the call had already been completed"]
            assert graph.branches() == (["july", "june", "main"] if name == "create_branch" else ["main"])


@pytest.mark.case("surfaces", 681)
@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_was_not_sent_yet_leaves_nothing(
    name: str, url: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, stop = seen(place), Stop()

    async def main() -> asyncio.CancelledError:
        graph = omnigraph.connect(url)
        assert isinstance(graph, RemoteGraph)
        request = graph._http._request

        def stopped(*of: Any, **content: Any) -> Any:  # noqa: ANN401 - as the method has them
            stop()
            return request(*of, **content)

        monkeypatch.setattr(graph._http, "_request", stopped)
        async with AsyncRemoteGraph(graph) as twin:
            return await cancelled_at(twin, stop, WRITES[name].call)

    ended = asyncio.run(main())

    assert not getattr(ended, "__notes__", [])
    assert seen(place) == before
