"""Where the two branches of a merge meet, and what the graph showed there.

M1  The commits in which two histories meet are read wherever a branch shows them, and on a deleted branch as
    long as its storage exists.
M2  If it is unknown in which commits they meet, or if one of them cannot be read, the merge is refused: a
    state that is merely older would bring deleted entities back and find false conflicts. The same applies if
    they meet in a commit that its branch gave up and that no other branch shows.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import AmbiguousMergeBase, StorageError
from omnigraph.history.ancestry import Ancestor, Ancestry, HistoryUnknown, Meeting, MergedBase
from omnigraph.history.identity import MAIN, BranchIdentity
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.merge.base import Base
from omnigraph.operations.context import OpenGraph


class MergeBase:
    """Where two captured branches meet."""

    def __init__(self, graph: OpenGraph, source: ManifestState, target: ManifestState) -> None:
        """Take both branches."""
        self._graph, self._source, self._target = graph, source, target
        self.ancestry = Ancestry(source, target)

    def find(self) -> Meeting:
        """Return where they meet.

        Raises:
            AmbiguousMergeBase: that is unknown (M2).
        """
        found = self.ancestry.where_chains_part()
        if found is not None:
            return found
        try:
            return self.ancestry.meeting(self._others())
        except HistoryUnknown as unknown:
            reason = f"it is unknown what led to {unknown}, of branches that were deleted or gave them up"
            raise self._refusal(unknown.commit_ids, reason) from unknown

    def read(self, meeting: Meeting) -> Base:
        """Return what the graph showed where they meet.

        Raises:
            AmbiguousMergeBase: a commit can no longer be read (M2).
        """
        if isinstance(meeting, MergedBase):
            one, other, over = (self.read(part) for part in (meeting.one, meeting.other, meeting.over))
            return MergedBase(one, other, over)
        return self._snapshot(meeting)

    def _snapshot(self, ancestor: Ancestor) -> Snapshot:
        branch = None if ancestor.chain is None else ancestor.chain.branch
        states = chain((self._target, self._source), self._others(branch), self._deleted(ancestor))
        for state in states:
            if state.commits.has(ancestor.commit_id):
                return state.snapshot_at(ancestor.manifest_version)
        reason = (
            f"their histories meet in commit {ancestor.commit_id} of a branch that was deleted or gave it up"
        )
        raise self._refusal([ancestor.commit_id], reason)

    def _others(self, first: str | None = None) -> Iterator[ManifestState]:
        """Yield the other branches, each read when its turn comes; the first to look at may be named."""
        parts, known = self._graph.parts, {self._source.branch.name, self._target.branch.name}
        if MAIN not in known:
            yield parts.coordinator.state()
        for branch in sorted(parts.branches.all(), key=lambda branch: (branch.name != first, branch.name)):
            if branch.name not in known:
                yield parts.coordinator.state(branch.identity)

    def _deleted(self, ancestor: Ancestor) -> Iterator[ManifestState]:
        """Yield the deleted branch that made a commit, if its manifest is still there (M1)."""
        made_on = ancestor.chain
        if made_on is None or made_on.ref is None:
            return
        try:
            yield self._graph.parts.coordinator.read_apart(BranchIdentity(made_on.branch, made_on.ref))
        except StorageError as error:
            # Nothing keeps what a deleted branch left behind: that a part of it is gone is not damage.
            if error.kind != "not_found" and not isinstance(error, GraphDamaged):
                raise

    def _refusal(self, ancestors: Iterable[str], reason: str) -> AmbiguousMergeBase:
        return AmbiguousMergeBase(
            source=self._source.branch.name,
            target=self._target.branch.name,
            ancestors=tuple(ancestors),
            reason=reason,
        )
