"""Each rewrite by itself."""

import pytest

from omnigraph.catalog.bound import Comparison, Direction, LiteralValue, Operator, PropertyValue
from omnigraph.core.values import Scalar, ValueType
from omnigraph.plan.choose import scaled
from omnigraph.plan.estimate import (
    EQUAL_SHARE,
    INDEXED_EQUAL_SHARE,
    RANGE_SHARE,
    TEXT_SHARE,
    Estimator,
)
from omnigraph.plan.optimize import keep_of_leaves, needed_by_result
from omnigraph.plan.pattern import PatternTraversal, tables_of, variables_of
from omnigraph.plan.physical import FilterRows, JoinKey, Keep, Scan
from omnigraph.plan.problem import join_key, place
from tests.engine.plan.planning import Counts
from tests.support.library import catalog
from tests.support.queries import bind_read, pattern, read

TEXT, WHOLE, WIDE, REAL = (ValueType(s) for s in (Scalar.STRING, Scalar.I32, Scalar.I64, Scalar.F64))


def equal(left: PropertyValue, right: PropertyValue | LiteralValue) -> Comparison:
    return Comparison(left, Operator.EQ, right)


# Mentions


def test_the_variables_of_a_condition_are_those_of_both_sides() -> None:
    a, b = PropertyValue("a", "x", TEXT), PropertyValue("b", "y", TEXT)

    assert variables_of(equal(a, b)) == {"a", "b"}
    assert variables_of(equal(a, a)) == {"a"}
    assert variables_of(equal(a, LiteralValue("x", TEXT))) == {"a"}


def test_the_tables_of_a_read_include_those_inside_negations() -> None:
    bound = bind_read(read("$a: Author not { $a wrote $b not { $b storedOn $_ } }", "return { $a.name }"))

    assert tables_of(bound, catalog()) == (
        "edge:StoredOn",
        "edge:Wrote",
        "node:Author",
        "node:Book",
        "node:Shelf",
    )


# Patterns


def test_a_traversal_between_known_nodes_leads_from_one_to_the_other() -> None:
    found = pattern("$a: Book $a cites $b $b cites{1,2} $a")

    assert found.nodes == {"a": "Book", "b": "Book"}
    assert found.conditions == ()
    assert found.traversals == (
        PatternTraversal("a", "b", "Book", "Book", "Cites", Direction.OUT, 1, 1, None),
        PatternTraversal("b", "a", "Book", "Book", "Cites", Direction.OUT, 1, 2, None),
    )


def test_a_traversal_from_a_node_to_itself_has_one_end() -> None:
    found = pattern("$x cites $x")

    assert found.nodes == {"x": "Book"}
    assert [(t.left, t.right) for t in found.traversals] == [("x", "x")]


def test_inline_matches_and_filters_are_conditions_alike() -> None:
    match = '$a: Author { name: "x" } $a wrote $b $b: Book { format: "paper" } $b.pages > 3'

    assert len(pattern(match).conditions) == 3


def test_a_negation_knows_the_outer_variables_that_it_mentions_at_any_depth() -> None:
    match = "$a: Author $a $w:wrote $b $c: Book not { $x: Book $x.pages = $b.pages not { $w.share > 1.0 } }"

    (negation,) = pattern(match).negations

    assert negation.on == ("b", "w")
    assert negation.pattern.nodes == {"x": "Book"}


@pytest.mark.parametrize(
    ("hops", "is_reversible"), [("", True), ("{1,3}", True), ("{2,3}", False), ("{2,2}", False)]
)
def test_a_lower_bound_above_one_fixes_where_a_search_starts(hops: str, is_reversible: bool) -> None:
    (traversal,) = pattern(f"$a: Book $a cites{hops} $b").traversals

    assert traversal.is_reversible is is_reversible


def test_an_edge_between_two_types_can_be_followed_from_both_whatever_its_bounds() -> None:
    (traversal,) = pattern("$a: Author $a wrote{2,4} $b").traversals

    assert (traversal.min_hops, traversal.max_hops) == (2, 1)
    assert traversal.is_reversible


# Places


def test_conditions_go_to_their_only_variable_or_wait() -> None:
    constant = Comparison(LiteralValue(1, WHOLE), Operator.LT, LiteralValue(2, WHOLE))
    one = equal(PropertyValue("a", "x", TEXT), LiteralValue("x", TEXT))
    both = equal(PropertyValue("a", "x", TEXT), PropertyValue("b", "x", TEXT))
    outer = equal(PropertyValue("o", "x", TEXT), LiteralValue("x", TEXT))

    placed = place([both, one, outer, constant], {"a", "b"})

    assert placed.constant == (constant,)
    assert placed.own == {"a": (one,)}
    assert placed.shared == ((frozenset("ab"), both), (frozenset("o"), outer))


