"""What comes from a socket and is hardly HTTP: bounded, answered as every error is, never repeated."""

import json
import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from omnigraph.server.app import graph_routes
from omnigraph.server.protocol import HEADER_BYTES_MAX, HEADERS_MAX, TARGET_BYTES_MAX
from omnigraph.server.settings import ServerLimits
from omnigraph.wire.responses import ErrorOutput
from tests.support.atlas import place_atlas
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import TOKENS, WAIT_S, error_of

HOST = b"Host: x\r\n"
GET = b"GET /healthz HTTP/1.1\r\n" + HOST
POST = b"POST /query HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
SECRET = b"secret-5f1d"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One open server that waits a second for a head and for a body."""
    graph = place_atlas(tmp_path_factory.mktemp("protocol"))
    with serving_app(settings_for(graph, limits=ServerLimits(body_wait_s=1))) as client:
        yield client


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What the server tells, of requests and otherwise."""
    omnigraph = logging.getLogger("omnigraph")
    was = omnigraph.propagate
    omnigraph.propagate = True
    with caplog.at_level(logging.INFO, "omnigraph"):
        yield caplog
    omnigraph.propagate = was


@contextmanager
def connected(client: httpx.Client) -> Iterator[socket.socket]:
    address = urlsplit(str(client.base_url))
    with socket.create_connection((str(address.hostname), address.port or 0), WAIT_S) as connection:
        yield connection


def answers(connection: socket.socket) -> list[tuple[int, dict[str, str], dict[str, object]]]:
    """Return every answer up to the end of a connection: the status, the headers and the body."""
    with connection.makefile("rb") as stream:
        found = []
        while status := stream.readline():
            headers = {}
            while line := stream.readline().strip():
                name, _, value = line.decode().partition(": ")
                headers[name] = value
            body = json.loads(stream.read(int(headers["content-length"])))
            found.append((int(status.split()[1]), headers, body))
        return found


def refused(client: httpx.Client, request: bytes) -> tuple[int, dict[str, str], str]:
    """Return the one answer to some bytes, behind which the connection has ended."""
    with connected(client) as connection:
        connection.sendall(request)
        ((status, headers, body),) = answers(connection)
    ErrorOutput.model_validate(body, strict=True)
    assert headers["content-type"] == "application/json"
    assert headers["connection"].lower() == "close"
    assert body["code"] == "bad_request"
    return status, headers, str(body["error"])


@pytest.mark.case("surfaces", 510)
@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /%b HTTP/1.1\r\n" % (b"a" * TARGET_BYTES_MAX), 414),
        (b"GET /changes?%b HTTP/1.1\r\n" % b"&".join(b"type=T%d" % n for n in range(10_000)), 414),
        (b"GET /healthz?%b HTTP/1.1\r\n" % (b"q" * 1_000_000), 414),
        (GET + b"baggage: %b\r\n\r\n" % (b"b" * HEADER_BYTES_MAX), 431),
        (GET + b"".join(b"x-%d: %b\r\n" % (n, b"v" * 1_000) for n in range(100)), 431),
        (GET + b"x: y\r\n" * HEADERS_MAX, 431),
        (GET + b"n" * 500_000, 431),
        (GET + b"x: " + b"v" * 500_000, 431),
    ],
    ids=["path", "parameters", "query", "header", "headers", "many", "name", "value"],
)
def test_heads_are_bounded(
    head: bytes, status: int, client: httpx.Client, told: pytest.LogCaptureFixture
) -> None:
    found, headers, _ = refused(client, head.replace(b"\r\n", b"\r\nX-Request-Id: mine-1\r\n", 1))

    assert found == status
    (line,) = [record for record in told.records if record.message == "request"]
    request_id = vars(line)["request_id"]
    assert headers["x-request-id"] == request_id
    assert request_id == "mine-1" or status == 414
    assert (vars(line)["status"], vars(line)["route"]) == (status, "unknown")


@pytest.mark.case("surfaces", 510)
def test_heads_within_the_bounds_are_answered(client: httpx.Client) -> None:
    query = "a" * (TARGET_BYTES_MAX - 100)
    headers = {f"x-{number}": "v" * 500 for number in range(100)}

    assert client.get(f"/healthz?{query}", headers=headers).status_code == 200


