"""Single-row commits at growing depth: medians, and what they ask of the disk, in both durability settings.

The graphs of all depths take turns commit by commit, so that a busy moment of the machine meets all of them.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has an `http` of its own

import omnigraph
from bench.support.counting import Counter, Sample
from bench.support.report import cpu_ms, sum_counts, verdict, wall_ms
from omnigraph.graph.graph import Graph
from tests.support.deep_graph import seed_commits

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
FILL = "query m($n: String) { insert Filler { name: $n } }"
PERIOD = 64  # commits between two rounds of upkeep
COUNTS_BAR = 0.02
MEDIAN_BAR, SEEDED_BAR = 1.25, 1.5


def main() -> None:
    """Build the graphs, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depths", type=int, nargs="+", default=[10, 1_000, 5_000])
    parser.add_argument("--seeded", type=int, default=100_000, help="synthetic commits of a further graph")
    parser.add_argument("--commits", type=int, default=3 * PERIOD)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        roots = build(Path(folder), sorted(options.depths), options.seeded)
        for durability in ("full", "process"):
            for name, source in (("one-row insert", INSERT), ("node plus edge", PAIR)):
                samples = measure(Path(folder), roots, durability, source, options.commits)
                print_result(f"{name}, durability {durability}", samples, options.seeded)


def build(folder: Path, depths: list[int], seeded: int) -> dict[int, Path]:
    """Return graphs by their number of commits; all but the seeded one were committed one by one."""
    root = folder / "growing"
    numbers = count()
    with omnigraph.init(root, SCHEMA, durability="process") as graph:
        graph.load(b'{"type":"Person","data":{"handle":"first"}}', "append")
        roots = {}
        for depth in depths:
            while len(graph._graph.state().commits) < depth:
                graph.mutate(INSERT, params={"h": f"b{next(numbers)}", "a": 1})
            roots[depth] = folder / f"depth-{depth}"
            shutil.copytree(root, roots[depth])
            print(f"built {depth} commits", flush=True)
    if seeded:
        roots[seeded] = folder / f"seeded-{seeded}"
        shutil.copytree(roots[depths[0]], roots[seeded])
        with omnigraph.open(roots[seeded], durability="process") as graph:
            fragments = len(graph._graph.state().fragments)
            seed_commits(graph, "node:Person", seeded)
        with omnigraph.open(roots[seeded], durability="process") as graph:
            while len(graph._graph.state().fragments) < fragments:  # as far from the next fold as the first
                graph.mutate(FILL, params={"n": f"f{next(numbers)}"})
        print(f"seeded {seeded} commits", flush=True)
    return roots


def measure(
    folder: Path, roots: dict[int, Path], durability: str, source: str, commits: int
) -> dict[int, list[Sample]]:
    """Commit so often on a copy of each graph, in turns."""
    copies = {depth: folder / f"copy-{root.name}" for depth, root in roots.items()}
    graphs: dict[int, Graph] = {}
    for depth, copy in copies.items():
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(roots[depth], copy)
        graphs[depth] = omnigraph.open(copy, durability=durability)
    counters = {depth: Counter(graph) for depth, graph in graphs.items()}
    samples: dict[int, list[Sample]] = {depth: [] for depth in graphs}
    for graph in graphs.values():
        graph.mutate(source, params={"h": "warm", "a": 1})
    for number in range(commits):
        for depth, graph in graphs.items():
            samples[depth].append(counters[depth].measure(_one(graph, source, number)))
    for graph in graphs.values():
        graph.close()
    return samples


def _one(graph: Graph, source: str, number: int) -> Callable[[], object]:
    return lambda: graph.mutate(source, params={"h": f"m{number}", "a": number})


def print_result(title: str, samples: dict[int, list[Sample]], seeded: int) -> None:
    """Print one table, and whether the bars hold."""
    print(f"\n{title}")
    print("    depth   median    cpu |  per commit: reads writes lists fsyncs | per period of 64, each")
    for depth, found in samples.items():
        each = sum_counts(found)
        number = len(found)
        periods = [sum_counts(found[start : start + PERIOD]).total for start in range(0, number, PERIOD)]
        print(
            f"  {depth:7d} {wall_ms(found):5.1f} ms {cpu_ms(found):3.0f} ms |             "
            f"{each.reads / number:6.1f} {each.writes / number:6.1f} {each.lists / number:5.1f} "
            f"{each.fsyncs / number:6.1f} | {periods}"
        )
    first, *others = samples
    for kind in ("total", "reads", "writes", "lists", "fsyncs"):
        sums = [getattr(sum_counts(found), kind) for found in samples.values()]
        spread = (max(sums) - min(sums)) / max(min(sums), 1)
        print(f"  {kind}: {sums}, spread {spread:.2%} (bar 2%): {'ok' if spread <= COUNTS_BAR else 'MISSED'}")
    for depth in others:
        bar = SEEDED_BAR if depth == seeded else MEDIAN_BAR
        ratio = wall_ms(samples[depth]) / wall_ms(samples[first])
        cpu = cpu_ms(samples[depth]) / cpu_ms(samples[first])
        print(f"  depth {depth} against {first}: median {verdict(ratio, bar)}; cpu {cpu:.2f}x")


if __name__ == "__main__":
    main()
