"""Nodes and relationships with labels as nodes and edges with types: what models find in texts, kept typed.

K1  Everything is checked against the schema before the schema grows or a row is written.
K2  A property that is not mentioned keeps its value; two relationships of one type between two nodes
    are one edge.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from omnigraph.agents.arguments import check_finite
from omnigraph.agents.declarations import (
    EdgeWanted,
    NodeWanted,
    TypeWanted,
    declare,
    property_word,
    type_word,
)
from omnigraph.agents.following import edge_word, key_of
from omnigraph.agents.parameters import QueryParameters
from omnigraph.agents.place import GraphPlace, GraphRecord, edge_record, node_record
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.errors import BadRequest, UnsupportedError
from omnigraph.core.values import FLOATS, INTEGERS, Scalar, ValueType, shown

KEY = "key"  # of the node types that are made here

NodeId = tuple[str, str]  # a label as a type, and an id


@dataclass(slots=True)
class FoundGraph:
    """What was found in texts: properties by node, and by relationship of two nodes."""

    nodes: dict[NodeId, dict[str, object]] = field(default_factory=dict)
    relations: dict[tuple[NodeId, str, NodeId], dict[str, object]] = field(default_factory=dict)

    def node(self, label: object, identity: object, properties: Mapping[str, object]) -> NodeId:
        """Take a node; properties of one that was taken before are added to it."""
        if not isinstance(identity, str | int) or isinstance(identity, bool) or identity == "":
            raise BadRequest(f"the id of a node must be a text or a number, not {shown(identity)}")
        name = type_word(label, "label"), str(identity)
        self.nodes.setdefault(name, {}).update(_properties(properties))
        return name

    def relation(
        self, source: NodeId, label: object, target: NodeId, properties: Mapping[str, object]
    ) -> None:
        """Take a relationship; properties of one that was taken before are added to it."""
        name = source, type_word(label, "relationship type"), target
        self.relations.setdefault(name, {}).update(_properties(properties))


def put(place: GraphPlace, found: FoundGraph) -> None:
    """Write what was found: the types that are missing first, then all of it as one commit.

    Values that a node has already are read before, so of two programs that change one node at the same time
    the later one decides.

    Raises:
        BadRequest: a value does not fit its property, or properties have values of different types (K1).
    """
    if not found.nodes:
        return
    catalog = declare(place, lambda catalog: _wanted(catalog, found))
    records = [*_node_records(place, catalog, found), *_edge_records(place, catalog, found)]
    place.load(records, index=True)


def _wanted(catalog: Catalog, found: FoundGraph) -> list[TypeWanted]:
    """Return the types that hold what was found (K1)."""
    nodes: dict[str, list[Mapping[str, object]]] = {}
    for (type_name, _), properties in found.nodes.items():
        there = catalog.nodes.get(type_name)
        key = KEY if there is None else _checked_key(there)
        nodes.setdefault(type_name, []).append(_beside_key(properties, key))
    wanted: list[TypeWanted] = []
    for type_name, rows in nodes.items():
        there = catalog.nodes.get(type_name)
        made = {KEY: "String @key"} if there is None else {}
        wanted.append(NodeWanted(type_name, made | _types(type_name, rows, there)))
    edges: dict[tuple[str, str, str], list[Mapping[str, object]]] = {}
    names = _edge_names(catalog, found)
    for (source, label, target), properties in found.relations.items():
        ends = source[0], target[0]
        edges.setdefault((names[ends[0], label, ends[1]], *ends), []).append(properties)
    for (name, start, end), rows in edges.items():
        wanted.append(EdgeWanted(name, start, end, _types(name, rows, catalog.edges.get(name))))
    return wanted


def _edge_names(catalog: Catalog, found: FoundGraph) -> dict[tuple[str, str, str], str]:
    """Return the edge type of each label between two types: of that name, or with the types around it.

    Raises:
        BadRequest: both names are those of edges between other types.
    """
    names: dict[tuple[str, str, str], str] = {}
    pending: dict[str, tuple[str, str, str]] = {}
    for source, label, target in {(one[0], label, other[0]): None for one, label, other in found.relations}:
        for name in (label, f"{source}{label}{target}"):
            there = catalog.edge(name)
            known = pending.get(name.lower()) if there is None else (there.name, there.source, there.target)
            if known is None or known[1:] == (source, target):
                chosen = known[0] if known else name
                pending[chosen.lower()] = chosen, source, target
                names[source, label, target] = chosen
                break
        else:
            raise BadRequest(
                f"the edge types {label} and {source}{label}{target} are between other types already"
            )
    return names


def _checked_key(type_: NodeType) -> str:
    """Return the key of a type whose nodes can be given by an id.

    Raises:
        UnsupportedError: it has another kind of key, or bytes that writing a whole node anew would lose.
    """
    key = key_of(type_)
    if type_.properties[key].type.scalar is not Scalar.STRING:
        raise UnsupportedError(
            f"{type_.name}.{key} is no String: a graph document gives its nodes texts as ids"
        )
    if any(item.is_blob for item in type_.properties.values()):
        raise UnsupportedError(f"{type_.name} has a Blob, which a graph document would clear: use mutations")
    return key


def _properties(properties: Mapping[str, object]) -> dict[str, object]:
    """Return properties that have a value, under the names that they get in the schema.

    Raises:
        BadRequest: two of them would get the same name, and one value would be lost.
    """
    return _renamed(properties, property_word)


def _beside_key(properties: Mapping[str, object], key: str) -> dict[str, object]:
    """Return properties none of which has the name of the key: the id is its value.

    Raises:
        BadRequest: the name that one gets instead is taken.
    """
    return _renamed(properties, lambda name: f"{name}_" if name == key else name)


def _renamed(properties: Mapping[str, object], word_of: Callable[[str], str]) -> dict[str, object]:
    names: dict[str, str] = {}
    renamed: dict[str, object] = {}
    for name, value in properties.items():
        if value is None:
            continue
        word = word_of(name)
        if word in names:
            raise BadRequest(
                f"the properties {shown(names[word])} and {shown(name)} would both be called {word}: "
                "rename one of them"
            )
        names[word], renamed[word] = name, value
    return renamed


def _types(
    type_name: str, rows: Iterable[Mapping[str, object]], there: NodeType | EdgeType | None
) -> dict[str, str]:
    """Return the properties of rows with their types: those that are there, after a look at the values."""
    values: dict[str, list[object]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    types = {}
    for name, given in values.items():
        meant = _type_of(f"{type_name}.{name}", given)
        known = None if there is None else there.properties.get(name)
        if known is not None and not _fits(known.type, meant):
            raise BadRequest(f"{type_name}.{name} is {known.type}, and {shown(given[0])} is no such value")
        types[name] = f"{meant}?" if known is None else str(known.type)
    return types


def _type_of(where: str, values: Sequence[object]) -> ValueType:
    """Return the one type of values of Python.

    Raises:
        BadRequest: they are of several types, of one that no property has, or no numbers.
    """
    is_list = any(isinstance(value, list | tuple) for value in values)
    items = [item for value in values for item in (value if isinstance(value, list | tuple) else [value])]
    found = {_SCALARS.get(type(item)) for item in items} or {Scalar.STRING}
    if found == {Scalar.I64, Scalar.F64}:
        found = {Scalar.F64}
    (scalar, *others) = found
    if others or scalar is None or is_list != all(isinstance(value, list | tuple) for value in values):
        raise BadRequest(f"{where} has no one type: {', '.join(shown(value) for value in values[:3])}")
    check_finite(where, items)
    return ValueType(scalar, is_list=is_list)


_SCALARS = {
    str: Scalar.STRING,
    bool: Scalar.BOOL,
    int: Scalar.I64,
    float: Scalar.F64,
    date: Scalar.DATE,
    datetime: Scalar.DATETIME,
}


def _fits(known: ValueType, meant: ValueType) -> bool:
    """Say whether values of a type can be those of a property; a load looks at each value, too."""
    if known.is_list != meant.is_list:
        return False
    numbers = INTEGERS | FLOATS if meant.scalar is Scalar.I64 else FLOATS
    return known.scalar is meant.scalar or (
        meant.scalar in {Scalar.I64, Scalar.F64} and known.scalar in numbers
    )


# Records


def _node_records(place: GraphPlace, catalog: Catalog, found: FoundGraph) -> list[GraphRecord]:
    by_type: dict[str, list[str]] = {}
    for type_name, identity in found.nodes:
        by_type.setdefault(type_name, []).append(identity)
    there = {
        (type_name, str(data["id"])): data
        for type_name, keys in by_type.items()
        for data in nodes_of(place, catalog.nodes[type_name], keys)
    }
    records = []
    for name, properties in found.nodes.items():
        key = key_of(catalog.nodes[name[0]])
        kept = there.get(name, {})
        records.append(node_record(name[0], kept | _beside_key(properties, key) | {key: name[1]}))
    return records


def _edge_records(place: GraphPlace, catalog: Catalog, found: FoundGraph) -> list[GraphRecord]:
    names = _edge_names(catalog, found)
    by_edge: dict[str, list[tuple[str, str, dict[str, object]]]] = {}
    for (source, label, target), properties in found.relations.items():
        chosen = names[source[0], label, target[0]]
        by_edge.setdefault(chosen, []).append((source[1], target[1], properties))
    records = []
    for name, rows in by_edge.items():
        there = {
            (data["src"], data["dst"]): data for data in _edges_of(place, catalog, catalog.edges[name], rows)
        }
        for start, end, properties in rows:
            kept = {
                key: value for key, value in there.get((start, end), {}).items() if key not in {"src", "dst"}
            }
            data = {"id": edge_id(name, start, end)} | kept | properties
            records.append(edge_record(name, start, end, data))
    return records


def nodes_of(place: GraphPlace, type_: NodeType, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return the nodes of a type that have these keys, whole."""
    parameters = QueryParameters()
    within = f"{parameters.add(list(keys), '[String]')} contains $n.{key_of(type_)}"
    body = f"    match {{\n        $n: {type_.name}\n        {within}\n    }}\n    return {{ $n }}"
    return [dict(row["n"]) for row in place.read(parameters.query(body), parameters.values).rows]  # type: ignore[call-overload] # a whole entity


def _edges_of(
    place: GraphPlace, catalog: Catalog, edge: EdgeType, rows: Sequence[tuple[str, str, object]]
) -> list[dict[str, Any]]:
    parameters = QueryParameters()
    sources = parameters.add(sorted({row[0] for row in rows}), "[String]")
    targets = parameters.add(sorted({row[1] for row in rows}), "[String]")
    source, target = catalog.nodes[edge.source], catalog.nodes[edge.target]
    body = (
        f"    match {{\n        $a: {source.name}\n        {sources} contains $a.{key_of(source)}\n"
        f"        $b: {target.name}\n        {targets} contains $b.{key_of(target)}\n"
        f"        $a $e:{edge_word(edge)} $b\n    }}\n    return {{ $e }}"
    )
    return [dict(row["e"]) for row in place.read(parameters.query(body), parameters.values).rows]  # type: ignore[call-overload] # a whole entity


def edge_id(*parts: str) -> str:
    """Return the id of an edge that is the only one of its kind between its ends."""
    told = "".join(f"{len(part)}:{part}" for part in parts)
    return f"rel-{hashlib.sha256(told.encode()).hexdigest()[:32]}"
