"""Query tree and catalog to a bound query: the type checker.

The order of checks is part of the contract, because the first error is reported: parameters, match clauses in
source order, projections, order keys, limits of rankings, grouping; then the plan rules.
"""

from collections.abc import Mapping, Sequence, Set
from typing import NoReturn

from omnigraph.catalog.bind_expression import (
    NOW,
    BoundValue,
    Scope,
    bind_assigned,
    bind_expression,
    bind_literal,
    bind_parameter,
    bind_text,
)
from omnigraph.catalog.bind_match import COMPARISONS, bind_clauses, check_comparable
from omnigraph.catalog.bound import (
    NOW_PARAMETER,
    AggregateValue,
    AliasValue,
    Bm25Value,
    BoundAssignment,
    BoundClause,
    BoundDelete,
    BoundExpression,
    BoundFilter,
    BoundInsert,
    BoundMutation,
    BoundNegation,
    BoundOrdering,
    BoundPredicate,
    BoundProjection,
    BoundQuery,
    BoundRead,
    BoundStatement,
    BoundUpdate,
    Condition,
    EntityValue,
    LiteralValue,
    NearestValue,
    Operator,
    ParameterValue,
    PropertyValue,
    RrfValue,
    TextMatchValue,
    behind_alias,
    type_of,
)
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import BadRequest, ExecutionError, QueryNotFound
from omnigraph.core.nearest import nearest_name
from omnigraph.core.source_errors import PlanError
from omnigraph.core.span import Source, Span
from omnigraph.core.values import Scalar, ValueType
from omnigraph.language import query_ast as ast
from omnigraph.language.tree import Name

RANKS = (NearestValue, Bm25Value, RrfValue)

ENDPOINTS = ("from", "to")
_NAMES_MAX = 20  # queries to choose from that a message lists


def bind(query: ast.Query, catalog: Catalog, source: Source) -> BoundQuery:
    """Return a query that fits the catalog, with everything resolved.

    Raises:
        TypeCheckError: a name or a type does not fit; the first error is reported.
        PlanError: the query is well typed but has no executable meaning.
        ExecutionError: a literal or an assignment can never be carried out.
    """
    scope = Scope(catalog, query.parameters, source)
    if isinstance(query.body, ast.Mutation):
        statements = tuple(bind_statement(statement, scope) for statement in query.body.statements)
        return BoundMutation(query.name.text, scope.parameters, statements)
    read = _read(query.name.text, query.body, scope)
    check_executable(read, query.body)
    return read


def find_query(file: ast.QueryFile, name: str | None) -> ast.Query:
    """Return the first query with a given name; without a name, the only one.

    Raises:
        QueryNotFound: there is no such query.
        BadRequest: no name is given, and there are several queries, or none.
    """
    if name is None:
        if len(file.queries) == 1:
            return file.queries[0]
        if not file.queries:
            raise BadRequest("the source declares no query")
        names = ", ".join(query.name.text for query in file.queries[:_NAMES_MAX])
        more = ", …" if len(file.queries) > _NAMES_MAX else ""
        raise BadRequest(f"the source declares {len(file.queries)} queries; name one of: {names}{more}")
    for query in file.queries:
        if query.name.text == name:
            return query
    raise QueryNotFound(name, known=[query.name.text for query in file.queries])


def _read(name: str, body: ast.Read, scope: Scope) -> BoundRead:
    clauses = bind_clauses(body.clauses, scope)
    projections = tuple(_projection(projection, scope) for projection in body.projections)
    named = {
        item.alias: item.expression for item in reversed(projections) if item.alias
    }  # the first of a name
    orderings = tuple(_ordering(ordering, named, scope) for ordering in body.orderings)
    read = BoundRead(name, scope.parameters, clauses, projections, orderings, body.limit, scope.source)
    _check_ranking(read, scope)
    _check_grouping(read, body, scope)
    return read


def _projection(projection: ast.Projection, scope: Scope) -> BoundProjection:
    expression = bind_expression(projection.expression, scope)
    type_ = type_of(expression)
    if type_ is not None and type_.scalar is Scalar.BLOB:
        scope.fail("T24", "a Blob cannot be returned by a query", projection.span)
    alias = projection.alias.text if projection.alias else None
    column, short_name = _column_names(expression)
    return BoundProjection(expression, alias or column, alias or short_name, alias)


