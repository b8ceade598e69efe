"""Lint of a query file: the report as JSON, what counts, what is found and what is left out."""

import pytest

from omnigraph.catalog.lint import lint
from omnigraph.core.span import Source
from tests.support.library import catalog, compile_text
from tests.support.queries import books, describe_text, lint_text, mutation, read

REPORT_KEYS = [
    "status",
    "schema_source",
    "query_path",
    "queries_processed",
    "errors",
    "warnings",
    "infos",
    "results",
    "findings",
]
UPDATE_NAME = mutation(
    "update Author set { name: $n } where handle = $h", "$n: String, $h: String", "set_name"
)
UPDATE_BORN = mutation(
    "update Author set { born: $d } where handle = $h", "$d: Date?, $h: String", "set_born"
)
BAD = mutation("update Author set { email: $e, isbn: $e } where handle = $e", "$e: String", "bad")
HARD_CODED = mutation('insert Note { body: "x" }', name="hard")


def found(text: str) -> list[tuple[str, str]]:
    """Return type and property of the findings of a file."""
    return [(finding["type_name"], finding["property"]) for finding in lint_text(text)["findings"]]


# The report


def test_a_good_file_has_a_report_without_findings() -> None:
    report = lint_text(books())

    assert report == {
        "status": "ok",
        "schema_source": {"kind": "file", "path": "library.pg"},
        "query_path": "library.gq",
        "queries_processed": 1,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [{"name": "q", "kind": "read", "status": "ok", "operation": describe_text(books())}],
        "findings": [],
    }
    assert list(report) == REPORT_KEYS


def test_an_empty_file_is_fine() -> None:
    report = lint_text("// nothing yet\n")

    assert (report["status"], report["queries_processed"], report["results"]) == ("ok", 0, [])


def test_the_source_of_the_schema_is_repeated() -> None:
    schema_source = {"kind": "graph", "uri": "s3://bucket/graph"}

    report = lint(catalog(), Source(books()), query_path="q.gq", schema_source=schema_source)

    assert report.status == "ok"
    assert report.to_json()["schema_source"] == schema_source
    assert report.to_json()["query_path"] == "q.gq"


def test_a_mutation_is_described() -> None:
    text = mutation("insert Note { body: $t }", "$t: String")

    (result,) = lint_text(text)["results"]

    assert result == {"name": "m", "kind": "mutation", "status": "ok", "operation": describe_text(text)}


# Files that do not parse


@pytest.mark.parametrize(
    "text",
    [
        "query q( {",
        f"{books()} nonsense",
        "query a( { } query b( { } query c( { }",
        mutation('insert Note { body: "x" } delete Note where body = "x"'),
        f"{books()} {mutation('delete Note where body = 1 insert Note { body: 2 }')}",
    ],
)
def test_a_file_that_does_not_parse_has_one_finding(text: str) -> None:
    report = lint_text(text)

    (finding,) = report["findings"]
    assert sorted(finding) == ["code", "message", "severity"]
    assert (finding["severity"], finding["code"]) == ("error", "Q000")
    assert list(report) == REPORT_KEYS
    counts = {
        key: report[key] for key in ("status", "queries_processed", "errors", "warnings", "infos", "results")
    }
    assert counts == {
        "status": "error",
        "queries_processed": 0,
        "errors": 1,
        "warnings": 0,
        "infos": 0,
        "results": [],
    }


def test_the_finding_has_the_message_of_the_first_diagnostic() -> None:
    (finding,) = lint_text(mutation('insert Note { body: "x" } delete Note where body = "x"', name="both"))[
        "findings"
    ]

    assert "'both'" in finding["message"]
    assert "split" in finding["message"]


def test_what_parses_behind_an_error_is_kept_for_people() -> None:
    report = lint(catalog(), Source("query a( { } query b( { }"), query_path="", schema_source={})

    assert report.failure is not None
    assert len(report.failure.diagnostics) == 2


# Results


def test_errors_of_queries_do_not_stop_the_others() -> None:
    unplannable = books(tail="return { $b } order { nope }").replace("q()", "plan()")
    impossible = mutation("update Author set { handle: $h } where handle = $h", "$h: String", "key")

    report = lint_text(f"{BAD} {books()} {unplannable} {impossible}")

    assert [(r["name"], r["kind"], r["status"]) for r in report["results"]] == [
        ("bad", "mutation", "error"),
        ("q", "read", "ok"),
        ("plan", "read", "error"),
        ("key", "mutation", "error"),
    ]
    bad, good, plan, key = report["results"]
    assert bad["error"].startswith("type error: T11: ")
    assert plan["error"].startswith("plan error: ")
    assert key["error"].startswith("execution error: ")
    assert "error" not in good
    assert ["operation" in result for result in (bad, good, plan, key)] == [False, True, False, False]
    assert (report["status"], report["errors"], report["queries_processed"]) == ("error", 3, 4)
    assert report["findings"] == []


