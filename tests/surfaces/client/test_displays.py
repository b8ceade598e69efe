"""What an interpreter and a notebook show of a graph behind a server, and of asynchronous twins."""

import asyncio
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.client.asynchronous.embedded import AsyncGraph
from omnigraph.client.asynchronous.remote import AsyncRemoteGraph
from omnigraph.client.http import Http
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.config.server_url import ServerUrl
from omnigraph.graph.graph import Graph
from omnigraph.history.lanes import CommitList
from omnigraph.server.serving import Serving
from tests.support.http_app import listening, settings_for
from tests.support.parity import ADD, place_parity

TOKEN = "a-secret-token"


@pytest.fixture
def graphs(tmp_path: Path) -> Iterator[tuple[Graph, RemoteGraph]]:
    """One graph, in its storage and behind a server, with a branch that has a commit of its own."""
    with omnigraph.open(place_parity(tmp_path)) as graph:
        graph.create_branch("june")
        graph.mutate(ADD, params={"code": "<b>"}, branch="june", message="<script>")
    serving = Serving.begin(settings_for(tmp_path / "g.omni", tokens={"act-mira": TOKEN}))
    try:
        with listening(serving) as url, omnigraph.open(tmp_path / "g.omni", mode="ro") as graph:
            there = omnigraph.connect(url, token=TOKEN)
            assert isinstance(there, RemoteGraph)
            with there:
                yield graph, there
    finally:
        serving.close()


def shown(value: object) -> str:
    """Return what a notebook shows, which is well-formed and harmless."""
    html: str = value._repr_html_()  # type: ignore[attr-defined] # what notebooks call
    ElementTree.fromstring(f"<div>{html}</div>")
    assert not re.search(r"<script|<b>|javascript:|\son\w+=|href=|src=", html)
    assert TOKEN not in html
    return html


@pytest.mark.case("surfaces", 682)
def test_a_graph_behind_a_server_is_shown_as_one_in_its_storage(graphs: tuple[Graph, RemoteGraph]) -> None:
    here, there = graphs

    assert repr(there) == f"RemoteGraph('{there.uri}', branch='main')"
    assert shown(there).partition("</p>")[2] == shown(here).partition("</p>")[2] != ""
    with there.branch("june") as june:
        assert repr(june) == f"RemoteGraph('{there.uri}', branch='june')"
    there.close()
    assert repr(there).endswith("branch='main', closed)")
    assert "<svg" not in shown(there)


@pytest.mark.case("surfaces", 682)
def test_states_commits_and_differences_are_shown_alike(graphs: tuple[Graph, RemoteGraph]) -> None:
    here, there = graphs
    commit = here.commits(branch="june")[0]
    rows = re.compile(r"<tr>.*</tr>", re.DOTALL)

    assert repr(there.snapshot("june")) == (
        f"RemoteSnapshot('june' at {commit.manifest_version}, {commit.graph_commit_id}, 4 tables, 11 rows)"
    )
    assert rows.findall(shown(there.snapshot())) == rows.findall(shown(here.snapshot())) != []
    view = there.at(commit.graph_commit_id)
    assert repr(view) == f"RemoteSnapshotView({view.snapshot!r})"
    assert commit.graph_commit_id in shown(view)
    assert isinstance(there.commits(), CommitList)
    assert shown(there.commits(branch="june")) == shown(here.commits(branch="june"))
    assert repr(there.diff("june")) == "Remote" + repr(here.diff("june"))
    assert repr(there.diff("june")).endswith("node:Craft differ)")
    assert shown(there.diff("june")) == shown(here.diff("june"))


@pytest.mark.case("surfaces", 682)
def test_twins_are_shown_as_what_they_are_twins_of(graphs: tuple[Graph, RemoteGraph]) -> None:
    here, there = graphs

    async def main() -> None:
        for graph, twin in ((here, AsyncGraph(here)), (there, AsyncRemoteGraph(there))):
            assert repr(twin) == f"Async{graph!r}"
            assert shown(twin) == shown(graph)
            view, diff = await twin.at(graph.commits()[0].graph_commit_id), await twin.diff("june")
            assert repr(view) == f"Async{graph.at(graph.commits()[0].graph_commit_id)!r}"
            assert shown(view)
            assert repr(diff) == f"Async{graph.diff('june')!r}"
            assert shown(diff) == shown(graph.diff("june"))
            await twin.close()

    asyncio.run(main())


@pytest.mark.case("surfaces", 682)
def test_a_graph_that_does_not_answer_has_a_repr_and_says_why_it_has_no_picture() -> None:
    with RemoteGraph(Http(ServerUrl.parse("http://127.0.0.1:1"), TOKEN, sleep=lambda _: None)) as graph:
        assert repr(graph) == "RemoteGraph('http://127.0.0.1:1', branch='main')"
        assert "no server answers" in shown(graph)
