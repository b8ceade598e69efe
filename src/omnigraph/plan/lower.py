"""Bound query to logical plan.

The result does not depend on statistics: it is the meaning of the query, in the order of the languages
specification, 6.2. Better orders are rewrites of it.
"""

from collections.abc import Iterable, Iterator
from itertools import count

from omnigraph.catalog.bound import (
    BoundAssignment,
    BoundBinding,
    BoundClause,
    BoundDelete,
    BoundFilter,
    BoundInsert,
    BoundMutation,
    BoundNegation,
    BoundPredicate,
    BoundQuery,
    BoundStatement,
    BoundTraversal,
    BoundUpdate,
    Comparison,
    Direction,
    Expression,
    IdValue,
    Operator,
    TextMatchValue,
)
from omnigraph.catalog.model import EdgeType
from omnigraph.core.deadline import look_at_deadline
from omnigraph.plan.logical import (
    AntiJoin,
    ColumnPredicate,
    Condition,
    DeleteOp,
    Expand,
    Filter,
    InsertOp,
    MutationOp,
    MutationPlan,
    NodeScan,
    Operation,
    Plan,
    ReadPlan,
    UpdateOp,
)
from omnigraph.plan.rename import renamed

_ENDPOINT_COLUMNS = {"from": "src", "to": "dst"}


def lower(bound: BoundQuery) -> Plan:
    """Return the plan of a checked query."""
    if isinstance(bound, BoundMutation):
        operations = tuple(_statement(statement) for statement in bound.statements)
        return MutationPlan(bound.name, bound.parameters, operations)
    names = (f"__{number}" for number in count(1))
    pipeline = tuple(_Lowering(bound.clauses, frozenset(), names).operations())
    return ReadPlan(bound.name, bound.parameters, pipeline, bound.projections, bound.orderings, bound.limit)


