"""`Graph`: the object a Python user holds; thin, synchronous, safe to share between threads.

A method imports its operation when it is called: a reader does not pay for merges and bulk loads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from omnigraph.core.errors import BadRequest, BranchInUse
from omnigraph.core.limits import PAGE_BYTES, PAGE_CHANGES, POLL_COMMITS
from omnigraph.core.span import Source
from omnigraph.core.values import is_count, named, shown
from omnigraph.graph.administration import Administration
from omnigraph.graph.arguments import check_flags, given_callback
from omnigraph.graph.source import query_name, text_source
from omnigraph.history.branches import trimmed_name
from omnigraph.history.commits import GraphCommit
from omnigraph.history.identity import MAIN
from omnigraph.history.state import Snapshot
from omnigraph.operations.open import close

if TYPE_CHECKING:
    from omnigraph.bulk.connect.progress import ProgressCallback
    from omnigraph.catalog.stored_queries import StoredQuery
    from omnigraph.changes.model import ChangeFilter
    from omnigraph.graph.result import Result
    from omnigraph.graph.snapshot_view import SnapshotView
    from omnigraph.history.branches import Branch
    from omnigraph.history.state import ManifestState
    from omnigraph.operations.changes.baseline import Baseline
    from omnigraph.operations.changes.commit_changes import CommitChanges, CommitChangesPage
    from omnigraph.operations.changes.diff import Diff
    from omnigraph.operations.changes.feed import ChangeFeed, ChangeFeedPage
    from omnigraph.operations.describe.describe import TypeDescription
    from omnigraph.operations.embed.model import EmbedKeywords, EmbedResult
    from omnigraph.operations.engine import Engine
    from omnigraph.operations.export import Export
    from omnigraph.operations.load.load import LoadInput, LoadMode, LoadResult
    from omnigraph.operations.load.model import LoadKeywords, OnError
    from omnigraph.operations.merge.merge import MergeResult
    from omnigraph.operations.mutate import MutationResult
    from omnigraph.operations.pin import SnapshotLike, Target
    from omnigraph.plan.describe import Explanation


class Graph(Administration):
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
            if_commit=if_commit,
            message=message,
            retry=retry,
        )

    def load(
        self,
        data: "str | Path | bytes | Mapping[str, pa.Table] | Iterable[str | Path | LoadInput]",
        mode: "LoadMode",
        *,
        mapping: str | Path | None = None,
        branch: str | None = None,
        from_: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        index: bool = True,
        engine: "Engine" = "auto",
        master: str | None = None,
        dry_run: bool = False,
        on_error: "OnError" = "fail",
        rejects: str | Path | None = None,
        progress: "ProgressCallback | None" = None,
        strict_columns: bool = False,
        retry: float | None = None,
    ) -> "LoadResult":
        """Load files (as `omnigraph load --data` names them), NDJSON as bytes, or Arrow tables by type name.

        All of it is one commit. `engine` says where the work is done, `master` where Spark runs. A dry run
        validates and writes nothing. `on_error="skip"` leaves out rows with violations; `rejects` is a file
        for all violations. `progress` is called with the progress of each stage. The files of a mapping come
        after the data. With `from_`, a missing branch is first created from that one.

        Mode `merge` replaces whole rows: what the input leaves out becomes null, and the result's `cleared`
        says where there was a value. With `strict_columns` a load that would do so is refused.

        If another writer was first, the load is run again for up to `retry` seconds, as a mutation is; with
        mode `overwrite`, never.
        """
        from omnigraph.bulk.connect.progress import silent
        from omnigraph.operations.load.inputs import given_inputs
        from omnigraph.operations.load.load import LoadOptions, load

        check_flags(index=index, dry_run=dry_run, strict_columns=strict_columns)
        options = LoadOptions(
            mode,
            engine=engine,
            master=master,
            is_dry_run=dry_run,
            on_error=on_error,
            rejects=None if rejects is None else Path(rejects),
            progress=given_callback(progress, silent),
            has_strict_columns=strict_columns,
        )

        def inputs() -> "Iterator[LoadInput]":  # read after the checks at the entry, not before
            catalog = self._graph.catalog_on(self._on(branch), from_)
            yield from given_inputs(catalog, data, mapping, options.rejects)

        return load(
            self._graph,
            inputs(),
            options,
            branch=self._on(branch),
            from_=from_,
            actor=self._who(actor),
            message=message,
            index=index,
            retry=retry,
        )

    def load_tables(
        self, tables: Mapping[str, object], mode: "LoadMode", **options: "Unpack[LoadKeywords]"
    ) -> "LoadResult":
        """Load tables by type name as one commit: pyarrow, pandas or polars tables, or Spark DataFrames.

        Edges have columns `from` and `to`. The options are those of `load`; a Spark DataFrame needs Spark.

        Raises:
            BadRequest: a type is not in the schema, or a value is not a table.
        """
        from omnigraph.operations.load.tables import table_input

        if not isinstance(tables, Mapping):
            raise BadRequest(f"expected tables by type name, as in {{'Person': table}}, not {named(tables)}")

        def inputs() -> "Iterator[LoadInput]":  # read after the checks at the entry, not before
            catalog = self._graph.catalog_on(self._on(options.get("branch")), options.get("from_"))
            for name, table in tables.items():
                yield table_input(catalog, name, table)

        return self.load(inputs(), mode, **options)

    def load_dataframes(
        self, frames: Mapping[str, object], mode: "LoadMode", **options: "Unpack[LoadKeywords]"
    ) -> "LoadResult":
        """Load Spark DataFrames by type name, nodes and edges together, as one commit."""
        return self.load_tables(frames, mode, **options)

    def embed(
        self,
        type: str | Sequence[str] | None = None,
        select: str | Sequence[str] | None = None,
        **options: "Unpack[EmbedKeywords]",
    ) -> "EmbedResult":
        """Compute the missing vectors of `@embed` properties from their texts, as one commit.

        `type` names types, or one vector of a type as `Type.property`. `select` is `[Type:]property=value`:
        rows that any of them selects get new vectors. With `reembed_all`, so does every row that has a text.
        `batch` is how many texts the provider is given at a time; `engine` and `master` say where the work
        is done.

        Raises:
            BadRequest: a type, property or value is invalid.
            EmbeddingModelMismatch: a property records another model than the provider's.
            EmbeddingError: the provider failed, or its key is missing; nothing was written.
            ConflictError: another writer was first; nothing of this is visible.
        """
        from omnigraph.operations.embed.embed import embed
        from omnigraph.operations.embed.model import embed_options

        wanted = embed_options(type, select, options)
        return embed(
            self._graph,
            wanted,
            branch=self._on(options.get("branch")),
            actor=self._who(options.get("actor")),
            message=options.get("message"),
            index=options.get("index", True),
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
            timeout_ms=timeout_ms,
            memory_bytes=memory_bytes,
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
        self._graph.enter(self._actor, "read", self._branch)
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

        self._graph.enter(self._who(actor), "invoke_query", self._on(branch))
        return invoke_stored(
            self,
            self._stored,
            query_name(name),
            InvokeOptions(params, branch, snapshot, if_commit, actor, message),
        )

    def at(self, snapshot: "SnapshotLike") -> "SnapshotView":
        """Return a read-only view of one snapshot, which never looks at the branch again.

        Raises:
            CommitNotFound, VersionNotFound: there is no such snapshot.
        """
        from omnigraph.graph.snapshot_view import SnapshotView
        from omnigraph.operations.pin import resolve_snapshot

        self._graph.enter(self._actor, "read", None)
        view = SnapshotView(self, resolve_snapshot(self._graph, self._branch or MAIN, snapshot))
        self._graph.parts.readers.keep(view, view.snapshot)  # cleanup keeps it readable while it is held
        return view

    def export(
        self, *, branch: str | None = None, types: Sequence[str] | None = None, actor: str | None = None
    ) -> "Export":
        """Return the records of a branch, pinned now: iterate over dicts, or write them with `to_file`.

        Raises:
            BadRequest: there is no such type.
        """
        from omnigraph.operations.export import export

        return export(self._graph, branch=self._on(branch), types=types, actor=self._who(actor))

    def table(self, type_name: str, *, branch: str | None = None) -> pa.Table:
        """Return all rows of a type, by id; a `DateTime` is a timestamp in UTC.

        A table key, such as `node:Person`, names a type as well.

        Raises:
            BadRequest: there is no such type.
            HistoricalVersionReclaimed: the table's version was cleaned up.
        """
        from omnigraph.operations.pin import read_table

        return read_table(self._graph, type_name, branch=self._on(branch), actor=self._actor)

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
        branch = self._graph.enter(self._actor, "read", self._on(branch))
        return self._graph.newest(branch).snapshot()

    def commits(
        self,
        *,
        branch: str | None = None,
        limit: int | None = None,
        where: Callable[[GraphCommit], bool] | None = None,
    ) -> list[GraphCommit]:
        """Return the commits of a branch, or those for which a condition holds, newest first.

        Raises:
            BadRequest: the limit is not a number, or below zero.
        """
        if limit is not None and not is_count(limit):
            raise BadRequest(
                f"the limit of a list of commits must be a whole number from 0 on, not {shown(limit)}"
            )
        branch = self._graph.enter(self._actor, "read", self._on(branch))
        return list(islice(filter(where, self._graph.state(branch).commits.newest_first()), limit))

    def commit(self, commit_id: str, *, branch: str | None = None) -> GraphCommit:
        """Return one commit.

        Raises:
            CommitNotFound: no branch has it.
        """
        from omnigraph.operations.pin import find_commit

        branch = self._graph.enter(self._actor, "read", self._on(branch))
        return find_commit(self._graph, commit_id, branch)[1]

    def entity_at(
        self, type_name: str, entity_id: str, target: "Target | None" = None, *, actor: str | None = None
    ) -> dict[str, object]:
        """Return one node or edge as a branch or a commit shows it, else its newest state; opens one table.

        Raises:
            EntityNotFound: there is no such entity.
        """
        from omnigraph.operations.changes.entity_at import entity_at

        target = self._branch or MAIN if target is None else target
        return entity_at(self._graph, type_name, entity_id, target, actor=self._who(actor))

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
    ) -> "ChangeFilter":
        from omnigraph.operations.changes.sides import change_filter

        return change_filter(self._graph, branch=self._on(branch), kinds=kinds, types=types, ops=ops)

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
    ) -> "MergeResult":
        """Bring what one branch did since the two diverged into another, as one commit with two parents.

        A dry run returns the outcome and the conflicts; nothing is written. With `delete_branch`, the source
        is deleted afterwards, unless it has got commits that were not merged; if the deletion is refused, the
        merge stands and the result says why.

        Raises:
            MergeConflicts: the two sides disagree; nothing was written.
            BranchNotFound: there is no such branch.
        """
        from omnigraph.operations.merge.merge import merge

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
            self._graph.require_branch(self._graph.enter(self._actor, "read", name))
        try:
            yield self._bound(trimmed_name(name))
        except BaseException:
            if made is not None and delete_on_error:
                self._delete_branch(name, self._actor, ref=made.ref)
            raise
        if merge_on_exit:
            self.merge(name, into=from_ or MAIN)

    def _bound(self, branch: str) -> "Graph":
        """Return a handle on the same graph that reads and writes a branch."""
        return Graph(self._graph, self._actor, branch, self._stored)
