"""One-row mutations of one table on one handle: the rate of many threads against that of one.

One thread and many take turns, round by round, on graphs of their own, so that a busy moment of the machine
meets both. Every mutation must land; the share of preparing is what limits the ratio in the end.
"""

import argparse
import sys
import tempfile
import threading
import time
from itertools import count
from pathlib import Path
from statistics import median

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).parents[1]))

import omnigraph
from omnigraph.graph.graph import Graph

SCHEMA = "node Person { handle: String @key  age: I64? }"
INSERT = "query add($h: String, $a: I64) { insert Person { handle: $h, age: $a } }"
RATIO_BAR = 8.0


def main() -> None:
    """Measure both durability settings, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--each", type=int, default=16, help="mutations of a thread in one round")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for durability in ("full", "process"):
        with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
            measure(Path(folder), durability, options.threads, options.each, options.rounds)


def measure(folder: Path, durability: str, threads: int, each: int, rounds: int) -> None:
    """Let one thread and many take turns, and print their rates."""
    graphs = {
        size: omnigraph.init(folder / str(size), SCHEMA, durability=durability) for size in (1, threads)
    }
    numbers = count()
    rates: dict[int, list[float]] = {1: [], threads: []}
    for graph in graphs.values():
        insert(graph, f"w{next(numbers)}")
    for _ in range(rounds):
        for size, graph in graphs.items():
            names = [[f"r{next(numbers)}" for _ in range(each)] for _ in range(size)]
            began = time.perf_counter()
            run(graph, names)
            rates[size].append(size * each / (time.perf_counter() - began))
    commits = graphs[threads].commits()
    sizes = [len(commit.operations) or 1 for commit in commits[:-2] if commit.actor_id is None]
    for size, graph in graphs.items():
        assert graph.table("Person").num_rows == 1 + size * each * rounds, "every mutation has landed"
        graph.close()
    ratio = median(many / one for one, many in zip(rates[1], rates[threads], strict=True))
    print(f"\none-row insert, one table, durability {durability}")
    print(f"  1 thread     {median(rates[1]):8.1f} mutations/s")
    print(f"  {threads} threads   {median(rates[threads]):8.1f} mutations/s, {median(sizes)} in a commit")
    bar = f" (bar {RATIO_BAR}x): {'ok' if ratio >= RATIO_BAR else 'MISSED'}" if durability == "full" else ""
    print(f"  ratio        {ratio:8.2f}x{bar}", flush=True)


def run(graph: Graph, names: list[list[str]]) -> None:
    """Insert the names of each list in a thread of its own."""
    failed: list[BaseException] = []

    def work(mine: list[str]) -> None:
        try:
            for name in mine:
                insert(graph, name)
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def insert(graph: Graph, name: str) -> None:
    """Insert one row."""
    graph.mutate(INSERT, params={"h": name, "a": 1})


if __name__ == "__main__":
    main()
