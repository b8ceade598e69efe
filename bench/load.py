"""Loads on Spark, beside what Spark needs to write the same rows to Parquet, and beside another database.

All take turns, so that a busy moment of the machine meets all of them, and the session is warm: a first round
is not counted. A load is validated, durable and one commit; its indexes come behind it and are told apart.
Spark's own files are neither checked nor synced.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has an `http` of its own

from bench.support.load_alone import alone
from bench.support.load_data import BOUNDED_SCHEMA, OPEN_SCHEMA, Files, Size, write_ndjson, write_parquet
from bench.support.load_dirt import cut, spoilt
from bench.support.load_memory import Peaks, load_peaks
from bench.support.load_peers import copy_seconds, lance_seconds
from bench.support.load_spark import Loaded, SparkSide
from bench.support.report import verdict

SIZES = {"small": Size(100_000, 500_000), "large": Size(1_000_000, 5_000_000)}
GROWTH = 4  # the memory of a load is measured with so many times the edges, too
CASES = ("open", "checked", "ndjson", "dirt", "memory")
PARQUET_BAR, CHECKED_BAR, JSON_BAR, COPY_BAR, MEMORY_BAR = 1.5, 3.0, 1.5, 1.0, 1.3
SKIP_BAR, FILES_BAR = 1.6, 2.0  # against the same rows without a fault, in one file for each type
FILE_ROWS = 120
PEER = "ladybug"
OURS = "load"


@dataclass(frozen=True, slots=True)
class Bar:
    """Who we are compared with, and by how much we may be slower; none is for information."""

    title: str
    work: Callable[[], float]
    most: float | None = None


def main() -> None:
    """Make the files, load, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=list(SIZES), default="large")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    options = parser.parse_args()
    size = SIZES[options.size]
    print(f"{size.people:,} nodes, {size.edges:,} edges, {options.cores} cores, load {_load()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        place = Path(folder)
        if set(options.cases) - {"memory"}:
            measure_times(place, size, options.cases, options.rounds, options.cores)
        if "memory" in options.cases:
            measure_memory(place, size, options.cores)


def measure_times(folder: Path, size: Size, cases: Sequence[str], rounds: int, cores: int) -> None:
    """Run the cases one after the other on one session."""
    side = SparkSide(folder, cores)
    try:
        if "open" in cases:
            open_case(side, folder, size, rounds)
        if "checked" in cases:
            checked_case(side, folder, size, rounds)
        if "ndjson" in cases:
            ndjson_case(side, folder, size, rounds)
        if "dirt" in cases:
            dirt_case(side, folder, size, rounds)
    finally:
        side.close()


def open_case(side: SparkSide, folder: Path, size: Size, rounds: int) -> None:
    """Parquet with generated edge ids and open cardinality."""
    files = write_parquet(folder / "open", size, with_ids=False)
    bars = [Bar("Spark to Parquet", lambda: side.write_parquet(files), PARQUET_BAR)]
    if find_spec(PEER) is None:
        print(f"{PEER} is not installed: its line is missing")
    else:
        bars.append(Bar(f"{PEER} COPY", lambda: alone(copy_seconds, PEER, folder / PEER, files), COPY_BAR))
    bars.append(Bar("lance.write_dataset", lambda: alone(lance_seconds, folder / "lance", files)))
    load = _load_of(side, OPEN_SCHEMA, _typed(files), size)
    compare("Parquet, generated edge ids, open cardinality", load, bars, rounds)


def checked_case(side: SparkSide, folder: Path, size: Size, rounds: int) -> None:
    """Parquet with given edge ids and bounded cardinality."""
    files = write_parquet(folder / "checked", size, with_ids=True)
    bars = [Bar("Spark to Parquet", lambda: side.write_parquet(files), CHECKED_BAR)]
    load = _load_of(side, BOUNDED_SCHEMA, _typed(files), size)
    compare("Parquet, given edge ids, bounded cardinality", load, bars, rounds)


def ndjson_case(side: SparkSide, folder: Path, size: Size, rounds: int) -> None:
    """NDJSON with generated edge ids and open cardinality."""
    files = write_ndjson(folder / "ndjson", size)
    bars = [
        Bar("spark.read.json to Parquet", lambda: side.write_json(files), JSON_BAR),
        Bar("the same, columns given", lambda: side.write_typed_json(files)),
    ]
    load = _load_of(side, OPEN_SCHEMA, [str(files.people), str(files.knows)], size)
    compare("NDJSON, generated edge ids, open cardinality", load, bars, rounds)


def dirt_case(side: SparkSide, folder: Path, size: Size, rounds: int) -> None:
    """Rows that are left out, and small files, against the same rows without either."""
    print("\nNDJSON with 0.2 % of wrong rows, and in small files", flush=True)
    clean = write_ndjson(folder / "clean", size)
    dirty, wrong = spoilt(clean, folder / "dirty")
    few = Size(min(size.people, 100_000), min(size.edges, 500_000))  # 5,000 files
    whole = write_ndjson(folder / "whole", few)
    parts = cut(whole, folder / "parts", FILE_ROWS)
    times: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for name, inputs, rows, left_out in (
            ("clean", [str(clean.people), str(clean.knows)], size, 0),
            ("skip", [str(dirty.people), str(dirty.knows)], size, wrong),
            ("one file", [str(whole.people), str(whole.knows)], few, 0),
            ("small files", [str(parts)], few, 0),
        ):
            loaded = side.load(OPEN_SCHEMA, inputs, rows=rows.people + rows.edges, wrong=left_out)
            if number:
                times.setdefault(name, []).append(loaded.seconds)
    found = {name: median(seconds) for name, seconds in times.items()}
    print(f"  medians: {', '.join(f'{name} {seconds:.2f} s' for name, seconds in found.items())}")
    print(f"  skip against clean           {verdict(found['skip'] / found['clean'], SKIP_BAR)}")
    print(f"  small files against one file {verdict(found['small files'] / found['one file'], FILES_BAR)}")


def compare(title: str, load: Callable[..., Loaded], bars: Sequence[Bar], rounds: int) -> None:
    """Let everybody take turns; print the medians, the stages, and whether the bars hold."""
    print(f"\n{title}", flush=True)
    ours: list[Loaded] = []
    others: dict[str, list[float]] = {bar.title: [] for bar in bars}
    for number in range(rounds + 1):
        found = [(bar.title, bar.work()) for bar in bars]
        loaded = load()
        if number == 0:
            continue  # warms up the session, and the files
        ours.append(loaded)
        for name, seconds in found:
            others[name].append(seconds)
        each = ", ".join(f"{name} {seconds:.2f}" for name, seconds in found)
        print(f"  round {number}: {OURS} {loaded.seconds:.2f}, {each} s; load {_load()}", flush=True)
    _print_stages(ours)
    with_index = load(index=True)
    mine = median(item.seconds for item in ours)
    for bar in bars:
        ratio = mine / median(others[bar.title])
        text = f"{ratio:.2f}x" if bar.most is None else verdict(ratio, bar.most)
        both = (mine + with_index.index_seconds) / median(others[bar.title])
        print(f"  {OURS} against {bar.title:28s} {text}; with indexes {both:.2f}x", flush=True)


def measure_memory(folder: Path, size: Size, cores: int) -> None:
    """Load twice, the second time with more edges, each in a process of its own."""
    print("\nmost memory, MB (given edge ids, bounded cardinality)", flush=True)
    peaks: list[Peaks] = []
    for edges in (size.edges, GROWTH * size.edges):
        grown = Size(size.people, edges)
        files = write_parquet(folder / f"memory-{edges}", grown, with_ids=True)
        peaks.append(alone(load_peaks, folder / f"graph-{edges}", BOUNDED_SCHEMA, files, grown, cores))
        found = peaks[-1]
        print(
            f"  {edges:>12,} edges: driver {found.driver:,.0f}, heap {found.heap:,.0f}; "
            f"{found.seconds:.1f} s, load {_load()}",
            flush=True,
        )
    first, second = peaks
    print(f"  driver: {verdict(second.driver / first.driver, MEMORY_BAR)}")
    print(f"  heap:   {verdict(second.heap / first.heap, MEMORY_BAR)}")


def _load_of(side: SparkSide, schema: str, inputs: list[str], size: Size) -> Callable[..., Loaded]:
    def load(*, index: bool = False) -> Loaded:
        return side.load(schema, inputs, rows=size.people + size.edges, index=index)

    return load


def _typed(files: Files) -> list[str]:
    return [f"Person={files.people}", f"Knows={files.knows}"]


def _print_stages(ours: Sequence[Loaded]) -> None:
    stages: Mapping[str, float] = ours[0].stages
    print("  medians of the stages, s")
    told = 0.0
    for name in stages:
        seconds = median(item.stages.get(name, 0.0) for item in ours)
        told += seconds
        print(f"    {name:24s}{seconds:7.2f}")
    rest = median(item.seconds for item in ours) - told
    print(f"    {'between them':24s}{rest:7.2f}", flush=True)


def _load() -> str:
    """Return how busy the machine is: the mean of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    started = perf_counter()
    main()
    print(f"\nin {perf_counter() - started:.0f} s")