def _column_names(expression: BoundExpression) -> tuple[str, str]:
    """Return the column name in the result and the short name in the descriptor."""
    match expression:
        case PropertyValue(variable, name):
            return f"{variable}.{name}", name
        case EntityValue(variable):
            return variable, variable
        case ParameterValue(name):
            shown = "now" if name == NOW_PARAMETER else name
            return shown, shown
        case LiteralValue():
            return "literal", "literal"
        case AggregateValue(function, argument):
            return _column_names(argument)[0], function
        case TextMatchValue(function):
            return function, function
        case NearestValue():
            return "nearest", "nearest"
        case Bm25Value():
            return "bm25", "bm25"
        case RrfValue():
            return "rrf", "rrf"
        case _:
            raise AssertionError(f"not a projection: {expression}")


def _ordering(ordering: ast.Ordering, named: Mapping[str, BoundExpression], scope: Scope) -> BoundOrdering:
    expression: BoundExpression
    if isinstance(ordering.expression, ast.AliasReference):
        name = ordering.expression.name
        # An alias that nothing projects is a plan error; until the plan rules run it is kept as it is.
        expression = AliasValue(name, named.get(name))
    else:
        expression = bind_expression(ordering.expression, scope)
        type_ = type_of(expression)
        if type_ is not None and type_.scalar is Scalar.BLOB:
            scope.fail("T24", "a Blob cannot order a result", ordering.span)
    return BoundOrdering(expression, ordering.descending, ordering.span)


def _check_ranking(read: BoundRead, scope: Scope) -> None:
    for ordering in read.orderings:
        ranked = behind_alias(ordering.expression)
        if isinstance(ranked, RrfValue) and read.limit is None:
            scope.fail("T21", "an order by rrf needs a limit", ordering.span)
    nearest = next((o for o in read.orderings if isinstance(behind_alias(o.expression), NearestValue)), None)
    if nearest is None:
        return
    if read.limit is None:
        scope.fail("T17", "an order by nearest needs a limit", nearest.span)
    for ordering in read.orderings:
        if ordering is not nearest and isinstance(ordering.expression, AliasValue):
            message = f"the alias '{ordering.expression.name}' cannot be an order key together with nearest"
            scope.fail("T18", message, ordering.span)


def _check_grouping(read: BoundRead, body: ast.Read, scope: Scope) -> None:
    if not read.is_aggregate:
        return
    for bound, projection in zip(read.projections, body.projections, strict=True):
        if not isinstance(bound.expression, AggregateValue | PropertyValue | EntityValue):
            message = "besides aggregates, only properties and variables can be returned, as grouping keys"
            scope.fail("T9", message, projection.span)


def check_executable(read: BoundRead, body: ast.Read) -> None:
    """Check the positions of text predicates, rankings, aggregates and order keys.

    Raises:
        PlanError: at the first that has no meaning where it appears.
    """
    rules = _PlanRules(read.source)
    rules.clauses(read.clauses, body.clauses)
    for bound, projection in zip(read.projections, body.projections, strict=True):
        rules.projection(bound.expression, projection.span)
    returned = (projection.expression for projection in read.projections)
    keys = frozenset(item for item in returned if isinstance(item, PropertyValue))
    grouping = keys if read.is_aggregate else None
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
        self, ordering: BoundOrdering, *, is_first: bool, grouping: Set[PropertyValue] | None
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


def bind_statement(statement: ast.Statement, scope: Scope) -> BoundStatement:
    """Return one statement with its names resolved.

    Raises:
        TypeCheckError: a name or a type does not fit.
        ExecutionError: an update assigns a key, or a date literal does not exist.
    """
    type_ = _type(statement.type_name, scope)
    match statement:
        case ast.Insert():
            assignments = _assignments(statement.assignments, type_, scope)
            _require_all(statement, type_, assignments, scope)
            return BoundInsert(type_, tuple(assignments.values()))
        case ast.Update():
            if isinstance(type_, EdgeType):
                help = "delete the edge and insert it again"
                scope.fail("T16", f"edges cannot be updated, and '{type_.name}' is one", statement.span, help)
            assignments = _assignments(statement.assignments, type_, scope)
            predicate = _predicate(statement.predicate, type_, scope)
            _refuse_key(type_, assignments)
            return BoundUpdate(type_, tuple(assignments.values()), predicate)
        case ast.Delete():
            return BoundDelete(type_, _predicate(statement.predicate, type_, scope))


