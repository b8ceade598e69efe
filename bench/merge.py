"""Three-way merges of two branches that changed a thousand rows each, beside doltlite with the same table.

Engines and sizes take turns merge by merge, so that a busy moment of the machine meets all of them. Every
merge starts from the same main: both sides are new branches of it. The changed keys are one run of the table
on each side, or spread all over it. Creating a branch is counted, with few tables and with many.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has an `http` of its own

import omnigraph
from bench.support.counting import Counter, Sample
from bench.support.merge_sides import Engine, Merged, Ours, doltlite, has_doltlite, sides
from bench.support.report import sum_counts, verdict, wall_ms

SEED = 20_262
SMALL, MIDDLE, LARGE = 100_000, 1_000_000, 3_000_000
WAYS = ("clustered", "random")
PEER_BARS = {"clustered": 1.0, "random": 2.0}
SIZE_BARS = {"clustered": 1.5, "random": 4.0}
COMMITS, COMMITS_BARS = (10, 500), {"clustered": 1.5, "random": 1.5}
ROWS_READ_MAX = 4  # for each changed row: base and both sides, and its like by a lookup
TABLES, CREATES = (4, 150), 9

Key = tuple[str, str]  # engine with its size, and how the keys lie


def main() -> None:
    """Load the tables, merge, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changed", type=int, default=1_000, help="rows that each side changes")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument(
        "--sizes", type=int, nargs=3, default=[SMALL, MIDDLE, LARGE], help="rows of the tables"
    )
    parser.add_argument("--durability", choices=["full", "process"], default="process")
    parser.add_argument("--peer-python", default=sys.executable, help="an interpreter that has doltlite")
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=["sizes", "commits", "branches"],
        default=["sizes", "commits", "branches"],
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        for part in options.parts:
            root = Path(folder, part)
            root.mkdir()
            if part == "sizes":
                measure_sizes(root, options)
            elif part == "commits":
                measure_commits(root, options)
            else:
                measure_creates(root, options.durability)


def measure_sizes(folder: Path, options: argparse.Namespace) -> None:
    """Merge on tables of three sizes, and on the peer's of the middle one."""
    small, middle, large = options.sizes
    with ExitStack() as stack:
        engines: dict[str, tuple[Engine, int]] = {}
        for rows in options.sizes:
            ours = Ours(folder / str(rows), options.durability)
            stack.callback(ours.close)
            engines[f"ours {rows}"] = (ours, rows)
        peer = f"doltlite {middle}"
        if has_doltlite(options.peer_python):
            database = stack.enter_context(
                doltlite(folder / "peer.db", options.durability, options.peer_python)
            )
            print(database.version())
            engines[peer] = (database, middle)
        else:
            print("doltlite is not installed: its part is missing")
        for name, (engine, rows) in engines.items():
            started = perf_counter()
            engine.load(rows)
            print(f"{name}: loaded in {perf_counter() - started:.0f} s", flush=True)
        found = rounds(engines, options.changed, options.rounds)
    title = f"{options.changed} + {options.changed} changed rows, durability {options.durability}"
    print(f"\nmerge of {title}, medians of {options.rounds}")
    print_merges(found, options.changed)
    for way in WAYS:
        if (peer, way) in found:
            print(f"  {way}: ours against {peer}: {_verdict(found, f'ours {middle}', peer, way, PEER_BARS)}")
        ratio = _verdict(found, f"ours {large}", f"ours {small}", way, SIZE_BARS)
        print(f"  {way}: {large} rows against {small}: {ratio}")


def rounds(engines: Mapping[str, tuple[Engine, int]], changed: int, number: int) -> dict[Key, list[Merged]]:
    """Merge so often with each engine, in turns, after one merge each that is not counted."""
    rng = np.random.default_rng(SEED)
    found: dict[Key, list[Merged]] = {(name, way): [] for name in engines for way in WAYS}
    for place in range(number + 1):
        for way in WAYS:
            for name, (engine, rows) in engines.items():
                source, target = sides(
                    rng, rows, changed, 1, is_clustered=way == "clustered", name=f"{way}-{place}"
                )
                engine.edit(source)
                engine.edit(target)
                merged = engine.merge(source, target)
                if place:
                    found[name, way].append(merged)
    return found


