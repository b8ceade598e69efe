"""Out of a graph with Spark: the data source, and an export by tasks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import expr

import omnigraph
from omnigraph.bulk.datasource.read import read_options
from omnigraph.bulk.export.files import ExportFormat
from omnigraph.core.errors import BadRequest, CommitNotFound, NotFoundError, ValidationError
from omnigraph.core.temporal import format_datetime
from omnigraph.graph.graph import Graph
from omnigraph.spark import GraphSource, load_dataframe, register
from tests.spark.export.test_round_trip import EVERY_TYPE, RECORDS, lines_of
from tests.support.engine import ndjson, node
from tests.support.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from omnigraph.operations.engine import Engine


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    """Return the session, with the data source."""
    session = spark_session()
    register(session)
    return session


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Yield a graph whose things lie in four fragments."""
    path = tmp_path_factory.mktemp("source") / "one.omni"
    with omnigraph.init(path, EVERY_TYPE, durability="process") as graph:
        graph.load(ndjson(RECORDS), "append", index=False)
        for start in (0, 10, 20):
            records = [node("Thing", code=f"t{n}", i64=n, u64=n, f64=n / 2) for n in range(start, start + 10)]
            graph.load(ndjson(records), "append", index=False)
        yield graph


def frame(spark: SparkSession, graph: Graph, **options: str | int) -> DataFrameReader:
    """Return a frame of the graph that is to be loaded."""
    return spark.read.format("omnigraph").option("uri", graph.uri).options(**options)


@pytest.mark.case("surfaces", 195)
def test_a_frame_has_the_rows_of_one_snapshot(spark: SparkSession, graph: Graph) -> None:
    things = frame(spark, graph, type="Thing", columns="id", numPartitions=4).load()
    before = sorted(str(id_) for id_ in graph.table("Thing")["id"].to_pylist())
    graph.load(ndjson([node("Thing", code="later")]), "append", index=False)

    rows = things.selectExpr("id", "spark_partition_id() as part").collect()

    assert sorted(row["id"] for row in rows) == before
    assert {row["part"] for row in rows} == {0, 1, 2, 3}


