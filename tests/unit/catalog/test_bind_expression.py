"""Expressions of a read: property access, aggregates, search and ranking."""

import pytest

from omnigraph.catalog.bound import (
    AggregateValue,
    Bm25Value,
    EntityValue,
    LiteralValue,
    NearestValue,
    ParameterValue,
    PropertyValue,
    RrfValue,
    TextMatchValue,
    type_of,
)
from omnigraph.core.values import Scalar, ValueType
from tests.support.library import compile_text
from tests.support.queries import (
    BM25,
    NEAREST,
    bind_read,
    bind_text,
    books,
    bound_clauses,
    projected,
    read,
    type_code,
    type_error,
)

PARAMS = (
    "$s: String?, $n: I32, $f: F64, $texts: [String], $v: Vector(4), $v3: Vector(3), $blob: Blob, $vs: [F32]"
)


def returned(expression: str) -> str:
    """Return the text of a read of books, authors and the edges between them."""
    return read("$a $w:wrote $b", f"return {{ {expression} }}", PARAMS)


def ordered(key: str, limit: str = "limit 3") -> str:
    """Return the text of a read that is ordered by one key."""
    return read("$a $w:wrote $b", f"return {{ $b.code }} order {{ {key} }} {limit}", PARAMS)


@pytest.mark.parametrize(
    "text", [returned("null"), ordered("bm25($b.title, null)"), read("$b: Book $b.title = null")]
)
def test_a_null_that_is_written_out_is_refused_with_the_way_to_pass_one(text: str) -> None:
    help = type_error(text).diagnostics[0].help

    assert help is not None
    assert help.startswith("there is no null literal: pass it as a parameter")


# Names


def test_a_property_has_the_type_of_its_column() -> None:
    assert projected("$b.pages") == PropertyValue("b", "pages", ValueType(Scalar.I32, nullable=True))
    assert projected("$w.role", "$a $w:wrote $b") == PropertyValue(
        "w", "role", ValueType(Scalar.STRING, nullable=True, enum_values=("editor", "main", "translator"))
    )


def test_a_bare_variable_is_the_whole_node_or_edge() -> None:
    node, edge = projected("$a", "$a $w:wrote $b"), projected("$w", "$a $w:wrote $b")

    assert node == EntityValue("a", "Author", is_edge=False)
    assert edge == EntityValue("w", "Wrote", is_edge=True)
    assert type_of(node) is None


def test_a_bare_name_that_is_a_parameter_is_the_parameter() -> None:
    assert projected("$b", params="$b: I32?") == ParameterValue("b", ValueType(Scalar.I32, nullable=True))


def test_a_property_access_is_always_of_a_variable() -> None:
    value = projected("$b.code", params="$b: I32?")

    assert value == PropertyValue("b", "code", ValueType(Scalar.STRING))
    assert type_code(read("$x: Book", "return { $p.code }", "$p: String")) == "T6"


@pytest.mark.parametrize(
    "expression", ["$b.isbn", "$b.id", "$z.code", "$_.code", "$w.nope", "$w.id", "$w.src", "$a.code"]
)
@pytest.mark.parametrize("form", ["{}", "count({})", "sum({})"])
def test_a_property_that_is_not_there_is_refused(expression: str, form: str) -> None:
    assert type_code(returned(form.format(expression))) == "T6"
    assert type_code(ordered(form.format(expression))) == "T6"


@pytest.mark.parametrize(
    "text",
    [
        returned("$_"),
        returned("count($_)"),
        ordered("$_"),
        read("$b: Book $_ = 5"),
        read("$_: Book", "return { 1 }"),
    ],
)
def test_the_anonymous_variable_is_used_in_traversals_only(text: str) -> None:
    assert type_code(text) == "T6"


@pytest.mark.parametrize("expression", ["$nope", "count($nope)", "min($nope)"])
def test_a_bare_variable_that_is_not_there_is_refused_without_a_code(expression: str) -> None:
    error = type_error(returned(expression))

    assert error.type_code is None
    assert "'$nope'" in str(error)


@pytest.mark.parametrize("expression", ["title", "count(title)", "bm25($b.title, title)"])
def test_a_bare_word_is_not_a_value_to_return(expression: str) -> None:
    assert "'title'" in str(type_error(returned(expression)))


# Blobs


