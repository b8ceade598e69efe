"""Cases 207 to 216 of languages.md, and the static part of 217 and 218: lint, descriptor, plan."""

import pytest

from omnigraph.plan.logical import AntiJoin, Expand, Filter, NodeScan
from tests.support.queries import (
    books,
    describe_text,
    facts,
    lint_text,
    mutation,
    outline,
    pipeline,
    read,
)

UPDATE_AUTHOR = mutation("update Author set { name: $n } where handle = $h", "$n: String, $h: String")
UPDATE_BOOK = mutation("update Book set { price: $p } where code = $c", "$p: F64, $c: String", "b")


@pytest.mark.case("languages", 207)
def test_a_file_that_does_not_parse_has_one_finding() -> None:
    report = lint_text("query q( {")

    assert report["status"] == "error"
    assert [finding["code"] for finding in report["findings"]] == ["Q000"]
    assert report["queries_processed"] == 0


@pytest.mark.case("languages", 208)
def test_a_bad_query_does_not_hide_a_good_one() -> None:
    bad = mutation("update Author set { isbn: $n } where handle = $h", "$n: String, $h: String")

    report = lint_text(f"{books()} {bad}")

    good_result, bad_result = report["results"]
    assert good_result["status"] == "ok"
    assert bad_result["status"] == "error"
    assert "T11" in bad_result["error"]
    assert report["errors"] == 1
    assert "operation" in good_result
    assert "operation" not in bad_result


@pytest.mark.case("languages", 209)
def test_a_mutation_without_parameters_has_a_warning() -> None:
    hard_coded = mutation('insert Note { body: "x" }')

    wrote, found = lint_text(f"{hard_coded} {books()}")["results"]

    assert len(wrote["warnings"]) == 1
    assert "warnings" not in found


@pytest.mark.case("languages", 210)
def test_what_no_update_sets_is_found() -> None:
    report = lint_text(UPDATE_AUTHOR)

    assert [(f["code"], f["type_name"], f["property"]) for f in report["findings"]] == [
        ("L201", "Author", "born"),
        ("L201", "Author", "email"),
    ]


@pytest.mark.case("languages", 210)
def test_the_target_of_an_embedding_is_never_found() -> None:
    report = lint_text(UPDATE_BOOK)

    properties = [finding["property"] for finding in report["findings"]]
    assert properties
    assert "embedding" not in properties


@pytest.mark.case("languages", 211)
def test_a_read_is_described_by_its_fields_and_types() -> None:
    text = read("$a: Author $a wrote $b", "return { $a.name, $b.tags, $b.embedding }")

    operation = describe_text(text)

    assert operation["result"] == [
        {"name": "name", "kind": "string", "nullable": False},
        {"name": "tags", "kind": "list", "item_kind": "string", "nullable": True},
        {"name": "embedding", "kind": "vector", "vector_dim": 4, "nullable": True},
    ]
    assert facts(operation["reads"]) == [("node", "Author"), ("node", "Book"), ("edge", "Wrote")]
    assert operation["writes"] == []


@pytest.mark.case("languages", 212)
def test_a_negation_reads_what_it_looks_at() -> None:
    operation = describe_text(books("not { $b storedOn $_ }"))

    assert facts(operation["reads"]) == [("node", "Book"), ("node", "Shelf"), ("edge", "StoredOn")]


@pytest.mark.case("languages", 212)
def test_a_delete_writes_the_edges_of_its_nodes() -> None:
    operation = describe_text(mutation('delete Book where code = "AA-1"'))

    assert facts(operation["writes"]) == [
        ("node", "Book"),
        ("edge", "About"),
        ("edge", "Cites"),
        ("edge", "StoredOn"),
        ("edge", "Wrote"),
    ]


@pytest.mark.case("languages", 212)
def test_an_insert_of_an_edge_reads_both_ends() -> None:
    operation = describe_text(mutation('insert Wrote { from: "ada", to: "AA-1" }'))

    assert facts(operation["reads"]) == [("node", "Author"), ("node", "Book"), ("edge", "Wrote")]


@pytest.mark.case("languages", 213)
def test_a_chain_is_scanned_once_and_then_followed() -> None:
    match = '$a: Author { handle: "x" } $a wrote $b $b: Book { format: "paper" } $b storedOn $s'

    scan, to_book, to_shelf = pipeline(match)

    assert isinstance(scan, NodeScan)
    assert scan.variable == "a"
    assert isinstance(to_book, Expand)
    assert (to_book.src_var, to_book.dst_var) == ("a", "b")
    assert len(to_book.dst_filters) == 1
    assert isinstance(to_shelf, Expand)
    assert (to_shelf.src_var, to_shelf.dst_var) == ("b", "s")


@pytest.mark.case("languages", 214)
def test_the_first_binding_is_the_root_and_the_edge_is_followed_backwards() -> None:
    scan, expand = pipeline("$s: Shelf $b: Book $b storedOn $s")

    assert isinstance(scan, NodeScan)
    assert scan.variable == "s"
    assert isinstance(expand, Expand)
    assert (expand.src_var, expand.dst_var, expand.direction) == ("s", "b", "in")


@pytest.mark.case("languages", 215)
def test_unconnected_bindings_are_scanned_each() -> None:
    assert outline(pipeline("$a: Author $s: Shelf")) == ["scan a Author", "scan s Shelf"]


@pytest.mark.case("languages", 216)
def test_a_negation_is_an_anti_join() -> None:
    _, anti_join = pipeline("$b: Book not { $b <cites> $x }")

    assert isinstance(anti_join, AntiJoin)
    (expand,) = anti_join.inner
    assert isinstance(expand, Expand)
    assert expand.direction == "both"


@pytest.mark.case("languages", 216)
@pytest.mark.parametrize(
    ("condition", "operator"),
    [('$b.title contains "x"', "string_contains"), ('$b.tags contains "x"', "contains")],
)
@pytest.mark.parametrize("inside", [False, True])
def test_contains_is_lowered_by_the_type_of_its_left_side(
    condition: str, operator: str, inside: bool
) -> None:
    _, operation = pipeline(f"$b: Book not {{ {condition} }}" if inside else f"$b: Book {condition}")

    if inside:
        assert isinstance(operation, AntiJoin)
        (operation,) = operation.inner
    assert isinstance(operation, Filter)
    assert getattr(operation.condition, "operator", None) == operator


def test_a_match_without_a_binding_starts_at_its_left_end() -> None:
    """The static part of case 217."""
    assert outline(pipeline("$a wrote $b")) == ["scan a Author", "out Wrote a -> b Book"]


def test_a_whole_edge_is_described_as_an_object() -> None:
    """The static part of case 218."""
    operation = describe_text(read('$a: Author { handle: "cy" } $a $w:wrote $b', "return { $w }"))

    assert operation["result"] == [{"name": "w", "kind": "object", "nullable": False}]
