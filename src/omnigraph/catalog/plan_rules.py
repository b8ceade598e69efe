"""Checks of a well-typed read on where its expressions appear: what has no executable meaning is refused."""

from collections.abc import Sequence
from typing import NoReturn

from omnigraph.catalog.bound import (
    AggregateValue,
    AliasValue,
    Bm25Value,
    BoundClause,
    BoundExpression,
    BoundFilter,
    BoundNegation,
    BoundOrdering,
    BoundRead,
    Condition,
    LiteralValue,
    NearestValue,
    Operator,
    ParameterValue,
    PropertyValue,
    RrfValue,
    TextMatchValue,
    behind_alias,
)
from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import PlanError
from omnigraph.core.span import Source, Span
from omnigraph.language import query_ast as ast

RANKS = (NearestValue, Bm25Value, RrfValue)


def check_executable(read: BoundRead, body: ast.Read) -> None:
    """Check the positions of text predicates, rankings, aggregates and order keys.

    Raises:
        PlanError: at the first that has no meaning where it appears.
    """
    rules = _PlanRules(read.source)
    rules.clauses(read.clauses, body.clauses)
    for bound, projection in zip(read.projections, body.projections, strict=True):
        rules.projection(bound.expression, projection.span)
    grouping = [p.expression for p in read.projections] if read.is_aggregate else None
    for position, ordering in enumerate(read.orderings):
        rules.ordering(ordering, is_first=position == 0, grouping=grouping)


class _PlanRules:
    def __init__(self, source: Source) -> None:
        self.source = source

    def fail(self, message: str, span: Span, help: str | None = None) -> NoReturn:
        raise PlanError([Diagnostic(message, span, help)], self.source)

    def clauses(self, bound: Sequence[BoundClause], clauses: Sequence[ast.Clause]) -> None:
        for inner, clause in zip(bound, clauses, strict=True):
            if isinstance(inner, BoundFilter):
                self.condition(inner.condition, clause.span)
            elif isinstance(inner, BoundNegation):
                assert isinstance(clause, ast.Negation)
                self.clauses(inner.clauses, clause.clauses)

    def condition(self, condition: Condition, span: Span) -> None:
        if isinstance(condition, TextMatchValue):
            self.arguments(condition, span)
            return
        for side in (condition.left, condition.right):
            if isinstance(side, RANKS):
                self.fail("a ranking goes in order or return, not in match", span)
        if isinstance(condition.right, TextMatchValue):
            self.fail("a text predicate is used alone, or on the left of '= true'", span)
        if isinstance(condition.left, TextMatchValue):
            is_true = isinstance(condition.right, LiteralValue) and condition.right.value is True
            if condition.operator is not Operator.EQ or not is_true:
                help = "write it inside not { ... } to negate it"
                self.fail("a text predicate can only be compared with '= true'", span, help)
            self.arguments(condition.left, span)

    def projection(self, expression: BoundExpression, span: Span) -> None:
        if isinstance(expression, TextMatchValue):
            self.fail("a text predicate goes in match, not in return", span)
        if isinstance(expression, AggregateValue):
            if isinstance(expression.argument, AggregateValue):
                self.fail("aggregates cannot be nested", span)
            if isinstance(expression.argument, (TextMatchValue, *RANKS)):
                self.fail("a text predicate or ranking cannot be aggregated", span)
        if isinstance(expression, RANKS):
            self.arguments(expression, span)

    def ordering(
        self, ordering: BoundOrdering, *, is_first: bool, grouping: Sequence[BoundExpression] | None
    ) -> None:
        expression, span = ordering.expression, ordering.span
        if isinstance(expression, AliasValue) and expression.projection is None:
            self.fail(
                f"unknown alias '{expression.name}' in order", span, "an alias is given with 'as' in return"
            )
        ranked = behind_alias(expression)
        if isinstance(ranked, RANKS):
            if not is_first:
                self.fail("a ranking must be the first order key", span)
            if grouping is not None:
                self.fail("an aggregate query cannot be ordered by a ranking", span)
            self.arguments(ranked, span)
        elif isinstance(expression, PropertyValue):
            if grouping is not None and expression not in grouping:
                message = (
                    f"'${expression.variable}.{expression.property}' is not a grouping key of this query"
                )
                self.fail(message, span)
        elif not isinstance(expression, AliasValue):
            self.fail("an order key must be a property, an alias or a ranking", span)

    def arguments(self, expression: TextMatchValue | NearestValue | Bm25Value | RrfValue, span: Span) -> None:
        match expression:
            case RrfValue(first, second, k):
                self.arguments(first, span)
                self.arguments(second, span)
                if first.field.variable != second.field.variable:
                    self.fail("both rankings of rrf must be about the same variable", span)
                given = [k]
            case TextMatchValue(query=query, edits=edits):
                given = [query, edits]
            case NearestValue(query=query) | Bm25Value(query=query):
                given = [query]
        for argument in given:
            if argument is not None and not isinstance(argument, LiteralValue | ParameterValue):
                self.fail("what is searched for must be a literal or a parameter", span)
