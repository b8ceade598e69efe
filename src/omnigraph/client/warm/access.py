"""A graph in its storage, opened by a warm server of the same user.

A1  Answers, errors and warnings are those of a graph opened here: the server carries out the same calls.
A2  A call that was not taken is carried out here. So is a read whose answer was lost.
A3  A write that was taken is never sent again: without its answer, nobody knows (`CommitOutcomeUnknown`).
A4  A write that was taken cannot be called back: the first Ctrl-C waits for its answer, to say what became of
    it; a second one waits for nothing.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from omnigraph.client.access import (
    BlobCall,
    DiffAnswer,
    FeedPlace,
    GraphAccess,
    QueryCall,
    SchemaCall,
    StoredCall,
    UpgradeCall,
)
from omnigraph.client.answer import Document, ReadAnswer
from omnigraph.client.choice import ChangeChoice
from omnigraph.client.warm.link import Link, PeerGone, unpacked
from omnigraph.core.access_errors import CommitOutcomeUnknown, TransportError
from omnigraph.core.errors import OmnigraphError

if TYPE_CHECKING:
    from omnigraph.operations.progress import TableProgressCallback

MAIN = "main"
NO_ANSWER = "no answer came: compare heads"


class NotTaken(Exception):
    """The server did not take a call: nothing was done."""


class WarmAccess:
    """`GraphAccess` by a warm server, and by the storage itself where that does not do."""

    def __init__(
        self, link: Link, uri: str, embedded: Callable[[], GraphAccess], warn: Callable[[str], object]
    ) -> None:
        """Take the connection, the address as documents show it, how to open the storage, whom to warn."""
        self._link, self._uri, self._open, self._warn = link, uri, embedded, warn
        self._embedded: GraphAccess | None = None

    def __enter__(self) -> "WarmAccess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._link.close()
        if self._embedded is not None:
            self._embedded.__exit__(kind, error, trace)

    def query(self, call: QueryCall, *, branch: str | None, snapshot: str | int | None) -> ReadAnswer:
        """Run a read."""
        answer: ReadAnswer = self._read("query", call, branch=branch, snapshot=snapshot)
        return answer

    def mutate(
        self,
        call: QueryCall,
        *,
        branch: str | None,
        actor: str | None,
        if_commit: str | None,
        message: str | None,
        retry: int | None,
    ) -> Document:
        """Run a mutation, as one commit."""
        given = {"actor": actor, "if_commit": if_commit, "message": message, "retry": retry}
        return self._write("mutate", branch, call, branch=branch, **given)

    def invoke(
        self, call: StoredCall, *, branch: str | None, snapshot: str | int | None, if_commit: str | None
    ) -> Document | ReadAnswer:
        """Run a stored query, which a graph in its storage refuses."""
        return self._here().invoke(call, branch=branch, snapshot=snapshot, if_commit=if_commit)

    def branches(self) -> Document:
        """List the branches."""
        return self._document("branches")

    def create_branch(self, name: str, from_: str | None, *, actor: str | None) -> Document:
        """Create a branch."""
        return self._write("create_branch", from_, name, from_, actor=actor)

    def delete_branch(self, name: str, *, actor: str | None) -> Document:
        """Delete a branch."""
        return self._write("delete_branch", name, name, actor=actor)

    def merge(
        self,
        source: str,
        into: str,
        *,
        actor: str | None,
        message: str | None,
        delete_branch: bool,
        dry_run: bool,
        progress: "TableProgressCallback | None" = None,  # noqa: ARG002 - a server tells none
    ) -> Document:
        """Merge a branch into another one, as one commit."""
        given = {"actor": actor, "message": message, "delete_branch": delete_branch, "dry_run": dry_run}
        if dry_run:
            return self._document("merge", source, into, **given)
        return self._write("merge", into, source, into, **given)

    def blob(self, call: BlobCall) -> Document:
        """Describe a value, from the storage itself."""
        return self._here().blob(call)

    def blob_bytes(self, call: BlobCall, start: int, end: int | None) -> Iterator[bytes]:
        """Yield bytes of a value, from the storage itself."""
        return self._here().blob_bytes(call, start, end)

    def snapshot(self, branch: str | None) -> Document:
        """Describe the newest state of a branch."""
        return self._document("snapshot", branch)

    def export(self, branch: str | None, types: Sequence[str]) -> Iterator[bytes]:
        """Yield the data as NDJSON, from the storage itself."""
        return self._here().export(branch, types)

    def queries(self) -> Document:
        """List the stored queries that this command names; the server was started without any."""
        return self._here().queries()

    def commits(self, branch: str | None, wanted: Sequence[tuple[str, str]], limit: int | None) -> Document:
        """List commits, newest first."""
        return self._document("commits", branch, list(wanted), limit)

    def commit(self, commit_id: str, branch: str | None) -> Document:
        """Show one commit, perhaps of one branch."""
        return self._document("commit", commit_id, branch)

    def commit_changes(
        self, commit_id: str, chosen: ChangeChoice, *, limit: int, page_token: str | None
    ) -> Document:
        """Return one page of what a commit changed."""
        return self._document("commit_changes", commit_id, chosen, limit=limit, page_token=page_token)

    def poll_changes(
        self, place: FeedPlace, chosen: ChangeChoice, *, branch: str | None, limit: int
    ) -> Document:
        """Return one page of a feed."""
        return self._document("poll_changes", place, chosen, branch=branch, limit=limit)

    def diff(self, a: str, b: str, chosen: ChangeChoice) -> DiffAnswer:
        """Compare two branches or commits, from `b` to `a`."""
        found: DiffAnswer | None = self._read("diff", a, b, chosen)
        return _Differences(self) if found is None else found

    def schema(self, branch: str | None) -> Document:
        """Return the text of the schema."""
        return self._document("schema", branch)

    def apply_schema(
        self, call: SchemaCall, *, actor: str | None, progress: "TableProgressCallback | None" = None
    ) -> Document:
        """Change the schema, here: that may take Spark, and tells of its progress."""
        return self._here().apply_schema(call, actor=actor, progress=progress)

    def upgrade_branch(
        self, call: UpgradeCall, *, actor: str | None, progress: "TableProgressCallback | None" = None
    ) -> Document:
        """Bring the changes of main's schema to a branch, here, as a change of schema."""
        return self._here().upgrade_branch(call, actor=actor, progress=progress)

    def ask(self, name: str, *args: object, **given: object) -> Iterator[Any]:
        """Ask the server, and yield what it answers: one value, or the pieces of a stream.

        Raises:
            NotTaken: it has not begun.
            PeerGone: it has, and the answer was lost.
            OmnigraphError: what the engine raised.
        """
        try:
            self._link.send((self._uri, name, args, given))
            is_taken = self._link.hear().get("taken") is True
        except PeerGone as gone:
            raise NotTaken from gone
        if not is_taken:
            raise NotTaken
        while True:
            kind, value = self._link.receive()
            match kind:
                case "warning":
                    self._warn(value)
                case "error":
                    raise unpacked(*value)
                case "end":
                    return
                case _:
                    yield value

    def _here(self) -> GraphAccess:
        """Return the graph opened here."""
        if self._embedded is None:
            self._link.close()
            self._embedded = self._open()
        return self._embedded

    def _document(self, name: str, *args: object, **given: object) -> Document:
        document: Document = self._read(name, *args, **given)
        return document

    def _read(self, name: str, *args: object, **given: object) -> Any:  # noqa: ANN401 - as the call has it
        """Ask the server, or if it does not answer the graph opened here (A2)."""
        if self._embedded is None:
            try:
                return next(self.ask(name, *args, **given))
            except (NotTaken, PeerGone):
                pass
        return getattr(self._here(), name)(*args, **given)

    def _write(self, name: str, on: str | None, *args: object, **given: object) -> Document:
        """Have the server change the branch `on`; what it has not taken is done here (A2, A3)."""
        head = self._head(on)
        if self._embedded is None:
            try:
                with _patience() as notes:
                    return self._changed(notes, name, *args, **given)
            except NotTaken:
                pass
            except PeerGone as gone:
                raise CommitOutcomeUnknown(branch=(on or MAIN).strip(), head_before=head) from gone
        changed: Document = getattr(self._here(), name)(*args, **given)
        return changed

    def _changed(self, notes: list[str], name: str, *args: object, **given: object) -> Document:
        """Return the answer to a write, and note what became of it (A4)."""
        try:
            changed: Document = next(self.ask(name, *args, **given))
        except PeerGone:
            notes.append(NO_ANSWER)
            raise
        commit = changed.get("commit", {})
        if commit is not None:
            made = f", as commit {commit['graph_commit_id']}" if commit else ""
            notes.append(f"the write had already landed{made}")
        return changed

    def _head(self, branch: str | None) -> str | None:
        """Return the newest commit of a branch, for the error of a lost answer; None if there is none."""
        try:
            newest = self.commits(branch, (), 1)["commits"]
        except OmnigraphError:
            return None
        return newest[0]["graph_commit_id"] if newest else None


