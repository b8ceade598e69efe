"""Graphs in Spark: `spark.read.format("omnigraph")`, `df.write.format("omnigraph")`, and loading frames.

Importing this module registers the data source with the active session; `register` does it for a session that
is started later.

A `policy` (a path or a YAML text; `load_dataframe` takes a `Policy` as well) decides for the `actor`, as in
`omnigraph.open`: about a read when its frame is made, about a write before its first task.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from omnigraph.bulk.connect.java import NO_PYSPARK
from omnigraph.bulk.connect.session import active_session
from omnigraph.bulk.load.spool import FOLDER
from omnigraph.bulk.sources.names import find_type
from omnigraph.bulk.sources.sources import Format, SourceInput
from omnigraph.core.errors import BadRequest, ExecutionError, SparkUnavailable
from omnigraph.core.ids import new_ulid
from omnigraph.core.temporal import parse_datetime
from omnigraph.graph.guard import given_gate, require
from omnigraph.history.branches import given_name
from omnigraph.operations.load.load import load
from omnigraph.operations.load.model import FrameInput, LoadMode, LoadOptions, LoadResult
from omnigraph.operations.open import close, open_graph
from omnigraph.operations.pin import pin_snapshot, pin_table
from omnigraph.policy.request import Action
from omnigraph.storage.control.uri import GraphRoot

try:
    from omnigraph.bulk.datasource.read import ReadOptions, SourceTable, TableSource
    from omnigraph.bulk.datasource.sink import TableWriter, WriteOptions, WrittenPart
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "pyspark":
        raise
    raise SparkUnavailable(NO_PYSPARK) from error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from omnigraph.graph.guard import GivenPolicy

__all__ = ["GraphSource", "GraphWriter", "load_dataframe", "register"]


class GraphSource(TableSource):
    """The data source of a graph that is reached through its storage."""

    def pin(self, options: ReadOptions) -> SourceTable:
        """Open the graph for reading and choose the version of one table.

        Raises:
            PolicyDenied: the actor may not read it.
            GraphNotFound: there is no graph at this place.
            BadRequest: there is no such type, or the policy cannot be read.
            NotFoundError: there is no such branch or commit, or no commit at that time.
        """
        graph = open_graph(options.uri, is_writable=False, gate=given_gate(options.policy))
        try:
            snapshot = pin_snapshot(
                graph,
                branch=options.branch,
                commit_id=options.commit,
                before_micros=_micros(options.timestamp),
                actor=options.actor,
            )
            pinned = pin_table(graph, snapshot, options.table)
            type_ = graph.catalog_of(snapshot).type_of(pinned.table_key)
            references = (item.name for item in type_.properties.values() if item.is_external)
            return SourceTable(pinned, frozenset(references))
        finally:
            close(graph)

    def sink(self, options: WriteOptions, schema: "StructType") -> "GraphWriter":
        """Return the writer of this graph; its files are under the root, which every executor sees.

        Raises:
            PolicyDenied: the actor may not change the branch.
        """
        require(options.policy, options.actor, Action.CHANGE, given_name(options.branch))
        folder = GraphRoot.parse(options.uri).child(FOLDER.format(new_ulid()))
        return GraphWriter(options, schema, folder)


class GraphWriter(TableWriter):
    """Writes a frame into a graph that is reached through its storage."""

    def load(self, parts: Sequence[WrittenPart]) -> None:
        """Load the files of all tasks as one commit.

        Raises:
            PolicyDenied: the actor may not change the branch.
            ValidationError: rows break the schema's rules; nothing was written.
            ConflictError: another writer was first; nothing was written.
        """
        options = self.options
        require(options.policy, options.actor, Action.CHANGE, given_name(options.branch))
        graph = open_graph(options.uri, gate=given_gate(options.policy))
        try:
            table_key = find_type(
                options.table.rpartition(":")[2], graph.catalog_on(options.branch), "the option 'type'"
            ).table_key
            inputs = [
                SourceInput(part.path, Format.ARROW, f"partition {part.number}", table_key=table_key)
                for part in parts
            ]
            load(
                graph,
                inputs,
                LoadOptions(cast("LoadMode", options.mode), engine="local"),
                branch=options.branch,
                actor=options.actor,
                message=options.message,
                index=options.index,
            )
        finally:
            close(graph)


def register(spark: "SparkSession") -> None:
    """Make `format("omnigraph")` known to a session."""
    spark.dataSource.register(GraphSource)


def load_dataframe(
    spark: "SparkSession",
    uri: str,
    frames: "Mapping[str, DataFrame]",
    *,
    mode: LoadMode,
    branch: str | None = None,
    actor: str | None = None,
    message: str | None = None,
    index: bool = True,
    policy: "GivenPolicy | None" = None,
) -> LoadResult:
    """Load frames by type, nodes and edges together, as one commit; edges have the columns `from` and `to`.

    Raises:
        PolicyDenied: the actor may not change the branch.
        BadRequest: there is no such type, or the policy cannot be read.
        ValidationError: rows break the schema's rules; nothing was written.
        ConflictError: another writer was first; nothing was written.
    """
    assert active_session() is spark, "frames are loaded by the session that is active"
    require(policy, actor, Action.CHANGE, given_name(branch))
    graph = open_graph(uri, gate=given_gate(policy))
    try:
        inputs = [
            FrameInput(find_type(name, graph.catalog_on(branch), "the frames").table_key, frame, name)
            for name, frame in frames.items()
        ]
        options = LoadOptions(mode, engine="spark")
        return load(graph, inputs, options, branch=branch, actor=actor, message=message, index=index)
    finally:
        close(graph)


def _micros(timestamp: str | None) -> int | None:
    """Return a point in time in microseconds since the epoch: the last microsecond of its millisecond."""
    if timestamp is None:
        return None
    try:
        return parse_datetime(timestamp) * 1_000 + 999
    except ExecutionError as error:
        raise BadRequest(f"the option 'timestamp': {error.message}") from error


_session = active_session()
if _session is not None:
    register(_session)
