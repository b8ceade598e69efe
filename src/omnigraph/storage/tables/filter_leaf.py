"""The reduced form of a filter: typed leaves under *all* and *any*, true or false for every row.

Typing a literal to its column happens here, once for both renderings. Numbers compare by mathematical value:
a literal that the column's type does not hold lies between two values that it does, and the comparison moves
to one of them.
"""

import math
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, assert_never, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.arrays import Values

LeafOperator = Literal["eq", "ne", "gt", "lt", "ge", "le"]
Known = str | bool | int | float

OPPOSITE: dict[LeafOperator, LeafOperator] = {
    "eq": "ne",
    "ne": "eq",
    "gt": "le",
    "le": "gt",
    "lt": "ge",
    "ge": "lt",
}
_SIGN: dict[LeafOperator, str] = {"eq": "=", "ne": "!=", "gt": ">", "lt": "<", "ge": ">=", "le": "<="}


@dataclass(frozen=True, slots=True)
class LeafConstant:
    """The same for every row."""

    value: bool


@dataclass(frozen=True, slots=True)
class NullTest:
    """The column has no value, or has one."""

    column: str
    is_null: bool


@dataclass(frozen=True, slots=True)
class LeafComparison:
    """A column that has a value, against a literal of its own type."""

    column: str
    type: pa.DataType
    operator: LeafOperator
    value: Known


