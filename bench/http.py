"""A server against the embedded call: point queries, one-row writes of many clients, an export, bad input.

Embedded calls and requests take turns, so that a busy moment of the machine meets both. Clients are
connections that are kept, of two other processes.
"""

import sys
from pathlib import Path

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has an `http` of its own

import argparse
import json
import multiprocessing
import os
import re
import selectors
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter, perf_counter_ns

import pyarrow as pa

import omnigraph
from bench.support.hostile import ROUNDS, slowest
from omnigraph.graph.graph import Graph

SCHEMA = "node Item { key: String @key  value: I64  label: String? }"
POINT = "query q($k: String) { match { $i: Item { key: $k } } return { $i.value, $i.label } }"
INSERT = "query m($k: String, $v: I64) { insert Item { key: $k, value: $v } }"
PARTS = ("overhead", "rate", "writes", "export", "hostile")
CLIENTS = 16  # as many as may be under way for one actor by default, so that none is refused
OVERHEAD_BAR_MS, RATE_BAR, SPEEDUP_BAR, MEMORY_BAR_MB = 1.5, 2_000, 8, 100
CLIENT_PROCESSES = 2
HOSTILE_SHOWN = 5
WARM_S = 4.0  # until every worker has what it derives from a table of a million rows
LISTENING = "OMNIGRAPH_LISTEN_ADDR="
_HEAD_BYTES, _LAST_CHUNK = 1_024, b"\r\n0\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def main() -> None:
    """Make a graph, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the table that is exported")
    parser.add_argument("--queries", type=int, default=2_000, help="point queries of one caller")
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement of rates")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="for point queries at once")
    parser.add_argument("--only", choices=PARTS, action="append", help="measure this; may be repeated")
    parser.add_argument(
        "--graph", type=Path, help="measure this graph of an earlier run; made if it is missing"
    )
    options = parser.parse_args()
    parts = options.only or PARTS
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        place = options.graph or Path(folder, "items.omni")
        if not place.exists():
            build(place, options.rows)
        if "overhead" in parts:
            print_overhead(place, options.queries)
        if "rate" in parts:
            print_rate(place, options.workers, options.seconds)
        if "writes" in parts:
            print_writes(place, Path(folder, "written.omni"), options.seconds)
        if "export" in parts:
            print_export(place)
        if "hostile" in parts:
            print_hostile(place)


def build(place: Path, rows: int) -> None:
    """Make a graph with one table."""
    with omnigraph.init(place, SCHEMA) as graph:
        keys = pa.array([f"k{number:08}" for number in range(rows)])
        values = pa.array(range(rows), pa.int64())
        labels = pa.array([f"label of {number}" for number in range(rows)])
        graph.load({"Item": pa.table({"key": keys, "value": values, "label": labels})}, "append")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that listens."""

    address: tuple[str, int]
    process: subprocess.Popen[bytes]


