"""The commits of a branch, for one who follows them: asked for once, read as often as needed."""

from dataclasses import dataclass
from itertools import islice

from omnigraph.history.commits import GraphCommit
from omnigraph.operations.context import OpenGraph
from omnigraph.policy.request import Action


@dataclass(frozen=True, slots=True)
class BranchLog:
    """The commits of a branch as they are made; who has it may read them."""

    graph: OpenGraph
    branch: str

    def head(self) -> GraphCommit:
        """Return the newest commit.

        Raises:
            BranchNotFound: the branch was deleted.
        """
        self.graph.require_open()
        return self.graph.newest(self.branch).snapshot().head

    def newest(self, limit: int) -> list[GraphCommit]:
        """Return the newest commits, newest first.

        Raises:
            BranchNotFound: the branch was deleted.
        """
        self.graph.require_open()
        return list(islice(self.graph.state(self.branch).commits.newest_first(), limit))


def commit_log(graph: OpenGraph, *, branch: str | None = None, actor: str | None = None) -> BranchLog:
    """Return the commits of a branch, which is not looked at yet.

    Raises:
        PolicyDenied: the actor may not read the branch.
    """
    return BranchLog(graph, graph.enter(actor, Action.READ, branch))
