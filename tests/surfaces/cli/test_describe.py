"""`omnigraph describe`: a type, and what its rows hold, as text and as a document."""

from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, craft, head, lines, place_atlas
from tests.support.commands import write
from tests.support.in_process import document, invoke


@pytest.mark.case("surfaces", 433)
def test_a_node_type_as_text_and_document(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    text = invoke("describe", "Craft", GRAPH, cwd=tmp_path)
    found = document("describe", "Craft", GRAPH, cwd=tmp_path)

    assert text.stdout.splitlines() == [
        f"node Craft, 3 rows on branch main at commit {head(tmp_path)}",
        "",
        "property  type    annotations  nulls  distinct  min         max         samples",
        "code      String  @key             0         3  GLL-1       VGR-2       VGR-1, VGR-2, GLL-1",
        "launched  Date?                    1         2  1977-08-20  1977-09-05  1977-09-05, 1977-08-20",
        "mass_kg   F64?                     1         1  825.5       825.5       825.5",
        "name      String  @index           0         3  gll-1       vgr-2       vgr-1, vgr-2, gll-1",
        "",
        "edge Flew: Craft -> Mission",
    ]
    assert (found["kind"], found["row_count"], found["interfaces"]) == ("node", 3, [])
    assert found["properties"][1] == {
        "name": "launched",
        "type": "Date?",
        "annotations": [],
        "nulls": 1,
        "distinct": 2,
        "approximate": False,
        "min": "1977-08-20",
        "max": "1977-09-05",
        "samples": ["1977-09-05", "1977-08-20"],
    }
    assert found["edges"] == [{"name": "Flew", "source": "Craft", "target": "Mission"}]


@pytest.mark.case("surfaces", 434)
def test_an_edge_type_as_text_and_document(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    text = invoke("describe", "Flew", "--store", GRAPH, cwd=tmp_path).stdout
    found = document("describe", "Flew", GRAPH, cwd=tmp_path)

    assert text.startswith("edge Flew: Craft -> Mission, 3 rows on branch main")
    assert text.splitlines()[-2:] == [
        "out of Craft      3        0    1       1  1.00    1",
        "into Mission      2        0    1     1.5  1.50    2",
    ]
    assert found["target"] == {
        "type_name": "Mission",
        "nodes": 2,
        "nodes_without": 0,
        "min": 1,
        "median": 1.5,
        "mean": 1.5,
        "max": 2,
    }


@pytest.mark.case("surfaces", 435)
def test_an_estimate_is_marked(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    records = [craft(f"C-{number}", name=f"name {number}") for number in range(10_100)]
    write(tmp_path, "more.jsonl", lines(*records))
    load = ["load", GRAPH, "--data", "more.jsonl", "--mode", "append", "--engine", "local", "--no-index"]
    assert invoke(*load, cwd=tmp_path).code == 0

    text = invoke("describe", "Craft", GRAPH, cwd=tmp_path).stdout
    code, *_, name = document("describe", "Craft", GRAPH, cwd=tmp_path)["properties"]

    assert (code["distinct"], code["approximate"]) == (10_103, False), "a key is unique: no estimate"
    assert name["approximate"]
    assert f"~{name['distinct']}" in text


@pytest.mark.case("surfaces", 436)
def test_what_cannot_be_described(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    wrong = invoke("describe", "Crft", GRAPH, cwd=tmp_path)
    both = invoke("describe", "Craft", GRAPH, "--branch", "main", "--snapshot", "1", cwd=tmp_path)
    none = invoke("describe", cwd=tmp_path)
    turned = invoke("describe", GRAPH, "Craft", cwd=tmp_path)

    assert (wrong.code, both.code, none.code) == (1, 2, 2)
    assert "unknown type 'Crft'; did you mean 'Craft'?" in wrong.stderr
    assert "Missing argument 'TYPE'" in none.stderr
    assert turned.code == 1
    assert "/Craft: create one with init; the graph is the last word of 'describe TYPE URI'" in turned.stderr
