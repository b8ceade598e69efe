"""`Graph`: the object a Python user holds; thin, synchronous, safe to share between threads.

A method imports its operation when it is called: a reader does not pay for merges and bulk loads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.core.errors import BadRequest, BranchInUse, PolicyDenied
from omnigraph.core.limits import PAGE_BYTES, PAGE_CHANGES, POLL_COMMITS
from omnigraph.core.span import Source
from omnigraph.core.values import is_count, shown
from omnigraph.graph.arguments import (
    check_callable,
    check_flags,
    given_callback,
    given_names,
    given_number,
    given_text,
    required_text,
)
from omnigraph.graph.entity_reads import EntityReads
from omnigraph.graph.loading import Loading
from omnigraph.graph.source import query_name, text_source
from omnigraph.history.branches import trimmed_name
from omnigraph.history.commits import GraphCommit
from omnigraph.history.identity import MAIN, branch_name
from omnigraph.history.lanes import CommitList
from omnigraph.history.state import Snapshot
from omnigraph.operations.context import check_actor, named_branch
from omnigraph.operations.open import close
from omnigraph.policy.request import Action

if TYPE_CHECKING:
    from omnigraph.catalog.stored_queries import StoredQuery
    from omnigraph.graph.result import Result
    from omnigraph.graph.snapshot_view import SnapshotView
    from omnigraph.history.branches import Branch
    from omnigraph.history.state import ManifestState
    from omnigraph.operations.changes.baseline import Baseline
    from omnigraph.operations.changes.commit_changes import CommitChanges, CommitChangesPage
    from omnigraph.operations.changes.diff import Diff
    from omnigraph.operations.changes.feed import ChangeFeed, ChangeFeedPage
    from omnigraph.operations.changes.sides import WantedChanges
    from omnigraph.operations.describe.describe import TypeDescription
    from omnigraph.operations.export import Export
    from omnigraph.operations.merge.merge import MergeResult
    from omnigraph.operations.mutate import MutationResult
    from omnigraph.operations.pin import SnapshotLike, Target
    from omnigraph.operations.progress import TableProgressCallback
    from omnigraph.operations.scan import ScannedRows
    from omnigraph.plan.describe import Explanation


class Graph(EntityReads, Loading):
    """One open graph.

    A call that names no branch means the one the handle is bound to; at first, main. `merge` and `diff` take
    main as their other side unless told otherwise.
    """

    def __enter__(self) -> "Graph":
        """Return the graph itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the graph."""
        self.close()

    def close(self) -> None:
        """Release what is cached, and stop being a writer on an object store; idempotent."""
        close(self._graph)

    @property
    def uri(self) -> str:
        """Where the graph is stored."""
        return self._graph.parts.root.uri

    # Writes

    def mutate(
        self,
        source: str | Path | Source,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        retry: float | None = None,
    ) -> "MutationResult":
        """Run one mutation of a `.gq` text or file as one commit.

        Threads take turns. If another process was first, the mutation is run again on what that one left, for
        up to `retry` seconds (10 unless `OMNIGRAPH_WRITE_RETRY` says otherwise); with 0, or with `if_commit`,
        the conflict is raised at once.
        """
        from omnigraph.operations.mutate import mutate

        return mutate(
            self._graph,
            text_source(source),
            name=query_name(name),
            params=params,
            branch=self._on(branch),
            actor=self._who(actor),
            if_commit=given_text("if_commit", if_commit),
            message=message,
            retry=retry,
        )

    # Reads

    def query(
        self,
        source: str | Path | Source,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: "SnapshotLike | None" = None,
        actor: str | None = None,
        timeout_ms: int | None = None,
        memory_bytes: int | None = None,
        exact: bool = False,
    ) -> "Result":
        """Run one read of a `.gq` text or file, on the newest snapshot of a branch or on a past one.

        Limits are those of the settings unless given. With `exact`, vectors are compared one by one, even if
        there is an index.
        """
        from omnigraph.graph.result import Result
        from omnigraph.operations.query import query

        answer = query(
            self._graph,
            text_source(source),
            name=query_name(name),
            params=params,
            branch=self._on(branch) if snapshot is None else branch,
            snapshot=snapshot,
            actor=self._who(actor),
            timeout_ms=given_number("timeout_ms", timeout_ms),
            memory_bytes=given_number("memory_bytes", memory_bytes),
            exact=exact,
        )
        return Result(answer)

    def explain(
        self,
        source: str | Path | Source,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: "SnapshotLike | None" = None,
        actor: str | None = None,
    ) -> "Explanation":
        """Return how a read would be carried out; parameters may be left out."""
        from omnigraph.operations.query import explain

        return explain(
            self._graph,
            text_source(source),
            name=query_name(name),
            params=params,
            branch=self._on(branch) if snapshot is None else branch,
            snapshot=snapshot,
            actor=self._who(actor),
        )

    # Stored queries

    def queries(self) -> "list[StoredQuery]":
        """Return the stored queries that are listed, by name; none unless the graph was opened with some."""
        self._graph.enter(self._actor, Action.READ, None)  # they are those of the graph, whatever is bound
        return [] if self._stored is None else list(self._stored.listed)

    def invoke(
        self,
        name: str,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: "SnapshotLike | None" = None,
        if_commit: str | None = None,
        actor: str | None = None,
        message: str | None = None,
    ) -> "Result | MutationResult":
        """Run a stored query by its name: a read gives its rows, a mutation what it did.

        Raises:
            UnsupportedError: the graph was opened without stored queries.
            QueryNotFound: there is no stored query of that name.
            BadRequest: a mutation was asked of a snapshot, or a read was given what only writes have.
        """
        from omnigraph.graph.stored_call import InvokeOptions, invoke_stored

        self._graph.enter(self._who(actor), Action.INVOKE_QUERY, self._on(branch))
        return invoke_stored(
            self,
            self._stored,
            query_name(name),
            InvokeOptions(params, branch, snapshot, given_text("if_commit", if_commit), actor, message),
        )

    def at(self, snapshot: "SnapshotLike") -> "SnapshotView":
        """Return a read-only view of one snapshot, which never looks at the branch again.

        Raises:
            CommitNotFound, VersionNotFound: there is no such snapshot.
        """
        from omnigraph.graph.snapshot_view import SnapshotView
        from omnigraph.operations.pin import read_snapshot

        found = read_snapshot(self._graph, self._actor, self._branch or MAIN, snapshot)
        view = SnapshotView(self, found)
        self._graph.parts.readers.keep(view, view.snapshot)  # cleanup keeps it readable while it is held
        return view

    def export(
        self,
        *,
        branch: str | None = None,
        types: Sequence[str] | None = None,
        actor: str | None = None,
        progress: "TableProgressCallback | None" = None,
    ) -> "Export":
        """Return the records of a branch, pinned now: iterate over dicts, or write them with `to_file`.

        `progress` is called as of `optimize`, each time that the records are gone through in this process.

        Raises:
            BadRequest: there is no such type.
        """
        from omnigraph.operations.export import export
        from omnigraph.operations.progress import unseen

        return export(
            self._graph,
            branch=self._on(branch),
            types=given_names("types", types),
            actor=self._who(actor),
            progress=given_callback(progress, unseen),
        )

    def table(self, type_name: str, *, branch: str | None = None) -> pa.Table:
        """Return all rows of a type, by id; a `DateTime` is a timestamp in UTC.

        A table key, such as `node:Person`, names a type as well.

        Raises:
            BadRequest: there is no such type.
            HistoricalVersionReclaimed: the table's version was cleaned up.
        """
        from omnigraph.operations.pin import read_table

        return read_table(self._graph, type_name, branch=self._on(branch), actor=self._actor)

    def scan(
        self,
        type_name: str,
        *,
        branch: str | None = None,
        snapshot: "SnapshotLike | None" = None,
        columns: Sequence[str] | None = None,
        actor: str | None = None,
    ) -> "ScannedRows":
        """Return the rows of a type in batches, pinned now: all columns, or those that are named.

        A batch is read when it is asked for, so that the table need not fit into memory; their order is that
        of storage. A table key, such as `node:Person`, names a type as well.

        Raises:
            BadRequest: there is no such type, or it has no such column.
            HistoricalVersionReclaimed: the table's version was cleaned up.
        """
        from omnigraph.operations.scan import scan

        return scan(
            self._graph,
            type_name,
            columns=given_names("columns", columns),
            branch=self._on(branch) if snapshot is None else branch,
            snapshot=snapshot,
            actor=self._who(actor),
        )

    def duckdb(
        self,
        *,
        branch: str | None = None,
        snapshot: "SnapshotLike | None" = None,
        actor: str | None = None,
    ) -> Any:  # noqa: ANN401 - duckdb is optional, and so are its types
        """Return a DuckDB connection with a view for each type, over one snapshot: SQL without a copy.

        A view has the type's name, the id and the properties; edges have `src` and `dst`. Types whose names
        differ in case alone are called by table key, such as "node:Person". Rows are read when a query runs.

        Raises:
            UnsupportedError: duckdb is not installed, which the extra `omnigraph[duckdb]` does.
        """
        from omnigraph.graph.sql import duckdb_over, pinned_datasets

        seen = self._pin(branch, snapshot, actor)
        return duckdb_over(self._graph.catalog_of(seen).types, pinned_datasets(self._graph, seen))

    def to_networkx(
        self,
        *,
        branch: str | None = None,
        snapshot: "SnapshotLike | None" = None,
        types: Sequence[str] | None = None,
        actor: str | None = None,
    ) -> Any:  # noqa: ANN401 - networkx is optional, and so are its types
        """Return a `networkx.MultiDiGraph` of a snapshot; edge types bring the types of their ends.

        A node is `(type, id)`, an edge has the key `(type, id)`. Properties that have a value are attributes.

        Raises:
            UnsupportedError: networkx is not installed, which the extra `omnigraph[networkx]` does.
            BadRequest: there is no such type.
        """
        from omnigraph.graph.networks import networkx_of
        from omnigraph.operations.export import pinned_export

        seen = self._pin(branch, snapshot, actor)
        catalog = self._graph.catalog_of(seen)
        return networkx_of(
            catalog,
            given_names("types", types),
            pinned_export(self._graph, seen, catalog.types).batches,
            branch=branch_name(seen.branch),
            commit_id=seen.head.graph_commit_id,
        )

    def _pin(self, branch: str | None, snapshot: "SnapshotLike | None", actor: str | None) -> Snapshot:
        from omnigraph.operations.pin import read_view

        on = self._on(branch) if snapshot is None else branch
        return read_view(self._graph, self._who(actor), branch=on, snapshot=snapshot)

    def describe(
        self,
        type_name: str,
        *,
        branch: str | None = None,
        snapshot: "SnapshotLike | None" = None,
        actor: str | None = None,
    ) -> "TypeDescription":
        """Return a type with what its rows hold: nulls, distinct values, bounds, samples, degrees of edges.

        Every row is read once. Distinct values beyond 10,000 are estimated, and the result says so.

        Raises:
            BadRequest: there is no such type, or it is an interface.
            HistoricalVersionReclaimed: the table's version was cleaned up.
        """
        from omnigraph.operations.describe.describe import describe

        return describe(
            self._graph,
            type_name,
            branch=self._on(branch) if snapshot is None else branch,
            snapshot=snapshot,
            actor=self._who(actor),
        )

    def snapshot(self, branch: str | None = None) -> Snapshot:
        """Return the newest view of a branch."""
        branch = self._graph.enter(self._actor, Action.READ, self._on(branch))
        return self._graph.newest(branch).snapshot()

    def commits(
        self,
        *,
        branch: str | None = None,
        limit: int | None = None,
        where: Callable[[GraphCommit], bool] | None = None,
    ) -> CommitList:
        """Return the commits of a branch, or those for which a condition holds, newest first.

        They are a list, which a notebook shows as lanes.

        Raises:
            BadRequest: the limit is not a number, or below zero.
        """
        if limit is not None and not is_count(limit):
            raise BadRequest(
                f"the limit of a list of commits must be a whole number from 0 on, not {shown(limit)}"
            )
        check_callable("where", where)
        branch = self._graph.enter(self._actor, Action.READ, self._on(branch))
        return CommitList(islice(filter(where, self._graph.state(branch).commits.newest_first()), limit))

    def commit(self, commit_id: str, *, branch: str | None = None) -> GraphCommit:
        """Return one commit.

        Raises:
            CommitNotFound: no branch has it.
        """
        from omnigraph.operations.pin import find_commit

        self._graph.enter_whole(self._actor, Action.READ)
        return find_commit(
            self._graph, required_text("commit_id", commit_id), named_branch(self._on(branch))
        )[1]

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
            NotFoundError: a name is neither a branch nor a commit.
            ChangeSchemaBoundary: a type has different properties on the two sides.
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
        """Return what a commit changed compared with its first parent: iterate over changes.

        Raises:
            CommitNotFound: no live branch has it.
            CommitHasNoParent: it is the first one.
        """
        from omnigraph.operations.changes.commit_changes import commit_changes

        wanted = self._filter(kinds, types, ops)
        return commit_changes(
            self._graph, required_text("commit_id", commit_id), wanted, actor=self._who(actor)
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
    ) -> "CommitChangesPage":
        """Return one page of a commit's changes: the first, or the one a token names.

        Raises:
            ChangeCursorRejected: the token belongs to something else.
            ResourceLimit: the requested page is too large.
        """
        from omnigraph.changes.pages import PageSize
        from omnigraph.operations.changes.commit_changes import commit_changes_page

        wanted = self._filter(kinds, types, ops)
        size = PageSize(limit, page_bytes)
        return commit_changes_page(
            self._graph,
            required_text("commit_id", commit_id),
            wanted,
            size=size,
            page_token=page_token,
            actor=self._who(actor),
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
        has been taken.
        """
        from omnigraph.operations.changes.feed import FeedPosition, follow

        wanted = self._filter(kinds, types, ops, branch)
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
            ResourceLimit: the requested page is too large.
        """
        from omnigraph.changes.pages import PageSize
        from omnigraph.operations.changes.feed import FeedPosition, poll

        return poll(
            self._graph,
            FeedPosition(cursor, start, page_token),
            self._filter(kinds, types, ops, branch),
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
        """Return every entity of a branch, pinned now, and then the cursor to continue from."""
        from omnigraph.operations.changes.baseline import baseline

        wanted = self._filter(kinds, types, ops, branch)
        return baseline(self._graph, wanted, branch=self._on(branch), actor=self._who(actor))

    def _filter(
        self,
        kinds: Iterable[str] | None,
        types: Iterable[str] | None,
        ops: Iterable[str] | None,
        branch: str | None = None,
    ) -> "WantedChanges":
        from omnigraph.operations.changes.sides import WantedChanges

        return WantedChanges(
            given_names("kinds", kinds),
            given_names("types", types),
            given_names("ops", ops),
            self._on(branch),
        )

    def branches(self) -> list[str]:
        """Return the names of all branches, sorted."""
        from omnigraph.operations.branches import list_branches

        return list_branches(self._graph, actor=self._actor)

    def create_branch(self, name: str, from_: str | None = None, *, actor: str | None = None) -> "Branch":
        """Create a branch from the head of another: of the given one, of the bound one, or of main.

        Raises:
            AlreadyExistsError: there is a branch of that name.
            BranchNotFound: the branch to start from does not exist.
        """
        from omnigraph.operations.branches import create_branch

        return create_branch(self._graph, name, from_=self._on(from_), actor=self._who(actor))

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        """Delete a branch and the commits that only it has.

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
        progress: "TableProgressCallback | None" = None,
    ) -> "MergeResult":
        """Bring what one branch did since the two diverged into another, as one commit with two parents.

        A dry run returns the outcome and the conflicts; nothing is written. With `delete_branch`, the source
        is deleted afterwards, unless it has got commits that were not merged; if the deletion is refused, the
        merge stands and the result says why. `progress` is called as of `optimize`, in two stages: `changes`
        while tables are compared, and `rows` while they are written.

        Raises:
            MergeConflicts: the two sides disagree; nothing was written.
            BranchNotFound: there is no such branch.
        """
        from omnigraph.operations.merge.merge import merge
        from omnigraph.operations.progress import unseen

        check_flags(delete_branch=delete_branch, dry_run=dry_run)
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
            progress=given_callback(progress, unseen),
        )

    @contextmanager
    def branch(
        self,
        name: str,
        from_: str | None = None,
        *,
        merge_on_exit: bool = False,
        delete_on_error: bool = True,
    ) -> Iterator["Graph"]:
        """Yield a handle bound to a branch, which is first created if `from_` names the branch to start from.

        With `merge_on_exit` the branch is merged into the one it was created from, or into main. A branch
        created here is deleted if the block raises, unless that is switched off.
        """
        check_flags(merge_on_exit=merge_on_exit, delete_on_error=delete_on_error)
        made = None if from_ is None else self.create_branch(name, from_)
        if made is None:
            self._graph.require_branch(self._graph.enter(self._actor, Action.READ, name))
        try:
            yield self._bound(trimmed_name(name))
        except BaseException as error:
            if made is not None and delete_on_error:
                try:
                    self._delete_branch(name, self._actor, ref=made.ref)
                except PolicyDenied as denied:  # what went wrong in the block is what the caller must see
                    error.add_note(f"branch '{made.name}' stays: {denied}")
            raise
        if merge_on_exit:
            self.merge(name, into=from_ or MAIN)

    def acting_as(self, actor: str | None) -> "Graph":
        """Return a handle on the same graph whose calls are those of another actor, unless they name one.

        Raises:
            BadRequest: no actor is called so.
        """
        self._graph.require_open()
        if actor is not None:
            check_actor(actor)
        return Graph(self._graph, actor, self._branch, self._stored)

    def _bound(self, branch: str) -> "Graph":
        """Return a handle on the same graph that reads and writes a branch."""
        return Graph(self._graph, self._actor, branch, self._stored)
