"""One-row updates and inserts by key on tables of growing size.

The tables take turns commit by commit, so that a busy moment of the machine meets all of them.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.support.counting import Counter, Sample
from bench.support.report import cpu_ms, sum_counts, verdict, wall_ms
from omnigraph.graph import graph as omnigraph
from omnigraph.graph.graph import Graph

SCHEMA = "node Item { key: String @key  value: I64  label: String? }"
UPDATE = "query m($k: String, $v: I64) { update Item set { value: $v } where key = $k }"
INSERT = "query m($k: String, $v: I64) { insert Item { key: $k, value: $v } }"
EDGE = 100  # commits at each end that are compared
TIME_BAR, SIZE_BAR = 1.25, 1.3
LOAD_ROWS = 500_000  # rows of one load


def main() -> None:
    """Load the tables, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 3_000_000])
    parser.add_argument("--commits", type=int, default=1_000, help="of each kind on each table")
    parser.add_argument("--durability", choices=["full", "process"], default="process")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        graphs = {rows: build(Path(folder, str(rows)), rows, options.durability) for rows in options.rows}
        counters = {rows: Counter(graph) for rows, graph in graphs.items()}
        for name, make in (("one-row update", update), ("one-row insert", insert)):
            samples = measure(graphs, counters, make, options.commits)
            print_result(f"{name} by key, durability {options.durability}", samples)


def build(root: Path, rows: int, durability: str) -> Graph:
    """Return a graph with one indexed table."""
    started = perf_counter()
    graph = omnigraph.init(root, SCHEMA, durability=durability)
    for start in range(0, rows, LOAD_ROWS):
        numbers = np.arange(start, min(start + LOAD_ROWS, rows))
        values = pa.array(numbers)
        table = pa.table({"key": values.cast(pa.utf8()), "value": values})
        graph.load({"Item": table}, "append", index=start + LOAD_ROWS >= rows)
    print(f"loaded {rows} rows in {perf_counter() - started:.0f} s", flush=True)
    return graph


def update(graph: Graph, rows: int, number: int) -> Callable[[], object]:
    """Return an update of a row somewhere in the table."""
    key = str(number * 7_919 % rows)
    return lambda: graph.mutate(UPDATE, params={"k": key, "v": number})


def insert(graph: Graph, rows: int, number: int) -> Callable[[], object]:
    """Return an insert of a row that is not there."""
    return lambda: graph.mutate(INSERT, params={"k": f"new-{rows}-{number}", "v": number})


def measure(
    graphs: dict[int, Graph],
    counters: dict[int, Counter],
    make: Callable[[Graph, int, int], Callable[[], object]],
    commits: int,
) -> dict[int, list[Sample]]:
    """Commit so often on each graph, in turns."""
    samples: dict[int, list[Sample]] = {rows: [] for rows in graphs}
    for number in range(commits):
        for rows, graph in graphs.items():
            samples[rows].append(counters[rows].measure(make(graph, rows, number)))
    return samples


def print_result(title: str, samples: dict[int, list[Sample]]) -> None:
    """Print one table, and whether the bars hold."""
    print(f"\n{title}")
    print("     rows   median    cpu | reads writes lists | first 100   last 100   last against first")
    for rows, found in samples.items():
        each, number = sum_counts(found), len(found)
        edge = min(EDGE, number // 2)
        first, last = found[:edge], found[-edge:]
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