def measure_commits(folder: Path, options: argparse.Namespace) -> None:
    """Merge sides of few and of many commits, the same number of rows in all."""
    ours = Ours(folder / "graph", options.durability)
    ours.load(options.sizes[0])
    rng = np.random.default_rng(SEED)
    names = {commits: f"{commits} commits" for commits in COMMITS}
    found: dict[Key, list[Merged]] = {(name, way): [] for name in names.values() for way in WAYS}
    numbers = count()
    for _ in range(max(3, options.rounds // 2)):
        for way in WAYS:
            for commits, name in names.items():
                pair = sides(
                    rng,
                    options.sizes[0],
                    options.changed,
                    commits,
                    is_clustered=way == "clustered",
                    name=f"{next(numbers)}",
                )
                for side in pair:
                    ours.edit(side)
                found[name, way].append(ours.merge(*pair))
    ours.close()
    print(f"\nthe same rows in few and in many commits on each side, {options.sizes[0]} rows, upkeep on")
    print_merges(found, options.changed)
    few, many = names.values()
    for way in WAYS:
        print(f"  {way}: {many} against {few}: {_verdict(found, many, few, way, COMMITS_BARS)}")


def measure_creates(folder: Path, durability: str) -> None:
    """Create branches of a graph with few tables and of one with many, in turns, and count the requests."""
    graphs = {}
    for tables in TABLES:
        schema = "\n".join(f"node T{number} {{ key: String @key }}" for number in range(tables))
        graph = omnigraph.init(folder / str(tables), schema, durability=durability)
        graph.load(
            b"\n".join(b'{"type": "T%d", "data": {"key": "a"}}' % number for number in range(tables)),
            "append",
            index=False,
        )
        graphs[tables] = (graph, Counter(graph))
    samples: dict[int, list[Sample]] = {tables: [] for tables in TABLES}
    for number in range(CREATES):
        for tables, (graph, counter) in graphs.items():
            name = f"branch-{number}"
            samples[tables].append(counter.measure(lambda graph=graph, name=name: graph.create_branch(name)))  # type: ignore[misc]
    for graph, _ in graphs.values():
        graph.close()
    print(f"\ncreating a branch, {CREATES} times\n   tables   median | reads writes lists fsyncs")
    for tables, found in samples.items():
        each = sum_counts(found)
        asked = f"{each.reads:5d} {each.writes:6d} {each.lists:5d} {each.fsyncs:6d}"
        print(f"  {tables:7d} {wall_ms(found):5.1f} ms | {asked}")
    few, many = (sum_counts(samples[tables]) for tables in TABLES)
    print(f"  requests equal: {'ok' if few == many else 'MISSED'}")


# Print


def print_merges(found: Mapping[Key, Sequence[Merged]], changed: int) -> None:
    """Print one line for each engine and way."""
    print("  engine                way          median  quickest      cpu   rows read, for each changed row")
    for (name, way), merges in found.items():
        quickest = min(each.wall_ms for each in merges)
        times = f"{_ms(merges):8.1f} ms {quickest:6.1f} ms {_cpu_ms(merges):5.0f} ms"
        print(f"  {name:21s} {way:9s} {times}   {_read(merges, 2 * changed)}")


def _read(merges: Iterable[Merged], changed: int) -> str:
    counts = [each.rows_read for each in merges if each.rows_read is not None]
    if not counts:
        return "not counted"
    share = max(counts) / changed
    return (
        f"{max(counts):9d}  {share:.2f} (bar {ROWS_READ_MAX}): {'ok' if share <= ROWS_READ_MAX else 'MISSED'}"
    )


def _verdict(
    found: Mapping[Key, Sequence[Merged]], one: str, other: str, way: str, bars: Mapping[str, float]
) -> str:
    left, right = found[one, way], found[other, way]
    cpu = _cpu_ms(left) / _cpu_ms(right)
    return f"{verdict(_ms(left) / _ms(right), bars[way])}; cpu {cpu:.2f}x"


def _ms(merges: Iterable[Merged]) -> float:
    return median(each.wall_ms for each in merges)


def _cpu_ms(merges: Iterable[Merged]) -> float:
    return median(each.cpu_ms for each in merges)


if __name__ == "__main__":
    started = perf_counter()
    main()
    print(f"\nin {perf_counter() - started:.0f} s")
