"""Whole reads: columns, aliases, limits of rankings, grouping, and which of several errors is the first."""

import pytest

from omnigraph.catalog.bind import bind, find_query
from omnigraph.catalog.bound import AliasValue, BoundMutation, BoundRead, PropertyValue
from omnigraph.core.errors import BadRequest, QueryNotFound
from omnigraph.core.limits import VECTOR_DIMENSION_STORED_MAX
from omnigraph.core.span import Source
from omnigraph.core.values import Scalar, ValueType
from tests.support.library import catalog, pointed_at
from tests.support.queries import (
    BM25,
    NEAREST,
    bind_read,
    bind_text,
    bind_writes,
    books,
    mutation,
    parse,
    read,
    type_code,
    type_error,
)

RRF = f"rrf({NEAREST}, {BM25})"


def returning(projections: str, order: str = "", limit: str = "") -> str:
    """Return the text of a read of books with a tail."""
    key = f"order {{ {order} }}" if order else ""
    return books(tail=f"return {{ {projections} }} {key} {limit}", params="$p: I32, $t: String")


# Queries by name


def test_the_first_query_of_a_name_is_the_one() -> None:
    text = books(tail="return { $b.code }") + books(tail="return { $b.title }")
    file = parse(text)

    bound = bind(find_query(file, "q"), catalog(), file.source)

    assert isinstance(bound, BoundRead)
    assert [projection.column for projection in bound.projections] == ["b.code"]


def test_an_unknown_query_is_quoted() -> None:
    with pytest.raises(QueryNotFound, match="'nope'") as caught:
        find_query(parse(books()), "nope")

    assert caught.value.name == "nope"
    assert "'q'" in str(caught.value)


def test_without_a_name_there_must_be_one_query() -> None:
    with pytest.raises(BadRequest, match="declares no query"):
        find_query(parse("// nothing"), None)
    many = parse(" ".join(books().replace("query q(", f"query q{number}(") for number in range(900)))
    with pytest.raises(BadRequest, match=r"declares 900 queries; name one of: q0, q1, .*, q19, …$"):
        find_query(many, None)
    with pytest.raises(BadRequest, match="the source declares 2 queries; name one of: q, q"):
        find_query(parse(books() + books()), None)


def test_a_bound_query_keeps_its_name_parameters_and_limit() -> None:
    bound = bind_read(books(tail="return { $b.code } limit 7", params="$n: I32?, $t: [String]"))

    assert bound.name == "q"
    assert bound.limit == 7
    assert bound.parameters == {
        "n": ValueType(Scalar.I32, nullable=True),
        "t": ValueType(Scalar.STRING, is_list=True),
    }


def test_a_mutation_is_bound_as_one() -> None:
    bound = bind_writes(mutation('insert Note { body: "x" } insert Note { body: $t }', "$t: String"))

    assert isinstance(bound, BoundMutation)
    assert len(bound.statements) == 2


@pytest.mark.parametrize("dimension", [0, VECTOR_DIMENSION_STORED_MAX + 1])
def test_the_dimension_of_a_parameter_is_in_range(dimension: int) -> None:
    error = type_error(books(params=f"$v: Vector({dimension})"))

    assert error.type_code is None
    assert "$v" in str(error)


@pytest.mark.parametrize("dimension", [1, VECTOR_DIMENSION_STORED_MAX])
def test_the_ends_of_the_range_are_dimensions(dimension: int) -> None:
    assert bind_text(books(params=f"$v: Vector({dimension})")).name == "q"


# Columns


@pytest.mark.parametrize(
    ("projection", "column", "short_name"),
    [
        ("$b.code", "b.code", "code"),
        ("$b", "b", "b"),
        ("$p", "p", "p"),
        ('"x"', "literal", "literal"),
        ("[1]", "literal", "literal"),
        ("now()", "now", "now"),
        ("count($b)", "b", "count"),
        ("avg($b.pages)", "b.pages", "avg"),
        ("count(5)", "literal", "count"),
        ("count(now())", "now", "count"),
        (NEAREST, "nearest", "nearest"),
        (BM25, "bm25", "bm25"),
        (RRF, "rrf", "rrf"),
        ("$b.code as x", "x", "x"),
        ("count($b) as x", "x", "x"),
        (f"{NEAREST} as x", "x", "x"),
    ],
)
def test_a_column_has_its_name_and_a_short_one(projection: str, column: str, short_name: str) -> None:
    (found,) = bind_read(returning(projection)).projections

    assert (found.column, found.short_name) == (column, short_name)


def test_names_of_columns_may_repeat() -> None:
    bound = bind_read(returning("$b.code as x, $b.title as x, $b.code, $b.code"))

    assert [projection.column for projection in bound.projections] == ["x", "x", "b.code", "b.code"]


def test_an_order_key_may_be_an_alias() -> None:
    (ordering,) = bind_read(returning("$b.pages as p", "p desc")).orderings

    pages = PropertyValue("b", "pages", ValueType(Scalar.I32, nullable=True))
    assert ordering.expression == AliasValue("p", pages)
    assert ordering.descending


