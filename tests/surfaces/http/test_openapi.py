"""The description of a server: complete, stable, and true."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # comes with schemathesis
import pytest

from tests.support.atlas import place_atlas
from tests.support.http_app import serving_app, settings_for
from tests.support.http_reference import document
from tests.support.http_server import TOKENS
from tests.support.pages import DOCS

NOT_BUILT = {"/mcp"}
OF_OLDER_CLIENTS = {  # section 2.15: what a published client calls, by the names it was generated with
    ("get", "/healthz"): "health",
    ("get", "/snapshot"): "getSnapshot",
    ("get", "/branches"): "listBranches",
    ("get", "/commits"): "listCommits",
    ("get", "/commits/{commit_id}"): "getCommit",
    ("get", "/schema"): "getSchema",
    ("post", "/branches"): "createBranch",
    ("post", "/branches/merge"): "mergeBranches",
    ("post", "/change"): "change",
    ("post", "/export"): "export",
    ("post", "/ingest"): "ingest",
    ("post", "/read"): "read",
    ("post", "/schema/apply"): "applySchema",
    ("delete", "/branches/{branch}"): "deleteBranch",
}


def operations(made: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in made["paths"].items():
        for method, route in methods.items():
            yield method, path, route


def specified() -> set[tuple[str, str, str]]:
    """Return method, path and operation id of every route that the table of the specification has."""
    text = (DOCS / "spec" / "surfaces.md").read_text(encoding="utf-8")
    table = text.partition("### 2.5 Routes")[2].partition("### 2.6")[0]
    found = set()
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        methods = re.findall(r"\b(GET|HEAD|POST|DELETE)\b", cells[0].partition("`")[0])
        if not methods:
            continue
        paths, ids = re.findall(r"`(/[^`?]*)", cells[0]), re.findall(r"`(\w+)`", cells[2])
        routes = [(method.lower(), path) for path in paths for method in methods]
        found |= {(*route, id_) for route, id_ in zip(routes, ids, strict=False)}
    return {entry for entry in found if entry[1] not in NOT_BUILT}


@pytest.mark.case("surfaces", 152)
def test_every_route_of_the_specification_is_described_by_its_id() -> None:
    made = document()

    described = {(method, path, route["operationId"]) for method, path, route in operations(made)}

    assert made["openapi"].startswith("3.1")
    assert made["info"]["title"] == "Omnigraph API"
    flat = {entry for entry in described if "{graph_id}" not in entry[1]}
    assert flat == specified()
    ids = [route["operationId"] for _, _, route in operations(made)]
    assert len(ids) == len(set(ids))


def test_nested_routes_have_the_same_description_below_a_graph() -> None:
    made = document()

    for method, path, route in operations(made):
        if "{graph_id}" in path:
            flat = made["paths"][path.removeprefix("/graphs/{graph_id}")][method]
            assert route["operationId"] == f"cluster_{flat['operationId']}"
            assert route["parameters"][0]["name"] == "graph_id"
            assert {**route, "operationId": "", "parameters": route["parameters"][1:]} == {
                **flat,
                "operationId": "",
                "parameters": flat.get("parameters", []),
            }
    alone = document(has_default=False)
    assert not [path for _, path, _ in operations(alone) if path == "/query"]


@pytest.mark.case("surfaces", 152)
def test_only_a_server_with_tokens_describes_security() -> None:
    secured, is_open = document(), document(is_open=True)

    assert "securitySchemes" not in is_open["components"]
    assert all("security" not in route for _, _, route in operations(is_open))
    assert secured["components"]["securitySchemes"]["bearer_token"] == {"type": "http", "scheme": "bearer"}
    free = {path for _, path, route in operations(secured) if "security" not in route}
    assert free == {"/healthz", "/version", "/readyz"}


def test_every_failure_refers_to_one_model_and_every_reference_leads_somewhere() -> None:
    made = document()

    for _, path, route in operations(made):
        for status, answer in route["responses"].items():
            schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
            if int(status) >= 400 and path != "/readyz":
                assert schema == {"$ref": "#/components/schemas/ErrorOutput"}, (path, status)
    for reference in re.findall(r"#/components/schemas/(\w+)", str(made)):
        assert reference in made["components"]["schemas"]
    for schema in made["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_deprecated_routes_say_so() -> None:
    deprecated = {path for _, path, route in operations(document()) if route.get("deprecated")}

    assert {path for path in deprecated if "{graph_id}" not in path} == {"/read", "/change", "/ingest"}


def test_what_a_published_client_calls_is_there_by_its_names() -> None:
    made = document()

    for (method, path), operation_id in OF_OLDER_CLIENTS.items():
        assert made["paths"][path][method]["operationId"] == operation_id


def test_a_server_gives_its_own_description_without_a_token(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)

    with serving_app(settings_for(graph, tokens=TOKENS)) as client:
        served = client.get("/openapi.json")

    assert served.status_code == 200
    assert served.json() == document()
