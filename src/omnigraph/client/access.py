"""What a program may ask of a graph, wherever it is.

Answers are the documents of HTTP bodies, so that a program prints the same whichever way it took. There are
two ways: `client.embedded` opens the graph's storage, `client.served` asks a server.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from omnigraph.client.answer import Document, ReadAnswer
from omnigraph.client.choice import ChangeChoice
from omnigraph.core.span import Source

if TYPE_CHECKING:
    from omnigraph.operations.engine import Engine
    from omnigraph.operations.progress import TableProgressCallback


@dataclass(frozen=True, slots=True)
class QueryCall:
    """A query text, which of its queries to run, and the parameters."""

    source: Source
    name: str | None = None
    params: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A stored query by its name; `is_mutation` says which kind is expected, None if either will do.

    `message` is for the commit of a mutation.
    """

    name: str
    params: Mapping[str, object] | None = None
    is_mutation: bool | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class BlobCall:
    """A value: the property of a `node` or an `edge`, on a branch or in a past state."""

    entity: str
    type_name: str
    id: str
    property: str
    branch: str | None = None
    snapshot: str | int | None = None


@dataclass(frozen=True, slots=True)
class FeedPlace:
    """Where a feed of changes goes on; at most one of the three is given."""

    cursor: str | None = None
    start: str | None = None
    page_token: str | None = None


@dataclass(frozen=True, slots=True)
class SchemaCall:
    """A schema to apply, and how."""

    source: Source
    branch: str | None = None
    base: str | None = None
    allow_data_loss: bool = False
    exclusive: bool = False
    message: str | None = None
    index: bool = True
    engine: "Engine" = "auto"
    master: str | None = None
    tell_note: Callable[[str], object] = str  # called with each hint that has no effect


@dataclass(frozen=True, slots=True)
class UpgradeCall:
    """A branch to bring up to main's schema, and how."""

    name: str
    allow_data_loss: bool = False
    message: str | None = None
    index: bool = True
    engine: "Engine" = "auto"
    master: str | None = None


class DiffAnswer(Protocol):
    """What differs between two states: counts at once, changes one by one."""

    def summary(self) -> Document:
        """Return both states, as `from` and `to`, and `stats`: the number of changes of each table."""
        ...

    def changes(self) -> Iterator[Document]:
        """Yield the changes."""
        ...


class GraphAccess(Protocol):
    """One graph. Every method raises the errors of the engine, or those of no answer (`core.errors`)."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def query(self, call: QueryCall, *, branch: str | None, snapshot: str | int | None) -> ReadAnswer:
        """Run a read."""
        ...

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
        ...

    def invoke(
        self, call: StoredCall, *, branch: str | None, snapshot: str | int | None, if_commit: str | None
    ) -> Document | ReadAnswer:
        """Run a stored query: rows of a read, or what a mutation did."""
        ...

    def queries(self) -> Document:
        """List the stored queries, as far as they are listed."""
        ...

    def branches(self) -> Document:
        """List the branches."""
        ...

    def create_branch(self, name: str, from_: str | None, *, actor: str | None) -> Document:
        """Create a branch."""
        ...

    def delete_branch(self, name: str, *, actor: str | None) -> Document:
        """Delete a branch."""
        ...

    def merge(
        self,
        source: str,
        into: str,
        *,
        actor: str | None,
        message: str | None,
        delete_branch: bool,
        dry_run: bool,
        progress: "TableProgressCallback | None" = None,
    ) -> Document:
        """Merge a branch into another one, as one commit."""
        ...

    def blob(self, call: BlobCall) -> Document:
        """Describe a value: `kind`, `size`, `etag`, `uri` and the commit that shows it."""
        ...

    def blob_bytes(self, call: BlobCall, start: int, end: int | None) -> Iterator[bytes]:
        """Yield the bytes of a value from one position to another, or to its end."""
        ...

    def snapshot(self, branch: str | None) -> Document:
        """Describe the newest state of a branch."""
        ...

    def export(self, branch: str | None, types: Sequence[str]) -> Iterator[bytes]:
        """Yield the data as NDJSON, in pieces that end anywhere."""
        ...

    def commits(self, branch: str | None, wanted: Sequence[tuple[str, str]], limit: int | None) -> Document:
        """List commits, newest first; `wanted` are keys and values of `wire.commit_filter`."""
        ...

    def commit(self, commit_id: str, branch: str | None) -> Document:
        """Show one commit, perhaps of one branch."""
        ...

    def commit_changes(
        self, commit_id: str, chosen: ChangeChoice, *, limit: int, page_token: str | None
    ) -> Document:
        """Return one page of what a commit changed."""
        ...

    def poll_changes(
        self, place: FeedPlace, chosen: ChangeChoice, *, branch: str | None, limit: int
    ) -> Document:
        """Return one page of a feed."""
        ...

    def diff(self, a: str, b: str, chosen: ChangeChoice) -> DiffAnswer:
        """Compare two branches or commits, from `b` to `a`."""
        ...

    def schema(self, branch: str | None) -> Document:
        """Return the text of the schema."""
        ...

    def apply_schema(
        self, call: SchemaCall, *, actor: str | None, progress: "TableProgressCallback | None" = None
    ) -> Document:
        """Change the schema, as one commit."""
        ...

    def upgrade_branch(
        self, call: UpgradeCall, *, actor: str | None, progress: "TableProgressCallback | None" = None
    ) -> Document:
        """Bring the changes of main's schema to a branch, as one commit."""
        ...
