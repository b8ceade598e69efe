"""Where the histories of two branches meet.

E1  A merge starts from the best common ancestors: the commits that both histories have and that are ancestors
    of no other such commit. All parents of both kinds count, on whatever branch they were made.
E2  Several best common ancestors are merged with each other, over what they in turn have in common: a tree
    whose leaves are commits.
E3  Old history costs nothing where it is not needed: two chains without a merge since they diverged meet in
    the newest commit that both have, and only the commits since are decoded. Otherwise only merges are.
E4  A maintenance commit shows what its first parent shows: commits with the same effective commit are
    equivalent.
E5  If the ancestors of a merged commit are unknown, the answer is unknown too, and nothing is guessed.
E6  Commits that a branch gave up are ancestors only of the commits that took them, and not even of the later
    commits of the branch. Others may meet in them, though no branch shows them any more.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.errors import InvariantViolation
from omnigraph.history.fold import descending, where_in, where_not_in
from omnigraph.history.identity import MAIN
from omnigraph.history.lineage import Chain, ChainedLog, ChainPlace, Lineage
from omnigraph.history.manifest_rows import metadata_members
from omnigraph.history.state import ManifestState

_compute: Any = pc  # the stubs know too little of arrays of text


class HistoryUnknown(Exception):
    """The ancestors of merged commits are unknown (E5)."""

    def __init__(self, commit_ids: Iterable[str]) -> None:
        """Take the commits."""
        self.commit_ids = tuple(commit_ids)
        super().__init__(", ".join(self.commit_ids))


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A commit in which histories meet; the chain is None if both branches show it."""

    commit_id: str
    manifest_version: int
    chain: Chain | None = None


_Leaf = TypeVar("_Leaf")


@dataclass(frozen=True, slots=True)
class MergedBase(Generic[_Leaf]):
    """Two things merged over what they have in common (E2)."""

    one: "_Leaf | MergedBase[_Leaf]"
    other: "_Leaf | MergedBase[_Leaf]"
    over: "_Leaf | MergedBase[_Leaf]"


Meeting: TypeAlias = "Ancestor | MergedBase[Ancestor]"


class Ancestry:
    """The histories of two branches."""

    def __init__(self, one: ManifestState, other: ManifestState) -> None:
        """Take both branches, in any order."""
        self._states = one, other
        self._rows = [state.commits.rows().combine_chunks() for state in self._states]
        self._chained: tuple[ChainedLog, ChainedLog] | None = None
        self._lineage: Lineage | None = None

    def where_chains_part(self) -> Ancestor | None:
        """Return where both heads meet; None if a merge since makes a search necessary (E3)."""
        one, other = self._rows
        shared, *alone = where_in(one, other), where_not_in(one, other), where_not_in(other, one)
        if not shared.num_rows:
            return None
        found, version = _newest(shared)
        for rows in alone:
            if any(commit.get("merged_parent_commit_id") is not None for commit in _maybe_merges(rows)):
                return None
            if rows.num_rows and _oldest(rows)["parent_commit_id"] != found:
                return None
        return Ancestor(found, version)

    def meeting(self, others: Iterable[ManifestState] = ()) -> Meeting:
        """Return where both heads meet (E1, E2); other branches are searched for what no record says.

        Raises:
            HistoryUnknown: that depends on something unknown (E5).
            InvariantViolation: they have no common ancestor, as any two branches of one graph must.
        """
        lineage, (one, other) = self._learned(), self._chains()
        logs = [one, other]
        for state in others if lineage.has_unplaced else ():
            logs.append(_chained(state))
            while any(lineage.place_merges(log) for log in logs):
                pass
        heads = one.head, other.head
        behind = [lineage.reach([head]) for head in heads]
        shown = {chain.chain_id for chain in other.chains}
        likely = [chain.chain_id for chain in reversed(one.chains) if chain.chain_id in shown]
        best = lineage.best_common(*behind, likely=likely)
        names = f"commits {heads[0].commit_id} and {heads[1].commit_id}"
        if not best:
            raise InvariantViolation(f"{names} have no common ancestor")
        if any(log.contradicts(place) for place in best for log in (one, other)):
            raise InvariantViolation(f"{names} have different commits at one place in their histories")
        unknown = {commit for reach in behind for commit in lineage.unplaced_in(reach)}
        if len(best) == 1:  # unknown ancestors of the one best ancestor change nothing
            unknown -= set(lineage.unplaced_in(lineage.reach(best)))
        if unknown:
            raise HistoryUnknown(sorted(unknown))
        return self._merged(best)

    def record(self, merged: str, ref_of: Callable[[str], str | None]) -> dict[str, object]:
        """Return what merging a commit of the first branch adds to the rows of the second.

        Its rows do not say where the manifests are of the branches whose commits it shows: its own, and those
        of the branches that it was created from, which live as long as it does.
        """
        lineage, (one, other), source = self._learned(), self._chains(), self._states[0]
        for chain in one.chains:
            if chain.branch != MAIN:
                # Its own manifest is the one that was read, whatever has become of the name since.
                ref = source.ref if chain.branch == source.branch.name else ref_of(chain.branch)
                lineage.learn_chain(replace(chain, ref=ref))
        place = one.find(merged)
        assert place is not None, "the first branch has the commit"
        return lineage.record(place, Lineage([other]))

    def effective(self, commit_id: str) -> str:
        """Return the commit that last changed rows (E4)."""
        for state in self._states:
            found = state.commits.find(commit_id)
            if found is not None:
                return state.commits.effective(found).graph_commit_id
        return commit_id

    def _merged(self, places: tuple[ChainPlace, ...]) -> Meeting:
        lineage = self._learned()
        first, *others = places
        meeting: Meeting = self._ancestor(first)
        behind = lineage.reach([first])
        for place in others:
            over = lineage.best_common(behind, lineage.reach([place]))
            assert over, "what has a common descendant begins with the graph"
            meeting = MergedBase(meeting, self._ancestor(place), self._merged(over))
            behind = lineage.reach([*behind.values(), place])
        return meeting

    def _ancestor(self, place: ChainPlace) -> Ancestor:
        return Ancestor(place.commit_id, place.version, self._learned().chains[place.chain])

    def _chains(self) -> tuple[ChainedLog, ChainedLog]:
        if self._chained is None:
            one, other = self._states
            self._chained = _chained(one), _chained(other)
        return self._chained

    def _learned(self) -> Lineage:
        if self._lineage is None:
            chained = self._chains()
            self._lineage = Lineage(chained)
            while any(self._lineage.place_merges(log) for log in chained):
                pass
        return self._lineage


def _chained(state: ManifestState) -> ChainedLog:
    return ChainedLog(state.commits, branch=state.branch.name)


def _maybe_merges(rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the metadata of the commits that may be merges; few are decoded, however many there are."""
    is_one = _compute.match_substring(rows["metadata"], '"merged_parent_commit_id"')
    yield from map(metadata_members, rows.filter(is_one)["metadata"].to_pylist())


def _oldest(rows: pa.Table) -> dict[str, Any]:
    position = _compute.index(rows["table_version"], _compute.min(rows["table_version"])).as_py()
    return metadata_members(rows["metadata"][position].as_py())


def _newest(rows: pa.Table) -> tuple[str, int]:
    position = descending(rows, "table_version")[0]
    return str(rows["object_id"][position].as_py()), int(str(rows["table_version"][position].as_py()))
