"""The types of the two languages, how they compare with each other, and JSON that may come from elsewhere."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn

from omnigraph.core.limits import (
    I32_MAX,
    I32_MIN,
    I64_MAX,
    I64_MIN,
    JSON_DIGITS_MAX,
    U32_MAX,
    U64_MAX,
)

TOO_MANY_DIGITS = f"a number has more than {JSON_DIGITS_MAX} digits"


class Scalar(StrEnum):
    """The item of every type; the text is the keyword of both languages."""

    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"
    VECTOR = "Vector"


INTEGERS = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})
FLOATS = frozenset({Scalar.F32, Scalar.F64})
NUMBERS = INTEGERS | FLOATS
INTEGER_WIDTHS = {
    Scalar.I32: (I32_MIN, I32_MAX),
    Scalar.I64: (I64_MIN, I64_MAX),
    Scalar.U32: (0, U32_MAX),
    Scalar.U64: (0, U64_MAX),
}
SCALAR_WORDS = {str(scalar): scalar for scalar in Scalar if scalar is not Scalar.VECTOR}


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a property, parameter or expression.

    `dimension` is set only for vectors. `enum_values` is sorted and set only for enums, whose scalar is
    `String`: outside of value checks an enum behaves as one.
    """

    scalar: Scalar
    nullable: bool = False
    is_list: bool = False
    enum_values: tuple[str, ...] | None = None
    dimension: int | None = None

    @property
    def is_number(self) -> bool:
        """Whether this is a single number."""
        return not self.is_list and self.scalar in NUMBERS

    @property
    def is_plain_string(self) -> bool:
        """Whether this is a single text; enums count."""
        return not self.is_list and self.scalar is Scalar.STRING

    @property
    def is_vector(self) -> bool:
        """Whether this is a vector."""
        return self.scalar is Scalar.VECTOR

    @property
    def item(self) -> "ValueType":
        """The type of a list's items."""
        return ValueType(self.scalar)

    def accepts(self, other: "ValueType") -> bool:
        """Return whether the two are compatible: both lists or neither, the same scalar or two numbers.

        Nullability and enum sets are ignored: they concern values, not types.
        """
        if self.is_list != other.is_list or self.dimension != other.dimension:
            return False
        return self.scalar is other.scalar or (self.scalar in NUMBERS and other.scalar in NUMBERS)

    def __str__(self) -> str:
        """Return the type as written in a schema."""
        if self.enum_values is not None:
            text = f"enum({', '.join(self.enum_values)})"
        elif self.dimension is not None:
            text = f"Vector({self.dimension})"
        else:
            text = f"[{self.scalar}]" if self.is_list else str(self.scalar)
        return f"{text}?" if self.nullable else text


HALF_A_PAIR = "the text is not valid Unicode: it has half of a surrogate pair"


def is_text(value: str) -> bool:
    """Return whether a text can be stored or sent: a Python string may contain half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


_JSON_NAMES = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


def json_name(value: object) -> str:
    """Return what JSON calls the type of a value."""
    return "null" if value is None else _JSON_NAMES.get(type(value), type(value).__name__)


def named(value: object) -> str:
    """Return what kind of thing a Python value is, for a message."""
    if value is None:
        return "None"
    if isinstance(value, list | tuple) and value:
        return f"a {type(value).__name__} of {type(value[0]).__name__}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def is_count(value: object, least: int = 0) -> bool:
    """Say whether a value is a whole number that counts something; a truth value is none."""
    return type(value) is int and least <= value <= I64_MAX


def shown(value: object) -> str:
    """Return a value as a program writes it, for a message; what it is, where that is long or fails.

    Python refuses to write a number of more than 4,300 digits, and other classes are anybody's.
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - it is in a message about something else
        return named(value)
    return text if len(text) <= SHOWN_MAX else named(value)


SHOWN_MAX = 80  # characters of a value in a message: more would hide what is said about it

Json = dict[str, object]  # a document to write


def read_json(
    text: str | bytes,
    *,
    members: Callable[[list[tuple[str, Any]]], Any] | None = None,
    constant: Callable[[str], Any] | None = None,
) -> Any:  # noqa: ANN401 - whatever the text says
    """Return the value of a text; `members` makes objects, `constant` is for `NaN` and the like.

    Raises:
        ValueError: it is not JSON, is nested too deeply, or has a number with too many digits.
    """
    try:
        return json.loads(text, object_pairs_hook=members, parse_constant=constant, parse_int=whole_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def whole_number(text: str) -> int:
    """Return what digits stand for.

    Raises:
        ValueError: there are too many of them; Python would refuse them with advice to its programmers.
    """
    if len(text) > JSON_DIGITS_MAX:
        raise ValueError(TOO_MANY_DIGITS)
    return int(text)


def value_failure(error: Exception) -> str:
    """Return what is wrong with a value that a parser of somebody else's refused."""
    return TOO_MANY_DIGITS if "set_int_max_str_digits" in str(error) else str(error)


def read_strict_json(text: str | bytes) -> Any:  # noqa: ANN401 - whatever the text says
    """Return the value of a text in which every member has one value and every number is one of JSON.

    Raises:
        ValueError: it is not JSON, gives a member twice, or has half a surrogate pair.
    """
    if isinstance(text, bytes):
        text = text.decode()
    try:
        value = _STRICT.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if "\\u" in text and not _has_whole_texts(value):
        raise ValueError("a text has half of a surrogate pair")
    return value


def _has_whole_texts(value: object) -> bool:
    try:
        return is_text(json.dumps(value, ensure_ascii=False))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _distinct(members: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a key is given twice")
    return found


# Made once: a request is shorter than what making a decoder takes.
_STRICT = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_constant=_refuse_constant, parse_int=whole_number
)
