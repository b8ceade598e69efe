"""`omnigraph lint --json`: one document, in the shape that the specification gives."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import NO_SUCH_PROPERTY, READ, SCHEMA, UNPARSABLE, WARNED, omnigraph, write

# A term is required; one that ends in "?" may be left out.
RESULT = {"name", "kind", "status", "warnings?", "error?", "operation?"}
FINDING = {"severity", "code", "message", "type_name?", "property?", "query_names?"}
REPORT = {
    "status",
    "schema_source",
    "query_path",
    "queries_processed",
    "errors",
    "warnings",
    "infos",
    "results",
    "findings",
}


def lint(folder: Path, *queries: str, code: int = 0) -> dict[str, Any]:
    """Return the document that lint prints about some files of a folder."""
    write(folder, "s.pg", SCHEMA)
    arguments = [argument for query in queries for argument in ("--query", query)]
    outcome = omnigraph("lint", "--schema", "s.pg", "--json", *arguments, cwd=folder)
    assert (outcome.code, outcome.stderr) == (code, "")
    document: dict[str, Any] = json.loads(outcome.stdout)
    return document


def assert_shape(document: dict[str, Any], terms: set[str]) -> None:
    """Check that a document has what it must and nothing that is not named."""
    required = {term for term in terms if not term.endswith("?")}
    assert required <= document.keys()
    assert document.keys() <= {term.removesuffix("?") for term in terms}


def test_one_file_gives_its_report(tmp_path: Path) -> None:
    write(tmp_path, "q.gq", READ)

    assert lint(tmp_path, "q.gq") == {
        "status": "ok",
        "schema_source": {"kind": "file", "path": "s.pg"},
        "query_path": "q.gq",
        "queries_processed": 1,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [
            {
                "name": "craft",
                "kind": "read",
                "status": "ok",
                "operation": {
                    "result": [{"name": "name", "kind": "string", "nullable": False}],
                    "reads": [{"kind": "node", "type_name": "Craft"}],
                    "writes": [],
                },
            }
        ],
        "findings": [],
    }


def test_the_report_of_a_mixed_file_has_the_documented_shape(tmp_path: Path) -> None:
    write(tmp_path, "q.gq", READ + NO_SUCH_PROPERTY + WARNED)

    document = lint(tmp_path, "q.gq", code=1)

    assert_shape(document, REPORT)
    assert [document[name] for name in ("status", "queries_processed", "errors", "warnings", "infos")] == [
        "error",
        3,
        1,
        2,
        0,
    ]
    for result in document["results"]:
        assert_shape(result, RESULT)
        assert ("operation" in result) != ("error" in result)
    craft, heavy, rename = document["results"]
    assert (craft["status"], heavy["status"], rename["status"]) == ("ok", "error", "ok")
    assert heavy["error"].startswith("type error: T6: ")
    assert rename["kind"] == "mutation"
    assert len(rename["warnings"]) == 1
    assert rename["operation"] == {
        "result": [],
        "reads": [{"kind": "node", "type_name": "Craft"}],
        "writes": [{"kind": "node", "type_name": "Craft"}],
    }


def test_a_finding_says_what_it_is_about(tmp_path: Path) -> None:
    write(tmp_path, "q.gq", WARNED)

    (finding,) = lint(tmp_path, "q.gq")["findings"]

    assert_shape(finding, FINDING)
    assert finding == {
        "severity": "warning",
        "code": "L201",
        "message": "Craft.mass_kg exists in schema but no update query sets it",
        "type_name": "Craft",
        "property": "mass_kg",
        "query_names": ["rename"],
    }


def test_a_file_that_does_not_parse_is_one_finding(tmp_path: Path) -> None:
    write(tmp_path, "q.gq", UNPARSABLE + "query other( { }\n")

    document = lint(tmp_path, "q.gq", code=1)

    assert (document["status"], document["queries_processed"], document["errors"]) == ("error", 0, 1)
    assert document["results"] == []
    (finding,) = document["findings"]
    assert_shape(finding, FINDING)
    assert (finding["severity"], finding["code"]) == ("error", "Q000")
    assert finding["message"].startswith("parse error: ")


@pytest.mark.parametrize("queries", [["a.gq", "b.gq"], ["."]], ids=["two files", "a folder"])
def test_several_files_give_a_list_of_reports(queries: list[str], tmp_path: Path) -> None:
    write(tmp_path, "a.gq", READ)
    write(tmp_path, "b.gq", NO_SUCH_PROPERTY)

    document = lint(tmp_path, *queries, code=1)

    assert document.keys() == {"reports"}
    assert [report["query_path"] for report in document["reports"]] == ["a.gq", "b.gq"]
    assert [report["status"] for report in document["reports"]] == ["ok", "error"]
    for report in document["reports"]:
        assert_shape(report, REPORT)


def test_a_folder_gives_a_list_even_when_it_holds_one_file(tmp_path: Path) -> None:
    write(tmp_path, "queries/a.gq", READ)

    document = lint(tmp_path, "queries")

    assert [report["query_path"] for report in document["reports"]] == ["queries/a.gq"]


def test_letters_beyond_ascii_stay_readable(tmp_path: Path) -> None:
    write(tmp_path, "prüfung.gq", READ)
    write(tmp_path, "s.pg", SCHEMA)

    outcome = omnigraph("lint", "--schema", "s.pg", "--query", "prüfung.gq", "--json", cwd=tmp_path)

    assert outcome.code == 0
    assert '"prüfung.gq"' in outcome.stdout
