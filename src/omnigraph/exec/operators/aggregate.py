"""Aggregates over groups of rows.

A1  A row counts as often as its weight says.
A2  A sum of floats does not depend on the order of the rows, which no query promises: values are cut into
    parts of fixed magnitude whose sums are exact, and the parts are added in a fixed order.
"""

import numpy as np
import pyarrow as pa

from omnigraph.catalog.bound import AggregateValue, EntityValue
from omnigraph.core.arrays import Counts, Floats, Mask, Values
from omnigraph.exec.context import QueryContext
from omnigraph.exec.operators.comparison import one_zero, plain
from omnigraph.exec.operators.grouping import Groups
from omnigraph.exec.operators.operand import column_type
from omnigraph.exec.operators.order import sort_codes
from omnigraph.exec.operators.project import project
from omnigraph.exec.rows import BindingTable

_EXACT_BELOW = 2.0**52  # whole floats are added exactly, and faster than integers
NO_PLACE: Values = pa.array([None], pa.int64())  # taking it from a column gives null


def aggregate(context: QueryContext, value: AggregateValue, rows: BindingTable, groups: Groups) -> Values:
    """Return one value per group."""
    if value.function == "count" and isinstance(value.argument, EntityValue):
        return pa.array(_weights(rows, groups, None))
    column = plain(project(context, value.argument, rows, {}))
    known = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    if value.function == "count":
        return pa.array(_weights(rows, groups, known))
    if value.function in {"min", "max"}:
        return _extreme(column, known, groups, is_least=value.function == "min").cast(column_type(value.type))
    counts = _weights(rows, groups, known)
    sums = _sums(column, known, rows, groups)
    if value.function == "avg":
        sums = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    return pa.array(sums, pa.float64(), mask=counts == 0)


def _weights(rows: BindingTable, groups: Groups, known: Mask | None) -> Counts:
    """Return how many rows each group has, of those with a value."""
    weight = rows.weight
    if groups.of_row is None:
        if weight is None:
            return np.array([rows.size if known is None else int(known.sum())], np.int64)
        return np.array([int((weight if known is None else weight[known]).sum())], np.int64)
    if groups.is_each_row and known is None:
        return np.ones(rows.size, np.int64) if weight is None else weight
    of_row = groups.of_row if known is None else groups.of_row[known]
    if weight is None:
        return np.bincount(of_row, minlength=groups.count).astype(np.int64)
    weight = weight if known is None else weight[known]
    if float(weight.sum(dtype=np.float64)) < _EXACT_BELOW:
        return np.bincount(of_row, weight, groups.count).astype(np.int64)
    counted = np.zeros(groups.count, np.int64)
    np.add.at(counted, of_row, weight)
    return counted


# Sums


def _sums(column: Values, known: Mask | None, rows: BindingTable, groups: Groups) -> Floats:
    of_row = np.zeros(rows.size, np.int64) if groups.of_row is None else groups.of_row
    weight = rows.weight
    if known is not None:
        column = column.filter(pa.array(known))
        of_row = of_row[known]
        weight = None if weight is None else weight[known]
    values = column.to_numpy(zero_copy_only=False).astype(np.float64)
    if not np.isfinite(values).all():
        factors = values if weight is None else values * weight
        return np.bincount(of_row, factors, groups.count).astype(np.float64)
    return _exact_sums(values, weight, of_row, groups.count)


def _exact_sums(values: Floats, weight: Counts | None, of_row: Counts, count: int) -> Floats:
    """Return sums that are the same for every order of the values (A2)."""
    total = np.zeros(count, np.float64)
    occurrences = len(values) if weight is None else int(weight.sum())
    rest = values
    # As many parts as the values span magnitudes, usually two or three: a group of small values counts
    # beside one of large values.
    while (greatest := float(np.abs(rest).max(initial=0.0))) > 0.0:
        exponent = int(np.frexp(greatest)[1]) + max(occurrences, 1).bit_length() + 1
        if exponent > 1_000:  # near the end of the range the cut itself would overflow
            return total + np.bincount(of_row, rest if weight is None else rest * weight, count)
        unit = 2.0**exponent
        part = (unit + rest) - unit
        rest = rest - part
        total = total + np.bincount(of_row, part if weight is None else part * weight, count)
    return total


# Least and greatest


def _extreme(column: Values, known: Mask | None, groups: Groups, *, is_least: bool) -> Values:
    """Return the least or greatest value of each group, null where there is none."""
    of_row = np.zeros(len(column), np.int64) if groups.of_row is None else groups.of_row
    if pa.types.is_floating(column.type):
        column = one_zero(column)  # else the order of rows would decide which of the two zeros comes out
    codes = sort_codes(column)
    if len(codes) == 1 and known is None and groups.count == 1:
        if not len(column):
            return column.take(NO_PLACE)
        place = int(codes[0].argmin() if is_least else codes[0].argmax())
        return column.slice(place, 1)
    order = np.lexsort((*codes[::-1], of_row))
    if known is not None:
        order = order[known[order]]
    chosen = np.full(groups.count, -1, np.int64)
    if is_least:
        order = order[::-1]
    chosen[of_row[order]] = order
    places: Values = pa.array(chosen, mask=chosen < 0)
    return column.take(places)
