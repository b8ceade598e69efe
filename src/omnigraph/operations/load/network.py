"""A graph of networkx as the records of a load.

K1  A node `(type, id)` says what it is, as does the key `(type, id)` of an edge: that is what `to_networkx`
    makes. Other nodes and edges are of the type that the call names, with the node itself as the id.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import INTEGERS, named, shown
from omnigraph.operations.load.given_records import plain_record, record_lines
from omnigraph.operations.load.model import RecordInput
from omnigraph.operations.load.plain_values import INTEGER_BITS_MAX

INPUT_NAME = "network"


@dataclass(frozen=True, slots=True)
class NetworkTypes:
    """The types of nodes and edges that do not name their own."""

    node: str | None = None
    edge: str | None = None


def network_input(catalog: Catalog, network: object, types: NetworkTypes) -> RecordInput:
    """Return a graph of networkx as an input; of an undirected one, each edge goes as it is listed.

    Raises:
        BadRequest: this is no such graph, a node or edge has no known type, or a value cannot be stored.
    """
    if not all(hasattr(network, name) for name in ("nodes", "edges", "is_multigraph")):
        raise BadRequest(f"expected a graph of networkx, not {named(network)}")
    return RecordInput(record_lines(_records(catalog, network, types)), INPUT_NAME)


def _records(catalog: Catalog, network: Any, types: NetworkTypes) -> Iterator[dict[str, object]]:  # noqa: ANN401
    place = 0
    for node, attributes in network.nodes(data=True):
        place += 1
        name, id_ = _typed(node, types.node, f"node {shown(node)}", "node_type")
        type_ = catalog.nodes.get(name)
        if type_ is None:
            raise BadRequest(f"node {shown(node)}: unknown node type '{name}'")
        yield plain_record(type_, _properties(type_, id_, attributes), None, f"{INPUT_NAME}:{place}")
    is_multi = network.is_multigraph()
    for source, target, *key, attributes in network.edges(data=True, **({"keys": True} if is_multi else {})):
        place += 1
        where = f"edge {shown(source)} → {shown(target)}"
        edge_type, properties = _edge(catalog, key[0] if key else None, types.edge, attributes, where)
        ends = tuple(_typed(end, types.node, where, "node_type")[1] for end in (source, target))
        yield plain_record(edge_type, properties, (ends[0], ends[1]), f"{INPUT_NAME}:{place}")


def _edge(
    catalog: Catalog, key: object, edge_type: str | None, attributes: dict[str, object], where: str
) -> tuple[EdgeType, dict[str, object]]:
    own = _own_type(key)
    name = own[0] if own is not None else edge_type
    if name is None:
        raise BadRequest(f"{where}: its key is no (type, id), so say edge_type='…'")
    found = catalog.edge(name)
    if found is None:
        raise BadRequest(f"{where}: unknown edge type '{name}'")
    return found, attributes if own is None else {"id": own[1], **attributes}


def _typed(node: object, type_name: str | None, where: str, option: str) -> tuple[str, object]:
    own = _own_type(node)
    if own is not None:
        return own
    if type_name is None:
        raise BadRequest(f"{where}: a node is a (type, id), or say {option}='…'")
    if isinstance(node, bool) or not isinstance(node, str | int):
        raise BadRequest(f"{where}: the id of a node is a text or a whole number, not {named(node)}")
    if isinstance(node, int) and node.bit_length() > INTEGER_BITS_MAX:
        raise BadRequest(
            f"{where}: the id is an integer of more than {INTEGER_BITS_MAX} bits: give it as a text"
        )
    return type_name, node


def _own_type(value: object) -> tuple[str, str] | None:
    match value:
        case (str(name), str(id_)):
            return name, id_
        case _:
            return None


def _properties(type_: NodeType, id_: object, attributes: dict[str, object]) -> dict[str, object]:
    """Return the properties of a node with its id, which is also its key where that is one property."""
    properties = {"id": str(id_), **attributes}
    if type_.key is not None and len(type_.key) == 1 and type_.key[0] not in properties:
        (key,) = type_.key
        is_number = type_.properties[key].type.scalar in INTEGERS and str(id_).lstrip("-").isdecimal()
        properties[key] = int(str(id_)) if is_number else str(id_)
    return properties
