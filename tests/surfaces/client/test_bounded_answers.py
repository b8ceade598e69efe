"""Answers without an end, or that unpack to far more than they are: given up, in bounded memory."""

import gzip
import itertools
import socket
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import omnigraph
from omnigraph.client import http
from omnigraph.client.http import BrokenAnswer, HttpReply
from omnigraph.wire.responses import BranchListOutput
from tests.support.scripted import Answer, serving
from tests.support.seam import patched

MIB = 1024 * 1024
ADD = "query q() { delete Craft where code = 'x' }"


def packed(times: int) -> bytes:
    content = b'{"branches": ["' + b"a" * (64 * MIB)
    for _ in range(times):
        content = gzip.compress(content, 1)
    return content


@pytest.mark.case("surfaces", 787)
@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize("encoding", ["gzip, gzip", "GZIP,gzip", "deflate", "br"])
def test_only_one_layer_of_gzip_is_unpacked(status: int, encoding: str) -> None:
    content = zlib.compress(b"{}") if encoding == "deflate" else packed(2)
    answer: Answer = (status, content, {"Content-Encoding": encoding})
    with serving(answer, answer) as script, script.remote() as graph:
        tracemalloc.start()
        try:
            with pytest.raises(omnigraph.TransportError if status == 200 else omnigraph.NotFoundError):
                graph.branches()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak < 16 * MIB


@pytest.mark.case("surfaces", 787)
def test_one_layer_is_unpacked() -> None:
    answer: Answer = (200, gzip.compress(b'{"branches": ["main"]}'), {"Content-Encoding": "gzip"})
    with serving(answer) as script, script.remote() as graph:
        assert graph.branches() == ["main"]


@pytest.mark.case("surfaces", 787)
def test_a_document_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert http.DOCUMENT_BYTES_MAX == 1024 * MIB
    patched(monkeypatch, "omnigraph.client.http.DOCUMENT_BYTES_MAX", 8 * MIB)
    endless = HttpReply({}, itertools.repeat(b"[" * MIB))
    with pytest.raises(BrokenAnswer, match="larger than any of this API"):
        endless.document(BranchListOutput)
    answer: Answer = (200, packed(1), {"Content-Encoding": "gzip"})
    with serving(answer, answer) as script, script.remote() as graph:
        with pytest.raises(omnigraph.TransportError, match="larger than any of this API"):
            graph.branches()
        with pytest.raises(omnigraph.CommitOutcomeUnknown):
            graph.mutate(ADD)


@contextmanager
def endless(status: str, piece: bytes, pause_s: float) -> Iterator[str]:
    """Answer with a body that goes on until the client has gone."""
    stop = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection:
            connection.recv(65_536)
            connection.sendall(f"HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            try:
                while not stop.wait(pause_s):
                    connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
            except OSError:
                return

    def listen() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            answers.append(threading.Thread(target=answer, args=(connection,)))
            answers[-1].start()

    answers: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stop.set()
            listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    for one in answers:
        one.join()


@pytest.mark.case("surfaces", 787)
@pytest.mark.parametrize(("piece", "pause_s"), [(b"x" * MIB, 0.0), (b"x", 0.05)], ids=["fast", "slow"])
def test_an_error_without_an_end_is_given_up(piece: bytes, pause_s: float) -> None:
    with (
        endless("404 Not Found", piece, pause_s) as url,
        omnigraph.connect(url, timeout=30 if pause_s == 0 else 0.3, retries=0) as graph,
        pytest.raises(omnigraph.NotFoundError),
    ):
        graph.branches()
