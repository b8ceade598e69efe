"""The rows of a match by the book: loops over lists, one for its clauses and one for physical operators."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from omnigraph.catalog.bound import (
    BoundBinding,
    BoundClause,
    BoundExpression,
    BoundFilter,
    BoundNegation,
    BoundTraversal,
    Comparison,
    Condition,
    Direction,
    LiteralValue,
    Operator,
    PropertyValue,
)
from omnigraph.plan import physical
from omnigraph.plan.physical import Keep

Value = str | int | float | bool | tuple[object, ...] | None
Row = dict[str, str]  # variable -> id

COMPARE: dict[Operator, Callable[[object, object], bool]] = {
    Operator.EQ: lambda a, b: a == b,
    Operator.NE: lambda a, b: a != b,
    Operator.LT: lambda a, b: a < b,  # type: ignore[operator]
    Operator.LE: lambda a, b: a <= b,  # type: ignore[operator]
    Operator.GT: lambda a, b: a > b,  # type: ignore[operator]
    Operator.GE: lambda a, b: a >= b,  # type: ignore[operator]
}


@dataclass(frozen=True)
class Edge:
    id: str
    src: str
    dst: str


@dataclass(frozen=True)
class Data:
    """Nodes by type, edges by type, and the properties of both by their id."""

    nodes: Mapping[str, list[str]]
    edges: Mapping[str, list[Edge]]
    properties: Mapping[str, Mapping[str, Value]]

    def steps(self, edge_type: str, direction: Direction, node: str) -> list[tuple[str, str]]:
        """Return (edge, other end) of the edges at a node, each edge once."""
        found = []
        for edge in self.edges[edge_type]:
            if direction is not Direction.IN and edge.src == node:
                found.append((edge.id, edge.dst))
            elif direction is not Direction.OUT and edge.dst == node:
                found.append((edge.id, edge.src))
        return found

    def reached(self, edge_type: str, direction: Direction, start: str, low: int, high: int) -> list[str]:
        """Return the destinations of languages.md 3.4, hop bounds."""
        distance, frontier = {start: 0}, [start]
        for hop in range(1, high + 1):
            ends = {end for node in frontier for _, end in self.steps(edge_type, direction, node)}
            frontier = sorted(ends - distance.keys())
            distance.update(dict.fromkeys(frontier, hop))
        loops = {edge.src for edge in self.edges[edge_type] if edge.src == edge.dst}
        found = {node for node, d in distance.items() if node != start and low <= d <= high}
        found |= {node for node, d in distance.items() if node in loops and low <= d + 1 <= high}
        return sorted(found)

    def destinations(
        self, edge_type: str, direction: Direction, start: str, low: int, high: int, *, by_edge: bool
    ) -> list[tuple[str | None, str]]:
        if by_edge:
            return list(self.steps(edge_type, direction, start))
        return [(None, node) for node in self.reached(edge_type, direction, start, low, high)]

    def value(self, expression: BoundExpression, row: Row) -> Value:
        match expression:
            case PropertyValue(variable, name):
                return self.properties[row[variable]][name]
            case LiteralValue(value):
                return value
            case _:
                raise AssertionError(expression)

    def holds(self, conditions: Iterable[Condition], row: Row) -> bool:
        for condition in conditions:
            assert isinstance(condition, Comparison)
            left, right = self.value(condition.left, row), self.value(condition.right, row)
            if left is None or right is None or not COMPARE[condition.operator](left, right):
                return False
        return True


def with_end(row: Row, end: str, node: str, binding: str | None, edge: str | None) -> Row:
    grown = {**row, end: node}
    if binding is not None:
        assert edge is not None
        grown[binding] = edge
    return grown


# Clauses


def clause_rows(data: Data, clauses: Sequence[BoundClause], start: Row | None = None) -> list[Row]:
    """Return the assignments that clauses denote, from one row (languages.md 3.4), without `$_`."""
    rows: list[Row] = [start or {}]
    turned = from_the_right(clauses, rows[0])
    kinds = (BoundTraversal, BoundBinding, BoundFilter, BoundNegation)
    for clause in sorted(clauses, key=lambda clause: kinds.index(type(clause))):
        is_turned = any(clause is other for other in turned)
        rows = [after for row in rows for after in _clause(data, clause, row, is_turned=is_turned)]
    return rows


def from_the_right(clauses: Iterable[BoundClause], outer: Iterable[str]) -> list[BoundTraversal]:
    """Return the traversals of which only the right end is known when they are taken (6.2, steps 2 and 3)."""
    known, turned = set(outer), []
    bound = [c.variable for c in clauses if isinstance(c, BoundBinding)]
    waiting = [c for c in clauses if isinstance(c, BoundTraversal) and (c.left or c.right)]
    while waiting:
        remaining = []
        for clause in waiting:
            if clause.left not in known and clause.right not in known:
                remaining.append(clause)
                continue
            if clause.left not in known:
                turned.append(clause)
            known.update(end for end in (clause.left, clause.right) if end is not None)
        if len(remaining) == len(waiting):
            ends = [end for end in (waiting[0].left, waiting[0].right) if end is not None]
            known.add(next(name for name in (*bound, *ends) if name not in known))
        waiting = remaining
    return turned


def _clause(data: Data, clause: BoundClause, row: Row, *, is_turned: bool) -> Iterator[Row]:
    match clause:
        case BoundBinding(variable, type_name, matches):
            for node in [row[variable]] if variable in row else data.nodes[type_name]:
                if data.holds(matches, grown := {**row, variable: node}):
                    yield grown
        case BoundTraversal():
            yield from _traversed(data, clause, row, is_turned=is_turned)
        case BoundFilter(condition):
            if data.holds((condition,), row):
                yield row
        case BoundNegation(inner, visible):
            if not clause_rows(data, inner, {name: row[name] for name in visible}):
                yield row


def _traversed(data: Data, clause: BoundTraversal, row: Row, *, is_turned: bool) -> Iterator[Row]:
    start, end, start_type, direction = clause.left, clause.right, clause.left_type, clause.direction
    if is_turned:
        start, end, start_type, direction = end, start, clause.right_type, direction.reversed
    hops_max = clause.hops_max if clause.left_type == clause.right_type else 1
    by_edge = clause.edge_variable is not None
    found: dict[tuple[tuple[str, str], ...], Row] = {}
    for node in [row[start]] if start in row else data.nodes[start_type]:
        for edge, other in data.destinations(
            clause.edge_type, direction, node, clause.hops_min, hops_max, by_edge=by_edge
        ):
            named = {(start, node), (end, other), (clause.edge_variable, edge)}
            new = {name: value for name, value in named if name is not None and value is not None}
            grown = {**new, **row}
            if all(grown[name] == value for name, value in named if name is not None):
                found[tuple(sorted(grown.items()))] = grown
    yield from found.values()


# Physical: rows have weights


def physical_rows(
    data: Data, operators: Iterable[physical.PlanOperator], start: Row | None = None
) -> list[tuple[Row, int]]:
    """Return what a physical pipeline yields from one row, with weights."""
    rows: list[tuple[Row, int]] = [(start or {}, 1)]
    for operator in operators:
        rows = [(after, weight * w) for row, weight in rows for after, w in _physical(data, operator, row)]
    return rows


def _physical(data: Data, operator: physical.PlanOperator, row: Row) -> Iterator[tuple[Row, int]]:
    match operator:
        case physical.Scan(variable, type_name, conditions):
            for node in data.nodes[type_name]:
                if data.holds(conditions, {variable: node}):
                    yield {**row, variable: node}, 1
        case physical.Join(scan, keys):
            conditions = tuple(Comparison(key.own, Operator.EQ, key.other) for key in keys)
            for grown, _ in _physical(data, scan, row):
                if data.holds(conditions, grown):
                    yield grown, 1
        case physical.Expand() as op:
            yield from _expand(data, op, row)
        case physical.Close() as op:
            for edge, node in data.destinations(
                op.edge_type,
                op.direction,
                row[op.left_var],
                op.min_hops,
                op.max_hops,
                by_edge=op.edge_binding is not None,
            ):
                grown = with_end(row, op.right_var, node, op.edge_binding, edge)
                if node == row[op.right_var] and _own_holds(data, op.edge_conditions, op.edge_binding, grown):
                    yield grown, 1
        case physical.FilterRows(conditions):
            if data.holds(conditions, row):
                yield row, 1
        case physical.AntiJoin(on, inner):
            if not physical_rows(data, inner, {name: row[name] for name in on}):
                yield row, 1


def _expand(data: Data, op: physical.Expand, row: Row) -> Iterator[tuple[Row, int]]:
    found = []
    for edge, node in data.destinations(
        op.edge_type,
        op.direction,
        row[op.src_var],
        op.min_hops,
        op.max_hops,
        by_edge=op.edge_binding is not None,
    ):
        grown = with_end(row, op.dst_var, node, op.edge_binding, edge)
        if _own_holds(data, op.dst_conditions, op.dst_var, grown) and _own_holds(
            data, op.edge_conditions, op.edge_binding, grown
        ):
            found.append(grown)
    match op.keep:
        case Keep.ROWS:
            yield from ((grown, 1) for grown in found)
        case Keep.COUNT if found:
            yield row, len(found)
        case Keep.EXISTS if found:
            yield row, 1
        case _:
            pass


def _own_holds(data: Data, conditions: Iterable[Condition], variable: str | None, row: Row) -> bool:
    """Test conditions that may see nothing but their variable."""
    return data.holds(conditions, {} if variable is None else {variable: row[variable]})


def counted(rows: Iterable[tuple[Row, int]], names: Iterable[str]) -> Counter[tuple[str, ...]]:
    """Return how often each combination of some variables occurs."""
    kept = sorted(names)
    total: Counter[tuple[str, ...]] = Counter()
    for row, weight in rows:
        total[tuple(row[name] for name in kept)] += weight
    return total
