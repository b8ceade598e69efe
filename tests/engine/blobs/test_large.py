"""Values of 200 MB: the same bytes by every way, and readers whose memory does not grow with them."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import file_digest, sha256
from itertools import product
from pathlib import Path
from random import Random

import pandas as pd
import polars as pl
import pytest

import omnigraph
from omnigraph.bulk.export.files import ExportFormat
from omnigraph.graph.graph import Graph
from tests.engine.blobs.steps import SCHEMA, digest, encoded, table
from tests.support.engine import copy_of, new_graph, reopen
from tests.support.http_server import running_server
from tests.support.queries import mutation

pytestmark = pytest.mark.slow

LARGE = 200_000_000
GROWTH_KB_MAX = 64_000


@pytest.fixture(scope="module")
def value() -> bytes:
    return Random(200).randbytes(LARGE)


@pytest.fixture(scope="module")
def root(value: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with the value in a table of others."""
    place = tmp_path_factory.mktemp("large") / "graph"
    with new_graph(place, SCHEMA) as graph:
        graph.load_tables({"Doc": table({"large": value, "small": b"small", "null": None})}, "append")
    return place


def stored(graph: Graph, name: str = "large") -> str:
    """Return the digest of a value, read in pieces."""
    blob = graph.blob("node", "Doc", name, "body")
    found = sha256()
    for piece in blob.stream():
        found.update(piece)
    return f"{blob.size}:{found.hexdigest()}"


@pytest.mark.case("surfaces", 583)
def test_a_value_of_200_mb_is_the_same_after_everything(root: Path, value: bytes, tmp_path: Path) -> None:
    expected, other = digest(value), value[::-1]
    with reopen(copy_of(root, tmp_path / "graph")) as graph:
        assert stored(graph) == expected
        graph.create_branch("left")
        graph.mutate(mutation('update Doc set { note: "n" } where name = "large"'), branch="left")
        graph.mutate(mutation('update Doc set { note: "n" } where name = "small"'))
        graph.merge("left")
        assert stored(graph) == expected
        change = mutation('update Doc set { body: $b } where name = "large"', "$b: Blob")
        graph.mutate(change, branch="left", params={"b": other})
        graph.merge("left")
        assert stored(graph) == digest(other)
        before = graph.blob("node", "Doc", "large", "body").etag
        graph.optimize()
        assert graph.blob("node", "Doc", "large", "body").etag != before, "it was rewritten"
        assert stored(graph) == digest(other)
        (tmp_path / "out").mkdir()
        graph.export(types=["Doc"]).to_folder(tmp_path / "out", ExportFormat.PARQUET)
        omnigraph.clone(graph.uri, tmp_path / "clone")
    with reopen(tmp_path / "clone") as clone:
        assert stored(clone) == digest(other)
    with new_graph(tmp_path / "again", SCHEMA) as again:
        again.load([str(tmp_path / "out")], "overwrite", index=False)
        assert stored(again) == digest(other)


def _mutated(graph: Graph, value: bytes) -> None:
    insert = mutation('insert Doc { name: "large", body: $b }', "$b: Blob")
    graph.mutate(insert, params={"b": value})


def _mutated_by_text(graph: Graph, value: bytes) -> None:
    insert = mutation('insert Doc { name: "large", body: $b }', "$b: Blob")
    graph.mutate(insert, params={"b": encoded(value)})


def _pandas(graph: Graph, value: bytes) -> None:
    graph.load_tables({"Doc": pd.DataFrame({"name": ["large"], "body": [value]})}, "append", index=False)


def _polars(graph: Graph, value: bytes) -> None:
    frame = pl.DataFrame({"name": ["large"], "body": pl.Series([value], dtype=pl.Binary)})
    graph.load_tables({"Doc": frame}, "append", index=False)


@pytest.mark.case("surfaces", 583)
@pytest.mark.parametrize("fill", [_mutated, _mutated_by_text, _pandas, _polars])
def test_a_value_of_200_mb_comes_in_by_every_way(
    fill: Callable[[Graph, bytes], None], value: bytes, tmp_path: Path
) -> None:
    with new_graph(tmp_path / "graph", SCHEMA) as graph:
        fill(graph, value)

        assert stored(graph) == digest(value)