def test_the_snapshot_may_be_a_commit_or_a_moment_of_the_past(graph: Graph) -> None:
    commit = graph.commits(limit=2)[1]
    moment = format_datetime(commit.created_at_micros // 1_000)

    def version(**options: str) -> int:
        source = GraphSource({"uri": graph.uri, "type": "Thing", **options})
        return source.table.version

    now, then = version(), version(snapshot=commit.graph_commit_id)
    assert then == version(commit=commit.graph_commit_id) == version(timestamp=moment) == now - 1
    with pytest.raises(NotFoundError, match="no commit that old"):
        version(timestamp="2001-01-01")
    with pytest.raises(CommitNotFound):
        version(snapshot="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(BadRequest, match="unknown type 'Thinng'; did you mean 'Thing'"):
        GraphSource({"uri": graph.uri, "type": "Thinng"})


def test_every_type_has_one_of_sparks(spark: SparkSession, graph: Graph) -> None:
    things = frame(spark, graph, type="Thing").load()

    row = things.where("id = 'full'").collect()[0].asDict()

    assert (row["i32"], row["i64"], row["u32"]) == (-(2**31), -(2**63), 2**32 - 1)
    assert row["u64"] == Decimal(2**64 - 1)
    assert row["f32"] == pytest.approx(0.1)
    assert (row["on"], row["kind"], row["day"]) == (False, "big", date(1, 1, 1))
    assert row["words"] == ["", "a,b", '"']
    assert row["where"] == pytest.approx([3.0, 4.0, 0.1])
    assert row["raw"].asDict() == {"kind": "managed", "size": 4}
    types = dict(things.dtypes)
    assert (types["u64"], types["at"], types["where"]) == ("decimal(20,0)", "timestamp", "array<float>")
    bare = things.where("id = 'bare'").toArrow().to_pylist()[0]
    assert {value for name, value in bare.items() if name not in {"id", "code"}} == {None}


def test_filters_and_columns_select_what_they_say(spark: SparkSession, graph: Graph) -> None:
    things = frame(spark, graph, type="Thing").schema("id string, i64 bigint, f64 double, day date").load()

    some = things.where("i64 >= 5 and i64 < 8 and f64 is not null and not (id = 't6')")
    dated = things.where("day = date '0001-01-01'")

    assert sorted(row["id"] for row in some.collect()) == ["t5", "t7"]
    assert [row["id"] for row in dated.collect()] == ["full"]
    assert things.columns == ["id", "i64", "f64", "day"]


@pytest.mark.case("surfaces", 920)
@pytest.mark.parametrize("is_offered", ["true", "false"])
def test_a_frame_has_all_of_its_rows_whatever_was_selected_from_it(
    spark: SparkSession, graph: Graph, is_offered: str
) -> None:
    name = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(name, "false")
    spark.conf.set(name, is_offered)
    try:
        things = frame(spark, graph, type="Thing").load()
        count = graph.table("Thing").num_rows
        some = things.where("i64 >= 5 and i64 < 8")

        assert things.count() == count
        assert some.count() == 3
        assert things.count() == count
        both = things.where("i64 < 3").union(things.where("i64 >= 7 and i64 < 10"))
        assert sorted(row["i64"] for row in both.select("i64").collect() if row["i64"] >= 0) == [
            0,
            1,
            2,
            7,
            8,
            9,
        ]
        assert some.cache().count() == 3
        assert things.select("id").exceptAll(some.select("id")).count() == count - 3
    finally:
        spark.conf.set(name, before or "false")


def test_a_schema_that_the_table_does_not_have_is_refused(spark: SparkSession, graph: Graph) -> None:
    wrong = frame(spark, graph, type="Thing").schema("id string, i64 string").load()

    with pytest.raises(PySparkException, match="column 'i64' is bigint, not string"):
        wrong.collect()


def test_frames_of_nodes_and_edges_are_loaded_as_one_commit(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "frames.omni"
    with omnigraph.init(path, EVERY_TYPE, durability="process") as graph:
        things = spark.createDataFrame([("a", 1), ("b", None)], "code string, i64 long")
        near = spark.createDataFrame([("a", "b", 0.5)], "`from` string, `to` string, weight double")
        before = len(graph.commits())

        result = load_dataframe(spark, str(path), {"Thing": things, "near": near}, mode="append", index=False)

        assert dict(result.tables) == {"node:Thing": 2, "edge:Near": 1}
        assert len(graph.commits()) == before + 1
        assert [row["weight"] for row in graph.table("Near").to_pylist()] == [0.5]
        with pytest.raises(ValidationError, match="dst 'c' not found in Thing"):
            load_dataframe(
                spark, str(path), {"Near": near.selectExpr("`from`", "'c' as `to`")}, mode="append"
            )
        assert len(graph.commits()) == before + 1


def test_a_frame_that_was_read_is_loaded_into_another_graph(
    spark: SparkSession, graph: Graph, tmp_path: Path
) -> None:
    path = tmp_path / "copy.omni"
    things = frame(spark, graph, type="Thing").load().drop("raw")
    with omnigraph.init(path, EVERY_TYPE, durability="process") as copy:
        load_dataframe(spark, str(path), {"Thing": things}, mode="append", index=False)

        assert copy.table("Thing").drop_columns(["raw"]).equals(graph.table("Thing").drop_columns(["raw"]))


@pytest.mark.case("surfaces", 196)
def test_a_frame_is_written_as_one_commit_or_none(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "written.omni"
    with omnigraph.init(path, EVERY_TYPE, durability="process") as graph:
        before = len(graph.commits())
        rows = spark.range(0, 40, 1, 4).selectExpr(
            "cast(id as string) as code", "cast(id as decimal(20,0)) as u64", "timestamp_millis(id) as at"
        )
        failing = rows.withColumn("i32", expr("if(u64 = 35, raise_error('task'), 1)"))

        with pytest.raises(PySparkException, match="task"):
            write(failing, graph, type="Thing")
        after_failure = len(graph.commits())
        write(rows, graph, type="Thing", index="false", actor="ann", message="from Spark")
        with pytest.raises(PySparkException, match="already"):
            write(rows, graph, type="Thing", index="false")
        write(rows.limit(3), graph, "overwrite", table_key="node:Thing", index="false")

        assert after_failure == before
        assert len(graph.commits()) == before + 2
        assert (graph.commits()[1].actor_id, graph.commits()[1].message) == ("ann", "from Spark")
        assert [row["u64"] for row in graph.table("Thing").to_pylist()] == [0, 1, 2]
        assert [item.name for item in path.iterdir() if item.name.startswith("__spool")] == []


def write(rows: DataFrame, graph: Graph, mode: str = "append", **options: str) -> None:
    """Write a frame into a graph."""
    rows.write.format("omnigraph").option("uri", graph.uri).options(**options).mode(mode).save()


@pytest.mark.case("engine", 124)
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("format_", list(ExportFormat))
def test_what_either_engine_writes_either_engine_loads_into_an_equal_graph(
    graph: Graph, format_: ExportFormat, tmp_path: Path
) -> None:
    written = graph.export().to_folder_on_spark(tmp_path / "tasks", format_)
    graph.export().to_folder(tmp_path / "alone", format_)

    files = sorted(str(path) for path in (tmp_path / "tasks").rglob("*") if path.is_file())
    assert files == sorted(item.path for item in written)
    engines: tuple[Engine, ...] = ("local", "spark")
    for folder, engine in product(("tasks", "alone"), engines):
        path = tmp_path / f"{folder}-{engine}.omni"
        with omnigraph.init(path, EVERY_TYPE, durability="process") as other:
            result = other.load(tmp_path / folder, "overwrite", engine=engine, index=False)

            assert result.engine == engine
            assert lines_of(other) == lines_of(graph)
            assert dict(result.tables) == rows_by_table(graph)


def rows_by_table(graph: Graph) -> dict[str, int]:
    """Return how many rows every table has."""
    return {type_.table_key: graph.table(type_.name).num_rows for type_ in graph.catalog.types}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"type": "Thing"}, "'uri' is missing"),
        ({"uri": "x"}, "one of the options 'type' and 'table_key'"),
        ({"uri": "x", "type": "T", "snapshot": "a", "timestamp": "b"}, "'snapshot' and 'timestamp'"),
        ({"uri": "x", "type": "T", "colums": "a"}, "unknown option 'colums'; did you mean 'columns'"),
        ({"uri": "x", "type": "T", "numPartitions": "0"}, "above zero, not '0'"),
    ],
)
def test_options_that_make_no_read_are_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        read_options(options)


def test_a_column_of_sparks_types_is_what_spark_expects() -> None:
    from omnigraph.bulk.datasource.types import spark_schema

    schema = pa.schema([pa.field("a", pa.list_(pa.uint64())), pa.field("b", pa.list_(pa.float32(), 2))])

    assert spark_schema(schema).simpleString() == "struct<a:array<decimal(20,0)>,b:array<float>>"
