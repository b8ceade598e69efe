"""What a read asks for, without an order; and which variables and tables its parts mention.

G1  A pattern has the variables, traversals, conditions and negations of the clauses that it is made from, and
    nothing else except a variable for each `$_`.
G2  The left end of a traversal is where a search along it starts: the end that is known first (languages.md,
    6.2), or the query's left end if both are. Only a reversible traversal may start at the right.
G3  `$_` binds nothing: it asks whether there is something at that end, and makes no rows. A traversal between
    two of them asks whether there is an edge at all, which is expressed as two negations around it.
"""

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from heapq import heappop, heappush
from itertools import count
from typing import TypeVar

from omnigraph.catalog.bound import (
    AggregateValue,
    AliasValue,
    Bm25Value,
    BoundBinding,
    BoundClause,
    BoundExpression,
    BoundFilter,
    BoundNegation,
    BoundRead,
    BoundTraversal,
    Comparison,
    Condition,
    Direction,
    EntityValue,
    LiteralValue,
    NearestValue,
    ParameterValue,
    PropertyValue,
    RrfValue,
    TextMatchValue,
)
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.params import describe
from omnigraph.core.clock import look_at_deadline

_NAMES = frozenset({"variable", "left", "right", "edge_variable"})
BoundPart = TypeVar("BoundPart")


def is_anonymous(variable: str) -> bool:
    """Return whether no query can name a variable, so that only its own clause mentions it."""
    return variable.startswith("__")


@dataclass(frozen=True, slots=True)
class PatternTraversal:
    """A traversal between two variables; `direction` is seen from the left one."""

    left: str
    right: str
    left_type: str
    right_type: str
    edge_type: str
    direction: Direction
    min_hops: int
    max_hops: int
    edge_binding: str | None

    @property
    def is_reversible(self) -> bool:
        """Whether both ends give the same pairs.

        Beyond the first hop a self-loop counts from the end where the search starts, so a lower bound above
        one has a different meaning from the other end. A search never starts at an unnamed end (G3).
        """
        return (self.min_hops == 1 or self.max_hops == 1) and not is_anonymous(self.right)


