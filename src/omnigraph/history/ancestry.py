"""Ancestors of two heads, and where their histories meet.

E1  Parents are followed as they are stored, both kinds; a parent that neither branch shows ends its path.
E2  The merge base is the common ancestor with the smallest sum of distances; of equals the one with the
    greatest manifest version, then the greatest id.
E3  Commits are decoded as far back as the search goes, newest first: old history costs nothing.
E4  A maintenance commit shows what its first parent shows: commits with one effective commit are equivalent.
E5  A branch is one chain of first parents, and along it the versions grow. Two chains without a merge since
    they parted meet in the newest commit that both have; only with a merge there is anything to search.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import orjson
import pyarrow as pa

from omnigraph.core.errors import InvariantViolation
from omnigraph.history.commits import MAINTENANCE_ACTOR, CommitLog
from omnigraph.history.select import descending, position_of, where_in, where_not_in

_BLOCK_MIN, _BLOCK_MAX = 16, 256  # commits that are decoded at a time, the more the further back


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
        self._heads = [None if log.head is None else log.head.graph_commit_id for log in (one, other)]
        self._rows = [log.rows().combine_chunks() for log in (one, other)]
        self._known: dict[str, Ancestor | None] = {}
        self._unread = [_blocks(rows) for rows in self._rows]

    def merge_base(self, one: str, other: str) -> Ancestor:
        """Return where the histories of two commits meet (E1, E2).

        Raises:
            InvariantViolation: they have no common ancestor, which no two branches of one graph lack.
        """
        is_chains = self._heads == [one, other]
        return (self._where_chains_part() if is_chains else None) or self._nearest(one, other)

    def _where_chains_part(self) -> Ancestor | None:
        """Return where the histories of both heads meet; none if that has to be searched for (E5)."""
        one, other = self._rows
        shared, *alone = where_in(one, other), where_not_in(one, other), where_not_in(other, one)
        if not shared.num_rows:
            return None
        ((found, base),) = _decode(shared.take(descending(shared, "table_version")[:1])).items()
        for rows in alone:
            chain = rows.sort_by("table_version")["metadata"].to_pylist()
            commits = [orjson.loads(str(text)) for text in chain]
            if any(commit.get("merged_parent_commit_id") is not None for commit in commits):
                return None
            if commits and commits[0]["parent_commit_id"] != found:
                return None
        self._known[found] = base
        return base

    def _nearest(self, one: str, other: str) -> Ancestor:
        """Search from both commits, a level at a time."""
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
        """Return a commit that one of the branches shows, or none, as it is for one of a deleted branch."""
        if commit_id not in self._known:
            self._known[commit_id] = None
            for rows in self._rows:
                position = position_of(rows, "object_id", commit_id)
                if position >= 0:
                    self._known |= _decode(rows.slice(position, 1))
        return self._known[commit_id]

    def find_next(self, commit_id: str) -> Ancestor | None:
        """Return the same for a search that goes back commit by commit (E3)."""
        if commit_id not in self._known and self.find(commit_id) is not None:
            for blocks in self._unread:
                self._known |= next(blocks, {})
        return self._known[commit_id]

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
            found = ancestry.find_next(commit_id)
            for parent in () if found is None else found.parents:
                if parent not in self.distances and ancestry.find_next(parent) is not None:
                    self.distances[parent] = self.distances[commit_id] + 1
                    reached.append(parent)
        self.frontier = reached


def _better(best: tuple[int, int, str] | None, found: tuple[int, int, str]) -> tuple[int, int, str]:
    """Return the nearer one; of equals the one with the greater version, then the greater id (E2)."""
    if best is None or found[0] < best[0]:
        return found
    return max(best, found) if found[0] == best[0] else best


def _blocks(rows: pa.Table) -> Iterator[dict[str, Ancestor]]:
    """Yield the commits of a branch, newest first, decoded block by block (E3)."""
    order = descending(rows, "table_version")
    start, size = 0, _BLOCK_MIN
    while start < len(order):
        yield _decode(rows.take(order[start : start + size]))
        start, size = start + size, min(2 * size, _BLOCK_MAX)


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
