"""`omnigraph import`: a whole export in place of what a graph holds, and files that are none."""

import json
from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, MUTATIONS, craft, head, lines, mission, place_atlas, row_counts
from tests.support.commands import write
from tests.support.in_process import document, invoke


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the graph, and its export in a file."""
    place_atlas(tmp_path)
    assert invoke("export", GRAPH, "--out", "all.jsonl", cwd=tmp_path).code == 0
    return tmp_path


@pytest.mark.case("surfaces", 371)
def test_an_export_is_imported_in_place_of_what_was_written_since(folder: Path) -> None:
    params = '{"code": "CAS-1", "name": "Cassini"}'
    store = ("--store", GRAPH)
    assert invoke("mutate", "add_craft", "-e", MUTATIONS, "--params", params, *store, cwd=folder).code == 0
    before = head(folder)

    imported = document("import", GRAPH, "--data", "all.jsonl", "--message", "back", cwd=folder)
    piped = invoke("import", GRAPH, "--data", "-", cwd=folder, stdin=(folder / "all.jsonl").read_bytes())

    assert (imported["mode"], imported["commit"]["parent_commit_id"]) == ("overwrite", before)
    assert imported["commit"]["message"] == "back"
    assert piped.code == 0
    assert piped.stderr == f"omnigraph import → {GRAPH} (direct, local)\n"
    assert invoke("export", GRAPH, cwd=folder).stdout == (folder / "all.jsonl").read_text()


@pytest.mark.case("surfaces", 371)
def test_a_missing_branch_is_made_first(folder: Path) -> None:
    refused = invoke("import", GRAPH, "--data", "all.jsonl", "--branch", "june", cwd=folder)
    made = document("import", GRAPH, "--data", "all.jsonl", "--branch", "june", "--from", "main", cwd=folder)

    assert refused.code == 1
    assert (made["branch"], made["branch_created"]) == ("june", True)


@pytest.mark.case("surfaces", 371)
@pytest.mark.parametrize(
    ("given", "named"),
    [
        (lines(craft("A"), mission("M"), craft("B", mass_kg=1.5)), "line 3"),
        (
            '{"edge":"Flew","from":"VGR-1","to":"Jupiter","data":{}}\n\n'
            '{"edge":"flew","from":"VGR-2","to":"Jupiter","data":{"seat":1}}\n',
            "seat",
        ),
    ],
    ids=["node", "edge in two spellings"],
)
def test_a_type_in_two_shapes_is_no_export(given: str, named: str, folder: Path) -> None:
    write(folder, "mixed.jsonl", given)
    before = head(folder)

    outcome = invoke("import", GRAPH, "--data", "mixed.jsonl", cwd=folder)
    piped = invoke("import", GRAPH, "--data", "-", cwd=folder, stdin=given)

    for refused in (outcome, piped):
        assert (refused.code, refused.stdout) == (1, "")
        assert named in refused.stderr
        assert "load --mode overwrite" in refused.stderr
    assert head(folder) == before


@pytest.mark.case("surfaces", 371)
@pytest.mark.parametrize("name", ["*.jsonl", "Craft=rows.csv", "rows.csv"])
def test_what_is_not_one_file_of_ndjson_is_refused(name: str, folder: Path) -> None:
    write(folder, "rows.csv", "code,name\nA,a\n")
    write(folder, "Craft.csv", "code,name\nA,a\n")
    write(folder, "more.jsonl", lines(craft("A")))

    outcome = invoke("import", GRAPH, "--data", name, cwd=folder)

    assert outcome.code == 1
    assert row_counts(folder)["node:Craft"] == 3


def test_a_line_that_is_no_record_is_reported_by_the_load(folder: Path) -> None:
    write(folder, "bad.jsonl", lines(craft("A")) + '[]\n{"type":5}\nno json\n')

    outcome = invoke("import", GRAPH, "--data", "bad.jsonl", "--json", cwd=folder)

    assert outcome.code == 1
    assert "line 2" in json.loads(outcome.stdout)["error"]


def test_import_needs_consent_where_the_graph_is_elsewhere(folder: Path) -> None:
    outcome = invoke("import", "s3://bucket/atlas", "--data", "all.jsonl", cwd=folder)

    assert outcome.code == 1
    assert "--yes" in outcome.stderr
