"""Loads on Spark: what is written, what is left behind when they fail, and what they tell."""

import _thread
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.bulk.connect.progress import ProgressEvent, Stage
from omnigraph.core.errors import InvariantViolation, RecoveryRequired, ValidationError
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.graph.opening import open as open_graph
from omnigraph.operations.load.load import LoadOptions, engine_of
from omnigraph.operations.settings import KEY_ROWS, MERGE_BYTES
from omnigraph.staging.fragments import StagedFragments, fingerprint, stage_written
from tests.support.engine import PEOPLE, edge, ndjson, node
from tests.support.seam import internals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return init(tmp_path / "graph", PEOPLE, durability="process")


def tree(graph: Graph) -> list[str]:
    """Return every file and folder of a graph, but for the folders of tables that a write made."""
    return sorted(str(path) for path in Path(graph.uri).rglob("*") if path.is_file())


def people(*numbers: int, **data: object) -> bytes:
    return ndjson([node("Person", name=f"p{number}", **data) for number in numbers])


def row_facts(graph: Graph, type_name: str) -> list[dict[str, Any]]:
    """Return all rows of a type with the ids and versions that the storage keeps of them."""
    entry = graph.snapshot().entry(f"node:{type_name}")
    parts = internals(graph).parts
    dataset = parts.open(entry)._dataset
    hidden = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    found: pa.Table = dataset.to_table(columns=[*dataset.schema.names, *hidden]).sort_by("id")
    return found.to_pylist()


