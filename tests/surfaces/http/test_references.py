"""`/blob` of a reference: where its bytes are, and nobody goes there."""

import socket
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import httpx
import pytest

from omnigraph.policy.model import Policy
from tests.engine.references.steps import OTHER, S3, WEB, images
from tests.support.engine import new_graph
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import TOKENS, error_of
from tests.support.queries import mutation

CELL = {"entity": "node", "type": "Book", "property": "cover"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("served-references") / "graph"
    with images(place) as graph:
        insert = mutation("insert Book { code: $c, cover: $u }", "$c: String, $u: Blob")
        with (
            patch("omnigraph.validate.references.reference_fault", return_value=None),
            patch("omnigraph.validate.references.form_fault", return_value=None),
        ):
            graph.mutate(insert, params={"c": "foreign", "u": "s3://assets/atlas/x\r\nSet-Cookie: a=b"})
    return place


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[httpx.Client]:
    with serving_app(settings_for(root)) as client:
        yield client


@pytest.mark.case("surfaces", 151)
@pytest.mark.case("surfaces", 737)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(("code", "uri"), [("a", S3), ("b", WEB)])
@pytest.mark.parametrize(
    "headers",
    [{}, {"Range": "bytes=0-1"}, {"If-None-Match": "*"}, {"If-Match": '"other"'}, {"If-Range": '"x"'}],
    ids=str,
)
def test_a_reference_is_where_its_bytes_are(
    client: httpx.Client, method: str, code: str, uri: str, headers: dict[str, str]
) -> None:
    answer = client.request(method, "/blob", params={**CELL, "id": code}, headers=headers)

    assert (answer.status_code, answer.content) == (302, b"")
    assert answer.headers["location"] == uri
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["omnigraph-blob-kind"] == "external"
    assert answer.headers["etag"].startswith('"')
    commit = client.get("/commits?limit=1").json()["commits"][0]["graph_commit_id"]
    assert answer.headers["omnigraph-snapshot-id"] == commit


@pytest.mark.case("surfaces", 151)
@pytest.mark.case("surfaces", 737)
def test_nobody_goes_where_a_reference_points(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as place:
        place.setblocking(False)
        base = f"http://127.0.0.1:{place.getsockname()[1]}/"
        schema = f'node Book {{ code: String @key  cover: Blob? @external("{base}") }}'
        with new_graph(tmp_path / "graph", schema) as graph:
            graph.mutate(mutation(f'insert Book {{ code: "a", cover: "{base}a" }}'))
            assert graph.verify(deep=True).is_whole
            list(graph.export())
        with serving_app(settings_for(tmp_path / "graph")) as client:
            answers = [
                client.request(method, "/blob", params={**CELL, "id": "a"}) for method in ("GET", "HEAD")
            ]

        assert [answer.headers["location"] for answer in answers] == [f"{base}a", f"{base}a"]
        with pytest.raises(BlockingIOError):
            place.accept()


@pytest.mark.case("surfaces", 737)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(("code", "status"), [("c", 404), ("nobody", 404), ("foreign", 424)])
def test_what_is_no_reference_leads_nowhere(
    client: httpx.Client, method: str, code: str, status: int
) -> None:
    answer = client.request(method, "/blob", params={**CELL, "id": code})

    assert answer.status_code == status
    assert not {"location", "set-cookie"} & set(answer.headers)
    if method == "GET" and status == 424:
        assert "is not a reference" in answer.json()["error"]
        assert set(answer.json()["external_blob_source"]) == {"uri", "reason"}


@pytest.mark.case("surfaces", 737)
def test_an_edge_has_references_too(client: httpx.Client) -> None:
    lines = client.post("/export", json={"type_names": ["Cites"]}).text
    (cites,) = (line for line in lines.splitlines() if line)
    id_ = httpx.Response(200, text=cites).json()["data"]["id"]

    answer = client.get("/blob", params={"entity": "edge", "type": "Cites", "property": "scan", "id": id_})

    assert (answer.status_code, answer.headers["location"]) == (302, OTHER)


@pytest.mark.case("surfaces", 737)
def test_who_may_not_read_is_told_nothing(root: Path) -> None:
    policy = Policy.parse("version: 1\nrules: []\n", "nothing")
    with serving_app(settings_for(root, tokens=TOKENS, policy=policy)) as client:
        headers = {"Authorization": f"Bearer {TOKENS['act-mira']}"}
        denied = client.get("/blob", params={**CELL, "id": "a"}, headers=headers)
        unknown = client.get("/blob", params={**CELL, "id": "a"})

    assert S3 not in error_of(denied, 403, "forbidden") + error_of(unknown, 401, "unauthorized")
    assert not any("location" in answer.headers for answer in (denied, unknown))


@pytest.mark.case("surfaces", 151)
def test_bytes_come_from_the_graph_itself(tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph", "node Doc { name: String @key  body: Blob? }") as graph:
        graph.mutate(mutation('insert Doc { name: "d", body: "base64:AAECAwQFBgc=" }'))
        graph.mutate(mutation('insert Doc { name: "null" }'))
    cell = {"entity": "node", "type": "Doc", "id": "d", "property": "body"}
    with serving_app(settings_for(tmp_path / "graph")) as client:

        def ask(method: str = "GET", **headers: str) -> httpx.Response:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            return client.request(method, "/blob", params=cell, headers=given)

        whole, head = ask(), ask("HEAD")
        part, beyond = ask(Range="bytes=2-5"), ask(Range="bytes=8-9")
        same, other = ask(If_None_Match=whole.headers["etag"]), ask(If_Match='"other"')
        null = client.get("/blob", params={**cell, "id": "null"})

    assert (whole.status_code, whole.content, whole.headers["omnigraph-blob-kind"]) == (
        200,
        bytes(range(8)),
        "managed",
    )
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", whole.headers["etag"])
    assert (part.status_code, part.content) == (206, bytes(range(2, 6)))
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, "bytes */8")
    assert (same.status_code, same.content) == (304, b"")
    assert (other.status_code, null.status_code) == (412, 404)
