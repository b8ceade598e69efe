"""The asynchronous twins of Graph and what it hands out: written by tests/support/async_source.py.

Do not change this file: `pytest tests/surfaces/client --accept` writes it anew.
"""

import asyncio
import functools
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from omnigraph.client.asynchronous.running import CallThreads, leave
from omnigraph.core.limits import PAGE_BYTES, PAGE_CHANGES, POLL_COMMITS
from omnigraph.history.identity import MAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Unpack

    import pyarrow as pa

    from omnigraph.bulk.connect.progress import ProgressCallback
    from omnigraph.bulk.export.files import ExportFormat
    from omnigraph.catalog.model import Catalog, EdgeType, NodeType
    from omnigraph.catalog.stored_queries import StoredQuery
    from omnigraph.changes.model import ChangeBlock, ChangeCause, EntityChange
    from omnigraph.changes.position import Position
    from omnigraph.commit.recovery.audit import RecoveryRecord
    from omnigraph.core.span import Source
    from omnigraph.graph.graph import Graph
    from omnigraph.graph.result import Result
    from omnigraph.graph.snapshot_view import SnapshotView
    from omnigraph.history.branches import Branch
    from omnigraph.history.commits import GraphCommit
    from omnigraph.history.lanes import CommitList
    from omnigraph.history.state import Snapshot
    from omnigraph.operations.blob import Blob
    from omnigraph.operations.changes.baseline import Baseline
    from omnigraph.operations.changes.commit_changes import CommitChanges, CommitChangesPage
    from omnigraph.operations.changes.diff import Diff, TableCounts
    from omnigraph.operations.changes.feed import ChangeFeed, ChangeFeedPage
    from omnigraph.operations.cleanup.model import Age, CleanupResult
    from omnigraph.operations.commit_log import BranchLog
    from omnigraph.operations.describe.describe import TypeDescription
    from omnigraph.operations.embed.model import EmbedKeywords, EmbedResult
    from omnigraph.operations.engine import Engine
    from omnigraph.operations.ensure_indices import IndexResult
    from omnigraph.operations.export import Export, ExportedFile
    from omnigraph.operations.index_status import TableIndexes
    from omnigraph.operations.load.inputs import GivenData
    from omnigraph.operations.load.load import LoadMode, LoadResult
    from omnigraph.operations.load.model import LoadKeywords, OnError
    from omnigraph.operations.merge.merge import MergeResult
    from omnigraph.operations.mutate import MutationResult
    from omnigraph.operations.optimize import OptimizeResult
    from omnigraph.operations.pin import (
        SnapshotLike,
        Target,
    )
    from omnigraph.operations.progress import TableProgressCallback
    from omnigraph.operations.repair_drift import DriftRepair
    from omnigraph.operations.scan import ScannedRows
    from omnigraph.operations.schema.apply import SchemaApplyResult, SchemaPlan
    from omnigraph.operations.status import GraphStatus
    from omnigraph.operations.verify.report import VerifyReport
    from omnigraph.plan.describe import Explanation