@pytest.mark.case("engine", 122)
@pytest.mark.case("engine", 305)
def test_a_merge_on_executors_equals_one_in_process(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = []
    for engine, limit in (("local", "0"), ("spark", "1")):
        monkeypatch.setenv(MERGE_BYTES, limit)
        graph = init(tmp_path / engine, PEOPLE, durability="process")
        graph.load(people(*range(40)), "append", engine="local", index=False)
        graph.load(people(*range(40, 60)), "append", engine="local", index=False)

        second = people(*range(30, 80), age=7) + ndjson([edge("Knows", "p1", "p79", id="e")] * 2)
        result = graph.load(second, "merge", engine=engine, index=False)  # type: ignore[arg-type]

        assert result.tables == (("edge:Knows", 1), ("node:Person", 50))
        facts.append(row_facts(graph, "Person"))
    assert len({row["_rowid"] for row in facts[1]}) == 80
    carried = [{**row, "_rowid": row["_rowid"] if row["id"] < "p6" else None} for row in facts[0]]
    assert [{**row, "_rowid": row["_rowid"] if row["id"] < "p6" else None} for row in facts[1]] == carried


@pytest.mark.case("engine", 348)
def test_fragments_are_bounded_and_edges_sorted_within_them(
    spark: "SparkSession", graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_ROWS, "1")
    count = MAX_FRAGMENT_ROWS + 1000
    names = [f"p{number}" for number in range(1000)]
    pq.write_table(pa.table({"name": names}), tmp_path / "nodes.parquet")
    ends = np.random.default_rng(1).integers(0, 1000, (2, count))
    table = pa.table({"from": np.array(names)[ends[0]], "to": np.array(names)[ends[1]]})
    pq.write_table(table, tmp_path / "edges.parquet")

    files = [f"Person={tmp_path / 'nodes.parquet'}", f"Knows={tmp_path / 'edges.parquet'}"]
    result = graph.load(files, "append", engine="spark", index=False)

    assert result.engine == "spark"
    assert result.tables == (("edge:Knows", count), ("node:Person", 1000))
    entry = graph.snapshot().entry("edge:Knows")
    parts = internals(graph).parts
    dataset = parts.open(entry)._dataset
    sources = [part.to_table(columns=["src"])["src"].to_pylist() for part in dataset.get_fragments()]
    assert [len(part) for part in sources] == [MAX_FRAGMENT_ROWS, 1000]
    assert all(part == sorted(map(str, part)) for part in sources)
    assert len(set(graph.table("Knows")["id"].to_pylist())) == count


def test_frames_of_spark_and_tables_of_python_are_loaded_together(
    spark: "SparkSession", graph: Graph
) -> None:
    persons = spark.createDataFrame([(f"p{number}", number) for number in range(30)], "name string, age int")
    knows = pa.table({"from": ["p1", "p2"], "to": ["p3", "p4"]})

    result = graph.load_dataframes({"Person": persons.repartition(3), "Knows": knows}, "append", index=False)

    assert result.engine == "spark"
    assert result.tables == (("edge:Knows", 2), ("node:Person", 30))
    assert set(graph.table("Person")["age"].to_pylist()) == set(range(30))
    broken = spark.createDataFrame([(None, "p1"), ("nobody", "p1")], "`from` string, `to` string")
    with pytest.raises(ValidationError, match="Knows:1: 'from' of Knows is missing") as raised:
        graph.load_dataframes({"Knows": broken.coalesce(1)}, "append")
    assert [item.line for item in raised.value.violations] == [1, 2]  # type: ignore[attr-defined]
    assert not list(Path(graph.uri).glob("__spool*"))


def test_a_dry_run_writes_nothing_and_rejects_are_listed_in_full(
    spark: "SparkSession", graph: Graph, tmp_path: Path
) -> None:
    data = people(*range(5)) + ndjson([edge("Knows", "p1", f"x{number}") for number in range(150)])
    before = tree(graph)

    files = []
    for engine in ("local", "spark"):
        path = tmp_path / f"{engine}.ndjson"
        with pytest.raises(ValidationError) as raised:
            graph.load(data, "append", engine=engine, dry_run=True, rejects=path)
        assert (raised.value.total, len(raised.value.violations)) == (150, 100)
        files.append([json.loads(line) | {"row_id": None} for line in path.read_text().splitlines()])
    valid = graph.load(people(*range(5)), "append", engine="spark", dry_run=True)

    assert tree(graph) == before
    assert files[0] == files[1]
    assert len(files[0]) == 150
    assert (valid.commit, valid.tables) == (None, (("node:Person", 5),))


@pytest.mark.case("engine", 123)
def test_a_load_that_fails_before_its_commit_leaves_nothing(spark: "SparkSession", graph: Graph) -> None:
    before = tree(graph)

    with failpoint("write.post_stage_pre_gate", "raise"), pytest.raises(InjectedFault):
        graph.load(people(*range(10)), "append", engine="spark")

    assert tree(graph) == before
    assert graph.load(people(*range(10)), "append", engine="spark", index=False).commit is not None


@pytest.mark.parametrize(
    "place", ["write.post_finalize_pre_publisher", "write.post_publish_pre_sidecar_delete"]
)
def test_a_load_that_fails_inside_its_commit_keeps_its_files_for_recovery(
    spark: "SparkSession", graph: Graph, place: str
) -> None:
    with failpoint(place, "raise"), pytest.raises(RecoveryRequired):
        graph.load(people(*range(10)), "append", engine="spark", index=False)

    with open_graph(graph.uri) as healed:
        assert healed.table("Person").num_rows == 10
        assert [record.recovery_kind.wire for record in healed.recoveries()] == ["rolled_forward"]


def test_an_interrupt_cancels_the_jobs_and_leaves_nothing(spark: "SparkSession", graph: Graph) -> None:
    before = tree(graph)

    def interrupt(event: ProgressEvent) -> None:
        if event.stage is Stage.READ and event.tasks_total:
            _thread.interrupt_main()

    data = ndjson([node("Person", name=f"p{number}") for number in range(100_000)])
    with pytest.raises(KeyboardInterrupt):
        graph.load(data, "append", engine="spark", progress=interrupt)

    left = set(tree(graph)) - set(before)
    assert all("/data/" in name for name in left)  # of tasks whose report never came
    assert graph.table("Person").num_rows == 0
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


@pytest.mark.case("engine", 121)
def test_fragments_for_another_version_or_other_columns_are_refused(graph: Graph) -> None:
    entry, parts = graph.snapshot().entry("node:Person"), internals(graph).parts
    handle = parts.open(entry)
    schema = handle.schema

    for version, print_ in ((entry.version + 1, fingerprint(schema)), (entry.version, "other")):
        wrong = StagedFragments("node:Person", version, print_, (), 0, 3)
        with pytest.raises(InvariantViolation, match="task 3 wrote node:Person"):
            stage_written(parts.stager, handle, schema, [wrong], mode="append")


def test_every_stage_is_told_with_its_rows(spark: "SparkSession", graph: Graph) -> None:
    events: list[ProgressEvent] = []

    graph.load(people(1, 2, 3), "append", engine="spark", progress=events.append)

    done = [event.stage for event in events if event.is_done]
    assert done == [
        Stage.START,
        Stage.READ,
        Stage.VALUES,
        Stage.WRITE,
        Stage.KEYS,
        Stage.ENDPOINTS,
        Stage.CARDINALITY,
        Stage.STAGE,
        Stage.COMMIT,
        Stage.INDEX,
    ]
    read = next(event for event in events if event.is_done and event.stage is Stage.READ)
    assert (read.rows, read.bytes_done) == (3, read.bytes_total)


def test_auto_chooses_by_what_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.bulk.sources.sources import Format, SourceInput

    for name in ("OMNIGRAPH_SPARK_MASTER", "OMNIGRAPH_SPARK_CONF", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n")
    one = SourceInput(str(path), Format.NDJSON)

    assert engine_of([one], LoadOptions("append")) == "local"
    assert engine_of([one] * 7, LoadOptions("append")) == "local"
    assert engine_of([one], LoadOptions("append", master="local[1]")) == "spark"
    assert engine_of([one, one], LoadOptions("append", engine="local")) == "local"
    monkeypatch.setenv("OMNIGRAPH_LOAD_SPARK_BYTES", "6")
    assert engine_of([one], LoadOptions("append")) == "local"
    assert engine_of([one, one], LoadOptions("append")) == "spark"
    assert engine_of([one, one], LoadOptions("append", engine="local")) == "local"
