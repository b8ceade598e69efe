"""The rules of constraints: which columns they may name, and their arguments (S13 to S24)."""

from collections.abc import Iterator, Mapping

from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.limits import DIAGNOSTIC_EXCERPT_MAX
from omnigraph.core.values import Scalar, ValueType
from omnigraph.language.schema_ast import Constraint, LiteralArgument, NameArgument, RangeArgument

ENDPOINT_COLUMNS = frozenset({"src", "dst"})
_NODE_ONLY = frozenset({"key", "range", "check"})
_TWO_ARGUMENTS = 2


def column_fault(constraint: str, type_: ValueType) -> str | None:
    """Return why a column of this type cannot carry key, unique or index, or `None` if it can."""
    if type_.is_list:  # S15
        return f"a list cannot be used, and this is {type_}"
    if type_.scalar is Scalar.BLOB:  # S17
        return "a Blob cannot be used"
    if type_.is_vector and constraint != "index":  # S16
        return "a Vector cannot be used"
    if type_.nullable and constraint == "key":  # S14
        return f"a key is never null, and this is {type_}"
    return None


def check_constraint(
    constraint: Constraint, types: Mapping[str, ValueType], *, owner: str, is_edge: bool
) -> Iterator[Diagnostic]:
    """Yield what is wrong with one constraint of a body."""
    if is_edge and constraint.name in _NODE_ONLY:  # S18, S19
        yield Diagnostic(f"@{constraint.name} is not allowed on an edge ('{owner}')", constraint.span)
    elif constraint.name == "range":
        yield from _range(constraint, types, owner)
    elif constraint.name == "check":
        yield from _check(constraint, types, owner)
    else:
        endpoints = ENDPOINT_COLUMNS if is_edge else frozenset[str]()
        yield from _columns(constraint, types, owner, endpoints)


def _columns(
    constraint: Constraint, types: Mapping[str, ValueType], owner: str, endpoints: frozenset[str]
) -> Iterator[Diagnostic]:
    for argument in constraint.arguments:
        if not isinstance(argument, NameArgument):  # S24
            yield Diagnostic(f"@{constraint.name} takes names of properties", argument.span)
        elif argument.name in types:
            fault = column_fault(constraint.name, types[argument.name])
            if fault:
                yield Diagnostic(f"@{constraint.name} on '{argument.name}': {fault}", argument.span)
        elif argument.name not in endpoints:
            yield _unknown(constraint, argument, types, owner)


def _range(constraint: Constraint, types: Mapping[str, ValueType], owner: str) -> Iterator[Diagnostic]:
    target = _target(constraint, types)
    if target is None:
        yield from _bad_target(constraint, types, owner)
        return
    bounds = constraint.arguments[1]
    if not isinstance(bounds, RangeArgument):  # S22
        yield Diagnostic("the second argument of @range is a range such as 0..100", bounds.span)
    elif not types[target.name].is_number:  # S20
        message = f"@range on '{target.name}': only a number has a range, not {types[target.name]}"
        yield Diagnostic(message, target.span)
    elif bounds.low is not None and bounds.high is not None and bounds.low > bounds.high:  # S22
        yield Diagnostic(f"@range on '{target.name}': {bounds.low} is above {bounds.high}", bounds.span)


def _check(constraint: Constraint, types: Mapping[str, ValueType], owner: str) -> Iterator[Diagnostic]:
    target = _target(constraint, types)
    if target is None:
        yield from _bad_target(constraint, types, owner)
        return
    pattern = constraint.arguments[1]
    if not isinstance(pattern, LiteralArgument) or not isinstance(pattern.value, str):  # S23
        yield Diagnostic("the second argument of @check is a pattern in quotes", pattern.span)
    elif not types[target.name].is_plain_string:  # S21
        message = f"@check on '{target.name}': only a String is checked, not {types[target.name]}"
        yield Diagnostic(message, target.span)
    elif fault := pattern_error(pattern.value):  # S23
        help = "patterns are RE2: no look-around, no back-references"
        yield Diagnostic(
            f"the pattern of @check on '{target.name}' does not compile: {fault}", pattern.span, help
        )


def _target(constraint: Constraint, types: Mapping[str, ValueType]) -> NameArgument | None:
    """Return the property of a range or check whose number of arguments is right."""
    target = constraint.arguments[0]
    if len(constraint.arguments) != _TWO_ARGUMENTS or not isinstance(target, NameArgument):
        return None
    return target if target.name in types else None


def _bad_target(constraint: Constraint, types: Mapping[str, ValueType], owner: str) -> Iterator[Diagnostic]:
    target = constraint.arguments[0]
    if len(constraint.arguments) != _TWO_ARGUMENTS:  # S22, S23
        yield Diagnostic(f"@{constraint.name} takes exactly two arguments", constraint.span)
    elif not isinstance(target, NameArgument):  # S24
        yield Diagnostic(f"the first argument of @{constraint.name} is the name of a property", target.span)
    else:
        yield _unknown(constraint, target, types, owner)


def _unknown(
    constraint: Constraint, argument: NameArgument, types: Mapping[str, ValueType], owner: str
) -> Diagnostic:
    known = ", ".join(sorted(types)) or "none"  # S13
    message = f"@{constraint.name} names an unknown property '{argument.name}' of '{owner}'"
    return Diagnostic(message, argument.span, f"properties are: {known}")


def pattern_error(pattern: str) -> str | None:
    """Return why a pattern of `@check` does not compile, or `None` if it does.

    Patterns are RE2, whose time is linear in the text. Arrow checks values with them, so Arrow compiles them.
    """
    # Arrow is imported late: most sources that are parsed have no pattern.
    import pyarrow as pa
    from pyarrow._compute import MatchSubstringOptions, call_function

    try:
        # Matching a null is enough to compile the pattern; to make arrays of lists, pyarrow imports pandas.
        # Importing `pyarrow.compute` would generate 290 functions, of which one is called.
        call_function("match_substring_regex", [pa.nulls(1, pa.string())], MatchSubstringOptions(pattern))
    except pa.ArrowInvalid as error:
        # The text repeats the pattern, which may be as long as its author likes.
        return str(error).removeprefix("Invalid regular expression: ")[:DIAGNOSTIC_EXCERPT_MAX]
    return None
