"""Two graphs behind one server, each with a policy of its own: a right on one is none on the other."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

import omnigraph
from omnigraph.cli.server_settings import GivenServer
from omnigraph.server.app import graph_routes
from omnigraph.server.tokens import TokenDigests
from tests.support.atlas import ATLAS
from tests.support.commands import write
from tests.support.http_app import serving_app
from tests.support.http_requests import ADD, READ, REQUESTS, path_of
from tests.support.http_server import error_of

TOKENS = {"ann": "token-of-ann-0123456789", "ben": "token-of-ben-0123456789"}
OWN = {"ann": "north", "ben": "south"}
POLICY = """\
version: 1
groups: {{ owners: [{actor}] }}
rules:
  - id: all
    allow:
      actors: {{ group: owners }}
      actions: [read, export, change, schema_apply, branch_create, branch_delete, branch_merge, invoke_query]
"""
PROJECT = """\
graphs:
  north: { uri: north.omni, policy: { file: north.yaml } }
  south: { uri: south.omni, policy: { file: south.yaml } }
"""
WRITE_NAME = "a-write-of-ben-0001"


class Actor:
    """Someone with a token."""

    def __init__(self, client: httpx.Client, name: str) -> None:
        self._client, self._token = client, TOKENS[name]

    def send(
        self,
        method: str,
        path: str,
        **given: Any,  # noqa: ANN401 - what httpx takes
    ) -> httpx.Response:
        headers = {**given.pop("headers", {}), "Authorization": f"Bearer {self._token}"}
        return self._client.request(method, path, headers=headers, **given)

    def done(self, method: str, path: str, **given: Any) -> Any:  # noqa: ANN401
        return self.send(method, path, **given).raise_for_status().json()


@pytest.fixture(scope="module")
def actors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Actor]]:
    """A server of the two graphs of a project file; each has an actor who may do everything there."""
    folder = tmp_path_factory.mktemp("two")
    for actor, graph in OWN.items():
        write(folder, f"{graph}.yaml", POLICY.format(actor=actor))
        with omnigraph.init(folder / f"{graph}.omni", ATLAS) as made:
            made.create_branch("june")
            for number in range(3):
                made.mutate(ADD % f"{graph} {number}", branch="june")
    project = write(folder, "omnigraph.yaml", PROJECT)
    settings = GivenServer(None, str(project), None, None, None, is_unauthenticated=False).settings()
    with serving_app(replace(settings, tokens=TokenDigests.of(TOKENS.items()))) as client:
        yield {name: Actor(client, name) for name in TOKENS}


@pytest.mark.case("surfaces", 652)
def test_every_route_of_the_other_graph_refuses(actors: dict[str, Actor]) -> None:
    for name, other in (("ann", "south"), ("ben", "north")):
        for route in graph_routes():
            path = f"/graphs/{other}{path_of(route)}"

            answer = actors[name].send(route.method, path, **REQUESTS.get(route.id, {}))

            if route.method == "HEAD":
                assert (answer.status_code, answer.content) == (404, b""), route.id
            else:
                assert error_of(answer, 404, "not_found") == f"graph '{other}' not found", route.id
    for name, own in OWN.items():
        assert actors[name].done("POST", f"/graphs/{own}/query", json={"query": READ})["row_count"] == 0
        titles = actors[name].done("POST", f"/graphs/{own}/query", json={"query": READ, "branch": "june"})
        assert [row["m.title"] for row in titles["rows"]] == [f"{own} {number}" for number in range(3)]


@pytest.mark.case("surfaces", 652)
def test_nothing_that_the_other_graph_gave_out_opens_it_or_fits_here(actors: dict[str, Actor]) -> None:
    ann, ben = actors["ann"], actors["ben"]
    feed = ben.done("GET", "/graphs/south/changes?branch=june&start=beginning")
    first = ben.done("GET", "/graphs/south/changes?branch=june&start=beginning&limit=1")
    page = ben.done("GET", "/graphs/south/diff?from=main&to=june&limit=1")
    body = {"query": ADD % "named", "branch": "june"}
    named = {"Omnigraph-Write-Id": WRITE_NAME}
    made = ben.done("POST", "/graphs/south/mutate", json=body, headers=named)
    commit = made["commit"]["graph_commit_id"]
    given: list[tuple[str, dict[str, Any], int]] = [
        ("/changes", {"branch": "june", "cursor": feed["cursor"]}, 400),
        ("/changes", {"branch": "june", "limit": 1, "page_token": first["next_page_token"]}, 400),
        ("/diff", {"from": "main", "to": "june", "limit": 1, "page_token": page["next_page_token"]}, 404),
        (f"/writes/{WRITE_NAME}", {}, 404),
        (f"/commits/{commit}", {}, 404),
        (f"/commits/{commit}/changes", {}, 404),
        ("/diff", {"from": commit, "to": "june"}, 404),
        ("/changes", {"branch": "june", "start": f"after:{commit}"}, 404),
        ("/schema", {"snapshot": commit}, 404),
    ]

    for path, query, status in given:
        there = ann.send("GET", f"/graphs/south{path}", params=query)
        here = ann.send("GET", f"/graphs/north{path}", params=query)
        theirs = ben.send("GET", f"/graphs/south{path}", params=query)

        assert error_of(there, 404, "not_found") == "graph 'south' not found"
        assert here.status_code == status, (path, here.text)
        assert "south" not in here.text
        assert theirs.status_code == 200, (path, theirs.text)
    assert ann.done("POST", "/graphs/north/mutate", json=body, headers=named)["commit"]["actor_id"] == "ann"
    assert ben.done("GET", f"/graphs/south/writes/{WRITE_NAME}")["answer"]["commit"] == made["commit"]