@pytest.mark.parametrize(
    "text",
    [
        returned("$b.cover"),
        returned("count($b.cover)"),
        returned("sum($b.cover)"),
        returned("min($b.cover)"),
        returned("$blob"),
        returned("$blob as x"),
        returned("count($blob)"),
        returned("max($blob)"),
        ordered("$b.cover"),
        ordered("$blob"),
        ordered("count($blob)"),
        books("$b.cover = $p", params="$p: Blob"),
        books('$b.cover = "x"'),
        books('$b.cover contains "x"'),
        books("$b.title starts_with $b.cover"),
        books('not { $b.cover = "x" }'),
        books('search($b.cover, "x")'),
        books("search($b.title, $b.cover)"),
        ordered('bm25($b.cover, "x")'),
        ordered("nearest($b.cover, [1, 0, 0, 0])"),
        ordered("nearest($b.embedding, $b.cover)"),
    ],
)
def test_a_blob_is_refused_wherever_it_is_read(text: str) -> None:
    assert type_code(text) == "T24"


def test_a_filter_between_two_blob_parameters_is_a_comparison_of_wrong_types() -> None:
    assert type_code(books("$p = $q", params="$p: Blob, $q: Blob")) == "T7"


# Aggregates


@pytest.mark.parametrize(
    ("aggregate", "type_"),
    [
        ("count($b)", ValueType(Scalar.I64, nullable=True)),
        ("count($w)", ValueType(Scalar.I64, nullable=True)),
        ("count($b.tags)", ValueType(Scalar.I64, nullable=True)),
        ("count($b.embedding)", ValueType(Scalar.I64, nullable=True)),
        ("count(now())", ValueType(Scalar.I64, nullable=True)),
        ("count(5)", ValueType(Scalar.I64, nullable=True)),
        ("count($n)", ValueType(Scalar.I64, nullable=True)),
        ("sum($b.pages)", ValueType(Scalar.F64, nullable=True)),
        ("avg($b.weight)", ValueType(Scalar.F64, nullable=True)),
        ("sum($w.share)", ValueType(Scalar.F64, nullable=True)),
        ("sum(2)", ValueType(Scalar.F64, nullable=True)),
        ("min($b.price)", ValueType(Scalar.F64, nullable=True)),
        ("max($b.pages)", ValueType(Scalar.I32, nullable=True)),
        ("min($b.stock)", ValueType(Scalar.U32, nullable=True)),
        ("max($b.title)", ValueType(Scalar.STRING, nullable=True)),
    ],
)
def test_an_aggregate_has_its_type(aggregate: str, type_: ValueType) -> None:
    value = projected(aggregate, "$a $w:wrote $b", PARAMS)

    assert isinstance(value, AggregateValue)
    assert value.type == type_


def test_the_least_value_of_an_enum_is_a_text() -> None:
    value = projected("min($b.format)")

    assert isinstance(value, AggregateValue)
    assert value.type.is_plain_string
    assert value.type.nullable


@pytest.mark.parametrize("function", ["sum", "avg", "min", "max"])
@pytest.mark.parametrize(
    "argument", ["$b", "$w", "$b.tags", "$b.embedding", "$b.added", "$b.published", "true", "[1]", "now()"]
)
def test_an_aggregate_refuses_what_it_cannot_aggregate(function: str, argument: str) -> None:
    assert type_code(returned(f"{function}({argument})")) == "T8"


@pytest.mark.parametrize("argument", ["$b.title", "$b.format", '"x"', "$s"])
def test_texts_have_no_sum(argument: str) -> None:
    assert type_code(returned(f"sum({argument})")) == "T8"
    assert type_code(returned(f"avg({argument})")) == "T8"
    assert bind_text(returned(f"max({argument})")).name == "q"


# Text search


@pytest.mark.parametrize("function", ["search", "match_text", "fuzzy"])
@pytest.mark.parametrize("query", ['"x"', "$s"])
@pytest.mark.parametrize("field", ["$b.title", "$b.blurb", "$b.format", "$a.name"])
def test_a_text_predicate_takes_a_text_property_and_a_text(function: str, query: str, field: str) -> None:
    *_, clause = bound_clauses(f"$a wrote $b {function}({field}, {query})", PARAMS)

    condition = getattr(clause, "condition", None)
    assert isinstance(condition, TextMatchValue)
    assert (condition.function, f"${condition.field.variable}.{condition.field.property}") == (
        function,
        field,
    )


@pytest.mark.parametrize("edits", ["0", "2", "$n"])
def test_the_edits_of_fuzzy_are_an_integer(edits: str) -> None:
    assert bind_text(books(f'fuzzy($b.title, "x", {edits})', params=PARAMS)).name == "q"


@pytest.mark.parametrize("edits", ["1.5", '"1"', "true", "$f", "$s", "[1]", "$b", "$b.price"])
def test_other_edits_are_refused(edits: str) -> None:
    assert type_code(books(f'fuzzy($b.title, "x", {edits})', params=PARAMS)) == "T19"