@dataclass(frozen=True, slots=True)
class PatternNegation:
    """A pattern that must not match; `on` are the outer variables that it mentions, in name order."""

    on: tuple[str, ...]
    pattern: "Pattern"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One clause list: node variables with their types, and everything asked of them.

    `nodes` and `edges` are the variables that the pattern introduces, `outer` the types of the nodes around
    it that it mentions. `is_inside` says that there is something around it.
    """

    nodes: Mapping[str, str]
    edges: Mapping[str, str]
    outer: Mapping[str, str]
    traversals: tuple[PatternTraversal, ...]
    conditions: tuple[Condition, ...]
    negations: tuple[PatternNegation, ...]
    is_inside: bool = False

    @property
    def only_reached(self) -> frozenset[str]:
        """The ends that `$_` stands for: scanning one would make rows out of what is only a question (G3).

        Inside a negation every variable is only a question, and may be scanned.
        """
        if self.is_inside:
            return frozenset()
        loose = (item for item in self.traversals if item.edge_binding is None)
        return frozenset(item.right for item in loose if is_anonymous(item.right))

    @property
    def mentioned(self) -> frozenset[str]:
        """Every variable that occurs, including inside negations."""
        names = {*self.nodes, *self.edges}
        for traversal in self.traversals:
            names.update((traversal.left, traversal.right))
        for condition in self.conditions:
            names |= variables_of(condition)
        for negation in self.negations:
            names.update(negation.on)
        return frozenset(names)


def pattern_of(read: BoundRead) -> Pattern:
    """Return what the match block of a checked read asks for."""
    names = (f"__{number}" for number in count(1))
    return _Builder(read.clauses, {}, frozenset(), names, is_inside=False).pattern()


def reach(reached: set[str], names: Iterable[str], leads: Mapping[str, Sequence[str]]) -> None:
    """Add variables, and those that can be reached from them, to the reached ones."""
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(leads.get(name, ()))


class _Builder:
    """A pattern under construction, from one clause list: the match of a query, or the inside of a `not`."""

    def __init__(
        self,
        clauses: Sequence[BoundClause],
        outer: Mapping[str, str],
        visible: frozenset[str],
        names: Iterator[str],
        *,
        is_inside: bool,
    ) -> None:
        self.clauses = clauses
        self.is_inside = is_inside
        self.outer = outer
        self.known = set(visible)
        self.names = names
        self.nodes: dict[str, str] = {}
        self.edges: dict[str, str] = {}
        self.traversals_given = [clause for clause in clauses if isinstance(clause, BoundTraversal)]
        self.traversals: list[PatternTraversal] = []
        self.matches: dict[str, list[Condition]] = {}  # of bindings, until their variable is known
        self.conditions: list[Condition] = []
        self.negations: list[PatternNegation] = []
        self.questions: list[PatternNegation] = []  # whether there is an edge at all (G3)
        for clause in clauses:
            if isinstance(clause, BoundBinding):
                self.matches.setdefault(clause.variable, []).extend(clause.matches)

    def pattern(self) -> Pattern:
        for name, type_name in self.roots():
            self.node(name, type_name)
        self.traverse_known()
        for matches in self.matches.values():  # those of variables from outside
            self.conditions.extend(matches)
        for clause in self.clauses:
            look_at_deadline()
            match clause:
                case BoundFilter(Comparison(left=TextMatchValue() as predicate)):  # `search(...) = true`
                    self.conditions.append(predicate)
                case BoundFilter(condition):
                    self.conditions.append(condition)
                case BoundNegation():
                    self.negations.append(self.negation(clause))
                case _:
                    pass
        return Pattern(
            self.nodes,
            self.edges,
            self.outer,
            tuple(self.traversals),
            tuple(self.conditions),
            (*self.negations, *self.questions),
            self.is_inside,
        )

    # Where searches start

    def roots(self) -> list[tuple[str, str]]:
        """Return one variable of each group connected by traversals, unless one is known from outside.

        It is the one bound first; without a binding, the left end of the first traversal.
        """
        leads: dict[str, list[str]] = {}
        for traversal in self.traversals_given:
            if traversal.left is not None and traversal.right is not None:
                leads.setdefault(traversal.left, []).append(traversal.right)
                leads.setdefault(traversal.right, []).append(traversal.left)
        reached: set[str] = set()
        reach(reached, self.known, leads)
        bindings: list[tuple[int, str, str]] = []
        ends: list[tuple[int, str, str]] = []
        for position, clause in enumerate(self.clauses):
            match clause:
                case BoundBinding(variable, type_name):
                    bindings.append((position, variable, type_name))
                case BoundTraversal(left=str() as left):
                    ends.append((position, left, clause.left_type))
                case BoundTraversal(right=str() as right):
                    ends.append((position, right, clause.right_type))
                case _:
                    pass
        roots: list[tuple[int, str, str]] = []
        for position, name, type_name in bindings + ends:
            if name not in reached:
                roots.append((position, name, type_name))
                reach(reached, (name,), leads)
        return [(name, type_name) for _, name, type_name in sorted(roots)]

    def traverse_known(self) -> None:
        """Take the traversals that have a known end, in source order; each makes its other end known.

        This goes round until all are taken: one whose end becomes known after its turn waits for the next
        round. Each is looked at when one of its ends becomes known, not in every round.
        """
        ends = [{clause.left, clause.right} - {None} for clause in self.traversals_given]
        touching: dict[str | None, list[int]] = {}
        turns: list[tuple[int, int]] = []
        for position, named in enumerate(ends):
            if not named or not named.isdisjoint(self.known):
                turns.append((0, position))
            else:
                for name in named:
                    touching.setdefault(name, []).append(position)
        seen = {position for _, position in turns}
        while turns:
            look_at_deadline()
            turn, position = heappop(turns)
            self.traverse(self.traversals_given[position])
            for name in ends[position]:
                for other in touching.pop(name, ()):
                    if other not in seen:
                        seen.add(other)
                        heappush(turns, (turn + (other < position), other))
        assert len(seen) == len(ends), "every group of connected variables has a known one"

    def traverse(self, clause: BoundTraversal) -> None:
        left, left_type = clause.left, clause.left_type
        right, right_type = clause.right, clause.right_type
        direction = clause.direction
        if left not in self.known and right in self.known:
            left, left_type, right, right_type = right, right_type, left, left_type
            direction = direction.reversed
        is_unnamed = left is None and right is None and not self.is_inside
        if is_unnamed and direction is Direction.BOTH and clause.edge_variable is not None:
            direction = Direction.OUT  # each edge once, though it could be followed both ways
        traversal = PatternTraversal(
            self.node(left, left_type),
            self.node(right, right_type),
            left_type,
            right_type,
            clause.edge_type,
            direction,
            clause.hops_min,
            clause.hops_max if left_type == right_type else 1,  # an edge between two types cannot chain
            clause.edge_variable,
        )
        if clause.edge_variable is not None:
            self.edges[clause.edge_variable] = clause.edge_type
            self.known.add(clause.edge_variable)
        elif is_unnamed:
            self.questions.append(self.question(traversal))
            return
        self.traversals.append(traversal)

    def node(self, name: str | None, type_name: str) -> str:
        """Return a variable, making it known; for `$_` a new one."""
        variable = next(self.names) if name is None else name
        if variable not in self.known:
            self.known.add(variable)
            self.nodes[variable] = type_name
            self.conditions.extend(self.matches.pop(variable, ()))
        return variable

    # Negations

    def question(self, traversal: PatternTraversal) -> PatternNegation:
        """Return the question of whether such an edge exists (G3)."""
        ends = {name: self.nodes.pop(name) for name in (traversal.left, traversal.right)}
        there_is = Pattern(ends, {}, {}, (traversal,), (), ())
        there_is_none = Pattern({}, {}, {}, (), (), (PatternNegation((), there_is),))
        return PatternNegation((), there_is_none)

    def negation(self, clause: BoundNegation) -> PatternNegation:
        inside = frozenset(named_in(clause.clauses))
        hidden = sorted((inside & self.known) - clause.visible)
        clauses = renamed(clause.clauses, {name: next(self.names) for name in hidden})
        around = ChainMap(self.nodes, dict(self.outer))
        nodes = {name: around[name] for name in sorted(clause.visible) if name in around}
        pattern = _Builder(clauses, nodes, clause.visible, self.names, is_inside=True).pattern()
        return PatternNegation(tuple(sorted(pattern.mentioned & self.known)), pattern)


def named_in(part: object) -> Iterator[str]:
    """Yield the variables that bound clauses name, with those of nested blocks."""
    if isinstance(part, tuple):
        for item in part:
            yield from named_in(item)
    elif is_dataclass(part) and not isinstance(part, type):
        for field in fields(part):
            value = getattr(part, field.name)
            if isinstance(value, str) and field.name in _NAMES:
                yield value
            else:
                yield from named_in(value)


def renamed(clause: BoundPart, names: Mapping[str, str]) -> BoundPart:
    """Return a bound clause or expression with other names for some of its variables.

    A `not` block is checked before the clauses after it, so its own variables may share a name with
    variables that only those clauses bind. In a plan the block runs last, and the two must not mix.
    """
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


def variables_of(value: BoundExpression | Condition) -> frozenset[str]:
    """Return the variables of nodes and edges that a value is made from, without parameters."""
    match value:
        case PropertyValue(variable=name) | EntityValue(variable=name):
            return frozenset((name,))
        case LiteralValue() | ParameterValue():
            return frozenset()
        case Comparison(left=left, right=right) | RrfValue(first=left, second=right):
            return variables_of(left) | variables_of(right)
        case AggregateValue(argument=argument):
            return variables_of(argument)
        case AliasValue(projection=projection):
            return frozenset() if projection is None else variables_of(projection)
        case TextMatchValue() | NearestValue() | Bm25Value():
            return variables_of(value.field) | variables_of(value.query)


def tables_of(read: BoundRead, catalog: Catalog) -> tuple[str, ...]:
    """Return the keys of the tables that a read uses, sorted.

    Only the pins of these decide what a physical plan looks like.
    """
    return tuple(sorted(f"{fact.kind}:{fact.type_name}" for fact in describe(read, catalog).reads))
