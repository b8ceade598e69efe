"""Query files: heads, tails and statements, mixed mutations, and how the parser goes on behind an error."""

import pytest

from omnigraph.core.limits import DIAGNOSTICS_MAX, NESTING_MAX, U64_MAX
from omnigraph.core.source_errors import MixedMutation, ParseError
from omnigraph.core.values import Scalar, ValueType
from omnigraph.language.query_ast import Delete, Insert, Update
from tests.support.library import pointed_at
from tests.support.queries import books, mutation, parse, parse_error, parse_mutation, parse_one, parse_read

# Heads


def test_a_file_may_hold_no_query_or_many() -> None:
    assert parse("").queries == ()
    assert parse(" // nothing\n").queries == ()
    assert [q.name.text for q in parse(f"{books()} {books().replace('q()', 'r()')}").queries] == ["q", "r"]


def test_a_query_name_may_repeat_in_a_file() -> None:
    assert len(parse(f"{books()} {books()}").queries) == 2


@pytest.mark.parametrize(
    "word", ["String", "Blob", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "DateTime", "Date"]
)
def test_every_scalar_is_a_parameter_type(word: str) -> None:
    text = books(params=f"$a: {word}, $b: {word}?, $c: [{word}], $d: [{word}]?")

    types = [parameter.type for parameter in parse_one(text).parameters]

    scalar = Scalar(word)
    assert types == [
        ValueType(scalar),
        ValueType(scalar, nullable=True),
        ValueType(scalar, is_list=True),
        ValueType(scalar, nullable=True, is_list=True),
    ]


@pytest.mark.parametrize(
    "type_text",
    [
        "enum(a, b)",
        "[enum(a)]",
        "[[String]]",
        "[Vector(4)]",
        "[String?]",
        "Vector",
        "Vector()",
        "Vector(-1)",
        "string",
    ],
)
def test_other_types_are_no_parameter_types(type_text: str) -> None:
    parse_error(books(params=f"$p: {type_text}"))


@pytest.mark.parametrize(
    "params", ["$a: String $b: String", "$a: String,", ", $a: String", "a: String", "$a String", "$a"]
)
def test_parameters_are_separated_by_single_commas(params: str) -> None:
    parse_error(books(params=params))


@pytest.mark.parametrize(
    ("annotations", "description", "instruction"),
    [
        ("", None, None),
        ('@description("d")', "d", None),
        ('@instruction("i") @description("d")', "d", "i"),
        ('@description("") @instruction("")', "", ""),
    ],
)
def test_a_query_has_a_description_and_an_instruction(
    annotations: str, description: str | None, instruction: str | None
) -> None:
    query = parse_one(f"query q() {annotations} {{ match {{ $b: Book }} return {{ $b.code }} }}")

    texts = [text.value if text else None for text in (query.description, query.instruction)]

    assert texts == [description, instruction]


@pytest.mark.parametrize(
    "annotations",
    [
        '@description("a") @description("b")',
        '@description("a") @instruction("i") @description("b")',
        "@description",
        "@description()",
        "@description(5)",
        '@embed("x")',
    ],
)
def test_an_annotation_of_a_query_is_one_of_two_with_one_text(annotations: str) -> None:
    parse_error(f"query q() {annotations} {{ match {{ $b: Book }} return {{ $b.code }} }}")


def test_no_word_is_reserved() -> None:
    text = (
        "query match($order: String) { match { $return: Book { code: $order } $match not_ $limit } "
        "return { $return.set as order, $limit.query as desc } order { order desc, desc } limit 3 }"
    )

    body = parse_read(text)

    assert [projection.alias.text for projection in body.projections if projection.alias] == ["order", "desc"]
    assert [ordering.descending for ordering in body.orderings] == [True, False]


