"""What a query means: brute force over plain lists, written from the languages specification alone.

O1  Rows are dictionaries of entities by variable. Every rule is applied row by row; nothing is indexed.
O2  An anonymous end binds nothing: it asks whether there is one, and multiplies no row (3.4).
O3  Hop bounds follow 3.4 to the letter, the node a search starts from included (6.2).
O4  Sums, averages and scores are `Approximate`. Every other value is exact.
"""

import math
import operator
import struct
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from tests.models.query import shape as q
from tests.models.query.answer import Answer, Approximate, column_name, plain
from tests.models.query.shape import (
    ANONYMOUS,
    Cell,
    Clause,
    Edge,
    Entity,
    Expression,
    Node,
    Operand,
    Property,
)
from tests.models.query.words import bm25, tokens, within

Row = dict[str, Entity]
Hops = list[tuple[q.Traversal, bool]]
Table = list[tuple[Row, list[Cell]]]

SIGNS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class TooManyRows(Exception):
    """The match has more rows than the caller asked for."""


class Oracle:
    """Answers queries about one graph."""

    def __init__(self, schema: q.Schema, data: q.Data, *, rows_max: int = 100_000) -> None:
        self.schema, self.data, self.rows_max = schema, data, rows_max
        self.nodes = {(node.type_name, node.id): node for node in data.nodes}
        self.now = datetime.now(UTC)

    def answer(self, query: q.Query) -> Answer:
        """Return every row, in order where the query asks for one; raise `TooManyRows` beyond `rows_max`."""
        rows = sorted(self.match(query.clauses, {}), key=lambda row: [row[name].id for name in sorted(row)])
        expressions = [item.expression for item in query.projections]
        places = {item.alias: at for at, item in enumerate(query.projections)}
        order, first = list(query.order), query.order[0].expression if query.order else None
        if isinstance(first, q.Alias):
            first = expressions[places[first.name]]
        scores, ranked = dict[str, float](), ""
        if isinstance(first, q.Rank):
            scores, ranked = self._ranking(first, rows, query.limit), field_of(first).variable
            rows, order = [row for row in rows if row[ranked].id in scores], order[1:]
        if any(isinstance(expression, q.Aggregate) for expression in expressions):
            table = self._groups(expressions, rows)
        else:
            table = [(row, [self._value(one, row, scores) for one in expressions]) for row in rows]
        for key in reversed(order):  # the sort is stable: the last key first
            at = places.get(key.expression.name) if isinstance(key.expression, q.Alias) else None
            table.sort(key=self._key(key.expression, at), reverse=key.is_descending)
        if ranked:
            ranks = {node_id: at for at, node_id in enumerate(scores)}
            table.sort(key=lambda pair: ranks[pair[0][ranked].id])
        names = [item.alias or column_name(item.expression) for item in query.projections]
        return Answer(names, [[plain(value) for value in values] for _, values in table])

    # Match

    def match(self, clauses: Sequence[Clause], row: Row) -> list[Row]:
        """Return the rows that a row becomes (6.2): roots, traversals, then conditions."""
        types, hops = self._orient(clauses, row)
        bindings = [clause for clause in clauses if isinstance(clause, q.Binding)]
        inline = [q.Filter(Property(b.variable, name), "=", v) for b in bindings for name, v in b.matches]
        rows, bound = [row], set(row)
        for root in roots(clauses, bound):
            nodes = [node for node in self.data.nodes if node.type_name == types[root]]
            rows = self._bounded([{**one, root: node} for one in rows for node in nodes])
            bound.add(root)
        while hops:
            waiting = []
            for hop, is_forward in hops:
                ends = {hop.left, hop.right} - {ANONYMOUS}
                if ends and not ends & bound:
                    waiting.append((hop, is_forward))
                    continue
                rows = self._bounded([wider for one in rows for wider in self._follow(hop, is_forward, one)])
                bound |= ends
            hops = waiting
        conditions = [each for each in clauses if isinstance(each, q.Filter | q.TextPredicate | q.Negation)]
        return [one for one in rows if all(self._holds(each, one) for each in [*inline, *conditions])]

    def _bounded(self, rows: list[Row]) -> list[Row]:
        if len(rows) > self.rows_max:
            raise TooManyRows
        return rows

    def _orient(self, clauses: Sequence[Clause], row: Row) -> tuple[dict[str, str], Hops]:
        """Type the variables in source order; a traversal is forward when its left end is the source."""
        types = {name: entity.type_name for name, entity in row.items()}
        hops = []
        for clause in clauses:
            if isinstance(clause, q.Binding):
                types[clause.variable] = clause.type_name
            elif isinstance(clause, q.Traversal):
                edge = self.schema.edges[clause.edge]
                left, right = types.get(clause.left), types.get(clause.right)
                is_forward = left == edge.source if left else right in (None, edge.target)
                source, target = (clause.left, clause.right) if is_forward else (clause.right, clause.left)
                types |= {source: edge.source, target: edge.target}
                types.pop(ANONYMOUS, None)
                hops.append((clause, is_forward))
        return types, hops

    def _follow(self, hop: q.Traversal, is_forward: bool, row: Row) -> list[Row]:
        """Return the rows that one row becomes; an end of the traversal is bound, or none has a name."""
        left, right = row.get(hop.left), row.get(hop.right)
        is_outward = is_forward if left or not right else not is_forward
        edge = self.schema.edges[hop.edge]
        near = edge.source if is_outward else edge.target
        bound = left or right
        starts = [bound] if bound else [node for node in self.data.nodes if node.type_name == near]
        free = hop.right if left else hop.left
        wider = dict[tuple[str, ...], Row]()  # O2: what gives nothing a name gives one row
        for start in starts:
            for found, node in self._ends(hop, start, is_outward=is_outward):
                if not (left and right) or node is right:
                    names: Row = {} if free == ANONYMOUS else {free: node}
                    names |= {hop.edge_variable: found} if found and hop.edge_variable else {}
                    wider[tuple(entity.id for entity in names.values())] = {**row, **names}
        return list(wider.values())

    def _ends(
        self, hop: q.Traversal, start: Entity, *, is_outward: bool
    ) -> Iterator[tuple[Edge | None, Node]]:
        """Yield the nodes at the other end: each once, or once for each edge when the edge has a name."""
        kind = self.schema.edges[hop.edge]
        far = kind.target if is_outward else kind.source
        steps = list[tuple[str, str, Edge]]()
        for edge in self.data.edges:
            if edge.type_name == hop.edge:
                ways = {(edge.source, edge.target) if is_outward else (edge.target, edge.source)}
                ways |= (
                    {(edge.source, edge.target), (edge.target, edge.source)} if hop.is_undirected else set()
                )
                steps += [(near_id, far_id, edge) for near_id, far_id in ways]
        firsts = [(edge, far_id) for near_id, far_id, edge in steps if near_id == start.id]
        low, high = hop.bounds or (1, 1)
        if hop.edge_variable not in (None, ANONYMOUS):
            yield from ((edge, self.nodes[far, far_id]) for edge, far_id in firsts)
        elif kind.source != kind.target:
            yield from (
                (None, self.nodes[far, far_id]) for far_id in {each for _, each in firsts} if low == 1
            )
        else:
            distance, frontier, depth = {start.id: 0}, {start.id}, 0
            while frontier:
                depth += 1
                frontier = {far_id for near_id, far_id, _ in steps if near_id in frontier} - distance.keys()
                distance |= dict.fromkeys(frontier, depth)
            loops = {near_id for near_id, far_id, _ in steps if near_id == far_id}
            for node_id, d in distance.items():
                if (node_id != start.id and low <= d <= high) or (node_id in loops and low <= d + 1 <= high):
                    yield None, self.nodes[far, node_id]

    # Conditions and values

    def _holds(self, condition: q.Filter | q.TextPredicate | q.Negation, row: Row) -> bool:
        if isinstance(condition, q.Negation):
            return not self.match(condition.clauses, row)
        if isinstance(condition, q.TextPredicate):
            text, wanted = self._value(condition.field, row), self._value(condition.query, row)
            edits = (
                (2 if condition.edits is None else condition.edits) if condition.function == "fuzzy" else 0
            )
            return any(within(a, b, edits) for a in tokens(wanted) for b in tokens(text))
        left, right = self._value(condition.left, row), self._value(condition.right, row)
        if left is None or right is None:
            return False
        if isinstance(left, list) or condition.operator == "contains":  # an inline match on a list, too
            return right in left
        if condition.operator == "starts_with":
            return bool(left.startswith(right))
        narrow_left = self._narrow(condition.left, left, condition.right, row)
        narrow_right = self._narrow(condition.right, right, condition.left, row)
        return bool(getattr(operator, SIGNS[condition.operator])(narrow_left, narrow_right))

    def _narrow(self, operand: Operand, value: Cell, other: Operand, row: Row) -> Cell:
        """Round a float literal or parameter that meets an F32 property."""
        if isinstance(operand, Property) or not isinstance(value, float) or not isinstance(other, Property):
            return value
        scalar = self.schema.properties(row[other.variable].type_name)[other.name].scalar
        return single(value) if scalar == "F32" else value

    def _value(self, expression: Expression, row: Row, scores: dict[str, float] | None = None) -> Cell:
        match expression:
            case Property(variable, name):
                return row[variable].values.get(name)
            case q.Variable(name):
                return row[name]
            case q.Parameter() | q.Literal():
                return expression.value
            case q.Now():
                return self.now
            case q.Nearest() | q.Bm25() | q.Rrf():
                return Approximate((scores or {})[row[field_of(expression).variable].id], 1e-5)
            case _:
                raise AssertionError(expression)

    # Tail

    def _groups(self, expressions: list[Expression], rows: list[Row]) -> Table:
        keys = [expression for expression in expressions if not isinstance(expression, q.Aggregate)]
        groups = dict[str, list[Row]]() if keys else {"[]": list[Row]()}
        for row in rows:
            groups.setdefault(repr([sortable(self._value(key, row)) for key in keys]), []).append(row)
        table = list[tuple[Row, list[Cell]]]()
        for members in groups.values():
            one = members[0] if members else {}
            aggregated = [
                aggregate(each.function, [self._value(each.argument, row) for row in members])
                if isinstance(each, q.Aggregate)
                else self._value(each, one)
                for each in expressions
            ]
            table.append((one, aggregated))
        return sorted(table, key=lambda pair: [sortable(self._value(key, pair[0])) for key in keys])

    def _key(self, expression: Expression, at: int | None) -> Callable[[tuple[Row, list[Cell]]], Cell]:
        return lambda pair: sortable(self._value(expression, pair[0]) if at is None else pair[1][at])

    def _ranking(self, rank: q.Rank, rows: list[Row], limit: int | None) -> dict[str, float]:
        """Return the scores of the ranked nodes by id, best first (3.9)."""
        nodes = {row[field_of(rank).variable].id: row[field_of(rank).variable] for row in rows}
        if isinstance(rank, q.Rrf):
            arms = [(arm, list(self._ranking(arm, rows, None))) for arm in (rank.first, rank.second)]
            cut = [ids[:limit] if isinstance(arm, q.Nearest) else ids for arm, ids in arms]
            places = [{node_id: at for at, node_id in enumerate(ids)} for ids in cut]
            fused = {n: sum(1 / ((rank.k or 60) + p[n] + 1) for p in places if n in p) for n in nodes}
            best = sorted(nodes, key=lambda n: (-fused[n], *(p.get(n, math.inf) for p in places)))
            return dict([(n, fused[n]) for n in best if fused[n]][:limit])
        wanted: Cell = rank.query.value
        if isinstance(rank, q.Nearest):
            vectors: dict[str, Cell] = {n: node.values.get(rank.field.name) for n, node in nodes.items()}
            aim = [single(float(each)) for each in wanted]
            scores = {n: math.dist(vector, aim) for n, vector in vectors.items() if vector is not None}
            return dict(sorted(scores.items(), key=lambda pair: (pair[1], pair[0])))
        kinds = {node.type_name for node in nodes.values()}  # one, or none without rows
        texts = {n.id: n.values.get(rank.field.name) for n in self.data.nodes if n.type_name in kinds}
        scores = bm25({n: tokens(text) for n, text in texts.items() if tokens(text)}, tokens(wanted))
        return dict(
            sorted(((n, scores[n]) for n in nodes if n in scores), key=lambda pair: (-pair[1], pair[0]))
        )


