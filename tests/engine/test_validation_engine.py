"""Validation where the committed graph has a say: mutations and loads, one validator."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from omnigraph.core.errors import KeyConflict, ValidationError
from omnigraph.graph.graph import Graph
from omnigraph.operations.load.load import MODES, LoadMode
from omnigraph.validate.violations import NOWHERE
from tests.support.engine import (
    assert_settled,
    contents,
    edge,
    head,
    ids,
    listed,
    ndjson,
    new_graph,
    node,
    reopen,
    rows,
)
from tests.support.queries import mutation

RULES = """\
node Item {
    code:  String @key
    kind:  enum(big, small)
    size:  I32
    name:  String?
    since: Date? @unique
    a:     String?
    b:     I32?
    @range(size, 1..10)
    @check(code, "^[a-z]+$")
    @unique(a, b)
}
node Box { code: String @key }
edge In:    Item -> Box @card(0..1)
edge Needs: Item -> Item @card(1..2)
edge Tag:   Item -> Box { word: String? @unique }
"""
SIZED = 'kind: "big", size: 1'


@pytest.fixture
def shop(tmp_path: Path) -> Graph:
    """Three items that need one another, two boxes."""
    items = [node("Item", code=code, kind="big", size=1) for code in ("x", "y", "z")]
    boxes = [node("Box", code=code) for code in ("one", "two")]
    needs = [edge("Needs", source, target, id=f"n{source}") for source, target in ("xy", "yz", "zx")]
    return new_graph(tmp_path / "shop", RULES, *items, *boxes, *needs)


def violation(graph: Graph, statements: str, declared: str = "", **params: object) -> ValidationError:
    """Return why a mutation is refused, having checked that nothing moved."""
    before, commit = contents(graph), head(graph)
    with pytest.raises(ValidationError) as caught:
        graph.mutate(mutation(statements, declared), params=params)
    assert contents(graph) == before
    assert head(graph) == commit
    assert_settled(graph)
    return caught.value


def violations(graph: Graph, mode: LoadMode, *records: Mapping[str, object]) -> ValidationError:
    """Return why a load is refused, having checked that nothing moved."""
    before, commit = contents(graph), head(graph)
    with pytest.raises(ValidationError) as caught:
        graph.load(ndjson(records), mode)
    assert contents(graph) == before
    assert head(graph) == commit
    assert_settled(graph)
    return caught.value


def new_item(code: str, more: str = "") -> str:
    """Return the insert of an item that needs itself."""
    return f'insert Item {{ code: "{code}", {SIZED} {more} }} insert Needs {{ from: "{code}", to: "{code}" }}'


@pytest.mark.case("engine", 95)
@pytest.mark.parametrize(
    ("kind", "insert", "update", "declared", "value"),
    [
        ("enum", "kind: $v, size: 1", "kind: $v", "$v: String", "huge"),
        ("range", 'kind: "big", size: $v', "size: $v", "$v: I64", 11),
        ("required", 'kind: "big", size: $v', "size: $v", "$v: I64?", None),
        ("type", 'kind: "big", size: $v', "size: $v", "$v: I64", 1 << 40),
    ],
)
def test_values_are_checked_on_insert_and_on_update(
    shop: Graph, kind: str, insert: str, update: str, declared: str, value: object
) -> None:
    text = f'insert Item {{ code: "new", {insert} }}'
    assert violation(shop, text, declared, v=value).kind == kind

    text = f'update Item set {{ {update} }} where code = "x"'
    found = violation(shop, text, declared, v=value)
    assert (found.kind, found.table_key) == (kind, "node:Item")


@pytest.mark.case("engine", 95)
def test_a_pattern_is_checked_on_insert_and_on_update(tmp_path: Path) -> None:
    schema = 'node N { k: String @key  s: String?  @check(s, "^[a-z]+$") }'
    graph = new_graph(tmp_path / "checked", schema, node("N", k="k", s="fine"))

    assert violation(graph, 'insert N { k: "l", s: "NO" }').kind == "check"
    assert violation(graph, 'update N set { s: "NO" } where k = "k"').kind == "check"


@pytest.mark.case("engine", 96)
def test_unique_holds_within_a_batch_across_statements_and_against_committed_rows(shop: Graph) -> None:
    day = 'since: date("2020-01-01")'
    shop.mutate(mutation(new_item("first", f", {day}")))

    assert violation(shop, new_item("second", f", {day}")).kind == "unique"
    two = f"{new_item('p', ', a: $a, b: 1')} {new_item('q', ', a: $a, b: 1')}"
    found = violation(shop, two, "$a: String", a="same")
    assert (found.kind, listed(found)[0].line) == ("unique", 3)
    batch = [node("Item", code=code, kind="big", size=1, a="same", b=1) for code in ("p", "q")]
    needs = [edge("Needs", code, code) for code in ("p", "q")]
    assert violations(shop, "append", *batch, *needs).kind == "unique"
    every = violation(shop, f'update Item set {{ {day} }} where kind = "big"')
    assert every.kind == "unique"


@pytest.mark.case("engine", 96)
def test_a_freed_value_is_free_and_null_takes_no_part(shop: Graph) -> None:
    shop.mutate(mutation(new_item("first", ', since: date("2020-01-01"), a: "s", b: 1')))

    free = 'update Item set { since: date("2021-01-01") } where code = "first"'
    take = new_item("second", ', since: date("2020-01-01")')
    shop.mutate(mutation(f"{free} {take}"))
    shop.mutate(mutation(new_item("third", ', a: "s"')))
    shop.mutate(mutation(new_item("fourth", ', a: "s"')))
    shop.mutate(mutation(new_item("fifth", ', a: "s", b: 2')))
    assert violation(shop, new_item("sixth", ', a: "s", b: 2')).kind == "unique"

    tags = [edge("Tag", "x", "one", id="t1", word="w"), edge("Tag", "y", "one", id="t2")]
    shop.load(ndjson(tags), "append")
    shop.load(ndjson([edge("Tag", "z", "one", id="t3")]), "append")
    assert violations(shop, "append", edge("Tag", "z", "two", id="t4", word="w")).kind == "unique"


@pytest.mark.case("engine", 97)
def test_a_maximum_holds_on_insert_and_a_minimum_on_delete(shop: Graph) -> None:
    shop.mutate(mutation('insert In { from: "x", to: "one" }'))

    assert violation(shop, 'insert In { from: "x", to: "two" }').kind == "cardinality"
    assert violation(shop, 'delete Needs where from = "x"').kind == "cardinality"
    text = 'insert Needs { from: "x", to: "z" } insert Needs { from: "x", to: "x" }'
    assert violation(shop, text).kind == "cardinality"


@pytest.mark.case("engine", 97)
def test_a_moved_edge_counts_for_the_source_it_left(shop: Graph) -> None:
    # x would keep no edge that leaves it.
    found = violations(shop, "merge", edge("Needs", "y", "x", id="nx"))

    assert (found.kind, found.table_key) == ("cardinality", "edge:Needs")
    shop.load(ndjson([edge("Needs", "y", "x", id="nx"), edge("Needs", "x", "z", id="new")]), "merge")
    assert rows(shop, "Needs")["nx"]["src"] == "y"


@pytest.mark.case("engine", 97)
def test_a_stale_handle_cannot_exceed_a_maximum(shop: Graph) -> None:
    stale = reopen(shop)
    assert ids(stale, "In") == []
    shop.mutate(mutation('insert In { from: "x", to: "one" }'))

    assert violation(stale, 'insert In { from: "x", to: "two" }').kind == "cardinality"


# Loads

BAD_REFERENCE = edge("In", "x", "nowhere", id="i1")
BAD_COUNT = [edge("In", "y", box, id=f"c-{box}") for box in ("one", "two")]
BAD_PAIR = [edge("Tag", "x", "one", id=f"u{number}", word="same") for number in (1, 2)]


@pytest.mark.case("engine", 113)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kind", "records"),
    [("endpoint", [BAD_REFERENCE]), ("cardinality", BAD_COUNT), ("unique", BAD_PAIR)],
)
def test_a_bad_load_moves_nothing_and_the_next_succeeds(
    shop: Graph, mode: LoadMode, kind: str, records: list[Mapping[str, object]]
) -> None:
    assert violations(shop, mode, *records).kind == kind

    shop.load(ndjson([edge("In", "x", "one", id="i1")]), mode)
    assert ids(shop, "In") == ["i1"]


@pytest.mark.case("engine", 113)
@pytest.mark.parametrize("mode", MODES)
def test_the_smallest_line_is_raised_and_the_others_are_listed(shop: Graph, mode: LoadMode) -> None:
    fine = edge("In", "z", "one", id="fine")

    found = violations(shop, mode, fine, *BAD_COUNT, *BAD_PAIR, BAD_REFERENCE)

    assert (found.kind, found.line) == ("cardinality", 3)
    kinds = [(item.line, item.kind) for item in listed(found)]
    assert kinds == [(3, "cardinality"), (5, "unique"), (6, "endpoint")]
    assert found.total == 3


@pytest.mark.case("engine", 113)
def test_files_come_in_the_order_they_were_given(shop: Graph, tmp_path: Path) -> None:
    first, second = tmp_path / "z.ndjson", tmp_path / "a.ndjson"
    first.write_bytes(ndjson([edge("In", "z", "one", id="fine"), BAD_REFERENCE]))
    second.write_bytes(ndjson(BAD_PAIR))

    with pytest.raises(ValidationError) as caught:
        shop.load([first, second], "append", engine="local")
    assert (caught.value.file, caught.value.line, caught.value.kind) == (str(first), 2, "endpoint")
    with pytest.raises(ValidationError) as caught:
        shop.load([second, first], "append", engine="local")
    assert (caught.value.file, caught.value.line, caught.value.kind) == (str(second), 2, "unique")
    assert_settled(shop)


GARBAGE_BEHIND_A_WRONG_VALUE = (
    b'{"edge": "In", "from": "nobody", "to": "nothing"}\n'
    b'{"type": "Item", "data": {"code": "a", "kind": "big", "size": 11}}\n'
)


@pytest.mark.case("engine", 890)
def test_ten_thousand_wrong_rows_are_enough_to_be_refused(shop: Graph, tmp_path: Path) -> None:
    """Nothing is asked about rows together, and the first violations are those of a longer search."""
    with pytest.raises(ValidationError) as caught:
        shop.load(GARBAGE_BEHIND_A_WRONG_VALUE + b"x\n" * 12_000, "append")
    assert (caught.value.kind, caught.value.line) == ("range", 2)
    assert [item.line for item in listed(caught.value)] == list(range(2, 102))
    assert (caught.value.total, caught.value.is_cut_short) == (10_000, True)

    with pytest.raises(ValidationError) as caught:
        shop.load(GARBAGE_BEHIND_A_WRONG_VALUE + b"x\n" * 9_998, "append")
    assert (caught.value.kind, caught.value.line) == ("endpoint", 1)
    assert (caught.value.total, caught.value.is_cut_short) == (10_001, False)

    rejects = tmp_path / "rejects"
    with pytest.raises(ValidationError) as caught:
        shop.load(GARBAGE_BEHIND_A_WRONG_VALUE + b"x\n" * 12_000, "append", rejects=rejects)
    assert (caught.value.total, caught.value.is_cut_short) == (12_003, False)
    assert len(rejects.read_bytes().splitlines()) == 12_003
    assert_settled(shop)


@pytest.mark.case("engine", 358)
def test_a_duplicate_is_charged_to_the_later_row_and_a_maximum_to_the_first_beyond_it(shop: Graph) -> None:
    pair = violations(shop, "append", *BAD_PAIR, edge("Tag", "y", "one", id="u3", word="other"))
    assert (pair.line, pair.row_id, pair.total) == (2, "u2", 1)

    boxes = [edge("In", "y", box, id=f"c{number}") for number, box in enumerate(("one", "two", "one"))]
    beyond = violations(shop, "append", edge("In", "x", "one", id="c9"), *boxes)
    assert (beyond.kind, beyond.line, beyond.row_id) == ("cardinality", 3, "c1")


@pytest.mark.case("engine", 358)
def test_violations_without_a_row_come_after_all_rows(shop: Graph) -> None:
    shop.load(ndjson([edge("In", "x", "one", id="i1")]), "append")

    # `x` and its edges are dropped from the new image: i1 is left behind, z needs nobody any more.
    records = [
        *(node("Item", code=code, kind="big", size=1) for code in ("y", "z")),
        edge("Needs", "y", "z", id="ny"),
        edge("Tag", "y", "nowhere", id="t1"),
    ]
    found = violations(shop, "overwrite", *records)

    assert (listed(found)[0].line, listed(found)[0].kind) == (4, "endpoint")
    rest = listed(found)[1:]
    assert all(item.file == NOWHERE for item in rest)
    assert [(item.table_key, item.kind) for item in rest] == [
        ("edge:In", "endpoint"),
        ("edge:Needs", "cardinality"),
    ]


def test_a_key_conflict_has_its_place_in_the_order(shop: Graph) -> None:
    taken, bad = node("Box", code="one"), edge("In", "x", "nowhere", id="i1")

    with pytest.raises(KeyConflict):
        shop.load(ndjson([taken, bad]), "append")
    with pytest.raises(ValidationError):
        shop.load(ndjson([bad, taken]), "append")
    assert_settled(shop)
