"""`omnigraph load` on Spark: the result on standard output, events on standard error."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import omnigraph
from omnigraph.core.errors import ValidationError
from omnigraph.core.failpoint import EXIT_STATUS
from omnigraph.operations.engine import Engine
from tests.support.atlas import craft, flew, lines
from tests.support.commands import SCHEMA, write
from tests.support.commands import omnigraph as command
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import error_of
from tests.support.in_process import invoke

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CRAFTS = '{"type": "Craft", "data": {"code": "A", "name": "a"}}\n{"type": "Craft", "data": {"code": "B"}}\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "atlas.pg").write_text(SCHEMA)
    assert invoke("init", "g.omni", "--schema", "atlas.pg", cwd=tmp_path).code == 0
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "crafts.jsonl").write_text(CRAFTS)
    return tmp_path


def test_a_folder_is_loaded_on_spark_and_machines_read_events(spark: "SparkSession", place: Path) -> None:
    arguments = ["load", "g.omni", "--data", "data", "--mode", "append", "--on-error", "skip", "--json"]

    outcome = invoke(*arguments, "--engine", "spark", cwd=place)

    assert outcome.code == 0, outcome.stderr
    assert json.loads(outcome.stdout)["tables"] == [{"table_key": "node:Craft", "rows_loaded": 1}]
    assert json.loads(outcome.stdout)["rejected_rows"] == 1
    lines = outcome.stderr.splitlines()
    events = [json.loads(line)["progress"] for line in lines if line.startswith('{"progress"')]
    done = [event["stage"] for event in events if event["done"]]
    assert done[:4] == ["start", "read and parse", "value checks", "write fragments"]
    assert done[4:7] == ["keys and duplicates", "endpoints", "cardinality"]
    assert done[-4:] == ["cardinality", "stage", "commit", "index"]
    assert "  line 2: missing required property Craft.name" in outcome.stderr


def test_a_dry_run_says_what_would_be_loaded(spark: "SparkSession", place: Path) -> None:
    (place / "data" / "crafts.jsonl").write_text(CRAFTS.splitlines()[0])
    arguments = ["load", "g.omni", "--data", "data/crafts.jsonl", "--mode", "append", "--dry-run", "--engine"]

    local = invoke(*arguments, "local", cwd=place)
    spark_ = invoke(*arguments, "spark", cwd=place)

    assert local.stdout == spark_.stdout
    assert local.stdout.startswith("1 row would be loaded into main (append); nothing was written\n")


def test_violations_go_to_the_file_that_was_asked_for(spark: "SparkSession", place: Path) -> None:
    arguments = ["load", "g.omni", "--data", "data", "--mode", "append", "--rejects", "bad.ndjson"]

    outcome = invoke(*arguments, cwd=place)

    assert outcome.code == 1
    (line,) = (place / "bad.ndjson").read_text().splitlines()
    assert (json.loads(line)["line"], json.loads(line)["kind"]) == (2, "required")


@pytest.mark.slow
@pytest.mark.case("surfaces", 224)
def test_the_first_of_many_violations_is_the_same_for_every_caller(
    spark: "SparkSession", place: Path
) -> None:
    to_m, to_n = (lines(*(flew("C0", f"{word}{n}") for n in range(60))) for word in "MN")
    texts = {
        "a.jsonl": lines(*(craft(f"C{n}") for n in range(4))),
        "b.jsonl": to_m + lines({"type": "Craft", "data": {"code": "N"}}),
        "c.jsonl": lines(craft("H", mass_kg="much")) + to_n,
    }
    paths = [write(place, f"many/{name}", text) for name, text in texts.items()]
    given = ["--data", "many/c.jsonl", "--data", "many/b.jsonl", "--data", "many/a.jsonl"]
    engines: tuple[Engine, ...] = ("local", "spark")
    raised: list[ValidationError] = []
    printed: list[str] = []

    for engine in engines:
        with omnigraph.open(place / "g.omni") as graph, pytest.raises(ValidationError) as caught:
            graph.load(paths[::-1], "append", engine=engine)
        raised.append(caught.value)
        outcome = invoke("load", "g.omni", *given, "--mode", "append", "--engine", engine, cwd=place)
        assert outcome.code == 1
        printed.append(outcome.stderr[outcome.stderr.index("execution error") :])
    with serving_app(settings_for(place / "g.omni")) as client:
        body = {"data": "".join([*texts.values()][::-1]), "mode": "append"}
        answered = error_of(client.post("/load", json=body), 400, "bad_request")

    local, distributed = raised
    assert local.violations == distributed.violations
    for error in raised:
        assert "Craft.mass_kg" in str(error)
        assert (Path(str(error.file)).name, error.line) == ("c.jsonl", 1)
        assert (len(error.violations), error.total) == (100, 122)
    assert printed[0] == printed[1]
    assert printed[0].splitlines()[0] == str(local).replace(str(place / "many"), "many")
    assert printed[0].splitlines()[-1] == "  and 112 more"
    assert answered == str(local).replace(f"{local.file}:1: ", "line 1: ")


@pytest.mark.slow
@pytest.mark.case("engine", 123)
def test_a_killed_driver_leaves_the_graph_as_it_was(place: Path) -> None:
    (place / "data" / "crafts.jsonl").write_text(CRAFTS.splitlines()[0] + "\n")
    arguments = ["load", "g.omni", "--data", "data", "--mode", "append", "--quiet", "--master", "local[1]"]
    before = invoke("commit", "list", "g.omni", "--json", cwd=place).stdout

    killed = command(*arguments, cwd=place, OMNIGRAPH_FAILPOINTS="write.post_stage_pre_gate=exit")

    assert killed.code == EXIT_STATUS, killed.stderr
    assert invoke("commit", "list", "g.omni", "--json", cwd=place).stdout == before
    again = command(*arguments, cwd=place)
    assert (again.code, again.stderr) == (0, "")
    assert "loaded 1 row into main (append)" in again.stdout
