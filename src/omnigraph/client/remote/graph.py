"""`RemoteGraph`: the methods of `Graph` on a graph behind a server, with the same arguments and results.

What works on storage alone, and arguments that a server has no use for, raise `UnsupportedError` with what to
do instead. A test compares the signatures: a method of `Graph` is here, or is named as embedded only.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from omnigraph.catalog.build import compile_schema
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.params import type_of_field
from omnigraph.client.access import QueryCall, SchemaCall, UpgradeCall
from omnigraph.client.http import Http, HttpReply
from omnigraph.client.remote import read_back
from omnigraph.client.remote.embedded_only import EmbeddedOnly, refuse_given
from omnigraph.client.remote.events import events
from omnigraph.client.remote.loads import ArrowRows, RemoteData, given_rows
from omnigraph.client.remote.looking import RemoteLooking, RemoteSnapshotLike
from omnigraph.client.remote.outcome import WriteOutcome, outcome_of
from omnigraph.client.remote.read_back import RemoteBranch, RemoteStoredQuery
from omnigraph.client.remote.rows import result_of_stream
from omnigraph.client.remote.snapshot_view import RemoteSnapshotView
from omnigraph.client.remote.streams import RemoteExport
from omnigraph.client.sent_params import sent_params
from omnigraph.client.served import ServedAccess, call_body, conditional, given, query_path
from omnigraph.client.understood import understood
from omnigraph.core.access_errors import CommitOutcomeUnknown
from omnigraph.core.errors import BadRequest, BranchInUse, NotFoundError
from omnigraph.core.span import Source
from omnigraph.core.values import ValueType, named
from omnigraph.graph.arguments import check_flags, given_text
from omnigraph.graph.display import graph_line, graph_picture
from omnigraph.graph.result import Result
from omnigraph.graph.source import query_name, text_source
from omnigraph.history.branches import trimmed_name
from omnigraph.history.commits import GraphCommit
from omnigraph.history.identity import MAIN
from omnigraph.operations.load.load import LoadOptions, LoadResult
from omnigraph.operations.member import MutationResult
from omnigraph.operations.merge.merge import MergeResult
from omnigraph.wire.arrow_stream import ARROW_STREAM
from omnigraph.wire.responses import (
    ChangeOutput,
    ReadOutput,
)
from omnigraph.wire.schema_responses import SchemaPlanOutput

if TYPE_CHECKING:
    from omnigraph.bulk.connect.progress import ProgressCallback
    from omnigraph.operations.engine import Engine
    from omnigraph.operations.load.load import LoadMode
    from omnigraph.operations.load.model import LoadKeywords, OnError
    from omnigraph.operations.progress import TableProgressCallback


class RemoteGraph(RemoteLooking):
    """One graph behind a server.

    A call that names no branch means the one the handle is bound to; at first, main. Threads may share it.
    """

    optimize = EmbeddedOnly("optimize")
    cleanup = EmbeddedOnly("cleanup")
    repair = EmbeddedOnly("repair")
    ensure_indices = EmbeddedOnly("index ensure")
    rebuild_index = EmbeddedOnly("index rebuild")
    refresh = EmbeddedOnly(instead="every call asks for the newest state anyway")
    verify = EmbeddedOnly("verify")
    status = EmbeddedOnly("status")
    embed = EmbeddedOnly("embed")
    load_dataframes = EmbeddedOnly(instead="load Spark DataFrames into the storage of the graph")
    commit_log = EmbeddedOnly(instead="follow the branch with events")
    require_load = EmbeddedOnly(instead="the server asks its policy when it gets the load")
    acting_as = EmbeddedOnly(instead="connect with the token of that actor")

    def __init__(self, http: Http, branch: str | None = None) -> None:
        """Take the connection; users call `omnigraph.connect`."""
        self._http, self._branch = http, branch
        self._served = ServedAccess(http)

    def __repr__(self) -> str:
        return graph_line("RemoteGraph", self.uri, self._branch, None, is_closed=self._http.is_closed)

    def _repr_html_(self) -> str:
        """Return the picture of the branch's schema; where that cannot be read, what the graph is."""
        return graph_picture(repr(self), lambda: self.catalog, is_closed=self._http.is_closed)

    def __enter__(self) -> "RemoteGraph":
        """Return the graph itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection; idempotent."""
        self._http.__exit__(None, None, None)

    @property
    def uri(self) -> str:
        """The address of the graph."""
        return str(self._http.url)

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
    ) -> MutationResult:
        """Run one mutation of a `.gq` text or file as one commit.

        Raises:
            CommitOutcomeUnknown: the answer was lost; nothing is sent again. `outcome_of` says what became
                of it.
        """
        refuse_given("mutate", actor=actor, retry=retry)
        call = QueryCall(text_source(source), query_name(name), params)
        document = self._served.mutate(
            call, branch=self._on(branch), actor=None, if_commit=if_commit, message=message, retry=None
        )
        with understood():
            return read_back.mutation_of(document)

    def load(
        self,
        data: RemoteData,
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
        embed: bool = False,
        retry: float | None = None,
    ) -> LoadResult:
        """Load a file of NDJSON, NDJSON as bytes, dicts, or tables by type name, as one commit.

        Dicts are those of a load into storage: records in a list, or rows in lists by type name. The whole
        input is sent for a dry run, too, which writes nothing.

        Raises:
            ColumnsLeftOut: with strict columns, the load would clear properties; nothing was written.
            ResourceLimit: the input is larger than what the server takes at once.
            CommitOutcomeUnknown: the answer was lost.
        """
        check_flags(index=index, dry_run=dry_run, strict_columns=strict_columns, embed=embed)
        refuse_given(
            "load",
            mapping=mapping,
            actor=actor,
            engine=None if engine == "local" else engine,
            master=master,
            on_error=on_error,
            rejects=rejects,
            progress=progress,
            embed=embed,
            retry=retry,
        )
        LoadOptions(mode, engine=engine, on_error=on_error)  # which knows the words
        branch = self._on(branch)
        content = given_rows(data, mode, lambda: self.catalog_on(branch, from_))
        type_name, content = (
            (content.type_name, content.content) if isinstance(content, ArrowRows) else (None, content)
        )
        document = self._served.load(
            content,
            mode=mode,
            type_name=type_name,
            branch=branch,
            from_=from_,
            index=index,
            message=message,
            dry_run=dry_run,
            strict_columns=strict_columns,
        )
        with understood():
            return read_back.load_of(document)

    def load_tables(
        self, tables: Mapping[str, object], mode: "LoadMode", **options: "Unpack[LoadKeywords]"
    ) -> LoadResult:
        """Load tables by type name as one commit: of pyarrow, pandas or polars, or lists of dicts.

        Edges have columns `from` and `to`. The options are those of `load`.

        Raises:
            BadRequest: a type is not in the schema, or a value is not a table.
        """
        if not isinstance(tables, Mapping):
            raise BadRequest(f"expected tables by type name, as in {{'Person': table}}, not {named(tables)}")
        return self.load(tables, mode, **options)

    def load_objects(
        self,
        objects: Iterable[object],
        mode: "LoadMode",
        *,
        types: Mapping[type, str] | None = None,
        **options: "Unpack[LoadKeywords]",
    ) -> LoadResult:
        """Load instances of pydantic models and dataclasses, nodes and edges together, as one commit.

        What becomes of them is what a load into storage makes of them; they are sent as NDJSON.

        Raises:
            BadRequest: a class has no type, or a value cannot be stored as it is.
        """
        from omnigraph.operations.load.objects import objects_input

        return self.load(lambda catalog: objects_input(catalog, objects, types), mode, **options)

    def load_networkx(
        self,
        network: object,
        mode: "LoadMode",
        *,
        node_type: str | None = None,
        edge_type: str | None = None,
        **options: "Unpack[LoadKeywords]",
    ) -> LoadResult:
        """Load a graph of networkx as one commit: what `to_networkx` made, or any other.

        What becomes of it is what a load into storage makes of it; it is sent as NDJSON.

        Raises:
            BadRequest: this is no graph, a type is unknown, or a value cannot be stored as it is.
        """
        from omnigraph.operations.load.network import NetworkTypes, network_input

        types = NetworkTypes(node_type, edge_type)
        return self.load(lambda catalog: network_input(catalog, network, types), mode, **options)

    # Reads

    def query(
        self,
        source: str | Path | Source,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: RemoteSnapshotLike | None = None,
        actor: str | None = None,
        timeout_ms: int | None = None,
        memory_bytes: int | None = None,
        exact: bool = False,
    ) -> Result:
        """Run one read of a `.gq` text or file, on the newest snapshot of a branch or on a past one."""
        refuse_given("query", actor=actor, timeout_ms=timeout_ms, memory_bytes=memory_bytes, exact=exact)
        call = QueryCall(text_source(source), query_name(name), params)
        body = call_body(call) | self._read_target(branch, snapshot)
        with self._http.stream("POST", "/query", body=body, headers={"Accept": _ROWS}) as answer:
            return self._result(answer, call)

    def queries(self) -> list[RemoteStoredQuery]:
        """Return the stored queries that the server lists, by name."""
        document = self._served.queries()
        with understood():
            return [read_back.stored_query_of(item) for item in document["queries"]]

    def invoke(
        self,
        name: str,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: RemoteSnapshotLike | None = None,
        if_commit: str | None = None,
        actor: str | None = None,
        message: str | None = None,
    ) -> Result | MutationResult:
        """Run a stored query by its name: a read gives its rows, a mutation what it did.

        Raises:
            NotFoundError: there is no stored query of that name, or you may not call it.
            CommitOutcomeUnknown: the answer was lost, and it may have been that of a mutation.
        """
        refuse_given("invoke", actor=actor)
        chosen = query_name(name)
        if chosen is None:
            raise BadRequest("the name of a stored query must be a text, not nothing")
        sent = sent_params(params, lambda: self._listed_types(chosen))
        body = given(params=sent, message=message) | self._read_target(branch, snapshot)
        path, headers = conditional(query_path(chosen), if_commit)
        write = self._served.write_on(self._on(branch))
        with self._http.stream(
            "POST", path, body=body, headers={**headers, "Accept": _ROWS}, write=write
        ) as answer:
            if answer.media_type == ARROW_STREAM:
                return result_of_stream(answer)
            return read_back.mutation_of(answer.document(ChangeOutput))

    def at(self, snapshot: RemoteSnapshotLike) -> "RemoteSnapshotView":
        """Return a read-only view of one snapshot, which never looks at the branch again.

        Raises:
            CommitNotFound, VersionNotFound: there is no such snapshot.
        """
        commit_id = self._commit_id(self._branch, snapshot)
        return RemoteSnapshotView(self, self.commit(commit_id))

    def export(
        self,
        *,
        branch: str | None = None,
        types: Sequence[str] | None = None,
        actor: str | None = None,
        progress: "TableProgressCallback | None" = None,
    ) -> RemoteExport:
        """Return the records of a branch: iterate over dicts, or write them with `to_file`.

        Errors come when the records are asked for.
        """
        refuse_given("export", actor=actor, progress=progress)
        body = given(branch=self._on(branch), type_names=None if types is None else [*types])
        return RemoteExport(lambda: self._http.stream("POST", "/export", body=body), self._times(branch))

    def events(self, *, branch: str | None = None, after: str | None = None) -> Generator[GraphCommit]:
        """Yield the commits that a branch gets from now on, or after one, as they are made; without an end.

        Where the connection breaks, it is made again and goes on after the last commit.
        """
        return events(self._http, self._on(branch), given_text("after", after))

    def outcome_of(self, lost: CommitOutcomeUnknown | BaseException) -> WriteOutcome:
        """Ask what became of a write whose answer was lost; nothing is sent again.

        An interrupt that came while a write was under way will do as well as the error: it has that as cause.
        It landed, or it did not, if the server process that took it still knows; else it is unknown, and the
        outcome lists the commits that the branch has got since. A write under way is waited for, for about
        ten seconds.

        Raises:
            TransportError: the server cannot be asked.
        """
        return outcome_of(self._http, lost, wait=self._http.pause)

    # Branches

    def branches(self) -> list[str]:
        """Return the names of all branches, sorted."""
        with understood():
            return [str(name) for name in self._served.branches()["branches"]]

    def create_branch(self, name: str, from_: str | None = None, *, actor: str | None = None) -> RemoteBranch:
        """Create a branch from the head of another: of the given one, of the bound one, or of main.

        Raises:
            AlreadyExistsError: there is a branch of that name.
            BranchNotFound: the branch to start from does not exist.
        """
        refuse_given("create_branch", actor=actor)
        document = self._served.create_branch(name, self._on(from_), actor=None)
        with understood():
            return read_back.branch_of(document)

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        """Delete a branch and the commits that only it has.

        Raises:
            BranchInUse: another branch needs it, or this handle is bound to it.
        """
        refuse_given("delete_branch", actor=actor)
        if trimmed_name(name) == self._branch:
            raise BranchInUse(self._branch, "this handle is bound to it")
        self._served.delete_branch(name, actor=None)

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
    ) -> MergeResult:
        """Bring what one branch did since the two diverged into another, as one commit with two parents.

        Raises:
            MergeConflicts: the two sides disagree; nothing was written.
            BranchNotFound: there is no such branch.
        """
        check_flags(delete_branch=delete_branch, dry_run=dry_run)
        refuse_given("merge", actor=actor, progress=progress)
        document = self._served.merge(
            source, into, actor=None, message=message, delete_branch=delete_branch, dry_run=dry_run
        )
        with understood():
            return read_back.merge_of(document)

    @contextmanager
    def branch(
        self,
        name: str,
        from_: str | None = None,
        *,
        merge_on_exit: bool = False,
        delete_on_error: bool = True,
    ) -> Iterator["RemoteGraph"]:
        """Yield a handle bound to a branch, which is first created if `from_` names the branch to start from.

        With `merge_on_exit` the branch is merged into the one it was created from, or into main. A branch
        created here is deleted if the block raises, unless that is switched off.
        """
        check_flags(merge_on_exit=merge_on_exit, delete_on_error=delete_on_error)
        if from_ is None:
            self.snapshot(name)
        else:
            self.create_branch(name, from_)
        try:
            yield RemoteGraph(self._http, trimmed_name(name))
        except BaseException:
            if from_ is not None and delete_on_error:
                self.delete_branch(name)
            raise
        if merge_on_exit:
            self.merge(name, into=from_ or MAIN)

    # Schema

    @property
    def catalog(self) -> Catalog:
        """The types of the handle's branch."""
        return self.catalog_on(self._branch)

    def catalog_on(self, branch: str | None, from_: str | None = None) -> Catalog:
        """Return the types of a branch, or of the one that it is about to be made from."""
        try:
            text = self.schema(branch=branch)
        except NotFoundError:
            if from_ is None:
                raise
            text = self.schema(branch=from_)
        return compile_schema(Source(text))

    def schema(self, *, branch: str | None = None) -> str:
        """Return the text of a branch's schema, as it was given."""
        with understood():
            return str(self._served.schema(self._on(branch))["schema_source"])

    def plan_schema(
        self, text: str | Path | Source, *, branch: str | None = None, allow_data_loss: bool = False
    ) -> read_back.RemoteSchemaPlan:
        """Return the steps from a branch's schema to that of a `.pg` text or file; nothing is written."""
        check_flags(allow_data_loss=allow_data_loss)
        body = given(
            schema_source=text_source(text).text,
            branch=self._on(branch),
            allow_data_loss=allow_data_loss or None,
        )
        document = self._http.send("POST", "/schema/plan", SchemaPlanOutput, body=body)
        with understood():
            return read_back.plan_of(document)

    def apply_schema(
        self,
        text: str | Path | Source,
        *,
        branch: str | None = None,
        base: str | None = None,
        allow_data_loss: bool = False,
        exclusive: bool = False,
        actor: str | None = None,
        message: str | None = None,
        index: bool = True,
        progress: "TableProgressCallback | None" = None,
        engine: "Engine" = "auto",
        master: str | None = None,
    ) -> read_back.RemoteSchemaApplyResult:
        """Give a branch another schema, from a `.pg` text or file, as one commit; then build missing indexes.

        Raises:
            SchemaError: the change is not supported; nothing was written.
        """
        check_flags(allow_data_loss=allow_data_loss, exclusive=exclusive, index=index)
        refuse_given(
            "apply_schema",
            actor=actor,
            exclusive=exclusive,
            progress=progress,
            engine=None if engine == "local" else engine,
            master=master,
        )
        call = SchemaCall(
            text_source(text),
            branch=self._on(branch),
            base=base,
            allow_data_loss=allow_data_loss,
            message=message,
            index=index,
        )
        document = self._served.apply_schema(call, actor=None)
        with understood():
            return read_back.schema_applied_of(document)

    def upgrade_branch(
        self,
        name: str,
        *,
        actor: str | None = None,
        message: str | None = None,
        index: bool = True,
        allow_data_loss: bool = False,
        progress: "TableProgressCallback | None" = None,
        engine: "Engine" = "auto",
        master: str | None = None,
    ) -> read_back.RemoteSchemaApplyResult:
        """Bring the changes of main's schema to a branch, as one commit; its rows stay as they are.

        With `allow_data_loss` the values of what main dropped go from the files and from the past of the
        branch as well. A branch that has the schema of main gets no commit.

        Raises:
            MergeConflicts: the two schemas disagree, or rows of the branch need what main dropped.
            CommitOutcomeUnknown: the answer was lost; it does no harm to upgrade again.
        """
        check_flags(index=index, allow_data_loss=allow_data_loss)
        refuse_given(
            "upgrade_branch",
            actor=actor,
            progress=progress,
            engine=None if engine == "local" else engine,
            master=master,
        )
        call = UpgradeCall(trimmed_name(name), allow_data_loss=allow_data_loss, message=message, index=index)
        document = self._served.upgrade_branch(call, actor=None)
        with understood():
            return read_back.schema_applied_of(document)

    # What calls have in common

    def _listed_types(self, name: str) -> Mapping[str, ValueType] | None:
        """Return the types of a stored query's parameters, if the server lists it."""
        for query in self.queries():
            if query.name == name:
                with understood():
                    return {field.name: type_of_field(field) for field in query.parameters}
        return None

    def _result(self, answer: HttpReply, call: QueryCall) -> Result:
        if answer.media_type == ARROW_STREAM:
            return result_of_stream(answer)
        from omnigraph.client.remote.json_rows import result_of_json

        return result_of_json(answer.document(ReadOutput), call, self.catalog)


_ROWS = f"{ARROW_STREAM}, application/json;q=0.5"
