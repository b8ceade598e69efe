"""The inside of a match block: every clause and expression of the grammar, and what is refused."""

import pytest

from omnigraph.core.limits import I64_MAX
from omnigraph.core.values import Scalar
from omnigraph.language.query_ast import (
    Aggregate,
    AliasReference,
    Binding,
    Bm25,
    Expression,
    Filter,
    Hops,
    ListLiteral,
    Literal,
    Nearest,
    Negation,
    Now,
    PropertyAccess,
    Rrf,
    TextMatch,
    TextPredicate,
    Traversal,
    Variable,
)
from tests.support.queries import books, parse_clause, parse_error, parse_read, read


def parse_expression(text: str) -> Expression:
    """Return an expression as a projection parses it."""
    (projection,) = parse_read(read("$b: Book", f"return {{ {text} }}")).projections
    return projection.expression


# Clauses


def test_a_binding_names_a_variable_a_type_and_matches() -> None:
    clause = parse_clause('$b: Book { code: "x", pages: $p, added: now() }')

    assert isinstance(clause, Binding)
    assert (clause.variable.name, clause.type_name.text) == ("b", "Book")
    assert [match.name.text for match in clause.matches] == ["code", "pages", "added"]
    assert [type(match.value) for match in clause.matches] == [Literal, Variable, Now]


@pytest.mark.parametrize(
    "clause",
    [
        "$b: book",
        "$b Book",
        '$b: Book { code: "x" pages: 3 }',
        '$b: Book { code: "x",, }',
        "$b: Book { code }",
        "$b: Book { code: }",
        "$b: Book { code: null }",
        "$b: Book { code: $a.code }",
        "$b: Book { code: x }",
        "$b: Book { pages: count($b) }",
        "b: Book",
        "$B: Book",
        "$1: Book",
    ],
)
def test_a_binding_has_one_form(clause: str) -> None:
    parse_error(read(clause))


@pytest.mark.parametrize(
    ("text", "edge_variable", "undirected", "hops"),
    [
        ("$a wrote $b", None, False, None),
        ("$a $w:wrote $b", "w", False, None),
        ("$a $w : wrote $b", "w", False, None),
        ("$a <wrote> $b", None, True, None),
        ("$a $w:<wrote> $b", "w", True, None),
        ("$a wrote{1,3} $b", None, False, (1, 3)),
        ("$a wrote{2,} $b", None, False, (2, None)),
        ("$a <wrote>{1,2} $b", None, True, (1, 2)),
        ("$a < wrote > { 1 , 2 } $b", None, True, (1, 2)),
    ],
)
def test_a_traversal_may_name_its_edge_go_both_ways_and_have_bounds(
    text: str, edge_variable: str | None, undirected: bool, hops: tuple[int, int | None] | None
) -> None:
    clause = parse_clause(text)

    assert isinstance(clause, Traversal)
    assert (clause.left.name, clause.edge.text, clause.right.name) == ("a", "wrote", "b")
    assert (clause.edge_variable.name if clause.edge_variable else None) == edge_variable
    assert clause.undirected == undirected
    assert (None if clause.hops is None else (clause.hops.low, clause.hops.high)) == hops


def test_the_anonymous_variable_stands_for_ends_and_edges() -> None:
    clause = parse_clause("$_ $_:wrote $_")

    assert isinstance(clause, Traversal)
    assert clause.edge_variable is not None
    assert {clause.left.name, clause.edge_variable.name, clause.right.name} == {"_"}


@pytest.mark.parametrize(
    "clause",
    [
        "$a Wrote $b",
        "$a not $b",
        "$a wrote b",
        "$a wrote",
        "$a wrote{2} $b",
        "$a wrote{,2} $b",
        "$a wrote{1..2} $b",
        "$a wrote{1,2,3} $b",
        "$a <wrote $b",
        "$a $w wrote $b",
        f"$a wrote{{1,{I64_MAX + 1}}} $b",
        '$q contains "x"',
        '$q starts_with "x"',
    ],
)
def test_a_traversal_has_one_form(clause: str) -> None:
    parse_error(read(clause))


def test_a_variable_followed_by_a_word_is_a_traversal() -> None:
    clause = parse_clause("$q contains $m")

    assert isinstance(clause, Traversal)
    assert clause.edge.text == "contains"


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">=", "contains", "starts_with"])
def test_a_filter_has_one_of_eight_operators(operator: str) -> None:
    clause = parse_clause(f'$b.title {operator} "x"')

    assert isinstance(clause, Filter)
    assert clause.operator == operator
    assert isinstance(clause.left, PropertyAccess)
    assert isinstance(clause.right, Literal)


@pytest.mark.parametrize(
    "clause", ["$b.title == 1", "$b.title <> 1", "$b.title", "= 1", "$b.title =", '"x"', "now()"]
)
def test_a_filter_has_two_sides_and_a_known_operator(clause: str) -> None:
    parse_error(books(clause))


def test_a_bare_variable_is_compared() -> None:
    clause = parse_clause("$p < $q")

    assert isinstance(clause, Filter)
    assert (clause.left, clause.right) == (parse_expression("$p"), parse_expression("$q"))


def test_null_and_not_before_an_operator_are_alias_references() -> None:
    clause = parse_clause("not = null")

    assert isinstance(clause, Filter)
    assert isinstance(clause.left, AliasReference)
    assert isinstance(clause.right, AliasReference)


def test_a_text_predicate_stands_alone_or_is_compared() -> None:
    alone = parse_clause('search($b.title, "x")')
    compared = parse_clause('search($b.title, "x") = true')

    assert isinstance(alone, TextPredicate)
    assert isinstance(compared, Filter)
    assert compared.left == alone.expression


