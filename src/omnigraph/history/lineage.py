"""Which commits are ancestors of which, by chains instead of commit by commit.

C1  A branch is a line of first parents, along which the versions grow. What it shows falls into chains: runs
    of commits of one branch whose versions skip no number. A chain is named by its first commit. The
    ancestors of a commit include a beginning of a chain: one version says how much of it.
C2  A merge commit records the ancestors of its source that the target's rows do not reveal. So the rows of a
    branch reveal all ancestors of its head, whatever becomes of the branches that were merged.
C3  Nothing is guessed: a merged commit whose place is unknown is kept as such, and counts as known by no one.
C4  A branch may give commits up: a new version shows what an older one showed. No number is used twice, so
    the next commit skips the numbers that were given up, and begins a new chain at the last one that was
    kept. What was given up stays as a separate chain, with what had been merged there, for any branch that
    merged a commit of it or started from one. A number that is skipped for another reason (the manifest was
    folded) also ends a chain: the rows do not say why, and nothing depends on it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from omnigraph.core.errors import InvariantViolation
from omnigraph.history.commits import CommitLog
from omnigraph.history.fold import position_of
from omnigraph.history.identity import MAIN, branch_name, stored_name
from omnigraph.history.manifest_rows import metadata_members

MERGED_HISTORY = "merged_history"  # the member of a merge commit's metadata
_compute: Any = pc


@dataclass(frozen=True, slots=True)
class ChainPlace:
    """A commit: on which chain, and how far along."""

    chain: str
    version: int
    commit_id: str


@dataclass(frozen=True, slots=True)
class Chain:
    """Commits that a branch added in a row, and the one that they continue; the graph's first has none.

    `ref` is that of the branch's manifest: a merge records it, the rows of a branch do not contain it.
    """

    chain_id: str
    branch: str
    start: ChainPlace | None
    ref: str | None = None


Reach = Mapping[str, ChainPlace]  # by chain, the last commit of it among something's ancestors


class ChainedLog:
    """The commits that one branch shows, as chains (C1, C4)."""

    def __init__(self, log: CommitLog, *, branch: str = MAIN) -> None:
        """Take a branch's log and its name."""
        rows = log.rows()
        self._rows = rows.take(_compute.sort_indices(rows, sort_keys=[("table_version", "ascending")]))
        self._versions = self._rows["table_version"].to_numpy()
        branches = self._rows["table_branch"].combine_chunks().fill_null(MAIN)
        turns = _compute.not_equal(branches.slice(1), branches.slice(0, max(len(branches) - 1, 0)))
        is_turn = np.asarray(turns, dtype=bool)
        is_left_out = np.diff(self._versions) > 1  # C4
        starts = [0, *_after(is_turn | is_left_out)] if len(branches) else []
        self._starts = np.array(starts, dtype=np.int64)
        last_run = [0, *_after(is_turn)][-1]
        self.chains = [self._chain(start, branches[start].as_py()) for start in starts]
        last = [chain for start, chain in zip(starts, self.chains, strict=True) if start >= last_run]
        self.own = frozenset(chain.chain_id for chain in last if chain.branch == branch)

    def _chain(self, start: int, branch: str) -> Chain:
        return Chain(self._text("object_id", start), branch, self.place(start - 1) if start else None)

    def place(self, position: int) -> ChainPlace:
        """Return the place of the commit of a row."""
        chain = int(np.searchsorted(self._starts, position, side="right")) - 1
        return ChainPlace(
            self._text("object_id", int(self._starts[chain])),
            int(self._versions[position]),
            self._text("object_id", position),
        )

    def find(self, commit_id: str) -> ChainPlace | None:
        """Return the place of a commit, or None if the branch does not show it."""
        position = position_of(self._rows, "object_id", commit_id)
        return None if position < 0 else self.place(position)

    @property
    def head(self) -> ChainPlace:
        """The newest commit."""
        return self.place(len(self._versions) - 1)

    def contradicts(self, place: ChainPlace) -> bool:
        """Return whether the branch shows that part of a chain with another commit there."""
        position = int(np.searchsorted(self._versions, place.version))
        is_shown = position < len(self._versions) and self.place(position).chain == place.chain
        return is_shown and self._text("object_id", position) != place.commit_id

    def merges(self) -> Iterator[tuple[ChainPlace, dict[str, Any]]]:
        """Yield the merge commits with their metadata; that of other commits is not decoded."""
        is_merge = _compute.match_substring(self._rows["metadata"], '"merged_parent_commit_id"')
        for position in np.flatnonzero(np.asarray(is_merge)).tolist():
            metadata = metadata_members(self._text("metadata", position))
            if metadata.get("merged_parent_commit_id") is not None:  # a message may contain those words too
                yield self.place(position), metadata

    def _text(self, column: str, position: int) -> str:
        return str(self._rows[column][position].as_py())


