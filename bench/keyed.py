"""One-row updates and inserts by key on tables of growing size.

The tables take turns commit by commit, so that a busy moment of the machine meets all of them. For the same
reason the last commits on a table take turns with the first ones on a copy of it that nobody has written to.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has an `http` of its own

import omnigraph
from bench.support.counting import Counter, Sample
from bench.support.report import cpu_ms, sum_counts, verdict, wall_ms
from omnigraph.graph.graph import Graph

SCHEMA = "node Item { key: String @key  value: I64  label: String? }"
UPDATE = "query m($k: String, $v: I64) { update Item set { value: $v } where key = $k }"
INSERT = "query m($k: String, $v: I64) { insert Item { key: $k, value: $v } }"
EDGE = 100  # commits at each end that are compared
TIME_BAR, SIZE_BAR = 1.25, 1.3
LOAD_ROWS = 500_000  # rows of one load
Samples = dict[int, list[Sample]]


def main() -> None:
    """Load the tables, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 3_000_000])
    parser.add_argument("--commits", type=int, default=1_000, help="of each kind on each table")
    parser.add_argument("--durability", choices=["full", "process"], default="process")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        loaded = {rows: build(Path(folder, str(rows)), rows, options.durability) for rows in options.rows}
        for name, make in (("one-row update", update), ("one-row insert", insert)):
            tables = {rows: Table(root, options.durability) for rows, root in loaded.items()}
            samples, fresh = measure(tables, make, options.commits)
            print_result(f"{name} by key, durability {options.durability}", samples, fresh)


class Table:
    """A copy of a graph that is written to, and one that waits for the end; each with what it counts."""

    def __init__(self, root: Path, durability: str) -> None:
        """Copy a graph twice and open both."""
        self.written, self.waiting = (_opened(root, name, durability) for name in ("written", "waiting"))


def _opened(root: Path, name: str, durability: str) -> tuple[Graph, Counter]:
    copy = root.with_name(f"{root.name}-{name}")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(root, copy)
    graph = omnigraph.open(copy, durability=durability)
    return graph, Counter(graph)


def build(root: Path, rows: int, durability: str) -> Path:
    """Make a graph with one indexed table and return where it lies."""
    started = perf_counter()
    graph = omnigraph.init(root, SCHEMA, durability=durability)
    for start in range(0, rows, LOAD_ROWS):
        numbers = np.arange(start, min(start + LOAD_ROWS, rows))
        values = pa.array(numbers)
        table = pa.table({"key": values.cast(pa.utf8()), "value": values})
        graph.load({"Item": table}, "append", index=start + LOAD_ROWS >= rows)
    graph.close()
    print(f"loaded {rows} rows in {perf_counter() - started:.0f} s", flush=True)
    return root


def update(graph: Graph, rows: int, number: int) -> Callable[[], object]:
    """Return an update of a row somewhere in the table."""
    key = str(number * 7_919 % rows)
    return lambda: graph.mutate(UPDATE, params={"k": key, "v": number})


def insert(graph: Graph, rows: int, number: int) -> Callable[[], object]:
    """Return an insert of a row that is not there."""
    return lambda: graph.mutate(INSERT, params={"k": f"new-{rows}-{number}", "v": number})


def measure(
    tables: dict[int, Table], make: Callable[[Graph, int, int], Callable[[], object]], commits: int
) -> tuple[Samples, Samples]:
    """Commit so often on each table, in turns; return these, and the first commits on the waiting copies."""
    samples: Samples = {rows: [] for rows in tables}
    fresh: Samples = {rows: [] for rows in tables}
    edge = min(EDGE, commits // 2)
    for number in range(commits):
        for rows, table in tables.items():
            graph, counter = table.written
            samples[rows].append(counter.measure(make(graph, rows, number)))
            if number >= commits - edge:
                graph, counter = table.waiting
                fresh[rows].append(counter.measure(make(graph, rows, number - commits + edge)))
    for table in tables.values():
        table.written[0].close()
        table.waiting[0].close()
    return samples, fresh


def print_result(title: str, samples: Samples, fresh: Samples) -> None:
    """Print one table, and whether the bars hold."""
    print(f"\n{title}")
    print(
        "     rows   median    cpu | reads writes lists | first 100   last 100   last against first, in turns"
    )
    for rows, found in samples.items():
        each, number = sum_counts(found), len(found)
        first, last = fresh[rows], found[-len(fresh[rows]) :]
        print(
            f"  {rows:7d} {wall_ms(found):5.1f} ms {cpu_ms(found):3.0f} ms | "
            f"{each.reads / number:5.1f} {each.writes / number:6.1f} {each.lists / number:5.1f} | "
            f"{wall_ms(first):6.1f} ms  {wall_ms(last):6.1f} ms   "
            f"{verdict(wall_ms(last) / wall_ms(first), TIME_BAR)}; cpu {cpu_ms(last) / cpu_ms(first):.2f}x"
        )
    smallest, largest = min(samples), max(samples)
    ratio = wall_ms(samples[largest]) / wall_ms(samples[smallest])
    cpu = cpu_ms(samples[largest]) / cpu_ms(samples[smallest])
    print(f"  {largest} rows against {smallest}: median {verdict(ratio, SIZE_BAR)}; cpu {cpu:.2f}x")


if __name__ == "__main__":
    main()
