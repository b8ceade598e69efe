"""A graph in its storage, opened by this process."""

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from omnigraph.client.access import (
    BlobCall,
    DiffAnswer,
    FeedPlace,
    QueryCall,
    SchemaCall,
    StoredCall,
    UpgradeCall,
)
from omnigraph.client.answer import Document, ReadAnswer
from omnigraph.client.choice import ChangeChoice
from omnigraph.core.diagnostics import render
from omnigraph.core.errors import UnsupportedError
from omnigraph.graph.graph import Graph
from omnigraph.wire import documents
from omnigraph.wire.commit_filter import commit_condition

if TYPE_CHECKING:
    from omnigraph.operations.blob import Blob
    from omnigraph.operations.progress import TableProgressCallback


class EmbeddedAccess:
    """`GraphAccess` on an open `Graph`, which is closed with it."""

    def __init__(self, graph: Graph, uri: str) -> None:
        """Take the graph, and its address as documents show it."""
        self.graph, self._uri = graph, uri

    def __enter__(self) -> "EmbeddedAccess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.graph.close()

    def query(self, call: QueryCall, *, branch: str | None, snapshot: str | int | None) -> ReadAnswer:
        """Run a read."""
        return ReadAnswer.of(
            self.graph.query(call.source, call.name, call.params, branch=branch, snapshot=snapshot)
        )

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
        result = self.graph.mutate(
            call.source,
            call.name,
            call.params,
            branch=branch,
            actor=actor,
            if_commit=if_commit,
            message=message,
            retry=retry,
        )
        return documents.mutation_document(result, actor)

    def invoke(
        self,
        call: StoredCall,
        *,
        branch: str | None,  # noqa: ARG002 - as the protocol has it
        snapshot: str | int | None,  # noqa: ARG002
        if_commit: str | None,  # noqa: ARG002
    ) -> Document | ReadAnswer:
        """Refuse: stored queries are a server's.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"'{call.name}' without a text is a stored query, and stored queries need a server: "
            "give the text with --query FILE or -e TEXT"
        )

    def queries(self) -> Document:
        """List the stored queries that the graph was opened with, as far as they are listed."""
        return {"queries": [documents.stored_query_document(query) for query in self.graph.queries()]}

    def branches(self) -> Document:
        """List the branches."""
        return {"branches": self.graph.branches()}

    def create_branch(self, name: str, from_: str | None, *, actor: str | None) -> Document:
        """Create a branch."""
        made = self.graph.create_branch(name, from_, actor=actor)
        return documents.branch_created_document(made, self._uri, actor)

    def delete_branch(self, name: str, *, actor: str | None) -> Document:
        """Delete a branch."""
        self.graph.delete_branch(name, actor=actor)
        return documents.branch_deleted_document(name, self._uri, actor)

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
        result = self.graph.merge(
            source,
            into,
            message=message,
            delete_branch=delete_branch,
            dry_run=dry_run,
            actor=actor,
            progress=progress,
        )
        return documents.merge_document(result, actor, is_dry_run=dry_run, is_delete_asked=delete_branch)

    def blob(self, call: BlobCall) -> Document:
        """Describe a value."""
        return documents.blob_document(self._blob(call))

    def blob_bytes(self, call: BlobCall, start: int, end: int | None) -> Iterator[bytes]:
        """Yield bytes of a value."""
        yield from self._blob(call).stream(start, end)

    def _blob(self, call: BlobCall) -> "Blob":
        return self.graph.blob(
            call.entity,
            call.type_name,
            call.id,
            call.property,
            branch=call.branch,
            snapshot=call.snapshot,
        )

    def snapshot(self, branch: str | None) -> Document:
        """Describe the newest state of a branch."""
        return documents.snapshot_document(self.graph.snapshot(branch))

    def export(self, branch: str | None, types: Sequence[str]) -> Iterator[bytes]:
        """Yield the data as NDJSON."""
        yield from self.graph.export(branch=branch, types=list(types) or None).lines()

    def commits(self, branch: str | None, wanted: Sequence[tuple[str, str]], limit: int | None) -> Document:
        """List commits, newest first."""
        conditions = [commit_condition(key, value) for key, value in wanted]
        found = self.graph.commits(
            branch=branch, limit=limit, where=lambda commit: all(holds(commit) for holds in conditions)
        )
        return {"commits": [documents.commit_document(commit) for commit in found]}

    def commit(self, commit_id: str, branch: str | None) -> Document:
        """Show one commit, perhaps of one branch."""
        return documents.commit_document(self.graph.commit(commit_id, branch=branch))

    def commit_changes(
        self, commit_id: str, chosen: ChangeChoice, *, limit: int, page_token: str | None
    ) -> Document:
        """Return one page of what a commit changed."""
        from omnigraph.changes.documents import commit_changes_document

        page = self.graph.commit_changes_page(
            commit_id,
            limit=limit,
            page_token=page_token,
            kinds=chosen.kinds,
            types=chosen.types,
            ops=chosen.ops,
        )
        return commit_changes_document(page.cause, page.changes, page.next_page_token)

    def poll_changes(
        self, place: FeedPlace, chosen: ChangeChoice, *, branch: str | None, limit: int
    ) -> Document:
        """Return one page of a feed."""
        from omnigraph.changes.documents import feed_document

        page = self.graph.poll_changes(
            cursor=place.cursor,
            start=place.start,
            page_token=place.page_token,
            branch=branch,
            limit=limit,
            kinds=chosen.kinds,
            types=chosen.types,
            ops=chosen.ops,
        )
        return feed_document(page.blocks, page.next_page_token, page.cursor, page.caught_up)

    def diff(self, a: str, b: str, chosen: ChangeChoice) -> DiffAnswer:
        """Compare two branches or commits, from `b` to `a`."""
        return _Differences(self.graph, a, b, chosen)

    def schema(self, branch: str | None) -> Document:
        """Return the text of the schema."""
        return {"schema_source": self.graph.schema(branch=branch)}

    def apply_schema(
        self, call: SchemaCall, *, actor: str | None, progress: "TableProgressCallback | None" = None
    ) -> Document:
        """Change the schema, as one commit."""
        result = self.graph.apply_schema(
            call.source,
            branch=call.branch,
            base=call.base,
            allow_data_loss=call.allow_data_loss,
            exclusive=call.exclusive,
            actor=actor,
            message=call.message,
            index=call.index,
            progress=progress,
            engine=call.engine,
            master=call.master,
        )
        for note in result.diagnostics:
            call.tell_note(render(note, call.source))
        return documents.schema_apply_document(result, self._uri)

    def upgrade_branch(
        self, call: UpgradeCall, *, actor: str | None, progress: "TableProgressCallback | None" = None
    ) -> Document:
        """Bring the changes of main's schema to a branch, as one commit."""
        result = self.graph.upgrade_branch(
            call.name,
            actor=actor,
            message=call.message,
            index=call.index,
            allow_data_loss=call.allow_data_loss,
            progress=progress,
            engine=call.engine,
            master=call.master,
        )
        return documents.schema_apply_document(result, self._uri)


class _Differences:
    """`DiffAnswer` from rows that are compared when they are asked for."""

    def __init__(self, graph: Graph, a: str, b: str, chosen: ChangeChoice) -> None:
        self._found = graph.diff(a, b, kinds=chosen.kinds, types=chosen.types, ops=chosen.ops)

    def summary(self) -> Document:
        """Return both states, and the number of changes of each table."""
        return documents.diff_document(self._found, with_changes=False)

    def changes(self) -> Iterator[Document]:
        """Yield the changes."""
        from omnigraph.changes.documents import change_document

        return map(change_document, self._found)
