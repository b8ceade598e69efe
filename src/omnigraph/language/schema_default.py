"""The rules of `@default(value)`: which properties may have one, and which values fit them.

D1  A default that is accepted can be written: a row that takes it breaks no rule of its own property.
"""

import math
import struct
from collections.abc import Iterator, Sequence

from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import ExecutionError
from omnigraph.core.temporal import parse_date, parse_datetime
from omnigraph.core.values import FLOATS, INTEGER_WIDTHS, INTEGERS, Scalar, ValueType, json_name
from omnigraph.language.parser import clip
from omnigraph.language.pattern import has_match, pattern_error
from omnigraph.language.schema_ast import (
    Annotation,
    AnnotationValue,
    Constraint,
    ListArgument,
    LiteralArgument,
    NameArgument,
    PropertyDeclaration,
    RangeArgument,
    find,
)


def check_default(
    annotation: Annotation, item: PropertyDeclaration, constraints: Sequence[Constraint]
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the default of a property; `constraints` are those that name it (D1)."""
    name, type_ = item.name.text, item.type.value_type
    if annotation.argument is None:  # S41
        yield Diagnostic(f"@default on '{name}' needs a value, as in @default(0)", annotation.span)
        return
    fault = _misplaced(item, constraints)
    if fault:  # S40
        yield Diagnostic(f"@default on '{name}': {fault}", annotation.span)
        return
    fault = _unfit(annotation.argument, type_)
    if fault:  # S41
        yield Diagnostic(f"@default on '{name}': {fault}", annotation.argument.span)
        return
    for rule in constraints:
        if fault := _broken(rule, type_, annotation.argument):  # S42
            yield Diagnostic(f"@default on '{name}': {fault}", annotation.argument.span)


def _misplaced(item: PropertyDeclaration, constraints: Sequence[Constraint]) -> str | None:
    type_ = item.type.value_type
    if type_.scalar is Scalar.BLOB or type_.is_vector:
        return f"a {type_.scalar} cannot have one"
    if find(item.annotations, "key") or any(rule.name == "key" for rule in constraints):
        return "every row gives its own key"
    return None


def _unfit(argument: NameArgument | LiteralArgument | ListArgument, type_: ValueType) -> str | None:
    """Return why a value is not one of the type, or `None` if it is."""
    match argument:
        case ListArgument(items) if type_.is_list:
            faults = (_unfit_literal(item.value, type_.item) for item in items)
            return next((fault for fault in faults if fault), None)
        case LiteralArgument(value) if not type_.is_list:
            return _unfit_literal(value, type_)
        case NameArgument(name) if type_.enum_values is not None:
            return _unfit_literal(name, type_)
        case NameArgument(name) if type_.scalar is Scalar.STRING and not type_.is_list:
            return f'a text is written in quotes, as in @default("{clip(name)}")'
        case NameArgument(name):
            return f"{_shown(name)} is not a value of {type_}"
        case ListArgument():
            return f"expected {type_}, got a list"
        case LiteralArgument():
            return f"expected {type_}, which is written in brackets"


def _unfit_literal(value: AnnotationValue, type_: ValueType) -> str | None:
    scalar = type_.scalar
    if type_.enum_values is not None and isinstance(value, str):
        known = ", ".join(type_.enum_values)
        return None if value in type_.enum_values else f"{_shown(value)} is not one of {known}"
    if scalar in {Scalar.DATE, Scalar.DATETIME} and isinstance(value, str):
        return _unfit_moment(value, scalar)
    if isinstance(value, _LITERALS[scalar]) and isinstance(value, bool) == (scalar is Scalar.BOOL):
        return _too_large(value, scalar)
    in_quotes = _spelled(value)
    if type_.enum_values is not None and in_quotes in type_.enum_values:
        return f'{in_quotes} is written in quotes here, as in @default("{in_quotes}")'
    return f"expected {type_}, got {json_name(value)} {_shown(value)}"


def _spelled(value: AnnotationValue) -> str:
    """Return a number or a boolean as it was written, or nearly so."""
    return str(value).lower() if isinstance(value, bool) else str(value)


_LITERALS: dict[Scalar, type | tuple[type, ...]] = {
    Scalar.STRING: str,
    Scalar.BOOL: bool,
    Scalar.DATE: (),
    Scalar.DATETIME: (),
    **dict.fromkeys(INTEGERS, int),
    **dict.fromkeys(FLOATS, (int, float)),
}


def _unfit_moment(text: str, scalar: Scalar) -> str | None:
    try:
        (parse_date if scalar is Scalar.DATE else parse_datetime)(text)
    except ExecutionError as error:
        return error.message
    return None


def _too_large(value: AnnotationValue, scalar: Scalar) -> str | None:
    if scalar in INTEGERS:
        low, high = INTEGER_WIDTHS[scalar]
        return None if low <= int(value) <= high else f"{_shown(value)} does not fit {scalar}"
    if scalar in FLOATS:
        try:
            stored = float(value)
            if scalar is Scalar.F32:
                struct.pack("<f", stored)
        except OverflowError:
            return f"a number of this size does not fit {scalar}"
        return None if math.isfinite(stored) else f"a number of this size does not fit {scalar}"
    return None


def _broken(
    rule: Constraint, type_: ValueType, argument: NameArgument | LiteralArgument | ListArgument
) -> str | None:
    """Return how a value that fits breaks a constraint; one that is itself wrong is reported elsewhere."""
    match rule.arguments, argument:
        case (NameArgument(), RangeArgument(low, high)), LiteralArgument(int() | float() as number):
            is_within = (low is None or low <= number) and (high is None or number <= high)
            return f"{_shown(number)} is outside of its @range" if type_.is_number and not is_within else None
        case (
            (NameArgument(), LiteralArgument(str() as pattern)),
            LiteralArgument(str() as text) | NameArgument(text),
        ):
            is_checked = type_.is_plain_string and not pattern_error(pattern)
            is_broken = is_checked and not has_match(pattern, text)
            return f"{_shown(text)} does not match its @check" if is_broken else None
        case _:
            return None


def _shown(value: AnnotationValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{clip(value)}'" if isinstance(value, str) else clip(str(value))
