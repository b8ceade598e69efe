"""Queries of a social graph, beside two graph engines and SQLite that hold the same data.

The engines take turns question by question, so that a busy moment of the machine meets all of them. Their
answers are compared before anything is measured. SQLite is a reference and sets no bar.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has an `http` of its own

from bench.support.ours import Ours
from bench.support.peers.cypher import Cypher
from bench.support.peers.sqlite import Sqlite
from bench.support.questions import QUESTIONS, Agreement, Question
from bench.support.report import verdict
from bench.support.restart import restart
from bench.support.social import SEED, SIZES, Size, make_social
from bench.support.turns import Engine, Rows, Turns

ENGINES: Mapping[str, Callable[[], Engine]] = {
    "ours": Ours,
    "ladybug": partial(Cypher, "ladybug"),
    "kuzu": partial(Cypher, "kuzu"),
    "sqlite": Sqlite,
}
GRAPH_ENGINES = ("ladybug", "kuzu")
CHECKED = 3  # sets of values whose answers are compared
BURST = 10  # answers of one turn, fewer if they take long
SPENT_S, ROUNDS_MIN = 10.0, 3  # an engine that spent so long on a question is left out of further rounds
BEST_SHARE = 0.7  # of the best of a ranking that two engines must have in common
LONG_MS, LONG_BAR, SHORT_BAR = 1.0, 1.0, 3.0
RESTART_BAR_S = 0.3


@dataclass(frozen=True, slots=True)
class Line:
    """One question: times in milliseconds by engine, and what the answers have in common with ours."""

    question: Question
    times: Mapping[str, Sequence[float]]
    shared: Mapping[str, float]

    @property
    def medians(self) -> dict[str, float]:
        """The time that stands for the others."""
        return {name: median(found) for name, found in self.times.items()}


def main() -> None:
    """Make the graphs, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument(
        "--questions", nargs="+", default=[], help="beginnings of names; all if none is given"
    )
    options = parser.parse_args()
    wanted = [q for q in QUESTIONS if _is_wanted(q, options.questions)]
    missing = [name for name in options.engines if name in GRAPH_ENGINES and find_spec(name) is None]
    for name in missing:
        print(f"{name} is not installed: its column is missing")
    engines = [name for name in options.engines if name not in missing]
    for name in options.sizes:
        with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
            run(Path(folder), SIZES[name], engines, wanted, options.rounds)


def run(folder: Path, size: Size, names: Sequence[str], questions: Sequence[Question], rounds: int) -> None:
    """Load one size everywhere, ask everything, restart."""
    print(f"\n{size.people:,} people, {size.edges:,} edges", flush=True)
    make_social(size).write(folder)
    cache = folder / "cache"
    os.environ["OMNIGRAPH_CACHE_DIR"] = str(cache)  # before the processes start
    os.environ.setdefault("LANCE_LOG", "error")  # empty partitions of a vector index are no news here
    engines = [Turns(name, ENGINES[name]) for name in names]
    for engine in engines:
        print(f"  {engine.name}: loaded in {engine.load(folder, folder):.1f} s", flush=True)
    # All answers come before all times: an engine may take its time over what it keeps for later.
    asked = [Asked(q, size, rounds) for q in questions if size.has_vectors or not q.needs_vectors]
    shares = [compare(engines, each) for each in asked]
    _print_head(names)
    lines = []
    for each, shared in zip(asked, shares, strict=True):
        lines.append(measure(engines, each, shared, rounds))
        _print_line(lines[-1], names)
    peaks = {engine.name: engine.close() for engine in engines}
    print("  most memory: " + ", ".join(f"{name} {peak:,.0f} MB" for name, peak in peaks.items()))
    _print_verdicts(lines)
    if "ours" in names:
        _restarts(folder, cache, size)


class Asked:
    """A question with its sets of values: the first ones are for comparing answers, the others for times."""

    def __init__(self, question: Question, size: Size, rounds: int) -> None:
        """Draw the values; the same ones every time."""
        self.question = question
        rng = np.random.default_rng([SEED, *question.name.encode()])
        count = question.variants or CHECKED + rounds * BURST
        self.sets = [dict(question.values(rng, size)) for _ in range(count)]