def test_not_blocks_nest() -> None:
    clause = parse_clause("not { $a wrote $b not { $b cites $c } }")

    assert isinstance(clause, Negation)
    assert [type(inner) for inner in clause.clauses] == [Traversal, Negation]


@pytest.mark.parametrize("clause", ["not { }", "not $a wrote $b", "not"])
def test_a_not_block_has_braces_and_a_clause(clause: str) -> None:
    parse_error(books(clause))


@pytest.mark.parametrize(
    "text",
    [
        read("$__b: Book"),
        read("$a $__w:wrote $b"),
        read("$a wrote $__b"),
        books("$__b.code = 1"),
        books(tail="return { $__b }"),
        books(params="$__p: I32"),
    ],
)
def test_names_of_the_runtime_are_reserved(text: str) -> None:
    assert "__" in str(parse_error(text))


def test_hops_that_a_traversal_has_are_kept_as_written() -> None:
    clause = parse_clause(f"$a wrote{{0,{I64_MAX}}} $b")

    assert isinstance(clause, Traversal)
    assert isinstance(clause.hops, Hops)
    assert (clause.hops.low, clause.hops.high) == (0, I64_MAX)


# Expressions


@pytest.mark.parametrize(
    ("text", "scalar", "value"),
    [
        ('"a"', Scalar.STRING, "a"),
        (r'"\"\\\n\r\t"', Scalar.STRING, '"\\\n\r\t'),
        ('"two\nlines"', Scalar.STRING, "two\nlines"),
        ('"// no comment"', Scalar.STRING, "// no comment"),
        ("0", Scalar.I64, 0),
        ("007", Scalar.I64, 7),
        (str(I64_MAX), Scalar.I64, I64_MAX),
        ("1.50", Scalar.F64, 1.5),
        ("true", Scalar.BOOL, True),
        ("false", Scalar.BOOL, False),
        ('date("2020-05-01")', Scalar.DATE, "2020-05-01"),
        ('datetime("x")', Scalar.DATETIME, "x"),
    ],
)
def test_a_literal_has_its_scalar_and_value(text: str, scalar: Scalar, value: object) -> None:
    literal = parse_expression(text)

    assert isinstance(literal, Literal)
    assert (literal.scalar, literal.value) == (scalar, value)


@pytest.mark.parametrize(
    "text",
    [
        str(I64_MAX + 1),
        "1.",
        ".5",
        "1_000",
        "0x1",
        "3abc",
        "1e3",
        "1.5e3",
        "'a'",
        '"a',
        r'"\u0041"',
        "9" * 5_000,
    ],
)
def test_a_literal_has_one_form(text: str) -> None:
    parse_error(books(f"$b.pages = {text}"))


@pytest.mark.parametrize(("text", "count"), [("[]", 0), ("[1]", 1), ('[1, "a", [true]]', 3)])
def test_a_list_holds_literals(text: str, count: int) -> None:
    literal = parse_expression(text)

    assert isinstance(literal, ListLiteral)
    assert len(literal.items) == count


@pytest.mark.parametrize("text", ["[1,]", "[1 2]", "[$p]", "[now()]", "[-1]", "[null]", "[1"])
def test_a_list_holds_nothing_else(text: str) -> None:
    parse_error(books(f"$b.tags contains {text}"))


def test_every_function_has_its_arguments() -> None:
    assert isinstance(parse_expression("now()"), Now)
    assert parse_expression("now") == AliasReference("now", parse_expression("now").span)
    for function in ("count", "sum", "avg", "min", "max"):
        aggregate = parse_expression(f"{function}($b.pages)")
        assert isinstance(aggregate, Aggregate)
        assert aggregate.function == function
    for function in ("search", "fuzzy", "match_text"):
        match = parse_expression(f'{function}($b.title, "x")')
        assert isinstance(match, TextMatch)
        assert (match.function, match.edits) == (function, None)
    edited = parse_expression('fuzzy($b.title, "x", 1)')
    assert isinstance(edited, TextMatch)
    assert edited.edits == parse_expression("1")
    assert isinstance(parse_expression("bm25($b.title, $q)"), Bm25)
    assert isinstance(parse_expression("nearest($b.embedding, $q)"), Nearest)
    fused = parse_expression("rrf(nearest($b.embedding, $q), bm25($b.title, $q), 10)")
    assert isinstance(fused, Rrf)
    assert (type(fused.first), type(fused.second), fused.k) == (Nearest, Bm25, parse_expression("10"))


@pytest.mark.parametrize(
    "text",
    [
        "now(1)",
        "count()",
        "count($a, $b)",
        'search($b.title, "x", 1)',
        "search($b.title)",
        'match_text($b.title, "x", 1)',
        "nearest($b, $q)",
        'nearest("x", $q)',
        "nearest($b.embedding)",
        "bm25($b.title)",
        "rrf(nearest($b.embedding, $q))",
        "rrf($b.title, bm25($b.title, $q))",
        "rrf(rrf(bm25($b.title, $q), bm25($b.title, $q)), bm25($b.title, $q))",
        "rrf(bm25($b.title, $q), bm25($b.title, $q), 1, 2)",
        "lower($b.title)",
        "date(5)",
        "$b.title.length",
        "$b . Title",
        "-1",
        "(1)",
        "$b.pages + 1",
    ],
)
def test_a_function_has_no_other_arguments(text: str) -> None:
    parse_error(books(tail=f"return {{ {text} }}"))
