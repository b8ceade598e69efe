"""What checksums cost: commits, loads and opens with and without them, in turns, as ratios.

Loads go through the process or through Spark. Times on the processors are what the bars are about: a busy
machine disturbs them less than the clock.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import pyarrow as pa

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has an `http` of its own

import omnigraph
from bench.support.report import verdict
from omnigraph.graph.graph import Graph
from omnigraph.operations.open import VERIFY
from omnigraph.storage.files.sums import ENVIRONMENT as CHECKSUMS

SCHEMA = "node Person { handle: String @key  age: I64?  note: String? }\n"
INSERT = "query m($h: String, $a: I64) { insert Person { handle: $h, age: $a } }"
BAR = 1.03
Times = dict[str, list[tuple[float, float]]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=256)
    parser.add_argument("--loads", type=int, default=9)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--opens", type=int, default=41)
    parser.add_argument("--spark-loads", type=int, default=0, help="loads on Spark, each some seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as name:
        folder = Path(name)
        for durability in ("full", "process"):
            print_ratio(
                f"one-row commit, durability {durability}", commits(folder, durability, options.commits)
            )
        print_ratio(f"load of {options.rows:,} rows", loads(folder, options.loads, options.rows, "local"))
        if options.spark_loads:
            print_ratio("the same on Spark", loads(folder, options.spark_loads, options.rows, "spark"))
        print_ratio("open, lengths compared", opens(folder, options.opens))


def commits(folder: Path, durability: str, count: int) -> Times:
    """Commit on two graphs in turns, one of which records sums."""
    graphs = {
        name: _graph(folder / f"commits-{durability}-{name}", name, durability) for name in ("off", "on")
    }
    times: Times = {name: [] for name in graphs}
    for number in range(-8, count):
        for name, graph in _in_turns(graphs, number):
            spent = _timed(lambda g=graph, n=number: g.mutate(INSERT, params={"h": f"p{n}", "a": n}))
            if number >= 0:
                times[name].append(spent)
    for graph in graphs.values():
        graph.close()
    return times


def loads(folder: Path, count: int, rows: int, engine: str) -> Times:
    """Load the same rows into two graphs in turns."""
    graphs = {name: _graph(folder / f"loads-{engine}-{name}", name, "full") for name in ("off", "on")}
    times: Times = {name: [] for name in graphs}
    for number in range(-1, count):
        table = pa.table(
            {
                "handle": [f"h{number}-{row}" for row in range(rows)],
                "age": list(range(rows)),
                "note": [f"note {row * 7919 % rows} of {number}" for row in range(rows)],
            }
        )
        for name, graph in _in_turns(graphs, number):
            spent = _timed(
                lambda g=graph, t=table: g.load_tables({"Person": t}, "append", engine=engine, index=False)
            )
            if number >= 0:
                times[name].append(spent)
    for graph in graphs.values():
        graph.close()
    return times


def opens(folder: Path, count: int) -> Times:
    """Open a graph of many fragments with and without a look at its files."""
    root = folder / "commits-process-on"
    times: Times = {"off": [], "lengths": []}
    for number in range(-2, count):
        for name in sorted(times, reverse=bool(number % 2)):
            os.environ[VERIFY] = name
            spent = _timed(lambda: omnigraph.open(root, mode="ro").close())
            if number >= 0:
                times[name].append(spent)
    del os.environ[VERIFY]
    return times


def print_ratio(title: str, times: Times) -> None:
    """Print the medians of both, and how many times the first the second is."""
    (first, without), (second, with_) = times.items()
    for place, clock in enumerate(("wall", "cpu")):
        before = median(spent[place] for spent in without)
        after = median(spent[place] for spent in with_)
        bar = verdict(after / before, BAR) if clock == "cpu" else f"{after / before:.2f}x"
        print(f"{title:40s} {clock:4s} {first} {before:8.2f} ms, {second} {after:8.2f} ms: {bar}", flush=True)


def _graph(root: Path, setting: str, durability: str) -> Graph:
    os.environ[CHECKSUMS] = setting
    graph = omnigraph.init(root, SCHEMA, durability=durability)
    del os.environ[CHECKSUMS]
    return graph


def _in_turns(graphs: dict[str, Graph], number: int) -> list[tuple[str, Graph]]:
    """Return both graphs, the other one first every other time."""
    return sorted(graphs.items(), reverse=bool(number % 2))


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the milliseconds that something takes, by the clock and on the processors."""
    wall, cpu = perf_counter(), process_time()
    work()
    return (perf_counter() - wall) * 1_000, (process_time() - cpu) * 1_000


if __name__ == "__main__":
    main()
