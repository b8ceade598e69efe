"""What long commands tell of their progress: lines on a pipe, events with `--json`, nothing if quiet."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.operations.progress import TableProgress, Tables
from tests.support.atlas import GRAPH, craft, lines, place_atlas
from tests.support.in_process import invoke
from tests.support.seam import patched

TABLES = ["edge:Flew", "node:Craft", "node:Mission"]


def with_a_branch(folder: Path) -> None:
    """Let a branch have rows that main does not have."""
    place_atlas(folder)
    assert invoke("branch", "create", GRAPH, "june", cwd=folder).code == 0
    words = ["load", GRAPH, "--branch", "june", "--mode", "append", "--data", "-"]
    assert invoke(*words, cwd=folder, stdin=lines(craft("NEW-1", name="new"))).code == 0


def events(text: str) -> list[dict[str, Any]]:
    """Return the events on standard error, behind the line that says what is done where."""
    return [json.loads(line)["progress"] for line in text.splitlines() if line.startswith("{")]


@pytest.mark.parametrize(
    ("words", "stages", "unit"),
    [
        pytest.param(
            ["cleanup", GRAPH, "--keep", "10"],
            {None: TABLES},
            "files",
            marks=pytest.mark.case("surfaces", 674),
        ),
        pytest.param(
            ["verify", GRAPH, "--deep"],
            {"files": ["__manifest", *TABLES], "rows": TABLES, "rows on june": ["edge:Flew", "node:Craft"]},
            None,
            marks=pytest.mark.case("surfaces", 675),
        ),
        pytest.param(
            ["branch", "merge", GRAPH, "june", "--dry-run"],
            {"changes": ["node:Craft"]},
            "rows",
            marks=pytest.mark.case("surfaces", 677),
        ),
        pytest.param(
            ["branch", "merge", GRAPH, "june"],
            {"changes": ["node:Craft"], "rows": ["node:Craft"]},
            "rows",
            marks=pytest.mark.case("surfaces", 677),
        ),
    ],
)
def test_long_commands_tell_the_table_at_hand_and_the_time_left(
    tmp_path: Path, words: list[str], stages: dict[str | None, list[str]], unit: str | None
) -> None:
    for folder in ("json", "pipe", "quiet"):
        (tmp_path / folder).mkdir()
        with_a_branch(tmp_path / folder)

    as_json = invoke(*words, "--json", cwd=tmp_path / "json")
    piped = invoke(*words, cwd=tmp_path / "pipe")
    quiet = invoke(*words, "--quiet", cwd=tmp_path / "quiet")

    assert (as_json.code, piped.code, quiet.code, quiet.stderr) == (0, 0, 0, "")
    json.loads(as_json.stdout)
    told = events(as_json.stderr)
    assert list(dict.fromkeys(event.get("stage") for event in told)) == list(stages)
    for stage, tables in stages.items():
        of_stage = [event for event in told if event.get("stage") == stage]
        counted = unit or str(stage).partition(" ")[0]
        first, last = of_stage[0], of_stage[-1]
        assert {event["operation"] for event in of_stage} == {"merge" if words[0] == "branch" else words[0]}
        assert (first["done"], first["seconds_left"], first[f"{counted}_done"]) == (False, None, 0)
        assert (last["done"], last["seconds_left"]) == (True, 0.0)
        assert last[f"{counted}_done"] == last[f"{counted}_total"]
        assert last["tables_done"] == last["tables_total"] == len(tables)
        assert sorted(event["table_key"] for event in of_stage if event["done"]) == tables
        ended = [line for line in piped.stderr.splitlines() if is_about(line, stage)]
        assert len(ended) == len(tables)
        assert f"{len(tables)} of {len(tables)} table" in ended[-1]


def is_about(line: str, stage: str | None) -> bool:
    """Say whether a line tells of a stage."""
    label = re.split(r" +[0-9]+ of ", line)[0]
    return label in TABLES if stage is None else label.endswith(f", {stage}")


@pytest.mark.case("surfaces", 676)
@pytest.mark.parametrize("format_name", ["ndjson", "parquet"])
def test_an_export_into_files_tells_every_table(tmp_path: Path, format_name: str) -> None:
    place_atlas(tmp_path)
    words = ["export", GRAPH, "--format", format_name, "--out"]

    piped = invoke(*words, "one", cwd=tmp_path)
    quiet = invoke(*words, "two", "--quiet", cwd=tmp_path)
    printed = invoke("export", GRAPH, cwd=tmp_path)

    assert (piped.code, quiet.code, quiet.stderr, printed.code, printed.stderr) == (0, 0, "", 0, "")
    assert sorted(line.split()[0] for line in piped.stderr.splitlines()) == TABLES
    assert piped.stderr.splitlines()[-1].endswith("3 of 3 tables")


@pytest.mark.case("surfaces", 676)
def test_an_export_tells_one_large_table_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph_uri = place_atlas(tmp_path)
    patched(monkeypatch, "omnigraph.bulk.export.sort.BLOCK_BYTES", 1)
    told: list[TableProgress] = []

    with omnigraph.open(graph_uri, mode="ro") as graph:
        graph.export(types=["Craft"], progress=told.append).to_file(tmp_path / "crafts.jsonl")

    first, *parts, last = told
    assert (first.units_done, first.is_done, first.remaining_s) == (0, False, None)
    assert (last.units_done, last.is_done, last.remaining_s) == (last.units_total, True, 0.0)
    assert len(parts) >= 2
    assert [item.units_done for item in parts] == sorted({item.units_done for item in parts})
    assert all(item.remaining_s is not None for item in parts)


@pytest.mark.case("surfaces", 677)
def test_a_merge_tells_one_large_table_in_parts(tmp_path: Path) -> None:
    graph_uri = place_atlas(tmp_path)
    told: list[TableProgress] = []

    with omnigraph.open(graph_uri) as graph:
        graph.create_branch("june")
        graph.load([craft("NEW-1", name="new")], "append", branch="june")
        graph.mutate('query m() { update Craft set { name: "x" } where code != "NEW-1" }', branch="june")
        graph.merge("june", progress=told.append)

    rows = [item for item in told if item.stage == "rows"]
    assert [item.is_done for item in rows].count(True) == 1
    assert 0 < rows[1].units_done < rows[-1].units_total


@pytest.mark.case("surfaces", 678)
def test_parts_are_told_by_hundredths() -> None:
    told: list[TableProgress] = []
    tables = Tables("verify", {"a": 10_000, "b": 0}, told.append)

    with tables.at("a") as advance:
        for _ in range(12_000):
            advance(1)
    with tables.at("b") as advance:
        advance(5)

    of_a = [item for item in told if item.table_key == "a"]
    assert [item.units_done for item in of_a] == [0, *range(100, 10_001, 100), 10_000]
    assert [item.is_done for item in of_a].count(True) == 1
    assert told[-1].units_done == 10_000
    assert {item.remaining_s is None for item in told[1:]} == {False}


@pytest.mark.case("surfaces", 678)
def test_a_table_that_failed_is_not_done() -> None:
    told: list[TableProgress] = []
    tables = Tables("verify", {"a": 2}, told.append)

    with pytest.raises(OSError, match="full"), tables.at("a"):
        raise OSError("full")

    assert [item.is_done for item in told] == [False]


@pytest.mark.case("surfaces", 678)
def test_the_indexes_of_one_table_are_told_one_by_one(tmp_path: Path) -> None:
    graph_uri = place_atlas(tmp_path)
    told: list[TableProgress] = []
    with omnigraph.open(graph_uri) as graph:
        text = "node A {\n    name: String @key\n    one: String? @index\n    two: I32? @index\n}\n"
        graph.apply_schema(f"{graph.schema()}\n{text}", index=False)
        rows = b"".join(
            b'{"type": "A", "data": {"name": "%d", "one": "x", "two": 1}}\n' % n for n in range(9)
        )
        graph.load(rows, "append", index=False)

        graph.ensure_indices(progress=told.append)

    of_table = [item for item in told if item.table_key == "node:A"]
    assert [item.is_done for item in of_table] == [False] * 4 + [True], "id, name, one and two"
    assert [item.units_done - of_table[0].units_done for item in of_table] == [0, 2, 4, 6, 9]
