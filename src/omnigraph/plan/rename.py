"""Other names for the variables of clauses.

A `not` block is checked before the clauses behind it, so its own variables may be called like variables that
only those clauses bind. In a plan the block runs last, and the two must not meet.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

_NAMES = frozenset({"variable", "left", "right", "edge_variable"})
Clause = TypeVar("Clause")


def renamed(clause: Clause, names: Mapping[str, str]) -> Clause:
    """Return a bound clause or expression with some of its variables called otherwise."""
    if isinstance(clause, tuple):
        return type(clause)(renamed(item, names) for item in clause)
    if not is_dataclass(clause) or isinstance(clause, type):
        return clause
    changes: dict[str, object] = {}
    for field in fields(clause):
        value = getattr(clause, field.name)
        if isinstance(value, str) and field.name in _NAMES:
            changes[field.name] = names.get(value, value)
        elif isinstance(value, frozenset) and field.name == "visible":
            changes[field.name] = frozenset(names.get(name, name) for name in value)
        elif isinstance(value, tuple) or is_dataclass(value):
            changes[field.name] = renamed(value, names)
    return replace(clause, **changes)
