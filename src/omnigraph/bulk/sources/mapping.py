"""The columns of a user's table as the properties of a type, by a `ColumnMap`.

What comes out has the columns that `validate.tables` expects: `id`, `from`, `to` and properties.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.bulk.sources.model import ColumnMap, EndColumns
from omnigraph.catalog.model import Catalog, EdgeType, NodeType, Property
from omnigraph.core.arrays import Mask, Positions
from omnigraph.core.errors import BadRequest
from omnigraph.core.nearest import hinting
from omnigraph.validate.coerce import coerce_column
from omnigraph.validate.columns import Column
from omnigraph.validate.ids import derive_ids
from omnigraph.validate.tables import Coerce

RefuseRow = Callable[[int, str], None]


@dataclass(frozen=True, slots=True)
class MappedTable:
    """Rows with the columns of their type, and their places."""

    table: pa.Table
    lines: Positions


def needed_columns(
    present: Sequence[str], mapping: ColumnMap, type_: NodeType | EdgeType, path: str
) -> list[str]:
    """Return the columns of a file that a mapping uses, each once, in the order of the file.

    Raises:
        BadRequest: the file lacks one that the mapping names, or has it twice.
    """
    named = {*mapping.columns.values()}
    for end in (mapping.source, mapping.target):
        named.update(() if end is None else end.columns)
    for name in sorted(named):
        if name not in present:
            raise BadRequest(f"{path} has no column '{name}'{hinting(name, present)}")
    own = {"id", *type_.properties} - mapping.columns.keys() - mapping.constants.keys()
    if isinstance(type_, EdgeType):
        own |= {"from", "to"}
    wanted = named | own
    used = [name for name in present if name in wanted]
    seen: set[str] = set()
    for name in used:
        if name in seen:
            raise BadRequest(f"{path} has the column '{name}' twice")
        seen.add(name)
    return used


def map_columns(
    table: pa.Table,
    lines: Positions,
    mapping: ColumnMap,
    type_: NodeType | EdgeType,
    *,
    catalog: Catalog,
    coerce: Coerce,
    refuse: RefuseRow,
) -> MappedTable:
    """Return the rows under the names of their type; a row that lacks an end's id is refused at its line."""
    columns: dict[str, Column] = {}
    for name in ("id", *type_.properties):
        column = mapping.columns.get(name, name)
        if name in mapping.constants:
            columns[name] = _constant(mapping.constants[name], type_.properties[name], table.num_rows)
        elif column in table.column_names:
            columns[name] = table.column(column)
    wrong = np.zeros(table.num_rows, dtype=np.bool_)
    if isinstance(type_, EdgeType):
        ends = (("from", mapping.source, type_.source), ("to", mapping.target, type_.target))
        for name, end, node_name in ends:
            chosen = end or EndColumns((name,))
            if chosen.columns[0] in table.column_names:
                found = _end(table, chosen, catalog.nodes[node_name], coerce)
                columns[name] = found.ids
                for row, message in found.problems.items():
                    if not wrong[row]:
                        refuse(int(lines[row]), f"'{name}' of {type_.name}: {message}")
                        wrong[row] = True
    mapped = pa.table(columns) if columns else pa.table({"id": pa.nulls(table.num_rows)})
    return MappedTable(_without(mapped, wrong), lines[~wrong])


@dataclass(frozen=True, slots=True)
class _End:
    ids: Column
    problems: dict[int, str]


def _end(table: pa.Table, end: EndColumns, node: NodeType, coerce: Coerce) -> _End:
    """Return the ids of one end: as given, or made from the parts of the node's key."""
    first = table.column(end.columns[0])
    is_key = end.is_key or (not _is_text(first.type) and node.key is not None and len(node.key) == 1)
    if not is_key:
        return _End(first, {})
    assert node.key is not None, "the mapping was checked against the catalog"
    assert len(node.key) == len(end.columns), "the mapping was checked against the catalog"
    parts: dict[str, Column] = {}
    problems: dict[int, str] = {}
    for name, column in zip(node.key, end.columns, strict=True):
        where = f"{node.name}.{name}"
        parts[name], found = coerce(table.column(column), node.properties[name], where)
        for row, message in found:
            problems.setdefault(row, message)
    return _End(derive_ids(node, parts), problems)


def _constant(value: object, item: Property, count: int) -> Column:
    """Return a column of one value, in its property's type; whether it fits was checked with the mapping."""
    one, _ = coerce_column([value], item, item.name)
    if item.is_external:  # a column of references is given as one of texts
        one = one.cast(pa.utf8())
    return one.take(np.zeros(count, dtype=np.int64))


def _without(table: pa.Table, wrong: Mask) -> pa.Table:
    return table.filter(pa.array(~wrong)) if wrong.any() else table


def _is_text(type_: pa.DataType) -> bool:
    return pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_dictionary(type_)
