"""Arrow and Parquet with values that Arrow itself would believe: refused by file and row."""

import random
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.core.errors import BadRequest, ValidationError
from omnigraph.graph.graph import Graph
from tests.support import damage

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    group: String?
    tags: [String]?
    seen: DateTime?
}
"""
BAD = b"\xff\xfe"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return omnigraph.init(tmp_path_factory.mktemp("damaged") / "graph", SCHEMA, durability="process")


def refusal(graph: Graph, source: object, **options: object) -> ValidationError:
    """Return the error of a load that leaves the graph as it is."""
    with pytest.raises(ValidationError) as caught:
        graph.load(source, "append", index=False, **options)  # type: ignore[arg-type] # any input
    assert graph.table("Person").num_rows == 0
    return caught.value


def invalid_names() -> "pa.Array[Any]":
    return pa.array([b"anna", BAD, b"carl"], pa.binary()).view(pa.utf8())


@pytest.mark.case("engine", 385)
def test_a_text_of_parquet_that_is_not_utf8_is_refused_at_its_row(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    damage.write_parquet(path, damage.rows())
    damage.replace_once(path, b"dora", damage.BAD_TEXT)

    error = refusal(graph, f"Person={path}")

    assert (error.kind, error.file, error.line, error.total) == ("record", str(path), 4, 1)
    assert str(error).endswith("people.parquet:4: invalid UTF-8 in column 'name'")


@pytest.mark.case("engine", 385)
@pytest.mark.parametrize("old", [b"anna", b"t333", b"blue"])
def test_a_text_of_arrow_that_is_not_utf8_is_refused_at_its_row(
    graph: Graph, tmp_path: Path, old: bytes
) -> None:
    path = tmp_path / "people.arrow"
    damage.write_arrow(path, damage.rows())
    damage.replace_once(path, old, damage.BAD_TEXT)

    error = refusal(graph, f"Person={path}")

    column, lines = {b"anna": ("name", [1]), b"t333": ("tags", [2]), b"blue": ("group", [2, 4])}[old]
    assert error.line == lines[0]
    assert error.total == len(lines)
    assert f"invalid UTF-8 in column '{column}'" in str(error)


def test_rows_around_an_invalid_text_are_loaded_if_asked_for(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA, durability="process")
    path = tmp_path / "people.arrow"
    damage.write_arrow(path, damage.rows())
    damage.replace_once(path, b"t333", damage.BAD_TEXT)

    result = graph.load(f"Person={path}", "append", on_error="skip", index=False)

    assert result.rejected_rows == 1
    assert graph.table("Person")["name"].to_pylist() == ["anna", "carla", "dora"]


@pytest.mark.case("engine", 386)
@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("kind", damage.DAMAGES)
def test_a_damaged_arrow_file_is_refused_at_the_row_that_shows_it(
    graph: Graph, tmp_path: Path, kind: str, is_stream: bool
) -> None:
    old, new, line, column = damage.DAMAGES[kind]
    path = tmp_path / "people.arrow"
    damage.write_arrow(path, damage.rows(), is_stream=is_stream)
    damage.replace_once(path, old, new)

    error = refusal(graph, f"Person={path}", on_error="skip")

    assert (error.kind, error.file, error.line) == ("record", str(path), line)
    assert f"column '{column}' is damaged: " in str(error)


def test_damage_in_a_later_batch_counts_rows_from_the_start_of_the_file(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.arrow"
    first = damage.rows().set_column(0, "name", pa.array(["a", "b", "c", "d"]))
    with pa.ipc.new_file(str(path), first.schema) as writer:
        writer.write_table(first)
        writer.write_table(damage.rows())
    damage.replace_once(path, b"bert", damage.BAD_TEXT)

    assert refusal(graph, f"Person={path}").line == 6


@pytest.mark.case("engine", 387)
def test_tables_in_memory_are_validated_like_files(graph: Graph) -> None:
    ends = pa.py_buffer(np.array([0, 1, 2**30, 3], np.int32).tobytes())
    wild = pa.Array.from_buffers(pa.utf8(), 3, [None, ends, pa.py_buffer(b"abc")])
    whole = pa.table({"name": ["x", "y"]})
    text = pa.table({"name": invalid_names()})
    tables = {
        "Person:2: invalid UTF-8 in column 'name'": text,
        "Person:4: invalid UTF-8 in column 'name'": pa.concat_tables([whole, text]),
        "Person:2: column 'name' is damaged: ": pa.RecordBatch.from_arrays([wild], ["name"]),
    }

    for message, table in tables.items():
        assert message in str(refusal(graph, {"Person": table}))
    reader = pa.RecordBatchReader.from_batches(text.schema, text.to_batches())
    assert refusal(graph, {"Person": reader}).line == 2


def test_a_frame_that_makes_no_table_is_refused(graph: Graph) -> None:
    with pytest.raises(BadRequest, match="the table for Person cannot become an Arrow table"):
        graph.load_tables({"Person": pd.DataFrame({"name": ["a", 1]})}, "append")
    with pytest.raises(BadRequest, match="the table for Person cannot become an Arrow table"):
        graph.load_tables({"Person": pd.DataFrame({"name": ["\ud800"]})}, "append")


def test_a_moment_with_a_time_of_day_is_no_damage(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA, durability="process")
    seen = pa.array([86_400_001], pa.int64()).view(pa.date64())

    graph.load({"Person": pa.table({"name": ["a"], "seen": seen})}, "append", index=False)

    found = graph.query("query q() { match { $p: Person } return { $p.seen as seen } }").rows
    moment = found[0]["seen"]
    assert isinstance(moment, datetime)
    assert moment.isoformat() == "1970-01-02T00:00:00.001000+00:00"


def test_a_column_of_a_kind_that_cannot_be_read_is_refused(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.arrow"
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    damage.write_arrow(path, pa.table({"name": ["a"], "age": union}))

    with pytest.raises(BadRequest, match=r"cannot read .*people\.arrow as Arrow: sparse_union"):
        graph.load(f"Person={path}", "append")


# Any byte


LOADER = """\
import sys
from omnigraph.bulk.sources.sources import needs_survey, plan_slices, read_slice, survey
from omnigraph.bulk.sources.names import resolve_name
from omnigraph.core.errors import OmnigraphError
from omnigraph.graph.opening import open as open_graph
from omnigraph.validate.violations import ViolationLog

