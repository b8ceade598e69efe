"""Which index a column gets: one function for the builder, the coverage report and the docs."""

from dataclasses import dataclass
from enum import StrEnum

from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.values import Scalar, ValueType


class IndexKind(StrEnum):
    """How a column is looked up."""

    BTREE = "btree"
    FULLTEXT = "fulltext"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """An index that a table should have."""

    column: str
    kind: IndexKind


def index_specs(type_: NodeType | EdgeType) -> tuple[IndexSpec, ...]:
    """Return the indexes of a table: physical columns first, then properties by name.

    A column may have two: a unique text with `@index` is looked up by value and by word.
    """
    columns = ("id",) if isinstance(type_, NodeType) else ("id", "src", "dst")
    specs = dict.fromkeys(IndexSpec(column, IndexKind.BTREE) for column in columns)
    unique = {column for columns in type_.unique for column in columns}
    indexed = {columns[0] for columns in type_.indexes if len(columns) == 1}
    for name, item in type_.properties.items():
        if name in unique:
            specs[IndexSpec(name, IndexKind.BTREE)] = None
        if name in indexed and isinstance(type_, NodeType):
            specs[IndexSpec(name, _kind(item.type))] = None
    return tuple(specs)


def _kind(type_: ValueType) -> IndexKind:
    if type_.is_vector:
        return IndexKind.VECTOR
    if type_.scalar is Scalar.STRING and type_.enum_values is None:
        return IndexKind.FULLTEXT
    return IndexKind.BTREE
