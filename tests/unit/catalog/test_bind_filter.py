"""Filters: which operands go together, and which operator they get."""

from itertools import product

import pytest

from omnigraph.catalog.bound import (
    NOW_PARAMETER,
    BoundFilter,
    LiteralValue,
    Operator,
    ParameterValue,
    TextMatchValue,
)
from omnigraph.core.source_errors import TypeCheckError
from omnigraph.core.values import Scalar, ValueType
from tests.support.queries import (
    bind_text,
    books,
    bound_clauses,
    comparison,
    execution_error,
    projected,
    read,
    type_code,
    type_error,
)

SCALARS = ["String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime"]
NUMBERS = {"I32", "I64", "U32", "U64", "F32", "F64"}
COMPARISONS = {"=": "eq", "!=": "ne", ">": "gt", "<": "lt", ">=": "ge", "<=": "le"}


def outcome(condition: str, params: str) -> str | None:
    """Return the code that a filter is refused with, or "ok"."""
    try:
        bind_text(books(condition, params=params))
    except TypeCheckError as error:
        return error.type_code
    return "ok"


# Comparisons


@pytest.mark.parametrize(("written", "operator"), list(COMPARISONS.items()))
def test_a_comparison_has_its_operator(written: str, operator: str) -> None:
    *_, condition = bound_clauses(f"$b: Book $b.pages {written} 5")

    assert comparison(condition).operator is Operator(operator)


@pytest.mark.parametrize(("left", "right"), list(product(SCALARS, SCALARS)))
def test_two_scalars_compare_when_they_are_of_one_type_or_numbers(left: str, right: str) -> None:
    params = f"$l: {left}, $r: {right}?"
    expected = "ok" if left == right or {left, right} <= NUMBERS else "T7"

    assert outcome("$l = $r", params) == expected


@pytest.mark.parametrize("type_text", ["[String]", "[I32]", "Vector(4)", "Blob"])
def test_a_list_a_vector_or_a_blob_compares_with_nothing(type_text: str) -> None:
    params = f"$l: {type_text}, $r: {type_text}, $s: String, $n: I32"

    for written in COMPARISONS:
        assert outcome(f"$l {written} $r", params) == "T7"
    assert outcome("$l = $s", params) == "T7"
    assert outcome("$n = $l", params) == "T7"


@pytest.mark.parametrize(
    "condition",
    [
        "$b.pages = 120.0",
        "$b.pages < 3000000000",
        "$b.weight = 0.1",
        "$b.stock >= $b.price",
        '$b.format = "vinyl"',
        "$b.format = $b.title",
        "$b.added <= now()",
        "now() > $b.added",
        '$b.published >= date("2020-01-01")',
        '"x" = $b.code',
        "1 = 1.0",
        "true != false",
        "$b.code = $other.code",
    ],
)
def test_these_operands_go_together(condition: str) -> None:
    assert bind_text(read(f"$b: Book $other: Book {condition}")).name == "q"


@pytest.mark.parametrize(
    "condition",
    [
        '$b.pages > "x"',
        '$b.published = "2020-01-01"',
        '$b.published = datetime("2020-01-01")',
        "$b.published = now()",
        "$b.added = $b.published",
        "$b.price = true",
        "$b.format = 3",
        '$b.tags = "x"',
        '$b.tags = ["x"]',
        "$b.tags = $b.tags",
        "$b.embedding = [1, 0, 0, 0]",
        "$b.embedding != $b.embedding",
        "$b = 5",
        "5 = $b",
        "$b = $b",
        '$w = "x"',
        "$w = $b",
        "count($b) > 3",
        "$b.pages = max($b.pages)",
        "$b.code = null",
        "null = $b.code",
        "$b.code = title",
        "nope != 3",
    ],
)
def test_these_operands_do_not(condition: str) -> None:
    assert type_code(read(f"$a $w:wrote $b {condition}", params="$v: Vector(4)")) == "T7"


def test_an_unbound_bare_variable_is_no_operand() -> None:
    error = type_error(books("$nope = 3"))

    assert error.type_code is None
    assert "'$nope'" in str(error)


def test_a_parameter_hides_a_variable_of_its_name() -> None:
    *_, condition = bound_clauses("$b: Book $b = $b.code", "$b: String")

    assert comparison(condition).left == ParameterValue("b", ValueType(Scalar.STRING))


def test_the_left_operand_is_checked_first() -> None:
    assert type_code(books("$b.isbn = $nope")) == "T6"
    assert type_code(books("$nope = $b.isbn")) is None


# contains and starts_with


