"""From nodes along edges to others: hop by hop, every node once, all of one commit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from omnigraph.agents.parameters import QueryParameters, row_limit
from omnigraph.agents.place import GraphPlace
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.errors import BadRequest
from omnigraph.graph.arguments import given_names

NodeName = tuple[str, str]  # of a node: its type and its id


@dataclass(frozen=True, slots=True)
class ReachedNode:
    """A node, how many hops away from the nearest start it is, and the edge type of the last hop."""

    type: NodeType
    data: dict[str, Any]
    hops: int
    via: str

    @property
    def name(self) -> NodeName:
        """Its type and id."""
        return self.type.name, str(self.data["id"])


@dataclass(frozen=True, slots=True)
class _Walk:
    """Where edges are followed: a place, its types, and the commit."""

    place: GraphPlace
    catalog: Catalog
    at: str


def follow(
    place: GraphPlace,
    starts: Mapping[str, Sequence[object]],
    edges: Sequence[str],
    *,
    hops: int,
    count: int,
    at: str,
) -> list[ReachedNode]:
    """Return nodes that edges lead to from the keys of `starts`, by type; the nearest first, then by id.

    Edges are followed both ways. The starts are not among the nodes.

    Raises:
        BadRequest: there is no such edge type, or a type on the way has no key of one property.
    """
    row_limit("hops", hops)
    row_limit("reached_max", count)
    catalog = place.catalog
    walk = _Walk(place, catalog, at)
    chosen = [checked_edge(catalog, name) for name in given_names("follow", edges) or ()]
    frontier: dict[str, list[object]] = {name: list(keys) for name, keys in starts.items() if keys}
    seen: set[NodeName] = {(name, str(key)) for name, keys in frontier.items() for key in keys}
    found: list[ReachedNode] = []
    for hop in range(1, hops + 1):
        reached = [
            node
            for edge in chosen
            for source, target in _ways(edge)
            if source in frontier
            for node in _step(walk, edge, (source, target), frontier[source], hop)
        ]
        fresh = {node.name: node for node in reversed(reached) if node.name not in seen}
        seen |= fresh.keys()
        found += [fresh[name] for name in sorted(fresh)]
        if len(found) >= count or not fresh or hop == hops:
            break
        frontier = {}
        for node in fresh.values():
            frontier.setdefault(node.type.name, []).append(node.data[key_of(node.type)])
    return found[:count]


def checked_edge(catalog: Catalog, name: object) -> EdgeType:
    """Return the edge type of a name (A2).

    Raises:
        BadRequest: there is none.
    """
    found = catalog.edge(name) if isinstance(name, str) else None
    if found is None:
        raise BadRequest(f"there is no edge type {name!r}; there are {', '.join(catalog.edges) or 'none'}")
    return found


def key_of(type_: NodeType) -> str:
    """Return the property that is the key of a type.

    Raises:
        BadRequest: it has no key, or one of several properties.
    """
    if type_.key is None or len(type_.key) != 1:
        raise BadRequest(f"{type_.name} needs a key of one property: a query finds its nodes by it")
    return type_.key[0]


def edge_word(edge: EdgeType) -> str:
    """Return an edge type as a traversal writes it."""
    return edge.name[0].lower() + edge.name[1:]


def lines_of(data: Mapping[str, Any], type_: NodeType) -> str:
    """Return a node as lines for a reader: its type and id, then its properties that have a value."""
    vectors = {name for name, item in type_.properties.items() if item.type.is_vector}
    shown = [
        f"{name}: {_shown(value)}"
        for name, value in data.items()
        if value is not None and name not in vectors
    ]
    return "\n".join([type_.name, *shown])


def plain_properties(data: Mapping[str, Any], type_: NodeType) -> dict[str, Any]:
    """Return the properties of a node that have a value, without vectors."""
    vectors = {name for name, item in type_.properties.items() if item.type.is_vector}
    return {name: value for name, value in data.items() if value is not None and name not in vectors}


def _ways(edge: EdgeType) -> Iterator[tuple[str, str]]:
    """Yield from which type to which an edge can be followed; between nodes of one type it is undirected."""
    yield edge.source, edge.target
    if edge.source != edge.target:
        yield edge.target, edge.source


def _step(
    walk: _Walk, edge: EdgeType, way: tuple[str, str], keys: Sequence[object], hop: int
) -> Iterator[ReachedNode]:
    source, target = (walk.catalog.nodes[name] for name in way)
    key = key_of(source)
    key_of(target)
    parameters = QueryParameters()
    within = parameters.add(list(keys), f"[{source.properties[key].type.scalar}]")
    word = edge_word(edge)
    edge_text = f"<{word}>" if source is target else word
    body = (
        f"    match {{\n        $a: {source.name}\n        {within} contains $a.{key}\n"
        f"        $b: {target.name}\n        $a {edge_text} $b\n    }}\n"
        f"    return {{ $b as reached }}\n    order {{ reached }}"
    )
    for row in walk.place.read(parameters.query(body), parameters.values, at=walk.at):
        data = row["reached"]
        assert isinstance(data, dict)
        yield ReachedNode(target, data, hop, edge.name)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return value.isoformat() if isinstance(value, date | datetime) else str(value)
