"""What a graph in an object store asks of it: requests by kind, the longest chain of them, milliseconds.

Every request goes through a proxy that records it and delays its answer. Of two requests that overlap none
waited for the other; the chain is the most that did wait. `--trace` lists the requests of one operation. A
line ends with what it has more of than its bar.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has a `requests` of its own

import omnigraph
from bench.support.store import Asked, asked, object_kind, short_key, store_behind_proxy
from omnigraph.graph.graph import Graph
from tests.support.deep_graph import seed_commits
from tests.support.proxy import KINDS, StoreProxy
from tests.support.s3 import upload

SCHEMA = """\
node Person { handle: String @key  age: I64? }
edge Knows: Person -> Person
node Filler { name: String @key }
"""
INSERT = "query m($h: String, $a: I64) { insert Person { handle: $h, age: $a } }"
PAIR = (
    "query m($h: String, $a: I64) { insert Person { handle: $h, age: $a } "
    'insert Knows { from: $h, to: "first" } }'
)
THREE = (
    "query m($h: String, $a: I64) { insert Person { handle: $h, age: $a } "
    'insert Knows { from: $h, to: "first" } insert Filler { name: $h } }'
)
UPDATE = "query m($h: String, $a: I64) { update Person set { age: $a } where handle = $h }"
DELETE = "query m($h: String, $a: I64) { delete Person where handle = $h }"
ONE_HOP = (
    "query q($h: String) { match { $p: Person { handle: $h } $p knows $f } return { $f.handle, $f.age } }"
)
SEEDED_FROM = 10  # commits that are made one by one before the others are written at once
COMMITS = {"commit, one table": INSERT, "commit, two tables": PAIR, "commit, three tables": THREE}
CHANGES = {"update": UPDATE, "delete": DELETE}
TABLES = 3  # of the graph: two node types and an edge type
OPERATIONS = (
    "open read-only",
    "first query",
    "warm query",
    "open read-write",
    "first commit",
    *COMMITS,
    *CHANGES,
    "load, one table",
    "branch create",
    "commit on a branch",
    "query on a branch",
    "merge 10 + 10",
)


@dataclass(frozen=True, slots=True)
class Bar:
    """The most that an operation may ask for; nothing is said of what is None."""

    all: int | None = None
    get: int | None = None
    list: int | None = None
    put: int | None = None
    chain: int | None = None
    ms: float | None = None  # with 20 ms for each answer

    def missed(self, asked: "Asked", ms: float) -> str:
        """Say what there is more of."""
        found = {
            "all": len(asked.requests),
            "get": asked.of_kind("GET") + asked.of_kind("HEAD"),
            "list": asked.of_kind("LIST"),
            "put": asked.of_kind("PUT"),
            "chain": asked.chain,
            "ms": ms,
        }
        over = [
            f"{name} {value:.0f} > {bar}"
            for name, value in found.items()
            if (bar := getattr(self, name)) is not None and value > bar
        ]
        return f"MISSED {', '.join(over)}" if over else "ok"


def commit_bar(tables: int, ms: float | None = None) -> Bar:
    """Return the bar of a warm commit of so many tables."""
    return Bar(get=4 + 2 * tables, list=3, put=3 * tables + 6, chain=14, ms=ms)


BARS = {
    "open read-only": Bar(all=8),
    "first query": Bar(all=25),
    "warm query": Bar(all=1),
    "query on a branch": Bar(all=1),
    "open read-write": Bar(all=min(25, 12 + 2 * TABLES)),
    "commit, one table": commit_bar(1, 400),
    "commit, two tables": commit_bar(2),
    "commit, three tables": commit_bar(3),
    "commit on a branch": commit_bar(1, 400),
    "update": commit_bar(1, 400),
    "delete": commit_bar(1, 400),
    "load, one table": commit_bar(1),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A graph to measure: its commits, and how many of them the manifest holds in fragments of their own."""

    depth: int
    unfolded: int
    folder: Path


