"""The change feed: the commits of a branch, oldest first, each with what it changed.

F1  A poll goes up to the head that it found when it began, and no further; its later pages keep to that.
F2  A cursor points between two commits. It is given when a poll is complete, and never inside a commit.
F3  The engine stores nothing for a consumer. What was delivered may be delivered again after a failure; a
    commit is recognized by its id.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from omnigraph.changes.model import ChangeBlock, ChangeCause, ChangeFilter
from omnigraph.changes.pages import Page, PageSize, behind
from omnigraph.changes.tokens import (
    Cursor,
    FeedPage,
    TokenScope,
    cursor_text,
    feed_page_text,
    read_cursor,
    read_feed_page,
)
from omnigraph.core.errors import (
    BadRequest,
    ChangeCursorRejected,
    ChangeFeedGap,
    ChangeSchemaBoundary,
    CommitNotFound,
    HistoricalVersionReclaimed,
    InvariantViolation,
)
from omnigraph.history.commits import GraphCommit
from omnigraph.history.identity import stored_name
from omnigraph.history.readers import Reader
from omnigraph.history.state import ManifestState
from omnigraph.operations.changes.commit_changes import changes_between
from omnigraph.operations.changes.sides import WantedChanges, side_of
from omnigraph.operations.changes.ways_out import way_out_of_feed
from omnigraph.operations.context import OpenGraph
from omnigraph.policy.request import Action

NOW, BEGINNING, AFTER = "now", "beginning", "after:"


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """Where a poll begins: at most one of the three is given; without any, it begins now."""

    cursor: str | None = None
    start: str | None = None
    page_token: str | None = None

    def __post_init__(self) -> None:
        """Refuse more than one.

        Raises:
            BadRequest: two are given, or the start is invalid.
        """
        given = [self.cursor, self.start, self.page_token]
        if sum(part is not None for part in given) > 1:
            raise BadRequest("a cursor, a start and a page token cannot be combined: give one of them")
        start = self.start
        is_start = start is None or (
            isinstance(start, str) and (start in {NOW, BEGINNING} or start.startswith(AFTER))
        )
        if not is_start:
            raise BadRequest(f"start '{self.start}' is invalid: use now, beginning or after:<commit id>")


@dataclass(frozen=True, slots=True)
class ChangeFeedPage:
    """One page of a poll: more follow while there is a token; the last one has the cursor (F2)."""

    blocks: tuple[ChangeBlock, ...]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None


def poll(
    graph: OpenGraph,
    position: FeedPosition,
    wanted: WantedChanges,
    *,
    branch: str | None = None,
    size: PageSize | None = None,
    actor: str | None = None,
) -> ChangeFeedPage:
    """Return the next page of a branch's changes.

    Raises:
        ChangeCursorRejected: the cursor or token belongs to something else.
        ChangeFeedGap: the next commit was cleaned up.
        ChangeSchemaBoundary: the next commit changed the schema of rows.
        BranchNotFound, CommitNotFound: there is no such branch, or no such commit to start after.
    """
    name = graph.enter(actor, Action.READ, branch)
    with graph.parts.readers.reading() as reader:
        return _poll(graph, position, wanted.on(graph), reader, branch=name, size=size)


def _poll(
    graph: OpenGraph,
    position: FeedPosition,
    wanted: ChangeFilter,
    reader: Reader,
    *,
    branch: str,
    size: PageSize | None,
) -> ChangeFeedPage:
    state = graph.state(branch)
    size = size or PageSize()
    scope = feed_scope(graph, state, wanted)
    begun = _begun(state, scope, position, size)
    return _fill(graph, state, wanted, begun, size=size, reader=reader)


def follow(
    graph: OpenGraph,
    position: FeedPosition,
    wanted: WantedChanges,
    *,
    branch: str | None = None,
    actor: str | None = None,
) -> "ChangeFeed":
    """Return the blocks of a branch after a position; they are read while the caller iterates.

    Raises:
        PolicyDenied: the actor may not read the branch.
    """
    name = stored_name(graph.enter(actor, Action.READ, branch))
    return ChangeFeed(graph, position, wanted.on(graph), name, actor)


def feed_scope(graph: OpenGraph, state: ManifestState, wanted: ChangeFilter) -> TokenScope:
    """Return what the cursors of a branch's feed belong to."""
    domain, genesis = graph.contract.accepted.domain, state.commits.genesis_id
    incarnation = hashlib.sha256((state.ref or "").encode()).hexdigest()[:32]  # a ref is nobody's business
    return TokenScope(domain, genesis, state.branch.name, incarnation, wanted.digest)


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """The blocks of a branch up to its head; `cursor` is known once all have been taken.

    So it is when a commit cannot be shown, because the schema changed or it was cleaned up: it is before it.
    """

    graph: OpenGraph
    position: FeedPosition
    filter: ChangeFilter
    branch: str | None = None
    actor: str | None = None
    size: PageSize = field(default_factory=PageSize)
    _end: list[str] = field(default_factory=list, repr=False)

    def __iter__(self) -> Iterator[ChangeBlock]:
        """Yield blocks; a large commit comes in several of the same cause."""
        self._end.clear()
        with self.graph.parts.readers.reading() as reader:  # from the first poll on to the end
            position: FeedPosition | None = self.position
            while position is not None:
                page = self._page(position, reader)
                yield from page.blocks
                position = self._following(page)

    def _page(self, position: FeedPosition, reader: Reader) -> ChangeFeedPage:
        """Return the next page; where a commit cannot be shown, the cursor before it is known."""
        name = self.graph.enter(self.actor, Action.READ, self.branch)
        try:
            return _poll(self.graph, position, self.filter, reader, branch=name, size=self.size)
        except (ChangeFeedGap, ChangeSchemaBoundary) as refused:
            self._end.extend([] if refused.cursor is None else [refused.cursor])
            raise

    def _following(self, page: ChangeFeedPage) -> FeedPosition | None:
        if page.next_page_token is not None:
            return FeedPosition(page_token=page.next_page_token)
        if page.caught_up:
            self._end.append(str(page.cursor))
            return None
        return FeedPosition(cursor=page.cursor)

    @property
    def cursor(self) -> str:
        """Where to continue later.

        Raises:
            BadRequest: not every block has been taken.
        """
        if not self._end:
            raise BadRequest("the cursor of a feed is known once all of its blocks have been taken")
        return self._end[0]