def _type(name: Name, scope: Scope) -> NodeType | EdgeType:
    catalog = scope.catalog
    type_ = catalog.nodes.get(name.text) or catalog.edges.get(name.text)
    if type_ is None:
        help = nearest_name(name.text, [*catalog.nodes, *catalog.edges])
        scope.fail("T10", f"unknown type '{name.text}'", name.span, help)
    return type_


def _assignments(
    assignments: tuple[ast.Assignment, ...], type_: NodeType | EdgeType, scope: Scope
) -> dict[str, BoundAssignment]:
    bound: dict[str, BoundAssignment] = {}
    for assignment in assignments:
        name = assignment.name.text
        if name in bound:
            scope.fail("T13", f"'{type_.name}.{name}' is assigned twice", assignment.name.span)
        bound[name] = BoundAssignment(name, _assigned(assignment, type_, scope))
    return bound


def _assigned(assignment: ast.Assignment, type_: NodeType | EdgeType, scope: Scope) -> BoundValue:
    name = assignment.name.text
    where = f"{type_.name}.{name}"
    if isinstance(type_, EdgeType) and name in ENDPOINTS:
        return bind_text(assignment.value, where, scope)
    item = type_.properties.get(name)
    if item is None:
        _fail_unknown(assignment.name, type_, scope)
    return bind_assigned(assignment.value, item, where, scope)


def _require_all(
    statement: ast.Insert, type_: NodeType | EdgeType, assigned: Mapping[str, BoundAssignment], scope: Scope
) -> None:
    for name in ENDPOINTS if isinstance(type_, EdgeType) else ():
        if name not in assigned:
            scope.fail("T12", f"insert for edge '{type_.name}' must provide '{name}'", statement.span)
    for item in type_.properties.values():
        if item.type.nullable or item.default is not None or item.name in assigned:
            continue
        if item.embed is None:
            message = f"insert for '{type_.name}' must provide non-nullable property '{item.name}'"
            scope.fail("T12", message, statement.span)
        elif item.embed.source not in assigned:
            message = (
                f"insert for '{type_.name}' must provide non-nullable property '{item.name}' "
                f"or its embed source '{item.embed.source}'"
            )
            scope.fail("T12", message, statement.span)


def _predicate(predicate: ast.Predicate, type_: NodeType | EdgeType, scope: Scope) -> BoundPredicate:
    name = predicate.name.text
    if isinstance(type_, EdgeType) and name in ENDPOINTS:
        wanted = ValueType(Scalar.STRING)
    else:
        item = type_.properties.get(name)
        if item is None:
            _fail_unknown(predicate.name, type_, scope)
        if item.is_blob:
            scope.fail(
                "T11", f"'{type_.name}.{name}' is a Blob and cannot select anything", predicate.name.span
            )
        wanted = item.type
    value = _compared(predicate.value, scope)
    check_comparable(wanted, value.type, predicate, scope)
    return BoundPredicate(name, COMPARISONS[predicate.operator], value)


def _compared(value: ast.Value, scope: Scope) -> BoundValue:
    match value:
        case ast.Variable():
            return bind_parameter(value, scope)
        case ast.Now():
            return NOW
        case ast.Literal() | ast.ListLiteral():
            return bind_literal(value, scope)


def _refuse_key(type_: NodeType, assigned: Mapping[str, BoundAssignment]) -> None:
    for name in type_.key or ():
        if name in assigned:
            message = f"'{type_.name}.{name}' is part of the key and cannot be updated"
            raise ExecutionError(f"{message}; delete the node and insert it again")


def _fail_unknown(name: Name, type_: NodeType | EdgeType, scope: Scope) -> NoReturn:
    known = [*type_.properties, *(ENDPOINTS if isinstance(type_, EdgeType) else ())]
    scope.fail(
        "T11", f"'{type_.name}' has no property '{name.text}'", name.span, nearest_name(name.text, known)
    )
