"""Cases 112 to 133 of languages.md: what the type checker refuses, with which code."""

import pytest

from tests.support.queries import BM25, NEAREST, bind_text, books, read, type_code, type_error


def assert_refused(text: str, code: str | None, name: str) -> None:
    """The query has this code, and its message spells the name it is about."""
    error = type_error(text)

    assert error.type_code == code
    assert name in str(error)


@pytest.mark.case("languages", 112)
@pytest.mark.parametrize("name", ["Catalogued", "Nope"])
def test_a_binding_names_a_node_type(name: str) -> None:
    assert_refused(read(f"$x: {name}", "return { $x.code }"), "T1", f"'{name}'")


@pytest.mark.case("languages", 113)
def test_an_inline_match_names_a_property_of_the_type() -> None:
    assert_refused(read('$b: Book { isbn: "x" }'), "T2", "'isbn'")


@pytest.mark.case("languages", 114)
@pytest.mark.parametrize(
    ("match", "name"),
    [
        ('pages: "x"', "pages"),
        ('format: "vinyl"', "'vinyl'"),
        ('tags: ["a"]', "tags"),
        ('cover: "x"', "cover"),
    ],
)
def test_a_literal_fits_the_property_it_is_matched_with(match: str, name: str) -> None:
    assert_refused(read(f"$b: Book {{ {match} }}"), "T3", name)


@pytest.mark.case("languages", 115)
def test_a_traversal_names_a_known_edge() -> None:
    assert_refused(books("$b likes $c"), "T4", "'likes'")


@pytest.mark.case("languages", 116)
@pytest.mark.parametrize("match", ["$s: Shelf  $s wrote $b", "$a: Author $s: Shelf $a wrote $s"])
def test_a_variable_has_the_type_that_the_edge_needs(match: str) -> None:
    assert_refused(read(match, "return { $s.room }"), "T5", "'$s'")


@pytest.mark.case("languages", 117)
@pytest.mark.parametrize(
    ("text", "name"),
    [
        (books("$b.isbn > 1"), "'isbn'"),
        (books('$z.code = "x"'), "'$z'"),
        (books('$b.id = "x"'), "'id'"),
        (books(tail="return { $_.code }"), "'$_'"),
    ],
)
def test_a_property_belongs_to_a_bound_variable(text: str, name: str) -> None:
    assert_refused(text, "T6", name)


@pytest.mark.parametrize(
    ("text", "help"),
    [
        (read('$b: Book { id: "x" }'), "a node of Book is known by its key, 'code'"),
        (books('$b.id = "x"'), "a node of Book is known by its key, 'code'"),
        (read('$n: Note  $n.id = "x"', "return { $n }"), "Note has no @key: match its properties"),
        (read('$a: Author  $a $w:wrote $b  $w.id = "x"', "return { $w }"), "match the nodes that the edge"),
    ],
)
def test_whoever_asks_for_an_id_is_told_what_to_ask_for(text: str, help: str) -> None:
    (found,) = type_error(text).diagnostics

    assert found.help is not None
    assert help in found.help


@pytest.mark.case("languages", 118)
@pytest.mark.parametrize(
    "condition",
    [
        '$b.pages > "x"',
        '$b.published = datetime("2020-01-01T00:00:00Z")',
        '$b.tags = "x"',
        "$b.embedding = $v",
        "$b != 5",
        "$b.code = null",
    ],
)
def test_a_comparison_is_of_two_scalars_of_one_type(condition: str) -> None:
    assert type_code(books(condition, params="$v: Vector(4)")) == "T7"


@pytest.mark.case("languages", 119)
@pytest.mark.parametrize(
    "condition",
    ["$b.pages contains 3", "$b.title contains 3", '$b.tags contains ["a"]', '$b.pages starts_with "1"'],
)
def test_contains_and_starts_with_have_operands_of_their_own(condition: str) -> None:
    assert type_code(books(condition)) == "T7"


@pytest.mark.case("languages", 120)
@pytest.mark.parametrize("aggregate", ["sum($b.title)", "max($b.tags)", "max($b.added)"])
def test_an_aggregate_takes_what_it_can_aggregate(aggregate: str) -> None:
    assert type_code(books(tail=f"return {{ {aggregate} }}")) == "T8"


@pytest.mark.case("languages", 121)
def test_a_grouping_key_is_a_property_or_a_variable() -> None:
    assert type_code(books(tail="return { now(), count($b) }")) == "T9"


