"""`describe`: a type with what its rows hold, at one snapshot; it reads every row once and writes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.catalog.annotations import property_annotations, type_annotations
from omnigraph.catalog.model import Catalog, EdgeType, NodeType, Property
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import ValueType
from omnigraph.history.state import Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.describe.columns import ColumnSummary, Summary
from omnigraph.operations.describe.degrees import Degrees, degrees
from omnigraph.operations.pin import SnapshotLike, pin_table, read_view
from omnigraph.storage.tables.filter import IsNull
from omnigraph.storage.tables.handle import SnapshotHandle


@dataclass(frozen=True, slots=True)
class PropertyDescription:
    """A property: its type and annotations as a schema has them, and what its values are."""

    name: str
    type: ValueType
    annotations: tuple[str, ...]
    values: ColumnSummary


@dataclass(frozen=True, slots=True)
class EndDescription:
    """One end of an edge type: the type of its nodes, and how many of the edges each of them has."""

    type_name: str
    degrees: Degrees


@dataclass(frozen=True, slots=True)
class TouchingEdge:
    """An edge type that leaves a node type, or arrives at it."""

    name: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class TypeDescription:
    """A type at one snapshot.

    An edge type has `source` and `target`; a node type has `interfaces`, and the edge types that touch it.
    """

    name: str
    table_key: str
    branch: str | None
    commit_id: str
    rows: int
    annotations: tuple[str, ...]
    properties: tuple[PropertyDescription, ...]
    interfaces: tuple[str, ...] = ()
    edges: tuple[TouchingEdge, ...] = ()
    source: EndDescription | None = None
    target: EndDescription | None = None


def describe(
    graph: OpenGraph,
    type_name: str,
    *,
    branch: str | None = None,
    snapshot: SnapshotLike | None = None,
    actor: str | None = None,
) -> TypeDescription:
    """Describe a type of a branch now, or of a past snapshot.

    Raises:
        BadRequest: there is no such type, or it is an interface.
        NotFoundError: there is no such branch or snapshot.
        HistoricalVersionReclaimed: the table's version was cleaned up.
    """
    seen = read_view(graph, actor, branch=branch, snapshot=snapshot)
    catalog = graph.catalog_of(seen)
    _refuse_interface(catalog, type_name)
    pinned = pin_table(graph, seen, type_name)
    handle, key = pinned.open(graph.parts.store), pinned.table_key
    type_ = catalog.type_of(key)
    properties = tuple(_properties(graph, handle, type_))
    head = (type_.name, key, seen.branch, seen.head.graph_commit_id, handle.row_count)
    if isinstance(type_, NodeType):
        return TypeDescription(
            *head, type_annotations(type_), properties, type_.interfaces, _touching(catalog, type_.name)
        )
    source, target = _ends(graph, handle, seen, type_)
    return TypeDescription(*head, type_annotations(type_), properties, source=source, target=target)


def _refuse_interface(catalog: Catalog, name: object) -> None:
    if isinstance(name, str) and name in catalog.interfaces:
        nodes = sorted(node.name for node in catalog.nodes.values() if name in node.interfaces)
        known = f"describe one of its node types: {', '.join(nodes)}" if nodes else "nothing implements it"
        raise BadRequest(f"{name} is an interface and has no rows: {known}")


def _properties(
    graph: OpenGraph, handle: SnapshotHandle, type_: NodeType | EdgeType
) -> Iterator[PropertyDescription]:
    """Yield the properties; one scan reads all that have values to look at."""
    store = graph.parts.store
    sums = {
        item.name: Summary(handle.schema.field(item.name).type, is_unique=_is_unique(type_, item))
        for item in type_.properties.values()
        if not (item.is_blob or item.type.is_vector)
    }
    if sums:
        for batch in store.scan_batches(handle, columns=list(sums)):
            for column, values in sums.items():
                values.add(batch.column(column))
    for item in type_.properties.values():
        if item.name in sums:
            found = sums[item.name].result()
        else:
            nulls = store.count_rows(handle, IsNull(item.name)) if item.type.nullable else 0
            found = ColumnSummary(nulls, None, False, None, None, ())
        yield PropertyDescription(item.name, item.type, property_annotations(type_, item), found)


def _is_unique(type_: NodeType | EdgeType, item: Property) -> bool:
    alone = (item.name,)
    return alone in type_.unique or (isinstance(type_, NodeType) and type_.key == alone)


def _touching(catalog: Catalog, name: str) -> tuple[TouchingEdge, ...]:
    return tuple(
        TouchingEdge(edge.name, edge.source, edge.target)
        for edge in catalog.edges.values()
        if name in {edge.source, edge.target}
    )


def _ends(
    graph: OpenGraph, handle: SnapshotHandle, seen: Snapshot, edge: EdgeType
) -> tuple[EndDescription, EndDescription]:
    ends = graph.parts.store.scan(handle, columns=["src", "dst"])

    def end(type_name: str, column: str) -> EndDescription:
        nodes = seen.entries[f"node:{type_name}"].row_count
        return EndDescription(type_name, degrees(ends, column, nodes))

    return end(edge.source, "src"), end(edge.target, "dst")