@pytest.mark.case("surfaces", 583)
def test_a_value_of_200_mb_makes_the_round_trip_as_text(
    root: Path, value: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reopen(root) as graph:
        graph.export(types=["Doc"]).to_file(tmp_path / "all.jsonl")
    monkeypatch.setenv("OMNIGRAPH_LOAD_LINE_MAX_BYTES", str(2 * LARGE))

    with new_graph(tmp_path / "again", SCHEMA) as again:
        again.load([str(tmp_path / "all.jsonl")], "overwrite", index=False)

        assert stored(again) == digest(value)


@pytest.mark.case("surfaces", 587)
def test_a_server_serves_200_mb_in_the_memory_of_some_pieces(
    root: Path, value: bytes, tmp_path: Path
) -> None:
    cell = {"entity": "node", "type": "Doc", "id": "large", "property": "body"}
    with running_server(root, log=tmp_path / "log") as server, server.client() as client:
        assert client.get("/blob", params={**cell, "id": "small"}).content == b"small"
        before = _kilobytes(server.process.pid, "VmHWM")

        with client.stream("GET", "/blob", params=cell) as stalled:
            next(stalled.iter_raw(1))  # and no more of it while others read
            for start in range(0, LARGE, LARGE // 4):
                span = {"Range": f"bytes={start}-{start + LARGE // 4 - 1}"}
                answer = client.get("/blob", params=cell, headers=span)
                assert answer.status_code == 206
                assert sha256(answer.content).digest() == sha256(value[start : start + LARGE // 4]).digest()
        with client.stream("GET", "/blob", params=cell) as whole:
            found = sha256()
            for piece in whole.iter_raw():
                found.update(piece)

        assert found.digest() == sha256(value).digest()
        assert client.head("/blob", params=cell).headers["content-length"] == str(LARGE)
        assert _kilobytes(server.process.pid, "VmHWM") - before < GROWTH_KB_MAX


# A process that reads a small value, which imports what it needs, and then the large one. It prints the
# digests of what it has streamed, and by how many kilobytes its memory has grown at most.
READER = """
import re, sys
from hashlib import sha256
from pathlib import Path

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

way, address, out = sys.argv[1:]

if way == "program":
    from omnigraph.cli.main import main

    def read(name):
        where = "--server" if address.startswith("http") else "--uri"
        try:
            main(["blob", "get", "node", "Doc", name, "body", where, address, "--out", out])
        except SystemExit as ended:
            assert not ended.code, ended.code
else:
    import omnigraph

    graph = (omnigraph.connect if address.startswith("http") else omnigraph.open)(address)

    def read(name):
        blob, found = graph.blob("node", "Doc", name, "body"), sha256()
        for piece in blob.stream():
            found.update(piece)
        print("streamed", name, found.hexdigest(), peak())
        blob.save(out)

read("small")
before = peak()
read("large")
print("grown", peak() - before)
"""


@pytest.mark.case("surfaces", 862)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell VmHWM")
def test_readers_read_200_mb_in_the_memory_of_some_pieces(root: Path, value: bytes, tmp_path: Path) -> None:
    out, expected = tmp_path / "out", sha256(value).hexdigest()
    with running_server(root, log=tmp_path / "log") as server:
        for way, address in product(("methods", "program"), (str(root), server.url)):
            ended = subprocess.run(
                [sys.executable, "-c", READER, way, address, str(out)],
                capture_output=True,
                text=True,
                check=False,
            )

            assert ended.returncode == 0, ended.stderr
            *streamed, grown = (line.split() for line in ended.stdout.splitlines())
            assert int(grown[1]) < GROWTH_KB_MAX, (way, address, ended.stdout)
            digests = [found for _, name, found, _ in streamed if name == "large"]
            assert digests == ([expected] if way == "methods" else [])
            with out.open("rb") as saved:
                assert file_digest(saved, "sha256").hexdigest() == expected
            out.unlink()


def _kilobytes(process: int, name: str) -> int:
    """Return a figure of a process's memory, with that of the processes it started."""
    return sum(
        int(line.split()[1])
        for each in (process, *_children(process))
        for line in Path(f"/proc/{each}/status").read_text(encoding="utf-8").splitlines()
        if line.startswith(f"{name}:")
    )


def _children(process: int) -> Iterator[int]:
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text(encoding="utf-8").split():
            yield int(child)
            yield from _children(int(child))
