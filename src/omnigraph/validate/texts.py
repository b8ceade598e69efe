"""Text as input for every type, as CSV has it: what JSON would write without quotes, and null for no text.

Numbers, `true` and `false` are written as in JSON, in addition to `NaN` and the infinities; lists and vectors
as JSON arrays; dates and Blobs like JSON strings. A text that does not fit its type is passed on as it is, so
that `coerce` refuses it.
"""

import re

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow_schema import arrow_type
from omnigraph.catalog.model import Property
from omnigraph.core.values import FLOATS, INTEGERS, Scalar, ValueType
from omnigraph.validate.coerce import Problems, coerce_column
from omnigraph.validate.columns import Column
from omnigraph.validate.tables import coerce_values

_INTEGER = r"^-?[0-9]{1,18}$"  # within 64 bits; longer ones are read one by one
_NUMBER = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_LONG_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_ANY_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_DIGITS_MAX = 400  # no number that fits 64 bits needs more
_WORDS: dict[str, object] = {"true": True, "false": False}
_FLOAT_WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def coerce_texts(column: Column, item: Property, where: str) -> tuple[Column, Problems]:
    """Return a column of texts in the type of its property, and the rows with a refused text and why."""
    if not pa.types.is_string(column.type):
        return coerce_values(column, item, where)  # a constant of a mapping
    converted = _whole(column, item.type)
    if converted is not None:
        return converted, []
    return coerce_column([_value(text, item.type) for text in column.to_pylist()], item, where)


def _whole(column: Column, type_: ValueType) -> Column | None:
    """Return a column converted in one go, or `None` where texts must be converted one by one."""
    if type_.is_list or type_.is_vector or type_.scalar in {Scalar.DATE, Scalar.DATETIME, Scalar.BLOB}:
        return None
    target = arrow_type(type_)
    try:
        if type_.scalar is Scalar.STRING:
            return column
        if type_.scalar in INTEGERS and _all_match(column, _INTEGER):
            return column.cast(pa.int64()).cast(target)
        if type_.scalar in FLOATS and _all_match(column, _NUMBER):
            return column.cast(pa.float64()).cast(target, safe=False)
    except pa.ArrowException:
        pass  # one of them does not fit: the slow path says which
    return None


def _all_match(column: Column, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(column, pattern)).as_py() is not False


def _value(text: str | None, type_: ValueType) -> object:
    """Return what a text stands for, or the text itself where it does not fit its type."""
    if text is None:
        return None
    if type_.is_list or type_.is_vector:
        return _array(text)
    scalar = type_.scalar
    if scalar in INTEGERS and _LONG_INTEGER.fullmatch(text) and len(text) <= _DIGITS_MAX:
        return int(text)
    if scalar in FLOATS:
        if _ANY_NUMBER.fullmatch(text):
            return float(text)
        return _FLOAT_WORDS.get(text, text)
    return _WORDS.get(text, text) if scalar is Scalar.BOOL else text


def _array(text: str) -> object:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value if isinstance(value, list) else text
