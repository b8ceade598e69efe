"""The catalog: node types, edge types and their properties, as higher layers read them; and ids of entities.

E1  Equal keys have equal ids, no matter which code derives them or how the key columns are now named.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from omnigraph.core.errors import ExecutionError
from omnigraph.core.values import FLOATS, Scalar, ValueType
from omnigraph.language.schema_ast import DefaultValue, Embed, Note


@dataclass(frozen=True, slots=True)
class Property:
    """One column of a type; `id` outlives its name.

    `default` is what a row gets that does not mention the property, as written in the schema. `fill` is what
    rows have that are older than the property. `external` are the bases that the values of a Blob lie below,
    which are references then; a Blob without any holds bytes.
    """

    name: str
    type: ValueType
    id: int
    notes: tuple[Note, ...] = ()
    embed: Embed | None = None
    default: DefaultValue | None = None
    fill: DefaultValue | None = None
    external: tuple[str, ...] = ()

    @property
    def is_external(self) -> bool:
        """Whether the values are references to bytes elsewhere."""
        return bool(self.external)

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

    def _repr_html_(self) -> str:
        from omnigraph.catalog.diagram import schema_diagram  # late: for notebooks alone

        return schema_diagram(self)

    def type_of(self, table_key: str) -> NodeType | EdgeType:
        """Return the type that a table key names."""
        kind, name = table_key.split(":", 1)
        return self.nodes[name] if kind == "node" else self.edges[name]

    def edge(self, word: str) -> EdgeType | None:
        """Return the edge that a traversal names: by exact name, else ignoring case."""
        return self.edges.get(word) or self.edges_by_lower_name.get(word.lower())


KeyValue = str | int | float | bool


def derive_id(node: NodeType, values: Mapping[str, KeyValue | None]) -> str:
    """Return the id of a keyed node from its stored values, in the order of the key (E1).

    Raises:
        ExecutionError: a key value is null or not finite.
    """
    assert node.key is not None, f"{node.name} has no key"
    texts = [_canonical_text(node, column, values.get(column)) for column in node.key]
    return texts[0] if len(texts) == 1 else _composite(texts)


def lookup_column(type_: NodeType | EdgeType, column: str) -> str:
    """Return the column to compare instead: a key that is one text is the id, which has a B-tree."""
    if isinstance(type_, NodeType) and type_.key == (column,):
        property_ = type_.properties[column].type
        return "id" if property_.scalar is Scalar.STRING else column
    return column


def _composite(texts: Sequence[str]) -> str:
    return json.dumps(list(texts), separators=(",", ":"), ensure_ascii=False)


def _canonical_text(node: NodeType, column: str, value: KeyValue | None) -> str:
    if value is None:
        raise ExecutionError(f"the key of {node.name} cannot contain null: {column}")
    if isinstance(value, bool):
        return "true" if value else "false"
    scalar = node.properties[column].type.scalar
    if scalar in FLOATS:
        return _float_text(float(value), scalar, f"{node.name}.{column}")
    return str(value)


def _float_text(value: float, scalar: Scalar, where: str) -> str:
    if not math.isfinite(value):
        raise ExecutionError(f"the key {where} must be finite, not {value}")
    if value == 0:
        return "0"
    if scalar is Scalar.F32:
        return _single_text(value)
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _single_text(value: float) -> str:
    """Return the shortest decimal that reads back as the same single-precision float."""
    import numpy as np  # late: few keys are floats, and fewer still single-precision

    return np.format_float_positional(np.float32(value), unique=True, trim="-")
