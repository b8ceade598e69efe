"""JSON to the parameters of a query: one strict mode, the same on every surface."""

import math
import re
from collections.abc import Mapping
from datetime import date
from typing import NoReturn

from omnigraph.catalog.scope import hinting
from omnigraph.core.errors import ExecutionError, ParameterError
from omnigraph.core.limits import I32_MAX, I32_MIN, I64_MAX, I64_MIN, U32_MAX
from omnigraph.core.temporal import days_of, millis_of, parse_date, parse_datetime
from omnigraph.core.values import FLOATS, INTEGERS, Scalar, ValueType, is_text, json_name

ParameterInput = str | int | float | bool | list[str | int | float | bool] | None
_DECIMAL_INTEGER = re.compile(r"-?[0-9]{1,20}")
_RANGES = {
    Scalar.I32: (I32_MIN, I32_MAX),
    Scalar.I64: (I64_MIN, I64_MAX),
    Scalar.U32: (0, U32_MAX),
    Scalar.U64: (0, I64_MAX),  # the languages' integers are signed: the upper half of U64 cannot be written
}
_HALF_A_PAIR = "the text is not valid Unicode: it has half of a surrogate pair"


def bind_parameters(declared: Mapping[str, ValueType], given: object) -> dict[str, ParameterInput]:
    """Return a value for every declared parameter; omitted nullable ones are null.

    A `Date` becomes days and a `DateTime` milliseconds since the epoch.

    Raises:
        ParameterError: naming the parameter that is missing, undeclared or of the wrong type.
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise ParameterError(f"params must be an object, got {json_name(given)}")
    for name in given:
        if name not in declared:
            hint = hinting(str(name), declared)
            raise ParameterError(f"param '{name}': not declared by the query{hint}", name=str(name))
    return {name: _bind(name, type_, given) for name, type_ in declared.items()}


def _bind(name: str, type_: ValueType, given: Mapping[str, object]) -> ParameterInput:
    if name not in given:
        if type_.nullable:
            return None
        raise ParameterError(f"parameter '{name}' not provided", name=name)
    value = given[name]
    if value is None:
        if type_.nullable:
            return None
        _fail(name, f"expected {type_}, got null")
    if type_.is_list or type_.is_vector:
        return _bind_items(name, type_, value)
    return _bind_scalar(name, type_.scalar, value)


def _bind_items(name: str, type_: ValueType, value: object) -> list[str | int | float | bool]:
    if not isinstance(value, list | tuple):
        _fail(name, f"expected {_expected(type_)}, got {json_name(value)}")
    if type_.dimension is not None and len(value) != type_.dimension:
        _fail(name, f"expected {_numbers(type_.dimension)}, got {len(value)}")
    scalar = Scalar.F32 if type_.is_vector else type_.scalar
    if scalar is Scalar.STRING and set(map(type, value)) == {str}:  # there may be very many
        if not is_text("".join(value)):
            position = next(position for position, item in enumerate(value) if not is_text(item))
            _fail(f"{name}[{position}]", _HALF_A_PAIR, name)
        return list(value)
    return [_bind_scalar(f"{name}[{position}]", scalar, item, name) for position, item in enumerate(value)]


def _bind_scalar(
    where: str, scalar: Scalar, value: object, name: str | None = None
) -> str | int | float | bool:
    """Return one value; `where` is the parameter or one of its items."""
    name = name or where
    if scalar in INTEGERS:
        return _integer(where, scalar, value, name)
    if scalar in FLOATS:
        return _float(where, value, name)
    if scalar in {Scalar.DATE, Scalar.DATETIME}:
        return _moment(where, scalar, value, name)
    wanted = bool if scalar is Scalar.BOOL else str
    if not isinstance(value, wanted):
        _fail(where, f"expected {json_name(wanted())}, got {json_name(value)}", name)
    if isinstance(value, str) and not is_text(value):
        _fail(where, _HALF_A_PAIR, name)
    return value


def _moment(where: str, scalar: Scalar, value: object, name: str) -> int:
    """Return a `Date` as days and a `DateTime` as milliseconds, from a text or from Python's own type."""
    parse, number = (parse_date, days_of) if scalar is Scalar.DATE else (parse_datetime, millis_of)
    if not isinstance(value, str | date):
        _fail(where, f"expected string, got {json_name(value)}", name)
    try:
        return parse(value) if isinstance(value, str) else number(value)
    except ExecutionError as error:
        _fail(where, error.message, name)


def _integer(where: str, scalar: Scalar, value: object, name: str) -> int:
    if isinstance(value, str) and _DECIMAL_INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        shown = f"{json_name(value)} {value!r:.40}" if isinstance(value, str | float) else json_name(value)
        _fail(where, f"expected {scalar}: an integer or a string of digits, got {shown}", name)
    low, high = _RANGES[scalar]
    if not low <= value <= high:
        _fail(where, f"{_clipped(value)} is not between {low} and {high}", name)
    return value


def _float(where: str, value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _fail(where, f"expected number, got {json_name(value)}", name)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        _fail(where, "expected a finite number", name)
    return number


def _fail(where: str, message: str, name: str | None = None) -> NoReturn:
    owner = name or where
    place = f"param '{owner}'" if owner == where else f"param '{owner}': item {where.removeprefix(owner)}"
    raise ParameterError(f"{place}: {message}", name=owner)


def _expected(type_: ValueType) -> str:
    return f"an array of {type_.scalar if type_.dimension is None else _numbers(type_.dimension)}"


def _numbers(count: int) -> str:
    return "1 number" if count == 1 else f"{count} numbers"


def _clipped(value: int) -> str:
    """Return an integer without the interpreter's limit on printing very large ones."""
    return str(value) if value.bit_length() <= 128 else "an integer of more than 128 bits"