@pytest.mark.parametrize(
    "text",
    [
        "query Q() { match { $b: Book } return { $b.code } }",
        "query q { match { $b: Book } return { $b.code } }",
        "query q() { }",
        "query q() { match { $b: Book } }",
        "query q() { return { 1 } }",
        "query q() { match { $b: Book } return { $b.code }",
        "query q() { match { $b: Book } return { $b.code } } }",
        "queryq() { match { $b: Book } return { $b.code } }",
        "match { $b: Book } return { $b.code }",
        'query q() { match { $b: Book } return { $b.code } insert Note { body: "x" } }',
        "query q() # comment\n{ match { $b: Book } return { $b.code } }",
    ],
)
def test_a_query_has_its_parts_and_no_others(text: str) -> None:
    parse_error(text)


@pytest.mark.parametrize(
    "tail",
    [
        "order { $b.code } return { $b.code }",
        "return { $b.code } limit 1 limit 2",
        "return { $b.code } order { }",
        "return { $b.code } order { $b.code $b.title }",
        "return { $b.code } order { $b.code, }",
        "return { $b.code } limit",
        "return { $b.code } limit -1",
        "return { $b.code } limit $n",
        "return { , $b.code }",
        "return { $b.code,, $b.title }",
        "return { $b.code as }",
        "return { $b.code as Code }",
        "return { nearest($b.embedding, $q) } order { nearest($b.embedding, $q) asc }",
    ],
)
def test_the_tail_of_a_read_has_a_fixed_form(tail: str) -> None:
    parse_error(books(tail=tail, params="$q: Vector(4)"))


def test_limit_is_an_unsigned_integer_of_64_bits() -> None:
    assert parse_read(books(tail=f"return {{ 1 }} limit {U64_MAX}")).limit == U64_MAX
    assert parse_read(books(tail="return { 1 } limit 0")).limit == 0
    assert parse_read(books(tail="return { 1 }")).limit is None
    parse_error(books(tail=f"return {{ 1 }} limit {U64_MAX + 1}"))


# Mutations


def test_statements_follow_each_other() -> None:
    text = mutation(
        'insert Note { body: "x", made: now() } update Note set { body: $t made: now() } where body != $t'
    )

    insert, update = parse_mutation(text).statements

    assert isinstance(insert, Insert)
    assert [a.name.text for a in insert.assignments] == ["body", "made"]
    assert isinstance(update, Update)
    assert [a.name.text for a in update.assignments] == ["body", "made"]
    assert (update.predicate.name.text, update.predicate.operator) == ("body", "!=")


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_a_predicate_is_one_comparison(operator: str) -> None:
    (delete,) = parse_mutation(mutation(f"delete Note where body {operator} now()")).statements

    assert isinstance(delete, Delete)
    assert delete.predicate.operator == operator


@pytest.mark.parametrize(
    "statement",
    [
        "insert Note",
        "insert note { body: 1 }",
        "insert Note { Body: 1 }",
        "insert Note { body 1 }",
        "insert Note { body: $a.b }",
        "insert Note { body: 1,, made: 2 }",
        "update Note set { } where body = 1",
        "update Note { body: 1 } where body = 1",
        "update Note set { body: 1 }",
        "delete Note",
        "delete Note where",
        "delete Note where body = 1 and body = 2",
        'delete Note where body starts_with "x"',
        "delete Note where body = null",
        "delete Note where $n.body = 1",
        "upsert Note { body: 1 }",
    ],
)
def test_a_statement_has_one_form(statement: str) -> None:
    parse_error(mutation(statement))


# Inserts and deletes together

MIXED = 'insert Nope { nope: $nope } delete Nowhere where nothing = "x"'


@pytest.mark.parametrize(
    "statements",
    [
        'insert Note { body: "x" } delete Note where body = "x"',
        'delete Note where body = "x" insert Note { body: "x" }',
        'update Note set { body: "x" } where body = "y" delete Note where body = "x"',
        'delete Note where body = "x" update Note set { body: "x" } where body = "y"',
        'delete Note where body = "x" delete Note where body = "z" insert Note { body: "x" }',
    ],
)
def test_deletes_stand_apart_in_whatever_order(statements: str) -> None:
    error = parse_error(mutation(statements, name="tidy"))

    assert isinstance(error, MixedMutation)
    assert error.query_name == "tidy"
    assert "'tidy'" in str(error)


