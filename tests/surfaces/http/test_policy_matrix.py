"""Every action with every scope, on three ways to a graph: the policy file decides, and nothing else."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from omnigraph.core.errors import OmnigraphError, PolicyDenied
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.graph.stored_files import DeclaredQueries, NamedQuery
from omnigraph.policy.gate import Gate, PolicyGate
from omnigraph.policy.model import Policy
from omnigraph.server.serving import Serving
from tests.models.policy.evaluator import SCOPE_KEY, SERVER_ACTIONS, Asked, matching
from tests.support.atlas import place_atlas
from tests.support.commands import write
from tests.support.gates import install
from tests.support.http_app import listening, settings_for
from tests.support.in_process import invoke

ACTOR, TOKEN = "ann", "token-of-ann-0123456789"
STORED = "query titles() { match { $m: Mission } return { $m.title } }\n"
NONSENSE = "nonsense"  # what gets past the gate ends as a mistake, so nothing changes from case to case
READ = "query q() { match { $n: Nonsense } return { $n.x } }"  # the command line parses before it opens
ADD = 'query q() { insert Nonsense { x: "x" } }'
PROTECTED, OTHER = "main", "june"
UNKNOWN = "0" * 26  # the id of no commit


@dataclass(frozen=True, slots=True)
class Way:
    """One thing to do: what is asked, and how each surface asks for it, or why one has no way."""

    action: str
    asked: Callable[[str], Asked]
    embedded: Callable[[Graph, str], object] | None = None
    http: tuple[str, str, dict[str, str]] | None = None
    command: tuple[str, ...] | None = None
    missing: str = ""
    denied: str = "policy denied"  # what a command says
    is_served: bool = False  # whether the command reaches the server
    branches: tuple[str, ...] = (PROTECTED, OTHER)


def about_branch(action: str) -> Callable[[str], Asked]:
    return lambda branch: Asked(ACTOR, action, branch)


def about_target(action: str, source: str | None = None) -> Callable[[str], Asked]:
    return lambda branch: Asked(ACTOR, action, source, branch)


def about_all(action: str) -> Callable[[str], Asked]:
    return lambda _: Asked(ACTOR, action)


NO_BRANCH = ("no branch",)  # once, whatever the branch is called
WAYS: dict[str, Way] = {
    "query": Way(
        "read",
        about_branch("read"),
        lambda graph, branch: graph.query(NONSENSE, branch=branch),
        ("POST", "/query", {"query": NONSENSE, "branch": "BRANCH"}),
        ("query", "-e", READ, "--branch", "BRANCH"),
    ),
    "an entity": Way(
        "read",
        about_branch("read"),
        lambda graph, branch: graph.entity_at(NONSENSE, NONSENSE, branch),
        ("GET", f"/entity?type={NONSENSE}&id={NONSENSE}&target=BRANCH", {}),
        missing="no command shows one entity",
    ),
    "branches": Way(
        "read",
        about_all("read"),
        lambda graph, _: graph.branches(),
        ("GET", "/branches", {}),
        ("branch", "list"),
        branches=NO_BRANCH,
    ),
    "a commit by its id": Way(
        "read",
        about_all("read"),
        lambda graph, _: graph.commit(UNKNOWN),
        ("GET", f"/commits/{UNKNOWN}", {}),
        ("commit", "show", UNKNOWN),
        branches=NO_BRANCH,
    ),
    "schema": Way(
        "read",
        about_all("read"),
        lambda graph, _: graph.schema(),
        ("GET", "/schema", {}),
        ("schema", "show"),
        branches=NO_BRANCH,
    ),
    "status": Way(
        "read",
        about_all("read"),
        lambda graph, _: graph.status(),
        ("GET", "/metrics", {}),
        missing="`status` is maintenance, about which no policy decides",
        branches=NO_BRANCH,
    ),
    "export": Way(
        "export",
        about_branch("export"),
        lambda graph, branch: graph.export(branch=branch, types=[NONSENSE]),
        ("POST", "/export", {"branch": "BRANCH"}),
        ("export", "--branch", "BRANCH", "--type", NONSENSE),
    ),
    "mutate": Way(
        "change",
        about_branch("change"),
        lambda graph, branch: graph.mutate(NONSENSE, branch=branch),
        ("POST", "/mutate", {"query": NONSENSE, "branch": "BRANCH"}),
        ("mutate", "-e", ADD, "--branch", "BRANCH", "--as", ACTOR),
    ),
    "apply a schema": Way(
        "schema_apply",
        about_target("schema_apply"),
        lambda graph, branch: graph.apply_schema(NONSENSE, branch=branch),
        ("POST", "/schema/apply", {"schema_source": NONSENSE, "branch": "BRANCH"}),
        ("schema", "apply", "--schema", "nonsense.pg", "--branch", "BRANCH", "--as", ACTOR),
    ),
    "upgrade a branch": Way(
        "schema_apply",
        about_target("schema_apply"),
        lambda graph, branch: graph.upgrade_branch(branch),
        ("POST", "/branches/BRANCH/upgrade", {}),
        ("branch", "upgrade", "BRANCH", "--as", ACTOR),
    ),
    "create a branch": Way(
        "branch_create",
        about_target("branch_create", "nowhere"),
        lambda graph, branch: graph.create_branch(branch, "nowhere"),
        ("POST", "/branches", {"name": "BRANCH", "from": "nowhere"}),
        ("branch", "create", "BRANCH", "--from", "nowhere", "--as", ACTOR),
    ),
    "delete a branch": Way(
        "branch_delete",
        about_target("branch_delete"),
        lambda graph, branch: graph.delete_branch(branch),
        ("DELETE", "/branches/BRANCH", {}),
        ("branch", "delete", "BRANCH", "--as", ACTOR),
    ),
    "merge": Way(
        "branch_merge",
        about_target("branch_merge", "nowhere"),
        lambda graph, branch: graph.merge("nowhere", branch),
        ("POST", "/branches/merge", {"source": "nowhere", "target": "BRANCH"}),
        ("branch", "merge", "nowhere", "--into", "BRANCH", "--as", ACTOR),
    ),
    "call a stored query": Way(
        "invoke_query",
        about_all("invoke_query"),
        lambda graph, branch: graph.invoke("unheard_of", branch=branch),
        ("POST", "/queries/titles", {"branch": "BRANCH"}),
        ("query", "titles", "--branch", "BRANCH", "--graph", "default"),
        denied="not found",  # the query, or without any grant the graph; whoever may call it gets rows
        is_served=True,
    ),
    "rebuild an index": Way(
        "admin",
        about_all("admin"),
        lambda graph, _: graph.rebuild_index(NONSENSE, NONSENSE),
        missing="the commands of maintenance take no policy, since who runs them holds the storage,"
        " and no route maintains a graph",
        branches=NO_BRANCH,
    ),
    "list the graphs": Way(
        "graph_list",
        about_all("graph_list"),
        None,
        ("GET", "/graphs", {}),
        ("graphs", "list"),
        missing="only a server has a list of graphs",
        is_served=True,
        branches=NO_BRANCH,
    ),
}
RULES = [
    (action, scope)
    for action, key in SCOPE_KEY.items()
    for scope in ((None,) if key is None else (None, "any", "protected", "unprotected"))
]


@dataclass(frozen=True, slots=True)
class World:
    """One graph, open here and in a server, whose policy a test changes."""

    folder: Path
    serving: Serving
    client: httpx.Client

    @property
    def graph(self) -> Graph:
        """The graph of the server."""
        return self.serving.graphs["default"].graph

    def install(self, action: str, scope: str | None) -> dict[str, object]:
        """Grant one thing, before the engine and the routes, as a start of the server does."""
        document = document_of(action, scope)
        is_of_server = action in SERVER_ACTIONS
        gate: Gate = PolicyGate.of(policy_of(NOTHING if is_of_server else document))
        install(self.graph, gate)
        object.__setattr__(self.serving.graphs["default"], "gate", gate)
        server = PolicyGate.of(policy_of(document if is_of_server else NOTHING))
        object.__setattr__(self.serving, "gate", server)
        write(self.folder, "policy.yaml", text_of(NOTHING if is_of_server else document))
        return document


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("matrix")
    path = place_atlas(folder)
    with open_graph(path) as graph:
        graph.create_branch("unused")
    write(folder, "nonsense.pg", NONSENSE)
    write(folder, "omnigraph.yaml", f"cli: {{ actor: {ACTOR} }}\n")
    stored = DeclaredQueries(named=(NamedQuery("titles", write(folder, "stored.gq", STORED)),))
    nothing = Policy("nothing")
    serving = Serving.begin(settings_for(path, tokens={ACTOR: TOKEN}, queries=stored, policy=nothing))
    try:
        with (
            listening(serving) as url,
            httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}) as client,
        ):
            yield World(folder, serving, client)
    finally:
        serving.close()


def is_embedded_allowed(world: World, way: Way, branch: str) -> bool:
    assert way.embedded is not None
    try:
        way.embedded(world.graph.acting_as(ACTOR), branch)
    except PolicyDenied:
        return False
    except OmnigraphError:
        return True
    return True


def is_answered(world: World, way: Way, branch: str) -> bool:
    assert way.http is not None
    method, path, body = way.http
    sent = {name: value.replace("BRANCH", branch) for name, value in body.items()}
    response = world.client.request(method, path.replace("BRANCH", branch), json=sent or None)
    if way.action == "invoke_query":  # whoever may call it is told what else is missing
        return response.status_code != 404
    return response.status_code != 403


def is_command_allowed(world: World, way: Way, branch: str) -> bool:
    assert way.command is not None
    words = [word.replace("BRANCH", branch) for word in way.command]
    where = (
        ("--server", str(world.client.base_url))
        if way.is_served
        else ("--store", "g.omni", "--policy", "policy.yaml")
    )
    return way.denied not in invoke(*words, *where, cwd=world.folder).stderr


def test_every_action_is_in_the_matrix() -> None:
    assert {way.action for way in WAYS.values()} == set(SCOPE_KEY)
    for name, way in WAYS.items():
        ways = (way.embedded, way.http, way.command)
        assert (None in ways) is bool(way.missing), name


@pytest.mark.case("surfaces", 165)
@pytest.mark.case("surfaces", 542)
def test_every_action_and_scope_is_decided_alike_by_the_engine_and_over_http(world: World) -> None:
    for action, scope in RULES:
        document = world.install(action, scope)
        for name, way in WAYS.items():
            for branch in way.branches:
                expected = bool(matching(document, way.asked(branch)))
                told = (action, scope, name, branch)
                if way.embedded is not None:
                    assert is_embedded_allowed(world, way, branch) is expected, told
                if way.http is not None:
                    assert is_answered(world, way, branch) is expected, told


@pytest.mark.case("surfaces", 542)
def test_every_scope_is_decided_alike_on_the_command_line(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", TOKEN)
    assert_commands(world, lambda granted, action: granted == action)


@pytest.mark.slow
@pytest.mark.case("surfaces", 542)
def test_a_grant_of_one_action_allows_no_other_on_the_command_line(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", TOKEN)
    assert_commands(world, lambda granted, action: granted != action)


def assert_commands(world: World, is_wanted: Callable[[str, str], bool]) -> None:
    """Compare what commands answer with the policy, for pairs of what is granted and what is done."""
    for action, scope in RULES:
        document = world.install(action, scope)
        for name, way in WAYS.items():
            if way.command is None or not is_wanted(action, way.action):
                continue
            for branch in way.branches:
                expected = bool(matching(document, way.asked(branch)))
                assert is_command_allowed(world, way, branch) is expected, (action, scope, name, branch)


def document_of(action: str, scope: str | None) -> dict[str, object]:
    allow: dict[str, object] = {"actors": {"group": "all"}, "actions": [action]}
    if scope is not None:
        allow[str(SCOPE_KEY[action])] = scope
    return {
        "version": 1,
        "groups": {"all": [ACTOR]},
        "protected_branches": [PROTECTED],
        "rules": [{"id": "only", "allow": allow}],
    }


def text_of(document: dict[str, object]) -> str:
    return json.dumps(document)


def policy_of(document: dict[str, object]) -> Policy:
    return Policy.parse(text_of(document))


NOTHING: dict[str, object] = {"version": 1}
