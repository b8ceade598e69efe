"""What thousands of small commits leave behind, with maintenance on: commits, lookups, files.

A graph is loaded, then written row by row by a process with a maintenance thread. Its last commits are made
in turns with the first ones of a copy that was taken before, so that a busy moment of the machine meets both.
Its final content is loaded into another graph in one piece, and both are asked the same questions, in turns
as well. At last the clock of the aged graph goes past every horizon and grace period there is, a cleanup
keeps ten versions and trims the manifest, and what is left is compared with the graph of one load. Nothing is
optimized by hand in between: the maintenance thread alone has to do.

    python bench/aging.py
    python bench/aging.py --commits 200 --people 2000 --edges 6000
    python bench/aging.py --commits 5000 --people 20000 --edges 60000 --durability full
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter

import pyarrow as pa

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has an `http` of its own

import omnigraph
from bench.support.report import verdict
from omnigraph.commit.publish import HORIZON_S
from omnigraph.commit.reclaim import ORPHAN_GRACE_S
from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.graph.graph import Graph

SCHEMA = """\
node Person { name: String @key  age: I64?  city: String? }
edge Knows: Person -> Person { since: I64? }
"""
INSERT = "query m($n: String, $a: I64) { insert Person { name: $n, age: $a } }"
UPDATE = "query m($n: String, $a: I64) { update Person set { age: $a } where name = $n }"
LINK = "query m($n: String, $o: String) { insert Knows { from: $n, to: $o } }"
LOOKUP = "query q($n: String) { match { $p: Person $p.name = $n } return { $p.age } }"
HOP = "query q($n: String) { match { $p: Person $p.name = $n $p knows $o } return { $o.name } }"
COMMIT_BAR, READ_BAR, BYTES_BAR = 1.25, 1.25, 2.0
SMALL_FRAGMENTS, FILES_BAR, MANIFEST_BYTES_BAR = 64, 300, 5_000_000
VERSIONS_KEPT = 10
HORIZONS_S = ORPHAN_GRACE_S + HORIZON_S  # no version or file is spared for its age
WINDOW = 100  # commits that are compared at either end
QUESTIONS = 300
ACTOR = "act-aging"
SEED = 15


def main() -> None:
    """Age a graph, load a fresh one of the same content, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--commits", type=int, default=5_000, help="of one row each")
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--edges", type=int, default=60_000)
    parser.add_argument("--durability", choices=["full", "process"], default="process")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        aged, young, fresh = (Path(folder, name) for name in ("aged", "young", "fresh"))
        build(aged, options.people, options.edges)
        shutil.copytree(aged, young)
        age(aged, young, options)
        report_layout(aged)
        copy_content(aged, fresh)
        compare_reads(aged, fresh, options.people)
        report_cleanup(aged, fresh, options.commits)


def build(root: Path, people: int, edges: int) -> None:
    """Load the graph in one piece."""
    random = Random(SEED)
    names = [name_of(number) for number in range(people)]
    with omnigraph.init(root, SCHEMA, durability="process") as graph:
        nodes = pa.table({"name": names, "age": list(range(people)), "city": ["Bonn"] * people})
        ends = {"from": random.choices(names, k=edges), "to": random.choices(names, k=edges)}
        graph.load({"Person": nodes, "Knows": pa.table({**ends, "since": list(range(edges))})}, "append")


def name_of(number: int) -> str:
    """Return the name of a person."""
    return f"p{number:07d}"


def age(root: Path, young: Path, options: argparse.Namespace) -> None:
    """Write row by row with a maintenance thread, the last rows in turns with the first of a young graph."""
    done, times, first = list(writes(options.commits, options.people)), [], []
    with (
        omnigraph.open(root, durability=options.durability, maintenance="background") as graph,
        omnigraph.open(young, durability=options.durability, maintenance="background") as other,
    ):
        for number, (text, params) in enumerate(done):
            turn = number - len(done) + WINDOW
            if turn >= 0:
                first.append(write(other, *done[turn]))
            times.append(write(graph, text, params))
    begun, last = median(times[:WINDOW]), median(times[-WINDOW:])
    print(f"{len(times)} commits, the slowest in {max(times):.0f} ms, the first {WINDOW} in {begun:.1f} ms")
    print(f"  in turns: the first {WINDOW} of a young graph {median(first):.1f} ms, the last {last:.1f} ms")
    print(f"  last / first: {verdict(last / median(first), COMMIT_BAR)}")


def write(graph: Graph, text: str, params: dict[str, object]) -> float:
    """Commit one row, and return how long that took."""
    return timed(lambda: graph.mutate(text, params=params, actor=ACTOR))