def test_queries_of_one_name_are_reported_each() -> None:
    assert [result["name"] for result in lint_text(f"{books()} {books()}")["results"]] == ["q", "q"]


@pytest.mark.parametrize(
    "statement",
    [
        'insert Note { body: "x" }',
        'update Note set { body: "x", made: now() } where body = "y"',
        'delete Note where body = "x"',
    ],
)
def test_a_mutation_without_parameters_is_warned_of(statement: str) -> None:
    report = lint_text(mutation(statement))

    (result,) = report["results"]
    assert len(result["warnings"]) == 1
    assert result["status"] == "ok"
    assert (report["status"], report["warnings"], report["errors"]) == ("ok", 1, 0)
    assert report["findings"] == []


def test_one_parameter_is_enough() -> None:
    (result,) = lint_text(mutation('insert Note { body: "x" }', "$unused: I32?"))["results"]

    assert "warnings" not in result


def test_a_read_without_parameters_is_not_warned_of() -> None:
    (result,) = lint_text(books())["results"]

    assert "warnings" not in result


# Properties that no update sets


def test_a_nullable_property_that_no_update_sets_is_a_finding() -> None:
    report = lint_text(UPDATE_BORN)

    assert report["findings"] == [
        {
            "severity": "warning",
            "code": "L201",
            "message": "Author.email exists in schema but no update query sets it",
            "type_name": "Author",
            "property": "email",
            "query_names": ["set_born"],
        }
    ]
    assert (report["status"], report["errors"], report["warnings"], report["infos"]) == ("ok", 0, 1, 0)


def test_all_updates_of_a_type_count_together_with_sorted_names() -> None:
    report = lint_text(f"{UPDATE_NAME} {UPDATE_BORN}")

    (finding,) = report["findings"]
    assert finding["property"] == "email"
    assert finding["query_names"] == ["set_born", "set_name"]


def test_a_query_that_updates_twice_is_named_once() -> None:
    text = mutation(
        "update Author set { name: $n } where handle = $h update Author set { born: $d } where handle = $h",
        "$n: String, $h: String, $d: Date?",
        "both",
    )

    (finding,) = lint_text(text)["findings"]

    assert (finding["property"], finding["query_names"]) == ("email", ["both"])


def test_a_query_that_does_not_check_is_no_update_query() -> None:
    assert found(BAD) == []
    assert found(f"{BAD} {UPDATE_BORN}") == [("Author", "email")]


def test_a_type_without_update_queries_has_no_findings() -> None:
    insert = mutation("insert Author { handle: $h, name: $h }", "$h: String")
    delete = mutation("delete Author where handle = $h", "$h: String", "d")

    assert found(f"{insert} {delete} {books()} {read('$a wrote $b')}") == []


def test_required_properties_keys_and_embedding_targets_are_left_out() -> None:
    text = mutation("update Book set { price: $p } where code = $c", "$p: F64, $c: String")

    properties = [name for _, name in found(text)]

    assert properties == ["blurb", "cover", "pages", "published", "stock", "tags", "weight"]


def test_a_target_of_an_embedding_that_an_update_sets_changes_nothing() -> None:
    text = mutation("update Book set { embedding: $v } where code = $c", "$v: Vector(4), $c: String")

    assert "embedding" not in [name for _, name in found(text)]


def test_findings_are_sorted_by_type_and_property() -> None:
    note = mutation("update Note set { body: $t } where body = $t", "$t: String", "note")
    shelf = mutation("update Shelf set { label: $t } where room = $t", "$t: String", "shelf")

    assert found(f"{note} {shelf} {UPDATE_NAME}") == [
        ("Author", "born"),
        ("Author", "email"),
        ("Note", "made"),
    ]


def test_the_type_sorts_before_the_property() -> None:
    schema = compile_text(
        "node B { k: String @key  a: I32?  x: I32? } node A { k: String @key  z: I32?  x: I32? }"
    )
    text = " ".join(
        mutation(f"update {name} set {{ x: $n }} where k = $k", "$n: I32?, $k: String", f"set_{name.lower()}")
        for name in ("B", "A")
    )

    findings = lint_text(text, schema)["findings"]

    assert [(finding["type_name"], finding["property"]) for finding in findings] == [("A", "z"), ("B", "a")]


def test_warnings_of_queries_and_of_the_file_count_together() -> None:
    report = lint_text(f"{HARD_CODED} {UPDATE_NAME} {BAD}")

    assert (report["errors"], report["warnings"], report["infos"]) == (1, 3, 0)
    assert report["status"] == "error"
