"""Parameters as they are sent: what a program may give a graph in its storage, as JSON that means the same.

P1  What JSON has no value for is taken where the query declares that type, and refused as the storage would
    refuse it: bytes are no text there, and neither is a date.
P2  Of a stored query that a server does not list, no types are known: a value is then of the type that it is.
"""

import math
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime

from omnigraph.core.temporal import format_date, format_datetime
from omnigraph.core.values import Scalar, ValueType, is_text

Types = Mapping[str, ValueType]
_BITS_MAX = 128  # of a number that a message shows; what is larger fits no type


def sent_params(params: object, declared: Callable[[], Types | None]) -> dict[str, object] | None:
    """Return parameters as JSON values; `declared` is asked for their types where one is none already.

    Raises:
        ParameterError: a value fits no type, or not the declared one; or these are no parameters.
    """
    if params is None:
        return None
    if isinstance(params, Mapping) and all(_is_json(name, value) for name, value in params.items()):
        return dict(params)
    from omnigraph.catalog.params import bind_parameters  # late: few programs have such values

    if not isinstance(params, Mapping):
        return {**bind_parameters({}, params)}  # refuses it
    odd = {name: value for name, value in params.items() if not _is_json(name, value)}
    types = declared()
    if types is None:
        types = {name: _type_of(value) for name, value in odd.items()}
    known = {name: types[name] for name in odd if name in types}
    bound = bind_parameters(known, odd)
    return {**params, **{name: _sent(bound[name], type_) for name, type_ in known.items()}}


def _is_json(name: object, value: object) -> bool:
    items = value if isinstance(value, list | tuple) else (value,)
    return isinstance(name, str) and is_text(name) and all(map(_is_scalar, items))


def _is_scalar(value: object) -> bool:
    match value:
        case str():
            return is_text(value)
        case int():
            return value.bit_length() <= _BITS_MAX
        case float():
            return math.isfinite(value)
        case _:
            return value is None


def _type_of(value: object) -> ValueType:
    if isinstance(value, list | tuple):
        return ValueType(_type_of(next(iter(value), None)).scalar, is_list=True)
    match value:
        case bytes() | bytearray() | memoryview():
            return ValueType(Scalar.BLOB)
        case datetime():
            return ValueType(Scalar.DATETIME)
        case date():
            return ValueType(Scalar.DATE)
        case int():
            return ValueType(Scalar.I64)
        case float():
            return ValueType(Scalar.F64)
        case _:
            return ValueType(Scalar.STRING)


def _sent(bound: object, type_: ValueType) -> object:
    """Return a value that fits its type as JSON."""
    if isinstance(bound, list):
        return [_sent(item, type_.item) for item in bound]
    match bound, type_.scalar:
        case bytes(), _:
            return f"base64:{b64encode(bound).decode()}"
        case int(), Scalar.DATE:
            return format_date(bound)
        case int(), Scalar.DATETIME:
            return format_datetime(bound)
        case _:
            return bound
