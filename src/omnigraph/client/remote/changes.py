"""What changed in a graph behind a server, page by page: iterators that ask for a page when they need it."""

from collections.abc import Callable, Iterator

from omnigraph.changes.model import ChangeBlock, ChangeCause, EntityChange
from omnigraph.client.access import DiffAnswer, FeedPlace
from omnigraph.client.pages import PagesTaken
from omnigraph.client.remote.read_back import RemoteSnapshot, change_of, counts_of, side_of
from omnigraph.client.remote.times import Times
from omnigraph.client.understood import NOT_OF_THIS_API, understood
from omnigraph.core.access_errors import TransportError
from omnigraph.core.errors import BadRequest, ChangeFeedGap, ChangeSchemaBoundary
from omnigraph.operations.changes.commit_changes import CommitChangesPage
from omnigraph.operations.changes.diff import TableCounts, diff_line, diff_shown
from omnigraph.operations.changes.feed import ChangeFeedPage


class RemoteDiff:
    """The differences between two states; iterating gives the changes from one to the other, in order."""

    def __init__(self, found: DiffAnswer, times: Times) -> None:
        """Take the first page, and which properties are times."""
        self._found, self._times = found, times
        with understood():
            summary = found.summary()
            self._sides = side_of(summary["from"]), side_of(summary["to"])
            self._stat = counts_of(summary["stats"])

    def __repr__(self) -> str:
        return diff_line("RemoteDiff", *self._sides, self._tables)

    def _repr_html_(self) -> str:
        return diff_shown(*self._sides, self._tables)

    @property
    def _tables(self) -> list[str]:
        return [counts.table_key for counts in self._stat]

    @property
    def from_snapshot(self) -> RemoteSnapshot:
        """The state before."""
        return self._sides[0]

    @property
    def to_snapshot(self) -> RemoteSnapshot:
        """The state after."""
        return self._sides[1]

    def __iter__(self) -> Iterator[EntityChange]:
        """Yield the changes: nodes before edges, then by type, then by id."""
        for document in self._found.changes():
            with understood():
                change = change_of(document, self._times)
            yield change

    def stat(self) -> tuple[TableCounts, ...]:
        """Count the changes of each table that has any."""
        return self._stat


class RemoteCommitChanges:
    """The changes of one commit; iterating gives all of them, in order."""

    def __init__(self, page: Callable[[str | None], CommitChangesPage]) -> None:
        """Take what asks for a page; the first one is asked for now."""
        self._page, self._first = page, page(None)

    @property
    def cause(self) -> ChangeCause:
        """The commit, as its changes name it."""
        return self._first.cause

    def __iter__(self) -> Iterator[EntityChange]:
        """Yield the changes: nodes before edges, then by type, then by id."""
        page, taken = self._first, PagesTaken()
        yield from page.changes
        while (token := taken.follow(page.next_page_token)) is not None:
            page = self._page(token)
            yield from page.changes


class RemoteChangeFeed:
    """The blocks of a branch up to its head; `cursor` is known once all have been taken.

    So it is when a commit cannot be shown, because the schema changed or it was cleaned up: it is before it.
    """

    def __init__(self, page: Callable[[FeedPlace], ChangeFeedPage], place: FeedPlace) -> None:
        """Take what asks for a page, and where to begin."""
        self._page, self._place = page, place
        self._end: str | None = None

    def __iter__(self) -> Iterator[ChangeBlock]:
        """Yield blocks; a large commit comes in several of the same cause."""
        self._end = None
        place: FeedPlace | None = self._place
        taken = PagesTaken(self._place.cursor)
        while place is not None:
            page = self._asked(place)
            yield from page.blocks
            place = self._following(page, taken)

    def _asked(self, place: FeedPlace) -> ChangeFeedPage:
        try:
            return self._page(place)
        except (ChangeFeedGap, ChangeSchemaBoundary) as refused:
            self._end = getattr(refused, "cursor", None)
            raise

    def _following(self, page: ChangeFeedPage, taken: PagesTaken) -> FeedPlace | None:
        if page.next_page_token is not None:
            return FeedPlace(page_token=taken.follow(page.next_page_token))
        if page.cursor is None:  # which the last page of a cut has
            raise TransportError(NOT_OF_THIS_API)
        if page.caught_up:
            self._end = page.cursor
            return None
        return FeedPlace(cursor=taken.follow(page.cursor))

    @property
    def cursor(self) -> str:
        """Where to continue later.

        Raises:
            BadRequest: not every block has been taken.
        """
        if self._end is None:
            raise BadRequest("the cursor of a feed is known once all of its blocks have been taken")
        return self._end
