"""One checkout of Omnigraph in its process: commits and merges on request, timed inside.

The process runs this file by its path with the package of its own checkout, so it imports nothing else of
`bench` or `tests`, and uses only what every checkout has.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.graph.graph import Graph

WAYS = ("clustered", "random")
COMMITS = 64  # between two rounds of upkeep
SEED = 20_263
SCHEMA = "node Person { handle: String @key  age: I64? } node Item { key: String @key  value: I64 }"
INSERT = "query m($h: String, $a: I64) { insert Person { handle: $h, age: $a } }"
COUNT = "query q($v: I64) { match { $i: Item { value: $v } } return { count($i) as found } }"


class Checkout:
    """A process with a graph of one checkout."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        """Take the process."""
        self._process = process

    def ask(self, *request: object) -> float:
        """Have one thing done; return the milliseconds that it took."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of the benchmark ended at {request[0]!r}")
        return float(line)


@contextmanager
def checkout(place: Path, root: Path, durability: str) -> Iterator[Checkout]:
    """Start the process of a checkout with a new graph; end it at the end."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(root), durability],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(place.resolve() / "src")},
    )
    with process:
        yield Checkout(process)
        assert process.stdin is not None
        process.stdin.close()


# In the process


def _serve(root: str, durability: str) -> None:
    import omnigraph

    assert omnigraph.__file__.startswith(os.environ["PYTHONPATH"])
    with omnigraph.init(root, SCHEMA, durability=durability) as graph:
        for line in sys.stdin:
            match json.loads(line):
                case ["commit", int() as number]:
                    started = perf_counter()
                    graph.mutate(INSERT, params={"h": f"p{number}", "a": number})
                    spent = perf_counter() - started
                case ["load", int() as rows]:
                    spent = _load(graph, rows)
                case ["merge", str() as way, int() as place, int() as rows, int() as changed]:
                    spent = _merge(graph, way, place, rows, changed)
                case other:
                    raise AssertionError(other)
            print(spent * 1_000, flush=True)


def _load(graph: "Graph", rows: int) -> float:
    started = perf_counter()
    graph.load({"Item": _items(range(rows), 0)}, "append")
    return perf_counter() - started


def _merge(graph: "Graph", way: str, place: int, rows: int, changed: int) -> float:
    """Merge two new branches that changed rows of their own; check that both changes are there."""
    import numpy as np

    rng = np.random.default_rng([SEED, WAYS.index(way), place])
    if way == "clustered":
        half = rows // 2
        starts = (int(rng.integers(0, half - changed)), half + int(rng.integers(0, half - changed)))
        chosen = [np.arange(start, start + changed) for start in starts]
    else:
        chosen = list(rng.choice(rows, 2 * changed, replace=False).reshape(2, changed))
    values = [int(value) for value in rng.integers(1, 1 << 40, 2)]
    names = [f"{side}-{way}-{place}" for side in ("source", "target")]
    for name, keys, value in zip(names, chosen, values, strict=True):
        graph.create_branch(name)
        graph.load({"Item": _items(keys.tolist(), value)}, "merge", branch=name, index=False)
    started = perf_counter()
    graph.merge(names[0], into=names[1])
    spent = perf_counter() - started
    for value in values:
        assert graph.query(COUNT, params={"v": value}, branch=names[1]).scalar() == changed
    return spent


def _items(keys: Sequence[int], value: int) -> "pa.Table":
    import pyarrow as pa

    return pa.table(
        {"key": [f"{number:08d}" for number in keys], "value": pa.array([value] * len(keys), pa.int64())}
    )


if __name__ == "__main__":
    _serve(*sys.argv[1:])
