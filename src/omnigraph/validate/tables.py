"""Arrow tables as input: the same records as lines of JSON, without the text.

A column that Arrow can convert without altering a value is converted whole; any other is read value by value,
like JSON (C1, C2 of `coerce`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow_schema import arrow_type, with_moments
from omnigraph.catalog.model import EdgeType, NodeType, Property
from omnigraph.core.arrays import Mask, Positions
from omnigraph.core.cancellation import check_cancelled
from omnigraph.core.limits import DIAGNOSTIC_EXCERPT_MAX
from omnigraph.core.nearest import hinting
from omnigraph.core.temporal import time_of_day
from omnigraph.core.values import FLOATS, INTEGERS, Scalar, ValueType
from omnigraph.validate.assemble import Converted, Flaw, assemble
from omnigraph.validate.coerce import BeyondPython, Problems, coerce_column
from omnigraph.validate.columns import Column, TypedRows, make_rows, to_mask, true_positions
from omnigraph.validate.values import quote
from omnigraph.validate.violations import Violation, ViolationKind, ViolationLog

Coerce = Callable[[Column, Property, str], tuple[Column, Problems]]
# What Arrow and Python raise for values they cannot convert: types without a cast, times without a zone.
_CONVERSION_FAILURES = (pa.ArrowException, ValueError, OverflowError, LookupError)
_ENDS = {"from": "src", "to": "dst"}
_EXTENSION_NAME = b"ARROW:extension:name"  # where a column says it whose type is not known here
_SAME_AS_STORED = frozenset({"arrow.json"})  # a text, kept as that text


def read_table(
    table: pa.Table,
    type_: NodeType | EdgeType,
    *,
    file: int,
    file_name: str | None,
    make_id: Callable[[], str],
    log: ViolationLog,
    first_line: int = 1,
    lines: Positions | None = None,
    coerce: Coerce | None = None,
) -> TypedRows:
    """Return the rows of a table of one type; its rows count as lines, unless `lines` gives their places.

    A table with a wrong column is refused once, at its first row. An edge without an end, or an id that is
    not a text, is refused at its own row. `coerce` converts one column; `None` means `coerce_values`.
    """
    log.open_file(file, file_name)
    wrong = wrong_column(table.schema, type_)
    if wrong is not None:
        log.add(Violation(ViolationKind.RECORD, wrong, type_.table_key, None, file, first_line, file_name))
        return make_rows(type_, {}, file=file, lines=[])
    if lines is None:
        lines = np.arange(first_line, first_line + table.num_rows, dtype=np.int64)
    refusals = _Refusals(log, type_, file, file_name)
    try:
        converted = _converted(table, type_, lines, coerce or coerce_values, refusals)
    except MemoryError:
        raise  # the reader knows which input it is
    except _CONVERSION_FAILURES as error:
        refusals.add(first_line, f"the table for {type_.name} cannot be read: {_reason(error)}")
        return make_rows(type_, {}, file=file, lines=[])
    return assemble(converted, file=file, make_id=make_id, log=log)


@dataclass(frozen=True, slots=True)
class _Refusals:
    """Where rows of a table are refused."""

    log: ViolationLog
    type: NodeType | EdgeType
    file: int
    file_name: str | None

    def add_all(self, lines: Positions, message: str) -> None:
        """Report the same about many rows, in their order."""
        for line in lines[: self.log.limit].tolist():
            self.add(line, message)
        self.log.extend((), more=max(0, len(lines) - self.log.limit))

    def add(self, line: int, message: str) -> None:
        check_cancelled()  # every row may be one
        key = self.type.table_key
        self.log.add(Violation(ViolationKind.RECORD, message, key, None, self.file, line, self.file_name))


def _converted(
    table: pa.Table, type_: NodeType | EdgeType, lines: Positions, coerce: Coerce, refusals: _Refusals
) -> Converted:
    refused = np.zeros(table.num_rows, dtype=np.bool_)
    for name in _text_columns(type_):
        absent = _absent(table, name)
        refusals.add_all(lines[absent & ~refused], f"'{name}' of {type_.name} is missing")
        refused |= absent
    if refused.any():
        table, lines = table.filter(pa.array(~refused)), lines[~refused]
    columns, flaws = coerce_table(table, type_, coerce)
    given = columns.pop("id", None)
    left_out = frozenset(type_.properties).difference(table.column_names)
    every = np.ones(table.num_rows, dtype=np.bool_)
    unsaid = {name: every for name in left_out if type_.properties[name].default is not None}
    return Converted(type_, columns, flaws, given, lines, left_out, unsaid)


def wrong_column(schema: pa.Schema, type_: NodeType | EdgeType) -> str | None:
    """Return the first thing that is wrong with the columns of a table; a table may have very many."""
    known = {"id", *type_.properties, *(_ENDS if isinstance(type_, EdgeType) else ())}
    seen: set[str] = set()
    for name in schema.names:
        if name in seen:
            return f"column {quote(name)} appears twice in the table for {type_.name}"
        if name not in known:
            return f"{type_.name} has no property {quote(name)}{hinting(name, known)}"
        seen.add(name)
    ends = _text_columns(type_)
    for name in ends:
        if name not in seen:
            return f"the table for {type_.name} has no column '{name}'"
    for item in schema:
        if item.name in {"id", *ends} and not _is_text(item.type):
            return f"column '{item.name}' of {type_.name} is {item.type}, not a text"
    return foreign_column(schema, type_)


def foreign_column(schema: pa.Schema, type_: NodeType | EdgeType) -> str | None:
    """Return what is wrong with the first column whose values mean something else than how they are kept.

    An extension type gives numbers, texts or lists a meaning, as months since 1970: kept without it they
    would be other values. A process that does not know the type sees just the numbers, and its name beside.
    """
    for item in schema:
        name = foreign_type(item)
        if name is not None:
            return (
                f"column {quote(item.name)} for {type_.name} is of the extension type {quote(name)}, which "
                "no property holds: convert it to the values that are meant, such as texts or timestamps"
            )
    return None


def foreign_type(item: "pa.Field[Any]") -> str | None:
    """Return the extension type of a column or of what is inside of it, unless it means what it stores."""
    type_ = item.type
    if isinstance(type_, pa.BaseExtensionType):
        is_flat = isinstance(type_, pa.FixedShapeTensorType) and len(type_.shape) == 1
        name: str = getattr(type_, "extension_name", str(type_))
        return None if is_flat or name in _SAME_AS_STORED else name
    named = (item.metadata or {}).get(_EXTENSION_NAME)
    if named is not None and named.decode(errors="replace") not in _SAME_AS_STORED:
        return named.decode(errors="replace")
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return foreign_type(pa.field("value", type_.value_type))
    inside = (type_.field(place) for place in range(type_.num_fields))
    return next((found for found in map(foreign_type, inside) if found is not None), None)


def coerce_table(
    table: pa.Table, type_: NodeType | EdgeType, coerce: Coerce
) -> tuple[dict[str, Column], list[Flaw]]:
    """Return the columns of a type from a table with valid columns, and the values that do not fit.

    The ends of an edge become `src` and `dst`; `id` is included if it was given; a property missing from the
    table is null.
    """
    columns: dict[str, Column] = {}
    flaws: list[Flaw] = []
    for name, item in type_.properties.items():
        if name not in table.column_names:
            columns[name] = pa.array([None] * table.num_rows, arrow_type(item.type))
            continue
        columns[name], problems = coerce(table.column(name), item, f"{type_.name}.{name}")
        flaws += ((row, name, message) for row, message in problems)
    for name in _text_columns(type_):
        columns[_ENDS[name]] = table.column(name).cast(pa.utf8())
    if "id" in table.column_names and table.column("id").null_count < table.num_rows:
        columns["id"] = table.column("id").cast(pa.utf8())
    return columns, flaws


def _text_columns(type_: NodeType | EdgeType) -> tuple[str, ...]:
    """Return the columns that a row cannot be without."""
    return tuple(_ENDS) if isinstance(type_, EdgeType) else ()


def _absent(table: pa.Table, name: str) -> Mask:
    return to_mask(table.column(name).is_null())


def coerce_values(column: Column, item: Property, where: str) -> tuple[Column, Problems]:
    """Return a column in the type of its property, and the rows with a refused value, each with the reason.

    A column of a type that Arrow cannot convert, or that no property takes, is refused in every row.
    """
    try:
        if pa.types.is_interval(column.type):  # Python represents them as tuples, which would pass for lists
            return _refused(column, item, f"{where}: expected {item.type}, got {column.type}")
        return _coerced(column, item, where)
    except MemoryError:
        raise  # the reader knows which input it is
    except _CONVERSION_FAILURES as error:
        reason = f"{column.type} cannot be converted to {item.type} ({_reason(error)})"
        return _refused(column, item, f"{where}: {reason}")


def _refused(column: Column, item: Property, message: str) -> tuple[Column, Problems]:
    rows = np.flatnonzero(to_mask(column.is_valid())).tolist()
    return pa.array([None] * len(column), arrow_type(item.type)), [(row, message) for row in rows]


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0][:DIAGNOSTIC_EXCERPT_MAX]


def _coerced(column: Column, item: Property, where: str) -> tuple[Column, Problems]:
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    if item.is_external:  # a column of bytes is none of references, so none is taken whole
        return coerce_column(_values(plain), item, where)
    try:
        converted = _cast(plain, item.type)
    except pa.ArrowException:
        converted = None  # a value does not fit: the slow path says which
    if converted is None:
        return coerce_column(_values(plain), item, where)
    if item.type.scalar is Scalar.DATE and not item.type.is_list:
        return _without_times(converted, plain, where)
    return converted, []


def _without_times(days: Column, given: Column, where: str) -> tuple[Column, Problems]:
    """Return days, refusing given moments that have a time of day: nothing is truncated."""
    moments = _moments(given)
    if moments is None:
        return days, []
    has_time = pc.not_equal(pc.floor_temporal(moments, unit="day"), moments)
    rows = true_positions(has_time).tolist()
    if not rows:
        return days, []
    texts = moments.take(rows).cast(pa.utf8()).to_pylist()
    problems = [(row, f"{where}: {time_of_day(text)}") for row, text in zip(rows, texts, strict=True)]
    return pc.if_else(has_time, pa.scalar(None, days.type), days), problems


def _values(column: Column) -> list[object]:
    """Return the values as Python objects; Arrow's own conversion would drop the time of day of `date64`."""
    moments = with_moments(pa.table({"value": column}))["value"]
    try:
        found: list[object] = moments.to_pylist()
    except (OverflowError, ValueError):
        return [_value(item) for item in moments]
    if pa.types.is_timestamp(moments.type):  # pandas has a not-a-time value, and Arrow does not
        return [BeyondPython() if value is not None and value != value else value for value in found]  # noqa: PLR0124
    return found


