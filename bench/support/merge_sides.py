"""Both sides of a merge: which keys they change, and the engines that make and merge them."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import IO, Protocol

import numpy as np
import pyarrow as pa

import omnigraph
from omnigraph.graph.graph import Graph

SCHEMA = "node Item { key: String @key  value: I64  label: String? }"
COUNT = "query q($v: I64) { match { $i: Item { value: $v } } return { count($i) as found } }"
LOAD_ROWS = 500_000  # rows of one load
SYNCHRONOUS = {"full": "FULL", "process": "OFF"}  # what the peer calls our settings of durability


@dataclass(frozen=True, slots=True)
class Side:
    """One branch to be made: the value that its rows get, and their keys, commit by commit."""

    branch: str
    value: int
    commits: Sequence[Sequence[int]]

    @property
    def rows(self) -> int:
        """How many rows it changes."""
        return sum(len(keys) for keys in self.commits)


@dataclass(frozen=True, slots=True)
class Merged:
    """One merge: its time by the clock and on the processors, and the rows read if the engine counts them."""

    wall_ms: float
    cpu_ms: float
    rows_read: int | None


def sides(
    rng: np.random.Generator, rows: int, changed: int, commits: int, *, is_clustered: bool, name: str
) -> tuple[Side, Side]:
    """Draw two disjoint sets of keys, each one run of the table or spread all over it."""
    if is_clustered:
        half = rows // 2
        starts = [int(rng.integers(0, half - changed)), half + int(rng.integers(0, half - changed))]
        rng.shuffle(starts)
        chosen = [np.arange(start, start + changed) for start in starts]
    else:
        chosen = list(rng.choice(rows, 2 * changed, replace=False).reshape(2, changed))
    numbers = rng.integers(1, 1 << 40, 2)
    return (
        Side(
            f"source-{name}", -int(numbers[0]), [part.tolist() for part in np.array_split(chosen[0], commits)]
        ),
        Side(
            f"target-{name}", -int(numbers[1]), [part.tolist() for part in np.array_split(chosen[1], commits)]
        ),
    )


class Engine(Protocol):
    """What can hold a table with branches."""

    def load(self, rows: int) -> None:
        """Fill the table with so many rows."""

    def edit(self, side: Side) -> None:
        """Make a branch of main and change rows on it."""

    def merge(self, source: Side, target: Side) -> Merged:
        """Merge one branch into the other, and check that both changes are there."""


class Ours:
    """An open graph."""

    def __init__(self, root: Path, durability: str) -> None:
        """Make an empty graph."""
        self.graph: Graph = omnigraph.init(root, SCHEMA, durability=durability)

    def load(self, rows: int) -> None:
        """Fill the table with so many rows, indexes included."""
        for start in range(0, rows, LOAD_ROWS):
            stop = min(start + LOAD_ROWS, rows)
            self.graph.load({"Item": _items(range(start, stop), None)}, "append", index=stop == rows)

    def edit(self, side: Side) -> None:
        """Make a branch of main and change rows on it."""
        self.graph.create_branch(side.branch)
        for keys in side.commits:
            table = {"Item": _items(keys, side.value)}
            self.graph.load(table, "merge", branch=side.branch, index=False)

    def merge(self, source: Side, target: Side) -> Merged:
        """Merge one branch into the other, and check that both changes are there."""
        wall, cpu = perf_counter(), process_time()
        merged = self.graph.merge(source.branch, into=target.branch)
        wall_ms, cpu_ms = (perf_counter() - wall) * 1_000, (process_time() - cpu) * 1_000
        assert merged.outcome == "merged"
        for side in (source, target):
            found = self.graph.query(COUNT, params={"v": side.value}, branch=target.branch).scalar()
            assert found == side.rows
        return Merged(wall_ms, cpu_ms, merged.rows_read)

    def close(self) -> None:
        """Let go."""
        self.graph.close()


class Doltlite:
    """The peer in its process."""

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        """Take both ends of the pipe."""
        self._requests, self._answers = requests, answers

    def version(self) -> str:
        """Return the version of the library."""
        return str(self._request("version"))

    def load(self, rows: int) -> None:
        """Fill the table with so many rows."""
        self._request("load", rows)

    def edit(self, side: Side) -> None:
        """Make a branch of main and change rows on it."""
        keys = [[f"{number:08d}" for number in part] for part in side.commits]
        self._request("edit", side.branch, side.value, keys)

    def merge(self, source: Side, target: Side) -> Merged:
        """Merge one branch into the other, and check that both changes are there."""
        times = self._request("merge", source.branch, target.branch)
        assert isinstance(times, list)
        wall_ms, cpu_ms = times
        for side in (source, target):
            assert self._request("count", side.value) == side.rows
        return Merged(wall_ms, cpu_ms, None)

    def _request(self, *message: object) -> object:
        self._requests.write(f"{json.dumps(message)}\n")
        self._requests.flush()
        line = self._answers.readline()
        if not line:
            raise RuntimeError("doltlite: the process has ended")
        answer: object = json.loads(line)
        return answer


@contextmanager
def doltlite(path: Path, durability: str, python: str) -> Iterator[Doltlite]:
    """Run the peer with an interpreter that has it."""
    program = Path(__file__).with_name("merge_doltlite.py")
    command = [python, str(program), str(path), SYNCHRONOUS[durability]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Doltlite(process.stdin, process.stdout)
        process.stdin.close()


def has_doltlite(python: str = sys.executable) -> bool:
    """Return whether an interpreter has the peer."""
    found = subprocess.run(
        [python, "-c", "import importlib.util as u; print(u.find_spec('doltlite'))"],
        check=False,
        capture_output=True,
        text=True,
    )
    return found.returncode == 0 and found.stdout.strip() != "None"


def _items(keys: Sequence[int], value: int | None) -> pa.Table:
    """Return rows as a table; without a value each has its number."""
    numbers = np.asarray(keys, np.int64)
    values = numbers if value is None else np.full(len(numbers), value)
    return pa.table(
        {
            "key": pa.array([f"{number:08d}" for number in keys]),
            "value": pa.array(values),
            "label": pa.array([f"label {number}" for number in keys]),
        }
    )
