"""What a graph behind a server shows besides the rows of queries: types, tables, values, commits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.client.access import BlobCall, QueryCall
from omnigraph.client.answer import Document
from omnigraph.client.remote import read_back
from omnigraph.client.remote.embedded_only import refuse_given
from omnigraph.client.remote.following import RemoteFollowing, RemoteTarget, target_name
from omnigraph.client.remote.read_back import RemoteSnapshot
from omnigraph.client.remote.rows import entity_of_stream
from omnigraph.client.served import call_body, given
from omnigraph.client.understood import understood
from omnigraph.core.errors import BadRequest, EntityNotFound, NotFoundError
from omnigraph.core.names import refuse_both
from omnigraph.core.span import Source
from omnigraph.core.values import is_count, is_text, named, shown
from omnigraph.graph.arguments import given_names, required_text
from omnigraph.graph.source import query_name, text_source
from omnigraph.history.branches import trimmed_name
from omnigraph.history.commits import GraphCommit
from omnigraph.history.identity import MAIN
from omnigraph.history.lanes import CommitList
from omnigraph.history.state import Snapshot
from omnigraph.wire.arrow_stream import ARROW_STREAM
from omnigraph.wire.responses import DescribeOutput, ExplainOutput

if TYPE_CHECKING:
    from omnigraph.client.remote.blob import RemoteBlob
    from omnigraph.client.remote.looks import RemoteExplanation
    from omnigraph.client.remote.pinned import RemotePin, RemoteTableRows
    from omnigraph.commit.recovery.audit import RecoveryRecord
    from omnigraph.operations.describe.describe import TypeDescription
    from omnigraph.operations.index_status import TableIndexes

RemoteSnapshotLike = RemoteSnapshot | Snapshot | str | int | datetime


class RemoteLooking(RemoteFollowing):
    """A handle's ways to look at a state of the graph."""

    def explain(
        self,
        source: str | Path | Source,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: RemoteSnapshotLike | None = None,
        actor: str | None = None,
    ) -> "RemoteExplanation":
        """Return how a read would be carried out; parameters may be left out."""
        from omnigraph.client.remote.looks import explanation_of

        refuse_given("explain", actor=actor)
        call = QueryCall(text_source(source), query_name(name), params)
        body = call_body(call) | self._read_target(branch, snapshot)
        document = self._http.send("POST", "/query/explain", ExplainOutput, body=body)
        with understood():
            return explanation_of(document)

    def describe(
        self,
        type_name: str,
        *,
        branch: str | None = None,
        snapshot: RemoteSnapshotLike | None = None,
        actor: str | None = None,
    ) -> "TypeDescription":
        """Return a type with what its rows hold: nulls, distinct values, bounds, samples, degrees of edges.

        Every row is read once. Distinct values beyond 10,000 are estimated, and the result says so.

        Raises:
            BadRequest: there is no such type, or it is an interface.
            HistoricalVersionReclaimed: the table's version was cleaned up.
        """
        from omnigraph.client.remote.looks import description_of

        refuse_given("describe", actor=actor)
        params = {"type": _type_name(type_name), **self._read_target(branch, snapshot)}
        document = self._http.get("/describe", DescribeOutput, params)
        with understood():
            return description_of(document)

    def table(self, type_name: str, *, branch: str | None = None) -> pa.Table:
        """Return all rows of a type, by id; a `DateTime` is a timestamp in UTC.

        A table key, such as `node:Person`, names a type as well.

        Raises:
            BadRequest: there is no such type.
        """
        return self.scan(type_name, branch=branch).to_arrow().sort_by("id")

    def scan(
        self,
        type_name: str,
        *,
        branch: str | None = None,
        snapshot: RemoteSnapshotLike | None = None,
        columns: Sequence[str] | None = None,
        actor: str | None = None,
    ) -> "RemoteTableRows":
        """Return the rows of a type in batches, pinned now: all columns, or those that are named.

        A batch is read when it is asked for, so that the table need not fit into memory; their order is that
        of storage. Errors come when the rows are asked for.
        """
        from omnigraph.client.remote.pinned import RemoteTableRows

        refuse_given("scan", actor=actor)
        wanted = given_names("columns", columns)
        return RemoteTableRows(self._pin(branch, snapshot), _type_name(type_name), wanted)

    def duckdb(
        self,
        *,
        branch: str | None = None,
        snapshot: RemoteSnapshotLike | None = None,
        actor: str | None = None,
    ) -> Any:  # noqa: ANN401 - duckdb is optional, and so are its types
        """Return a DuckDB connection with a view for each type, over one snapshot.

        Views are those of a graph in its storage. A query asks the server for the columns that it names, of
        all rows, each time that it runs.

        Raises:
            UnsupportedError: duckdb is not installed, which the extra `omnigraph[duckdb]` does.
        """
        from omnigraph.client.remote.pinned import RemoteDataset
        from omnigraph.graph.sql import duckdb_over

        refuse_given("duckdb", actor=actor)
        pin = self._pin(branch, snapshot)
        return duckdb_over(pin.catalog()[0].types, lambda type_: RemoteDataset(pin, type_))

    def to_networkx(
        self,
        *,
        branch: str | None = None,
        snapshot: RemoteSnapshotLike | None = None,
        types: Sequence[str] | None = None,
        actor: str | None = None,
    ) -> Any:  # noqa: ANN401 - networkx is optional, and so are its types
        """Return a `networkx.MultiDiGraph` of a snapshot; edge types bring the types of their ends.

        A node is `(type, id)`, an edge has the key `(type, id)`. Properties that have a value are attributes.

        Raises:
            UnsupportedError: networkx is not installed, which the extra `omnigraph[networkx]` does.
            BadRequest: there is no such type.
        """
        from omnigraph.client.remote.pinned import RemoteTableRows
        from omnigraph.graph.networks import networkx_of

        refuse_given("to_networkx", actor=actor)
        pin = self._pin(branch, snapshot)
        catalog, name = pin.catalog()

        def rows_of(type_: NodeType | EdgeType) -> list[pa.RecordBatch]:
            return RemoteTableRows(pin, type_.table_key).to_arrow().sort_by("id").to_batches()

        wanted = given_names("types", types)
        return networkx_of(catalog, wanted, rows_of, branch=name, commit_id=pin.commit_id)

    def entity_at(
        self, type_name: str, entity_id: str, target: RemoteTarget | None = None, *, actor: str | None = None
    ) -> dict[str, object]:
        """Return one node or edge as a branch or a commit shows it, else its newest state.

        Raises:
            BadRequest: the id is no text.
            EntityNotFound: there is no such entity.
            NotFoundError: the target is neither a branch nor a commit.
        """
        refuse_given("entity_at", actor=actor)
        id = required_text("entity_id", entity_id)
        shown_by = self._branch if target is None else target_name("target", target)
        if not is_text(id):
            raise EntityNotFound(_type_name(type_name), id)
        params = {"type": _type_name(type_name), "id": id, "target": shown_by}
        with self._http.stream("GET", "/entity", params=params, headers={"Accept": ARROW_STREAM}) as answer:
            return entity_of_stream(answer, id)

    def blob(
        self,
        entity: str,
        type: str,
        id: str,
        property: str,
        *,
        branch: str | None = None,
        snapshot: RemoteSnapshotLike | None = None,
        actor: str | None = None,
    ) -> "RemoteBlob":
        """Return the value of a Blob property of a `node` or an `edge`; its bytes are asked for on demand.

        The ETag is strong: it changes with the bytes. Storing the row anew changes it too.

        Raises:
            BadRequest: there is no such type or property, or it is not a Blob.
            EntityNotFound: there is no such node or edge.
            NotFoundError: its value is null.
            HistoricalVersionReclaimed: the table's version was cleaned up.
        """
        from omnigraph.client.remote.blob import remote_blob

        refuse_given("blob", actor=actor)
        call = BlobCall(entity, type, id, property)
        return remote_blob(self._served, replace(call, **self._read_target(branch, snapshot)))

    def snapshot(self, branch: str | None = None) -> RemoteSnapshot:
        """Return the newest view of a branch."""
        document = self._served.snapshot(self._on(branch))
        with understood():
            return read_back.snapshot_of(document)

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
        document = self._served.commits(self._on(branch), (), limit if where is None else None)
        with understood():
            found = [read_back.commit_of(item) for item in document["commits"]]
        return CommitList(islice(filter(where, found), limit))

    def commit(self, commit_id: str, *, branch: str | None = None) -> GraphCommit:
        """Return one commit: of a branch that is named or bound, else of whichever branch has it.

        Raises:
            CommitNotFound: no branch has it.
        """
        document = self._served.commit(commit_id, self._on(branch))
        with understood():
            return read_back.commit_of(document)

    def index_status(self, *, branch: str | None = None) -> "tuple[TableIndexes, ...]":
        """Return which declared indexes are built, and how much they cover."""
        document = self._served.indexes(self._on(branch))
        with understood():
            return read_back.indexes_of(document)

    def recoveries(self) -> "list[RecoveryRecord]":
        """Return the finished recoveries, newest first."""
        document = self._served.recoveries()
        with understood():
            return [read_back.recovery_of(item) for item in document["recoveries"]]

    # Which state is meant

    def _pin(self, branch: str | None, snapshot: RemoteSnapshotLike | None) -> "RemotePin":
        """Return a state that is asked for more than once: a branch now, or a past one."""
        from omnigraph.client.remote.pinned import RemotePin

        refuse_both(branch, snapshot)
        if snapshot is not None:
            return RemotePin(self._http, self._commit_id(branch, snapshot), None)
        name = trimmed_name(self._on(branch) or MAIN)
        return RemotePin(self._http, self.snapshot(name).commit_id, name)

    def _read_target(self, branch: str | None, snapshot: RemoteSnapshotLike | None) -> Document:
        refuse_both(branch, snapshot)
        if snapshot is None:
            return given(branch=self._on(branch))
        return {"snapshot": self._commit_id(branch, snapshot)}

    def _commit_id(self, branch: str | None, snapshot: RemoteSnapshotLike) -> str:
        """Return the commit that a past state is of; versions and times are those of the branch."""
        match snapshot:
            case str():
                return snapshot
            case RemoteSnapshot() | Snapshot():
                return snapshot.commit_id
            case datetime():
                return self._before(branch, snapshot)
            case bool():
                pass
            case int():
                return self._served.commit_at(self._on(branch), snapshot)
        expected = "a snapshot, the id of a commit, a manifest version or a time"
        raise BadRequest(f"expected {expected}, not {named(snapshot)}")

    def _before(self, branch: str | None, moment: datetime) -> str:
        """Return the newest commit that existed at a time; one without a zone is in UTC."""
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        micros = round((aware - datetime.fromtimestamp(0, UTC)).total_seconds() * 1_000_000)
        found = self.commits(branch=branch, limit=1, where=lambda commit: commit.created_at_micros <= micros)
        if not found:
            raise NotFoundError("the graph has no commit that old")
        return found[0].graph_commit_id


def _type_name(name: object) -> str:
    if not isinstance(name, str):
        raise BadRequest(f"the name of a type must be a text, not {named(name)}")
    return name
