"""One-row writes and traversals by turns, against the same traversals on a graph that nobody writes to.

Each write is an insert of an edge or an update of a node; the query after it sees it. Derived structures are
to follow such changes without being built anew: that is counted.

A query that comes 40 ms after the last one is slower than one in a burst, whatever happened in between: the
caches of the processor are cold. So the same queries are also measured after a write to another graph, which
changes nothing for them; the bar is printed against both.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has an `http` of its own

import omnigraph
from bench.support.ours import TEXTS, Ours
from bench.support.report import verdict
from bench.support.social import SEED, SIZES, Size, handles_of, make_social
from omnigraph.exec.dense.resident import DerivedCounts
from omnigraph.graph.graph import Graph

EDGE = "query m($a: String, $b: String) { insert Knows { from: $a, to: $b, since: 2026 } }"
AGE = "query m($a: String, $age: I64) { update Person set { age: $age } where handle = $a }"
ONE_HOP, TWO_HOPS = TEXTS["one hop with filter"], TEXTS["two hops distinct"]
OTHER = "node Item { k: String @key }"
ITEM = "query m($k: String) { insert Item { k: $k } }"
QUERY_BAR = 2.0
REBUILD_SHARE = 0.05  # of the edges changed, from which a rebuild is fine
BULK_LOADS, BULK_SHARE = 4, 0.02

Times = dict[str, list[float]]


def main() -> None:
    """Load a graph, read, write and read, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=list(SIZES), default="large")
    parser.add_argument(
        "--rounds", type=int, default=200, help="queries of each kind, alone and after writes"
    )
    options = parser.parse_args()
    size = SIZES[options.size]
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        os.environ["OMNIGRAPH_CACHE_DIR"] = str(Path(folder, "cache"))
        started = perf_counter()
        ours = Ours()
        ours.load(Path(folder), make_social(size))
        print(f"{size.people:,} people, {size.edges:,} edges: loaded in {perf_counter() - started:.0f} s")
        with omnigraph.init(Path(folder, "other"), OTHER, durability="process") as other:
            Mixed(ours.graph, other, size).run(options.rounds)
        ours.close()


class Mixed:
    """Reads and writes of one graph."""

    def __init__(self, graph: Graph, other: Graph, size: Size) -> None:
        """Take an open graph, and another one that is written to instead."""
        self._graph, self._other, self._size = graph, other, size
        self._rng = np.random.default_rng(SEED)
        self._years = count(18)

    def run(self, rounds: int) -> None:
        """Measure both ways and print."""
        reads, writes = (self._one_hop, self._two_hops), (self._insert_edge, self._update_age)
        for _ in range(rounds):
            self._in_turns({}, reads)  # what is built on first use is built now
        alone: Times = {}
        for _ in range(rounds):
            self._in_turns(alone, reads)
        before, elsewhere, mixed = self._counts(), Times(), Times()
        for _ in range(rounds):
            self._in_turns(elsewhere, (self._write_elsewhere, reads[0], self._write_elsewhere, reads[1]))
            self._in_turns(mixed, (writes[0], reads[0], writes[1], reads[1]))
            self._in_turns(mixed, (writes[1], reads[0], writes[0], reads[1]))
        print_times(alone, elsewhere, mixed)
        print_builds("one-row writes", before, self._counts(), 2 * rounds / self._size.edges)
        before = self._counts()
        for _ in range(BULK_LOADS):
            self._load_edges(int(BULK_SHARE * self._size.edges))
            self._in_turns({}, reads)
        share = BULK_LOADS * BULK_SHARE
        print_builds(f"{BULK_LOADS} loads of {BULK_SHARE:.0%} of the edges", before, self._counts(), share)

    def _in_turns(self, times: Times, steps: Iterable[Callable[[], object]]) -> None:
        for step in steps:
            started = perf_counter()
            step()
            name = step.__name__.strip("_").replace("_", " ")
            times.setdefault(name, []).append((perf_counter() - started) * 1_000)

    def _one_hop(self) -> None:
        values = {"handle": self._handle(), "age": int(self._rng.integers(30, 60))}
        self._graph.query(ONE_HOP, params=values)

    def _two_hops(self) -> None:
        self._graph.query(TWO_HOPS, params={"handle": self._handle()})

    def _insert_edge(self) -> None:
        self._graph.mutate(EDGE, params={"a": self._handle(), "b": self._handle()})

    def _update_age(self) -> None:
        self._graph.mutate(AGE, params={"a": self._handle(), "age": next(self._years)})

    def _write_elsewhere(self) -> None:
        self._other.mutate(ITEM, params={"k": f"k{next(self._years)}"})

    def _load_edges(self, number: int) -> None:
        ends = [handles_of(np.sort(self._rng.integers(self._size.people, size=number))) for _ in range(2)]
        since = pa.array(np.full(number, 2026))
        self._graph.load({"Knows": pa.table({"from": ends[0], "to": ends[1], "since": since})}, "append")

    def _handle(self) -> str:
        return f"p{self._rng.integers(self._size.people):07d}"

    def _counts(self) -> DerivedCounts:
        return self._graph._graph.reading.derived.counts


def print_times(alone: Times, elsewhere: Times, mixed: Times) -> None:
    """Print the medians, and whether queries among writes are within their bar."""
    print("\n  medians, ms      in a burst  after a write elsewhere  after a write")
    for name, found in mixed.items():
        if name not in alone:
            print(f"  {name:16s}          -                        -  {median(found):13.2f}")
            continue
        burst, cold = median(alone[name]), median(elsewhere[name])
        print(
            f"  {name:16s}  {burst:9.2f}  {cold:23.2f}  {median(found):13.2f}  "
            f"{verdict(median(found) / cold, QUERY_BAR)}; "
            f"against a burst {verdict(median(found) / burst, QUERY_BAR)}"
        )


def print_builds(title: str, before: DerivedCounts, after: DerivedCounts, share: float) -> None:
    """Print what was derived meanwhile, and whether adjacency was built anew too often."""
    builds, allowed = after.csr_builds - before.csr_builds, int(share / REBUILD_SHARE)
    print(f"\n  {title}: {share:.4%} of the edges changed")
    print(f"  adjacency built {builds} times (bar {allowed}): {'ok' if builds <= allowed else 'MISSED'}")
    for name in DerivedCounts.__slots__:
        print(f"    {name}: {getattr(after, name) - getattr(before, name)}")


if __name__ == "__main__":
    main()
