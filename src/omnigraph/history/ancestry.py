"""Ancestors of two heads, and where their histories meet.

E1  Parents are followed as they are stored, both kinds; a parent that neither branch shows ends its path.
E2  The merge base is the common ancestor with the smallest sum of distances; of equals the one with the
    greatest manifest version, then the greatest id.
E3  Commits are decoded as far back as the search goes, newest first: old history costs nothing.
E4  A maintenance commit shows what its first parent shows: commits with one effective commit are equivalent.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import orjson
import pyarrow as pa

from omnigraph.core.errors import InvariantViolation
from omnigraph.history.commits import MAINTENANCE_ACTOR, CommitLog
from omnigraph.history.select import descending

_BLOCK = 256  # commits that are decoded at a time


@dataclass(frozen=True, slots=True)
class Ancestor:
    """What the search needs to know of a commit."""

    commit_id: str
    manifest_version: int
    parents: tuple[str, ...]
    is_maintenance: bool


class Ancestry:
    """The commits that two branches show together."""

    def __init__(self, one: CommitLog, other: CommitLog) -> None:
        """Take the logs of both branches, in any order."""
        self._logs = (one, other)
        self._known: dict[str, Ancestor | None] = {}
        self._unread = [_blocks(log) for log in self._logs]

    def merge_base(self, one: str, other: str) -> Ancestor:
        """Return where the histories of two heads meet (E1, E2).

        Raises:
            InvariantViolation: they have no common ancestor, which no two branches of one graph lack.
        """
        here, there = _Search(one), _Search(other)
        best: tuple[int, int, str] | None = None
        level = 0
        while here.frontier or there.frontier:
            for side, opposite in ((here, there), (there, here)):
                for commit_id in side.frontier:
                    if commit_id in opposite.distances:
                        best = _better(best, self._rank(commit_id, here, there))
            # What has not been met by both sides is further than this level from one of them.
            if best is not None and best[0] <= level:
                break
            here.advance(self)
            there.advance(self)
            level += 1
        if best is None:
            raise InvariantViolation(f"commits {one} and {other} have no common ancestor")
        return self._require(best[2])

    def effective(self, commit_id: str) -> str:
        """Return the commit that last changed rows (E4)."""
        found = self._require(commit_id)
        while found.is_maintenance and found.parents:
            parent = self.find(found.parents[0])
            if parent is None:
                break
            found = parent
        return found.commit_id

    def find(self, commit_id: str) -> Ancestor | None:
        """Return a commit that one of the branches shows, or none (E3)."""
        if commit_id not in self._known and not any(log.has(commit_id) for log in self._logs):
            self._known[commit_id] = None  # of a branch that was deleted: not looked for again
        while commit_id not in self._known:
            self._read_on()
        return self._known[commit_id]

    def _read_on(self) -> None:
        """Decode the next block of each branch."""
        for blocks in self._unread:
            self._known |= next(blocks, {})

    def _require(self, commit_id: str) -> Ancestor:
        found = self.find(commit_id)
        if found is None:
            raise InvariantViolation(f"commit {commit_id} is in neither branch")
        return found

    def _rank(self, commit_id: str, here: "_Search", there: "_Search") -> tuple[int, int, str]:
        distance = here.distances[commit_id] + there.distances[commit_id]
        return distance, self._require(commit_id).manifest_version, commit_id


class _Search:
    """Breadth first from one head, a level at a time."""

    def __init__(self, head: str) -> None:
        self.distances = {head: 0}
        self.frontier = [head]

    def advance(self, ancestry: Ancestry) -> None:
        reached: list[str] = []
        for commit_id in self.frontier:
            found = ancestry.find(commit_id)
            for parent in () if found is None else found.parents:
                if parent not in self.distances and ancestry.find(parent) is not None:
                    self.distances[parent] = self.distances[commit_id] + 1
                    reached.append(parent)
        self.frontier = reached


def _better(best: tuple[int, int, str] | None, found: tuple[int, int, str]) -> tuple[int, int, str]:
    """Return the nearer one; of equals the one with the greater version, then the greater id (E2)."""
    if best is None or found[0] < best[0]:
        return found
    return max(best, found) if found[0] == best[0] else best


def _blocks(log: CommitLog) -> Iterator[dict[str, Ancestor]]:
    """Yield the commits of a log, newest first, decoded block by block (E3)."""
    rows = log.rows()
    order = descending(rows, "table_version")
    for start in range(0, len(order), _BLOCK):
        yield _decode(rows.take(order[start : start + _BLOCK]))


def _decode(rows: pa.Table) -> dict[str, Ancestor]:
    columns = (rows[name].to_pylist() for name in ("object_id", "table_version", "metadata"))
    found = {}
    for commit_id, version, text in zip(*columns, strict=True):
        metadata = orjson.loads(text)
        parents = (metadata.get("parent_commit_id"), metadata.get("merged_parent_commit_id"))
        found[commit_id] = Ancestor(
            commit_id,
            version,
            tuple(parent for parent in parents if parent is not None),
            metadata.get("actor_id") == MAINTENANCE_ACTOR,
        )
    return found
