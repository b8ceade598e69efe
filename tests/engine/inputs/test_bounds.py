"""Inputs that would take all memory or all time: refused while they are read, by name, limit and setting."""

import gzip
import json
import os
import resource
import socket
import stat
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.bulk.files import whole_file
from omnigraph.bulk.sources.model import Compression
from omnigraph.bulk.sources.sources import Format, Slice, SourceInput, plan_slices, read_slice
from omnigraph.bulk.sources.text import read_blocks
from omnigraph.core.errors import BadRequest, OmnigraphError, ResourceLimit, ValidationError
from omnigraph.core.limits import LINE_BYTES_MAX
from omnigraph.graph.graph import Graph
from omnigraph.operations.load.inputs import read_inputs
from omnigraph.operations.settings import read_limits
from omnigraph.validate.records import (
    EXPANSION_FLOOR_SETTING,
    EXPANSION_SETTING,
    LINE_BYTES_SETTING,
    ReadLimits,
)
from omnigraph.validate.violations import ViolationLog
from tests.support.in_process import invoke

SCHEMA = """\
node Person {
    name: String @key
    note: String?
}
"""
MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return omnigraph.init(tmp_path_factory.mktemp("bounds") / "graph", SCHEMA, durability="process")


def person(number: int, note: str = "") -> str:
    return json.dumps({"type": "Person", "data": {"name": f"p{number}", "note": note}})


# Long lines


@pytest.mark.case("engine", 402)
def test_a_line_is_bounded_by_default_and_by_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LINE_BYTES_MAX == 64 * MEGABYTE
    assert read_limits().line_bytes_max == LINE_BYTES_MAX
    monkeypatch.setenv(LINE_BYTES_SETTING, "0")
    assert read_limits().line_bytes_max == 0
    monkeypatch.setenv(LINE_BYTES_SETTING, "٣")
    assert read_limits().line_bytes_max == LINE_BYTES_MAX


@pytest.mark.case("engine", 402)
@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".jsonl.gz", ".csv.gz"])
def test_a_long_line_is_refused_by_its_place_and_setting(
    graph: Graph, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LINE_BYTES_SETTING, "1000")
    feed = "x\n"
    rows = [f'"a{n}","{feed * n}"' for n in (1, 2, 900)]
    lines = ["name,note", *rows] if "csv" in suffix else [person(1), person(2), person(3, "x" * 2_000)]
    data = "\n".join(lines).encode()
    path = tmp_path / f"people{suffix}"
    path.write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)

    with pytest.raises(ResourceLimit) as caught:
        graph.load(f"Person={path}" if "csv" in suffix else path, "append")

    line = 7 if "csv" in suffix else 3
    assert caught.value.resource == f"bytes of {path}:{line}"
    assert caught.value.limit == 1_000
    assert LINE_BYTES_SETTING in str(caught.value)


@pytest.mark.parametrize("format_", [Format.NDJSON, Format.CSV])
@pytest.mark.parametrize("end", [None, 40])
def test_no_more_of_a_line_is_read_than_the_limit_and_a_block(
    tmp_path: Path, format_: Format, end: int | None
) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"short\n" * 4 + b"x" * 100_000)
    source = SourceInput(str(path), format_, "long")
    slice_ = Slice(source, 0, 0, end or 100_024, 100_024)

    with pytest.raises(ResourceLimit) as caught:
        list(read_blocks(slice_, block_bytes=64, limits=ReadLimits(line_bytes_max=1_000)))

    assert caught.value.resource == "bytes of long:5"
    assert 1_000 < caught.value.actual <= 2_000 + 64


@pytest.mark.case("engine", 402)
def test_a_header_that_never_ends_is_refused(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b"n" * 100_000)
    source = SourceInput(str(path), Format.CSV, "people.csv", table_key="node:Person")

    with pytest.raises(ResourceLimit, match=r"bytes of people\.csv:1: "):
        plan_slices([source], target_bytes=100, limits=ReadLimits(line_bytes_max=1_000))


@pytest.mark.case("engine", 402)
def test_standard_input_without_lines_is_not_read_to_its_end(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LINE_BYTES_SETTING, "1000")
    endless = BytesIO(b"x\n" + bytes(64 * MEGABYTE))

    with pytest.raises(ResourceLimit, match="bytes of line 2: "):
        list(read_inputs(["-"], graph.catalog, endless))

    assert endless.tell() < 16 * MEGABYTE


def test_a_member_that_stands_twice_among_very_many_is_found_in_time(graph: Graph) -> None:
    members = ",".join(f'"m{number}":0' for number in range(60_000))
    line = f'{{"type":"Person","data":{{{members},"m59999":0}}}}'

    with pytest.raises(ValidationError, match="member 'm59999' appears twice"):
        graph.load(line.encode(), "append")


# Packed files