graph = open_graph(sys.argv[1], durability="process")


def load_whole(name):
    graph.load(name, "append", index=False, dry_run=True)


def load_in_slices(name):  # what the tasks of a cluster do
    slices = plan_slices(list(resolve_name(name, graph.catalog)), target_bytes=1)
    for one in needs_survey(slices):
        survey(one)
    for one in slices:
        for rows in read_slice(one, graph.catalog, make_id=lambda: "x", log=ViolationLog()):
            rows.table.to_pylist()


for line in sys.stdin:
    path = line.strip()
    for load in (load_whole, load_in_slices):
        try:
            load(f"Person={path}")
        except OmnigraphError:
            pass
    print(path, flush=True)
"""


def test_a_stream_that_was_cut_between_two_batches_is_no_shorter_stream(graph: Graph, tmp_path: Path) -> None:
    path, plain = tmp_path / "Person.arrow", damage.rows()
    lengths = []
    with path.open("wb") as file, pa.ipc.new_stream(file, plain.schema) as writer:
        for batch in (plain.slice(0, 2), plain.slice(2)):
            lengths.append(file.tell())
            writer.write_table(batch)
        lengths.append(file.tell())
    whole = path.read_bytes()

    for length in lengths:
        path.write_bytes(whole[:length])
        with pytest.raises(BadRequest, match="cut off"):
            graph.load(f"Person={path}", "append")

    assert graph.table("Person").num_rows == 0
    path.write_bytes(whole)
    assert graph.load(f"Person={path}", "append").commit is not None
    graph.mutate('query q() { delete Person where name != "" }')


def mutants(folder: Path, seed: int, count: int) -> list[Path]:
    """Write files with a few bytes changed each; return them."""
    chance = random.Random(seed)
    plain = damage.rows()
    seeds = []
    kinds: list[tuple[str, bool, Literal["lz4", "zstd"] | None]] = [
        ("f", False, None),
        ("s", True, None),
        ("z", False, "zstd"),
        ("l", True, "lz4"),
    ]
    for name, is_stream, packing in kinds:
        path = folder / f"seed-{name}.arrow"
        make = pa.ipc.new_stream if is_stream else pa.ipc.new_file
        with make(str(path), plain.schema, options=pa.ipc.IpcWriteOptions(compression=packing)) as writer:
            writer.write_table(plain)
            writer.write_table(plain.slice(1))
        seeds.append(path)
    path = folder / "seed-p.parquet"
    damage.write_parquet(path, plain)
    seeds.append(path)
    path = folder / "seed-q.parquet"
    pq.write_table(plain, path, compression="zstd")
    seeds.append(path)
    made = []
    for number in range(count):
        source = seeds[number % len(seeds)]
        data = bytearray(source.read_bytes())
        for _ in range(chance.choice([1, 1, 1, 2, 8])):
            place = chance.randrange(len(data))
            data[place] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, data[place] ^ (1 << chance.randrange(8))])
        if chance.random() < 0.05:
            del data[chance.randrange(len(data)) :]
        target = folder / f"{number}{source.suffix}"
        target.write_bytes(data)
        made.append(target)
    return made


def crashes(graph: Graph, paths: list[Path]) -> list[str]:
    """Load files in other processes; return those that ended one, or that met an error of no type of ours."""
    found: list[str] = []
    waiting = list(paths)
    while waiting:
        run = subprocess.run(
            [sys.executable, "-c", LOADER, graph.uri],
            input="".join(f"{path}\n" for path in waiting),
            capture_output=True,
            text=True,
            check=False,
        )
        done = len(run.stdout.splitlines())
        if done == len(waiting):
            return found
        found.append(f"{waiting[done]}: exit {run.returncode}: {run.stderr[-2000:]}")
        waiting = waiting[done + 1 :]
    return found


@pytest.mark.case("engine", 388)
@pytest.mark.slow
def test_no_changed_byte_ends_the_process(graph: Graph, tmp_path: Path) -> None:
    assert crashes(graph, mutants(tmp_path, seed=12, count=1_200)) == []


@pytest.mark.fuzz
def test_no_changed_byte_ends_the_process_at_length(graph: Graph, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - for whoever wants this run again
    for round_ in range(20):
        folder = tmp_path / str(round_)
        folder.mkdir()
        assert crashes(graph, mutants(folder, seed + round_, 3_000)) == [], f"seed {seed + round_}"
