"""The catalog: node types, edge types and their properties, as all higher layers read them."""

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.core.values import Scalar, ValueType
from omnigraph.language.annotations import Embed, Note


@dataclass(frozen=True, slots=True)
class Property:
    """One column of a type; `id` outlives its name."""

    name: str
    type: ValueType
    id: int
    notes: tuple[Note, ...] = ()
    embed: Embed | None = None

    @property
    def is_blob(self) -> bool:
        """Whether the values are bytes that a query never reads."""
        return self.type.scalar is Scalar.BLOB


@dataclass(frozen=True, slots=True)
class Bounds:
    """Inclusive bounds of a number; `None` is open."""

    low: int | float | None
    high: int | float | None


@dataclass(frozen=True, slots=True)
class InterfaceType:
    """Properties that nodes share; has no table."""

    name: str
    id: int
    properties: Mapping[str, Property]


@dataclass(frozen=True, slots=True)
class NodeType:
    """A node type.

    `properties` are in name order, like the columns. `key` is in the order of property ids, like the members
    of a composite id: a rename changes neither. `written_key` has the same members in the order written in
    the schema's source, which is how people list them. `indexes` include the key.
    """

    name: str
    id: int
    incarnation: int
    interfaces: tuple[str, ...]
    properties: Mapping[str, Property]
    key: tuple[str, ...] | None
    written_key: tuple[str, ...] | None
    unique: tuple[tuple[str, ...], ...]
    indexes: tuple[tuple[str, ...], ...]
    ranges: Mapping[str, tuple[Bounds, ...]]
    checks: Mapping[str, tuple[str, ...]]
    notes: tuple[Note, ...] = ()

    @property
    def table_key(self) -> str:
        """The public name of the type's table."""
        return f"node:{self.name}"


@dataclass(frozen=True, slots=True)
class EdgeType:
    """An edge type from nodes of type `source` to nodes of type `target`.

    Each source node has `low` to `high` edges of this type; without `high` the number is unbounded.
    """

    name: str
    id: int
    incarnation: int
    source: str
    target: str
    low: int
    high: int | None
    properties: Mapping[str, Property]
    unique: tuple[tuple[str, ...], ...]
    indexes: tuple[tuple[str, ...], ...]
    notes: tuple[Note, ...] = ()

    @property
    def table_key(self) -> str:
        """The public name of the type's table."""
        return f"edge:{self.name}"


@dataclass(frozen=True, slots=True)
class Catalog:
    """Every type of one accepted schema, each namespace in name order."""

    interfaces: Mapping[str, InterfaceType]
    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]
    edges_by_lower_name: Mapping[str, EdgeType]
    shape_hash: str

    @property
    def types(self) -> "tuple[NodeType | EdgeType, ...]":
        """Every type that has a table: nodes, then edges, each by name."""
        return (*self.nodes.values(), *self.edges.values())

    def type_of(self, table_key: str) -> NodeType | EdgeType:
        """Return the type that a table key names."""
        kind, name = table_key.split(":", 1)
        return self.nodes[name] if kind == "node" else self.edges[name]

    def edge(self, word: str) -> EdgeType | None:
        """Return the edge that a traversal names: by exact name, else ignoring case."""
        return self.edges.get(word) or self.edges_by_lower_name.get(word.lower())
