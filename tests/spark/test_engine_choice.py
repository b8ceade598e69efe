"""`omnigraph load` with either engine: the same graph, the same words; and which engine `auto` takes."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.atlas import GRAPH, commits, craft, flew, lines, mission, place_atlas
from tests.support.commands import Outcome, python, write
from tests.support.in_process import invoke

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A craft of the seed that changes, a new one, a mission of the seed, and a new flight.
INPUT = [craft("VGR-1", mass_kg=1.5), craft("CAS-1"), mission("Grand Tour"), flew("CAS-1", "Grand Tour")]
VARIABLES = ("OMNIGRAPH_SPARK_MASTER", "OMNIGRAPH_SPARK_CONF", "SPARK_REMOTE", "OMNIGRAPH_LOAD_SPARK_BYTES")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the choice to the command."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def load(folder: Path, *arguments: str | Path) -> Outcome:
    return invoke("load", GRAPH, "--no-index", "--json", *arguments, cwd=folder)


def used_spark(outcome: Outcome) -> bool:
    """Return whether a load that succeeded ran on Spark, which tells machines how far it is."""
    assert outcome.code == 0, outcome
    return any(line.startswith('{"progress"') for line in outcome.stderr.splitlines())


def exported(folder: Path) -> str:
    return invoke("export", GRAPH, cwd=folder).stdout


@pytest.mark.case("surfaces", 202)
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_either_engine_leaves_the_same_graph_or_the_same_error(
    spark: "SparkSession", tmp_path: Path, mode: str
) -> None:
    good = {"append": INPUT[1:2], "merge": [*INPUT, *INPUT[3:]], "overwrite": INPUT}[mode]
    seen: list[tuple[Any, ...]] = []
    for engine in ("local", "spark"):
        folder = tmp_path / engine
        place_atlas(folder)
        write(folder, "good.jsonl", lines(*good))
        write(folder, "bad.jsonl", lines(*good, flew("CAS-1", "Nowhere"), {"type": "Craft", "data": {}}))
        arguments = ("--mode", mode, "--engine", engine, "--data")

        bad = load(folder, *arguments, "bad.jsonl")
        loaded = load(folder, *arguments, "good.jsonl")

        assert (bad.code, loaded.code) == (1, 0), loaded
        told = [line for line in bad.stderr.splitlines() if "error" in line or line.startswith("  ")]
        seen.append((json.loads(loaded.stdout)["tables"], told, exported(folder)))
    assert seen[0] == seen[1]
    assert any(f"line {len(good) + 1}" in line for line in seen[0][1])


@pytest.mark.case("surfaces", 203)
def test_auto_takes_spark_for_many_bytes(spark: "SparkSession", tmp_path: Path) -> None:
    place_atlas(tmp_path)
    small = write(tmp_path, "a.jsonl", lines(craft("CAS-1")))
    folder = tmp_path / "large"
    records = [craft(f"BIG-{number}", name="x" * 2**20) for number in range(33)]
    half = write(folder, "1.jsonl", lines(*records[:17]))
    write(folder, "2.jsonl", lines(*records[17:]))
    dry = ("--mode", "merge", "--dry-run")

    assert used_spark(load(tmp_path, *dry, "--data", folder))
    assert not used_spark(load(tmp_path, *dry, "--data", half))
    assert used_spark(load(tmp_path, *dry, "--data", small, "--master", "local[2]"))


@pytest.mark.case("surfaces", 203)
def test_auto_takes_seven_rows_in_a_folder_in_process(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    folder = tmp_path / "data"
    for number in range(7):
        write(folder, f"{number}.jsonl", lines(craft(f"CAS-{number}")))
    write(tmp_path, "load.yaml", f"sources: [{{path: {folder}}}]")
    dry = ("--mode", "merge", "--dry-run")

    assert not used_spark(load(tmp_path, *dry, "--data", folder))
    assert not used_spark(load(tmp_path, *dry, "--data", folder / "*.jsonl"))
    assert not used_spark(load(tmp_path, *dry, "--data", folder / "0.jsonl", "--data", folder / "1.jsonl"))
    assert not used_spark(load(tmp_path, *dry, "--mapping", "load.yaml"))


NO_JVM = """\
import sys
from omnigraph.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print("pyspark" in sys.modules)
"""


@pytest.mark.case("surfaces", 203)
def test_a_small_file_starts_no_jvm(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write(tmp_path, "small.jsonl", lines(craft("CAS-1", name="x" * 1024)))
    arguments = ("load", GRAPH, "--data", "small.jsonl", "--mode", "append")

    outcome = python("-c", NO_JVM, *arguments, cwd=tmp_path)

    assert outcome.stdout.splitlines()[-1] == "False", outcome


@pytest.mark.case("surfaces", 204)
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_tables_are_named_by_type_or_by_their_place(
    spark: "SparkSession", tmp_path: Path, engine: str
) -> None:
    seen = []
    for form in ("named", "folder"):
        folder = tmp_path / form
        place_atlas(folder)
        before = len(commits(folder))
        data = folder / "data"
        (data / "Flew").mkdir(parents=True)
        pq.write_table(pa.table({"code": ["CAS-1"], "name": ["cassini"]}), data / "Craft.parquet")
        ends = {"from": ["CAS-1", "CAS-1"], "to": ["Jupiter", "Grand Tour"], "id": ["f1", "f2"]}
        for number in range(2):
            table = pa.table(ends).slice(number, 1)
            pq.write_table(table, data / "Flew" / f"part-{number}.parquet")
        if form == "named":
            pq.write_table(pa.table(ends), folder / "f.parquet")
            shutil.move(data / "Craft.parquet", folder / "c.parquet")
            names = ["--data", "Craft=c.parquet", "--data", "Flew=f.parquet"]
        else:
            names = ["--data", "data"]

        outcome = load(folder, "--mode", "append", "--engine", engine, *names)

        assert outcome.code == 0, outcome
        assert len(commits(folder)) == before + 1
        seen.append((json.loads(outcome.stdout)["tables"], exported(folder)))
    assert seen[0] == seen[1]


def test_violations_of_several_files_are_told_alike(spark: "SparkSession", tmp_path: Path) -> None:
    place_atlas(tmp_path)
    dangling = [{"edge": "Flew", "from": "VGR-1", "to": f"Nowhere {number}"} for number in range(60)]
    names = [
        write(tmp_path, f"{letter}.jsonl", lines(craft(f"CAS-{letter}"), *dangling)).name for letter in "ba"
    ]
    arguments = ["--mode", "append", "--data", names[0], "--data", names[1], "--engine"]

    local, on_spark = (load(tmp_path, *arguments, engine) for engine in ("local", "spark"))

    documents = [json.loads(outcome.stdout) for outcome in (local, on_spark)]
    assert (local.code, on_spark.code) == (1, 1)
    assert documents[0] == documents[1]
    assert "b.jsonl:2: " in documents[0]["error"]