@contextmanager
def serving(place: Path, workers: int = 1) -> Iterator[Server]:
    """Start a server, and stop it at the end."""
    program = Path(sys.executable).with_name("omnigraph")
    command = [str(program), "server", str(place), "--unauthenticated", "--bind", "127.0.0.1:0"]
    environment = {**os.environ, "OMNIGRAPH_LOG": "warning"}  # limits are those that everybody has
    process = subprocess.Popen(
        command if workers == 1 else [*command, "--workers", str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline().decode().strip()
        host, _, port = line.removeprefix(LISTENING).rpartition(":")
        yield Server((host, int(port)), process)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


class Connection:
    """One connection that is kept; the least that a client can cost, so that the server's cost is seen."""

    def __init__(self, address: tuple[str, int]) -> None:
        """Connect."""
        self._socket = socket.create_connection(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def post(self, path: str, body: dict[str, object]) -> bytes:
        """Send a request and return the whole answer, which must be a success."""
        self._socket.sendall(_request(path, body))
        status = self._file.readline()
        length = 0
        while (line := self._file.readline()) not in {b"\r\n", b""}:
            if found := _LENGTH.match(line):
                length = int(found[1])
        answer = self._file.read(length)
        assert b" 200 " in status, (status, answer)
        return answer

    def close(self) -> None:
        """Disconnect."""
        self._file.close()
        self._socket.close()


def print_overhead(place: Path, count: int) -> None:
    """Compare a point query in process with one over HTTP, in turns."""
    with omnigraph.open(place, mode="ro") as graph, serving(place) as server:
        connection = Connection(server.address)
        embedded, served = list[float](), list[float]()
        for number in range(count + 50):
            key = f"k{number * 37 % 100_000:08}"
            embedded.append(_timed(lambda key=key: _ask(graph, key)))
            served.append(_timed(lambda key=key: connection.post("/query", _question(key))))
        connection.close()
    inside, outside = median(embedded[50:]), median(served[50:])
    overhead = outside - inside
    print(f"point query: embedded {inside:.2f} ms, served {outside:.2f} ms")
    print(f"  overhead {overhead:.2f} ms (bar {OVERHEAD_BAR_MS} ms): {_said(overhead <= OVERHEAD_BAR_MS)}")


def print_rate(place: Path, workers: int, seconds: float) -> None:
    """Count the point queries that many clients get answered, and what each costs the server."""
    with serving(place, workers) as server:
        _together(_asking, server.address, CLIENTS, WARM_S)
        before = _processor_ms(server.process.pid)
        rate = _together(_asking, server.address, CLIENTS, seconds)
        cost = (_processor_ms(server.process.pid) - before) / (rate * seconds)
    print(
        f"point queries of {CLIENTS} clients, {workers} workers: {rate:.0f}/s, {cost:.2f} ms of a core each"
    )
    print(f"  {rate / RATE_BAR:.2f}x of {RATE_BAR}/s: {_said(rate >= RATE_BAR)}")


def print_writes(place: Path, copy: Path, seconds: float) -> None:
    """Compare the one-row mutations that one client and many get acknowledged, with full durability."""
    shutil.copytree(place, copy)
    with serving(copy) as server:
        _together(_writing, server.address, 1, 2.0)
        alone = _together(_writing, server.address, 1, seconds)
        many = _together(_writing, server.address, CLIENTS, seconds)
    shutil.rmtree(copy)
    print(f"one-row mutations: one client {alone:.0f}/s, {CLIENTS} clients {many:.0f}/s, none refused")
    print(f"  {many / alone:.2f}x (bar {SPEEDUP_BAR}x): {_said(many >= SPEEDUP_BAR * alone)}")


def print_export(place: Path) -> None:
    """Read a whole export, and look at the memory of the server while it is sent."""
    with serving(place) as server:
        warm = Connection(server.address)
        warm.post("/query", _question("k00000001"))
        warm.close()
        before, most, size = _memory_mb(server.process.pid), 0.0, 0
        head, tail = b"", b""
        with socket.create_connection(server.address) as stream:
            request = "POST /export HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
            stream.sendall(f"{request}Connection: close\r\nContent-Length: 2\r\n\r\n{{}}".encode())
            started = perf_counter()
            while piece := stream.recv(1 << 20):
                size += len(piece)
                head, tail = head or piece[:_HEAD_BYTES], (tail + piece)[-len(_LAST_CHUNK) :]
                most = max(most, _memory_mb(server.process.pid))
        took = perf_counter() - started
    assert head.startswith(b"HTTP/1.1 200 "), head
    assert b"transfer-encoding: chunked" in head.lower(), head
    assert tail == _LAST_CHUNK, "the export was cut off"
    growth = most - before
    print(
        f"whole export of {size / 1e6:.0f} MB in {took:.1f} s; "
        f"memory {before:.0f} MB before, {most:.0f} MB at most"
    )
    print(f"  growth {growth:.0f} MB (bar {MEMORY_BAR_MB} MB): {_said(growth <= MEMORY_BAR_MB)}")


def print_hostile(place: Path) -> None:
    """Say which of the requests that are wrong on purpose takes longest to be refused."""
    with serving(place) as server:
        took = sorted(slowest(server.address), reverse=True)
    print(f"{len(took)} hostile requests, the slowest of up to {ROUNDS} times each:")
    for milliseconds, status, what in took[:HOSTILE_SHOWN]:
        print(f"  {milliseconds:8.1f} ms  {status}  {what}")


def _ask(graph: Graph, key: str) -> None:
    graph.query(POINT, params={"k": key}).to_json()


def _request(path: str, body: dict[str, object]) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def _question(key: str) -> dict[str, object]:
    return {"query": POINT, "params": {"k": key}}


def _timed(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return (perf_counter() - started) * 1000


def _asking(client: int, number: int) -> bytes:
    return _request("/query", _question(f"k{(client * 7_919 + number * 37) % 100_000:08}"))


def _writing(client: int, number: int) -> bytes:
    key = f"new {os.getpid()} {perf_counter_ns()} {client} {number}"
    return _request("/mutate", {"query": INSERT, "params": {"k": key, "v": number}})


def _together(
    make: Callable[[int, int], bytes], address: tuple[str, int], clients: int, seconds: float
) -> float:
    """Return how many requests a second some clients get answered together.

    They are connections of a few processes: a process for each would take from the server what it measures.
    """
    processes = min(clients, CLIENT_PROCESSES)
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        jobs = [(make, address, range(first, clients, processes), seconds) for first in range(processes)]
        return sum(pool.starmap(_clients, jobs, chunksize=1))


def _clients(
    make: Callable[[int, int], bytes], address: tuple[str, int], clients: Sequence[int], seconds: float
) -> float:
    """Be some clients, each of which sends its next request when the last is answered; return answers/s."""
    with ExitStack() as held, selectors.DefaultSelector() as ready:
        for client in clients:
            connected = held.enter_context(socket.create_connection(address))
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ready.register(connected, selectors.EVENT_READ, _Client(connected, client))
        waiting = [key.data for key in ready.get_map().values()]
        for client in waiting:
            client.connection.sendall(make(client.number, 0))
        answered, started = 0, perf_counter()
        while perf_counter() - started < seconds:
            for key, _ in ready.select(seconds):
                if key.data.has_answer():
                    answered += 1
                    key.data.connection.sendall(make(key.data.number, answered))
        rate = answered / (perf_counter() - started)
        under_way = {key.data.number for key in ready.get_map().values()}
        while under_way:  # a server counts them against those that come next
            under_way -= {key.data.number for key, _ in ready.select(seconds) if key.data.has_answer()}
        return rate


@dataclass(slots=True)
class _Client:
    connection: socket.socket
    number: int
    received: bytes = b""

    def has_answer(self) -> bool:
        """Take what has come, and say whether a whole answer is there; it must be a success."""
        piece = self.connection.recv(1 << 16)
        assert piece, "the server hung up"
        self.received += piece
        head, end, body = self.received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not end or length is None or len(body) < int(length[1]):
            return False
        assert head.startswith(b"HTTP/1.1 200 "), self.received
        self.received = b""
        return True


def _memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def _processor_ms(pid: int) -> float:
    """Return the processor time of a process and of those that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    spent = 0
    for place in (str(pid), *children):
        fields = Path(f"/proc/{place}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        spent += int(fields[11]) + int(fields[12])
    return spent * 1000 / os.sysconf("SC_CLK_TCK")


def _said(is_met: bool) -> str:
    return "ok" if is_met else "MISSED"


if __name__ == "__main__":
    main()
