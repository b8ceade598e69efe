"""The asynchronous twins of RemoteGraph: written by tests/support/async_source.py.

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
    from omnigraph.catalog.model import Catalog
    from omnigraph.changes.model import ChangeBlock, ChangeCause, EntityChange
    from omnigraph.client.remote import read_back
    from omnigraph.client.remote.blob import RemoteBlob
    from omnigraph.client.remote.changes import RemoteChangeFeed, RemoteCommitChanges, RemoteDiff
    from omnigraph.client.remote.following import RemoteTarget
    from omnigraph.client.remote.graph import RemoteGraph
    from omnigraph.client.remote.loads import RemoteData
    from omnigraph.client.remote.looking import RemoteSnapshotLike
    from omnigraph.client.remote.looks import RemoteExplanation
    from omnigraph.client.remote.outcome import WriteOutcome
    from omnigraph.client.remote.pinned import RemoteTableRows
    from omnigraph.client.remote.read_back import (
        RemoteBranch,
        RemoteSnapshot,
        RemoteStoredQuery,
    )
    from omnigraph.client.remote.snapshot_view import RemoteSnapshotView
    from omnigraph.client.remote.streams import RemoteBaseline, RemoteExport
    from omnigraph.commit.recovery.audit import RecoveryRecord
    from omnigraph.core.access_errors import CommitOutcomeUnknown
    from omnigraph.core.span import Source
    from omnigraph.graph.result import Result
    from omnigraph.history.commits import GraphCommit
    from omnigraph.history.lanes import CommitList
    from omnigraph.operations.changes.commit_changes import CommitChangesPage
    from omnigraph.operations.changes.diff import TableCounts
    from omnigraph.operations.changes.feed import ChangeFeedPage
    from omnigraph.operations.describe.describe import TypeDescription
    from omnigraph.operations.engine import Engine
    from omnigraph.operations.index_status import TableIndexes
    from omnigraph.operations.load.load import LoadMode, LoadResult
    from omnigraph.operations.load.model import LoadKeywords, OnError
    from omnigraph.operations.member import MutationResult
    from omnigraph.operations.merge.merge import MergeResult
    from omnigraph.operations.progress import TableProgressCallback


class AsyncRemoteGraph:
    """The asynchronous twin of `RemoteGraph`."""

    def __init__(self, graph: "RemoteGraph", threads: CallThreads | None = None) -> None:
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

    async def optimize(self, *arguments: object, **options: object) -> None:
        """Refuse: this works on the storage of a graph alone."""
        self._it.optimize(*arguments, **options)

    async def cleanup(self, *arguments: object, **options: object) -> None:
        """Refuse: this works on the storage of a graph alone."""
        self._it.cleanup(*arguments, **options)

    async def repair(self, *arguments: object, **options: object) -> None:
        """Refuse: this works on the storage of a graph alone."""
        self._it.repair(*arguments, **options)

    async def ensure_indices(self, *arguments: object, **options: object) -> None:
        """Refuse: this works on the storage of a graph alone."""
        self._it.ensure_indices(*arguments, **options)

    async def rebuild_index(self, *arguments: object, **options: object) -> None:
        """Refuse: this works on the storage of a graph alone."""
        self._it.rebuild_index(*arguments, **options)

    async def refresh(self, *arguments: object, **options: object) -> None:
        """Refuse: this works on the storage of a graph alone."""
        self._it.refresh(*arguments, **options)

    async def verify(self, *arguments: object, **options: object) -> None:
        """Refuse: this works on the storage of a graph alone."""
        self._it.verify(*arguments, **options)

    async def status(self, *arguments: object, **options: object) -> None:
        """Refuse: this works on the storage of a graph alone."""
        self._it.status(*arguments, **options)

    async def embed(self, *arguments: object, **options: object) -> None:
        """Refuse: this works on the storage of a graph alone."""
        self._it.embed(*arguments, **options)

    async def load_dataframes(self, *arguments: object, **options: object) -> None:
        """Refuse: this works on the storage of a graph alone."""
        self._it.load_dataframes(*arguments, **options)

    async def commit_log(self, *arguments: object, **options: object) -> None:
        """Refuse: this works on the storage of a graph alone."""
        self._it.commit_log(*arguments, **options)

    async def require_load(self, *arguments: object, **options: object) -> None:
        """Refuse: this works on the storage of a graph alone."""
        self._it.require_load(*arguments, **options)

    async def acting_as(self, *arguments: object, **options: object) -> None:
        """Refuse: this works on the storage of a graph alone."""
        self._it.acting_as(*arguments, **options)

    @property
    def uri(self) -> "str":
        """The address of the graph."""
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

        Raises:
            CommitOutcomeUnknown: the answer was lost; nothing is sent again. `outcome_of` says what became
                of it.
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

    async def load(
        self,
        data: "RemoteData",
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
        """Load a file of NDJSON, NDJSON as bytes, dicts, or tables by type name, as one commit.

        Dicts are those of a load into storage: records in a list, or rows in lists by type name. The whole
        input is sent for a dry run, too, which writes nothing.

        Raises:
            ColumnsLeftOut: with strict columns, the load would clear properties; nothing was written.
            ResourceLimit: the input is larger than what the server takes at once.
            CommitOutcomeUnknown: the answer was lost.
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
        """Load tables by type name as one commit: of pyarrow, pandas or polars, or lists of dicts.

        Edges have columns `from` and `to`. The options are those of `load`.

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

        What becomes of them is what a load into storage makes of them; they are sent as NDJSON.

        Raises:
            BadRequest: a class has no type, or a value cannot be stored as it is.
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

        What becomes of it is what a load into storage makes of it; it is sent as NDJSON.

        Raises:
            BadRequest: this is no graph, a type is unknown, or a value cannot be stored as it is.
        """
        return await self._threads.write(
            lambda: self._it.load_networkx(network, mode, node_type=node_type, edge_type=edge_type, **options)
        )

    async def query(
        self,
        source: "str | Path | Source",
        name: "str | None" = None,
        params: "Mapping[str, object] | None" = None,
        *,
        branch: "str | None" = None,
        snapshot: "RemoteSnapshotLike | None" = None,
        actor: "str | None" = None,
        timeout_ms: "int | None" = None,
        memory_bytes: "int | None" = None,
        exact: "bool" = False,
    ) -> "Result":
        """Run one read of a `.gq` text or file, on the newest snapshot of a branch or on a past one."""
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

    async def queries(self) -> "list[RemoteStoredQuery]":
        """Return the stored queries that the server lists, by name."""
        return await self._threads.read(self._it.queries)

    async def invoke(
        self,
        name: "str",
        params: "Mapping[str, object] | None" = None,
        *,
        branch: "str | None" = None,
        snapshot: "RemoteSnapshotLike | None" = None,
        if_commit: "str | None" = None,
        actor: "str | None" = None,
        message: "str | None" = None,
    ) -> "Result | MutationResult":
        """Run a stored query by its name: a read gives its rows, a mutation what it did.

        Raises:
            NotFoundError: there is no stored query of that name, or you may not call it.
            CommitOutcomeUnknown: the answer was lost, and it may have been that of a mutation.
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

    async def at(self, snapshot: "RemoteSnapshotLike") -> "AsyncRemoteSnapshotView":
        """Return a read-only view of one snapshot, which never looks at the branch again.

        Raises:
            CommitNotFound, VersionNotFound: there is no such snapshot.
        """
        return AsyncRemoteSnapshotView(await self._threads.read(lambda: self._it.at(snapshot)), self._threads)

    async def export(
        self,
        *,
        branch: "str | None" = None,
        types: "Sequence[str] | None" = None,
        actor: "str | None" = None,
        progress: "TableProgressCallback | None" = None,
    ) -> "AsyncRemoteExport":
        """Return the records of a branch: iterate over dicts, or write them with `to_file`.

        Errors come when the records are asked for.
        """
        return AsyncRemoteExport(
            await self._threads.read(
                lambda: self._it.export(branch=branch, types=types, actor=actor, progress=progress)
            ),
            self._threads,
        )

    def events(
        self, *, branch: "str | None" = None, after: "str | None" = None
    ) -> "AsyncGenerator[GraphCommit]":
        """Yield the commits that a branch gets from now on, or after one, as they are made; without an end.

        Where the connection breaks, it is made again and goes on after the last commit.
        """
        return self._threads.items(self._it.events(branch=branch, after=after), at_once=1)

    async def outcome_of(self, lost: "CommitOutcomeUnknown | BaseException") -> "WriteOutcome":
        """Ask what became of a write whose answer was lost; nothing is sent again.

        An interrupt that came while a write was under way will do as well as the error: it has that as cause.
        It landed, or it did not, if the server process that took it still knows; else it is unknown, and the
        outcome lists the commits that the branch has got since. A write under way is waited for, for about
        ten seconds.

        Raises:
            TransportError: the server cannot be asked.
        """
        return await self._threads.read(lambda: self._it.outcome_of(lost))

    async def branches(self) -> "list[str]":
        """Return the names of all branches, sorted."""
        return await self._threads.read(self._it.branches)

    async def create_branch(
        self, name: "str", from_: "str | None" = None, *, actor: "str | None" = None
    ) -> "RemoteBranch":
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
    ) -> "AsyncIterator[AsyncRemoteGraph]":
        """Yield a handle bound to a branch, which is first created if `from_` names the branch to start from.

        With `merge_on_exit` the branch is merged into the one it was created from, or into main. A branch
        created here is deleted if the block raises, unless that is switched off.
        """
        entered = self._it.branch(name, from_, merge_on_exit=merge_on_exit, delete_on_error=delete_on_error)
        bound = await self._threads.write(entered.__enter__)
        try:
            yield AsyncRemoteGraph(bound, self._threads)
        except BaseException as error:
            await self._threads.write(functools.partial(leave, entered, error))
            raise
        await self._threads.write(lambda: entered.__exit__(None, None, None))

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
    ) -> "read_back.RemoteSchemaPlan":
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
    ) -> "read_back.RemoteSchemaApplyResult":
        """Give a branch another schema, from a `.pg` text or file, as one commit; then build missing indexes.

        Raises:
            SchemaError: the change is not supported; nothing was written.
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
    ) -> "read_back.RemoteSchemaApplyResult":
        """Bring the changes of main's schema to a branch, as one commit; its rows stay as they are.

        With `allow_data_loss` the values of what main dropped go from the files and from the past of the
        branch as well. A branch that has the schema of main gets no commit.

        Raises:
            MergeConflicts: the two schemas disagree, or rows of the branch need what main dropped.
            CommitOutcomeUnknown: the answer was lost; it does no harm to upgrade again.
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

    async def explain(
        self,
        source: "str | Path | Source",
        name: "str | None" = None,
        params: "Mapping[str, object] | None" = None,
        *,
        branch: "str | None" = None,
        snapshot: "RemoteSnapshotLike | None" = None,
        actor: "str | None" = None,
    ) -> "RemoteExplanation":
        """Return how a read would be carried out; parameters may be left out."""
        return await self._threads.read(
            lambda: self._it.explain(source, name, params, branch=branch, snapshot=snapshot, actor=actor)
        )

    async def describe(
        self,
        type_name: "str",
        *,
        branch: "str | None" = None,
        snapshot: "RemoteSnapshotLike | None" = None,
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

    async def table(self, type_name: "str", *, branch: "str | None" = None) -> "pa.Table":
        """Return all rows of a type, by id; a `DateTime` is a timestamp in UTC.

        A table key, such as `node:Person`, names a type as well.

        Raises:
            BadRequest: there is no such type.
        """
        return await self._threads.read(lambda: self._it.table(type_name, branch=branch))

    async def scan(
        self,
        type_name: "str",
        *,
        branch: "str | None" = None,
        snapshot: "RemoteSnapshotLike | None" = None,
        columns: "Sequence[str] | None" = None,
        actor: "str | None" = None,
    ) -> "AsyncRemoteTableRows":
        """Return the rows of a type in batches, pinned now: all columns, or those that are named.

        A batch is read when it is asked for, so that the table need not fit into memory; their order is that
        of storage. Errors come when the rows are asked for.
        """
        return AsyncRemoteTableRows(
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
        snapshot: "RemoteSnapshotLike | None" = None,
        actor: "str | None" = None,
    ) -> "Any":
        """Return a DuckDB connection with a view for each type, over one snapshot.

        Views are those of a graph in its storage. A query asks the server for the columns that it names, of
        all rows, each time that it runs.

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
        snapshot: "RemoteSnapshotLike | None" = None,
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

    async def entity_at(
        self,
        type_name: "str",
        entity_id: "str",
        target: "RemoteTarget | None" = None,
        *,
        actor: "str | None" = None,
    ) -> "dict[str, object]":
        """Return one node or edge as a branch or a commit shows it, else its newest state.

        Raises:
            BadRequest: the id is no text.
            EntityNotFound: there is no such entity.
            NotFoundError: the target is neither a branch nor a commit.
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
        snapshot: "RemoteSnapshotLike | None" = None,
        actor: "str | None" = None,
    ) -> "AsyncRemoteBlob":
        """Return the value of a Blob property of a `node` or an `edge`; its bytes are asked for on demand.

        The ETag is strong: it changes with the bytes. Storing the row anew changes it too.

        Raises:
            BadRequest: there is no such type or property, or it is not a Blob.
            EntityNotFound: there is no such node or edge.
            NotFoundError: its value is null.
            HistoricalVersionReclaimed: the table's version was cleaned up.
        """
        return AsyncRemoteBlob(
            await self._threads.read(
                lambda: self._it.blob(
                    entity, type, id, property, branch=branch, snapshot=snapshot, actor=actor
                )
            ),
            self._threads,
        )

    async def snapshot(self, branch: "str | None" = None) -> "RemoteSnapshot":
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
        """Return one commit: of a branch that is named or bound, else of whichever branch has it.

        Raises:
            CommitNotFound: no branch has it.
        """
        return await self._threads.read(lambda: self._it.commit(commit_id, branch=branch))

    async def index_status(self, *, branch: "str | None" = None) -> "tuple[TableIndexes, ...]":
        """Return which declared indexes are built, and how much they cover."""
        return await self._threads.read(lambda: self._it.index_status(branch=branch))

    async def recoveries(self) -> "list[RecoveryRecord]":
        """Return the finished recoveries, newest first."""
        return await self._threads.read(self._it.recoveries)

    async def diff(
        self,
        a: "RemoteTarget",
        b: "RemoteTarget" = MAIN,
        *,
        kinds: "Iterable[str] | None" = None,
        types: "Iterable[str] | None" = None,
        ops: "Iterable[str] | None" = None,
        actor: "str | None" = None,
    ) -> "AsyncRemoteDiff":
        """Return what differs from `b` to `a`, each a branch or a commit: iterate over changes.

        Raises:
            NotFoundError: a name is neither a branch nor a commit.
            ChangeSchemaBoundary: a type has different properties on the two sides.
        """
        return AsyncRemoteDiff(
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
    ) -> "AsyncRemoteCommitChanges":
        """Return what a commit changed compared with its first parent: iterate over changes.

        Raises:
            CommitNotFound: no live branch has it.
            CommitHasNoParent: it is the first one.
        """
        return AsyncRemoteCommitChanges(
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
    ) -> "AsyncRemoteChangeFeed":
        """Return the commits of a branch since a cursor or a start, oldest first: iterate over blocks.

        A start is `now`, `beginning` or `after:<commit id>`. The feed has its next `cursor` once every block
        has been taken.
        """
        return AsyncRemoteChangeFeed(
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
        """Return one page of a branch's changes; its size in bytes and commits is the server's.

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
    ) -> "AsyncRemoteBaseline":
        """Return every entity of a branch, and then the cursor to continue from.

        Errors come when the records are asked for.
        """
        return AsyncRemoteBaseline(
            await self._threads.read(
                lambda: self._it.baseline(branch=branch, kinds=kinds, types=types, ops=ops, actor=actor)
            ),
            self._threads,
        )


