"""Stored queries over HTTP: listed with their types, called by name, and hidden from those who may not."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from omnigraph.core.errors import BadRequest
from omnigraph.graph.stored_files import DeclaredQueries, NamedQuery
from omnigraph.server.app import graph_routes
from omnigraph.server.serving import Serving
from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import write
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import TOKENS, error_of
from tests.support.in_process import invoke

QUERIES = """\
query get_craft($code: String) @description("One craft") {
    match { $c: Craft { code: $code } }
    return { $c.code, $c.name }
}
query crafts() {
    match { $c: Craft }
    return { $c.code }
    order { $c.code }
}
query add_mission($title: String) {
    insert Mission { title: $title }
}
"""
ARROW = "application/vnd.apache.arrow.stream"
CONDITION = "Omnigraph-If-Graph-Commit"
MISSION = {"type": "Mission", "data": {"title": "Refused"}}
# What is sent to each route that writes; all of it would be done without the condition.
WRITES: dict[str, dict[str, Any]] = {
    "mutate": {"json": {"query": 'query q() { insert Mission { title: "Refused" } }'}},
    "change": {"json": {"query": 'query q() { insert Mission { title: "Refused" } }'}},
    "load": {"json": {"data": json.dumps(MISSION)}},
    "ingest": {"json": {"data": json.dumps(MISSION)}},
    "loadNdjson": {"content": json.dumps(MISSION), "headers": {"Content-Type": "application/x-ndjson"}},
    "loadArrow": {"content": b"", "params": {"type": "Mission"}, "headers": {"Content-Type": ARROW}},
    "loadNdjsonChecked": {
        "content": json.dumps(MISSION),
        "headers": {"Content-Type": "application/x-ndjson"},
    },
    "loadArrowChecked": {"content": b"", "params": {"type": "Mission"}, "headers": {"Content-Type": ARROW}},
    "createBranch": {"json": {"name": "refused"}},
    "upgradeBranch": {},
    "deleteBranch": {},
    "mergeBranches": {"json": {"source": "kept"}},
    "applySchema": {"json": {"schema_source": "node Mission { title: String @key }"}},
    "invoke_query": {"json": {"params": {"title": "Refused"}}},
}


def declared(folder: Path) -> DeclaredQueries:
    file = write(folder, "stored.gq", QUERIES)
    return DeclaredQueries(
        named=(
            NamedQuery("get_craft", file),
            NamedQuery("crafts", file),
            NamedQuery("add_mission", file, False),
        )
    )


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One open server for this file."""
    folder = tmp_path_factory.mktemp("stored")
    with serving_app(settings_for(place_atlas(folder), queries=declared(folder))) as client:
        yield client


@pytest.mark.case("surfaces", 143)
@pytest.mark.case("surfaces", 386)
def test_listed_queries_have_typed_parameters(client: httpx.Client) -> None:
    listed = client.get("/queries").raise_for_status().json()["queries"]

    assert [entry["name"] for entry in listed] == ["crafts", "get_craft"]
    assert listed[1] == {
        "name": "get_craft",
        "tool_name": "get_craft",
        "description": "One craft",
        "mutation": False,
        "params": [{"name": "code", "kind": "string", "nullable": False}],
    }


@pytest.mark.case("surfaces", 336)
@pytest.mark.parametrize("path", ["/mutate", "/change", "/queries/add_mission", "/query"])
def test_parameters_that_are_read_with_more_room_than_they_are_written_are_400(
    path: str, client: httpx.Client
) -> None:
    texts = {}
    for depth in range(940, 1_010):  # a body of more than 64 KiB is read where the stack is lower
        nested = b"[" * depth + b"]" * depth
        query = b"query q($title: String) { insert Mission { title: $title } }" + b" " * 70_000
        body = b'{"query": "%b", "params": {"title": %b}}' % (query, nested)

        answer = client.post(path, content=body, headers={"Content-Type": "application/json"})

        texts[depth] = error_of(answer, 400, "bad_request")
    assert "nested too deeply" in texts[1_009]


@pytest.mark.case("surfaces", 143)
@pytest.mark.case("surfaces", 386)
@pytest.mark.parametrize("body", [b"", b"null", b"{}"])
def test_a_query_without_parameters_needs_no_body(body: bytes, client: httpx.Client) -> None:
    headers = {"Content-Type": "application/json"} if body else {}

    answer = client.post("/queries/crafts", content=body, headers=headers)

    assert answer.status_code == 200, answer.text
    assert answer.json()["row_count"] == 3
    assert answer.json()["graph_commit_id"]


@pytest.mark.case("surfaces", 143)
@pytest.mark.case("surfaces", 386)
def test_parameters_are_checked_and_rows_come_as_arrow_too(client: httpx.Client) -> None:
    body = {"params": {"code": "VGR-1"}}

    rows = client.post("/queries/get_craft", json=body)
    table = client.post("/graphs/default/queries/get_craft", json=body, headers={"Accept": ARROW})
    wrong = client.post("/queries/get_craft", json={"params": {"code": 5}})
    unknown = client.post("/queries/get_crafts")

    assert rows.json()["rows"] == [{"c.code": "VGR-1", "c.name": "vgr-1"}]
    assert pa.ipc.open_stream(table.content).read_all().to_pylist() == rows.json()["rows"]
    assert "'code'" in error_of(wrong, 400, "bad_request")
    assert error_of(unknown, 404, "not_found") == "stored query not found"


