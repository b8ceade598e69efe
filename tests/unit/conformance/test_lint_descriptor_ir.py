"""Cases 207 to 216 of languages.md, and the static part of 217 and 218: lint, descriptor, plan."""

import pytest

from tests.engine.plan.planning import explained, operators
from tests.support.queries import (
    books,
    describe_text,
    facts,
    lint_text,
    mutation,
    outline,
    pattern,
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

    assert outline(pattern(match)) == [
        "from a Author",
        "out Wrote a -> b Book",
        "out StoredOn b -> s Shelf",
        "where a.handle eq 'x'",
        "where b.format eq 'paper'",
    ]
    assert explained(match) == [
        "scan $a: Author  ~1 row",
        '  where $a.handle = "x"',
        "expand $a -[Wrote]-> $b: Book  ~2.5 rows",
        '  where $b.format = "paper"',
        "expand $b -[StoredOn]-> $s: Shelf  ~2.2 rows",
    ]


@pytest.mark.case("languages", 214)
def test_the_first_binding_is_the_root_and_the_edge_is_followed_backwards() -> None:
    match = "$s: Shelf $b: Book $b storedOn $s"

    assert outline(pattern(match)) == ["from s Shelf", "in StoredOn s -> b Book"]
    assert operators(match) == ["scan $s: Shelf", "expand $s <-[StoredOn]- $b: Book"]


@pytest.mark.case("languages", 215)
def test_unconnected_bindings_are_scanned_each() -> None:
    match = "$a: Author $s: Shelf"

    assert outline(pattern(match)) == ["from a Author", "from s Shelf"]
    assert operators(match) == ["scan $a: Author", "cross $s: Shelf"]


@pytest.mark.case("languages", 216)
def test_a_negation_is_an_anti_join() -> None:
    match = "$b: Book not { $b <cites> $x }"

    assert outline(pattern(match)) == ["from b Book", "not b [both Cites b -> x Book]"]
    assert operators(match) == [
        "scan $b: Book",
        "anti-join on $b",
        "  expand $b -[Cites]- $x: Book, if any",
    ]


@pytest.mark.case("languages", 216)
@pytest.mark.parametrize(
    ("condition", "operator"),
    [('$b.title contains "x"', "string_contains"), ('$b.tags contains "x"', "contains")],
)
@pytest.mark.parametrize("inside", [False, True])
def test_contains_is_decided_by_the_type_of_its_left_side(
    condition: str, operator: str, inside: bool
) -> None:
    asked = pattern(f"$b: Book not {{ {condition} }}" if inside else f"$b: Book {condition}")

    if inside:
        (negation,) = asked.negations
        asked = negation.pattern
    (found,) = asked.conditions
    assert getattr(found, "operator", None) == operator


def test_a_match_without_a_binding_starts_at_its_left_end() -> None:
    """The static part of case 217."""
    assert outline(pattern("$a wrote $b")) == ["from a Author", "out Wrote a -> b Book"]


def test_a_whole_edge_is_described_as_an_object() -> None:
    """The static part of case 218."""
    operation = describe_text(read('$a: Author { handle: "cy" } $a $w:wrote $b', "return { $w }"))

    assert operation["result"] == [{"name": "w", "kind": "object", "nullable": False}]
