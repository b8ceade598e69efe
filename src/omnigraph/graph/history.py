"""The verbs of a graph that look at its history: what it shows, who wrote what, what was recovered."""

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from omnigraph.graph.branching import BranchVerbs
from omnigraph.history.commits import GraphCommit
from omnigraph.history.coordinator import MAIN
from omnigraph.history.state import Snapshot

if TYPE_CHECKING:
    from omnigraph.commit.recovery.audit import RecoveryRecord
    from omnigraph.operations.pin import Target
    from omnigraph.operations.verify import VerifyReport


class HistoryVerbs(BranchVerbs):
    """The history of one open graph."""

    def snapshot(self, branch: str | None = None) -> Snapshot:
        """Return the newest view of a branch."""
        branch = self._graph.enter(self._actor, "read", self._on(branch))
        return self._graph.state(branch).snapshot()

    def commits(
        self,
        *,
        branch: str | None = None,
        limit: int | None = None,
        where: Callable[[GraphCommit], bool] | None = None,
    ) -> list[GraphCommit]:
        """Return the commits of a branch, or those for which a condition holds, newest first."""
        branch = self._graph.enter(self._actor, "read", self._on(branch))
        return list(islice(filter(where, self._graph.state(branch).commits.newest_first()), limit))

    def commit(self, commit_id: str, *, branch: str | None = None) -> GraphCommit:
        """Return one commit.

        Raises:
            CommitNotFound: no branch has it.
        """
        from omnigraph.operations.pin import find_commit

        branch = self._graph.enter(self._actor, "read", self._on(branch))
        return find_commit(self._graph, commit_id, branch)[1]

    def entity_at(
        self, type_name: str, entity_id: str, target: "Target | None" = None, *, actor: str | None = None
    ) -> dict[str, object]:
        """Return one node or edge as a branch or a commit shows it, else as it is now; one table is opened.

        Raises:
            EntityNotFound: there is no such entity.
        """
        from omnigraph.operations.changes.entity_at import entity_at

        target = self._branch or MAIN if target is None else target
        return entity_at(self._graph, type_name, entity_id, target, actor=self._who(actor))

    def recoveries(self) -> "list[RecoveryRecord]":
        """Return the finished recoveries, newest first."""
        from omnigraph.commit.recovery.audit import read_records

        self._graph.enter(self._actor, "read", None)
        return read_records(self._graph.parts)

    def verify(self, *, branch: str | None = None) -> "VerifyReport":
        """Compare the files of all branches, or of one, with the lengths and checksums of their commits.

        Every file is read; nothing is written. The report says of each what became of it.

        Raises:
            BranchNotFound: there is no such branch.
        """
        from omnigraph.operations.verify import verify

        self._graph.enter(self._actor, "read", branch)
        return verify(self._graph.parts, branch=branch)
