"""What random updates leave behind: bytes of versions and transactions, and the cost of a one-row commit.

A table is loaded and copied. One copy gets the random updates, in batches; then both get the same one-row
commits in turns, so that a busy moment of the machine meets both.

    python bench/growth.py --rows 3000000 --updates 1000000 --commits 1000
    python bench/growth.py --engine spark
    python bench/growth.py --kind edge --rows 1000000 --updates 1000000
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import lance
import numpy as np
import pyarrow as pa

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has an `http` of its own

import omnigraph
from bench.support.counting import Counter, Sample
from bench.support.report import cpu_ms, verdict, wall_ms
from omnigraph.graph.graph import Graph
from omnigraph.operations.engine import Engine
from omnigraph.operations.settings import MERGE_BYTES
from omnigraph.storage.files.version_file import version_file_name

SCHEMA = """\
node Item { key: String @key  value: I64  label: String? }
edge Link: Item -> Item { value: I64 }
"""
UPDATE = "query m($k: String, $v: I64) { update Item set { value: $v } where key = $k }"
DELETE = "query m($k: String) { delete Item where key = $k }"
NAMES = {"node": "Item", "edge": "Link"}
ENDS = 1_000  # nodes that edges go between
LOAD_ROWS = 500_000  # rows of one load
FRAGMENT_BYTES, ROW_BYTES = 400, 0.5  # what a version may take for a fragment, and for a row ever updated
COMMIT_BAR, DATA_BAR = 1.3, 1.0
SEED = 20_261


def main() -> None:
    """Load, update, commit, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kind", choices=list(NAMES), default="node", help="of the table")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--updates", type=int, default=100_000, help="rows that are updated at random")
    parser.add_argument("--batch", type=int, help="rows of one load of updates; all at once if not given")
    parser.add_argument("--commits", type=int, default=200, help="of one row, on either copy")
    parser.add_argument("--engine", choices=["local", "spark"], default="local", help="of the updates")
    parser.add_argument("--durability", choices=["full", "process"], default="process")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        fresh = Path(folder, "fresh")
        build(fresh, options.kind, options.rows, options.durability)
        grown = Path(folder, "grown")
        shutil.copytree(fresh, grown)
        with (
            omnigraph.open(fresh, durability=options.durability) as before,
            omnigraph.open(grown, durability=options.durability) as after,
        ):
            report("loaded", after, options.kind)
            update_at_random(after, options)
            report("updated", after, options.kind, updated=options.updates)
            compare(before, after, options)
            updated = options.updates + options.commits
            state = report(f"{options.commits} commits", after, options.kind, updated=updated)
            kept = state.versions + state.transactions
            print(f"versions and transactions against data: {verdict(kept / state.data, DATA_BAR)}")


def build(root: Path, kind: str, rows: int, durability: str) -> None:
    """Make a graph with one large, indexed table."""
    with omnigraph.init(root, SCHEMA, durability=durability) as graph:
        if kind == "edge":
            graph.load({"Item": items("node", np.arange(ENDS), 0)}, "append")
        for start in range(0, rows, LOAD_ROWS):
            numbers = np.arange(start, min(start + LOAD_ROWS, rows))
            graph.load({NAMES[kind]: items(kind, numbers, 0)}, "append", index=start + LOAD_ROWS >= rows)