class AsyncRemoteSnapshotView:
    """The asynchronous twin of `RemoteSnapshotView`."""

    def __init__(self, it: "RemoteSnapshotView", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    def __repr__(self) -> str:
        return f"Async{self._it!r}"

    def _repr_html_(self) -> str:
        return self._it._repr_html_()

    @property
    def snapshot(self) -> "RemoteSnapshot":
        """The snapshot that all reads see; which tables it has is not known here."""
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
    ) -> "RemoteExplanation":
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
    ) -> "AsyncRemoteBlob":
        """Return the value of a Blob property of a `node` or an `edge` of the snapshot."""
        return AsyncRemoteBlob(
            await self._threads.read(lambda: self._it.blob(entity, type, id, property, actor=actor)),
            self._threads,
        )


class AsyncRemoteBlob:
    """The asynchronous twin of `RemoteBlob`."""

    def __init__(self, it: "RemoteBlob", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    @property
    def kind(self) -> Any:
        """As `RemoteBlob` has it."""
        return self._it.kind

    @property
    def size(self) -> Any:
        """As `RemoteBlob` has it."""
        return self._it.size

    @property
    def etag(self) -> Any:
        """As `RemoteBlob` has it."""
        return self._it.etag

    @property
    def uri(self) -> Any:
        """As `RemoteBlob` has it."""
        return self._it.uri

    @property
    def commit_id(self) -> Any:
        """As `RemoteBlob` has it."""
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
        """Return the bytes in pieces of at most 4 MiB, each asked for when it is taken.

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


class AsyncRemoteTableRows:
    """The asynchronous twin of `RemoteTableRows`."""

    def __init__(self, it: "RemoteTableRows", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    @property
    def commit_id(self) -> "str":
        """The commit that the rows are of."""
        return self._it.commit_id

    def __aiter__(self) -> "AsyncIterator[pa.RecordBatch]":
        """Yield batches, with times as timestamps in UTC."""
        return self._threads.items(self._it)

    async def to_arrow(self) -> "pa.Table":
        """Return all rows as one table."""
        return await self._threads.read(self._it.to_arrow)


class AsyncRemoteExport:
    """The asynchronous twin of `RemoteExport`."""

    def __init__(self, it: "RemoteExport", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    def __aiter__(self) -> "AsyncIterator[dict[str, object]]":
        """Yield the records in the form a load takes; times are dates and aware datetimes."""
        return self._threads.items(self._it)

    def lines(self) -> "AsyncGenerator[bytes]":
        """Yield NDJSON in pieces that end anywhere.

        Raises:
            TransportError: it was cut off.
        """
        return self._threads.items(self._it.lines())

    async def to_file(self, path: "str | Path") -> "None":
        """Write one file of NDJSON; it appears when it is complete.

        Raises:
            BadRequest: it cannot be written.
        """
        await self._threads.read(lambda: self._it.to_file(path))


class AsyncRemoteBaseline:
    """The asynchronous twin of `RemoteBaseline`."""

    def __init__(self, it: "RemoteBaseline", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    def __aiter__(self) -> "AsyncIterator[dict[str, object]]":
        """Yield the records: nodes before edges, types by name, entities by id."""
        return self._threads.items(self._it)

    @property
    def snapshot_commit_id(self) -> "str":
        """The commit that the records are of.

        Raises:
            BadRequest: not every record has been taken; a server says it at the end.
        """
        return self._it.snapshot_commit_id

    @property
    def resume_cursor(self) -> "str":
        """Where the feed continues.

        Raises:
            BadRequest: not every record has been taken.
        """
        return self._it.resume_cursor

    def lines(self) -> "AsyncGenerator[bytes]":
        """Yield NDJSON, a record at a time, and after the last one the commit and the cursor."""
        return self._threads.items(self._it.lines())

    async def to_file(self, path: "str | Path") -> "None":
        """Write one file of NDJSON; it appears when it is complete.

        Raises:
            BadRequest: it cannot be written.
        """
        await self._threads.read(lambda: self._it.to_file(path))


class AsyncRemoteDiff:
    """The asynchronous twin of `RemoteDiff`."""

    def __init__(self, it: "RemoteDiff", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    def __repr__(self) -> str:
        return f"Async{self._it!r}"

    def _repr_html_(self) -> str:
        return self._it._repr_html_()

    @property
    def from_snapshot(self) -> "RemoteSnapshot":
        """The state before."""
        return self._it.from_snapshot

    @property
    def to_snapshot(self) -> "RemoteSnapshot":
        """The state after."""
        return self._it.to_snapshot

    def __aiter__(self) -> "AsyncIterator[EntityChange]":
        """Yield the changes: nodes before edges, then by type, then by id."""
        return self._threads.items(self._it)

    async def stat(self) -> "tuple[TableCounts, ...]":
        """Count the changes of each table that has any."""
        return await self._threads.read(self._it.stat)


class AsyncRemoteCommitChanges:
    """The asynchronous twin of `RemoteCommitChanges`."""

    def __init__(self, it: "RemoteCommitChanges", threads: CallThreads) -> None:
        """Take what this is the twin of."""
        self._it, self._threads = it, threads

    @property
    def cause(self) -> "ChangeCause":
        """The commit, as its changes name it."""
        return self._it.cause

    def __aiter__(self) -> "AsyncIterator[EntityChange]":
        """Yield the changes: nodes before edges, then by type, then by id."""
        return self._threads.items(self._it)


class AsyncRemoteChangeFeed:
    """The asynchronous twin of `RemoteChangeFeed`."""

    def __init__(self, it: "RemoteChangeFeed", threads: CallThreads) -> None:
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
