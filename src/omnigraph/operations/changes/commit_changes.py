"""`commit_changes`: what one commit changed compared with its first parent, at once or page by page."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from omnigraph.changes.model import ChangeCause, ChangeFilter, EntityChange
from omnigraph.changes.pages import Page, PageSize, behind
from omnigraph.changes.pairs import Boundary, Side
from omnigraph.changes.position import Position
from omnigraph.changes.tokens import CommitPage, TokenScope, commit_page_text, read_commit_page
from omnigraph.core.errors import CommitHasNoParent, CommitNotFound
from omnigraph.history.commits import GraphCommit
from omnigraph.history.identity import branch_name
from omnigraph.history.state import ManifestState
from omnigraph.operations.changes.sides import WantedChanges, as_changes, changed_rows, differing, side_of
from omnigraph.operations.changes.ways_out import way_out_of_commit
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.pin import find_commit
from omnigraph.operations.reclaimed import reading_of
from omnigraph.policy.request import AccessRequest, Action


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """The changes of one commit; iterating gives all of them, in order."""

    graph: OpenGraph
    state: ManifestState
    parent: GraphCommit
    commit: GraphCommit
    filter: ChangeFilter

    @property
    def cause(self) -> ChangeCause:
        """The commit, as its changes name it."""
        return ChangeCause.of(self.commit)

    def __iter__(self) -> Iterator[EntityChange]:
        """Yield the changes: nodes before edges, then by type, then by id."""
        return self.behind(None)

    def behind(self, beyond: Position | None) -> Iterator[EntityChange]:
        """Yield the changes after a position; None is the beginning.

        Raises:
            ChangeSchemaBoundary: rows before and after cannot be compared.
            HistoricalVersionReclaimed: a version of either was cleaned up.
        """
        self.graph.require_open()
        before, after = (
            side_of(self.graph, snapshot) for snapshot in self.state.snapshots_of([self.parent, self.commit])
        )
        return self._between(before, after, beyond)

    def _between(self, before: Side, after: Side, beyond: Position | None) -> Iterator[EntityChange]:
        shown = before.snapshot, after.snapshot
        with self.graph.parts.readers.reading(*shown), reading_of(self.graph, *shown):
            yield from changes_between(
                self.graph, before, after, self.filter, beyond, way_out=way_out_of_commit
            )


@dataclass(frozen=True, slots=True)
class CommitChangesPage:
    """Some changes of one commit; there is a token exactly while there are more."""

    cause: ChangeCause
    changes: tuple[EntityChange, ...]
    next_page_token: str | None


def commit_changes(
    graph: OpenGraph, commit_id: str, wanted: WantedChanges, *, actor: str | None = None
) -> CommitChanges:
    """Find a commit and say what it changed.

    Raises:
        CommitNotFound: no live branch has it, or the actor may not read the one on which it landed.
        CommitHasNoParent: it is the first one.
        PolicyDenied: the actor may read no branch.
    """
    may_read_all = graph.enter_somewhere(actor, Action.READ)
    state, commit = find_commit(graph, commit_id)
    landed = AccessRequest(actor, Action.READ, branch_name(commit.manifest_branch))
    if not may_read_all and not graph.gate.allows(landed):
        raise CommitNotFound(commit_id)  # as of one that is not there
    if commit.parent_commit_id is None:
        raise CommitHasNoParent(commit_id)
    parent = state.commits.find(commit.parent_commit_id)
    if parent is None:
        raise CommitNotFound(commit.parent_commit_id)
    return CommitChanges(graph, state, parent, commit, wanted.on(graph))


def commit_changes_page(
    graph: OpenGraph,
    commit_id: str,
    wanted: WantedChanges,
    *,
    size: PageSize,
    page_token: str | None = None,
    actor: str | None = None,
) -> CommitChangesPage:
    """Return the first page of a commit's changes, or the one that a token names.

    Raises:
        ChangeCursorRejected: the token belongs to something else.
        CommitNotFound, CommitHasNoParent: as for all changes.
    """
    found = commit_changes(graph, commit_id, wanted, actor=actor)
    scope = TokenScope(
        graph.contract.accepted.domain, found.state.commits.genesis_id, "", "", found.filter.digest
    )
    beyond = None if page_token is None else read_commit_page(page_token, scope, commit_id).inside
    changes, is_complete = Page(size).take(found.behind(beyond))
    token = None if is_complete else commit_page_text(CommitPage(scope, commit_id, behind(changes)))
    return CommitChangesPage(found.cause, changes, token)


def changes_between(
    graph: OpenGraph,
    before: Side,
    after: Side,
    wanted: ChangeFilter,
    beyond: Position | None = None,
    *,
    way_out: Callable[[Boundary], str],
) -> Iterator[EntityChange]:
    """Yield the changes that lead from one commit to the next, starting after a position.

    Raises:
        ChangeSchemaBoundary: rows before and after cannot be compared.
        HistoricalVersionReclaimed: a version of either was cleaned up.
    """
    pairs = differing(graph, before, after, wanted, refuse_drops=True, way_out=way_out)
    for rows in changed_rows(graph, pairs, wanted, beyond):
        yield from as_changes(rows)
