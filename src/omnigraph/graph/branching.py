"""The verbs of a graph that make, end and bind branches."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from omnigraph.core.errors import BranchInUse
from omnigraph.history.branches import trimmed_name
from omnigraph.operations.context import OpenGraph

if TYPE_CHECKING:
    from omnigraph.history.branches import Branch
    from omnigraph.history.commits import GraphCommit
    from omnigraph.history.state import ManifestState
    from omnigraph.operations.merge.merge import MergeResult


class BranchVerbs(ABC):
    """Branches of one open graph; a handle may be bound to one of them."""

    _graph: OpenGraph
    _actor: str | None
    _branch: str | None

    def _who(self, actor: str | None) -> str | None:
        """Return who acts: whom a call names, else whom the handle was opened for."""
        return self._actor if actor is None else actor

    def _on(self, branch: str | None) -> str | None:
        """Return the branch of a call: the one it names, else the one that the handle is bound to."""
        return self._branch if branch is None else branch

    def branches(self) -> list[str]:
        """Return the names of all branches, sorted."""
        from omnigraph.operations.branches import list_branches

        return list_branches(self._graph, actor=self._actor)

    def create_branch(self, name: str, from_: str | None = None, *, actor: str | None = None) -> "Branch":
        """Make a branch that begins as another one is now: as the bound one, or as main.

        Raises:
            AlreadyExistsError: there is a branch of that name.
            BranchNotFound: there is no branch to begin from.
        """
        from omnigraph.operations.branches import create_branch

        return create_branch(self._graph, name, from_=self._on(from_), actor=self._who(actor))

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        """End a branch with all commits of its own.

        Raises:
            BranchInUse: another branch needs it, or this handle is bound to it.
        """
        self._delete_branch(name, self._who(actor))

    def _delete_branch(
        self, name: str, actor: str | None, *, ref: str | None = None, head: "GraphCommit | None" = None
    ) -> None:
        from omnigraph.operations.branches import delete_branch

        if trimmed_name(name) == self._branch:
            raise BranchInUse(self._branch, "this handle is bound to it")
        delete_branch(self._graph, name, actor=actor, ref=ref, head=head)

    def merge(
        self,
        source: str,
        into: str = "main",
        *,
        message: str | None = None,
        delete_branch: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> "MergeResult":
        """Bring into a branch what another one did since the two parted, as one commit with two parents.

        A dry run says how it would end and returns the conflicts; nothing is written. With `delete_branch`
        the source is deleted afterwards, unless it has commits by then that were not merged; where that is
        refused, the merge stands and the result says why.

        Raises:
            MergeConflicts: the two sides disagree; nothing was written.
            BranchNotFound: there is no such branch.
        """
        from omnigraph.operations.merge.merge import merge

        actor = self._who(actor)

        def delete(merged: "ManifestState") -> None:
            self._delete_branch(source, actor, ref=merged.ref, head=merged.head)

        return merge(
            self._graph,
            source,
            into=into,
            actor=actor,
            message=message,
            delete=delete if delete_branch else None,
            dry_run=dry_run,
        )

    @abstractmethod
    def _bound(self, branch: str) -> Self:
        """Return a handle on the same graph that reads and writes a branch."""

    @contextmanager
    def branch(
        self,
        name: str,
        from_: str | None = None,
        *,
        merge_on_exit: bool = False,
        delete_on_error: bool = True,
    ) -> Iterator[Self]:
        """Yield a handle bound to a branch, which is made first when `from_` says from what.

        With `merge_on_exit` the branch is merged into what it was made from, or into main. A branch that was
        made here is deleted when the block raises, unless that is switched off.
        """
        made = None if from_ is None else self.create_branch(name, from_)
        if made is None:
            self._graph.require_branch(self._graph.enter(self._actor, "read", name))
        try:
            yield self._bound(trimmed_name(name))
        except BaseException:
            if made is not None and delete_on_error:
                self._delete_branch(name, self._actor, ref=made.ref)
            raise
        if merge_on_exit:
            self.merge(name, into=from_ or "main")