class AsyncGraph:
    """The asynchronous twin of `Graph`."""

    def __init__(self, graph: "Graph", threads: CallThreads | None = None) -> None:
        """Take a graph, which is closed with this."""
        self._it = graph
        self._threads = CallThreads() if threads is None else threads

    async def __aenter__(self) -> Self:
        """Return the graph itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the graph."""
        await self.close()

    async def close(self) -> None:
        """Close the graph; idempotent."""
        self._threads.end()
        await asyncio.to_thread(self._it.close)

    def __repr__(self) -> str:
        return f"Async{self._it!r}"

    def _repr_html_(self) -> str:
        return self._it._repr_html_()

    @property
    def uri(self) -> "str":
        """Where the graph is stored."""
        return self._it.uri

    async def mutate(
        self,
        source: "str | Path | Source",
        name: "str | None" = None,
        params: "Mapping[str, object] | None" = None,
        *,
        branch: "str | None" = None,
        actor: "str | None" = None,
        if_commit: "str | None" = None,
        message: "str | None" = None,
        retry: "float | None" = None,
    ) -> "MutationResult":
        """Run one mutation of a `.gq` text or file as one commit.

        Threads take turns. If another process was first, the mutation is run again on what that one left, for
        up to `retry` seconds (10 unless `OMNIGRAPH_WRITE_RETRY` says otherwise); with 0, or with `if_commit`,
        the conflict is raised at once.
        """
        return await self._threads.write(
            lambda: self._it.mutate(
                source,
                name,
                params,
                branch=branch,
                actor=actor,
                if_commit=if_commit,
                message=message,
                retry=retry,
            )
        )

    async def query(
        self,
        source: "str | Path | Source",
        name: "str | None" = None,
        params: "Mapping[str, object] | None" = None,
        *,
        branch: "str | None" = None,
        snapshot: "SnapshotLike | None" = None,
        actor: "str | None" = None,
        timeout_ms: "int | None" = None,
        memory_bytes: "int | None" = None,
        exact: "bool" = False,
    ) -> "Result":
        """Run one read of a `.gq` text or file, on the newest snapshot of a branch or on a past one.

        Limits are those of the settings unless given. With `exact`, vectors are compared one by one, even if
        there is an index.
        """
        return await self._threads.read(
            lambda: self._it.query(
                source,
                name,
                params,
                branch=branch,
                snapshot=snapshot,
                actor=actor,
                timeout_ms=timeout_ms,
                memory_bytes=memory_bytes,
                exact=exact,
            )
        )

    async def explain(
        self,
        source: "str | Path | Source",
        name: "str | None" = None,
        params: "Mapping[str, object] | None" = None,
        *,
        branch: "str | None" = None,
        snapshot: "SnapshotLike | None" = None,
        actor: "str | None" = None,
    ) -> "Explanation":
        """Return how a read would be carried out; parameters may be left out."""
        return await self._threads.read(
            lambda: self._it.explain(source, name, params, branch=branch, snapshot=snapshot, actor=actor)
        )

    async def queries(self) -> "list[StoredQuery]":
        """Return the stored queries that are listed, by name; none unless the graph was opened with some."""
        return await self._threads.read(self._it.queries)

    async def invoke(
        self,
        name: "str",
        params: "Mapping[str, object] | None" = None,
        *,
        branch: "str | None" = None,
        snapshot: "SnapshotLike | None" = None,
        if_commit: "str | None" = None,
        actor: "str | None" = None,
        message: "str | None" = None,
    ) -> "Result | MutationResult":
        """Run a stored query by its name: a read gives its rows, a mutation what it did.

        Raises:
            UnsupportedError: the graph was opened without stored queries.
            QueryNotFound: there is no stored query of that name.
            BadRequest: a mutation was asked of a snapshot, or a read was given what only writes have.
        """
        return await self._threads.write(
            lambda: self._it.invoke(
                name,
                params,
                branch=branch,
                snapshot=snapshot,
                if_commit=if_commit,
                actor=actor,
                message=message,
            )
        )

    async def at(self, snapshot: "SnapshotLike") -> "AsyncSnapshotView":
        """Return a read-only view of one snapshot, which never looks at the branch again.

        Raises:
            CommitNotFound, VersionNotFound: there is no such snapshot.
        """
        return AsyncSnapshotView(await self._threads.read(lambda: self._it.at(snapshot)), self._threads)

    async def export(
        self,
        *,
        branch: "str | None" = None,
        types: "Sequence[str] | None" = None,
        actor: "str | None" = None,
        progress: "TableProgressCallback | None" = None,
    ) -> "AsyncExport":
        """Return the records of a branch, pinned now: iterate over dicts, or write them with `to_file`.

        `progress` is called as of `optimize`, each time that the records are gone through in this process.

        Raises:
            BadRequest: there is no such type.
        """
        return AsyncExport(
            await self._threads.read(
                lambda: self._it.export(branch=branch, types=types, actor=actor, progress=progress)
            ),
            self._threads,
        )

    async def table(self, type_name: "str", *, branch: "str | None" = None) -> "pa.Table":
        """Return all rows of a type, by id; a `DateTime` is a timestamp in UTC.

        A table key, such as `node:Person`, names a type as well.

        Raises:
            BadRequest: there is no such type.
            HistoricalVersionReclaimed: the table's version was cleaned up.
        """
        return await self._threads.read(lambda: self._it.table(type_name, branch=branch))

    async def scan(
        self,
        type_name: "str",
        *,
        branch: "str | None" = None,
        snapshot: "SnapshotLike | None" = None,
        columns: "Sequence[str] | None" = None,
        actor: "str | None" = None,
    ) -> "AsyncScannedRows":
        """Return the rows of a type in batches, pinned now: all columns, or those that are named.

        A batch is read when it is asked for, so that the table need not fit into memory; their order is that
        of storage. A table key, such as `node:Person`, names a type as well.

        Raises:
            BadRequest: there is no such type, or it has no such column.
            HistoricalVersionReclaimed: the table's version was cleaned up.
        """
        return AsyncScannedRows(
            await self._threads.read(
                lambda: self._it.scan(
                    type_name, branch=branch, snapshot=snapshot, columns=columns, actor=actor
                )
            ),
            self._threads,
        )

    async def duckdb(
        self,
        *,
        branch: "str | None" = None,
        snapshot: "SnapshotLike | None" = None,
        actor: "str | None" = None,
    ) -> "Any":
        """Return a DuckDB connection with a view for each type, over one snapshot: SQL without a copy.

        A view has the type's name, the id and the properties; edges have `src` and `dst`. Types whose names
        differ in case alone are called by table key, such as "node:Person". Rows are read when a query runs.

        Raises:
            UnsupportedError: duckdb is not installed, which the extra `omnigraph[duckdb]` does.
        """
        return await self._threads.read(
            lambda: self._it.duckdb(branch=branch, snapshot=snapshot, actor=actor)
        )

    async def to_networkx(
        self,
        *,
        branch: "str | None" = None,
        snapshot: "SnapshotLike | None" = None,
        types: "Sequence[str] | None" = None,
        actor: "str | None" = None,
    ) -> "Any":
        """Return a `networkx.MultiDiGraph` of a snapshot; edge types bring the types of their ends.

        A node is `(type, id)`, an edge has the key `(type, id)`. Properties that have a value are attributes.

        Raises:
            UnsupportedError: networkx is not installed, which the extra `omnigraph[networkx]` does.
            BadRequest: there is no such type.
        """
        return await self._threads.read(
            lambda: self._it.to_networkx(branch=branch, snapshot=snapshot, types=types, actor=actor)
        )

    async def describe(
        self,
        type_name: "str",
        *,
        branch: "str | None" = None,
        snapshot: "SnapshotLike | None" = None,
        actor: "str | None" = None,
    ) -> "TypeDescription":
        """Return a type with what its rows hold: nulls, distinct values, bounds, samples, degrees of edges.

        Every row is read once. Distinct values beyond 10,000 are estimated, and the result says so.

        Raises:
            BadRequest: there is no such type, or it is an interface.
            HistoricalVersionReclaimed: the table's version was cleaned up.
        """
        return await self._threads.read(
            lambda: self._it.describe(type_name, branch=branch, snapshot=snapshot, actor=actor)
        )

    async def snapshot(self, branch: "str | None" = None) -> "Snapshot":
        """Return the newest view of a branch."""
        return await self._threads.read(lambda: self._it.snapshot(branch))

    async def commits(
        self,
        *,
        branch: "str | None" = None,
        limit: "int | None" = None,
        where: "Callable[[GraphCommit], bool] | None" = None,
    ) -> "CommitList":
        """Return the commits of a branch, or those for which a condition holds, newest first.

        They are a list, which a notebook shows as lanes.

        Raises:
            BadRequest: the limit is not a number, or below zero.
        """
        return await self._threads.read(lambda: self._it.commits(branch=branch, limit=limit, where=where))

    async def commit(self, commit_id: "str", *, branch: "str | None" = None) -> "GraphCommit":
        """Return one commit.

        Raises:
            CommitNotFound: no branch has it.
        """
        return await self._threads.read(lambda: self._it.commit(commit_id, branch=branch))

    async def diff(
        self,
        a: "Target",
        b: "Target" = MAIN,
        *,
        kinds: "Iterable[str] | None" = None,
        types: "Iterable[str] | None" = None,
        ops: "Iterable[str] | None" = None,
        actor: "str | None" = None,
    ) -> "AsyncDiff":
        """Return what differs from `b` to `a`, each a branch or a commit: iterate over changes.

        Raises:
            NotFoundError: a name is neither a branch nor a commit.
            ChangeSchemaBoundary: a type has different properties on the two sides.
        """
        return AsyncDiff(
            await self._threads.read(
                lambda: self._it.diff(a, b, kinds=kinds, types=types, ops=ops, actor=actor)
            ),
            self._threads,
        )

    async def commit_changes(
        self,
        commit_id: "str",
        *,
        kinds: "Iterable[str] | None" = None,
        types: "Iterable[str] | None" = None,
        ops: "Iterable[str] | None" = None,
        actor: "str | None" = None,
    ) -> "AsyncCommitChanges":
        """Return what a commit changed compared with its first parent: iterate over changes.

        Raises:
            CommitNotFound: no live branch has it.
            CommitHasNoParent: it is the first one.
        """
        return AsyncCommitChanges(
            await self._threads.read(
                lambda: self._it.commit_changes(commit_id, kinds=kinds, types=types, ops=ops, actor=actor)
            ),
            self._threads,
        )

    async def commit_changes_page(
        self,
        commit_id: "str",
        *,
        limit: "int" = PAGE_CHANGES,
        page_bytes: "int" = PAGE_BYTES,
        page_token: "str | None" = None,
        kinds: "Iterable[str] | None" = None,
        types: "Iterable[str] | None" = None,
        ops: "Iterable[str] | None" = None,
        actor: "str | None" = None,
    ) -> "CommitChangesPage":
        """Return one page of a commit's changes: the first, or the one a token names.

        Raises:
            ChangeCursorRejected: the token belongs to something else.
            ResourceLimit: the requested page is too large.
        """
        return await self._threads.read(
            lambda: self._it.commit_changes_page(
                commit_id,
                limit=limit,
                page_bytes=page_bytes,
                page_token=page_token,
                kinds=kinds,
                types=types,
                ops=ops,
                actor=actor,
            )
        )

    async def changes(
        self,
        cursor: "str | None" = None,
        start: "str | None" = None,
        *,
        branch: "str | None" = None,
        kinds: "Iterable[str] | None" = None,
        types: "Iterable[str] | None" = None,
        ops: "Iterable[str] | None" = None,
        actor: "str | None" = None,
    ) -> "AsyncChangeFeed":
        """Return the commits of a branch since a cursor or a start, oldest first: iterate over blocks.

        A start is `now`, `beginning` or `after:<commit id>`. The feed has its next `cursor` once every block
        has been taken.
        """
        return AsyncChangeFeed(
            await self._threads.read(
                lambda: self._it.changes(
                    cursor, start, branch=branch, kinds=kinds, types=types, ops=ops, actor=actor
                )
            ),
            self._threads,
        )

    async def poll_changes(
        self,
        *,
        cursor: "str | None" = None,
        start: "str | None" = None,
        page_token: "str | None" = None,
        branch: "str | None" = None,
        limit: "int" = PAGE_CHANGES,
        page_bytes: "int" = PAGE_BYTES,
        commits: "int" = POLL_COMMITS,
        kinds: "Iterable[str] | None" = None,
        types: "Iterable[str] | None" = None,
        ops: "Iterable[str] | None" = None,
        actor: "str | None" = None,
    ) -> "ChangeFeedPage":
        """Return one page of a branch's changes.

        Raises:
            ChangeCursorRejected: the cursor or token belongs to something else.
            ChangeFeedGap: the next commit was cleaned up.
            ResourceLimit: the requested page is too large.
        """
        return await self._threads.read(
            lambda: self._it.poll_changes(
                cursor=cursor,
                start=start,
                page_token=page_token,
                branch=branch,
                limit=limit,
                page_bytes=page_bytes,
                commits=commits,
                kinds=kinds,
                types=types,
                ops=ops,
                actor=actor,
            )
        )

    async def baseline(
        self,
        *,
        branch: "str | None" = None,
        kinds: "Iterable[str] | None" = None,
        types: "Iterable[str] | None" = None,
        ops: "Iterable[str] | None" = None,
        actor: "str | None" = None,
    ) -> "AsyncBaseline":
        """Return every entity of a branch, pinned now, and then the cursor to continue from."""
        return AsyncBaseline(
            await self._threads.read(
                lambda: self._it.baseline(branch=branch, kinds=kinds, types=types, ops=ops, actor=actor)
            ),
            self._threads,
        )

    async def branches(self) -> "list[str]":
        """Return the names of all branches, sorted."""
        return await self._threads.read(self._it.branches)

    async def create_branch(
        self, name: "str", from_: "str | None" = None, *, actor: "str | None" = None
    ) -> "Branch":
        """Create a branch from the head of another: of the given one, of the bound one, or of main.

        Raises:
            AlreadyExistsError: there is a branch of that name.
            BranchNotFound: the branch to start from does not exist.
        """
        return await self._threads.write(lambda: self._it.create_branch(name, from_, actor=actor))

    async def delete_branch(self, name: "str", *, actor: "str | None" = None) -> "None":
        """Delete a branch and the commits that only it has.

        Raises:
            BranchInUse: another branch needs it, or this handle is bound to it.
        """
        await self._threads.write(lambda: self._it.delete_branch(name, actor=actor))

    async def merge(
        self,
        source: "str",
        into: "str" = "main",
        *,
        message: "str | None" = None,
        delete_branch: "bool" = False,
        dry_run: "bool" = False,
        actor: "str | None" = None,
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
        return await self._threads.write(
            lambda: self._it.merge(
                source,
                into,
                message=message,
                delete_branch=delete_branch,
                dry_run=dry_run,
                actor=actor,
                progress=progress,
            )
        )

    @asynccontextmanager
    async def branch(
        self,
        name: "str",
        from_: "str | None" = None,
        *,
        merge_on_exit: "bool" = False,
        delete_on_error: "bool" = True,
    ) -> "AsyncIterator[AsyncGraph]":
        """Yield a handle bound to a branch, which is first created if `from_` names the branch to start from.

        With `merge_on_exit` the branch is merged into the one it was created from, or into main. A branch
        created here is deleted if the block raises, unless that is switched off.
        """
        entered = self._it.branch(name, from_, merge_on_exit=merge_on_exit, delete_on_error=delete_on_error)
        bound = await self._threads.write(entered.__enter__)
        try:
            yield AsyncGraph(bound, self._threads)
        except BaseException as error:
            await self._threads.write(functools.partial(leave, entered, error))
            raise
        await self._threads.write(lambda: entered.__exit__(None, None, None))

    async def acting_as(self, actor: "str | None") -> "AsyncGraph":
        """Return a handle on the same graph whose calls are those of another actor, unless they name one.

        Raises:
            BadRequest: no actor is called so.
        """
        return AsyncGraph(await self._threads.read(lambda: self._it.acting_as(actor)), self._threads)

    async def entity_at(
        self,
        type_name: "str",
        entity_id: "str",
        target: "Target | None" = None,
        *,
        actor: "str | None" = None,
    ) -> "dict[str, object]":
        """Return one node or edge as a branch or a commit shows it, else its newest state; opens one table.

        Raises:
            BadRequest: the id is no text.
            EntityNotFound: there is no such entity.
        """
        return await self._threads.read(lambda: self._it.entity_at(type_name, entity_id, target, actor=actor))

    async def blob(
        self,
        entity: "str",
        type: "str",
        id: "str",
        property: "str",
        *,
        branch: "str | None" = None,
        snapshot: "SnapshotLike | None" = None,
        actor: "str | None" = None,
    ) -> "AsyncBlob":
        """Return the value of a Blob property of a `node` or an `edge`; its bytes are read on demand.

        The ETag is strong: it changes with the bytes. Storing the row anew changes it too.

        Raises:
            BadRequest: there is no such type or property, or it is not a Blob.
            EntityNotFound: there is no such node or edge.
            NotFoundError: its value is null.
            HistoricalVersionReclaimed: the table's version was cleaned up.
        """
        return AsyncBlob(
            await self._threads.read(
                lambda: self._it.blob(
                    entity, type, id, property, branch=branch, snapshot=snapshot, actor=actor
                )
            ),
            self._threads,
        )

    async def load(
        self,
        data: "GivenData",
        mode: "LoadMode",
        *,
        mapping: "str | Path | None" = None,
        branch: "str | None" = None,
        from_: "str | None" = None,
        actor: "str | None" = None,
        message: "str | None" = None,
        index: "bool" = True,
        engine: "Engine" = "auto",
        master: "str | None" = None,
        dry_run: "bool" = False,
        on_error: "OnError" = "fail",
        rejects: "str | Path | None" = None,
        progress: "ProgressCallback | None" = None,
        strict_columns: "bool" = False,
        embed: "bool" = False,
        retry: "float | None" = None,
    ) -> "LoadResult":
        """Load files (as `omnigraph load --data` names them), NDJSON as bytes, dicts, or tables by type name.

        Dicts are the records of NDJSON: `[{"type": "Person", "data": {...}}]`. By type name there are tables
        or lists of dicts: `{"Person": [{...}], "Knows": [{"from": ..., "to": ...}]}`.

        All of it is one commit. `engine` says where the work is done, `master` where Spark runs. A dry run
        validates and writes nothing. `on_error="skip"` leaves out rows with violations; `rejects` is a file
        for all violations. `progress` is called with the progress of each stage. The files of a mapping come
        after the data. With `from_`, a missing branch is first created from that one.

        Mode `merge` replaces whole rows: what the input leaves out becomes null, and the result's `cleared`
        says where there was a value. With `strict_columns` a load that would do so is refused.

        With `embed`, rows that have a text and lack its `@embed` vector get one, in the same commit. If the
        provider fails for one text, nothing is loaded. A dry run sends it nothing.

        If another writer was first, the load is run again for up to `retry` seconds, as a mutation is; with
        mode `overwrite`, or on Spark with `embed`, never.
        """
        return await self._threads.write(
            lambda: self._it.load(
                data,
                mode,
                mapping=mapping,
                branch=branch,
                from_=from_,
                actor=actor,
                message=message,
                index=index,
                engine=engine,
                master=master,
                dry_run=dry_run,
                on_error=on_error,
                rejects=rejects,
                progress=progress,
                strict_columns=strict_columns,
                embed=embed,
                retry=retry,
            )
        )

    async def load_tables(
        self, tables: "Mapping[str, object]", mode: "LoadMode", **options: "Unpack[LoadKeywords]"
    ) -> "LoadResult":
        """Load tables by type name as one commit: of pyarrow, pandas, polars or Spark, or lists of dicts.

        Edges have columns `from` and `to`. The options are those of `load`; a Spark DataFrame needs Spark.

        Raises:
            BadRequest: a type is not in the schema, or a value is not a table.
        """
        return await self._threads.write(lambda: self._it.load_tables(tables, mode, **options))

    async def load_objects(
        self,
        objects: "Iterable[object]",
        mode: "LoadMode",
        *,
        types: "Mapping[type, str] | None" = None,
        **options: "Unpack[LoadKeywords]",
    ) -> "LoadResult":
        """Load instances of pydantic models and dataclasses, nodes and edges together, as one commit.

        The type of an instance is the name of its class, unless `types` says another for the class. A field
        is the property of its alias or name; `class_` may stand for `class`. An edge has the ids of its nodes
        in `from_` and `to`, or in `src` and `dst`. None is null, or nothing for an `id` and where the schema
        has a default. The options are those of `load`.

        Raises:
            BadRequest: a class has no type, or a value cannot be stored as it is: an object inside of an
                object, a datetime without a zone, a Decimal that would lose a digit.
        """
        return await self._threads.write(lambda: self._it.load_objects(objects, mode, types=types, **options))

    async def load_networkx(
        self,
        network: "object",
        mode: "LoadMode",
        *,
        node_type: "str | None" = None,
        edge_type: "str | None" = None,
        **options: "Unpack[LoadKeywords]",
    ) -> "LoadResult":
        """Load a graph of networkx as one commit: what `to_networkx` made, or any other.

        A node `(type, id)`, and an edge with such a key, says what it is; others are of `node_type` and
        `edge_type`, and a node is its own id, and its key. Attributes are properties. Each edge of an
        undirected graph goes from its first end to its second.

        Raises:
            BadRequest: this is no graph, a type is unknown, or a value cannot be stored as it is.
        """
        return await self._threads.write(
            lambda: self._it.load_networkx(network, mode, node_type=node_type, edge_type=edge_type, **options)
        )

    async def load_dataframes(
        self, frames: "Mapping[str, object]", mode: "LoadMode", **options: "Unpack[LoadKeywords]"
    ) -> "LoadResult":
        """Load Spark DataFrames by type name, nodes and edges together, as one commit."""
        return await self._threads.write(lambda: self._it.load_dataframes(frames, mode, **options))

    async def embed(
        self,
        type: "str | Sequence[str] | None" = None,
        select: "str | Sequence[str] | None" = None,
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
        return await self._threads.write(lambda: self._it.embed(type, select, **options))

    async def catalog(self) -> "Catalog":
        """The types of the handle's branch."""
        return await self._threads.read(lambda: self._it.catalog)

    async def catalog_on(self, branch: "str | None", from_: "str | None" = None) -> "Catalog":
        """Return the types of a branch, or of the one that it is about to be made from."""
        return await self._threads.read(lambda: self._it.catalog_on(branch, from_))

    async def schema(self, *, branch: "str | None" = None) -> "str":
        """Return the text of a branch's schema, as it was given."""
        return await self._threads.read(lambda: self._it.schema(branch=branch))

    async def plan_schema(
        self, text: "str | Path | Source", *, branch: "str | None" = None, allow_data_loss: "bool" = False
    ) -> "SchemaPlan":
        """Return the steps from a branch's schema to that of a `.pg` text or file; nothing is written."""
        return await self._threads.read(
            lambda: self._it.plan_schema(text, branch=branch, allow_data_loss=allow_data_loss)
        )

    async def apply_schema(
        self,
        text: "str | Path | Source",
        *,
        branch: "str | None" = None,
        base: "str | None" = None,
        allow_data_loss: "bool" = False,
        exclusive: "bool" = False,
        actor: "str | None" = None,
        message: "str | None" = None,
        index: "bool" = True,
        progress: "TableProgressCallback | None" = None,
        engine: "Engine" = "auto",
        master: "str | None" = None,
    ) -> "SchemaApplyResult":
        """Give a branch another schema, from a `.pg` text or file, as one commit; then build missing indexes.

        What the text does not name is dropped. `base` is the id of the commit whose schema the text was made
        from: the change is refused if the branch has got another schema since. Other branches keep theirs.
        With `exclusive` the change is refused while there are any. `progress` is
        called for each table of which rows are written, when it is begun and when it is done. These rows are
        written by Spark if `engine` says so, or if they are large; `master` says where Spark runs.
        """
        return await self._threads.write(
            lambda: self._it.apply_schema(
                text,
                branch=branch,
                base=base,
                allow_data_loss=allow_data_loss,
                exclusive=exclusive,
                actor=actor,
                message=message,
                index=index,
                progress=progress,
                engine=engine,
                master=master,
            )
        )

    async def upgrade_branch(
        self,
        name: "str",
        *,
        actor: "str | None" = None,
        message: "str | None" = None,
        index: "bool" = True,
        allow_data_loss: "bool" = False,
        progress: "TableProgressCallback | None" = None,
        engine: "Engine" = "auto",
        master: "str | None" = None,
    ) -> "SchemaApplyResult":
        """Bring the changes of main's schema to a branch, as one commit; its rows stay as they are.

        With `allow_data_loss` the values of what main dropped go from the files and from the past of the
        branch as well. `progress`, `engine` and `master` are as of `apply_schema`.
        """
        return await self._threads.write(
            lambda: self._it.upgrade_branch(
                name,
                actor=actor,
                message=message,
                index=index,
                allow_data_loss=allow_data_loss,
                progress=progress,
                engine=engine,
                master=master,
            )
        )

    async def ensure_indices(
        self,
        *,
        branch: "str | None" = None,
        actor: "str | None" = None,
        progress: "TableProgressCallback | None" = None,
        engine: "Engine" = "auto",
        master: "str | None" = None,
    ) -> "IndexResult":
        """Build the declared indexes that are missing; `progress` is as of `optimize`.

        `engine` says where they are built: `local`, in this process, or `spark`, by its executors; `auto`
        chooses by the rows. `master` is where Spark runs.

        Raises:
            SparkUnavailable: executors were asked for, and there are none.
        """
        return await self._threads.write(
            lambda: self._it.ensure_indices(
                branch=branch, actor=actor, progress=progress, engine=engine, master=master
            )
        )

    async def rebuild_index(
        self,
        type_name: "str",
        property_name: "str",
        *,
        branch: "str | None" = None,
        actor: "str | None" = None,
        progress: "TableProgressCallback | None" = None,
        engine: "Engine" = "auto",
        master: "str | None" = None,
    ) -> "IndexResult":
        """Build the indexes of one property anew, over all rows, in place of those that are there.

        `progress` is as of `optimize`, `engine` and `master` as of `ensure_indices`.

        Raises:
            BadRequest: there is no such type, or the property has no index.
            SparkUnavailable: executors were asked for, and there are none.
        """
        return await self._threads.write(
            lambda: self._it.rebuild_index(
                type_name,
                property_name,
                branch=branch,
                actor=actor,
                progress=progress,
                engine=engine,
                master=master,
            )
        )

    async def index_status(self, *, branch: "str | None" = None) -> "tuple[TableIndexes, ...]":
        """Return which declared indexes are built, and how much they cover."""
        return await self._threads.read(lambda: self._it.index_status(branch=branch))

    async def status(self, *, branch: "str | None" = None) -> "GraphStatus":
        """Return the head of a branch, unfinished writes, indexes, sizes, and what maintenance would do.

        Nothing is written or healed.

        Raises:
            BranchNotFound: there is no such branch.
        """
        return await self._threads.read(lambda: self._it.status(branch=branch))

    async def optimize(
        self,
        *,
        branch: "str | None" = None,
        actor: "str | None" = None,
        progress: "TableProgressCallback | None" = None,
    ) -> "OptimizeResult":
        """Bring the tables of a branch into their best layout, as one commit: files folded, indexes merged.

        Missing indexes are built and the manifest is folded. No row and no version goes. Tables that a branch
        has not written are those of where it comes from, and are left alone. `progress` is called when a
        table is begun and when it is done.

        Raises:
            BranchNotFound: there is no such branch.
            PendingRecovery: an unfinished write waits for recovery.
        """
        return await self._threads.write(
            lambda: self._it.optimize(branch=branch, actor=actor, progress=progress)
        )

    async def cleanup(
        self,
        keep: "int | None" = None,
        older_than: "Age | None" = None,
        dry_run: "bool" = False,
        *,
        actor: "str | None" = None,
        progress: "TableProgressCallback | None" = None,
    ) -> "CleanupResult":
        """Remove old versions of tables, and what nothing needs any more; a dry run only says what would go.

        A version goes if it is not among the newest `keep` of its table and was replaced more than
        `older_than` ago (a timedelta, or seconds). What a branch shows, what two branches need to be merged,
        and what this process reads stays. Commits stay in the history; one whose tables were removed can no
        longer be read.

        Raises:
            BadRequest: neither limit is given.
            PendingRecovery: an unfinished write must be recovered first.
            DriftNeedsRepair: a table is ahead of its pin, and nothing says why.
        """
        return await self._threads.write(
            lambda: self._it.cleanup(keep, older_than, dry_run, actor=actor, progress=progress)
        )

    async def refresh(self) -> "None":
        """Heal, and read the schema and the manifest again."""
        await self._threads.write(self._it.refresh)

    async def recoveries(self) -> "list[RecoveryRecord]":
        """Return the finished recoveries, newest first."""
        return await self._threads.read(self._it.recoveries)

    async def verify(
        self,
        *,
        branch: "str | None" = None,
        deep: "bool" = False,
        progress: "TableProgressCallback | None" = None,
    ) -> "VerifyReport":
        """Check all branches, or one: files, history, schema and pins; nothing is written.

        Every file is read and compared with what its commit recorded. A deep verification also checks every
        rule of the schema over all rows, compares indexes with rows, and lists files that nothing needs.

        Raises:
            BranchNotFound: there is no such branch.
        """
        return await self._threads.read(lambda: self._it.verify(branch=branch, deep=deep, progress=progress))

    async def repair(
        self,
        *,
        confirm: "bool" = False,
        force: "bool" = False,
        branch: "str | None" = None,
        actor: "str | None" = None,
        progress: "TableProgressCallback | None" = None,
    ) -> "DriftRepair":
        """Say which tables something other than Omnigraph has committed to, and publish them if confirmed.

        Without `confirm` nothing is changed. With it, tables are published of which it is known that no row
        changed; the others only with `force`. No data is rewritten. `progress` is as of `optimize`.

        Raises:
            PendingRecovery: a dead writer left something: open the graph again first.
            ConflictError: another writer was first.
        """
        return await self._threads.write(
            lambda: self._it.repair(
                confirm=confirm, force=force, branch=branch, actor=actor, progress=progress
            )
        )

    async def commit_log(self, *, branch: "str | None" = None) -> "BranchLog":
        """Return the commits of a branch for one who follows them: asked for now, read as often as needed."""
        return await self._threads.read(lambda: self._it.commit_log(branch=branch))

    async def require_load(
        self, *, branch: "str | None", from_: "str | None", actor: "str | None" = None
    ) -> "None":
        """Make sure that a load may be made, before there is anything to load: also of its branch.

        Raises:
            PolicyDenied: the actor may not change the branch, or may not make it if there is none.
        """
        await self._threads.read(lambda: self._it.require_load(branch=branch, from_=from_, actor=actor))


class AsyncSnapshotView:
    """The asynchronous twin of `SnapshotView`."""

    def __init__(self, it: "SnapshotView", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    def __repr__(self) -> str:
        return f"Async{self._it!r}"

    def _repr_html_(self) -> str:
        return self._it._repr_html_()

    @property
    def snapshot(self) -> "Snapshot":
        """The snapshot that all reads see."""
        return self._it.snapshot

    async def query(
        self,
        source: "str | Path | Source",
        name: "str | None" = None,
        params: "Mapping[str, object] | None" = None,
        *,
        actor: "str | None" = None,
        timeout_ms: "int | None" = None,
        memory_bytes: "int | None" = None,
        exact: "bool" = False,
    ) -> "Result":
        """Run one read of a `.gq` text or file on the snapshot."""
        return await self._threads.read(
            lambda: self._it.query(
                source,
                name,
                params,
                actor=actor,
                timeout_ms=timeout_ms,
                memory_bytes=memory_bytes,
                exact=exact,
            )
        )

    async def explain(
        self,
        source: "str | Path | Source",
        name: "str | None" = None,
        params: "Mapping[str, object] | None" = None,
        *,
        actor: "str | None" = None,
    ) -> "Explanation":
        """Return how a read would be carried out on the snapshot."""
        return await self._threads.read(lambda: self._it.explain(source, name, params, actor=actor))

    async def describe(self, type_name: "str", *, actor: "str | None" = None) -> "TypeDescription":
        """Return a type with what its rows hold in the snapshot."""
        return await self._threads.read(lambda: self._it.describe(type_name, actor=actor))

    async def schema(self) -> "str":
        """Return the text of the schema of the snapshot; it is written anew, and has no comments."""
        return await self._threads.read(self._it.schema)

    async def blob(
        self, entity: "str", type: "str", id: "str", property: "str", *, actor: "str | None" = None
    ) -> "AsyncBlob":
        """Return the value of a Blob property of a `node` or an `edge` of the snapshot."""
        return AsyncBlob(
            await self._threads.read(lambda: self._it.blob(entity, type, id, property, actor=actor)),
            self._threads,
        )


class AsyncBlob:
    """The asynchronous twin of `Blob`."""

    def __init__(self, it: "Blob", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    @property
    def kind(self) -> Any:
        """As `Blob` has it."""
        return self._it.kind

    @property
    def size(self) -> Any:
        """As `Blob` has it."""
        return self._it.size

    @property
    def etag(self) -> Any:
        """As `Blob` has it."""
        return self._it.etag

    @property
    def uri(self) -> Any:
        """As `Blob` has it."""
        return self._it.uri

    @property
    def commit_id(self) -> Any:
        """As `Blob` has it."""
        return self._it.commit_id

    async def read(self, start: "int" = 0, end: "int | None" = None) -> "bytes":
        """Return the bytes from one position to another, or to the end of the value.

        An end behind that of the value stands for it. All bytes are held at once: `stream` holds a piece.

        Raises:
            BadRequest: a position is not a whole number from 0 on, or the end comes before the start.
            BlobRangeError: the value ends before the start.
            ExternalBlobError: the value is a reference.
        """
        return await self._threads.read(lambda: self._it.read(start, end))

    def stream(self, start: "int" = 0, end: "int | None" = None) -> "AsyncGenerator[bytes]":
        """Return the bytes in pieces of at most 4 MiB, each read when it is asked for.

        Raises:
            BadRequest, BlobRangeError, ExternalBlobError: as `read`, before the first piece.
        """
        return self._threads.items(self._it.stream(start, end))

    async def save(self, path: "str | Path") -> "None":
        """Write all bytes to a file, which appears when it is complete.

        Raises:
            BadRequest: it cannot be written.
            ExternalBlobError: the value is a reference.
        """
        await self._threads.read(lambda: self._it.save(path))


class AsyncScannedRows:
    """The asynchronous twin of `ScannedRows`."""

    def __init__(self, it: "ScannedRows", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    @property
    def commit_id(self) -> Any:
        """As `ScannedRows` has it."""
        return self._it.commit_id

    @property
    def row_count(self) -> Any:
        """As `ScannedRows` has it."""
        return self._it.row_count

    @property
    def schema(self) -> Any:
        """As `ScannedRows` has it."""
        return self._it.schema

    def __aiter__(self) -> "AsyncIterator[pa.RecordBatch]":
        """Yield batches, with times as timestamps in UTC."""
        return self._threads.items(self._it)

    async def to_arrow(self) -> "pa.Table":
        """Return all rows as one table."""
        return await self._threads.read(self._it.to_arrow)


class AsyncExport:
    """The asynchronous twin of `Export`."""

    def __init__(self, it: "Export", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    def __aiter__(self) -> "AsyncIterator[dict[str, object]]":
        """Yield the records in the form a load takes: JSON values, but for `date` and aware `datetime`."""
        return self._threads.items(self._it)

    def batches(self, type_: "NodeType | EdgeType") -> "AsyncGenerator[pa.RecordBatch]":
        """Yield the rows of one type by id, with times as timestamps; memory does not grow with the table."""
        return self._threads.items(self._it.batches(type_))

    def lines(self) -> "AsyncGenerator[bytes]":
        """Yield NDJSON, some records at a time."""
        return self._threads.items(self._it.lines())

    async def to_file(self, path: "str | Path") -> "None":
        """Write one file of NDJSON; it appears when it is complete.

        Raises:
            BadRequest: it cannot be written.
        """
        await self._threads.read(lambda: self._it.to_file(path))

    async def to_folder(self, folder: "str | Path", format_: "ExportFormat") -> "tuple[ExportedFile, ...]":
        """Write one file for each type, named after it, into an empty or new folder.

        Raises:
            BadRequest: the folder holds something, or cannot be written.
        """
        return await self._threads.read(lambda: self._it.to_folder(folder, format_))

    async def to_folder_on_spark(
        self, folder: "str | Path", format_: "ExportFormat", *, master: "str | None" = None
    ) -> "tuple[ExportedFile, ...]":
        """Write, for each type, a folder of files from Spark tasks, into an empty or new folder.

        Raises:
            BadRequest: the folder holds something, or cannot be written.
            SparkUnavailable: there is no Java, or Spark did not start.
        """
        return await self._threads.read(lambda: self._it.to_folder_on_spark(folder, format_, master=master))


class AsyncDiff:
    """The asynchronous twin of `Diff`."""

    def __init__(self, it: "Diff", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    def __repr__(self) -> str:
        return f"Async{self._it!r}"

    def _repr_html_(self) -> str:
        return self._it._repr_html_()

    @property
    def from_snapshot(self) -> Any:
        """As `Diff` has it."""
        return self._it.from_snapshot

    @property
    def to_snapshot(self) -> Any:
        """As `Diff` has it."""
        return self._it.to_snapshot

    def __aiter__(self) -> "AsyncIterator[EntityChange]":
        """Yield the changes: nodes before edges, then by type, then by id."""
        return self._threads.items(self._it)

    async def stat(self) -> "tuple[TableCounts, ...]":
        """Count the changes of each table that has any, without building their images."""
        return await self._threads.read(self._it.stat)


class AsyncCommitChanges:
    """The asynchronous twin of `CommitChanges`."""

    def __init__(self, it: "CommitChanges", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    @property
    def cause(self) -> "ChangeCause":
        """The commit, as its changes name it."""
        return self._it.cause

    def __aiter__(self) -> "AsyncIterator[EntityChange]":
        """Yield the changes: nodes before edges, then by type, then by id."""
        return self._threads.items(self._it)

    def behind(self, beyond: "Position | None") -> "AsyncGenerator[EntityChange]":
        """Yield the changes after a position; None is the beginning.

        Raises:
            ChangeSchemaBoundary: rows before and after cannot be compared.
            HistoricalVersionReclaimed: a version of either was cleaned up.
        """
        return self._threads.items(self._it.behind(beyond))


class AsyncChangeFeed:
    """The asynchronous twin of `ChangeFeed`."""

    def __init__(self, it: "ChangeFeed", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    def __aiter__(self) -> "AsyncIterator[ChangeBlock]":
        """Yield blocks; a large commit comes in several of the same cause."""
        return self._threads.items(self._it)

    @property
    def cursor(self) -> "str":
        """Where to continue later.

        Raises:
            BadRequest: not every block has been taken.
        """
        return self._it.cursor


class AsyncBaseline:
    """The asynchronous twin of `Baseline`."""

    def __init__(self, it: "Baseline", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    @property
    def snapshot_commit_id(self) -> Any:
        """As `Baseline` has it."""
        return self._it.snapshot_commit_id

    def __aiter__(self) -> "AsyncIterator[dict[str, object]]":
        """Yield the records: nodes before edges, types by name, entities by id."""
        return self._threads.items(self._it)

    @property
    def resume_cursor(self) -> "str":
        """Where the feed continues.

        Raises:
            BadRequest: not every record has been taken.
        """
        return self._it.resume_cursor

    def lines(self) -> "AsyncGenerator[bytes]":
        """Yield NDJSON, some records at a time, and after the last one the commit and the cursor."""
        return self._threads.items(self._it.lines())

    async def to_file(self, path: "str | Path") -> "None":
        """Write one file of NDJSON; it appears when it is complete, and stays after a power cut.

        Raises:
            BadRequest: it cannot be written, or another process is writing it.
        """
        await self._threads.read(lambda: self._it.to_file(path))
