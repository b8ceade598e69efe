"""`GET /entity`: one node or edge, on a branch or in a commit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from omnigraph.graph.opening import open as open_graph
from omnigraph.wire.responses import EntityOutput
from tests.support.gates import policy_of
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import error_of
from tests.support.parity import RENAME, SCAN, place_parity

ARROW = "application/vnd.apache.arrow.stream"
COMMIT_ID, ROW_COUNT = "Omnigraph-Graph-Commit-Id", "Omnigraph-Row-Count"
TOKEN = "token-of-ann-0123456789"
VGR_1 = {"type": "Craft", "id": "VGR-1"}
NOWHERE = "0" * 26


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with a branch that renamed a craft, and with a node with bytes."""
    place = place_parity(tmp_path_factory.mktemp("entities"))
    with open_graph(place) as graph:
        for name in ("review/june", "other"):
            graph.create_branch(name)
            graph.mutate(RENAME, params={"code": "VGR-1", "name": name}, branch=name)
    return place


@pytest.fixture(scope="module")
def client(graph: Path) -> Iterator[httpx.Client]:
    """One open server: nothing is written."""
    with serving_app(settings_for(graph)) as client:
        yield client


def shown(client: httpx.Client, **params: str) -> dict[str, Any]:
    answer = client.get("/entity", params=params)
    assert answer.status_code == 200, answer.text
    EntityOutput.model_validate(answer.json(), strict=True)
    found: dict[str, Any] = answer.json()
    return found


def whole(client: httpx.Client, code: str) -> dict[str, Any]:
    query = "query q($code: String) { match { $c: Craft { code: $code } } return { $c } }"
    answer = client.post("/query", json={"query": query, "params": {"code": code}}).json()
    found: dict[str, Any] = answer["rows"][0]["c"]
    return found


def head(client: httpx.Client, branch: str) -> str:
    return str(client.get("/snapshot", params={"branch": branch}).json()["graph_commit_id"])


@pytest.mark.case("surfaces", 880)
def test_a_node_is_what_a_query_returns_and_of_which_commit(client: httpx.Client) -> None:
    found = shown(client, **VGR_1)

    assert found["entity"] == whole(client, "VGR-1")
    assert found["entity"]["serial"] == "9007199254749097"
    assert (found["table_key"], found["graph_commit_id"]) == ("node:Craft", head(client, "main"))
    assert shown(client, type="node:Craft", id="VGR-1") == found


@pytest.mark.case("surfaces", 880)
def test_an_edge_has_its_ends(client: httpx.Client) -> None:
    found = shown(client, type="Flew", id="VGR-1 on Grand Tour")

    ends = {"src": "VGR-1", "dst": "Grand Tour"}
    assert found["entity"] == {"id": "VGR-1 on Grand Tour", **ends, "seat": 1}
    assert found["table_key"] == "edge:Flew"


@pytest.mark.case("surfaces", 880)
def test_a_branch_and_a_commit_show_their_own(client: httpx.Client) -> None:
    on_june = shown(client, **VGR_1, target="review/june")
    past = shown(client, **VGR_1, target=head(client, "review/june"))
    on_main = shown(client, **VGR_1, target="main")

    assert (on_june["entity"]["name"], on_main["entity"]["name"]) == ("review/june", "vgr-1")
    assert past == on_june
    assert on_june["graph_commit_id"] == head(client, "review/june")


@pytest.mark.case("surfaces", 880)
def test_bytes_are_in_the_stream_alone(client: httpx.Client) -> None:
    params = {"type": "Paper", "id": "P-1"}

    answer = client.get("/entity", params=params, headers={"Accept": ARROW})

    with pa.ipc.open_stream(answer.content) as reader:
        (row,) = reader.read_all().to_pylist()
    assert row == {"id": "P-1", "code": "P-1", "pages": 1, "scan": SCAN}
    assert (answer.headers[ROW_COUNT], answer.headers[COMMIT_ID]) == ("1", head(client, "main"))
    assert answer.headers["content-type"] == ARROW
    assert shown(client, **params)["entity"] == {"id": "P-1", "code": "P-1", "pages": 1}


@pytest.mark.case("surfaces", 881)
@pytest.mark.parametrize(
    ("query", "status", "code", "text"),
    [
        ("id=VGR-1", 400, "bad_request", "the query string: 'type' is missing"),
        ("type=Craft", 400, "bad_request", "the query string: 'id' is missing"),
        ("type=Craft&id=a&id=b", 400, "bad_request", "parameter 'id' is given twice"),
        ("type=Craft&id=VGR-1&branch=main", 400, "bad_request", "'branch': "),
        ("type=Craft&id=VGR-1&snapshot=x", 400, "bad_request", "'snapshot': "),
        ("type=Crafts&id=VGR-1", 400, "bad_request", "unknown type 'Crafts'"),
        ("type=Craft&id=nobody", 404, "not_found", "Craft 'nobody' not found"),
        ("type=Craft&id=", 404, "not_found", "Craft '' not found"),
        ("type=Craft&id=VGR-1&target=nowhere", 404, "not_found", "neither a branch nor a commit 'nowhere'"),
        (f"type=Craft&id=VGR-1&target={NOWHERE}", 404, "not_found", "neither a branch nor a commit"),
        ("type=Craft&id=VGR-1&target=", 404, "not_found", "neither a branch nor a commit ''"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    client: httpx.Client, query: str, status: int, code: str, text: str
) -> None:
    assert text in error_of(client.get(f"/entity?{query}"), status, code)


@pytest.mark.case("surfaces", 881)
def test_a_refusal_tells_nothing_of_what_is_there(graph: Path) -> None:
    policy = policy_of("read; branch_scope: unprotected", protected="other, absent")
    answers: dict[str, set[tuple[int, str]]] = {}
    with serving_app(settings_for(graph, tokens={"ann": TOKEN}, policy=policy)) as client:
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        with open_graph(graph, mode="ro") as opened:
            hidden = opened.snapshot("other").commit_id
        for target in ("other", "absent", hidden, NOWHERE):
            for asked in (VGR_1, {"type": "Craft", "id": "nobody"}, {"type": "Crafts", "id": "x"}):
                answer = client.get("/entity", params={**asked, "target": target})
                text = answer.text.replace(target, "TARGET")
                answers.setdefault(target, set()).add((answer.status_code, text))
        allowed = client.get("/entity", params={**VGR_1, "target": "review/june"})

    assert answers["other"] == answers["absent"]
    assert answers[hidden] == answers[NOWHERE]
    assert [{status for status, _ in found} for found in answers.values()] == [{403}, {403}, {404}, {404}]
    assert {len(found) for found in answers.values()} == {1}
    assert allowed.json()["entity"]["name"] == "review/june"