def items(kind: str, numbers: np.ndarray[tuple[int], np.dtype[np.int64]], value: int) -> pa.Table:
    """Return rows by their numbers."""
    value_column = pa.array(numbers + value)
    if kind == "node":
        return pa.table({"key": texts(numbers), "value": value_column})
    ends = texts(numbers % ENDS), texts(numbers // 7 % ENDS)
    return pa.table({"id": texts(numbers), "from": ends[0], "to": ends[1], "value": value_column})


def texts(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> "pa.Array[Any]":
    """Return numbers as a column of texts."""
    return pa.array(numbers).cast(pa.utf8())


def update_at_random(graph: Graph, options: argparse.Namespace) -> None:
    """Replace rows anywhere in the table, in no order."""
    chosen = np.random.default_rng(SEED).choice(options.rows, options.updates, replace=False)
    batch = options.batch or options.updates
    engine: Engine = options.engine
    started = perf_counter()
    for start in range(0, options.updates, batch):
        rows = items(options.kind, chosen[start : start + batch], 1)
        if engine == "spark":
            load_on_executors(graph, NAMES[options.kind], rows)
        else:
            graph.load({NAMES[options.kind]: rows}, "merge")
    took = perf_counter() - started
    print(f"{options.updates} random updates, {batch} at a time, {engine}: {took:.1f} s", flush=True)


def load_on_executors(graph: Graph, name: str, rows: pa.Table) -> None:
    """Merge rows on Spark, from a file, and rewrite them on executors whatever their size."""
    import os

    import pyarrow.parquet as pq

    os.environ[MERGE_BYTES] = "1"
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        path = Path(folder, f"{name}.parquet")
        pq.write_table(rows, path)
        graph.load(f"{name}={path}", "merge", engine="spark")


@dataclass(frozen=True, slots=True)
class State:
    """Bytes of a table, and its fragments."""

    newest: int
    fragments: int
    versions: int
    transactions: int
    data: int


def state_of(graph: Graph, kind: str) -> State:
    """Look at the table's folder."""
    entry = graph.snapshot().entry(f"{kind}:{NAMES[kind]}")
    folder = Path(graph.uri, entry.location)
    dataset = lance.dataset(folder)
    sizes = [sum(map(size, files(folder / name))) for name in ("_versions", "_transactions", "data")]
    newest = size(folder / version_file_name(dataset.version))
    return State(newest, len(dataset.get_fragments()), *sizes)


def files(folder: Path) -> Iterator[Path]:
    """Yield what lies in a folder."""
    return (path for path in folder.iterdir() if path.is_file())


def size(path: Path) -> int:
    """Return the length of a file."""
    return path.stat().st_size


def report(what: str, graph: Graph, kind: str, *, updated: int = 0) -> State:
    """Print the state of the table, and after updates whether its newest version is small enough.

    Before any, a version of few fragments is its schema and its indexes, which the bound does not count.
    """
    state = state_of(graph, kind)
    bound = FRAGMENT_BYTES * state.fragments + ROW_BYTES * updated
    share = f", of the bound {verdict(state.newest / bound, 1.0)}" if updated else ""
    print(f"{what:>14}: version {state.newest:,} bytes, {state.fragments} fragments{share}")
    sizes = f"_versions {state.versions:,}, _transactions {state.transactions:,}, data {state.data:,}"
    print(f"{'':>14}  {sizes}", flush=True)
    return state


def compare(before: Graph, after: Graph, options: argparse.Namespace) -> None:
    """Commit one row on either copy, in turns; every tenth commit of a node table is a delete."""
    numbers = np.random.default_rng(SEED + 1).choice(options.rows, options.commits, replace=False)
    samples: dict[str, tuple[list[Sample], list[Sample]]] = {}
    counters = (Counter(before), Counter(after))
    for turn, number in enumerate(numbers.tolist()):
        what = "merge" if options.kind == "edge" else "delete" if turn % 10 == 9 else "update"
        for graph, counter, found in zip(
            (before, after), counters, samples.setdefault(what, ([], [])), strict=True
        ):
            found.append(counter.measure(partial(commit, graph, what, number, turn)))
    for what, (was, now) in samples.items():
        ratio = verdict(cpu_ms(now) / cpu_ms(was), COMMIT_BAR)
        print(f"one-row {what}: cpu {cpu_ms(was):.1f} ms before, {cpu_ms(now):.1f} ms after updates: {ratio}")
        print(f"{'':>14}  median {wall_ms(was):.1f} ms before, {wall_ms(now):.1f} ms after", flush=True)


def commit(graph: Graph, what: str, number: int, value: int) -> None:
    """Change one row."""
    match what:
        case "merge":
            graph.load({"Link": items("edge", np.array([number]), value)}, "merge", index=False)
        case "delete":
            graph.mutate(DELETE, params={"k": str(number)})
        case _:
            graph.mutate(UPDATE, params={"k": str(number), "v": value})


if __name__ == "__main__":
    main()
