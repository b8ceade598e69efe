"""Queries against the library schema, and the errors they end with."""

import re
from typing import Any

import pytest

from omnigraph.catalog.bind import bind
from omnigraph.catalog.bound import (
    NOW_PARAMETER,
    BoundClause,
    BoundExpression,
    BoundMutation,
    BoundQuery,
    BoundRead,
    BoundStatement,
    Comparison,
    Condition,
    LiteralValue,
    ParameterValue,
    PropertyValue,
    TextMatchValue,
)
from omnigraph.catalog.lint import lint
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.params import describe
from omnigraph.core.errors import ExecutionError
from omnigraph.core.source_errors import ParseError, PlanError, TypeCheckError
from omnigraph.core.span import Source
from omnigraph.language.query_ast import Clause, Mutation, Query, QueryFile, Read
from omnigraph.language.query_parser import parse_queries
from omnigraph.plan.pattern import Pattern, PatternTraversal, pattern_of
from tests.support.library import catalog

NEAREST = "nearest($b.embedding, [1, 0, 0, 0])"
BM25 = 'bm25($b.blurb, "rivers")'


# Writing


def read(match: str, tail: str = "return { $b.code }", params: str = "") -> str:
    """Return the text of a read."""
    return f"query q({params}) {{ match {{ {match} }} {tail} }}"


def books(clauses: str = "", tail: str = "return { $b.code }", params: str = "") -> str:
    """Return the text of a read of books: `$b` is bound, the clauses follow."""
    return read(f"$b: Book {clauses}", tail, params)


def mutation(statements: str, params: str = "", name: str = "m") -> str:
    """Return the text of a mutation."""
    return f"query {name}({params}) {{ {statements} }}"


# Parsing


def parse(text: str) -> QueryFile:
    """Return the tree of a query file."""
    return parse_queries(Source(text))


def parse_one(text: str) -> Query:
    """Return the tree of the only query of a text."""
    (query,) = parse(text).queries
    return query


def parse_read(text: str) -> Read:
    """Return the body of the only query, a read."""
    body = parse_one(text).body
    assert isinstance(body, Read)
    return body


def parse_mutation(text: str) -> Mutation:
    """Return the body of the only query, a mutation."""
    body = parse_one(text).body
    assert isinstance(body, Mutation)
    return body


def parse_clause(text: str) -> Clause:
    """Return the tree of the only clause of a match block."""
    (clause,) = parse_read(read(text)).clauses
    return clause


def parse_error(text: str) -> ParseError:
    """Return the error that a text is refused with."""
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert str(caught.value).startswith("parse error: ")
    assert caught.value.span is not None
    return caught.value


# Binding


def bind_text(text: str, against: Catalog | None = None) -> BoundQuery:
    """Return the only query of a text, bound."""
    return bind(parse_one(text), against or catalog(), Source(text))


def bind_read(text: str, against: Catalog | None = None) -> BoundRead:
    """Return the only query of a text, a read."""
    bound = bind_text(text, against)
    assert isinstance(bound, BoundRead)
    return bound


def bind_writes(text: str, against: Catalog | None = None) -> BoundMutation:
    """Return the only query of a text, a mutation."""
    bound = bind_text(text, against)
    assert isinstance(bound, BoundMutation)
    return bound


def bind_statement(text: str, params: str = "", against: Catalog | None = None) -> BoundStatement:
    """Return one statement of a mutation, bound."""
    (statement,) = bind_writes(mutation(text, params), against).statements
    return statement


def bound_clauses(match: str, params: str = "") -> tuple[BoundClause, ...]:
    """Return the bound clauses of a match block; what is returned does not matter."""
    return bind_read(read(match, "return { 1 }", params)).clauses


def comparison(clause: BoundClause) -> Comparison:
    """Return the comparison of a filter."""
    condition = getattr(clause, "condition", None)
    assert isinstance(condition, Comparison)
    return condition


def projected(expression: str, match: str = "$b: Book", params: str = "") -> BoundExpression:
    """Return an expression as a projection binds it."""
    (projection,) = bind_read(read(match, f"return {{ {expression} }}", params)).projections
    return projection.expression


