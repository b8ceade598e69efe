"""Several graphs of a project file, one of which does not open."""

import logging
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from omnigraph.core.errors import OmnigraphError
from omnigraph.policy.model import Policy
from omnigraph.server.serving import Serving
from omnigraph.server.settings import ServedGraph, ServerSettings
from omnigraph.server.tokens import TokenDigests
from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import write
from tests.support.http_app import listening
from tests.support.http_server import error_of, running_server
from tests.support.in_process import invoke

LISTING = """\
version: 1
kind: server
groups: { all: [act-mira] }
rules:
  - { id: list, allow: { actors: { group: all }, actions: [graph_list] } }
"""
PROJECT = "graphs: { good: { uri: g.omni }, broken: { uri: broken.omni } }\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a project file, a graph, and one whose manifest is gone."""
    folder = tmp_path_factory.mktemp("quarantine")
    place_atlas(folder)
    shutil.copytree(folder / GRAPH, folder / "broken.omni")
    shutil.rmtree(folder / "broken.omni" / "__manifest")
    write(folder, "p.yaml", PROJECT)
    write(folder, "none.yaml", "graphs: { broken: { uri: broken.omni }, other: { uri: nothing.omni } }\n")
    return folder


def settings(place: Path, *names: str) -> ServerSettings:
    graphs = {"good": GRAPH, "broken": "broken.omni", "other": "nothing.omni"}
    served = tuple(ServedGraph(name, str(place / graphs[name])) for name in names)
    return ServerSettings(served, None, is_unauthenticated=True)


@pytest.fixture
def client(place: Path, caplog: pytest.LogCaptureFixture) -> Iterator[httpx.Client]:
    with caplog.at_level(logging.ERROR, "omnigraph.server"):
        serving = Serving.begin(replace(settings(place, "good", "broken"), default_graph="broken"))
    try:
        with listening(serving) as url, httpx.Client(base_url=url, timeout=60) as client:
            yield client
    finally:
        serving.close()


@pytest.mark.case("surfaces", 118)
@pytest.mark.case("surfaces", 870)
@pytest.mark.case("surfaces", 871)
def test_a_graph_that_does_not_open_is_not_found_while_others_serve(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.get("/graphs/good/snapshot").status_code == 200
    for path in ("/graphs/broken/snapshot", "/snapshot"):
        assert error_of(client.get(path), 404, "not_found") == "graph 'broken' not found"
    error_of(client.post("/graphs/broken/mutate", json={"query": "x"}), 404, "not_found")
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert (ready.json()["graphs_ready"], ready.json()["graphs_quarantined"]) == (1, 1)
    assert client.get("/healthz").status_code == 200
    told = [record.getMessage() for record in caplog.get_records("setup")]
    assert any(text.startswith("graph 'broken' is quarantined, and not served: no graph at") for text in told)


@pytest.mark.case("surfaces", 870)
def test_it_is_not_listed(place: Path, tmp_path: Path) -> None:
    policy = Policy.read(write(tmp_path, "server.yaml", LISTING))
    tokens = TokenDigests.of([("act-mira", "t-mira")])
    serving = Serving.begin(
        replace(settings(place, "good", "broken"), policy=policy, tokens=tokens, is_unauthenticated=False)
    )
    try:
        with listening(serving) as url:
            headers = {"Authorization": "Bearer t-mira"}
            listed = httpx.get(f"{url}/graphs", headers=headers, timeout=60).json()["graphs"]
            assert [item["graph_id"] for item in listed] == ["good"]
    finally:
        serving.close()


@pytest.mark.case("surfaces", 870)
def test_a_boot_stops_if_all_are_required_or_none_opens(place: Path) -> None:
    both = settings(place, "good", "broken")
    for given in (
        replace(both, requires_all_graphs=True),
        settings(place, "broken"),
        settings(place, "broken", "other"),
    ):
        with pytest.raises(OmnigraphError):
            Serving.begin(given)

    Serving.begin(replace(both, requires_all_graphs=True, quarantined=frozenset({"broken"}))).close()


@pytest.mark.case("surfaces", 870)
def test_flag_and_variable_require_all_graphs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ("server", "--config", "p.yaml", "--unauthenticated", "--bind", "127.0.0.1:0")
    flagged = invoke(*given, "--require-all-graphs", cwd=place)
    none = invoke(*given[:2], "none.yaml", *given[3:], cwd=place)
    monkeypatch.setenv("OMNIGRAPH_REQUIRE_ALL_GRAPHS", "1")
    by_variable = invoke(*given, cwd=place)

    for outcome in (flagged, none, by_variable):
        assert (outcome.code, outcome.stdout) == (1, "")
        assert outcome.stderr


@pytest.mark.case("surfaces", 871)
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--config", "p.yaml", "--default-graph", "nope"), "use one of broken, good"),
        (("--config", "p.yaml", "--target", "good", "--default-graph", "good"), "one is named already"),
        ((GRAPH, "--default-graph", "good"), "one is named already"),
    ],
)
def test_a_default_graph_is_one_of_several(place: Path, arguments: tuple[str, ...], reason: str) -> None:
    outcome = invoke("server", "--unauthenticated", *arguments, cwd=place)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert reason in outcome.stderr


@pytest.mark.slow
@pytest.mark.case("surfaces", 870)
@pytest.mark.case("surfaces", 871)
def test_every_worker_serves_the_same_graphs(place: Path, tmp_path: Path) -> None:
    arguments = ("--config", str(place / "p.yaml"), "--bind", "127.0.0.1:0", "--workers", "2")
    log = tmp_path / "log"

    with running_server(None, *arguments, "--default-graph", "good", log=log) as server:
        for _ in range(8):  # each by a connection of its own, and so by either worker
            with server.client() as client:
                assert client.get("/snapshot").status_code == 200
                error_of(client.get("/graphs/broken/snapshot"), 404, "not_found")
                assert client.get("/readyz").json()["graphs_quarantined"] == 1
        assert server.told().count("graph 'broken' is quarantined") == 1, "the first worker decides"