def main() -> None:
    """Build the graphs, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depths", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--unfolded", type=int, nargs="+", default=[1, 30, 55], help="commits since a fold")
    parser.add_argument("--one-by-one", type=int, default=1_000, help="deeper graphs are seeded")
    parser.add_argument("--delay", type=float, default=20.0, help="of every answer, in milliseconds")
    parser.add_argument("--commits", type=int, default=3, help="of each kind; the median is printed")
    parser.add_argument("--graphs", type=Path, help="where built graphs are kept for the next run")
    parser.add_argument("--trace", choices=OPERATIONS, help="list the requests of one operation")
    parser.add_argument("--objects", action="store_true", help="count the requests by object as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder, store_behind_proxy() as proxy:
        os.environ["OMNIGRAPH_CACHE_DIR"] = ""  # so that a first query finds nothing on this disk
        kept = options.graphs or Path(folder, "graphs")
        kept.mkdir(parents=True, exist_ok=True)
        print_header()
        for case in build(kept, sorted(options.depths), sorted(options.unfolded), options.one_by_one):
            found = measure(proxy, case, options)
            for name, samples in found.items():
                print_samples(case, name, samples, by_object=options.objects)
                if name == options.trace:
                    print_trace(samples[0])


# Graphs


def build(folder: Path, depths: list[int], distances: list[int], one_by_one: int) -> Iterator[Case]:
    """Yield graphs by depth, and by the number of commits since the manifest was last folded."""
    for depth in depths:
        base = folder / f"depth-{depth}"
        if not base.exists():
            _grow(base, min(depth, one_by_one if depth <= one_by_one else SEEDED_FROM))
            if depth > one_by_one:
                with omnigraph.open(base, durability="process") as graph:
                    seed_commits(graph, "node:Person", depth - SEEDED_FROM)
        with omnigraph.open(base, mode="ro") as graph:
            unfolded = len(graph._graph.state().fragments)
        if depth < max(distances):  # was never folded
            yield Case(depth, unfolded, base)
            continue
        for distance in distances:
            copy = folder / f"depth-{depth}-{distance}"
            if not copy.exists():
                shutil.copytree(base, copy)
                _unfold(copy, distance)
            yield Case(depth, distance, copy)


def _grow(root: Path, depth: int) -> None:
    numbers = count()
    with omnigraph.init(root, SCHEMA, durability="process") as graph:
        graph.load(b'{"type":"Person","data":{"handle":"first"}}', "append")
        while len(graph._graph.state().commits) < depth:
            _commit(graph, f"b{next(numbers)}")


def _unfold(root: Path, distance: int) -> None:
    """Commit until the manifest has so many fragments, from the next fold on."""
    numbers = count()
    with omnigraph.open(root, durability="process") as graph:
        while len(graph._graph.state().fragments) > distance:
            _commit(graph, f"u{next(numbers)}")
        while len(graph._graph.state().fragments) < distance:
            _commit(graph, f"u{next(numbers)}")


def _commit(graph: Graph, handle: str) -> None:
    graph.mutate(PAIR if int(handle[1:]) % 2 else INSERT, params={"h": handle, "a": 1})


# Measuring


def measure(proxy: StoreProxy, case: Case, options: argparse.Namespace) -> dict[str, list[Asked]]:
    """Return what each operation asked for, on a copy of a graph in the store."""
    uri = upload(case.folder, "http://{}:{}".format(*proxy.upstream))
    with omnigraph.open(uri) as graph:  # as the store would have it, had it been written there
        graph.mutate(PAIR, params={"h": "in the store", "a": 1})
    proxy.delay_s = options.delay / 1_000
    found: dict[str, list[Asked]] = {}

    def take(name: str, work: Callable[[], object]) -> None:
        found.setdefault(name, []).append(asked(proxy, work))

    def ask(graph: Graph) -> None:
        assert len(graph.query(ONE_HOP, params={"h": "b1"}).rows) == 1

    opened: list[Graph] = []
    take("open read-only", lambda: opened.append(omnigraph.open(uri, mode="ro")))
    take("first query", lambda: ask(opened[0]))
    ask(opened[0])
    take("warm query", lambda: ask(opened[0]))
    opened.pop().close()
    take("open read-write", lambda: opened.append(omnigraph.open(uri)))
    graph = opened[0]
    take("first commit", _mutation(graph, INSERT, "the first"))
    for name, source in COMMITS.items():
        graph.mutate(source, params={"h": f"{name} warm", "a": 1})
        for number in range(options.commits):
            take(name, _mutation(graph, source, f"{name} {number}"))
    for name, source in CHANGES.items():
        graph.mutate(source, params={"h": "commit, one table warm", "a": 2})
        for number in range(options.commits):
            take(name, _mutation(graph, source, f"commit, one table {number}"))
    for number in range(options.commits):
        take("load, one table", _load(graph, f"l{number}"))
    take("branch create", lambda: graph.create_branch("side"))
    with graph.branch("side") as side:
        _mutation(side, INSERT, "on a branch")()  # makes a fork of the table
        for number in range(options.commits):
            take("commit on a branch", _mutation(side, INSERT, f"on a branch {number}"))
        for _ in range(2):  # the second one puts adjacency into the cache
            ask(side)
        take("query on a branch", lambda: ask(side))
    proxy.delay_s = 0
    graph.load(_people("s"), "append", branch="side")
    graph.load(_people("m"), "append")
    proxy.delay_s = options.delay / 1_000
    take("merge 10 + 10", lambda: graph.merge("side"))
    proxy.delay_s = 0
    graph.close()
    return found


def _mutation(graph: Graph, source: str, handle: str) -> Callable[[], object]:
    return lambda: graph.mutate(source, params={"h": handle, "a": 1})


def _load(graph: Graph, letters: str) -> Callable[[], object]:
    return lambda: graph.load(_people(letters), "append", index=False)


def _people(letter: str) -> bytes:
    lines = (f'{{"type":"Person","data":{{"handle":"{letter}x{number}"}}}}' for number in range(10))
    return "\n".join(lines).encode()


# Printing


def print_header() -> None:
    """Print the names of the columns."""
    kinds = "".join(f"{kind:>7}" for kind in KINDS)
    named = f"{'depth':>6} {'unfolded':>8}  {'operation':<20} {'all':>4}"
    print(f"{named}{kinds}  {'listed KB':>9} {'chain':>5} {'ms':>6}")


def print_samples(case: Case, name: str, samples: list[Asked], *, by_object: bool) -> None:
    """Print one line for an operation, and what it asked for if that is wanted."""
    chosen = sorted(samples, key=lambda sample: len(sample.requests))[len(samples) // 2]
    kinds = "".join(f"{chosen.of_kind(kind):7d}" for kind in KINDS)
    ms = median(sample.ms for sample in samples)
    listed_kb = sum(request.size for request in chosen.requests if request.kind == "LIST") / 1_000
    print(
        f"{case.depth:6d} {case.unfolded:8d}  {name:<20} {len(chosen.requests):4d}{kinds}  "
        f"{listed_kb:9.0f} {chosen.chain:5d} {ms:6.0f}  {BARS.get(name, Bar()).missed(chosen, ms)}",
        flush=True,
    )
    if by_object:
        objects = Counter((request.kind, object_kind(request)) for request in chosen.requests)
        for (kind, what), number in objects.most_common():
            print(f"{'':17}{number:4d} {kind} {what}")


def print_trace(sample: Asked) -> None:
    """List the requests of one operation in the order in which they began."""
    first = sample.requests[0].start if sample.requests else 0.0
    for number, request in enumerate(sample.requests, 1):
        begun, took = (request.start - first) * 1_000, (request.end - request.start) * 1_000
        print(
            f"  {number:3d} {begun:7.1f} +{took:5.1f} ms  {request.kind:<6} {request.status} "
            f"{object_kind(request):<26} {short_key(request)} {request.part}"
        )


if __name__ == "__main__":
    main()
