"""`GET /schema?format=catalog`: the types of a schema as a document."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph
from omnigraph.wire import schema_responses
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import error_of

SCHEMA = """\
interface Named {
    name: String @description("what people say")
}
node Craft
    @description("what flies")
    implements Named
{
    code: String
    serial: I64
    status: enum(lost, active) @default(active)
    mass_kg: F64?
    tags: [String]?
    photo: Blob? @external("https://cdn.example/")
    vector: Vector(3)? @embed(name, model="lab/mini") @index
    @key(serial, code)
    @range(mass_kg, 0..1000)
}
edge Near: Craft -> Craft @card(0..2) {
    since: Date?
}
"""
WIDER = SCHEMA.replace("    since: Date?\n", "    since: Date?\n    until: Date?\n")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    place = Path(tmp_path_factory.mktemp("catalog") / "g.omni")
    with omnigraph.init(place, SCHEMA, durability="process") as graph:
        graph.create_branch("wider")
        graph.apply_schema(WIDER, branch="wider")
    with serving_app(settings_for(place)) as client:
        yield client


def shown(client: httpx.Client, path: str = "/schema", **params: str) -> dict[str, Any]:
    answer = client.get(path, params={"format": "catalog", **params})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    schema_responses.SchemaOutput.model_validate(found, strict=True)
    return found


@pytest.mark.case("surfaces", 669)
def test_the_types_of_a_schema_are_a_document(client: httpx.Client) -> None:
    found = shown(client)

    catalog = found["catalog"]
    (craft,), (near,) = catalog["nodes"], catalog["edges"]
    properties = {item["name"]: item for item in craft["properties"]}
    assert found["schema_source"] == SCHEMA
    assert [(item["name"], len(item["properties"])) for item in catalog["interfaces"]] == [("Named", 1)]
    assert (craft["table_key"], craft["interfaces"]) == ("node:Craft", ["Named"])
    assert craft["key"] == ["serial", "code"]
    assert craft["annotations"] == ["@key(serial, code)", '@description("what flies")']
    assert ["vector"] in craft["indexes"]
    assert properties["name"]["annotations"] == ['@description("what people say")']
    assert properties["mass_kg"]["annotations"] == ["@range(mass_kg, 0..1000)"]
    assert properties["status"]["type"] == "enum(active, lost)"
    assert properties["status"]["property_type"]["enum_values"] == ["active", "lost"]
    assert properties["tags"]["property_type"] == {
        "scalar": "String",
        "nullable": True,
        "list": True,
        "enum_values": None,
    }
    assert properties["vector"]["property_type"]["scalar"] == {"Vector": 3}
    assert properties["vector"]["embed"] == {"source": "name", "model": "lab/mini"}
    assert properties["photo"]["external"] == ["https://cdn.example/"]
    assert (near["source"], near["target"], near["cardinality"]) == ("Craft", "Craft", {"min": 0, "max": 2})
    assert [item["name"] for item in near["properties"]] == ["since"]


@pytest.mark.case("surfaces", 669)
def test_it_is_of_the_branch_or_snapshot_that_is_asked_for(client: httpx.Client) -> None:
    head = client.get("/commits?branch=wider&limit=1").json()["commits"][0]["graph_commit_id"]

    for found in (
        shown(client, branch="wider"),
        shown(client, snapshot=head),
        shown(client, "/graphs/default/schema", branch="wider"),
    ):
        (near,) = found["catalog"]["edges"]
        assert [item["name"] for item in near["properties"]] == ["since", "until"]


@pytest.mark.case("surfaces", 669)
def test_nobody_gets_it_who_does_not_ask_for_it(client: httpx.Client) -> None:
    assert "catalog" not in client.get("/schema").json()
    assert "catalog" not in client.get("/schema?format=source").json()
    error_of(client.get("/schema?format=xml"), 400, "bad_request")
