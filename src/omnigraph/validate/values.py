"""Value checks: what a row may contain, regardless of other rows.

One pass per column and rule, over Arrow. Only `required` judges a null; a value that could not be converted
was reported by the conversion, and nothing else judges it.
"""

import math
from collections.abc import Callable, Iterator
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Bounds, NodeType, Property
from omnigraph.core.arrays import Mask, Positions
from omnigraph.core.limits import DIAGNOSTIC_EXCERPT_MAX
from omnigraph.core.temporal import format_datetime
from omnigraph.core.values import FLOATS, INTEGER_WIDTHS, INTEGERS, Scalar
from omnigraph.validate.columns import Column, TypedRows, charge, to_mask, true_positions
from omnigraph.validate.references import malformed
from omnigraph.validate.violations import ViolationKind, ViolationLog

_EPOCH_DAY = date(1970, 1, 1).toordinal()
DAY_MS = 86_400_000
DAYS_MIN, DAYS_MAX = date.min.toordinal() - _EPOCH_DAY, date.max.toordinal() - _EPOCH_DAY  # years 1 to 9999
MILLIS_MIN, MILLIS_MAX = DAYS_MIN * DAY_MS, (DAYS_MAX + 1) * DAY_MS - 1
Report = Callable[[Positions, ViolationKind, int, Callable[[int], str]], None]


def check_values(rows: TypedRows, log: ViolationLog) -> Mask:
    """Report every value that its column does not allow; return which rows have no such value."""
    passing = np.ones(rows.count, dtype=np.bool_)
    for flaws in rows.flaws.values():
        passing &= ~flaws

    def report(
        positions: Positions, kind: ViolationKind, constraint: int, message: Callable[[int], str]
    ) -> None:
        passing[positions] = False
        charge(rows, positions, log, kind=kind, message=message, constraint=constraint)

    for position, item in enumerate(rows.type.properties.values()):
        _check_required(rows, item, position, report)
        _check_storable(rows, item, position, report)
        _check_enum(rows, item, position, report)
    if isinstance(rows.type, NodeType):
        node = rows.type
        ranges = [(name, bounds) for name, declared in node.ranges.items() for bounds in declared]
        for position, (name, bounds) in enumerate(ranges):
            _check_range(rows, node.properties[name], bounds, position, report)
        patterns = [(name, pattern) for name, declared in node.checks.items() for pattern in declared]
        for position, (name, pattern) in enumerate(patterns):
            _check_pattern(rows, node.properties[name], pattern, position, report)
    return passing


def quote(value: object) -> str:
    """Return a value for a message, in single quotes and not too long."""
    text = str(value)
    return f"'{text if len(text) <= DIAGNOSTIC_EXCERPT_MAX else text[:DIAGNOSTIC_EXCERPT_MAX] + '…'}'"


def show(value: Column) -> str:
    """Return an Arrow scalar as text; a `DateTime` keeps its time of day."""
    return format_datetime(value.value) if pa.types.is_date64(value.type) else str(value)


def _check_required(rows: TypedRows, item: Property, constraint: int, report: Report) -> None:
    column = rows.table.column(item.name)
    if item.type.nullable or column.null_count == 0:
        return
    missing = to_mask(column.is_null())
    if item.name in rows.flaws:
        missing &= ~rows.flaws[item.name]
    message = f"missing required property {rows.type.name}.{item.name}"
    report(np.flatnonzero(missing), ViolationKind.REQUIRED, constraint, lambda _: message)


def _check_storable(rows: TypedRows, item: Property, constraint: int, report: Report) -> None:
    """Floats must be finite, dates have a four-digit year, lists and vectors have no null items.

    A reference has the form of one; below which base it lies was checked where it came in.
    """
    column, where = rows.table.column(item.name), f"{rows.type.name}.{item.name}"
    if item.is_external:
        faults = malformed(column)
        found = np.fromiter(faults, dtype=np.int64, count=len(faults))
        report(found, ViolationKind.TYPE, constraint, lambda row: f"{where}: {faults[row]}")
        return
    if not (item.type.is_list or item.type.is_vector):
        if _is_limited(item.type.scalar):
            bad = true_positions(_unstorable(column, item.type.scalar))
            report(
                bad, ViolationKind.TYPE, constraint, lambda row: _storable_message(where, item, column[row])
            )
        return
    scalar = Scalar.F32 if item.type.is_vector else item.type.scalar
    nulls, others = _bad_items(column, scalar)
    report(nulls, ViolationKind.TYPE, constraint, lambda _: f"{where}: a null item in {item.type}")
    rule = "must be finite" if scalar in FLOATS else "has a day outside of the years 1 to 9999"
    report(others, ViolationKind.TYPE, constraint, lambda _: f"{where}: an item {rule}")