@pytest.mark.case("languages", 122)
@pytest.mark.parametrize("block", ["not { $x: Book }", 'not { $x: Book  $x.code = "z" }'])
def test_a_not_block_mentions_an_outer_variable(block: str) -> None:
    assert type_code(books(block)) == "T9"


@pytest.mark.case("languages", 123)
@pytest.mark.parametrize("hops", ["{0,2}", "{3,1}", "{1,}"])
def test_hop_bounds_start_at_one_and_do_not_fall(hops: str) -> None:
    assert type_code(books(f"$b cites{hops} $c")) == "T15"


@pytest.mark.case("languages", 124)
@pytest.mark.parametrize(
    ("rank", "params"),
    [
        ("nearest($b.title, $q)", "$q: Vector(4)"),
        ("nearest($b.embedding, [1, 2])", ""),
        ("nearest($b.embedding, $q)", "$q: Vector(3)"),
    ],
)
def test_nearest_compares_vectors_of_one_dimension(rank: str, params: str) -> None:
    assert type_code(books(tail=f"return {{ $b.code }} order {{ {rank} }} limit 3", params=params)) == "T15"


@pytest.mark.case("languages", 125)
def test_an_order_by_nearest_needs_a_limit() -> None:
    assert type_code(books(tail=f"return {{ $b.code }} order {{ {NEAREST} }}")) == "T17"


@pytest.mark.case("languages", 125)
def test_an_order_by_nearest_goes_with_no_alias() -> None:
    tail = f"return {{ $b.title as t }} order {{ {NEAREST}, t desc }} limit 3"

    assert_refused(books(tail=tail), "T18", "'t'")


@pytest.mark.case("languages", 126)
@pytest.mark.parametrize("predicate", ['search($b.pages, "x")', 'fuzzy($b.title, "x", 1.5)'])
def test_search_and_fuzzy_take_texts_and_whole_edits(predicate: str) -> None:
    assert type_code(books(predicate)) == "T19"


@pytest.mark.case("languages", 126)
def test_bm25_takes_a_text() -> None:
    assert type_code(books(tail="return { $b.code } order { bm25($b.title, 3) }")) == "T20"


@pytest.mark.case("languages", 127)
@pytest.mark.parametrize("rank", [f"rrf({NEAREST}, {BM25}) }}", f"rrf({NEAREST}, {BM25}, 0) }} limit 3"])
def test_rrf_needs_a_limit_and_a_positive_k(rank: str) -> None:
    assert type_code(books(tail=f"return {{ $b.code }} order {{ {rank}")) == "T21"


@pytest.mark.case("languages", 128)
def test_an_edge_between_two_types_is_not_followed_both_ways() -> None:
    assert_refused(read("$a <wrote> $b"), "T22", "'Wrote'")


@pytest.mark.case("languages", 129)
@pytest.mark.parametrize(
    ("match", "name"),
    [
        ("$a $w:wrote{1,2} $b", ""),
        ("$a $a:wrote $b", "'$a'"),
        ('$a $w:wrote $b search($w.role, "x")', "'$w'"),
        ("$a $w:wrote $b $w wrote $c", "'$w'"),
    ],
)
def test_the_name_of_an_edge_is_not_that_of_a_node(match: str, name: str) -> None:
    assert_refused(read(match), "T23", name)


@pytest.mark.case("languages", 130)
@pytest.mark.parametrize(
    "text",
    [
        books(tail="return { $b.cover }"),
        books(tail="return { count($b.cover) }"),
        books("$b.cover = $p", params="$p: Blob"),
    ],
)
def test_a_blob_is_not_a_value(text: str) -> None:
    assert_refused(text, "T24", "cover")


@pytest.mark.case("languages", 131)
@pytest.mark.parametrize(
    ("text", "name"),
    [(read("$b: Book  $b: Author", "return { $b }"), "'$b'"), (books(tail="return { $nope }"), "'$nope'")],
)
def test_a_variable_has_one_type_and_is_bound(text: str, name: str) -> None:
    assert_refused(text, None, name)


@pytest.mark.case("languages", 132)
def test_a_filter_follows_what_binds_its_variable() -> None:
    assert_refused(read("$b.pages > 3  $b: Book"), "T6", "'$b'")


@pytest.mark.case("languages", 132)
def test_a_binding_may_follow_the_traversal_that_uses_it() -> None:
    assert bind_text(read('$a wrote $b  $b: Book { code: "AA-2" }')).name == "q"


@pytest.mark.case("languages", 133)
def test_the_value_of_an_inline_match_is_a_declared_parameter() -> None:
    assert_refused(read("$b: Book { code: $nope }"), "T14", "'$nope'")
