"""The verbs of a graph that tell what changed: between two targets, in a commit, and since a cursor."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from omnigraph.core.limits import PAGE_BYTES, PAGE_CHANGES, POLL_COMMITS
from omnigraph.graph.history import HistoryVerbs
from omnigraph.history.coordinator import MAIN

if TYPE_CHECKING:
    from omnigraph.changes.model import ChangeFilter
    from omnigraph.operations.changes.baseline import Baseline
    from omnigraph.operations.changes.commit_changes import CommitChanges, CommitChangesPage
    from omnigraph.operations.changes.diff import Diff
    from omnigraph.operations.changes.feed import ChangeFeed, ChangeFeedPage
    from omnigraph.operations.pin import Target


class ChangeVerbs(HistoryVerbs):
    """Changes of one open graph. Filters name kinds (`node`, `edge`), types and operations; none is all."""

    def diff(
        self,
        a: "Target",
        b: "Target" = MAIN,
        *,
        kinds: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        ops: Iterable[str] | None = None,
        actor: str | None = None,
    ) -> "Diff":
        """Return what differs from `b` to `a`, each a branch or a commit: iterate over changes.

        Raises:
            NotFoundError: there is neither a branch nor a commit of a name.
            ChangeSchemaBoundary: a type has other properties on either side.
        """
        from omnigraph.operations.changes.diff import diff

        wanted = self._filter(kinds, types, ops)
        return diff(self._graph, b, a, wanted, actor=self._who(actor))

    def commit_changes(
        self,
        commit_id: str,
        *,
        kinds: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        ops: Iterable[str] | None = None,
        actor: str | None = None,
    ) -> "CommitChanges":
        """Return what a commit changed against its first parent: iterate over changes.

        Raises:
            CommitNotFound: no live branch has it.
            CommitHasNoParent: it is the first one.
        """
        from omnigraph.operations.changes.commit_changes import commit_changes

        wanted = self._filter(kinds, types, ops)
        return commit_changes(self._graph, commit_id, wanted, actor=self._who(actor))

    def commit_changes_page(
        self,
        commit_id: str,
        *,
        limit: int = PAGE_CHANGES,
        page_bytes: int = PAGE_BYTES,
        page_token: str | None = None,
        kinds: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        ops: Iterable[str] | None = None,
        actor: str | None = None,
    ) -> "CommitChangesPage":
        """Return one page of a commit's changes, the first one or that of a token.

        Raises:
            ChangeCursorRejected: the token belongs to something else.
            ResourceLimit: a page is never that large.
        """
        from omnigraph.changes.pages import PageSize
        from omnigraph.operations.changes.commit_changes import commit_changes_page

        wanted = self._filter(kinds, types, ops)
        size = PageSize(limit, page_bytes)
        return commit_changes_page(
            self._graph, commit_id, wanted, size=size, page_token=page_token, actor=self._who(actor)
        )

    def changes(
        self,
        cursor: str | None = None,
        start: str | None = None,
        *,
        branch: str | None = None,
        kinds: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        ops: Iterable[str] | None = None,
        actor: str | None = None,
    ) -> "ChangeFeed":
        """Return the commits of a branch since a cursor or a start, oldest first: iterate over blocks.

        A start is `now`, `beginning` or `after:<commit id>`. The feed has its next `cursor` once every block
        was taken.
        """
        from omnigraph.operations.changes.feed import FeedPosition, follow

        wanted = self._filter(kinds, types, ops)
        position = FeedPosition(cursor, start)
        return follow(self._graph, position, wanted, branch=self._on(branch), actor=self._who(actor))

    def poll_changes(
        self,
        *,
        cursor: str | None = None,
        start: str | None = None,
        page_token: str | None = None,
        branch: str | None = None,
        limit: int = PAGE_CHANGES,
        page_bytes: int = PAGE_BYTES,
        commits: int = POLL_COMMITS,
        kinds: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        ops: Iterable[str] | None = None,
        actor: str | None = None,
    ) -> "ChangeFeedPage":
        """Return one page of a branch's changes.

        Raises:
            ChangeCursorRejected: the cursor or token belongs to something else.
            ChangeFeedGap: the next commit was cleaned up.
            ResourceLimit: a page is never that large.
        """
        from omnigraph.changes.pages import PageSize
        from omnigraph.operations.changes.feed import FeedPosition, poll

        return poll(
            self._graph,
            FeedPosition(cursor, start, page_token),
            self._filter(kinds, types, ops),
            branch=self._on(branch),
            size=PageSize(limit, page_bytes, commits),
            actor=self._who(actor),
        )

    def baseline(
        self,
        *,
        branch: str | None = None,
        kinds: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        ops: Iterable[str] | None = None,
        actor: str | None = None,
    ) -> "Baseline":
        """Return every entity of a branch, pinned now, and then the cursor that goes on behind it."""
        from omnigraph.operations.changes.baseline import baseline

        wanted = self._filter(kinds, types, ops)
        return baseline(self._graph, wanted, branch=self._on(branch), actor=self._who(actor))

    def _filter(
        self, kinds: Iterable[str] | None, types: Iterable[str] | None, ops: Iterable[str] | None
    ) -> "ChangeFilter":
        from omnigraph.operations.changes.sides import change_filter

        return change_filter(self._graph, kinds=kinds, types=types, ops=ops)