@pytest.mark.case("surfaces", 511)
@pytest.mark.parametrize(
    "request_",
    [
        SECRET + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + SECRET,
        b"GET " + SECRET + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n" + HOST + b"\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT " + SECRET + b":80 HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\n" + HOST + b"\r\n",
        GET + SECRET + b"\r\n\r\n",
        GET + b"x y: " + SECRET + b"\r\n\r\n",
        GET + b"x: a\x00" + SECRET + b"\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}" + SECRET,
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: -5\r\n\r\n{}" + SECRET,
        POST + b"Transfer-Encoding: chunked\r\n\r\n" + SECRET + b"\r\n{}\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}" + SECRET + b"\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}",
    ],
    ids=lambda request: request[-40:],
)
def test_what_is_not_http_is_answered_and_told(
    request_: bytes, client: httpx.Client, told: pytest.LogCaptureFixture
) -> None:
    status, headers, text = refused(client, request_)

    assert status == 400
    assert text in {"the request is not valid HTTP/1.1", "the body is not valid HTTP/1.1"}
    (line,) = [record for record in told.records if record.message == "request"]
    assert (vars(line)["status"], vars(line)["request_id"]) == (400, headers["x-request-id"])
    assert not [record for record in told.records if record.exc_info or SECRET.decode() in repr(vars(record))]


@pytest.mark.case("surfaces", 512)
@pytest.mark.parametrize(
    ("last", "status"), [(SECRET + b"\r\n\r\n", 400), (GET + b"x: " + b"v" * 200_000, 431)]
)
def test_what_is_refused_behind_other_requests_is_refused_behind_their_answers(
    last: bytes, status: int, client: httpx.Client
) -> None:
    wrong = POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"

    with connected(client) as connection:
        connection.sendall((GET + b"\r\n") * 3 + last)
        found = [answer[0] for answer in answers(connection)]
    with connected(client) as connection:
        connection.sendall((GET + b"\r\n") * 3 + wrong)
        broken = [answer[0] for answer in answers(connection)]

    assert found == [200, 200, 200, status]
    assert broken == [200, 200, 200, 400]


@pytest.mark.case("surfaces", 513)
def test_what_does_not_arrive_is_not_waited_for(client: httpx.Client) -> None:
    chunk = POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"
    wanted: list[tuple[bytes, list[tuple[int, str]]]] = [
        (b"", []),
        (GET + b"x: ", [(408, "head")]),
        (b"\r\n", [(408, "head")]),
        (GET + b"\r\n" + GET, [(200, ""), (408, "head")]),
        (chunk, [(408, "body")]),
    ]
    with ExitStack() as held:
        connections = [held.enter_context(connected(client)) for _ in wanted]
        for connection, (sent, _) in zip(connections, wanted, strict=True):
            connection.sendall(sent)
        for connection, (_, expected) in zip(connections, wanted, strict=True):
            found = [(answer[0], str(answer[2].get("error", ""))) for answer in answers(connection)]

            assert [status for status, _ in found] == [status for status, _ in expected]
            for (_, text), (_, what) in zip(found, expected, strict=True):
                assert text.startswith(f"the {what} did not arrive within 1" if what else "")


@pytest.mark.case("surfaces", 514)
def test_an_offer_of_another_protocol_is_passed_over(client: httpx.Client) -> None:
    offer = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"

    with connected(client) as connection:
        connection.sendall(GET + offer + b"\r\n" + GET + b"\r\n")
        ((status, headers, _),) = answers(connection)

    assert (status, headers["connection"]) == (200, "close")


@pytest.mark.case("surfaces", 518)
def test_headers_do_not_reach_the_log(client: httpx.Client, told: pytest.LogCaptureFixture) -> None:
    for name in ("baggage", "traceparent", "tracestate", "x-request-id", "forwarded", "user-agent"):
        for value in (SECRET.decode() * 3_000, f"{SECRET.decode()}=1,;;=,%zz", f"00-{SECRET.decode()}"):
            assert client.get("/snapshot", headers={name: value}).status_code == 200

    assert len([record for record in told.records if record.message == "request"]) == 18
    shown = [repr({**vars(record), "request_id": ""}) for record in told.records]
    assert not [text for text in shown if SECRET.decode() in text]