@pytest.mark.case("surfaces", 145)
@pytest.mark.case("surfaces", 386)
def test_what_does_not_fit_the_kind_of_a_query_is_refused(client: httpx.Client) -> None:
    mutation, read = "/queries/add_mission", "/queries/crafts"
    head = client.post(read).json()["graph_commit_id"]
    params = {"params": {"title": "Refused"}}
    refused = {
        "query": client.post(read, json={"expect_mutation": True}),
        "mutate": client.post(mutation, json={**params, "expect_mutation": False}),
        "snapshot": client.post(mutation, json={**params, "snapshot": head}),
        "not both": client.post(read, json={"branch": "main", "snapshot": head}),
        "/if-graph-commit": client.post(mutation, json=params, headers={CONDITION: head}),
        "is a read": client.post(f"{read}/if-graph-commit", headers={CONDITION: head}),
        "needs the header": client.post(f"{mutation}/if-graph-commit", json=params),
    }

    for text, answer in refused.items():
        assert text in error_of(answer, 400, "bad_request")
    assert client.post(read).json()["graph_commit_id"] == head


@pytest.mark.case("surfaces", 386)
def test_a_stored_mutation_runs_if_the_branch_is_where_the_caller_thinks(client: httpx.Client) -> None:
    head = client.post("/queries/crafts").json()["graph_commit_id"]
    place = "/queries/add_mission/if-graph-commit"

    done = client.post(place, json={"params": {"title": "Kept"}}, headers={CONDITION: head})
    lost = client.post(place, json={"params": {"title": "Lost"}}, headers={CONDITION: head})
    plain = client.post("/queries/add_mission", json={"params": {"title": "Plain"}, "expect_mutation": True})

    assert done.status_code == 200, done.text
    assert done.json()["affected_nodes"] == 1
    assert done.json()["commit"]["parent_commit_id"] == head
    assert lost.status_code == 412
    assert "code" not in lost.json()
    assert plain.json()["query_name"] == "add_mission"


@pytest.mark.case("surfaces", 116)
@pytest.mark.case("surfaces", 386)
def test_who_may_not_call_cannot_find_out_what_there_is(tmp_path: Path) -> None:
    settings = settings_for(place_atlas(tmp_path), tokens=TOKENS, queries=declared(tmp_path))
    with serving_app(settings) as client:
        client.headers["Authorization"] = f"Bearer {TOKENS['act-mira']}"

        known, unknown = client.post("/queries/crafts"), client.post("/queries/x")
        read = client.post("/query", json={"query": QUERIES, "name": "crafts"})
        written = client.post("/mutate", json={"query": QUERIES, "name": "add_mission"})

    assert known.content == unknown.content
    assert error_of(known, 404, "not_found") == "stored query not found"
    assert (read.status_code, written.status_code) == (200, 403)


@pytest.mark.case("surfaces", 386)
def test_a_registry_that_does_not_fit_is_not_served(tmp_path: Path) -> None:
    unfit = write(tmp_path, "unfit.gq", "query ships() { match { $s: Ship } return { $s.code } }")

    with pytest.raises(BadRequest, match="ships"):
        Serving.begin(settings_for(place_atlas(tmp_path), queries=DeclaredQueries(files=(unfit,))))


@pytest.mark.case("surfaces", 386)
def test_a_registry_that_does_not_fit_stops_the_boot(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write(tmp_path, "queries/a.gq", "query ships() { match { $s: Ship } return { $s.code } }")
    write(tmp_path, "queries/b.gq", "query torn( {")

    outcome = invoke(
        *("server", GRAPH, "--unauthenticated", "--bind", "127.0.0.1:0", "--queries", "queries"), cwd=tmp_path
    )

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "ships" in outcome.stderr
    assert "b.gq" in outcome.stderr


@pytest.mark.case("surfaces", 341)
def test_no_write_ignores_a_condition(client: httpx.Client) -> None:
    writing = {route.id: route for route in graph_routes() if route.weight and CONDITION not in route.headers}
    client.post("/branches", json={"name": "kept"}).raise_for_status()
    head = client.post("/queries/crafts").json()["graph_commit_id"]
    assert set(WRITES) == set(writing)

    for name, sent in WRITES.items():
        route = writing[name]
        path = route.path.replace("{name}", "add_mission").replace("{branch}", "kept")
        headers = {**sent.get("headers", {}), CONDITION: head}

        answer = client.request(route.method, path, **{**sent, "headers": headers})

        text = error_of(answer, 400, "bad_request")
        assert CONDITION in text, (name, text)
        if route.conditional is not None:
            place = "/queries/add_mission" if name == "invoke_query" else "/mutate"
            assert text == f"{CONDITION} goes to {place}/if-graph-commit"
    read = client.get("/snapshot", headers={CONDITION: head})
    assert "keeps no condition" in error_of(read, 400, "bad_request")
    assert client.post("/queries/crafts").json()["graph_commit_id"] == head
    assert client.get("/branches").json() == {"branches": ["kept", "main"]}
    client.delete("/branches/kept").raise_for_status()


@pytest.mark.case("surfaces", 342)
@pytest.mark.parametrize("query", ["get_craft", "add_mission"])
def test_parameters_beyond_64_bits_are_400(query: str, client: httpx.Client) -> None:
    for name in ("code", "title", "other"):
        error_of(client.post(f"/queries/{query}", json={"params": {name: 10**30}}), 400, "bad_request")
