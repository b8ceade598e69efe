"""What a caller may not see is answered as what is not there: by every route, for every name it takes."""

from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from omnigraph.core.ids import new_ulid
from omnigraph.graph.opening import open as open_graph
from omnigraph.graph.stored_files import DeclaredQueries, NamedQuery
from omnigraph.policy.model import Policy
from omnigraph.server.app import graph_routes
from omnigraph.server.settings import ServedGraph
from tests.support.atlas import place_atlas
from tests.support.commands import write
from tests.support.http_app import serving_app, settings_for
from tests.support.http_requests import ADD
from tests.support.route_requests import SOURCES, Names, Place, branch, places_in, send, visible

TOKENS = {name: f"token-of-{name}-0123456789" for name in ("mira", "otto", "rita", "eve")}
POLICY = """\
version: 1
groups: { crew: [mira, otto], makers: [otto], readers: [rita] }
protected_branches: [main, secret, absent]
rules:
  - id: work
    allow: { actors: { group: crew }, actions: [read, export, change], branch_scope: unprotected }
  - id: shape
    allow:
      actors: { group: crew }
      actions: [schema_apply, branch_delete]
      target_branch_scope: unprotected
  - id: make
    allow:
      actors: { group: makers }
      actions: [branch_create, branch_merge]
      target_branch_scope: unprotected
  - { id: calls, allow: { actors: { group: makers }, actions: [invoke_query] } }
  - { id: all, allow: { actors: { group: readers }, actions: [read, export] } }
"""
STORED = """\
query titles() { match { $m: Mission } return { $m.title } }
query listed() { match { $m: Mission } return { $m.title } }
query record() { insert Mission { title: "Recorded" } }
"""
HIDDEN_ID, UNKNOWN_ID = "hidden", "absent"  # of as many letters, so that no length differs
OF_JUNE = {"cursor", "page_token", "start", "write_id"}  # what is no name of another branch to anybody
ROUTES = {route.id: route for route in graph_routes()}
PLACES = [(route.id, field, place) for route in graph_routes() for field, place in places_in(route)]


def head_of(client: httpx.Client, branch: str) -> str:
    answer = client.get("/commits", params={"branch": branch, "limit": 1}, headers=known_as("rita"))
    return str(answer.json()["commits"][0]["graph_commit_id"])


def known_as(actor: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[actor]}"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server of two graphs: one with hidden branches, and one of which only rita may know."""
    folder = tmp_path_factory.mktemp("hidden")
    paths = [place_atlas(folder / name) for name in ("a", "b")]
    with open_graph(paths[0]) as graph:
        for name in ("june", "july", "secret"):
            graph.create_branch(name)
            graph.mutate(ADD % f"on {name}", branch=name)
    file = write(folder, "stored.gq", STORED)
    stored = DeclaredQueries(named=tuple(NamedQuery(name, file) for name in ("titles", "listed", "record")))
    settings = settings_for(paths[0], tokens=TOKENS, queries=stored, policy=Policy.parse(POLICY))
    only_rita = Policy.parse(
        "version: 1\ngroups: { readers: [rita] }\n"
        "rules: [{ id: r, allow: { actors: { group: readers }, actions: [read] } }]\n"
    )
    other = ServedGraph(HIDDEN_ID, str(paths[1]), None, only_rita)
    with serving_app(replace(settings, graphs=(*settings.graphs, other))) as client:
        yield client


@pytest.fixture(scope="module")
def pair(client: httpx.Client) -> tuple[Names, Names]:
    """What is there and hidden from the crew, and what is not there."""
    poll = {"branch": "june", "start": "now"}
    cursor = str(client.get("/changes", params=poll, headers=known_as("mira")).json()["cursor"])
    write_id = "a-write-of-rita-00001"
    client.get("/snapshot", headers={**known_as("rita"), "Omnigraph-Write-Id": write_id})
    return (
        Names("secret", head_of(client, "secret"), "titles", write_id, cursor),
        Names("absent", new_ulid(), "absent", "a-write-of-nobody-001", cursor),
    )


def answer(response: httpx.Response, names: Names, more: str = "") -> tuple[int, str, list[tuple[str, str]]]:
    """Return all of an answer, but for the names that were asked with, its id and its time."""
    text, headers = response.text, response.headers.multi_items()
    for name in (*filter(None, (names.branch, names.commit, names.query, names.write, more)),):
        text = text.replace(name, "NAME")
    return response.status_code, text, [item for item in headers if item[0] not in {"date", "x-request-id"}]


def asked(
    client: httpx.Client, actor: str, route_id: str, field: str, place: Place, names: Names
) -> httpx.Response:
    route = ROUTES[route_id]
    values = visible(route, head_of(client, "june"))
    if field == "snapshot":
        values.pop("branch", None)
    return send(client, route, {**values, field: place(names)}, headers=known_as(actor))


@pytest.mark.case("surfaces", 544)
@pytest.mark.case("surfaces", 691)
@pytest.mark.parametrize("actor", ["mira", "otto"])
def test_a_hidden_name_is_answered_as_one_that_is_not_there(
    actor: str, client: httpx.Client, pair: tuple[Names, Names]
) -> None:
    for route_id, field, place in PLACES:
        if actor == "otto" and (
            f"{route_id}.{field}" in SOURCES or ROUTES[route_id].path.startswith("/queries")
        ):
            continue  # who may copy from any branch, and know of any stored query

        hidden, absent = (
            answer(asked(client, actor, route_id, field, place, names), names) for names in pair
        )

        assert hidden == absent, (route_id, field)
        is_stored = ROUTES[route_id].path.startswith("/queries")  # of which the crew knows none
        expected = {403} if place is branch and not is_stored else {400, 403, 404, 412}
        assert hidden[0] in expected, (route_id, field)


@pytest.mark.case("surfaces", 691)
def test_who_may_see_it_is_answered_otherwise(client: httpx.Client, pair: tuple[Names, Names]) -> None:
    for route_id, field, place in PLACES:
        if ROUTES[route_id].method != "GET" or field in OF_JUNE or route_id == "streamCommits":
            continue

        hidden, absent = (
            answer(asked(client, "rita", route_id, field, place, names), names) for names in pair
        )

        assert hidden != absent, (route_id, field)


@pytest.mark.case("surfaces", 118)
@pytest.mark.case("surfaces", 690)
def test_a_graph_on_which_nothing_is_granted_is_answered_like_one_that_is_not_there(
    client: httpx.Client,
) -> None:
    nobody = Names("", "", "", "")
    for actor in ("mira", "eve"):
        for route in graph_routes():
            answers = [
                answer(send(client, route, prefix=f"/graphs/{graph}", headers=known_as(actor)), nobody, graph)
                for graph in (HIDDEN_ID, UNKNOWN_ID)
            ]
            assert answers[0] == answers[1], route.id
            assert answers[0][0] == 404, route.id
    known = client.get(f"/graphs/{HIDDEN_ID}/branches", headers=known_as("rita"))
    assert known.json() == {"branches": ["main"]}
    assert (
        client.post(f"/graphs/{HIDDEN_ID}/branches", json={"name": "x"}, headers=known_as("rita")).status_code
        == 403
    )