@dataclass(frozen=True, slots=True)
class Member:
    """A column that has a value, equal to one of the literals, or to none of them."""

    column: str
    type: pa.DataType
    values: tuple[Known, ...]
    is_member: bool = True


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds; at least two."""

    parts: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class Any_:
    """Some part holds; at least two."""

    parts: tuple["Tree", ...]


Tree = LeafConstant | NullTest | LeafComparison | Member | All | Any_


def all_of(parts: Iterable[Tree]) -> Tree:
    """Return the conjunction, without parts that decide nothing."""
    kept = tuple(dict.fromkeys(part for part in parts if part != LeafConstant(True)))
    if LeafConstant(False) in kept:
        return LeafConstant(False)
    if len(kept) == 1:
        return kept[0]
    return All(kept) if kept else LeafConstant(True)


def any_of(parts: Iterable[Tree]) -> Tree:
    """Return the disjunction, without parts that decide nothing."""
    kept = tuple(dict.fromkeys(part for part in parts if part != LeafConstant(False)))
    if LeafConstant(True) in kept:
        return LeafConstant(True)
    if len(kept) == 1:
        return kept[0]
    return Any_(kept) if kept else LeafConstant(False)


def negate(tree: Tree) -> Tree:
    """Return a tree that is true exactly where the given one is false."""
    match tree:
        case LeafConstant(value):
            return LeafConstant(not value)
        case NullTest(column, is_null):
            return NullTest(column, is_null=not is_null)
        case LeafComparison(column, type_, operator, value):
            opposite = LeafComparison(column, type_, OPPOSITE[operator], value)
            return any_of((opposite, NullTest(column, is_null=True)))
        case Member(column, type_, values, is_member):
            opposite_member = Member(column, type_, values, not is_member)
            return any_of((opposite_member, NullTest(column, is_null=True)))
        case All(parts):
            return any_of(negate(part) for part in parts)
        case Any_(parts):
            return all_of(negate(part) for part in parts)
        case _:
            assert_never(tree)


def comparison(field: "pa.Field[pa.DataType]", operator: LeafOperator, value: Known) -> Tree:
    """Return the leaf for a column against a value of any type that can be compared with it."""
    type_ = field.type
    if pa.types.is_string(type_) or pa.types.is_boolean(type_):
        expected = str if pa.types.is_string(type_) else bool
        assert isinstance(value, expected), f"{field.name} is {type_}, compared with {value!r}"
        return LeafComparison(field.name, type_, operator, value)
    assert isinstance(value, int | float), f"{field.name} is {type_}, compared with {value!r}"
    assert not isinstance(value, bool), f"{field.name} is {type_}, compared with {value!r}"
    return _number_comparison(field, operator, value)


def membership(field: "pa.Field[pa.DataType]", values: Iterable[Known]) -> Tree:
    """Return the leaf for a column among values; those that its type does not hold equal nothing."""
    if pa.types.is_string(field.type):  # texts need no other form, and there may be very many
        held: dict[Known, None] = dict.fromkeys(values)
    else:
        held = dict.fromkeys(found for value in values if (found := typed(field, value)) is not None)
    return Member(field.name, field.type, tuple(held)) if held else LeafConstant(False)


def typed(field: "pa.Field[pa.DataType]", value: Known) -> Known | None:
    """Return a value in the type of a column, or `None` when the type does not hold it."""
    equal = comparison(field, "eq", value)
    return equal.value if isinstance(equal, LeafComparison) else None


def _number_comparison(field: "pa.Field[pa.DataType]", operator: LeafOperator, value: int | float) -> Tree:
    column, type_ = field.name, field.type
    if math.isnan(value):
        return NullTest(column, is_null=False) if operator == "ne" else LeafConstant(False)
    below, above = _neighbours(type_, value)
    if below is not None and below == above:
        return LeafComparison(column, type_, operator, below)
    match operator:
        case "eq":
            return LeafConstant(False)
        case "ne":
            return NullTest(column, is_null=False)
        case "gt" | "ge":
            return LeafConstant(False) if above is None else LeafComparison(column, type_, "ge", above)
        case "lt" | "le":
            return LeafConstant(False) if below is None else LeafComparison(column, type_, "le", below)
        case _:
            assert_never(operator)


def _neighbours(type_: pa.DataType, value: int | float) -> tuple[int | float | None, int | float | None]:
    """Return the largest value of a type that is not above the given one, and the smallest not below it."""
    if pa.types.is_floating(type_):
        return _float_neighbours(type_, value)
    low, high = _integer_bounds(type_)
    if math.isinf(value):
        return (high, None) if value > 0 else (None, low)
    floor, ceiling = math.floor(value), math.ceil(value)
    below = None if floor < low else min(floor, high)
    above = None if ceiling > high else max(ceiling, low)
    return below, above


def _integer_bounds(type_: pa.DataType) -> tuple[int, int]:
    if pa.types.is_date(type_):
        bits, is_signed = type_.bit_width, True
    else:
        assert pa.types.is_integer(type_), f"{type_} cannot be compared with a number"
        bits, is_signed = type_.bit_width, pa.types.is_signed_integer(type_)
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)


def _float_neighbours(type_: pa.DataType, value: int | float) -> tuple[float | None, float | None]:
    single = type_ == pa.float32()
    if isinstance(value, float):  # a float is rounded to the column's precision, by definition
        rounded = _single(value) if single else value
        if math.isinf(rounded):
            largest = _largest(single)
            return (largest, None) if rounded > 0 else (None, -largest)
        return rounded, rounded
    largest = _largest(single)
    if abs(value) > largest:
        return (largest, None) if value > 0 else (None, -largest)
    nearest = _single(float(value)) if single else float(value)
    if nearest == value:  # Python compares integers and floats exactly
        return nearest, nearest
    other = _next(nearest, single=single, upward=nearest < value)
    return (nearest, other) if nearest < value else (other, nearest)


def _largest(single: bool) -> float:
    return float(np.finfo(np.float32 if single else np.float64).max)


def _single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _next(value: float, *, single: bool, upward: bool) -> float:
    towards = math.inf if upward else -math.inf
    if single:
        return float(np.nextafter(np.float32(value), np.float32(towards)))
    return math.nextafter(value, towards)


def render(tree: Tree) -> str:
    """Return the text of a tree for Lance."""
    match tree:
        case LeafConstant(value):
            return "true" if value else "false"
        case NullTest(column, is_null):
            return f"{_name(column)} IS {'' if is_null else 'NOT '}NULL"
        case LeafComparison(column, type_, operator, value):
            return f"{_name(column)} {_SIGN[operator]} {_literal(type_, value)}"
        case Member(column, type_, values, is_member):
            listed = ", ".join(_literal(type_, value) for value in values)
            return f"{_name(column)} {'' if is_member else 'NOT '}IN ({listed})"
        case All(parts):
            return " AND ".join(f"({render(part)})" for part in parts)
        case Any_(parts):
            return " OR ".join(f"({render(part)})" for part in parts)
        case _:
            assert_never(tree)


def _name(column: str) -> str:
    assert "`" not in column, f"{column!r} is not a column name"
    return f"`{column}`"


def _literal(type_: pa.DataType, value: Known) -> str:
    if isinstance(value, str):
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    # The smallest 64-bit integer cannot be written as a number: its digits overflow before the sign is seen.
    digits = f"arrow_cast('{value}', 'Int64')" if value == -(2**63) else str(value)
    if pa.types.is_date(type_):  # a date column refuses text and timestamps, and a number without a cast
        return f"arrow_cast({digits}, '{'Date32' if type_ == pa.date32() else 'Date64'}')"
    return digits


def mask(tree: Tree, table: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
    """Return for each row whether the tree is true."""
    match tree:
        case LeafConstant(value):
            return pa.array([value] * table.num_rows, pa.bool_())
        case NullTest(column, is_null):
            values = _column(table, column)
            return pc.is_null(values) if is_null else pc.is_valid(values)
        case LeafComparison(column, _, operator, value):
            values = comparable(table, column)
            compared = _call(_COMPUTE[operator], values, pa.scalar(value, values.type))
            return cast("pa.BooleanArray", compared.fill_null(False))
        case Member(column, _, members, is_member):
            values = comparable(table, column)
            wanted = [member + 0.0 if isinstance(member, float) else member for member in members]
            found = pc.is_in(values, value_set=pa.array(wanted, values.type))
            return found if is_member else pc.and_(pc.invert(found), values.is_valid())
        case All(parts):
            return _folded(pc.and_, [mask(part, table) for part in parts])
        case Any_(parts):
            return _folded(pc.or_, [mask(part, table) for part in parts])
        case _:
            assert_never(tree)


_COMPUTE: dict[LeafOperator, str] = {
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "lt": "less",
    "ge": "greater_equal",
    "le": "less_equal",
}


def comparable(table: pa.Table | pa.RecordBatch, column: str) -> Values:
    """Return a column that pyarrow compares as Lance does: dates by number, and the two zeros as one."""
    values = _column(table, column)
    type_ = values.type
    if pa.types.is_date(type_):
        return values.cast(pa.int32() if type_ == pa.date32() else pa.int64())
    if pa.types.is_floating(type_):
        return _call("add", values, pa.scalar(0.0, type_))
    return values


def _call(function: str, values: Values, scalar: "pa.Scalar[Any]") -> Values:
    return cast("Values", pc.call_function(function, [values, scalar]))


def _column(table: pa.Table | pa.RecordBatch, column: str) -> Values:
    if isinstance(table, pa.RecordBatch):
        return table.column(column)
    return table.column(column).combine_chunks()


def _folded(
    combine: Callable[[pa.BooleanArray, pa.BooleanArray], pa.BooleanArray], masks: list[pa.BooleanArray]
) -> pa.BooleanArray:
    return reduce(combine, masks)