@pytest.mark.parametrize(
    ("function", "code"), [("search", "T19"), ("fuzzy", "T19"), ("match_text", "T20"), ("bm25", "T20")]
)
@pytest.mark.parametrize(
    "arguments",
    [
        '$b.pages, "x"',
        '$b.tags, "x"',
        '$b.embedding, "x"',
        '$b.added, "x"',
        '$b, "x"',
        '"text", "x"',
        '$s, "x"',
        "$b.title, 3",
        "$b.title, $n",
        "$b.title, $texts",
        '$b.title, ["x"]',
        "$b.title, $b",
        "$b.title, $b.pages",
        "$b.title, $blob",
        "$b.title, now()",
    ],
)
def test_a_text_function_refuses_other_fields_and_queries(function: str, code: str, arguments: str) -> None:
    call = f"{function}({arguments})"

    assert type_code(returned(call)) == code
    assert type_code(ordered(call)) == code


# Ranking


def test_a_score_is_a_number() -> None:
    assert type_of(projected(NEAREST)) == ValueType(Scalar.F64)
    assert type_of(projected(BM25)) == ValueType(Scalar.F64)
    assert type_of(projected(f"rrf({NEAREST}, {BM25})")) == ValueType(Scalar.F64)


def test_nearest_knows_its_vector_and_the_model_of_its_property() -> None:
    value = projected(NEAREST)

    assert isinstance(value, NearestValue)
    assert value.field.property == "embedding"
    assert value.query == LiteralValue((1.0, 0.0, 0.0, 0.0), ValueType(Scalar.VECTOR, dimension=4))
    assert value.model == "lab/mini-4"


def test_a_vector_without_a_recorded_model_has_none() -> None:
    catalog = compile_text("node Point { place: Vector(2) }")
    text = read("$p: Point", "return { nearest($p.place, [1, 2.5]) }")

    (projection,) = bind_read(text, catalog).projections

    assert isinstance(projection.expression, NearestValue)
    assert projection.expression.model is None


@pytest.mark.parametrize("query", ["[1, 0.5, 0, 0]", "$v", '"rivers"', "$s"])
def test_nearest_takes_a_vector_or_a_text(query: str) -> None:
    assert bind_text(ordered(f"nearest($b.embedding, {query})")).name == "q"


@pytest.mark.parametrize(
    "rank",
    [
        "nearest($z.embedding, $v)",
        "nearest($_.embedding, $v)",
        "nearest($b.nope, $v)",
        "nearest($b.title, $v)",
        "nearest($b.tags, $v)",
        "nearest($b.price, $v)",
        "nearest($b.embedding, [1, 0, 0])",
        "nearest($b.embedding, [1, 0, 0, 0, 0])",
        "nearest($b.embedding, [])",
        'nearest($b.embedding, ["a", "b", "c", "d"])',
        "nearest($b.embedding, $v3)",
        "nearest($b.embedding, $vs)",
        "nearest($b.embedding, $texts)",
        "nearest($b.embedding, $n)",
        "nearest($b.embedding, 3)",
        "nearest($b.embedding, true)",
        "nearest($b.embedding, now())",
        "nearest($b.embedding, $b)",
        "nearest($b.embedding, $b.tags)",
    ],
)
def test_nearest_refuses_other_fields_and_queries(rank: str) -> None:
    assert type_code(ordered(rank)) == "T15"
    assert type_code(returned(rank)) == "T15"
    assert type_code(ordered(f"rrf({rank}, {BM25})")) == "T15"


def test_rrf_fuses_two_rankings() -> None:
    value = projected(f"rrf({NEAREST}, {BM25}, 10)")

    assert isinstance(value, RrfValue)
    assert isinstance(value.first, NearestValue)
    assert isinstance(value.second, Bm25Value)
    assert value.k == LiteralValue(10, ValueType(Scalar.I64))


@pytest.mark.parametrize("k", ["0", "1.5", '"1"', "true", "[1]", "$f", "$s", "$b"])
def test_the_k_of_rrf_is_a_positive_integer(k: str) -> None:
    assert type_code(ordered(f"rrf({NEAREST}, {BM25}, {k})")) == "T21"


@pytest.mark.parametrize("k", ["", ", 1", ", $n"])
def test_the_k_of_rrf_may_be_left_out_or_be_a_parameter(k: str) -> None:
    assert bind_text(ordered(f"rrf({BM25}, {NEAREST}{k})")).name == "q"


@pytest.mark.parametrize("rank", ['bm25($w.role, "x")', "nearest($w.share, $v)", 'search($w.role, "x")'])
def test_an_edge_is_not_ranked(rank: str) -> None:
    assert type_code(returned(rank)) == "T23"
