"""What hops cost when the edges of a node lie together, and when they lie anywhere.

One graph is loaded twice: its edges in the order of their sources, as an input that is sorted brings
them, and in a random order. Both are asked the same hops from 1, 10 and 100 nodes in turns, so that a
busy moment of the machine meets both: warm through the index on `src`; cold, where no page of the graph
is in memory and the handle is new; and through the adjacency, which is built once and kept. Cold hops
also say what they read, and in how many requests: on an object store, each is one.

    python bench/clustering.py
    python bench/clustering.py --people 100000 --edges 500000 --rounds 10
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has an `http` of its own

import omnigraph
from bench.support.social import SEED, Size, make_social
from omnigraph.graph.graph import Graph
from omnigraph.operations.query import TRAVERSAL_MODE

SCHEMA = """\
node Person { handle: String @key  ten: I64 @index  hundred: I64 @index }
edge Knows: Person -> Person { since: I64? }
"""
HOP = "match { $p: Person { %s: $n }  $p knows $f } return { count($f) as hops } }"
HOPS: Mapping[int, str] = {
    1: "query q($n: String) { " + HOP % "handle",
    10: "query q($n: I64) { " + HOP % "ten",
    100: "query q($n: I64) { " + HOP % "hundred",
}
ORDERS = ("by source", "at random")


def main() -> None:
    """Load both graphs, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        os.environ["OMNIGRAPH_CACHE_DIR"] = f"{folder}/cache"
        roots = {order: Path(folder, order.replace(" ", "-")) for order in ORDERS}
        load(roots, options.people, options.edges)
        print(f"\n{options.people:,} people, {options.edges:,} edges, medians of {options.rounds}, in ms")
        print(f"{'':<26}" + "".join(f"{order:>32}" for order in ORDERS))
        for nodes in HOPS:
            asked = values(nodes, options.people, 2 * options.rounds)
            report(f"{nodes} nodes, warm, index", warm(roots, nodes, asked, "indexed"))
            report(f"{nodes} nodes, cold, index", cold(roots, nodes, asked[: options.rounds]))
            report(f"{nodes} nodes, adjacency", warm(roots, nodes, asked, "csr"))
        built = {order: [(adjacency_ms(root), 0, 0)] for order, root in roots.items()}
        report("adjacency, from the files", built)


def load(roots: Mapping[str, Path], people: int, edges: int) -> None:
    """Load the same graph twice, each in one piece."""
    social, rng = make_social(Size(people, edges, has_vectors=False)), np.random.default_rng(SEED)
    groups = pa.array(rng.permutation(people))
    nodes = pa.table(
        {
            "handle": social.people["handle"],
            "ten": [number // 10 for number in groups.to_pylist()],
            "hundred": [number // 100 for number in groups.to_pylist()],
        }
    )
    anywhere = pa.array(rng.permutation(social.knows.num_rows))
    for order, root in roots.items():
        knows = social.knows if order == ORDERS[0] else social.knows.take(anywhere)
        started = perf_counter()
        with omnigraph.init(root, SCHEMA, durability="process") as graph:
            graph.load({"Person": nodes, "Knows": knows}, "append")
        took_s, size = perf_counter() - started, sum(path.stat().st_size for path in files(root))
        print(f"edges {order}: loaded in {took_s:.0f} s, {size / 1e6:.0f} MB", flush=True)


def values(nodes: int, people: int, count: int) -> list[str | int]:
    """Draw what is asked for: a person, or a group of them that lie anywhere."""
    rng = np.random.default_rng([SEED, nodes])
    drawn = rng.choice(people // nodes, count, replace=False).tolist()
    return [f"p{number:07d}" for number in drawn] if nodes == 1 else drawn


Times = dict[str, list[tuple[float, int, int]]]  # by order: milliseconds, bytes and requests of reading


def warm(roots: Mapping[str, Path], nodes: int, asked: list[str | int], mode: str) -> Times:
    """Ask open graphs in turns, everything twice; the second half counts."""
    os.environ[TRAVERSAL_MODE] = mode
    times: Times = {order: [] for order in roots}
    graphs = {order: omnigraph.open(root, mode="ro") for order, root in roots.items()}
    for value in [*asked, *asked[len(asked) // 2 :]]:
        for order, graph in graphs.items():
            times[order].append((timed_ms(graph, nodes, value), 0, 0))
    for graph in graphs.values():
        graph.close()
    return {order: found[len(asked) :] for order, found in times.items()}


def cold(roots: Mapping[str, Path], nodes: int, asked: list[str | int]) -> Times:
    """Ask new handles of graphs of which no page is in memory; opening them is not counted."""
    os.environ[TRAVERSAL_MODE] = "indexed"
    times: Times = {order: [] for order in roots}
    for value in asked:
        for order, root in roots.items():
            forget_pages(root)
            with omnigraph.open(root, mode="ro") as graph:
                store = graph._graph.parts.store
                before, asked_for = bytes_read(), store.io_stats().reads
                took_ms = timed_ms(graph, nodes, value)
                requests = store.io_stats().reads - asked_for
                times[order].append((took_ms, bytes_read() - before, requests))
    return times


def adjacency_ms(root: Path) -> float:
    """Return how long the first hop takes that builds the adjacency, with no page in memory."""
    os.environ[TRAVERSAL_MODE] = "csr"
    os.environ["OMNIGRAPH_CACHE_DIR"] = str(root.with_name(f"{root.name}-cache"))
    forget_pages(root)
    with omnigraph.open(root, mode="ro") as graph:
        return timed_ms(graph, 1, "p0000001")


def timed_ms(graph: Graph, nodes: int, value: str | int) -> float:
    """Ask once."""
    started = perf_counter()
    graph.query(HOPS[nodes], params={"n": value}).to_pylist()
    return (perf_counter() - started) * 1_000


def files(root: Path) -> list[Path]:
    """Return the files of a graph."""
    return [path for path in root.rglob("*") if path.is_file()]


def forget_pages(root: Path) -> None:
    """Have the system drop what it keeps of a graph in memory."""
    for path in files(root):
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)  # what is not written yet is kept
            os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(number)


def bytes_read() -> int:
    """Return how much this process has had read from the disk."""
    text = Path("/proc/self/io").read_text(encoding="ascii")
    return int(dict(line.split(": ") for line in text.splitlines())["read_bytes"])


def report(what: str, times: Times) -> None:
    """Print a line: medians, and the ratio of the second order to the first."""
    cells = []
    for found in times.values():
        took, read, requests = (median(column) for column in zip(*found, strict=True))
        cells.append(f"{took:10.1f}" + (f", {read / 1_000:,.0f} kB, {requests:.0f} reads" if read else ""))
    one, other = (median(took for took, *_ in found) for found in times.values())
    print(f"{what:<26}" + "".join(f"{cell:>32}" for cell in cells) + f"   {other / one:.2f}x", flush=True)


if __name__ == "__main__":
    main()
