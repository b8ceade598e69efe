"""`omnigraph queries`: stored queries listed, and checked against a graph."""

import json
from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import NO_SUCH_PROPERTY, READ, write
from tests.support.in_process import document, invoke

HERE = ("--queries", "queries")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place_atlas(tmp_path)
    write(tmp_path, "queries/read.gq", READ)
    write(tmp_path, "queries/write.gq", "query add($code: String?) { insert Mission { title: $code } }\n")
    return tmp_path


@pytest.mark.case("surfaces", 376)
def test_queries_are_listed_with_their_kinds_and_parameters(folder: Path) -> None:
    text = invoke("queries", "list", *HERE, cwd=folder)
    entries = document("queries", "list", *HERE, cwd=folder)["queries"]

    assert (text.code, text.stderr) == (0, "")
    assert text.stdout == "add($code: string?) mutation\ncraft($code: string) read\n"
    assert [(entry["name"], entry["mutation"], entry["mcp_expose"]) for entry in entries] == [
        ("add", True, True),
        ("craft", False, True),
    ]
    assert entries[1]["params"] == [{"name": "code", "kind": "string", "nullable": False}]


@pytest.mark.case("surfaces", 376)
def test_one_file_may_be_given(folder: Path) -> None:
    outcome = invoke("queries", "list", "--queries", "queries/read.gq", cwd=folder)

    assert outcome.stdout == "craft($code: string) read\n"


@pytest.mark.case("surfaces", 376)
def test_queries_that_fit_the_graph_are_valid(folder: Path) -> None:
    (folder / "queries/write.gq").unlink()

    text = invoke("queries", "validate", GRAPH, *HERE, cwd=folder)
    found = document("queries", "validate", "--store", GRAPH, *HERE, cwd=folder)

    assert (text.code, text.stdout) == (0, "1 stored query: 0 breakages, 0 warnings\n")
    assert found == {"ok": True, "breakages": [], "warnings": []}


@pytest.mark.case("surfaces", 376)
def test_every_breakage_is_told_and_the_exit_code_is_1(folder: Path) -> None:
    write(folder, "queries/also.gq", NO_SUCH_PROPERTY + READ)
    write(folder, "queries/torn.gq", "query torn( {")

    text = invoke("queries", "validate", GRAPH, *HERE, cwd=folder)
    asked = invoke("queries", "validate", GRAPH, *HERE, "--json", cwd=folder)

    assert (text.code, asked.code) == (1, 1)
    assert text.stdout.count("ERROR ") == 3
    assert text.stdout.endswith("3 stored queries: 3 breakages, 0 warnings\n")
    found = json.loads(asked.stdout)
    assert found["ok"] is False
    assert [item["query"] for item in found["breakages"]] == ["craft", "queries/torn.gq", "heavy"]