def _value(item: Any) -> object:  # noqa: ANN401 - any scalar of Arrow
    try:
        return item.as_py()
    except (OverflowError, ValueError):
        return BeyondPython()


def _cast(column: Column, type_: ValueType) -> Column | None:
    """Return a column converted whole, or `None` where its values must be read one by one."""
    target, source = arrow_type(type_), column.type
    if source == target or pa.types.is_null(source):
        return column.cast(target)
    if type_.is_list or type_.is_vector:
        scalar = Scalar.F32 if type_.is_vector else type_.scalar
        is_plain = _is_list(source) and _is_plain(source.value_type, scalar)
        return column.cast(target) if is_plain else None
    match type_.scalar:
        case Scalar.DATE:
            return _days(column)
        case Scalar.DATETIME:
            return _millis(column)
        case Scalar.F32 if pa.types.is_integer(source):
            return column.cast(pa.float64(), safe=False).cast(target, safe=False)
        case scalar if _is_plain(source, scalar):
            return column.cast(target, safe=scalar not in FLOATS)
        case _:
            return None


def _is_plain(source: pa.DataType, scalar: Scalar) -> bool:
    """Return whether every value of the one type is a value of the other, apart from its width."""
    if scalar in INTEGERS:
        return pa.types.is_integer(source) or (pa.types.is_decimal128(source) and source.scale == 0)
    if scalar in FLOATS:
        return pa.types.is_integer(source) or pa.types.is_floating(source)
    if scalar is Scalar.STRING:
        return _is_text(source)
    if scalar is Scalar.BLOB:
        return pa.types.is_binary(source) or pa.types.is_large_binary(source)
    return scalar is Scalar.BOOL and pa.types.is_boolean(source)


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return _is_text(type_.value_type)
    is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
    return is_text or pa.types.is_null(type_)


def _is_list(type_: pa.DataType) -> bool:
    return pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)


def _days(column: Column) -> Column | None:
    if pa.types.is_integer(column.type):
        return column.cast(pa.int32()).cast(pa.date32())
    moments = _moments(column)
    return None if moments is None else pc.floor_temporal(moments, unit="day").cast(pa.date32())


def _millis(column: Column) -> Column | None:
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64()).cast(pa.date64())
    moments = _moments(column)
    if moments is None:
        return None
    floored: Column = pc.floor_temporal(moments, unit="millisecond")
    return floored.cast(pa.timestamp("ms")).cast(pa.int64()).cast(pa.date64())


def _moments(column: Column) -> Column | None:
    """Return points in time as UTC without a zone; a zone says how a point is shown, not when it is."""
    source = column.type
    if pa.types.is_date64(source):
        return column.cast(pa.int64()).cast(pa.timestamp("ms"))
    if pa.types.is_date32(source):
        return column.cast(pa.timestamp("ms"))
    if pa.types.is_timestamp(source):
        return column.cast(pa.int64()).cast(pa.timestamp(source.unit))
    return None
