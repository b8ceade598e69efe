"""Plan errors: reads that are well typed and have no executable meaning."""

import pytest

from tests.support.queries import BM25, NEAREST, bind_text, books, plan_error, read, type_code

RRF = f"rrf({NEAREST}, {BM25})"
SEARCH = 'search($b.title, "x")'
PARAMS = "$p: Bool, $n: I32, $s: String"


def returning(projections: str, order: str = "", limit: str = "limit 3") -> str:
    """Return the text of a read of books with a tail."""
    key = f"order {{ {order} }}" if order else ""
    return read("$a $w:wrote $b", f"return {{ {projections} }} {key} {limit}", PARAMS)


# Order keys


@pytest.mark.parametrize(
    "key", ["nope", "$b", "$w", "5", '"x"', "[1]", "now()", "$n", "count($b)", "max($b.pages)", SEARCH]
)
def test_an_order_key_is_a_property_an_alias_or_a_ranking(key: str) -> None:
    plan_error(returning("$b.code as c", key))
    plan_error(returning("$b.code as c", f"c, {key} desc"))


def test_an_unknown_alias_is_named() -> None:
    error = plan_error(returning("$b.code as code", "cod"))

    assert "'cod'" in str(error)


def test_a_column_name_is_not_an_alias() -> None:
    plan_error(returning("$b.code", "code"))


@pytest.mark.parametrize("rank", [NEAREST, BM25, RRF])
def test_a_ranking_is_the_first_key(rank: str) -> None:
    plan_error(returning("$b.code", f"$b.price, {rank}"))


@pytest.mark.parametrize("rank", [BM25, RRF])
def test_a_ranking_behind_an_alias_is_the_first_key_too(rank: str) -> None:
    plan_error(returning(f"{rank} as s", "$b.price, s"))


def test_two_rankings_do_not_order() -> None:
    plan_error(returning("$b.code", f"{BM25}, {BM25}"))


def test_an_entity_is_ordered_through_its_alias() -> None:
    assert bind_text(returning("$b as x, $w as y", "x, y desc")).name == "q"


@pytest.mark.parametrize("projection", ["5 as x", "$n as x", "now() as x", "$w.role as x"])
def test_every_projected_column_orders_through_its_alias(projection: str) -> None:
    assert bind_text(returning(projection, "x")).name == "q"


# Aggregates


@pytest.mark.parametrize("key", ["$b.price", "$a.name", "$w.role", BM25, RRF])
def test_groups_are_ordered_by_an_alias_or_a_grouping_key(key: str) -> None:
    plan_error(returning("$b.code, count($a) as n", key))


def test_a_property_of_a_grouping_entity_is_no_grouping_key() -> None:
    plan_error(returning("$b, count($a) as n", "$b.code"))


@pytest.mark.parametrize("key", ["n desc", "$b.code", "c", "$b.code desc, n"])
def test_these_keys_order_groups(key: str) -> None:
    assert bind_text(returning("$b.code, $b.title as c, count($a) as n", key)).name == "q"


@pytest.mark.parametrize(
    "aggregate", ["count(count($b))", "sum(count($b))", "max(min($b.title))", "avg(sum($b.pages))"]
)
def test_aggregates_are_not_nested(aggregate: str) -> None:
    plan_error(returning(aggregate))


@pytest.mark.parametrize(
    "aggregate", [f"sum({NEAREST})", f"count({BM25})", f"max({RRF})", f"count({SEARCH})"]
)
def test_scores_and_text_predicates_are_not_aggregated(aggregate: str) -> None:
    plan_error(returning(aggregate))


# Text predicates


@pytest.mark.parametrize("function", ["search", "fuzzy", "match_text"])
@pytest.mark.parametrize(
    "comparison", ["{} = false", "{} != true", "{} = $p", "true = {}", "{} > false", "{} = {}"]
)
@pytest.mark.parametrize("block", ["{}", "not {{ {} }}"])
def test_a_text_predicate_is_compared_with_true_only(function: str, comparison: str, block: str) -> None:
    predicate = f'{function}($b.title, "x")'
    clause = block.format(comparison.format(predicate, predicate))

    plan_error(books(clause, params=PARAMS))