def test_a_mixed_mutation_is_refused_before_anything_is_looked_up() -> None:
    """No catalog is at hand here, and no name in the query exists."""
    assert isinstance(parse_error(mutation(MIXED)), MixedMutation)


def test_several_deletes_or_several_inserts_and_updates_are_fine() -> None:
    deletes = 'delete Note where body = "x" delete Wrote where from = "y"'
    writes = 'update Note set { body: "x" } where body = "y" insert Note { body: "x" }'

    assert len(parse_mutation(mutation(deletes)).statements) == 2
    assert len(parse_mutation(mutation(writes)).statements) == 2


def test_the_first_error_of_a_file_decides_its_class() -> None:
    broken_first = parse_error(f"query a( {{ }} {mutation(MIXED)}")
    mixed_first = parse_error(f"{mutation(MIXED)} query a( {{ }}")

    assert type(broken_first) is ParseError
    assert len(broken_first.diagnostics) == 2
    assert isinstance(mixed_first, MixedMutation)


def test_what_follows_a_mixed_mutation_is_reported_with_it() -> None:
    error = parse_error(f"{mutation(MIXED)} query broken( {{ }}")

    assert len(error.diagnostics) == 2


# Errors


def test_an_error_points_at_what_it_is_about() -> None:
    error = parse_error("query q() {\n  match { $b: Book }\n  return { $b.code }\n  limit -1\n}")

    assert pointed_at(error) == "-"
    assert error.position == (4, 9)


def test_spans_count_bytes_and_are_never_empty() -> None:
    text = 'query q() { match { $b: Book { title: "é" } } return { }'

    error = parse_error(text)

    start = text.encode().index(b"{ }") + 2
    assert error.span == (start, start + 1)


def test_an_error_at_the_end_has_a_span_of_one_byte() -> None:
    assert parse_error("query q()").span == (9, 10)


def test_one_run_reports_every_broken_query() -> None:
    broken = "query a() { match { } return { 1 } }"
    text = f"{broken} {books()} {broken.replace('a()', 'b()')} {books()} nonsense {books()}"

    error = parse_error(text)

    assert len(error.diagnostics) == 3
    starts = [d.span.start for d in error.diagnostics if d.span]
    assert starts == sorted(starts)
    assert str(error).startswith(f"parse error: {error.diagnostics[0].text}")


def test_a_file_reports_so_many_errors_and_no_more() -> None:
    error = parse_error("query a() { match { } return { 1 } }\n" * (DIAGNOSTICS_MAX + 5))

    assert len(error.diagnostics) == DIAGNOSTICS_MAX


@pytest.mark.parametrize(
    ("opening", "closing"), [("not { $b cites $b ", "} "), ("$b.tags contains [", "]")], ids=["not", "list"]
)
def test_nesting_has_a_limit(opening: str, closing: str) -> None:
    deepest = NESTING_MAX + 1
    nested = opening + opening.removeprefix("$b.tags contains ") * (deepest - 1) + closing * deepest

    assert str(NESTING_MAX) in str(parse_error(books(nested)))


def test_blocks_nest_as_deep_as_the_limit() -> None:
    depth = NESTING_MAX - 1  # the match block is the first level

    assert parse(books("not { $b cites $b " * depth + "} " * depth)).queries


def test_lists_nest_as_deep_as_the_limit() -> None:
    depth = NESTING_MAX

    assert parse(books(tail=f"return {{ {'[' * depth}{']' * depth} }}")).queries


def test_a_byte_order_mark_is_not_white_space() -> None:
    assert "byte order mark" in parse_error("\N{ZERO WIDTH NO-BREAK SPACE}" + books()).render()
