"""Conditions and expressions in an explanation are those of the query language."""

import pytest

from omnigraph.plan.written import (
    WRITTEN_ITEMS_MAX,
    WRITTEN_TEXT_MAX,
    written,
    written_ordering,
    written_projection,
)
from tests.support.queries import bind_read, books, bound_clauses, comparison, projected, read


@pytest.mark.parametrize(
    "condition",
    [
        '$b.code = "AA-1"',
        "$b.pages != 120",
        "$b.price <= 1.5",
        "$b.price >= 100000000000000000000.0",
        '$b.tags contains "x"',
        '$b.title contains "x"',
        '$b.title starts_with "say \\"hi\\"\\n\\\\"',
        '$b.published < date("2020-01-31")',
        '$b.added > datetime("2021-01-02T03:04:05.678Z")',
        "$b.added <= now()",
        "$b.pages = $n",
        "$n < 3",
        '"a-b" contains $b.code',
    ],
)
def test_a_condition_is_written_as_it_was_asked(condition: str) -> None:
    clause = bound_clauses(f"$b: Book {condition}", "$n: I32")[-1]

    assert written(comparison(clause)) == condition


@pytest.mark.parametrize(
    "expression",
    [
        "$b",
        "$b.code",
        "$n",
        "true",
        "now()",
        "count($b)",
        "avg($b.pages)",
    ],
)
def test_an_expression_is_written_as_it_was_asked(expression: str) -> None:
    assert written(projected(expression, params="$n: I32")) == expression


@pytest.mark.parametrize(
    "predicate", ['search($b.blurb, "x")', "match_text($b.blurb, $q)", 'fuzzy($b.title, "x", 1)']
)
def test_a_text_predicate_is_written_as_it_was_asked(predicate: str) -> None:
    clause = bound_clauses(f"$b: Book {predicate}", "$q: String")[-1]

    assert written(clause.condition) == predicate  # type: ignore[union-attr]


def test_orders_and_aliases_are_written_as_they_were_asked() -> None:
    rank = 'rrf(nearest($b.embedding, $v), bm25($b.blurb, "x"), 10)'
    text = books(
        tail=f"return {{ $b.code as c, $b.price }} order {{ {rank}, c desc }} limit 3", params="$v: Vector(4)"
    )

    query = bind_read(text)

    assert [written_projection(item) for item in query.projections] == ["$b.code as c", "$b.price"]
    assert [written_ordering(item) for item in query.orderings] == [rank, "c desc"]


def test_long_literals_are_cut() -> None:
    text = projected(f'"{"x" * (WRITTEN_TEXT_MAX + 1)}"')
    items = projected(f"[{', '.join(['1'] * (WRITTEN_ITEMS_MAX + 1))}]")

    assert written(text) == f'"{"x" * WRITTEN_TEXT_MAX}…"'
    assert written(items) == f"[{'1, ' * WRITTEN_ITEMS_MAX}…]"


def test_the_value_of_a_parameter_is_nowhere() -> None:
    query = bind_read(read("$b: Book $b.code = $secret", params="$secret: String"))

    assert "$secret" in written(comparison(query.clauses[-1]))
