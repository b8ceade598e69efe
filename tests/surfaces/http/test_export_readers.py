"""Exports over real sockets whose readers leave or stall: neither costs the server or the others anything."""

import gc
import socket
import struct
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from omnigraph.graph.opening import open as open_graph
from omnigraph.server.streams import PROCESS_BYTES, RESOURCE, STREAM_BYTES
from tests.support.atlas import craft, lines, place_atlas
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import WAIT_S, error_of

SHARES = PROCESS_BYTES // STREAM_BYTES
ROWS, NAME_BYTES = 1_000, 16_384  # more than both ends of a connection hold between them
EXPORT = b"POST /export HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
TRIES_MAX = 500  # a quarter of a second each: a server on a busy machine notices much sooner


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server of a graph whose export no connection holds."""
    graph = place_atlas(tmp_path_factory.mktemp("readers"))
    with open_graph(graph) as opened:
        rows = (craft(f"C-{number}", name="x" * NAME_BYTES) for number in range(ROWS))
        opened.load(lines(*rows).encode(), "append", index=False)
    with serving_app(settings_for(graph)) as client:
        yield client


def reading(client: httpx.Client) -> socket.socket:
    """Return a connection on which an export has begun; its reader takes the first bytes and no more."""
    address = urlsplit(str(client.base_url))
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.settimeout(WAIT_S)
    connection.connect((str(address.hostname), address.port or 0))
    connection.sendall(EXPORT)
    assert connection.recv(1_024).startswith(b"HTTP/1.1 200 ")
    return connection


def leave(connection: socket.socket) -> None:
    """End a connection as a process that dies does: at once, with what was sent unread."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def whole(client: httpx.Client) -> list[str]:
    """Return the lines of an export, as soon as there is a share for it."""
    for _ in range(TRIES_MAX):
        answer = client.post("/export", json={})
        if answer.status_code == 200:
            return answer.text.splitlines()
        error_of(answer, 413, "bad_request")
    raise AssertionError("no share came back")


@pytest.mark.case("surfaces", 139)
def test_readers_that_leave_give_their_shares_back(client: httpx.Client) -> None:
    before = whole(client)

    for _ in range(2):
        with ExitStack() as leaving:
            for _ in range(SHARES):
                leaving.callback(leave, reading(client))
        assert whole(client) == before

    assert len(before) == ROWS + 3 + 2 + 3


@pytest.mark.case("surfaces", 139)
def test_readers_that_stall_hold_up_nobody_until_there_are_too_many(client: httpx.Client) -> None:
    with ExitStack() as stalled:
        for _ in range(SHARES - 1):
            stalled.callback(leave, reading(client))
        assert len(whole(client)) == ROWS + 3 + 2 + 3
        stalled.callback(leave, reading(client))

        refused = client.post("/export", json={})
        other = client.get("/snapshot")

        error_of(refused, 413, "bad_request")
        assert refused.json()["resource_limit"]["resource"] == RESOURCE
        assert other.status_code == 200
    assert len(whole(client)) == ROWS + 3 + 2 + 3


@pytest.mark.case("surfaces", 679)
def test_files_of_an_export_are_gone_soon_after_its_reader(
    client: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gc.disable()  # which would remove them, some day
    try:
        with ExitStack() as leaving:
            for _ in range(SHARES):
                leaving.callback(leave, reading(client))
            assert list(tmp_path.glob("omnigraph-export-*"))
        for _ in range(TRIES_MAX):
            if not list(tmp_path.iterdir()):
                break
            client.get("/snapshot").raise_for_status()
    finally:
        gc.enable()

    assert list(tmp_path.iterdir()) == []