class _Lowering:
    """One clause list: the match of a query, or the inside of a `not`."""

    def __init__(self, clauses: Iterable[BoundClause], bound: frozenset[str], names: Iterator[str]) -> None:
        self.clauses = tuple(clauses)
        self.outer = bound
        self.bound = set(bound)
        self.names = names
        self.types: dict[str, str] = {}
        self.filters: dict[str, list[Condition]] = {}
        for clause in self.clauses:
            if isinstance(clause, BoundBinding):
                self.types.setdefault(clause.variable, clause.type_name)
                self.filters.setdefault(clause.variable, []).extend(clause.matches)

    def operations(self) -> Iterator[Operation]:
        yield from self.roots()
        yield from self.expansions()
        yield from self.conditions()
        for clause in self.clauses:
            if isinstance(clause, BoundNegation):
                look_at_deadline()
                hidden = sorted(self.bound - clause.visible)
                clauses = renamed(clause.clauses, {name: next(self.names) for name in hidden})
                inner = _Lowering(clauses, clause.visible, self.names)
                yield AntiJoin(clause.outer, tuple(inner.operations()))

    # Roots

    def roots(self) -> Iterator[NodeScan]:
        """Yield one scan per component of connected variables that nothing outside has bound."""
        components = self.components()
        rooted = {components[name] for name in self.outer if name in components}
        bindings = [c for c in self.clauses if isinstance(c, BoundBinding)]
        with_binding = {components[binding.variable] for binding in bindings}
        for clause in self.clauses:
            root = self.root(clause)
            if root is None:
                continue
            component = components[root[0]]
            is_introduced_elsewhere = isinstance(clause, BoundTraversal) and component in with_binding
            if component not in rooted and not is_introduced_elsewhere:
                rooted.add(component)
                yield self.scan(*root)

    def components(self) -> dict[str, str]:
        """Return a representative for every named variable, equal for those that traversals connect."""
        parent: dict[str, str] = {name: name for name in (*self.outer, *self.types)}

        def find(name: str) -> str:
            while parent.setdefault(name, name) != name:
                name = parent[name]
            return name

        for clause in self.clauses:
            if isinstance(clause, BoundTraversal):
                ends = [find(end) for end in (clause.left, clause.right) if end is not None]
                for end in ends[1:]:
                    parent[end] = ends[0]
        return {name: find(name) for name in list(parent)}

    def root(self, clause: BoundClause) -> tuple[str, str] | None:
        """Return the variable that a clause would start its component with."""
        match clause:
            case BoundBinding(variable=name, type_name=type_name):
                return name, type_name
            case BoundTraversal(left=str() as left, left_type=type_name):
                return left, type_name
            case BoundTraversal(right=str() as right, right_type=type_name):
                return right, type_name
            case _:
                return None

    def scan(self, variable: str, type_name: str) -> NodeScan:
        self.bound.add(variable)
        return NodeScan(variable, type_name, tuple(self.filters.pop(variable, ())))

    # Traversals

    def expansions(self) -> Iterator[Operation]:
        """Yield the traversals, each as soon as one of its ends is bound, in source order."""
        waiting = [clause for clause in self.clauses if isinstance(clause, BoundTraversal)]
        while waiting:
            remaining: list[BoundTraversal] = []
            for clause in waiting:
                look_at_deadline()
                if self.is_ready(clause):
                    yield from self.expansion(clause)
                else:
                    remaining.append(clause)
            assert len(remaining) < len(waiting), "every component has a bound variable"
            waiting = remaining

    def is_ready(self, clause: BoundTraversal) -> bool:
        is_anonymous = clause.left is None and clause.right is None
        return is_anonymous or clause.left in self.bound or clause.right in self.bound

    def expansion(self, clause: BoundTraversal) -> Iterator[Operation]:
        left, right = clause.left, clause.right
        if left is None and right is None:
            left = next(self.names)
            yield self.scan(left, clause.left_type)
        if left is None or left not in self.bound:
            assert right is not None
            yield self.expand(clause, right, left, clause.direction.reversed, clause.left_type)
        elif right is None or right not in self.bound:
            yield self.expand(clause, left, right, clause.direction, clause.right_type)
        else:
            arrival = next(self.names)
            yield self.expand(clause, left, arrival, clause.direction, clause.right_type)
            yield Filter(Comparison(IdValue(arrival), Operator.EQ, IdValue(right)))

    def expand(
        self, clause: BoundTraversal, start: str, end: str | None, direction: Direction, end_type: str
    ) -> Expand:
        end = next(self.names) if end is None else end
        self.bound.add(end)
        if clause.edge_variable is not None:
            self.bound.add(clause.edge_variable)
        # An edge between two types cannot chain: nothing is more than one hop away.
        hops_max = clause.hops_max if clause.left_type == clause.right_type else 1
        filters = tuple(self.filters.pop(end, ()))
        return Expand(
            start,
            end,
            clause.edge_type,
            direction,
            end_type,
            clause.hops_min,
            hops_max,
            filters,
            clause.edge_variable,
        )

    # Conditions

    def conditions(self) -> Iterator[Filter]:
        """Yield what is left of the bindings of outer variables, then the filters in source order."""
        for conditions in self.filters.values():
            for condition in conditions:
                yield Filter(condition)
        for clause in self.clauses:
            if isinstance(clause, BoundFilter):
                yield Filter(_bare(clause.condition))


def _bare(condition: Comparison | TextMatchValue) -> Condition:
    """Return `search(...) = true` as the text predicate that it is."""
    if isinstance(condition, Comparison) and isinstance(condition.left, TextMatchValue):
        return condition.left
    return condition


# Mutations


def _statement(statement: BoundStatement) -> MutationOp:
    name, is_edge = statement.type.name, isinstance(statement.type, EdgeType)
    match statement:
        case BoundInsert(assignments=assignments):
            return InsertOp(name, is_edge, _columns(assignments, is_edge))
        case BoundUpdate(assignments=assignments, predicate=predicate):
            return UpdateOp(name, _columns(assignments, is_edge), _predicate(predicate, is_edge))
        case BoundDelete(predicate=predicate):
            return DeleteOp(name, is_edge, _predicate(predicate, is_edge))


def _columns(assignments: tuple[BoundAssignment, ...], is_edge: bool) -> tuple[tuple[str, Expression], ...]:
    return tuple((_column(assignment.name, is_edge), assignment.value) for assignment in assignments)


def _predicate(predicate: BoundPredicate, is_edge: bool) -> ColumnPredicate:
    return ColumnPredicate(_column(predicate.name, is_edge), predicate.operator, predicate.value)


def _column(name: str, is_edge: bool) -> str:
    return _ENDPOINT_COLUMNS.get(name, name) if is_edge else name
