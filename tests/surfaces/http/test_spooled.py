"""Bodies of loads that go to a file: the process does not grow with them, and no file is left."""

import io
import itertools
import re
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from omnigraph.core.cancellation import woken
from omnigraph.core.failpoint import failpoint
from omnigraph.server.serving import Serving
from omnigraph.server.settings import ServerLimits
from omnigraph.validate.records import LINES_AT_ONCE
from tests.support.atlas import craft, lines, mission, place_atlas, rows
from tests.support.http_app import listening, settings_for
from tests.support.http_server import WAIT_S, error_of, running_server
from tests.support.seam import patched

LOAD = "/load/ndjson?mode=merge&index=false"
NDJSON = {"Content-Type": "application/x-ndjson"}
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
MIB = 1024 * 1024
LIMIT = 40 * MIB


def padded(size: int, first: int = 0) -> bytes:
    """Return records of about so many bytes together, nearly all of them blanks."""
    line = lines(mission("{}")).rstrip("\n").replace("{}", "%d") + " " * (64 * 1024) + "\n"
    return b"".join((line % number).encode() for number in range(first, first + size // len(line) + 1))


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A graph of this test's own; what it is copied from is made where no test looks."""
    return place_atlas(tmp_path)


@pytest.fixture
def folder(graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    assert graph.exists()
    made = tmp_path / "temporary"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


@pytest.fixture
def client(graph: Path, folder: Path) -> Iterator[httpx.Client]:
    """A server whose bodies are held in the folder, and which has none of them when it ends."""
    serving = Serving.begin(settings_for(graph, limits=ServerLimits(load_body_bytes=LIMIT)))
    try:
        with listening(serving) as url, httpx.Client(base_url=url, timeout=WAIT_S) as client:
            yield client
    finally:
        serving.close()
    assert not list(folder.iterdir())


def until_empty(folder: Path) -> None:
    """Wait until no body is held."""
    looks = int(WAIT_S * 100)
    while list(folder.iterdir()) and looks:
        threading.Event().wait(0.01)
        looks -= 1
    assert not list(folder.iterdir())


def connected(client: httpx.Client, head: str) -> socket.socket:
    """Begin a load over a connection of its own."""
    place = client.base_url.host, client.base_url.port or 0
    connection = socket.create_connection(place, WAIT_S)
    text = f"POST {LOAD} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n{head}\r\n\r\n"
    connection.sendall(text.encode())
    return connection


@pytest.mark.case("surfaces", 831)
def test_no_file_is_left_however_a_load_ends(client: httpx.Client, folder: Path) -> None:
    sink, table = io.BytesIO(), pa.table({"title": ["arrow"]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)

    loaded = client.post(LOAD, content=lines(craft("SPOOL-1")), headers=NDJSON)
    until_empty(folder)
    refused = client.post(LOAD, content=b"{", headers=NDJSON)
    until_empty(folder)
    arrow = client.post("/load/arrow?type=Mission&mode=merge", content=sink.getvalue(), headers=ARROW)
    until_empty(folder)
    no_arrow = client.post("/load/arrow?type=Mission&mode=merge", content=b"rows", headers=ARROW)
    until_empty(folder)
    with failpoint("write.post_stage_pre_gate", "raise:once"):
        failed = client.post(LOAD, content=lines(craft("SPOOL-2")), headers=NDJSON)
    until_empty(folder)
    named = client.post(LOAD, content=b"{", headers={**NDJSON, "Omnigraph-Write-Id": "short"})
    until_empty(folder)

    assert (loaded.status_code, arrow.status_code) == (200, 200), loaded.text + arrow.text
    assert "line 1: invalid JSON" in error_of(refused, 400, "bad_request")
    assert "omnigraph-load" not in error_of(no_arrow, 400, "bad_request")
    assert failed.status_code == 500
    assert "Omnigraph-Write-Id" in error_of(named, 400, "bad_request")


@pytest.mark.case("surfaces", 831)
def test_a_sender_that_goes_in_the_middle_leaves_no_file(client: httpx.Client, folder: Path) -> None:
    with connected(client, "Content-Length: 1000000") as connection:
        connection.sendall(b" " * 500_000)
        looks = int(WAIT_S * 100)
        while sum(file.stat().st_size for file in folder.iterdir()) < 400_000 and looks:
            threading.Event().wait(0.01)
            looks -= 1
        assert looks
    until_empty(folder)


@pytest.mark.case("surfaces", 831)
def test_a_caller_that_goes_while_its_load_runs_leaves_no_file(client: httpx.Client, folder: Path) -> None:
    came, opened, body = threading.Event(), threading.Event(), lines(craft("SPOOL-3")).encode()

    def stop() -> None:
        came.set()
        assert opened.wait(WAIT_S)

    with failpoint("write.post_sidecar_pre_commit", call=stop):
        with connected(client, f"Content-Length: {len(body)}") as connection:
            connection.sendall(body)
            assert came.wait(WAIT_S)
        assert len(list(folder.iterdir())) == 1  # the load goes on, and may read it again
        opened.set()
        until_empty(folder)


@pytest.mark.case("surfaces", 334)
@pytest.mark.case("surfaces", 831)
def test_a_caller_that_goes_while_its_lines_are_read_is_not_read_on(
    graph: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, read = 3 * LINES_AT_ONCE, itertools.count(1)
    came = threading.Event()

    def parse(line: bytes) -> object:
        if next(read) == 1:  # the first line is read until the caller is known to have gone
            asked = threading.Event()
            with woken(asked.set):
                came.set()
                assert asked.wait(WAIT_S)
        raise ValueError(line)

    patched(monkeypatch, "omnigraph.validate.records._parse", parse)
    serving = Serving.begin(settings_for(graph, limits=ServerLimits(actor_inflight=1)))
    try:
        with listening(serving) as url, httpx.Client(base_url=url, timeout=WAIT_S) as client:
            with connected(client, f"Content-Length: {2 * count}") as connection:
                connection.sendall(b"x\n" * count)
                assert came.wait(WAIT_S)
            until_empty(folder)
            lines_read = next(read) - 1
            loaded = client.post(LOAD, content=lines(craft("SPOOL-4")), headers=NDJSON)
            until_empty(folder)
    finally:
        serving.close()

    assert lines_read <= LINES_AT_ONCE
    assert loaded.status_code == 200, loaded.text  # the one share there is was given back


@pytest.mark.case("surfaces", 831)
def test_a_body_over_the_limit_leaves_no_file(client: httpx.Client, folder: Path) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(LIMIT // MIB + 2):
            yield b"\n" * MIB

    streamed = client.post(LOAD, content=pieces(), headers=NDJSON)
    until_empty(folder)
    with connected(client, f"Content-Length: {LIMIT + 1}") as connection:
        announced = connection.recv(65_536)

    assert streamed.json()["resource_limit"]["limit"] == LIMIT
    assert streamed.json()["resource_limit"]["actual"] > LIMIT
    assert streamed.status_code == 413
    assert announced.startswith(b"HTTP/1.1 413")
    assert not list(folder.iterdir())


@pytest.mark.slow
@pytest.mark.case("surfaces", 831)
@pytest.mark.case("surfaces", 832)
def test_a_server_does_not_grow_by_the_size_of_a_body(graph: Path, tmp_path: Path) -> None:
    held = tmp_path / "held"
    held.mkdir()
    limit = str(1024 * MIB)
    with (
        running_server(
            graph, log=tmp_path / "log", OMNIGRAPH_LOAD_BODY_LIMIT_BYTES=limit, TMPDIR=str(held)
        ) as server,
        server.client() as client,
    ):

        def peak() -> int:
            status = Path(f"/proc/{server.process.pid}/status")
            if not status.exists():
                pytest.skip("only Linux tells the peak of a process")
            (found,) = re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())
            return int(found) * 1024

        def load(size: int, first: int) -> int:
            answer = client.post(LOAD, content=padded(size, first), headers=NDJSON)
            assert answer.status_code == 200, answer.text
            until_empty(held)
            return int(answer.json()["tables"][0]["rows_loaded"])

        for first in (0, 500):  # whatever it takes to load at all, a few blocks of lines included
            load(9 * MIB, first)
        before = peak()
        count = load(33 * MIB, 1_000)
        grown = peak() - before

    assert count > 33 * 15
    assert grown < 33 * MIB / 2
    assert len(rows(graph, "Mission")) > count


@pytest.mark.case("surfaces", 832)
@pytest.mark.parametrize("path", ["/load", "/ingest"])
def test_a_body_that_is_held_in_memory_stays_bounded(path: str, graph: Path) -> None:
    limits = ServerLimits(load_body_bytes=1024 * MIB)
    serving = Serving.begin(settings_for(graph, limits=limits))
    try:
        with listening(serving) as url, httpx.Client(base_url=url, timeout=WAIT_S) as client:
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            place = client.base_url.host, client.base_url.port or 0
            with socket.create_connection(place, WAIT_S) as connection:
                connection.sendall(f"{head}Content-Length: {256 * MIB + 1}\r\n\r\n".encode())
                answer = connection.recv(65_536)
    finally:
        serving.close()

    assert answer.startswith(b"HTTP/1.1 413")
    assert b"OMNIGRAPH_LOAD_BODY_LIMIT_BYTES" not in answer