def _begun(state: ManifestState, scope: TokenScope, position: FeedPosition, size: PageSize) -> FeedPage:
    """Return what a poll delivers: the commits after one, up to another."""
    if position.page_token is not None:
        page = read_feed_page(position.page_token, scope)
        _known(state, page.cut)
        return page
    done = _done(state, scope, position)
    following = list(
        state.commits.oldest_first(above=_known(state, done).manifest_version, limit=size.commits)
    )
    cut = following[-1].graph_commit_id if following else done
    return FeedPage(scope, done, cut, cut == state.head.graph_commit_id, None)


def _done(state: ManifestState, scope: TokenScope, position: FeedPosition) -> str:
    if position.cursor is not None:
        return read_cursor(position.cursor, scope).done
    start = position.start or NOW
    if start == NOW:
        return state.head.graph_commit_id
    if start == BEGINNING:
        return state.commits.genesis_id
    commit_id = start.removeprefix(AFTER)
    if not state.commits.has(commit_id):
        raise CommitNotFound(commit_id)
    return commit_id


def _known(state: ManifestState, commit_id: str) -> GraphCommit:
    found = state.commits.find(commit_id)
    if found is None:
        raise ChangeCursorRejected("it names a commit that this branch does not have")
    return found


def _chain(state: ManifestState, begun: FeedPage) -> list[GraphCommit]:
    """Return the last delivered commit and those to deliver: along a branch, each is the parent of the next.

    Raises:
        InvariantViolation: they are not one chain.
    """
    done, cut = _known(state, begun.done), _known(state, begun.cut)
    following = state.commits.oldest_first(above=done.manifest_version, up_to=cut.manifest_version)
    chain = [done, *following]
    for parent, commit in pairwise(chain):
        if commit.parent_commit_id != parent.graph_commit_id:
            raise InvariantViolation(f"commit {commit.graph_commit_id} does not follow the one before it")
    return chain


def _fill(
    graph: OpenGraph,
    state: ManifestState,
    wanted: ChangeFilter,
    begun: FeedPage,
    *,
    size: PageSize,
    reader: Reader,
) -> ChangeFeedPage:
    page = Page(size)
    blocks: list[ChangeBlock] = []
    done, inside = begun.done, begun.inside
    snapshots = state.snapshots_of(_chain(state, begun))
    for before, after in pairwise(side_of(graph, snapshot) for snapshot in snapshots):
        reader.pin(before.snapshot)
        commit = after.snapshot.head
        try:
            found = changes_between(graph, before, after, wanted, inside, way_out=way_out_of_feed)
            changes, is_complete = page.take(found)
        except (HistoricalVersionReclaimed, ChangeSchemaBoundary) as error:
            cursor = cursor_text(Cursor(begun.scope, done))
            if done != begun.done:  # what was read is delivered; the next poll meets the obstacle first
                return ChangeFeedPage(tuple(blocks), cursor=cursor, caught_up=False)
            if isinstance(error, ChangeSchemaBoundary):
                error.cursor = cursor
                raise
            gone = commit.graph_commit_id
            raise ChangeFeedGap(cursor=cursor, first_unreadable_commit_id=gone) from error
        if changes or is_complete:
            blocks.append(ChangeBlock(ChangeCause.of(commit), changes))
        if not is_complete:
            inside = behind(changes) if changes else inside
            token = feed_page_text(FeedPage(begun.scope, done, begun.cut, begun.is_head, inside))
            return ChangeFeedPage(tuple(blocks), next_page_token=token)
        done, inside = commit.graph_commit_id, None
    return ChangeFeedPage(
        tuple(blocks), cursor=cursor_text(Cursor(begun.scope, done)), caught_up=begun.is_head
    )
