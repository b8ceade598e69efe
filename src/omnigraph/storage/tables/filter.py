"""The filter tree of the engine, rendered to Lance's filter text and to pyarrow.

F1  Both renderings select the same rows of the same data.
F2  Null never matches: a comparison with a null on either side is neither true nor false.
F3  Literals have the type of their column; what the type cannot hold is rewritten to an equal comparison.

Both renderings start from the same reduced tree (`filter_leaf`): for each filter one tree says where it is
true and one where it is false, and rows in neither are unknown. A tree is true or false for every row and
negates nothing, so nulls need no care further down.
"""

from dataclasses import dataclass
from typing import assert_never

import pyarrow as pa

from omnigraph.storage.tables import filter_leaf as leaf
from omnigraph.storage.tables.filter_leaf import LeafOperator

__all__ = [
    "Always",
    "And",
    "Compare",
    "FilterValue",
    "IsIn",
    "IsNotTrue",
    "IsNull",
    "LeafOperator",
    "Not",
    "Or",
    "RowFilter",
    "to_arrow_mask",
    "to_lance",
]

FilterValue = (
    str | bool | int | float | None
)  # a date is its days, a date-time its milliseconds since the epoch


@dataclass(frozen=True, slots=True)
class Compare:
    """A column against a value; unknown when either is null."""

    column: str
    operator: LeafOperator
    value: FilterValue


@dataclass(frozen=True, slots=True)
class IsIn:
    """The column equals one of the values; a null among them equals nothing and leaves the rest unknown."""

    column: str
    values: tuple[FilterValue, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column has no value; never unknown."""

    column: str


@dataclass(frozen=True, slots=True)
class And:
    """Every part holds; true without parts."""

    filters: tuple["RowFilter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds; false without parts."""

    filters: tuple["RowFilter", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; unknown stays unknown."""

    filter: "RowFilter"


@dataclass(frozen=True, slots=True)
class IsNotTrue:
    """False or unknown; never unknown itself."""

    filter: "RowFilter"


@dataclass(frozen=True, slots=True)
class Always:
    """The same for every row."""

    value: bool


RowFilter = Compare | IsIn | IsNull | And | Or | Not | IsNotTrue | Always


def to_lance(filter: RowFilter, schema: pa.Schema) -> str:
    """Return Lance's text of a filter over a table of this schema."""
    return leaf.render(_where_true(filter, schema))


def to_arrow_mask(filter: RowFilter, table: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
    """Return which rows of a table the filter selects; the mask has no nulls."""
    return leaf.mask(_where_true(filter, table.schema), table)


def _where_true(filter_: RowFilter, schema: pa.Schema) -> leaf.Tree:
    match filter_:
        case Compare(column, operator, value):
            return _compare(column, operator, value, schema)
        case IsIn(column, values):
            return leaf.membership(schema.field(column), _known(values))
        case IsNull(column):
            return leaf.NullTest(column, is_null=True)
        case And(filters):
            return leaf.all_of(_where_true(part, schema) for part in filters)
        case Or(filters):
            return leaf.any_of(_where_true(part, schema) for part in filters)
        case Not(inner):
            return _where_false(inner, schema)
        case IsNotTrue(inner):
            return leaf.negate(_where_true(inner, schema))
        case Always(value):
            return leaf.LeafConstant(value)
        case _:
            assert_never(filter_)


def _where_false(filter_: RowFilter, schema: pa.Schema) -> leaf.Tree:
    match filter_:
        case Compare(column, operator, value):
            return _compare(column, leaf.OPPOSITE[operator], value, schema)
        case IsIn(column, values):
            return _not_in(column, values, schema)
        case IsNull(column):
            return leaf.NullTest(column, is_null=False)
        case And(filters):
            return leaf.any_of(_where_false(part, schema) for part in filters)
        case Or(filters):
            return leaf.all_of(_where_false(part, schema) for part in filters)
        case Not(inner) | IsNotTrue(inner):
            return _where_true(inner, schema)
        case Always(value):
            return leaf.LeafConstant(not value)
        case _:
            assert_never(filter_)


def _compare(column: str, operator: LeafOperator, value: FilterValue, schema: pa.Schema) -> leaf.Tree:
    if value is None:
        return leaf.LeafConstant(False)
    return leaf.comparison(schema.field(column), operator, value)


def _not_in(column: str, values: tuple[FilterValue, ...], schema: pa.Schema) -> leaf.Tree:
    if not values:
        return leaf.LeafConstant(True)
    if None in values:  # perhaps different from all the others, but the null is unknown
        return leaf.LeafConstant(False)
    outside = leaf.negate(leaf.membership(schema.field(column), _known(values)))
    return leaf.all_of((leaf.NullTest(column, is_null=False), outside))


def _known(values: tuple[FilterValue, ...]) -> tuple[leaf.Known, ...]:
    return tuple(value for value in values if value is not None)