def compare(engines: Sequence[Turns], asked: Asked) -> dict[str, float]:
    """Return the share of rows that each engine that can answer has in common with the first."""
    question = asked.question
    shares: dict[str, list[float]] = {}
    for values in asked.sets[:CHECKED]:
        expected: Rows | None = None
        for engine in engines:
            rows = engine.rows(question.name, values)
            if rows is not None:
                expected = rows if expected is None else expected
                shares.setdefault(engine.name, []).append(_share(question, expected, rows))
    found = {name: sum(each) / len(each) for name, each in shares.items()}
    needed = BEST_SHARE if question.agreement is Agreement.BEST else 1.0
    for name, share in found.items():
        if share < needed:
            print(f"  {question.name}: {name} has {share:.0%} of the rows of {engines[0].name}: DIFFERENT")
    return found


def measure(engines: Sequence[Turns], asked: Asked, shared: Mapping[str, float], rounds: int) -> Line:
    """Let the engines that can answer do so in turns."""
    name = asked.question.name
    able = [engine for engine in engines if engine.name in shared]
    times: dict[str, list[float]] = {engine.name: [] for engine in able}
    for number in range(rounds):
        first = CHECKED + number * BURST
        burst = [asked.sets[place % len(asked.sets)] for place in range(first, first + BURST)]
        for engine in able:
            spent = times[engine.name]
            if number < ROUNDS_MIN or sum(spent) < SPENT_S * 1_000:
                spent += engine.times(name, burst)
    return Line(asked.question, times, shared)


def _share(question: Question, expected: Rows, found: Rows) -> float:
    if question.agreement is Agreement.ROWS:
        return float(sorted(expected, key=repr) == sorted(found, key=repr))
    wanted, keys = {row[0] for row in expected}, {row[0] for row in found}
    if question.agreement is Agreement.KEYS:
        return float(wanted == keys and len(expected) == len(found))
    return len(wanted & keys) / max(1, len(wanted))


def _restarts(folder: Path, cache: Path, size: Size) -> None:
    """Ask fresh processes: twice with the files of the process before, once with none."""
    by_name = {question.name: question for question in QUESTIONS}
    rng = np.random.default_rng(SEED)
    print("\n  first traversal after a restart, s:   open  one hop  reach  together  csr loads, builds")
    for title, directory in (
        ("cache files", cache),
        ("cache files again", cache),
        ("none", folder / "empty"),
    ):
        values = [by_name[name].values(rng, size) for name in ("one hop with filter", "reach 1..3")]
        found = restart(folder, directory, *values)
        bar = f"  bar {RESTART_BAR_S} s: {'ok' if found.total <= RESTART_BAR_S else 'MISSED'}"
        print(
            f"  {title:36s} {found.opened:6.3f} {found.one_hop:8.3f} {found.reach:6.3f} {found.total:9.3f} "
            f"{found.csr_loads:10d} {found.csr_builds:7d}{bar if directory == cache else ''}",
            flush=True,
        )


# Print


def _print_head(names: Sequence[str]) -> None:
    print(f"\n  {'medians, ms':32s}" + "".join(f"{name:>11s}" for name in names), flush=True)


def _print_line(line: Line, names: Sequence[str]) -> None:
    cells = (f"{line.medians[name]:11.3f}" if name in line.medians else f"{'-':>11s}" for name in names)
    print(f"  {line.question.name:32s}{''.join(cells)}{_shared(line)}", flush=True)


def _shared(line: Line) -> str:
    if line.question.agreement is not Agreement.BEST:
        return ""
    others = (f"{name} {share:.0%}" for name, share in line.shared.items() if name != "ours")
    return "   rows as ours: " + ", ".join(others)


def _print_verdicts(lines: Iterable[Line]) -> None:
    """Say for each question that another graph engine can answer whether we are within the bar."""
    print("\n  ours against the best graph engine")
    for line in lines:
        medians = line.medians
        peers = {name: medians[name] for name in GRAPH_ENGINES if name in medians}
        if "ours" not in medians or not peers:
            continue
        best = min(peers, key=lambda name: peers[name])
        bar = LONG_BAR if peers[best] >= LONG_MS else SHORT_BAR
        quickest = min(line.times["ours"]) / min(line.times[best])  # a busy machine disturbs it less
        print(
            f"  {line.question.name:32s} {best:8s} {verdict(medians['ours'] / peers[best], bar)}; "
            f"quickest {quickest:.2f}x"
        )


def _is_wanted(question: Question, beginnings: Sequence[str]) -> bool:
    return not beginnings or any(question.name.startswith(beginning) for beginning in beginnings)


if __name__ == "__main__":
    started = perf_counter()
    main()
    print(f"\nin {perf_counter() - started:.0f} s")
