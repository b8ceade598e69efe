"""`omnigraph queries`: stored queries listed, and checked against a graph."""

import json
from pathlib import Path

import pytest

from omnigraph.client.embedded import EmbeddedAccess
from omnigraph.client.http import Http
from omnigraph.client.served import ServedAccess
from omnigraph.config.server_url import ServerUrl
from omnigraph.graph.opening import open as open_graph
from omnigraph.graph.stored_files import given_queries
from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import NO_SUCH_PROPERTY, READ, write
from tests.support.http_app import serving_app, settings_for
from tests.support.in_process import document, invoke

HERE = ("--queries", "queries")
NEAREST = (
    'query near($v: Vector(3), $codes: [String]) @description("Crafts by a vector.")'
    " { match { $c: Craft } return { $c.code } }\n"
)


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


@pytest.mark.case("surfaces", 377)
def test_a_server_lists_what_is_listed_of_the_same_files(folder: Path) -> None:
    write(folder, "queries/nearest.gq", NEAREST)
    write(folder, "queries/write.gq", "query add($title: String) { insert Mission { title: $title } }\n")
    declared = given_queries(folder / "queries")
    with serving_app(settings_for(folder / GRAPH, queries=declared)) as client:
        url = str(client.base_url)
        here, there = (
            [invoke("queries", "list", *where, *form, cwd=folder) for form in ((), ("--json",))]
            for where in (HERE, ("--server", url))
        )
        with (
            EmbeddedAccess(open_graph(folder / GRAPH, mode="ro", queries=declared), GRAPH) as embedded,
            ServedAccess(Http(ServerUrl.parse(url), None)) as served,
        ):
            assert embedded.queries() == served.queries()
            assert [entry["name"] for entry in served.queries()["queries"]] == ["add", "craft", "near"]

    assert here == there
    assert [outcome.code for outcome in there] == [0, 0]
    assert (
        there[0].stdout.splitlines()[2] == "near($v: vector(3), $codes: [string]) read  Crafts by a vector."
    )

    files = {"add": "write.gq", "craft": "read.gq"}
    hidden = {
        name: {"file": str(folder / "queries" / file), "expose": name != "add"}
        for name, file in files.items()
    }
    with serving_app(settings_for(folder / GRAPH, queries=given_queries(hidden))) as client:
        listed = invoke("queries", "list", str(client.base_url), cwd=folder)
    assert listed.stdout == "craft($code: string) read\n"


@pytest.mark.case("surfaces", 377)
def test_without_a_server_stored_queries_are_files(folder: Path) -> None:
    storage = invoke("queries", "list", GRAPH, cwd=folder)
    both = invoke("queries", "list", "--store", GRAPH, *HERE, cwd=folder)
    write(folder, "omnigraph.yaml", f"graphs:\n  atlas:\n    uri: {GRAPH}\nqueries: queries\n")
    project = [invoke("queries", "list", *words, cwd=folder) for words in ((), ("--target", "atlas"))]

    assert (storage.code, both.code) == (1, 2)
    assert "name them with --queries PATH" in storage.stderr
    assert "leave the graph out" in both.stderr
    for outcome in project:
        assert (outcome.code, outcome.stdout) == (
            0,
            "add($code: string?) mutation\ncraft($code: string) read\n",
        )
