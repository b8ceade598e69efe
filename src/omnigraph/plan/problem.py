"""A pattern with what is known about its parts before an order is chosen."""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass

from omnigraph.catalog.bound import Comparison, Condition, Operator, PropertyValue
from omnigraph.core.values import FLOATS
from omnigraph.plan.pattern import Pattern, variables_of
from omnigraph.plan.physical import JoinKey, Keep, PlanOperator


@dataclass(frozen=True, slots=True)
class Placed:
    """Conditions by what they need: nothing, one variable of the pattern, or rows with several."""

    constant: tuple[Condition, ...]
    own: Mapping[str, tuple[Condition, ...]]
    shared: tuple[tuple[frozenset[str], Condition], ...]


@dataclass(frozen=True, slots=True)
class Way:
    """A traversal in one direction, and the rows it gives per input row."""

    start: str
    end: str
    is_forward: bool
    factor: float
    work: float  # what it reads to give them, per row
    keep: Keep


@dataclass(frozen=True, slots=True)
class Without:
    """A negation with its inside arranged, for one row."""

    on: tuple[str, ...]
    inner: tuple[PlanOperator, ...]
    factor: float
    starts_max: float  # the inside runs once per distinct value of `on`


@dataclass(frozen=True, slots=True)
class Problem:
    """A pattern with its factors."""

    pattern: Pattern
    placed: Placed
    scans: Mapping[str, float]
    shared: tuple[tuple[frozenset[str], Condition, float], ...]
    ways: tuple[tuple[Way, ...], ...]
    leads: Mapping[str, tuple[str, ...]]
    closings: tuple[tuple[float, float], ...]  # the factor and the work of each traversal between bound nodes
    negations: tuple[Without, ...]


def place(conditions: Iterable[Condition], introduced: Set[str]) -> Placed:
    """Return conditions sorted by where they can be tested first, each in the order given.

    A condition on one variable that is already bound is shared: no operator of this pattern introduces it.
    """
    constant: list[Condition] = []
    own: dict[str, list[Condition]] = {}
    shared: list[tuple[frozenset[str], Condition]] = []
    for condition in conditions:
        names = variables_of(condition)
        if not names:
            constant.append(condition)
        elif len(names) == 1 and names <= introduced:
            (name,) = names
            own.setdefault(name, []).append(condition)
        else:
            shared.append((names, condition))
    return Placed(tuple(constant), {name: tuple(own[name]) for name in own}, tuple(shared))


def join_key(condition: Condition, variable: str, bound: Collection[str]) -> JoinKey | None:
    """Return a condition as the key that joins a variable to bound ones, or `None` if it must stay a filter.

    Two numbers of different types are equal by value, and two floats may be equal with different bits (`0.0`
    and `-0.0`): keys, which are compared by their bits, have the same type, which is not a float.
    """
    if not isinstance(condition, Comparison) or condition.operator is not Operator.EQ:
        return None
    left, right = condition.left, condition.right
    if not isinstance(left, PropertyValue) or not isinstance(right, PropertyValue):
        return None
    if right.variable == variable:
        left, right = right, left
    is_between = left.variable == variable and right.variable in bound
    is_one_type = left.type.scalar is right.type.scalar and left.type.scalar not in FLOATS
    return JoinKey(left, right) if is_between and is_one_type else None
