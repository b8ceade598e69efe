"""What a caller may not see is what is not there: to every method that takes the name of something."""

from pathlib import Path

import pytest

from omnigraph.client.http import Http
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.client.remote.snapshot_view import RemoteSnapshotView
from omnigraph.config.server_url import ServerUrl
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.ids import new_ulid
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.graph.snapshot_view import SnapshotView
from omnigraph.policy.model import Policy
from tests.support.atlas import place_atlas
from tests.support.gates import policy_text
from tests.support.http_app import serving_app, settings_for
from tests.support.http_requests import ADD
from tests.support.method_calls import SOURCES, call, places_in
from tests.support.route_requests import Names, Place

TOKEN = "token-of-ann-0123456789"
RULES = (
    "read, export, change; branch_scope: unprotected",
    "schema_apply, branch_delete; target_branch_scope: unprotected",
)
MAKERS = ("branch_create, branch_merge; target_branch_scope: unprotected",)


def outcome(
    graph: Graph | RemoteGraph, method: str, argument: str, place: Place, names: Names
) -> tuple[str, str]:
    """Return how a call ends, but for the names."""
    try:
        found = call(graph, method, **{argument: place(names)})
    except OmnigraphError as error:
        text = str(error)
        for name in (names.branch, names.commit, names.query):
            text = text.replace(name, "NAME")
        return type(error).__name__, text
    return "returned", type(found).__name__


class World:
    """One graph, in its storage and behind a server, for somebody who may see june and july."""

    def __init__(self, folder: Path, rules: tuple[str, ...]) -> None:
        self.policy = Policy.parse(policy_text(*rules, protected="main, secret, absent", actors="ann"))
        self.path = place_atlas(folder)
        with open_graph(self.path) as graph:
            for name in ("june", "july", "secret"):
                graph.create_branch(name)
                graph.mutate(ADD % f"on {name}", branch=name)
            hidden = graph.commits(branch="secret", limit=1)[0].graph_commit_id
            cursor = str(graph.poll_changes(branch="june").cursor)
        self.pair = (
            Names("secret", hidden, "unheard_of", "", cursor),
            Names("absent", new_ulid(), "unknown_of", "", cursor),
        )


@pytest.mark.case("surfaces", 544)
@pytest.mark.case("surfaces", 691)
@pytest.mark.parametrize("is_maker", [False, True])
def test_a_hidden_name_is_one_that_is_not_there_to_every_method(is_maker: bool, tmp_path: Path) -> None:
    world = World(tmp_path, (*RULES, *(MAKERS if is_maker else ())))
    known = SOURCES if is_maker else frozenset()
    with open_graph(world.path, actor="ann", policy=world.policy) as graph, graph.branch("june") as bound:
        assert differences(graph, world, known) == differences(bound, world, known) == []
    settings = settings_for(world.path, tokens={"ann": TOKEN}, policy=world.policy)
    with (
        serving_app(settings) as client,
        RemoteGraph(Http(ServerUrl.parse(str(client.base_url)), TOKEN)) as remote,
        remote.branch("june") as bound_there,
    ):
        assert differences(remote, world, known) == differences(bound_there, world, known) == []


def differences(graph: Graph | RemoteGraph, world: World, known: frozenset[str]) -> list[object]:
    """Return the calls that tell what is hidden from what is not there, or that were not refused."""
    found: list[object] = []
    for method, argument, place in places_in(type(graph)):
        if f"{method}.{argument}" in known:
            continue
        told = [outcome(graph, method, argument, place, names) for names in world.pair]
        if told[0] != told[1] or told[0][0] == "returned":
            found.append((method, argument, *told))
    return found


def test_a_view_of_a_snapshot_takes_no_name() -> None:
    for kind in (SnapshotView, RemoteSnapshotView):
        assert [*places_in(kind)] == []
