"""The rows of a snapshot as a graph of networkx; where they are read is for the caller to say."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.graph.encode import python_rows
from omnigraph.graph.extras import extra
from omnigraph.operations.export import chosen_types

RowsOf = Callable[[NodeType | EdgeType], Iterable[pa.RecordBatch]]


def networkx_of(
    catalog: Catalog, types: Sequence[str] | None, rows_of: RowsOf, *, branch: str, commit_id: str
) -> Any:  # noqa: ANN401 - networkx is optional, and so are its types
    """Return a `MultiDiGraph` of the entities of a snapshot; the rows of each type come by id.

    Raises:
        UnsupportedError: networkx is not installed.
        BadRequest: there is no such type.
    """
    networkx = extra("networkx")
    made = networkx.MultiDiGraph(branch=branch, commit_id=commit_id)
    for type_ in _with_ends(catalog, chosen_types(catalog, types)):
        for batch in rows_of(type_):
            if isinstance(type_, EdgeType):
                made.add_edges_from(_edges(type_, batch))
            else:
                made.add_nodes_from(_nodes(type_, batch))
    return made


def _with_ends(catalog: Catalog, types: Sequence[NodeType | EdgeType]) -> tuple[NodeType | EdgeType, ...]:
    """Return types, and those of the nodes at the ends of edges; nodes first."""
    ends = {end for type_ in types if isinstance(type_, EdgeType) for end in (type_.source, type_.target)}
    names = {type_.table_key for type_ in types} | {f"node:{end}" for end in ends}
    return tuple(type_ for type_ in catalog.types if type_.table_key in names)


def _nodes(type_: NodeType, batch: pa.RecordBatch) -> Iterator[tuple[object, dict[str, object]]]:
    for row in _rows(type_, batch):
        yield (type_.name, row.pop("id")), row


def _edges(
    type_: EdgeType, batch: pa.RecordBatch
) -> Iterator[tuple[object, object, object, dict[str, object]]]:
    for row in _rows(type_, batch):
        source, target = (type_.source, row.pop("src")), (type_.target, row.pop("dst"))
        yield source, target, (type_.name, row.pop("id")), row


def _rows(type_: NodeType | EdgeType, batch: pa.RecordBatch) -> Iterator[dict[str, object]]:
    """Yield the members of rows that have a value, or would get another one if they were left out."""
    names = batch.schema.names
    kept = {item.name for item in type_.properties.values() if item.default is not None}
    for row in python_rows(pa.Table.from_batches([batch])):
        yield {
            name: value for name, value in zip(names, row, strict=True) if value is not None or name in kept
        }
