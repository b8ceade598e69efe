"""Requests that are wrong on purpose: each has its status and its code, and nothing of them is kept."""

import base64
import json
import logging
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from omnigraph.core.failpoint import failpoint
from omnigraph.server.settings import ServerLimits
from omnigraph.wire.responses import ErrorOutput
from tests.support.atlas import GRAPH, place_atlas
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import TOKENS, WAIT_S, error_of, running_server

READ = {"query": "query q() { match { $c: Craft } return { $c.code } }"}
JSON = {"Content-Type": "application/json"}
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
LIMITS = ServerLimits(body_bytes=4_096, load_body_bytes=8_192, body_wait_s=1)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One open server with small limits, which no test of this file changes anything in."""
    graph = place_atlas(tmp_path_factory.mktemp("hostile"))
    with serving_app(settings_for(graph, limits=LIMITS)) as client:
        before = client.get("/commits").json()
        yield client
        assert client.get("/commits").json() == before
        assert client.get("/branches").json() == {"branches": ["main"]}


def raw(client: httpx.Client, request: bytes) -> bytes:
    """Return what a server answers to some bytes, up to the end of a JSON body or of the connection."""
    address = urlsplit(str(client.base_url))
    with socket.create_connection((str(address.hostname), address.port or 0), WAIT_S) as connection:
        connection.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer or not answer.rstrip().endswith(b"}"):
            piece = connection.recv(65_536)
            if not piece:
                break
            answer += piece
        return answer


def raw_get(client: httpx.Client, path: bytes) -> tuple[int, dict[str, object]]:
    answer = raw(client, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.case("surfaces", 335)
@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        (b"/commits/..%2F..%2Fetc%2Fpasswd", 404, "not_found"),
        (b"/commits/%2e%2e", 404, "not_found"),
        (b"/commits/../snapshot", 404, "not_found"),
        (b"/./snapshot", 404, "not_found"),
        (b"/%2Fsnapshot", 404, "not_found"),
        (b"/snapshot%2F", 404, "not_found"),
        (b"/commits/a%00b", 404, "not_found"),
        (b"/commits/%ff%fe", 400, "bad_request"),
        (b"/snapshot?branch=%00", 404, "not_found"),
        (b"/snapshot?branch=..%2F..", 404, "not_found"),
        (b"/snapshot?branch=a%252Fb", 404, "not_found"),
        (b"/snapshot?branch=main&branch=main", 400, "bad_request"),
        (b"/graphs/%2e%2e/snapshot", 400, "bad_request"),
        (b"/graphs/default%2Fsnapshot", 404, "not_found"),
        (b"/graphs/a%00/snapshot", 400, "bad_request"),
        (b"/graphs/" + b"a" * 65 + b"/snapshot", 400, "bad_request"),
    ],
)
def test_paths_are_taken_segment_by_segment(
    path: bytes, status: int, code: str, client: httpx.Client
) -> None:
    found, body = raw_get(client, path)

    assert (found, body["code"]) == (status, code), body
    ErrorOutput.model_validate(body, strict=True)


@pytest.mark.case("surfaces", 335)
def test_a_segment_is_decoded_once(client: httpx.Client) -> None:
    assert raw_get(client, b"/sn%61pshot")[0] == 200
    _, once = raw_get(client, b"/commits/a%2Fb")
    _, twice = raw_get(client, b"/commits/a%252Fb")

    assert once["error"] == "commit 'a/b' not found"
    assert twice["error"] == "commit 'a%2Fb' not found"


@pytest.mark.case("surfaces", 336)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b'{"query": "x"} {}',
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b'{"query": "\xff"}',
        b'{"query": "\\ud800"}',
        b'{"query": "x", "query": "y"}',
        b'{"query": "x", "params": {"a": NaN}}',
        b'{"query": "x", "params": {"a": ' + b"9" * 5_000 + b"}}",
        b'{"query": "x", "params": ' + b'{"a":' * 500 + b"1" + b"}" * 500 + b"}",
        b"[" * 4_000,
        b'{"query": 5}',
        b'{"query": null}',
        b'{"query": ["x"]}',
        b'{"query": "x", "params": []}',
        b'{"query": "x", "branch": 5}',
        b'{"query": "x", "branch": true}',
        b'{"query": ""}',
        b'{"query": "nonsense"}',
    ],
    ids=lambda body: body[:24],
)
def test_bodies_that_are_not_what_a_route_takes_are_400(body: bytes, client: httpx.Client) -> None:
    large = len(body) > LIMITS.body_bytes

    for route in ("/query", "/mutate", "/graphs/default/query"):
        answer = client.post(route, content=body, headers=JSON)

        error_of(answer, 413 if large else 400, "bad_request")
        ErrorOutput.model_validate(answer.json(), strict=True)


def test_a_member_has_one_value(client: httpx.Client) -> None:
    twice = json.dumps(READ)[:-1].encode() + b', "branch": "main", "branch": "main"}'

    answer = client.post("/query", content=twice, headers=JSON)

    assert "given twice" in error_of(answer, 400, "bad_request")


def test_members_that_a_route_does_not_know_are_ignored(client: httpx.Client) -> None:
    assert client.post("/query", json={**READ, "bogus": {"deep": [1]}, "actor": "x"}).status_code == 200


@pytest.mark.case("surfaces", 336)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/jsonp"},
        {**JSON, "Content-Encoding": "gzip"},
    ],
    ids=str,
)
def test_bodies_of_another_type_or_packed_are_415(headers: dict[str, str], client: httpx.Client) -> None:
    answer = client.post("/query", content=json.dumps(READ).encode(), headers=headers)

    error_of(answer, 415, "bad_request")


@pytest.mark.case("surfaces", 336)
@pytest.mark.parametrize(
    "packed",
    [
        b"Content-Encoding: identity\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ],
)
def test_bodies_that_are_packed_in_a_second_breath_are_415(packed: bytes, client: httpx.Client) -> None:
    head = b"POST /query HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"

    assert raw(client, head + packed).startswith(b"HTTP/1.1 415 ")


@pytest.mark.case("surfaces", 337)
@pytest.mark.parametrize(
    ("length", "status"), [("1000000000000000000", 413), ("00000000000000005000", 413), ("9" * 60, 400)]
)
def test_a_length_of_any_digits_is_refused_at_once(length: str, status: int, client: httpx.Client) -> None:
    head = "POST /query HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"

    answer = raw(client, f"{head}Content-Length: {length}\r\n\r\n".encode())

    assert answer.startswith(f"HTTP/1.1 {status} ".encode())


@pytest.mark.case("surfaces", 123)
@pytest.mark.case("surfaces", 337)
def test_bodies_that_are_too_large_are_413_however_they_are_sent(client: httpx.Client) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(64):
            yield b" " * 1_024

    announced = client.post("/query", content=b" " * 5_000, headers=JSON)
    streamed = client.post("/query", content=pieces(), headers=JSON)
    load = client.post(
        "/load/ndjson?mode=append", content=b" " * 9_000, headers={"Content-Type": "application/x-ndjson"}
    )

    for answer, limit in ((announced, 4_096), (streamed, 4_096), (load, 8_192)):
        error_of(answer, 413, "bad_request")
        assert answer.json()["resource_limit"]["limit"] == limit
        assert answer.json()["resource_limit"]["actual"] > limit
    assert client.post("/query", json=READ).status_code == 200


@pytest.mark.case("surfaces", 337)
def test_a_body_that_does_not_come_is_refused_and_its_connection_ends(client: httpx.Client) -> None:
    head = b"POST /query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"

    answer = raw(client, head + b'{"query":')

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in answer.lower()
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "bad_request"


@pytest.mark.case("surfaces", 337)
def test_a_body_that_is_cut_off_leaves_nothing(client: httpx.Client) -> None:
    address = urlsplit(str(client.base_url))
    head = (
        b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"
    )

    with socket.create_connection((str(address.hostname), address.port or 0), WAIT_S) as connection:
        connection.sendall(head + b'{"query": "query q() { insert Mission { title: \\"cut\\" } }"')

    assert client.post("/query", json=READ).status_code == 200


@pytest.mark.case("surfaces", 154)
def test_an_internal_error_tells_nothing_but_its_id(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with failpoint("query.post_pin_pre_read", "raise"), caplog.at_level(logging.ERROR, "omnigraph"):
        logging.getLogger("omnigraph").propagate = True
        answer = client.post("/query", json=READ, headers={"X-Request-Id": "mine-500"})

    text = error_of(answer, 500, "internal")
    assert "mine-500" in text
    for secret in ("Traceback", "fault injected", "query.py", "/", "hostile"):
        assert secret not in text
    assert "mine-500" in caplog.text


@pytest.mark.case("surfaces", 338)
def test_wrong_tokens_are_refused_alike_and_first(tmp_path: Path) -> None:
    good = TOKENS["act-mira"]
    wrong = {
        "": "missing bearer token",
        "Bearer": "missing bearer token",
        f"Basic {good}": "missing bearer token",
        good: "missing bearer token",
        f"Bearer {good}x": "invalid bearer token",
        f"Bearer {good[:-1]}": "invalid bearer token",
        f"Bearer {good} {good}": "invalid bearer token",
        f"Bearer {good.upper()}": "invalid bearer token",
        f"Bearer {good}{'x' * 10_000}": "invalid bearer token",
    }
    with serving_app(settings_for(place_atlas(tmp_path), tokens=TOKENS, limits=LIMITS)) as client:
        for header, text in wrong.items():
            for path in ("/snapshot", "/graphs/nope/snapshot", "/graphs/bad!id/snapshot", "/nope", "/graphs"):
                answer = client.get(path, headers={"Authorization": header})
                assert error_of(answer, 401, "unauthorized") == text
            large = client.post("/query", content=b" " * 9_000, headers={"Authorization": header})
            error_of(large, 401, "unauthorized")
        twice = client.get("/snapshot", headers=[("Authorization", f"Bearer {good}")] * 2)
        error_of(twice, 401, "unauthorized")
        assert client.get("/snapshot", headers={"Authorization": f"bearer  {good}"}).status_code == 200
        by_query = client.get("/snapshot", params={"access_token": good})
        error_of(by_query, 401, "unauthorized")
        mira = {"Authorization": f"Bearer {good}"}
        error_of(client.get("/graphs/nope/snapshot", headers=mira), 404, "not_found")
        error_of(client.post("/mutate", content=b"{", headers={**mira, **JSON}), 400, "bad_request")
        error_of(client.post("/mutate", json={"query": "x"}, headers=mira), 403, "forbidden")
        raw_load = client.post(
            "/load/ndjson?mode=append",
            content=b" " * 9_000,
            headers={**mira, "Content-Type": "application/x-ndjson"},
        )
        error_of(raw_load, 403, "forbidden")


@pytest.mark.slow
@pytest.mark.case("surfaces", 338)
def test_no_log_and_no_body_shows_a_token(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    presented = "presented-and-unknown-1"
    with running_server(
        tmp_path / GRAPH, tokens=TOKENS, log=tmp_path / "log", OMNIGRAPH_LOG="debug"
    ) as server:
        bodies = []
        for token in (*TOKENS.values(), presented):
            with server.client(token) as client:
                bodies += [
                    client.request(method, path, json={"query": "nonsense"}).text
                    for path in (
                        "/query",
                        "/mutate",
                        "/snapshot",
                        "/nope",
                        "/graphs",
                        "/openapi.json",
                        "/metrics",
                    )
                    for method in ("GET", "POST")
                ]
                bodies.append(client.post("/query", content=b"[" * 100_000, headers=JSON).text)
        told = server.told()

    for token in (*TOKENS.values(), presented):
        assert token not in told
        assert not [body for body in bodies if token in body]


@pytest.mark.case("surfaces", 340)
@pytest.mark.parametrize(
    ("type_", "hint"),
    [
        ("../x", ""),
        ("/etc/*", ""),
        ("/**/x", ""),
        ("s3://b/k*", ""),
        ("Craft=/etc/x", ""),
        ("", ""),
        ("Crafd", "'Craft'"),
    ],
)
def test_a_type_to_load_is_never_a_place(type_: str, hint: str, client: httpx.Client) -> None:
    answer = client.post("/load/arrow", params={"type": type_}, content=b"rows", headers=ARROW)

    text = error_of(answer, 400, "bad_request")
    assert f"unknown type '{type_}'" in text
    assert hint in text


@pytest.mark.case("surfaces", 340)
def test_a_body_that_the_disk_does_not_take_is_a_failure_of_the_store(
    client: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))

    answer = client.post("/load/arrow", params={"type": "Craft"}, content=b"rows", headers=ARROW)

    text = error_of(answer, 500, "internal")
    assert text.startswith("storage request failed (unknown)")
    assert str(tmp_path) not in text


@pytest.mark.case("surfaces", 342)
def test_numbers_without_end_are_400(client: httpx.Client) -> None:
    head = client.get("/commits").json()["commits"][0]["graph_commit_id"]
    limit = {"limit": "9" * 30}
    sides = {"from": "main", "to": "main"}
    for number in (2**53 + 1, 2**63, 2**64 - 1, 10**30):
        page = json.dumps(["main", "main", number, ["main", "main", [], [], []]]).encode()
        token = base64.urlsafe_b64encode(page).decode()

        answer = client.get("/diff", params={**sides, "page_token": token})

        assert "page token" in error_of(answer, 400, "bad_request")
    for path in ("/changes", "/diff", "/commits", f"/commits/{head}/changes"):
        answer = client.get(path, params={**limit, **(sides if path == "/diff" else {})})

        assert "'limit'" in error_of(answer, 400, "bad_request")


@pytest.mark.case("surfaces", 700)
def test_a_branch_from_a_name_too_long_for_a_file(client: httpx.Client) -> None:
    answer = client.post("/branches", json={"name": "b", "from": "x" * 243})

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
