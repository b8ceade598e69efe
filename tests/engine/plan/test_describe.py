"""`explain` as text and as a document."""

import json

from omnigraph.plan.describe import describe
from tests.engine.plan.planning import Counts, planned

MATCH = """
    $a: Author { handle: $h }
    $a $w:wrote $b
    $w.share > 0.5
    $b cites{1,3} $c
    $c.pages = $b.pages
    $c cites $a2
    $a2 cites $b
    $s: Shelf
    not { $c storedOn $s }
"""
TAIL = "return { $a.name, $b.code as code } order { $b.price desc, code } limit 5"


def test_the_text_has_one_line_for_each_operator_and_one_for_what_it_tests() -> None:
    text = describe(planned(MATCH, TAIL, "$h: String")).to_text()

    assert text == (
        "query q($h: String)  ~5 rows\n"
        "  scan $a: Author  ~1 row\n"
        "    where $a.handle = $h\n"
        "  expand $a -[$w:Wrote]-> $b: Book  ~2.5 rows\n"
        "    where $w.share > 0.5\n"
        "  expand $b <-[Cites]- $a2: Book  ~10 rows\n"
        "  expand $a2 <-[Cites]- $c: Book  ~40 rows\n"
        "  filter  ~4 rows\n"
        "    where $c.pages = $b.pages\n"
        "  close $b -[Cites{1,3}]-> $c  ~0.3 rows\n"
        "  cross $s: Shelf  ~6.7 rows\n"
        "  anti-join on $c, $s  ~6.4 rows\n"
        "    close $c -[StoredOn]-> $s  ~0.3 rows\n"
        "  return $a.name, $b.code as code\n"
        "  order $b.price desc, code\n"
        "  limit 5"
    )


def test_the_document_has_the_same_in_stable_members() -> None:
    document = describe(planned(MATCH, TAIL, "$h: String")).to_json()

    assert json.loads(json.dumps(document)) == document
    assert {key: value for key, value in document.items() if key != "pipeline"} == {
        "query_name": "q",
        "params": [{"name": "h", "type": "String"}],
        "variables": [
            {"name": "a", "kind": "node", "type": "Author"},
            {"name": "b", "kind": "node", "type": "Book"},
            {"name": "w", "kind": "edge", "type": "Wrote"},
            {"name": "a2", "kind": "node", "type": "Book"},
            {"name": "c", "kind": "node", "type": "Book"},
            {"name": "s", "kind": "node", "type": "Shelf"},
        ],
        "return": ["$a.name", "$b.code as code"],
        "order": ["$b.price desc", "code"],
        "limit": 5,
        "estimated_rows": 5.0,
    }
    by_operator = {operator["operator"]: operator for operator in document["pipeline"]}
    assert by_operator["scan"] == {
        "operator": "scan",
        "variable": "a",
        "type": "Author",
        "conditions": ["$a.handle = $h"],
        "estimated_rows": 1.0,
    }
    assert document["pipeline"][1] == {
        "operator": "expand",
        "from": "a",
        "to": "b",
        "to_type": "Book",
        "edge_type": "Wrote",
        "direction": "out",
        "min_hops": 1,
        "max_hops": 1,
        "edge_variable": "w",
        "edge_conditions": ["$w.share > 0.5"],
        "conditions": [],
        "keep": "rows",
        "estimated_rows": 2.5,
    }
    assert by_operator["close"].keys() == {
        "operator",
        "from",
        "to",
        "edge_type",
        "direction",
        "min_hops",
        "max_hops",
        "edge_variable",
        "edge_conditions",
        "estimated_rows",
    }
    assert by_operator["join"]["keys"] == []
    assert by_operator["join"]["estimated_scan_rows"] == 20.0
    assert by_operator["filter"]["conditions"] == ["$c.pages = $b.pages"]
    assert by_operator["anti_join"]["on"] == ["c", "s"]
    assert [inner["operator"] for inner in by_operator["anti_join"]["inner"]] == ["close"]


def test_a_join_shows_its_keys() -> None:
    plan = planned("$a: Book $b: Book $a.pages = $b.pages")

    assert describe(plan).to_json()["pipeline"][1]["keys"] == ["$b.pages = $a.pages"]


def test_large_and_small_estimates_show_few_digits() -> None:
    many = Counts(tables={"node:Book": 123_456_789, "node:Author": 1})
    few = '$b: Book { code: "x" } $b.pages > 1 search($b.blurb, "x") $a: Author { handle: "x" }'

    assert (
        describe(planned("$b: Book", counts=many)).to_text().splitlines()[1] == "  scan $b: Book  ~1.2e8 rows"
    )
    assert describe(planned(few, counts=many)).to_text().splitlines()[0] == "query q()  ~1 row"
