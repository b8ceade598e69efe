"""`scan`: the rows of one type at one snapshot, in batches, as they leave the engine.

S1  Memory does not grow with the table: a batch is read when it is asked for.
S2  All batches are of one snapshot, which cleanup keeps readable while anybody holds the rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.catalog.arrow_schema import arrow_schema, shown_rows, shown_type
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.errors import BadRequest
from omnigraph.core.nearest import hinting
from omnigraph.history.state import Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.export import AHEAD_BYTES
from omnigraph.operations.pin import SnapshotLike, pin_table, read_view
from omnigraph.operations.reclaimed import reading_of


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ScannedRows:
    """The rows of a type at a snapshot, in the order of storage: iterate over batches."""

    commit_id: str
    row_count: int
    schema: pa.Schema = field(repr=False, compare=False)
    _type: NodeType | EdgeType = field(repr=False, compare=False)
    _graph: OpenGraph = field(repr=False, compare=False)
    _snapshot: Snapshot = field(repr=False, compare=False)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield batches, with times as timestamps in UTC."""
        self._graph.require_open()
        parts = self._graph.parts
        with reading_of(self._graph, self._snapshot):
            handle = parts.open(self._snapshot.entry(self._type.table_key))
            found = parts.store.scan_batches(handle, columns=self.schema.names, ahead_bytes=AHEAD_BYTES)
            for batch in found:
                yield as_given(batch, self._type, self.schema)

    def to_arrow(self) -> pa.Table:
        """Return all rows as one table."""
        return pa.Table.from_batches(self, self.schema)


def scan(
    graph: OpenGraph,
    type_name: str,
    *,
    columns: Sequence[str] | None = None,
    branch: str | None = None,
    snapshot: SnapshotLike | None = None,
    actor: str | None = None,
) -> ScannedRows:
    """Say which rows to read: of a branch now, or of a past snapshot; some columns of them, or all.

    Raises:
        BadRequest: there is no such type, or it has no such column.
        NotFoundError: there is no such branch or snapshot.
        HistoricalVersionReclaimed: the table's version was cleaned up.
    """
    seen = read_view(graph, actor, branch=branch, snapshot=snapshot)
    with reading_of(graph, seen):
        pinned = pin_table(graph, seen, type_name)
        handle = pinned.open(graph.parts.store)
    type_ = graph.catalog_of(seen).type_of(pinned.table_key)
    schema = _chosen(outside_schema(type_), type_, columns)
    made = ScannedRows(seen.head.graph_commit_id, handle.row_count, schema, type_, graph, seen)
    graph.parts.readers.keep(made, seen)  # S2
    return made


def outside_schema(type_: NodeType | EdgeType) -> pa.Schema:
    """Return the columns of a type as they leave the engine."""
    return pa.schema(
        [pa.field(item.name, shown_type(type_, item), item.nullable) for item in arrow_schema(type_)]
    )


def as_given(batch: pa.RecordBatch, type_: NodeType | EdgeType, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of storage as one of a schema for the outside; it may lack some of the columns."""
    moved = shown_rows(batch, type_)
    wanted = pa.schema([schema.field(name) for name in moved.schema.names])
    return pa.RecordBatch.from_arrays(moved.columns, schema=wanted)


def _chosen(schema: pa.Schema, type_: NodeType | EdgeType, columns: Sequence[str] | None) -> pa.Schema:
    if columns is None:
        return schema
    for name in columns:
        if name not in schema.names:
            raise BadRequest(f"{type_.name} has no property '{name}'{hinting(name, schema.names)}")
    return pa.schema([schema.field(name) for name in schema.names if name in columns])
