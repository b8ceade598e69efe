"""Types as views of DuckDB: SQL over the tables of one snapshot, without copying them."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow.dataset as ds

from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.graph.extras import extra
from omnigraph.history.state import Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.scan import as_given, outside_schema
from omnigraph.storage.tables.arrow_dataset import PinnedDataset
from omnigraph.storage.tables.handle import SnapshotHandle

DatasetOf = Callable[[NodeType | EdgeType], ds.Dataset]


def duckdb_over(types: Sequence[NodeType | EdgeType], dataset_of: DatasetOf) -> Any:  # noqa: ANN401 - duckdb is optional
    """Return a connection with a view for each type, named as the type.

    Where two names are the same for SQL, which ignores case, the views are called by their table keys.

    Raises:
        UnsupportedError: duckdb is not installed.
    """
    duckdb = extra("duckdb")
    known = Counter(type_.name.lower() for type_ in types)
    connection = duckdb.connect(":memory:")
    connection.execute("SET TimeZone = 'UTC'")
    for type_ in types:
        name = type_.name if known[type_.name.lower()] == 1 else type_.table_key
        connection.register(name, dataset_of(type_))
    return connection


def pinned_datasets(graph: OpenGraph, snapshot: Snapshot) -> DatasetOf:
    """Return what gives the table of a type at a snapshot, read where it is stored."""
    return partial(_dataset, graph, snapshot)


def _dataset(graph: OpenGraph, snapshot: Snapshot, type_: NodeType | EdgeType) -> PinnedDataset:
    pinned = graph.parts.pinned(snapshot.entry(type_.table_key))

    def opened() -> SnapshotHandle:
        graph.require_open()
        return pinned.open(graph.parts.store)

    schema = outside_schema(type_)
    dataset = PinnedDataset(opened, schema, lambda batch: as_given(batch, type_, schema))
    graph.parts.readers.keep(dataset, snapshot)  # cleanup keeps it readable while a connection has it
    return dataset
