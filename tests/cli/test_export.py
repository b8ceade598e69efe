"""`omnigraph export`: out of one graph and into another."""

import json
from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, SEED_ROWS, place_atlas, row_counts
from tests.support.commands import Outcome
from tests.support.in_process import invoke


def export(folder: Path, *arguments: str) -> Outcome:
    """Run an export of the graph."""
    return invoke("export", GRAPH, *arguments, cwd=folder)


@pytest.mark.case("surfaces", 82)
def test_an_export_is_loaded_and_exports_the_same(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    first = export(tmp_path)
    (tmp_path / "a.jsonl").write_text(first.stdout)
    invoke("init", "other.omni", "--schema", "atlas.pg", cwd=tmp_path)
    loaded = invoke("load", "other.omni", "--data", "a.jsonl", "--mode", "overwrite", cwd=tmp_path)
    second = invoke("export", "other.omni", cwd=tmp_path)

    assert (first.code, loaded.code, second.code) == (0, 0, 0)
    assert first.stderr == ""
    assert len(first.stdout.splitlines()) == sum(SEED_ROWS.values())
    assert second.stdout == first.stdout


@pytest.mark.case("surfaces", 83)
def test_one_type_alone_may_be_exported(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    some = export(tmp_path, "--type", "Craft")
    none = export(tmp_path, "--type", "Nope")

    assert {json.loads(line)["type"] for line in some.stdout.splitlines()} == {"Craft"}
    assert (none.code, none.stdout) == (1, "")
    assert "unknown type 'Nope'" in none.stderr


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_folder_of_files_is_loaded_back(format_: str, tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = export(tmp_path).stdout

    written = export(tmp_path, "--format", format_, "--out", "out")
    invoke("load", GRAPH, "--data", "out", "--mode", "overwrite", "--engine", "local", cwd=tmp_path)

    assert (written.code, written.stdout) == (0, "")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"{name}.{format_}" for name in ("Craft", "Flew", "Mission")
    ]
    assert export(tmp_path).stdout == before
    assert row_counts(tmp_path) == SEED_ROWS


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = export(tmp_path, "--out", "all.jsonl")

    assert (outcome.code, outcome.stdout) == (0, "")
    assert (tmp_path / "all.jsonl").read_text() == export(tmp_path).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "csv"], "--format csv writes files: say where to with --out"),
        (["--engine", "spark"], "--engine spark writes files: say where to with --out"),
        (["--json"], "--json is not for export"),
        (["--as", "ann"], "--as is for writes"),
    ],
)
def test_flags_that_make_no_export_are_mistakes_in_usage(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    place_atlas(tmp_path)

    outcome = export(tmp_path, *arguments)

    assert outcome.code == 2
    assert said in outcome.stderr