def bomb(path: Path, bytes_: int) -> None:
    """Write a packed file of lines that holds so many bytes."""
    block = (person(1) + "\n").encode() * 1_000
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(bytes_ // len(block) + 1):
            file.write(block)


@pytest.mark.case("engine", 403)
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_packed_file_may_hold_so_much_of_its_size_and_no_more(
    graph: Graph, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"people.{suffix}.gz"
    row = "p,q\n" if suffix == "csv" else person(1) + "\n"
    path.write_bytes(
        gzip.compress(("name,note\n" if suffix == "csv" else "").encode() + row.encode() * 100_000)
    )
    size = path.stat().st_size
    name = f"Person={path}" if suffix == "csv" else str(path)
    monkeypatch.setenv(EXPANSION_FLOOR_SETTING, "1000")
    monkeypatch.setenv(EXPANSION_SETTING, "10")

    with pytest.raises(ResourceLimit) as caught:
        graph.load(name, "merge", dry_run=True)

    assert caught.value.resource == f"bytes that {path} unpacks to"
    assert caught.value.limit == 10 * size
    assert EXPANSION_SETTING in str(caught.value)
    assert EXPANSION_FLOOR_SETTING in str(caught.value)


@pytest.mark.case("engine", 403)
def test_a_small_packed_file_may_hold_what_the_floor_says() -> None:
    limits = ReadLimits(expansion_max=100, expansion_floor=1_000)

    assert limits.unpacked_max(1) == 1_000
    assert limits.unpacked_max(11) == 1_100
    assert ReadLimits(expansion_floor=1_000).unpacked_max(1) == 0
    assert (read_limits().expansion_max, read_limits().expansion_floor) == (100, 256 * MEGABYTE)


LOADER = """\
import resource, sys
from omnigraph.core.errors import ResourceLimit
from omnigraph.graph.opening import open as open_graph

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    open_graph(sys.argv[1], durability="process").load(sys.argv[2], "merge", engine="local", dry_run=True)
except ResourceLimit as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.case("engine", 403)
@pytest.mark.slow
def test_a_bomb_costs_no_more_than_its_bound(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    bomb(path, 1_200 * MEGABYTE)
    assert path.stat().st_size < 8 * MEGABYTE

    told = subprocess.run(
        [sys.executable, "-c", LOADER, graph.uri, str(path)], capture_output=True, text=True, check=True
    )

    assert int(told.stdout) < 900 * 1024  # KiB; all of it takes more than three million


@pytest.mark.case("engine", 403)
@pytest.mark.parametrize("packing", ["zstd", "lz4"])
@pytest.mark.parametrize("is_stream", [False, True])
def test_packed_buffers_of_arrow_are_bounded_before_they_are_unpacked(
    graph: Graph,
    tmp_path: Path,
    packing: Literal["lz4", "zstd"],
    is_stream: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "people.arrow"
    table = pa.table({"name": [f"p{n}" for n in range(10)], "note": ["x" * 100_000] * 10})
    make = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    with make(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=packing)) as writer:
        writer.write_table(table, max_chunksize=5)
    graph.load(f"Person={path}", "merge", dry_run=True)
    monkeypatch.setenv(EXPANSION_FLOOR_SETTING, "1000")
    monkeypatch.setenv(EXPANSION_SETTING, "10")

    with pytest.raises(ResourceLimit) as caught:
        graph.load(f"Person={path}", "merge", dry_run=True)

    assert caught.value.resource == f"bytes that {path} unpacks to"
    assert caught.value.actual >= 500_000
    refused_unread(SourceInput(str(path), Format.ARROW, "people.arrow", table_key="node:Person"))


def refused_unread(source: SourceInput) -> None:
    """Assert that a file is refused where its rows are only counted."""
    limits = ReadLimits(expansion_max=10, expansion_floor=1_000)
    with pytest.raises(ResourceLimit):
        plan_slices([source], target_bytes=MEGABYTE, limits=limits)


@pytest.mark.case("engine", 403)
def test_packed_pages_of_parquet_are_bounded_before_they_are_unpacked(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "people.parquet"
    table = pa.table({"name": [f"p{n}" for n in range(10)], "note": ["x" * 100_000] * 10})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    monkeypatch.setenv(EXPANSION_FLOOR_SETTING, "1000")
    monkeypatch.setenv(EXPANSION_SETTING, "10")

    with pytest.raises(ResourceLimit) as caught:
        graph.load(f"Person={path}", "merge", dry_run=True)

    assert caught.value.resource == f"bytes that {path} unpacks to"
    refused_unread(SourceInput(str(path), Format.PARQUET, "people.parquet", table_key="node:Person"))


# Many columns


@pytest.mark.case("engine", 404)
@pytest.mark.parametrize("kind", ["unknown", "twice", "mapped"])
def test_a_hundred_thousand_columns_are_refused_at_once(graph: Graph, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "wide.csv"
    names = ["name"] * 100_000 if kind != "unknown" else [f"c{number}" for number in range(100_000)]
    path.write_text(",".join(names) + "\n")
    mapping = tmp_path / "load.yaml" if kind == "mapped" else None
    (tmp_path / "load.yaml").write_text("sources: [{path: wide.csv, type: Person}]")
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_utime

    with pytest.raises(OmnigraphError) as caught:
        graph.load([] if mapping else f"Person={path}", "append", mapping=mapping)

    assert ("twice" in str(caught.value)) is (kind != "unknown")
    # Of processor time, which does not depend on what else the machine does; quadratic work took minutes.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - begun < 5


# What is no file


@pytest.fixture
def odd_files(tmp_path: Path) -> dict[str, str]:
    """Things that have a name and are no files, by what an error calls them.

    The superuser could replace a device of the machine, so the tests of one get a device of their own.
    """
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    device = "/dev/zero"
    if os.geteuid() == 0:
        device = str(tmp_path / "device")
        os.mknod(device, stat.S_IFCHR | 0o666, os.stat("/dev/zero").st_rdev)  # noqa: PTH116 - `os` all along
    return {"device": device, "pipe": str(tmp_path / "pipe"), "socket": str(tmp_path / "socket")}


@pytest.mark.case("engine", 405)
@pytest.mark.parametrize("kind", ["device", "pipe", "socket"])
def test_what_is_no_file_is_refused_wherever_a_file_is_read(
    graph: Graph, tmp_path: Path, odd_files: dict[str, str], kind: str
) -> None:
    odd = odd_files[kind]
    good = tmp_path / "one.jsonl"
    good.write_text(person(1))
    (tmp_path / "load.yaml").write_text(f"sources: [{{path: {odd}, type: Person}}]")
    (tmp_path / "spec.json").write_text(
        '{"dimension": 1, "types": {"Person": {"target": "v", "fields": ["name"]}}}'
    )
    new, store = str(tmp_path / "new"), ["--store", graph.uri]
    commands: list[list[str]] = [
        ["load", *store, "--mode", "append", "--data", odd],
        ["load", *store, "--mode", "append", "--data", f"Person={odd}"],
        ["load", *store, "--mode", "append", "--mapping", odd],
        ["load", *store, "--mode", "append", "--mapping", str(tmp_path / "load.yaml")],
        ["init", new, "--schema", odd],
        ["query", *store, "--query", odd],
        [
            "query",
            *store,
            "-e",
            "query q() { match { $p: Person } return { $p.name } }",
            "--params-file",
            odd,
        ],
        ["lint", "--schema", odd, "--query", odd],
        ["embed", "--input", odd, "--output", new, "--spec", str(tmp_path / "spec.json"), "--clean"],
        ["embed", "--input", str(good), "--output", new, "--spec", odd, "--clean"],
        ["embed", "--seed", odd],
    ]

    for command in commands:
        told = invoke(*command, cwd=tmp_path)
        assert told.code == 1, (command, told)
        assert f"it is a {kind}, not a file" in told.stderr, command
    for suffix in ("csv", "parquet", "arrow"):
        link = tmp_path / f"odd.{suffix}"
        link.symlink_to(odd)
        with pytest.raises(BadRequest, match=f"it is a {kind}, not a file"):
            graph.load(f"Person={link}", "append")
    with pytest.raises(BadRequest, match=f"it is a {kind}, not a file"):
        omnigraph.init(new, Path(odd))


@pytest.mark.case("engine", 405)
def test_what_is_no_file_is_not_replaced_by_one(
    graph: Graph, tmp_path: Path, odd_files: dict[str, str]
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{]")
    for kind, odd in odd_files.items():
        with pytest.raises(BadRequest, match=f"cannot write .*: it is a {kind}, not a file"):
            graph.load(bad, "append", rejects=odd)
        with pytest.raises(BadRequest, match=f"cannot write .*: it is a {kind}, not a file"), whole_file(odd):
            pass
        assert not Path(odd).is_file()


@pytest.mark.case("engine", 405)
def test_a_pipe_goes_by_its_own_name(graph: Graph) -> None:
    command = ["load", "--store", graph.uri, "--mode", "append", "--dry-run", "--data", "-"]

    assert invoke(*command, cwd=Path.cwd(), stdin=person(7)).code == 0


def test_slices_of_a_packed_file_have_the_bound_too(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl.gz"
    path.write_bytes(gzip.compress((person(1) + "\n").encode() * 10_000))
    source = SourceInput(str(path), Format.NDJSON, compression=Compression.GZIP)
    limits = ReadLimits(expansion_max=2, expansion_floor=10)
    (slice_,) = plan_slices([source], target_bytes=100, limits=limits)

    with pytest.raises(ResourceLimit):
        list(read_slice(slice_, graph.catalog, make_id=str, log=ViolationLog(), limits=limits))
