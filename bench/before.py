"""One-row commits and merges of two checkouts of Omnigraph in turns: what a change made of them.

`--before` names a folder with an earlier checkout; its packages are those of this environment. Both sides run
in processes of their own and make the same graphs with the same seeds. They take turns commit by commit and
merge by merge, so that a busy moment of the machine meets both, and the first of each turn changes.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

if __package__ in {None, ""}:
    import sys

    sys.path[0] = str(Path(__file__).parents[1])  # the folder of this file has an `http` of its own

from bench.support.before_side import COMMITS, WAYS, Checkout, checkout
from bench.support.report import verdict

COMMIT_BAR, MERGE_BAR = 0.6, 0.7


def main() -> None:
    """Make the same graphs with both, measure in turns, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="the folder of the earlier checkout")
    parser.add_argument("--commits", type=int, default=256, help="one-row commits that are measured")
    parser.add_argument("--merges", type=int, default=11, help="merges of each kind that are measured")
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the table that is merged")
    parser.add_argument("--changed", type=int, default=1_000, help="rows that each side of a merge changes")
    parser.add_argument("--durability", choices=["full", "process"], nargs="+", default=["full", "process"])
    options = parser.parse_args()
    for durability in options.durability:
        with _both(options.before, durability) as pair:
            print(f"durability {durability}", flush=True)
            _measure_commits(pair, options.commits)
            _measure_merges(pair, options)


@contextmanager
def _both(before: Path, durability: str) -> Iterator[tuple[Checkout, Checkout]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="omnigraph-bench-")))
        here = Path(__file__).parents[1]
        yield (
            stack.enter_context(checkout(before, folder / "before", durability)),
            stack.enter_context(checkout(here, folder / "now", durability)),
        )


def _measure_commits(pair: tuple[Checkout, Checkout], number: int) -> None:
    found: tuple[list[float], list[float]] = ([], [])
    for place in range(number + COMMITS // 2):
        for side in _order(place):
            wall_ms = pair[side].ask("commit", place)
            if place >= COMMITS // 2:  # the first are of a process that is still warming up
                found[side].append(wall_ms)
    _print("one-row insert", found, COMMIT_BAR)


def _measure_merges(pair: tuple[Checkout, Checkout], options: argparse.Namespace) -> None:
    for each in pair:
        each.ask("load", options.rows)
    for way in WAYS:
        found: tuple[list[float], list[float]] = ([], [])
        for place in range(options.merges + 1):
            for side in _order(place):
                wall_ms = pair[side].ask("merge", way, place, options.rows, options.changed)
                if place:
                    found[side].append(wall_ms)
        _print(f"merge, {way}", found, MERGE_BAR if way == "clustered" else None)


def _order(place: int) -> tuple[int, int]:
    return (0, 1) if place % 2 else (1, 0)


def _print(title: str, found: tuple[list[float], list[float]], bar: float | None) -> None:
    before, now = (median(times) for times in found)
    ratio = f"{now / before:.2f}x" if bar is None else verdict(now / before, bar)
    print(f"  {title:18s} before {before:7.1f} ms   now {now:7.1f} ms   {ratio}", flush=True)


if __name__ == "__main__":
    main()
