"""Every route, for somebody whom nothing is granted: refused, and storage is not touched."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from omnigraph.graph.stored_files import DeclaredQueries, NamedQuery
from omnigraph.policy.model import Policy
from omnigraph.server.app import graph_routes
from omnigraph.server.middleware import PUBLIC
from omnigraph.server.serving import Serving
from tests.engine.counting import listings
from tests.support.atlas import place_atlas
from tests.support.commands import write
from tests.support.engine import counts
from tests.support.http_app import listening, settings_for
from tests.support.http_server import WAIT_S, error_of
from tests.support.route_requests import process_routes, send

TOKEN = "token-of-eve-0123456789"
NOTHING = Policy.parse("version: 1\n", "nothing")
STORED = "query titles() { match { $m: Mission } return { $m.title } }\n"


@dataclass(frozen=True, slots=True)
class World:
    """A server of one graph, and a client who is known to it."""

    serving: Serving
    client: httpx.Client


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("OMNIGRAPH_MAINTENANCE", "inline")  # a thread that looks after tables touches them
    folder = tmp_path_factory.mktemp("walk")
    stored = DeclaredQueries(named=(NamedQuery("titles", write(folder, "stored.gq", STORED)),))
    settings = settings_for(place_atlas(folder), tokens={"eve": TOKEN}, queries=stored, policy=NOTHING)
    serving = Serving.begin(settings)
    try:
        with listening(serving) as url, httpx.Client(base_url=url, timeout=WAIT_S) as client:
            client.headers["Authorization"] = f"Bearer {TOKEN}"
            yield World(serving, client)
    finally:
        serving.close()


@pytest.mark.case("surfaces", 226)
@pytest.mark.case("surfaces", 543)
@pytest.mark.case("surfaces", 696)
@pytest.mark.parametrize("prefix", ["", "/graphs/default"])
def test_every_route_of_a_graph_refuses_before_it_looks_at_storage(world: World, prefix: str) -> None:
    graph = world.serving.graphs["default"].graph
    before = counts(graph)

    for route in graph_routes():
        with listings() as listed:
            response = send(world.client, route, prefix=prefix)

        is_missing = bool(prefix) or route.path.startswith("/queries/")
        assert response.status_code == (404 if is_missing else 403), route.id
        assert "Nonsense" not in response.text
        if route.method == "HEAD":
            assert response.content == b""
        elif not is_missing:
            assert "'eve': the actor is in no group" in error_of(response, 403, "forbidden"), route.id
        assert (counts(graph), listed) == (before, []), route.id


@pytest.mark.case("surfaces", 226)
@pytest.mark.case("surfaces", 696)
def test_every_route_of_the_server_itself_is_public_or_asks(world: World) -> None:
    before = counts(world.serving.graphs["default"].graph)
    own = process_routes()
    assert {route.path for route in own if route.is_public} | {"/openapi.json"} == PUBLIC

    for route in own:
        with listings() as listed:
            response = world.client.request(route.method, route.path)
            without = world.client.request(route.method, route.path, headers={"Authorization": ""})

        if route.is_public:
            assert (response.status_code, without.status_code) == (200, 200), route.id
            assert "default" not in response.text, route.id
        else:
            error_of(response, 403, "forbidden")
            error_of(without, 401, "unauthorized")
        assert (counts(world.serving.graphs["default"].graph), listed) == (before, []), route.id