# Rankings and limits


@pytest.mark.parametrize(
    ("projections", "order", "code"),
    [
        ("$b.code", NEAREST, "T17"),
        (f"{NEAREST} as d", "d", "T17"),
        ("$b.code", f"{NEAREST}, $b.code", "T17"),
        ("$b.code as c", f"{NEAREST}, c", "T17"),
        ("$b.code", RRF, "T21"),
        (f"{RRF} as d", "d", "T21"),
    ],
)
def test_an_order_by_a_ranking_needs_a_limit(projections: str, order: str, code: str) -> None:
    assert type_code(returning(projections, order)) == code


@pytest.mark.parametrize(
    ("projections", "order"),
    [
        ("$b.code as c", f"{NEAREST}, c"),
        ("$b.code as c", f"{NEAREST}, $b.pages, c desc"),
        ("$b.code as c", f"c, {NEAREST}"),
        (f"{NEAREST} as d, $b.code as c", "d, c"),
        (f"{NEAREST} as d", f"{NEAREST}, d"),
    ],
)
def test_nearest_and_an_alias_do_not_order_together(projections: str, order: str) -> None:
    assert type_code(returning(projections, order, "limit 3")) == "T18"


@pytest.mark.parametrize(
    ("projections", "order", "limit"),
    [
        ("$b.code", NEAREST, "limit 0"),
        ("$b.code", f"{NEAREST}, $b.code desc", "limit 3"),
        (f"{NEAREST} as d", "d", "limit 3"),
        (f"{NEAREST} as d", "d, $b.code", "limit 3"),
        ("$b.code", BM25, ""),
        ("$b.code", f"{BM25} desc", ""),
        (f"{BM25} as s, $b.code as c", "s, c", ""),
        ("$b.code as c", f"{BM25}, c", ""),
        ("$b.code as c", f"{RRF} asc, c", "limit 3"),
        (f"{RRF} as s", "s", "limit 3"),
        (f"{NEAREST}, {BM25}, {RRF}", "", ""),
    ],
)
def test_these_orders_are_fine(projections: str, order: str, limit: str) -> None:
    assert bind_text(returning(projections, order, limit)).name == "q"


# Grouping


@pytest.mark.parametrize("projection", ["now()", "5", '"x"', "[1]", "$p", NEAREST, BM25])
def test_only_properties_and_variables_group(projection: str) -> None:
    assert type_code(returning(f"{projection}, count($b)")) == "T9"
    assert type_code(returning(f"count($b), {projection} as x")) == "T9"


def test_a_grouping_key_is_a_property_or_a_whole_entity() -> None:
    bound = bind_read(read("$a $w:wrote $b", "return { $a, $b.format, $w, count($b) as n }"))

    assert bound.is_aggregate


def test_a_read_without_aggregates_has_no_groups() -> None:
    assert not bind_read(returning("$b.code, now(), 5, $p")).is_aggregate


# Which error is the first


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (read("$b: Nope", params="$v: Vector(0)"), None),
        (read("$b: Book $b.isbn = 1 $b likes $c $c: Nope"), "T6"),
        (read("$b: Book $b likes $c $b.isbn = 1"), "T4"),
        (read("$b: Book not { $x: Nope } $b.isbn = 1"), "T1"),
        (read("$b: Book not { $x: Book } $b.isbn = 1"), "T9"),
        (read("$b: Book not { $x: Book $x.isbn = 1 }"), "T6"),
        (read('$b: Book { isbn: "x", pages: "y" }'), "T2"),
        (read('$b: Book { pages: "y", isbn: "x" }'), "T3"),
        (books("$b.isbn = 1", tail="return { sum($b.title) }"), "T6"),
        (returning("sum($b.title), $b.isbn"), "T8"),
        (returning("$b.isbn, sum($b.title)"), "T6"),
        (returning("$b.isbn", "$z.code"), "T6"),
        (returning("$b.code", "$b.isbn, nearest($b.title, [1])"), "T6"),
        (returning("now(), sum($b.title)"), "T8"),
        (returning("sum($b.title), now()"), "T8"),
        (returning("now(), count($b)", "$b.isbn"), "T6"),
        (returning("now(), count($b)", NEAREST), "T17"),
        (returning("now(), count($b)", RRF), "T21"),
        (returning("now(), count($b) as n", f"{NEAREST}, n", "limit 1"), "T18"),
        (returning("$b.code as c", f"{NEAREST}, {RRF}, c"), "T21"),
        (returning("now(), count($b)", "nope"), "T9"),
    ],
)
def test_the_first_error_in_the_order_of_checks_is_reported(text: str, code: str | None) -> None:
    assert type_code(text) == code


def test_a_type_error_points_at_its_place() -> None:
    error = type_error("query q() {\n  match { $b: Book }\n  return { $b.isbn }\n}")

    assert pointed_at(error) == "$b.isbn"
    assert error.position == (3, 12)
    assert error.source == Source("query q() {\n  match { $b: Book }\n  return { $b.isbn }\n}")