def writes(count: int, people: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield writes of one row: new people, changed ones, and edges between them."""
    random, known = Random(SEED + 1), people
    for number in range(count):
        kind = random.random()
        if kind < 0.4:
            yield INSERT, {"n": name_of(known), "a": number}
            known += 1
        elif kind < 0.7:
            yield UPDATE, {"n": name_of(random.randrange(known)), "a": number}
        else:
            yield LINK, {"n": name_of(random.randrange(known)), "o": name_of(random.randrange(known))}


def report_layout(root: Path) -> None:
    """Print the live fragments of each table, and what the indexes cover."""
    with omnigraph.open(root, mode="ro") as graph:
        for table_key, entry in graph.snapshot().entries.items():
            parts = graph._graph.parts
            count, bar = (
                parts.open(entry).fragment_count,
                SMALL_FRAGMENTS + entry.row_count // MAX_FRAGMENT_ROWS,
            )
            is_met = "ok" if count <= bar else "MISSED"
            print(f"  {table_key}: {entry.row_count} rows in {count} fragments (bar {bar}): {is_met}")


def copy_content(aged: Path, fresh: Path) -> None:
    """Load what the aged graph shows into a new one."""
    with (
        omnigraph.open(aged, mode="ro") as source,
        omnigraph.init(fresh, SCHEMA, durability="process") as target,
    ):
        data = b"".join(source.export().lines())
        target.load(data, "append")


def compare_reads(aged: Path, fresh: Path, people: int) -> None:
    """Ask both graphs the same questions in turns."""
    random = Random(SEED + 2)
    with omnigraph.open(aged) as old, omnigraph.open(fresh) as new:
        for what, text in (("point lookup", LOOKUP), ("one hop", HOP)):
            times: dict[str, list[float]] = {"aged": [], "fresh": []}
            for number in range(QUESTIONS):
                params: dict[str, object] = {"n": name_of(random.randrange(people))}
                turns = [("aged", old), ("fresh", new)]
                for name, graph in turns if number % 2 else reversed(turns):
                    times[name].append(
                        timed(lambda graph=graph, text=text, params=params: ask(graph, text, params))
                    )
            found = {name: median(taken[QUESTIONS // 10 :]) for name, taken in times.items()}
            shown = ", ".join(f"{name} {value:.2f} ms" for name, value in found.items())
            print(f"{what}: {shown}: {verdict(found['aged'] / found['fresh'], READ_BAR)}")


def ask(graph: Graph, text: str, params: dict[str, object]) -> int:
    """Ask one question."""
    return graph.query(text, params=params).row_count


def timed(run: Callable[[], object]) -> float:
    """Return how long something takes, in milliseconds."""
    started = perf_counter()
    run()
    return (perf_counter() - started) * 1_000


def report_cleanup(aged: Path, fresh: Path, commits: int) -> None:
    """Clean up behind every horizon, and compare what is left with a graph that was loaded in one piece."""
    with omnigraph.open(aged) as graph:
        let_pass(graph, HORIZONS_S)
        result = graph.cleanup(keep=VERSIONS_KEPT)
    print(
        f"cleanup of all but {VERSIONS_KEPT} versions: "
        f"{result.old_versions_removed} versions, {result.bytes_removed / 1e6:.1f} MB"
    )
    for row in result.failed:
        print(f"  {row.table_key}: {row.error}: MISSED")
    with omnigraph.open(aged, mode="ro") as graph:
        listed = sum(commit.actor_id == ACTOR for commit in graph.commits())
    files, size = on_disk(aged, ("nodes", "edges"))
    _, loaded = on_disk(fresh, ("nodes", "edges"))
    _, manifest = on_disk(aged, ("__manifest",))
    print(f"  table files: {files} (bar {FILES_BAR}): {'ok' if files <= FILES_BAR else 'MISSED'}")
    print(f"  table bytes: {size / 1e6:.1f} MB, {verdict(size / loaded, BYTES_BAR)}")
    is_met = "ok" if manifest <= MANIFEST_BYTES_BAR else "MISSED"
    print(f"  __manifest: {manifest / 1e6:.1f} MB (bar {MANIFEST_BYTES_BAR / 1e6:.0f} MB): {is_met}")
    print(
        f"  commits listed with their actor: {listed} of {commits}: {'ok' if listed == commits else 'MISSED'}"
    )


def let_pass(graph: Graph, seconds: float) -> None:
    """Let the clock of a handle be ahead, by which versions and files are old."""
    parts = graph._graph.parts
    now = parts.clock() + int(seconds * 1_000_000)
    object.__setattr__(parts, "clock", lambda: now)


def on_disk(root: Path, folders: tuple[str, ...]) -> tuple[int, int]:
    """Return the files below some folders of a graph, and their bytes."""
    found = [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]
    return len(found), sum(path.stat().st_size for path in found)


if __name__ == "__main__":
    main()
