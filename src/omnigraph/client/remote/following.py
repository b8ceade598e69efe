"""What a graph behind a server has become: differences, commits one by one, feeds and their baseline."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from omnigraph.changes.pages import PageSize
from omnigraph.client.access import FeedPlace
from omnigraph.client.choice import ChangeChoice
from omnigraph.client.http import Http
from omnigraph.client.remote import read_back
from omnigraph.client.remote.changes import RemoteChangeFeed, RemoteCommitChanges, RemoteDiff
from omnigraph.client.remote.embedded_only import refuse_given
from omnigraph.client.remote.read_back import RemoteSnapshot
from omnigraph.client.remote.streams import RemoteBaseline
from omnigraph.client.remote.times import Times
from omnigraph.client.served import ServedAccess, given
from omnigraph.client.understood import understood
from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import PAGE_BYTES, PAGE_CHANGES, POLL_COMMITS
from omnigraph.core.values import named
from omnigraph.graph.arguments import given_names, required_text
from omnigraph.history.identity import MAIN
from omnigraph.history.state import Snapshot
from omnigraph.operations.changes.commit_changes import CommitChangesPage
from omnigraph.operations.changes.feed import ChangeFeedPage, FeedPosition

if TYPE_CHECKING:
    from omnigraph.catalog.model import Catalog

RemoteTarget = RemoteSnapshot | Snapshot | str


class RemoteFollowing:
    """A handle's ways to see what changed."""

    _http: Http
    _served: ServedAccess
    _branch: str | None

    def catalog_on(self, branch: str | None, from_: str | None = None) -> "Catalog":
        """Return the types of a branch, or of the one that it is about to be made from."""
        raise NotImplementedError()  # abstract

    def _on(self, branch: str | None) -> str | None:
        """Return the branch of a call: the one it names, else the one that the handle is bound to."""
        return self._branch if branch is None else required_text("branch", branch)

    def diff(
        self,
        a: RemoteTarget,
        b: RemoteTarget = MAIN,
        *,
        kinds: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        ops: Iterable[str] | None = None,
        actor: str | None = None,
    ) -> RemoteDiff:
        """Return what differs from `b` to `a`, each a branch or a commit: iterate over changes.

        Raises:
            NotFoundError: a name is neither a branch nor a commit.
            ChangeSchemaBoundary: a type has different properties on the two sides.
        """
        refuse_given("diff", actor=actor)
        found = self._served.diff(target_name("a", a), target_name("b", b), _choice(kinds, types, ops))
        return RemoteDiff(found, self._times(None))

    def commit_changes(
        self,
        commit_id: str,
        *,
        kinds: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        ops: Iterable[str] | None = None,
        actor: str | None = None,
    ) -> RemoteCommitChanges:
        """Return what a commit changed compared with its first parent: iterate over changes.

        Raises:
            CommitNotFound: no live branch has it.
            CommitHasNoParent: it is the first one.
        """
        refuse_given("commit_changes", actor=actor)
        chosen = _choice(kinds, types, ops)
        times = self._times(None)
        return RemoteCommitChanges(
            lambda token: self._commit_page(commit_id, chosen, PAGE_CHANGES, token, times)
        )

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
    ) -> CommitChangesPage:
        """Return one page of a commit's changes: the first, or the one a token names.

        Raises:
            ChangeCursorRejected: the token belongs to something else.
            ResourceLimit: the requested page is too large.
        """
        refuse_given("commit_changes_page", actor=actor)
        _check_page(limit, page_bytes)
        chosen = _choice(kinds, types, ops)
        return self._commit_page(commit_id, chosen, limit, page_token, self._times(None))

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
    ) -> RemoteChangeFeed:
        """Return the commits of a branch since a cursor or a start, oldest first: iterate over blocks.

        A start is `now`, `beginning` or `after:<commit id>`. The feed has its next `cursor` once every block
        has been taken.
        """
        refuse_given("changes", actor=actor)
        FeedPosition(cursor, start)
        chosen, times, branch = _choice(kinds, types, ops), self._times(branch), self._on(branch)
        return RemoteChangeFeed(
            lambda place: self._feed_page(place, chosen, branch, PAGE_CHANGES, times),
            FeedPlace(cursor, start),
        )

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
    ) -> ChangeFeedPage:
        """Return one page of a branch's changes; its size in bytes and commits is the server's.

        Raises:
            ChangeCursorRejected: the cursor or token belongs to something else.
            ChangeFeedGap: the next commit was cleaned up.
            ResourceLimit: the requested page is too large.
        """
        refuse_given("poll_changes", actor=actor)
        _check_page(limit, page_bytes, commits)
        FeedPosition(cursor, start, page_token)
        place = FeedPlace(cursor, start, page_token)
        chosen = _choice(kinds, types, ops)
        return self._feed_page(place, chosen, self._on(branch), limit, self._times(branch))

    def baseline(
        self,
        *,
        branch: str | None = None,
        kinds: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        ops: Iterable[str] | None = None,
        actor: str | None = None,
    ) -> RemoteBaseline:
        """Return every entity of a branch, and then the cursor to continue from.

        Errors come when the records are asked for.
        """
        refuse_given("baseline", actor=actor)
        chosen = _choice(kinds, types, ops)
        body = given(branch=self._on(branch), kind=[*chosen.kinds], type=[*chosen.types], op=[*chosen.ops])
        asked = "/changes/baseline"
        return RemoteBaseline(lambda: self._http.stream("POST", asked, body=body), self._times(branch))

    def _times(self, branch: str | None) -> Times:
        """Return which properties are times by the schema of a branch, which is asked for if need be."""
        return Times(lambda: self.catalog_on(branch))

    def _commit_page(
        self, commit_id: str, chosen: ChangeChoice, limit: int, page_token: str | None, times: Times
    ) -> CommitChangesPage:
        document = self._served.commit_changes(commit_id, chosen, limit=limit, page_token=page_token)
        with understood():
            return read_back.changes_page_of(document, times)

    def _feed_page(
        self, place: FeedPlace, chosen: ChangeChoice, branch: str | None, limit: int, times: Times
    ) -> ChangeFeedPage:
        document = self._served.poll_changes(place, chosen, branch=branch, limit=limit)
        with understood():
            return read_back.feed_page_of(document, times)


def target_name(name: str, target: RemoteTarget) -> str:
    """Return the name of a branch or the id of a commit.

    Raises:
        BadRequest: it is neither.
    """
    match target:
        case RemoteSnapshot():
            return target.commit_id
        case Snapshot():
            return target.head.graph_commit_id
        case str():
            return target
    raise BadRequest(f"{name} must be a branch, the id of a commit or a snapshot, not {named(target)}")


def _choice(
    kinds: Iterable[str] | None, types: Iterable[str] | None, ops: Iterable[str] | None
) -> ChangeChoice:
    return ChangeChoice(
        given_names("kinds", kinds) or (), given_names("types", types) or (), given_names("ops", ops) or ()
    )


def _check_page(limit: int, page_bytes: int, commits: int = POLL_COMMITS) -> None:
    """Refuse a size that the engine would refuse, and one that a server does not take.

    Raises:
        BadRequest, ResourceLimit: the page is none, or too large.
    """
    PageSize(limit, page_bytes, commits)
    refuse_given("a page", page_bytes=None if page_bytes == PAGE_BYTES else page_bytes)
    refuse_given("a page", commits=None if commits == POLL_COMMITS else commits)