def type_error(text: str, against: Catalog | None = None) -> TypeCheckError:
    """Return the type error of a query; its message starts with its code, if it has one."""
    with pytest.raises(TypeCheckError) as caught:
        bind_text(text, against)
    error = caught.value
    code = f"{error.type_code}: " if error.type_code else ""
    assert str(error).startswith(f"type error: {code}")
    return error


def type_code(text: str, against: Catalog | None = None) -> str | None:
    """Return the code of the type error of a query."""
    return type_error(text, against).type_code


def plan_error(text: str) -> PlanError:
    """Return the plan error of a query."""
    with pytest.raises(PlanError) as caught:
        bind_text(text)
    assert str(caught.value).startswith("plan error: ")
    return caught.value


def execution_error(text: str) -> ExecutionError:
    """Return the error of a query that can never be carried out."""
    with pytest.raises(ExecutionError) as caught:
        bind_text(text)
    assert str(caught.value).startswith("execution error: ")
    return caught.value


# Describing, linting, patterns


def describe_text(text: str, against: Catalog | None = None) -> dict[str, Any]:
    """Return the operation descriptor of the only query of a text, as JSON."""
    return describe(bind_text(text, against), against or catalog()).to_json()


def facts(entries: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return the facts of a descriptor as pairs of kind and type."""
    return [(entry["kind"], entry["type_name"]) for entry in entries]


def lint_text(text: str, against: Catalog | None = None) -> dict[str, Any]:
    """Return the lint report of a file, as JSON."""
    schema_source = {"kind": "file", "path": "library.pg"}
    report = lint(against or catalog(), Source(text), query_path="library.gq", schema_source=schema_source)
    return report.to_json()


def pattern(match: str, params: str = "") -> Pattern:
    """Return what a match block asks for; what is returned does not matter."""
    return pattern_of(bind_read(read(match, "return { 1 }", params)))


def outline(asked: Pattern) -> list[str]:
    """Return one line for each variable that no traversal leads to, each traversal, condition and negation.

    A traversal to a variable that stands nowhere before it shows the type of the variable. Variables that the
    pattern made up are called `~1`, `~2` in the order they appear, whatever their names are.
    """
    lines = _lines(asked)
    made_up = dict.fromkeys(re.findall(r"\b__\w+", "\n".join(lines)))
    numbers = {name: f"~{number}" for number, name in enumerate(made_up, 1) if name != NOW_PARAMETER}
    return [re.sub(r"\b__\w+", lambda found: numbers.get(found[0], found[0]), line) for line in lines]


def _lines(asked: Pattern) -> list[str]:
    first = [variable for traversal in asked.traversals for variable in (traversal.left, traversal.right)]
    starts = [name for name in asked.nodes if name not in first or first.index(name) % 2 == 0]
    known = {*asked.outer, *starts}
    lines = [f"from {name} {asked.nodes[name]}" for name in starts]
    for traversal in asked.traversals:
        lines.append(_traversed(traversal, is_new=traversal.right not in known))
        known.add(traversal.right)
    lines += [f"where {_condition(condition)}" for condition in asked.conditions]
    for negation in asked.negations:
        on = "".join(f"{name} " for name in negation.on)
        lines.append(f"not {on}[{', '.join(_lines(negation.pattern))}]")
    return lines


def _traversed(traversal: PatternTraversal, *, is_new: bool) -> str:
    low, high = traversal.min_hops, traversal.max_hops
    hops = "" if low == 1 == high else f"{low}-{high} "
    name = f"{traversal.edge_binding}:" if traversal.edge_binding else ""
    end = f"{traversal.right} {traversal.right_type}" if is_new else traversal.right
    return f"{traversal.direction} {name}{traversal.edge_type} {hops}{traversal.left} -> {end}"


def _condition(condition: Condition) -> str:
    match condition:
        case TextMatchValue(function, field):
            return f"{function} {field.variable}.{field.property}"
        case Comparison(left, operator, right):
            return f"{_operand(left)} {operator} {_operand(right)}"


def _operand(expression: BoundExpression) -> str:
    match expression:
        case PropertyValue(variable, name):
            return f"{variable}.{name}"
        case LiteralValue(value):
            return repr(value)
        case ParameterValue(name):
            return f"${name}"
        case _:
            raise AssertionError(expression)