def test_an_equality_of_one_type_is_a_key_whichever_way_it_is_written() -> None:
    a, b = PropertyValue("a", "x", WHOLE), PropertyValue("b", "y", WHOLE)

    assert join_key(equal(a, b), "b", {"a"}) == JoinKey(b, a)
    assert join_key(equal(b, a), "b", {"a"}) == JoinKey(b, a)


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (equal(PropertyValue("a", "x", WHOLE), PropertyValue("b", "y", WIDE)), "two numeric types"),
        (equal(PropertyValue("a", "x", REAL), PropertyValue("b", "y", REAL)), "floats"),
        (equal(PropertyValue("b", "x", TEXT), LiteralValue("x", TEXT)), "a constant"),
        (equal(PropertyValue("b", "x", TEXT), PropertyValue("b", "y", TEXT)), "one variable"),
        (equal(PropertyValue("c", "x", TEXT), PropertyValue("b", "y", TEXT)), "the other is not bound"),
        (
            Comparison(PropertyValue("a", "x", TEXT), Operator.LT, PropertyValue("b", "y", TEXT)),
            "no equality",
        ),
    ],
)
def test_other_conditions_stay_filters(condition: Comparison, why: str) -> None:
    assert join_key(condition, "b", {"a"}) is None, why


# What the result needs


@pytest.mark.parametrize(
    ("tail", "keep", "needed"),
    [
        ("return { $a.name }", Keep.ROWS, {"a"}),
        ("return { $a, $w.role }", Keep.ROWS, {"a", "w"}),
        ("return { $a.name } order { $b.price }", Keep.ROWS, {"a", "b"}),
        ("return { $a.name, count($b) as n } order { n desc }", Keep.COUNT, {"a"}),
        ("return { count($w) as n, sum($b.price) as s }", Keep.COUNT, {"b"}),
        ("return { $a, max($b.price) as s } order { s }", Keep.EXISTS, {"a", "b"}),
        ("return { max($b.price) as s, count($b) as n }", Keep.COUNT, {"b"}),
    ],
)
def test_what_a_result_needs_of_a_row(tail: str, keep: Keep, needed: set[str]) -> None:
    bound = bind_read(read("$a: Author $a $w:wrote $b", tail))

    assert keep_of_leaves(bound) is keep
    assert needed_by_result(bound) == needed


# Estimates


def share(match: str, counts: Counts | None = None, params: str = "") -> float:
    """Return the part of books that passes the conditions of a match of `$b`."""
    estimator = Estimator(catalog(), counts or Counts())
    return estimator.share(catalog().nodes["Book"], pattern(match, params).conditions)


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ("$b: Book", 1.0),
        ('$b: Book { code: "x" }', 1 / 1_000),
        ('$b: Book "x" = $b.code', 1 / 1_000),
        ('$b: Book { format: "paper" }', 1 / 3),
        ('$b: Book $b.format != "paper"', 2 / 3),
        ('$b: Book $b.title = "x"', EQUAL_SHARE),
        ('$b: Book { tags: "x" }', EQUAL_SHARE),
        ("$b: Book $b.pages > 3", RANGE_SHARE),
        ("$b: Book $b.pages > 3 $b.pages < 9", RANGE_SHARE**2),
        ('$b: Book $b.title starts_with "x"', TEXT_SHARE),
        ('$b: Book search($b.blurb, "x")', TEXT_SHARE),
        ("$b: Book $b.title = $b.blurb", EQUAL_SHARE),
    ],
)
def test_the_share_of_conditions_without_statistics(match: str, expected: float) -> None:
    assert share(match) == pytest.approx(expected)


def test_an_index_and_a_count_of_values_make_an_equality_selective() -> None:
    match = '$b: Book $b.title = "x"'
    column = ("node:Book", "title")

    assert share(match, Counts(indexes=frozenset({column}))) == INDEXED_EQUAL_SHARE
    assert share(match, Counts(values={column: 250.0})) == 1 / 250


def test_a_key_of_two_properties_needs_both() -> None:
    estimator = Estimator(catalog(), Counts())
    shelf = catalog().nodes["Shelf"]

    whole = pattern('$s: Shelf { room: "r", slot: 3 }').conditions
    half = pattern('$s: Shelf { room: "r" }').conditions

    assert estimator.share(shelf, half) == EQUAL_SHARE
    assert estimator.share(shelf, whole) <= 1 / 20


@pytest.mark.parametrize(
    ("match", "forward", "backward"),
    [
        ("$a: Author $a wrote $b", 7.5, 1.5),
        ("$b: Book $b storedOn $s", 0.9, 45.0),
        ("$a: Book $a <cites> $b", 8.0, 8.0),
        ("$a: Book $a cites{1,3} $b", 4 + 16 + 64, 4 + 16 + 64),
        ("$a: Book $a cites{2,3} $b", 16 + 64, 16 + 64),
        ("$a: Book $a cites{1,9} $b", 1_000.0, 1_000.0),
        ("$a: Author $a wrote{2,3} $b", 0.0, 0.0),
    ],
)
def test_the_fan_out_of_a_traversal(match: str, forward: float, backward: float) -> None:
    (traversal,) = pattern(match).traversals
    estimator = Estimator(catalog(), Counts())

    assert estimator.fan_out(traversal, is_forward=True) == pytest.approx(forward)
    assert estimator.fan_out(traversal, is_forward=False) == pytest.approx(backward)


def test_a_node_has_no_more_edges_than_the_schema_allows() -> None:
    (traversal,) = pattern("$b: Book $b storedOn $s").traversals
    stale = Counts(tables={"node:Book": 10, "edge:StoredOn": 900, "node:Shelf": 20})

    assert Estimator(catalog(), stale).fan_out(traversal, is_forward=True) == 1.0


def test_estimates_are_scaled_inside_and_out() -> None:
    before = (FilterRows((), 0.5), Scan("a", "Author", (), 2.0))

    assert scaled(before, 10.0) == (FilterRows((), 5.0), Scan("a", "Author", (), 20.0))
