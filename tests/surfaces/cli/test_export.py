"""`omnigraph export`: out of one graph and into another."""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, SEED_ROWS, place_atlas, row_counts
from tests.support.commands import Outcome, write
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


@pytest.mark.case("surfaces", 82)
def test_vectors_and_blobs_make_the_round_trip(tmp_path: Path) -> None:
    write(tmp_path, "page.pg", "node Page { code: String @key  spot: Vector(3)?  scan: Blob? }\n")
    pages: list[dict[str, object]] = [
        {
            "code": "full",
            "spot": [0.1, -2.5e-38, 3],
            "scan": f"base64:{b64encode(bytes(range(256))).decode()}",
        },
        {"code": "empty", "spot": [0, 0, 0], "scan": "base64:"},
        {"code": "null"},
    ]
    lines = "".join(json.dumps({"type": "Page", "data": page}) + "\n" for page in pages)
    exported = []
    for graph in ("one.omni", "two.omni"):
        write(tmp_path, "in.jsonl", lines)
        assert invoke("init", graph, "--schema", "page.pg", cwd=tmp_path).code == 0
        loaded = invoke("load", graph, "--data", "in.jsonl", "--mode", "overwrite", cwd=tmp_path)
        assert loaded.code == 0, loaded
        lines = invoke("export", graph, cwd=tmp_path).stdout
        exported.append(lines)

    assert sorted(exported[0].splitlines()) == sorted(exported[1].splitlines())
    found = {data["code"]: data for data in (json.loads(line)["data"] for line in lines.splitlines())}
    assert {code: page["scan"] for code, page in found.items()} == {
        page["code"]: page.get("scan") for page in pages
    }
    spots = {code: page["spot"] for code, page in found.items()}
    assert spots == {"full": [0.1, -2.5e-38, 3.0], "empty": [0.0, 0.0, 0.0], "null": None}


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
        (["--format", "csv"], "--format csv writes files: say where with --out"),
        (["--engine", "spark"], "--engine spark writes files: say where with --out"),
        (["--json"], "--json does not apply to export"),
        (["--as", "ann"], "--as applies to writes"),
    ],
)
def test_flags_that_make_no_export_are_mistakes_in_usage(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    place_atlas(tmp_path)

    outcome = export(tmp_path, *arguments)

    assert outcome.code == 2
    assert said in outcome.stderr


@pytest.mark.parametrize("flags", [["--format", "csv"], ["--engine", "spark"], ["--master", "local[1]"]])
@pytest.mark.parametrize("out", [[], ["--out", "there"]])
def test_a_server_is_asked_for_no_files(flags: list[str], out: list[str], tmp_path: Path) -> None:
    outcome = invoke("export", "--uri", "http://127.0.0.1:1", *flags, *out, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "a server exports NDJSON: --format, --engine and --master are for its storage" in outcome.stderr