class _Differences:
    """`DiffAnswer` that the server keeps for this connection."""

    def __init__(self, access: WarmAccess) -> None:
        self._access = access

    def summary(self) -> Document:
        """Return both states, and the number of changes of each table."""
        summary: Document = next(self._asked("diff_summary"))
        return summary

    def changes(self) -> Iterator[Document]:
        """Yield the changes."""
        for page in self._asked("diff_changes"):
            yield from page

    def _asked(self, name: str) -> Iterator[Any]:
        try:
            yield from self._access.ask(name)
        except (NotTaken, PeerGone) as gone:
            raise TransportError("the comparison was cut off: run it again") from gone


@contextmanager
def _patience() -> Iterator[list[str]]:
    """Let the first Ctrl-C wait until the answer is there, with the notes about it (A4)."""
    notes, pressed = list[str](), list[int]()
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield notes
        return

    def take(number: int, _frame: FrameType | None) -> None:
        pressed.append(number)
        if len(pressed) > 1:
            raise _interrupt([NO_ANSWER])

    signal.signal(signal.SIGINT, take)
    try:
        yield notes
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if len(pressed) == 1:
            raise _interrupt(notes)


def _interrupt(notes: Sequence[str]) -> KeyboardInterrupt:
    interrupt = KeyboardInterrupt()
    for note in notes:
        interrupt.add_note(note)
    return interrupt