@pytest.mark.parametrize(
    ("condition", "operator"),
    [
        ('$b.tags contains "a"', "contains"),
        ("$b.tags contains $b.format", "contains"),
        ("[1, 2] contains $b.pages", "contains"),
        ('[] contains "a"', "contains"),
        ('$b.title contains "a"', "string_contains"),
        ('$b.format contains "a"', "string_contains"),
        ('"see AA-1" contains $b.code', "string_contains"),
        ('$b.title starts_with "a"', "starts_with"),
        ("$b.format starts_with $b.title", "starts_with"),
    ],
)
def test_the_left_type_decides_what_contains_means(condition: str, operator: str) -> None:
    *_, found = bound_clauses(f"$b: Book {condition}")

    assert comparison(found).operator is Operator(operator)


@pytest.mark.parametrize(
    "condition",
    [
        "$b.pages contains 3",
        "$b.added contains now()",
        "$b.embedding contains 1.0",
        '$b.embedding contains "x"',
        "$b.tags contains 3",
        '$b.tags contains ["a"]',
        "$b.tags contains $b.tags",
        "$b.tags contains $v",
        "$b.tags contains $b",
        "[1, 2] contains $v",
        "[1, 2] contains true",
        "$b.title contains 3",
        "$b.title contains $b.tags",
        "$b.title contains $blob",
        "$b.title contains null",
        '3 contains "x"',
        '$b.pages starts_with "1"',
        "$b.title starts_with 1",
        '$b.tags starts_with "x"',
        "$b.title starts_with $b.tags",
        '$b.added starts_with "2"',
    ],
)
def test_contains_and_starts_with_refuse_other_operands(condition: str) -> None:
    assert type_code(books(condition, params="$v: Vector(4), $blob: Blob")) == "T7"


# Values


def test_now_is_a_parameter_of_the_runtime() -> None:
    *_, condition = bound_clauses("$b: Book $b.added <= now()")

    assert comparison(condition).right == ParameterValue(NOW_PARAMETER, ValueType(Scalar.DATETIME))


@pytest.mark.parametrize(
    ("literal", "value", "type_"),
    [
        ('date("1970-01-02")', 1, ValueType(Scalar.DATE)),
        ('date("1970-01-02T23:00:00-01:00")', 2, ValueType(Scalar.DATE)),
        ('datetime("1970-01-01T00:00:01.5Z")', 1_500, ValueType(Scalar.DATETIME)),
        ('datetime("1970-01-02")', 86_400_000, ValueType(Scalar.DATETIME)),
        ("5", 5, ValueType(Scalar.I64)),
        ("5.0", 5.0, ValueType(Scalar.F64)),
        ("[]", (), ValueType(Scalar.STRING, is_list=True)),
        ("[1, 2.5]", (1, 2.5), ValueType(Scalar.I64, is_list=True)),
        ("[2.5, 1]", (2.5, 1), ValueType(Scalar.F64, is_list=True)),
        ('[date("1970-01-02")]', (1,), ValueType(Scalar.DATE, is_list=True)),
    ],
)
def test_a_literal_has_its_value_and_type(
    literal: str, value: float | tuple[float, ...], type_: ValueType
) -> None:
    assert projected(literal) == LiteralValue(value, type_)


@pytest.mark.parametrize(
    "literal",
    [
        "[[1]]",
        "[[]]",
        "[1, [2]]",
        '[1, "a"]',
        "[true, 1]",
        '["a", date("2020-01-01")]',
        '[date("2020-01-01"), 1]',
    ],
)
@pytest.mark.parametrize("place", ["$b.tags contains {}", "not {{ $b.tags contains {} }}"])
def test_a_list_is_flat_and_of_one_type(literal: str, place: str) -> None:
    assert type_code(books(place.format(literal))) is None


@pytest.mark.parametrize(
    ("literal", "kind"),
    [
        ('date("2020-02-30")', "Date"),
        ('date("soon")', "Date"),
        ('datetime("2020-01-01T25:00:00Z")', "DateTime"),
    ],
)
def test_a_day_that_does_not_exist_is_an_execution_error(literal: str, kind: str) -> None:
    error = execution_error(books(tail=f"return {{ {literal} }}"))

    assert f"invalid {kind} " in str(error)
    assert f"'{literal.split(chr(34))[1]}'" in str(error)


# Text predicates


@pytest.mark.parametrize("clause", ['search($b.blurb, "x")', 'search($b.blurb, "x") = true'])
def test_a_text_predicate_is_a_condition(clause: str) -> None:
    *_, found = bound_clauses(f"$b: Book {clause}")

    assert isinstance(found, BoundFilter)
    condition = found.condition
    predicate = condition if isinstance(condition, TextMatchValue) else condition.left
    assert isinstance(predicate, TextMatchValue)
    assert (predicate.function, predicate.field.property, predicate.edits) == ("search", "blurb", None)