def _is_limited(scalar: Scalar) -> bool:
    return scalar in FLOATS or scalar in {Scalar.DATE, Scalar.DATETIME}


def _unstorable(values: Column, scalar: Scalar) -> Column:
    if scalar in FLOATS:
        return pc.invert(pc.is_finite(values))
    if scalar is Scalar.DATE:
        days = values.cast(pa.int32())
        return _not_between(days, pa.scalar(DAYS_MIN, pa.int32()), pa.scalar(DAYS_MAX, pa.int32()))
    millis = values.cast(pa.int64())
    return _not_between(millis, pa.scalar(MILLIS_MIN), pa.scalar(MILLIS_MAX))


def _not_between(values: Column, low: Column, high: Column) -> Column:
    return pc.or_(pc.less(values, low), pc.greater(values, high))


def _storable_message(where: str, item: Property, value: Column) -> str:
    if item.type.scalar in FLOATS:
        return f"{where} must be finite, not {value}"
    return f"{where}: a {item.type.scalar} must have a year from 1 to 9999"


def _bad_items(column: Column, scalar: Scalar) -> tuple[Positions, Positions]:
    """Return the rows with a null item, and those of the others with an item that cannot be stored."""
    nulls: set[int] = set()
    others: set[int] = set()
    start = 0
    for chunk in column.chunks:
        held = chunk.drop_null()
        items = held.flatten()
        bad = to_mask(_unstorable(items, scalar)) if _is_limited(scalar) else np.zeros(len(items), np.bool_)
        if items.null_count or bad.any():
            lengths = np.asarray(pc.list_value_length(held))
            owners = np.repeat(true_positions(chunk.is_valid()) + start, lengths)
            nulls.update(owners[to_mask(items.is_null())].tolist())
            others.update(owners[bad].tolist())
        start += len(chunk)
    return _sorted(nulls), _sorted(others - nulls)


def _sorted(positions: set[int]) -> Positions:
    return np.array(sorted(positions), dtype=np.int64)


def _check_enum(rows: TypedRows, item: Property, constraint: int, report: Report) -> None:
    values = item.type.enum_values
    if values is None:
        return
    column, where = rows.table.column(item.name), f"{rows.type.name}.{item.name}"
    known = pc.is_in(column, value_set=pa.array(values, pa.utf8()))
    bad = true_positions(pc.and_(pc.invert(known), column.is_valid()))
    expected = ", ".join(values)
    report(
        bad,
        ViolationKind.ENUM,
        constraint,
        lambda row: f"invalid enum value {quote(column[row])} for {where}: expected one of {expected}",
    )


def _check_range(rows: TypedRows, item: Property, bounds: Bounds, constraint: int, report: Report) -> None:
    column, where = rows.table.column(item.name), f"{rows.type.name}.{item.name}"
    outside = np.zeros(rows.count, dtype=np.bool_)
    for comparison in _outside(column, bounds, item.type.scalar):
        outside |= to_mask(comparison)
    shown = "..".join("" if bound is None else str(bound) for bound in (bounds.low, bounds.high))
    report(
        np.flatnonzero(outside),
        ViolationKind.RANGE,
        constraint,
        lambda row: f"@range violation on {where}: {column[row]} is not in {shown}",
    )


def _outside(column: Column, bounds: Bounds, scalar: Scalar) -> Iterator[Column]:
    """Yield the comparisons with each bound, made exactly at the width of the column.

    A bound beyond the width of an integer column is met by every value or by none; a bound of an F32 column
    is rounded like the values, so that a value equal to the bound as written is inside. NaN, which compares
    with nothing, was already refused as not finite.
    """
    type_ = column.type
    if scalar in INTEGERS:
        low = None if bounds.low is None else math.ceil(bounds.low)
        high = None if bounds.high is None else math.floor(bounds.high)
        least, most = INTEGER_WIDTHS[scalar]
        if low is not None and low > least:
            yield pc.less(column, pa.scalar(low, type_)) if low <= most else column.is_valid()
        if high is not None and high < most:
            yield pc.greater(column, pa.scalar(high, type_)) if high >= least else column.is_valid()
        return
    if bounds.low is not None:
        yield pc.less(column, pa.scalar(float(bounds.low)).cast(type_, safe=False))
    if bounds.high is not None:
        yield pc.greater(column, pa.scalar(float(bounds.high)).cast(type_, safe=False))


def _check_pattern(rows: TypedRows, item: Property, pattern: str, constraint: int, report: Report) -> None:
    column, where = rows.table.column(item.name), f"{rows.type.name}.{item.name}"
    matched = pc.match_substring_regex(column, pattern)
    report(
        true_positions(pc.invert(matched)),
        ViolationKind.CHECK,
        constraint,
        lambda row: f"@check violation on {where}: {quote(column[row])} does not match {pattern!r}",
    )
