"""Search, ranking and score columns of the conformance list, through whole queries."""

import pytest

from omnigraph.core.errors import ExecutionError
from omnigraph.core.source_errors import PlanError
from omnigraph.graph.graph import Graph
from tests.support.queries import BM25, NEAREST, books
from tests.support.reading import ask, codes, named, values


@pytest.mark.case("languages", 174)
def test_words_are_found_in_texts(library: Graph) -> None:
    match = '$a: Author { handle: "cy" } $a wrote $b search($b.blurb, "rivers")'

    assert codes(library, 'search($b.blurb, "MACHINE")') == ["AA-2", "BB-2"]
    assert codes(library, 'search($b.blurb, "the and of")') == []
    assert named(library, match, "$b.code") == ["BB-2"]
    with pytest.raises(PlanError):
        codes(library, 'search($b.blurb, "x") = false')


@pytest.mark.case("languages", 175)
def test_any_word_matches_and_near_words_do(library: Graph) -> None:
    assert codes(library, 'match_text($b.blurb, "machines silent")') == ["AA-2", "BB-2"]
    assert codes(library, 'fuzzy($b.title, "Qviet", 1)') == ["AA-2"]
    assert codes(library, 'fuzzy($b.title, "Qviet", 0)') == []


@pytest.mark.case("languages", 176)
def test_relevance_orders_and_keeps_matches_only(library: Graph) -> None:
    assert codes(library, "", f"order {{ {BM25} }}") == ["BB-2", "AA-1"]
    assert codes(library, "", f"order {{ {BM25} }} limit 1") == ["BB-2"]
    assert codes(library, "", f"order {{ {BM25} asc }} limit 0") == []


@pytest.mark.case("languages", 177)
def test_the_nearest_come_first_and_nothing_has_no_distance(library: Graph) -> None:
    assert codes(library, "", f"order {{ {NEAREST} }} limit 10") == ["AA-1", "BB-2", "AA-2"]
    assert codes(library, "", f"order {{ {NEAREST} }} limit 2") == ["AA-1", "BB-2"]


@pytest.mark.case("languages", 178)
def test_conditions_apply_before_a_ranking(library: Graph) -> None:
    match = '$a: Author { handle: "ben" } $a wrote $b'

    assert codes(library, '$b.format != "paper"', f"order {{ {NEAREST} }} limit 1") == ["AA-2"]
    assert named(library, match, "$b.code", f"order {{ {NEAREST} }} limit 5") == ["AA-2"]


@pytest.mark.case("languages", 179)
def test_fused_rankings(library: Graph) -> None:
    assert codes(library, "", f"order {{ rrf({NEAREST}, {BM25}) }} limit 3") == ["AA-1", "BB-2", "AA-2"]


@pytest.mark.case("languages", 221)
def test_a_score_is_a_column_and_its_alias_orders(library: Graph) -> None:
    tail = "return { $b.code, nearest($b.embedding, [0, 0, 0, 0]) as d } order { d } limit 3"

    rows = values(library.query(books("", tail)))

    assert [row[0] for row in rows] == ["BB-2", "AA-1", "AA-2"]
    assert [row[1] for row in rows] == pytest.approx([0.9055, 1.0, 1.0], abs=1e-4)


@pytest.mark.case("languages", 224)
def test_near_words_are_analysed_on_both_sides(library: Graph) -> None:
    assert codes(library, 'fuzzy($b.blurb, "machines", 0)') == ["AA-2", "BB-2"]


def test_scores_without_an_order(library: Graph) -> None:
    tail = f"return {{ $b.code, {NEAREST}, {BM25} as s, rrf({NEAREST}, {BM25}) }} order {{ $b.code }}"

    result = library.query(books("", tail))
    rows = {row[0]: row[1:] for row in result.json_rows()}

    assert result.columns == ["b.code", "nearest", "s", "rrf"]
    assert rows["BB-1"] == [None, None, None]
    assert rows["AA-2"][1] is None
    assert rows["AA-1"][0] == 0.0
    assert rows["AA-1"][2] == pytest.approx(1 / 61 + 1 / 62)


def test_rows_of_one_node_stay_together_in_a_ranking(library: Graph) -> None:
    tail = f"return {{ $w.role, $b.code }} order {{ {NEAREST}, $w.role desc }} limit 4"

    assert values(ask(library, "$a $w:wrote $b", tail)) == [
        ("main", "AA-1"),
        ("translator", "BB-2"),
        ("main", "BB-2"),
        ("main", "AA-2"),
    ]


def test_text_predicates_inside_a_negation(library: Graph) -> None:
    assert codes(library, 'not { search($b.blurb, "rivers") }') == ["AA-2", "BB-1"]
    assert named(library, '$a: Author not { $a wrote $b search($b.blurb, "machines") }', "$a.handle") == [
        "ada",
        "dot",
    ]


@pytest.mark.parametrize(
    ("tail", "declared", "params"),
    [
        (f"order {{ rrf({NEAREST}, {BM25}, $k) }} limit 3", "$k: I64", {"k": 0}),
        ("order { nearest($b.embedding, $v) } limit 3", "$v: Vector(4)", {"v": [1, 2, 3]}),
    ],
)
def test_arguments_out_of_range(library: Graph, tail: str, declared: str, params: dict[str, object]) -> None:
    with pytest.raises(ExecutionError):
        codes(library, "", tail, declared=declared, params=params)


def test_a_negative_number_of_edits(library: Graph) -> None:
    with pytest.raises(ExecutionError):
        codes(library, 'fuzzy($b.title, "x", $n)', declared="$n: I64", params={"n": -1})


def test_a_null_search_matches_nothing(library: Graph) -> None:
    assert codes(library, "search($b.blurb, $q)", declared="$q: String?") == []
    assert codes(library, "", "order { bm25($b.blurb, $q) }", declared="$q: String?") == []