class Lineage:
    """What is known about the chains: where each begins, what was merged into it, and where."""

    def __init__(self, logs: Iterable[ChainedLog] = ()) -> None:
        """Begin with what the rows of some branches say."""
        self.chains: dict[str, Chain] = {}
        self._merges: dict[str, dict[int, ChainPlace]] = {}
        self._unplaced: dict[str, dict[int, str]] = {}
        for log in logs:
            self.learn(log)

    def learn(self, log: ChainedLog) -> None:
        """Add what the rows of a branch say (C1, C2)."""
        for chain in log.chains:
            self.learn_chain(chain)
        for place, metadata in log.merges():
            merged, record = str(metadata["merged_parent_commit_id"]), metadata.get(MERGED_HISTORY)
            if record is not None:
                self._learn_record(record)
                chain_id, version = record["place"]
                self._add_merge(place.chain, place.version, ChainPlace(chain_id, version, merged))
            elif place.version not in self._merges.get(place.chain, {}):
                self._unplaced.setdefault(place.chain, {})[place.version] = merged

    @property
    def has_unplaced(self) -> bool:
        """Whether there are merged commits without a place."""
        return any(self._unplaced.values())

    def place_merges(self, log: ChainedLog) -> bool:
        """Search one more branch for merged commits without a place; return whether that placed one."""
        is_found = False
        for chain, unplaced in list(self._unplaced.items()):
            for version, commit_id in list(unplaced.items()):
                place = log.find(commit_id)
                if place is not None:
                    self._add_merge(chain, version, place)
                    is_found = True
        if is_found:
            self.learn(log)
        return is_found

    def reach(self, places: Iterable[ChainPlace]) -> dict[str, ChainPlace]:
        """Return the ancestors of some commits, themselves included."""
        found: dict[str, ChainPlace] = {}
        waiting = list(places)
        while waiting:
            place = waiting.pop()
            known = found.get(place.chain)
            if known is not None and known.version >= place.version:
                continue
            found[place.chain] = place
            above = 0 if known is None else known.version
            merges = self._merges.get(place.chain, {})
            waiting += [merged for version, merged in merges.items() if above < version <= place.version]
            start = self.chains[place.chain].start
            if known is None and start is not None:
                waiting.append(start)
        return found

    def is_meeting_place(self, chain_ids: Collection[str]) -> bool:
        """Return whether commits of some chains were taken on lines of which none continues all the others.

        To take a commit is to merge it or to continue from it.
        """
        taken = {
            chain.chain_id: 0
            for chain in self.chains.values()
            if chain.start is not None and chain.start.chain in chain_ids and chain.chain_id not in chain_ids
        }
        for taker, merges in self._merges.items():
            versions = [version for version, merged in merges.items() if merged.chain in chain_ids]
            if versions:
                taken[taker] = max(versions)
        lines = [self._line(chain_id, version) for chain_id, version in taken.items()]
        return bool(taken) and not any(_covers(line, taken) for line in lines)

    def _line(self, chain_id: str, version: int) -> dict[str, int]:
        """Return how much of its branch's chains a commit continues: chains begun by others do not count."""
        line = {chain_id: version}
        chain = self.chains[chain_id]
        while chain.start is not None and self.chains[chain.start.chain].branch == chain.branch:
            line[chain.start.chain] = chain.start.version
            chain = self.chains[chain.start.chain]
        return line

    def unplaced_in(self, reach: Reach) -> list[str]:
        """Return the merged commits among something's ancestors whose own ancestors are unknown (C3)."""
        return sorted(
            commit_id
            for chain, place in reach.items()
            for version, commit_id in self._unplaced.get(chain, {}).items()
            if version <= place.version
        )

    def best_common(self, one: Reach, other: Reach, *, likely: Iterable[str] = ()) -> tuple[ChainPlace, ...]:
        """Return the commits that both have and that are ancestors of no other such commit, in a fixed order.

        What is likely to have most of the others as ancestors is looked at first.

        Raises:
            InvariantViolation: two commits claim one place.
        """
        common = {chain: _earlier(one[chain], other[chain]) for chain in one.keys() & other.keys()}
        first = {chain: -position for position, chain in enumerate(likely, 1)}
        waiting = sorted(
            common.values(), key=lambda place: (first.get(place.chain, -len(first) - 1), place.version)
        )
        best: list[ChainPlace] = []
        while waiting:
            place = waiting.pop()
            behind = self.reach([place])
            waiting = [left for left in waiting if not _has(behind, left)]
            best = [left for left in best if not _has(behind, left)]
            best.append(place)
        return tuple(sorted(best, key=lambda place: (place.version, place.commit_id)))

    def record(self, head: ChainPlace, target: "Lineage") -> dict[str, object]:
        """Return what merging a commit adds to what a target's rows say (C2), as plain values."""
        behind = self.reach([head])
        chains = [self.chains[chain] for chain in sorted(behind) if chain not in target.chains]
        merges = [
            [chain, version, merged.chain, merged.version, merged.commit_id]
            for chain, place in sorted(behind.items())
            for version, merged in sorted(self._merges.get(chain, {}).items())
            if version <= place.version and version not in target._merges.get(chain, {})
        ]
        unplaced = [
            [chain, version, commit_id]
            for chain, place in sorted(behind.items())
            for version, commit_id in sorted(self._unplaced.get(chain, {}).items())
            if version <= place.version and version not in target._unplaced.get(chain, {})
        ]
        document: dict[str, object] = {"place": [head.chain, head.version]}
        if chains:
            document["chains"] = [_chain_document(chain) for chain in chains]
        if merges:
            document["merges"] = merges
        if unplaced:
            document["unplaced"] = unplaced
        return document

    def _learn_record(self, record: Mapping[str, Any]) -> None:
        for chain_id, branch, ref, *start in record.get("chains", ()):
            self.learn_chain(Chain(chain_id, branch_name(branch), ChainPlace(*start) if start else None, ref))
        for chain, version, *merged in record.get("merges", ()):
            self._add_merge(chain, version, ChainPlace(*merged))
        for chain, version, commit_id in record.get("unplaced", ()):
            if version not in self._merges.get(chain, {}):
                self._unplaced.setdefault(chain, {})[version] = commit_id

    def learn_chain(self, chain: Chain) -> None:
        """Add a chain; one whose manifest is known replaces one whose manifest is not."""
        known = self.chains.get(chain.chain_id)
        if known is None or known.ref is None:
            self.chains[chain.chain_id] = chain

    def _add_merge(self, chain: str, version: int, merged: ChainPlace) -> None:
        self._merges.setdefault(chain, {})[version] = merged
        self._unplaced.get(chain, {}).pop(version, None)


def _after(is_last: "np.typing.NDArray[np.bool_]") -> list[int]:
    """Return the positions after those that are marked."""
    return (np.flatnonzero(is_last) + 1).tolist()


def _covers(line: Mapping[str, int], taken: Mapping[str, int]) -> bool:
    return all(line.get(chain_id, -1) >= version for chain_id, version in taken.items())


def _chain_document(chain: Chain) -> list[object]:
    start = chain.start
    place = [] if start is None else [start.chain, start.version, start.commit_id]
    return [chain.chain_id, stored_name(chain.branch), chain.ref, *place]


def _earlier(one: ChainPlace, other: ChainPlace) -> ChainPlace:
    if one.version == other.version and one.commit_id != other.commit_id:
        raise InvariantViolation(f"commits {one.commit_id} and {other.commit_id} are at the same place")
    return one if one.version <= other.version else other


def _has(behind: Reach, place: ChainPlace) -> bool:
    found = behind.get(place.chain)
    return found is not None and found.version >= place.version