@pytest.mark.parametrize(
    "clause", [SEARCH, f"{SEARCH} = true", f"not {{ {SEARCH} }}", f"not {{ {SEARCH} = true }}"]
)
def test_a_text_predicate_is_a_clause(clause: str) -> None:
    assert bind_text(books(clause)).name == "q"


@pytest.mark.parametrize(
    "projection", [SEARCH, f"{SEARCH} as x", 'fuzzy($b.title, "x", 1)', 'match_text($b.title, "x")']
)
def test_a_text_predicate_is_not_returned(projection: str) -> None:
    plan_error(returning(projection))


@pytest.mark.parametrize("rank", [NEAREST, BM25, RRF])
@pytest.mark.parametrize("comparison", ["{} > 0.5", "0.5 < {}", "{} = {}"])
@pytest.mark.parametrize("block", ["{}", "not {{ {} }}"])
def test_a_ranking_does_not_stand_in_a_match(rank: str, comparison: str, block: str) -> None:
    plan_error(books(block.format(comparison.format(rank, rank))))


# Arguments


@pytest.mark.parametrize(
    "clause",
    [
        "search($b.title, $b.blurb)",
        "match_text($b.title, $c.title)",
        "fuzzy($b.title, $b.code)",
        "search($b.title, $b.blurb) = true",
        "not { search($b.title, $b.blurb) }",
        "search($b.title, max($b.title))",
    ],
)
def test_what_a_predicate_looks_for_is_a_literal_or_a_parameter(clause: str) -> None:
    plan_error(books(f"$b cites $c {clause}"))


@pytest.mark.parametrize(
    "rank",
    [
        "bm25($b.title, $b.blurb)",
        "nearest($b.embedding, $b.embedding)",
        "nearest($b.embedding, $b.title)",
        f"rrf({NEAREST}, bm25($b.title, $b.blurb))",
        f"rrf(nearest($b.embedding, $b.embedding), {BM25})",
    ],
)
def test_what_a_ranking_looks_for_is_a_literal_or_a_parameter(rank: str) -> None:
    plan_error(returning("$b.code", rank))
    plan_error(returning(f"{rank} as s"))
    plan_error(returning(f"{rank} as s", "s"))


def test_a_not_block_that_looks_for_an_outer_property_mentions_it() -> None:
    plan_error(books("not { $x: Book search($x.title, $b.title) }"))


@pytest.mark.parametrize(
    "arms", ["bm25($b.title, $s), bm25($c.title, $s)", f'{NEAREST}, bm25($c.title, "x")']
)
def test_the_arms_of_rrf_are_about_one_variable(arms: str) -> None:
    match, rank = "$b: Book $b cites $c", f"rrf({arms})"

    plan_error(read(match, f"return {{ $b.code }} order {{ {rank} }} limit 3", "$s: String"))
    plan_error(read(match, f"return {{ {rank} }}", "$s: String"))


def test_both_arms_of_rrf_may_be_of_one_kind() -> None:
    assert bind_text(returning("$b.code", "rrf(bm25($b.title, $s), bm25($b.blurb, $s), $n)")).name == "q"


# Types come first


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (returning("$b.code", "nope, $b.isbn"), "T6"),
        (returning("count(sum($b.title))"), "T8"),
        (returning("$b.code as c", f"c, {NEAREST}"), "T18"),
        (returning("$b.code as c", f"$b.price, {NEAREST}", ""), "T17"),
        (returning(f"{SEARCH}, count($b)"), "T9"),
        (books(f"{SEARCH} = 5"), "T7"),
        (books("search($b.title, $b.pages)"), "T19"),
    ],
)
def test_a_type_error_is_reported_before_a_plan_error(text: str, code: str) -> None:
    assert type_code(text) == code
