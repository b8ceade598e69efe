"""How many rows conditions leave and traversals give, from the statistics of a snapshot.

Every estimate is a factor on the input rows. It looks at no parameter and no literal: the same query over the
same versions has the same plan, whatever the parameters.
"""

from collections.abc import Iterable

from omnigraph.catalog.bound import BoundExpression, Comparison, Condition, Direction, Operator, PropertyValue
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.values import Scalar, ValueType
from omnigraph.plan.pattern import PatternTraversal, variables_of
from omnigraph.plan.statistics import Statistics

EQUAL_SHARE = 0.1  # an equality about which nothing is known: a column has a few values
INDEXED_EQUAL_SHARE = 0.01  # an index is declared where it is expected to be selective
RANGE_SHARE = 1 / 3  # an open range, as most optimisers assume
HOPS_ESTIMATED = 64  # hops beyond which an estimate does not change a choice; bounds may be enormous
TEXT_SHARE = 0.05  # a word, a prefix or a part of a text: rarer than a value of a column

_RANGES = frozenset({Operator.LT, Operator.LE, Operator.GT, Operator.GE})
_TEXTS = frozenset({Operator.STRING_CONTAINS, Operator.STARTS_WITH})


class Estimator:
    """Factors for the conditions and traversals of one catalog at one snapshot."""

    def __init__(self, catalog: Catalog, statistics: Statistics) -> None:
        self.catalog = catalog
        self.statistics = statistics
        self._rows: dict[str, float] = {}

    def rows(self, table_key: str) -> float:
        """Return the rows of a table."""
        found = self._rows.get(table_key)
        if found is None:
            found = self._rows[table_key] = float(max(0, self.statistics.rows(table_key)))
        return found

    # Conditions on one variable

    def share(self, type_: NodeType | EdgeType, conditions: Iterable[Condition]) -> float:
        """Return the share of a table that passes conditions on this one variable."""
        share = 1.0
        equal: set[str] = set()
        for condition in conditions:
            share *= self._share_of_one(type_, condition)
            column = _compared_with_constant(condition)
            if column is not None:
                equal.add(column)
        if equal and any(equal.issuperset(group) for group in _unique_groups(type_)):
            share = min(share, 1 / max(1.0, self.rows(type_.table_key)))
        return share

    def _share_of_one(self, type_: NodeType | EdgeType, condition: Condition) -> float:
        if not isinstance(condition, Comparison):
            return TEXT_SHARE
        column = _own_column(condition)
        match condition.operator:
            case Operator.EQ:
                return EQUAL_SHARE if column is None else self._equal_share(type_, column)
            case Operator.CONTAINS:
                return EQUAL_SHARE
            case Operator.NE:
                return 1 - (EQUAL_SHARE if column is None else self._equal_share(type_, column))
            case operator:
                return TEXT_SHARE if operator in _TEXTS else RANGE_SHARE

    def _equal_share(self, type_: NodeType | EdgeType, column: PropertyValue) -> float:
        distinct = self._distinct(type_, column)
        if distinct is not None:
            return 1 / max(1.0, distinct)
        is_indexed = self.statistics.is_indexed(type_.table_key, column.property)
        return INDEXED_EQUAL_SHARE if is_indexed else EQUAL_SHARE

    def _distinct(self, type_: NodeType | EdgeType, column: PropertyValue) -> float | None:
        """Return how many values a column has: by its constraints, by statistics, by its type."""
        if any(group == (column.property,) for group in _unique_groups(type_)):
            return self.rows(type_.table_key)
        return self.statistics.distinct(type_.table_key, column.property) or _values_of(column.type)

    # Conditions on several variables

    def shared_share(self, condition: Condition, types: dict[str, NodeType | EdgeType]) -> float:
        """Return the share of all combinations that passes a condition; a constant one counts as true."""
        if not isinstance(condition, Comparison) or not variables_of(condition):
            return 1.0
        match condition.operator:
            case Operator.EQ | Operator.NE:
                equal = 1 / max(
                    self._side_distinct(side, types) for side in (condition.left, condition.right)
                )
                return equal if condition.operator is Operator.EQ else 1 - equal
            case operator if operator in _RANGES:
                return RANGE_SHARE
            case operator:
                return TEXT_SHARE if operator in _TEXTS else EQUAL_SHARE

    def _side_distinct(self, side: BoundExpression, types: dict[str, NodeType | EdgeType]) -> float:
        if isinstance(side, PropertyValue):
            distinct = self._distinct(types[side.variable], side)
            if distinct is not None:
                return max(1.0, distinct)
        return 1 / EQUAL_SHARE

    def groups(self, keys: Iterable[tuple[NodeType | EdgeType, PropertyValue | None]]) -> float | None:
        """Return how many groups keys can form, or `None` if one is unknown; no property means the id."""
        groups = 1.0
        for type_, column in keys:
            distinct = self.rows(type_.table_key) if column is None else self._distinct(type_, column)
            if distinct is None:
                return None
            groups *= distinct + 1  # nulls form their own group
        return groups

    # Traversals

    def fan_out(self, traversal: PatternTraversal, *, is_forward: bool) -> float:
        """Return how many destinations, or edges if those are bound, a start node has."""
        if traversal.min_hops > traversal.max_hops:
            return 0.0
        start, end = (
            (traversal.left_type, traversal.right_type)
            if is_forward
            else (traversal.right_type, traversal.left_type)
        )
        direction = traversal.direction if is_forward else traversal.direction.reversed
        edges = self.rows(f"edge:{traversal.edge_type}") * (2 if direction is Direction.BOTH else 1)
        degree = edges / max(1.0, self.rows(f"node:{start}"))
        high = self.catalog.edges[traversal.edge_type].high
        if high is not None and direction is Direction.OUT:
            degree = min(degree, float(high))
        if traversal.edge_binding is not None:
            return degree
        return min(_reached(degree, traversal.min_hops, traversal.max_hops), self.rows(f"node:{end}"))

    def closed_share(self, traversal: PatternTraversal) -> float:
        """Return the rows that a traversal between two bound nodes leaves per input row."""
        ends = max(1.0, self.rows(f"node:{traversal.right_type}"))
        share = self.fan_out(traversal, is_forward=True) / ends
        return share if traversal.edge_binding is not None else min(1.0, share)


def _unique_groups(type_: NodeType | EdgeType) -> tuple[tuple[str, ...], ...]:
    key = type_.key if isinstance(type_, NodeType) else None
    return type_.unique if key is None else (key, *type_.unique)


def _own_column(condition: Comparison) -> PropertyValue | None:
    """Return the column of a condition that compares a column with a constant."""
    match condition.left, condition.right:
        case PropertyValue() as column, other if not isinstance(other, PropertyValue):
            return column
        case other, PropertyValue() as column if not isinstance(other, PropertyValue):
            return column
        case _:
            return None


def _compared_with_constant(condition: Condition) -> str | None:
    if isinstance(condition, Comparison) and condition.operator is Operator.EQ:
        column = _own_column(condition)
        return None if column is None else column.property
    return None


def _values_of(type_: ValueType) -> float | None:
    if type_.enum_values is not None:
        return float(len(type_.enum_values))
    return 2.0 if type_.scalar is Scalar.BOOL else None


def _reached(degree: float, low: int, high: int) -> float:
    """Return how many nodes a search would reach if no two walks met, as far as that matters."""
    total, level = 0.0, 1.0
    for hop in range(1, min(high, HOPS_ESTIMATED) + 1):
        level *= degree
        total += level if hop >= low else 0.0
        if level < 1e-9 or total > 1e15:
            break
    return total
