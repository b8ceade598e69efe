"""Both forms of the key questions give the same answers: Arrow in one process, and Spark."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.load.spool import Spool
from omnigraph.bulk.load.tasks import grouped
from omnigraph.bulk.sources.sources import Format, SourceInput, plan_slices
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.operations.load.load import MODES, LoadMode, LoadOptions
from omnigraph.operations.load.rejects import new_log
from omnigraph.operations.load.spark_run import BulkRun
from omnigraph.operations.settings import KEY_ROWS
from omnigraph.validate.questions import FoundRows, KeyQuestions
from tests.spark.inputs import SCHEMA, Inputs
from tests.support.seam import internals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMIT = 50  # below what some questions find, so that both forms have to choose


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph with rows in every table."""
    made = init(tmp_path / "graph", SCHEMA, durability="process")
    made.load(Inputs(1, faults=0.3).files(tmp_path, 1, 300), "append", engine="local", on_error="skip")
    return made


def both_forms(
    graph: Graph, spark: "SparkSession", path: Path, mode: LoadMode, monkeypatch: pytest.MonkeyPatch
) -> tuple[KeyQuestions, KeyQuestions]:
    """Return who answers about the records of a file: Arrow, and Spark."""
    options = LoadOptions(mode)
    slices = plan_slices([SourceInput(str(path), Format.NDJSON)], target_bytes=1 << 20)
    jobs, opened = Jobs(spark, "questions"), internals(graph)
    spool = Spool(jobs, opened.parts.root)
    run = BulkRun(opened, options, jobs, graph.snapshot(), grouped(slices, 1 << 20), spool)
    run._read(new_log(options))
    few = run._questions(LIMIT)
    monkeypatch.setenv(KEY_ROWS, "1")
    return few, run._questions(LIMIT)


def answer(found: FoundRows) -> tuple[int, list[str]]:
    """Return an answer in an order of its own; ids that were made up are equal on both sides."""
    rows: list[str] = [repr(row) for row in _sorted(found.rows).to_pylist()]
    return found.total, sorted(rows)


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.select(sorted(rows.column_names))


def answers(ask: KeyQuestions, graph: Graph, mode: LoadMode) -> dict[str, object]:
    """Ask everything that a schema can ask."""
    catalog = graph.catalog
    found: dict[str, object] = {}
    for type_ in catalog.types:
        key = type_.table_key
        found[f"{key} count"] = ask.folded_count(key)
        for columns in (["id"], *type_.unique):
            found[f"{key} {columns} twice"] = answer(ask.duplicates(key, columns))
            if mode != "merge" or columns != ["id"]:
                found[f"{key} {columns} held"] = answer(ask.existing(key, columns))
    for edge in catalog.edges.values():
        found[f"{edge.name} missing"] = [answer(part) for part in ask.missing(edge)]
        found[f"{edge.name} counts"] = [answer(part) for part in ask.counts(edge)]
        if mode != "overwrite":
            found[f"{edge.name} retained"] = [answer(part) for part in ask.retained(edge)]
    return found


@pytest.mark.case("engine", 356)
@pytest.mark.parametrize(
    "mode", [mode if mode == "append" else pytest.param(mode, marks=pytest.mark.slow) for mode in MODES]
)
def test_both_forms_answer_alike(
    spark: "SparkSession", graph: Graph, tmp_path: Path, mode: LoadMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = Inputs(7, faults=0.05).files(tmp_path, 1, 400)

    few, many = both_forms(graph, spark, path, mode, monkeypatch)

    expected = answers(few, graph, mode)
    assert expected["node:Note ('score',) twice"] != (0, [])
    assert answers(many, graph, mode) == expected


@pytest.mark.case("engine", 356)
def test_no_rows_and_no_faults_are_nothing_to_both_forms(
    spark: "SparkSession", graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "few.jsonl"
    path.write_text('{"type": "Note", "data": {"text": "a"}}\n{"type": "Note", "data": {"text": "b"}}\n')

    few, many = both_forms(graph, spark, path, "append", monkeypatch)

    for ask in (few, many):
        assert ask.duplicates("node:Note", ["score"]).total == 0  # null equals nothing
        assert ask.existing("node:Note", ["score"]).total == 0
        assert ask.folded_count("node:Note") == 2