@pytest.mark.case("surfaces", 518)
def test_a_head_is_answered_on_every_route(client: httpx.Client) -> None:
    paths = {route.path for route in graph_routes()} | {"/healthz", "/graphs", "/metrics", "/openapi.json"}
    for path in sorted(paths):
        answer = client.head(path.replace("{", "").replace("}", ""))

        assert answer.content == b""
        assert answer.status_code in {400, 404, 405}, (path, answer.status_code)


@pytest.mark.case("surfaces", 518)
def test_parameters_by_the_thousands_are_400(client: httpx.Client) -> None:
    many = "&".join(f"p{number}" for number in range(5_000))
    answer = client.get(f"/diff?from=main&to=main&{many}")

    error_of(answer, 400, "bad_request")


@pytest.mark.case("surfaces", 511)
def test_a_stranger_is_told_no_more(tmp_path: Path) -> None:
    with serving_app(settings_for(place_atlas(tmp_path), tokens=TOKENS)) as client:
        for request in (SECRET + b"\r\n\r\n", POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"):
            with connected(client) as connection:
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
                ((status, _, body),) = answers(connection)
            assert status in {400, 401}
            assert body["code"] in {"bad_request", "unauthorized"}


@pytest.mark.case("surfaces", 710)
def test_trailers_are_bounded(client: httpx.Client) -> None:
    begun = POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0"

    for endless in (b"\r\nx: " + b"z" * 500_000, b"\r\n" + b"n" * 500_000, b";" + b"e" * 500_000):
        status, _, text = refused(client, begun + endless)

        assert (status, text) == (400, "the body is not valid HTTP/1.1")


@pytest.mark.case("surfaces", 711)
def test_a_trailer_is_no_header(tmp_path: Path) -> None:
    body = b'{"query":"query q() { match { $p: Person } return { count($p) as n } }"}'
    head = POST + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(body), body)
    token = next(iter(TOKENS.values())).encode()
    trailer = b"0\r\nAuthorization: Bearer %b\r\nX-Request-Id: behind\r\nEmpty:\r\n\r\n" % token
    end = GET.replace(HOST, HOST + b"Connection: close\r\n") + b"\r\n"
    request = head + trailer + end
    first = len(head) - 2

    with serving_app(settings_for(place_atlas(tmp_path), tokens=TOKENS)) as client:
        for cut in (len(request), *range(first, len(head) + len(trailer) + 1)):
            with connected(client) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.sendall(request[:cut])
                connection.sendall(request[cut:])
                found = answers(connection)

            assert [status for status, _, _ in found] == [401, 200], cut
            assert "behind" not in {headers["x-request-id"] for _, headers, _ in found}


@pytest.mark.case("surfaces", 712)
@pytest.mark.parametrize("frame", [b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n"])
def test_a_body_behind_an_offer_is_not_left_out(frame: bytes, client: httpx.Client) -> None:
    status, _, text = refused(client, POST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n" + frame)

    assert status == 400
    assert "leave Upgrade out" in text


@pytest.mark.case("surfaces", 713)
def test_the_rest_of_a_refused_body_is_not_waited_for(client: httpx.Client) -> None:
    with connected(client) as connection:
        connection.sendall(POST + b"Content-Length: 20000000\r\n\r\n{")
        with connection.makefile("rb") as stream:
            assert stream.readline().split()[1] == b"413"
            connection.sendall(b"{")  # behind the answer: the connection is not idle
            assert stream.read().endswith(b"}")


@pytest.mark.case("surfaces", 714)
@pytest.mark.parametrize(
    "request_",
    [
        b"GET /healthz\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        GET + HOST + b"\r\n",
    ],
)
def test_versions_and_hosts_are_checked(request_: bytes, client: httpx.Client) -> None:
    status, _, text = refused(client, request_)

    assert (status, text) == (400, "the request is not valid HTTP/1.1")
    with connected(client) as connection:
        connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert [answer[0] for answer in answers(connection)] == [200]


@pytest.mark.case("surfaces", 716)
def test_uvicorn_does_not_tell_of_requests() -> None:
    code = (
        "import logging; from omnigraph.server.log import begin_log; begin_log();"
        "log = logging.getLogger('uvicorn.error'); log.warning('noise'); log.error('trouble')"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr

    assert [json.loads(line)["message"] for line in told.splitlines()] == ["trouble"]