def roots(clauses: Sequence[Clause], bound: set[str]) -> Iterator[str]:
    """Yield where matching starts: in each component without a bound variable, its first binding or end."""
    ends = [(each.left, each.right) for each in clauses if isinstance(each, q.Traversal)]
    named = [each.variable for each in clauses if isinstance(each, q.Binding)] + [
        n for pair in ends for n in pair
    ]
    component = {name: {name} for name in dict.fromkeys(named) if name != ANONYMOUS}
    for left, right in ends:
        joined = component.get(left, set()) | component.get(right, set())
        component |= dict.fromkeys(joined, joined)
    reached = set(bound)
    for name in component:
        if not component[name] & reached:
            reached.add(name)
            yield name


def aggregate(function: str, values: list[Cell]) -> Cell:
    values = [value for value in values if value is not None]
    if function == "count":
        return len(values)
    if not values or function in ("min", "max"):
        return None if not values else min(values) if function == "min" else max(values)
    total = sum(values) if isinstance(values[0], int) else math.fsum(values)
    slack = 1e-12 * float(sum(abs(value) for value in values))
    return Approximate(total / (len(values) if function == "avg" else 1), slack)


def field_of(rank: q.Rank) -> Property:
    return field_of(rank.first) if isinstance(rank, q.Rrf) else rank.field


def single(value: float) -> float:
    """Round to F32."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def sortable(value: Cell) -> tuple[Cell, ...]:
    """Return a sort key with null before everything and an entity by its id."""
    key = value.id if isinstance(value, Entity) else value.value if isinstance(value, Approximate) else value
    return () if key is None else (key,)
