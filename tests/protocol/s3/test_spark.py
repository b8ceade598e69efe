"""Bulk work on a graph in an S3-compatible store: inputs from the store, exports to it, frames both ways."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.bulk.export.files import ExportFormat
from omnigraph.bulk.files import file_size, objects_below, open_input, open_output
from omnigraph.core.errors import BadRequest, StorageError, ValidationError
from omnigraph.spark import load_dataframe
from tests.support.commands import python, write
from tests.support.in_process import document
from tests.support.seam import patched
from tests.support.spark import spark_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from omnigraph.graph.graph import Graph
    from omnigraph.storage.control.uri import GraphRoot

pytestmark = pytest.mark.slow

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    spot: Vector(2)?
    raw: Blob?
}

edge Knows: Person -> Person {
    since: Date?
}
"""
PEOPLE = 40


@pytest.fixture
def spark(root: GraphRoot, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """Return the session, whose workers get the settings of the store: it may be older than these."""
    session = spark_session()
    for name, value in os.environ.items():
        if name.startswith("AWS_"):
            monkeypatch.setitem(session.sparkContext.environment, name, value)
    return session


@pytest.fixture
def graph(root: GraphRoot) -> Iterator[Graph]:
    with omnigraph.init(root.uri, SCHEMA) as made:
        yield made


@pytest.fixture
def data(root: GraphRoot) -> str:
    """Put people and whom they know into the store, in every format."""
    place = f"s3://{root.bucket}/in put"
    records = [
        {"type": "Person", "data": {"name": f"j{n}", "age": n, "spot": [n, 0.5]}} for n in range(PEOPLE)
    ]
    text = "\n".join(json.dumps(record) for record in records).encode()
    put(f"{place}/a.jsonl", text)
    put(f"{place}/b.jsonl.gz", gzip.compress(text.replace(b'"j', b'"g')))
    put(f"{place}/Person/c.csv", b"name,age\n" + b"".join(b'"c%d",%d\n' % (n, n) for n in range(PEOPLE)))
    names = [f"p{n}" for n in range(PEOPLE)]
    with open_output(f"{place}/Person/d.parquet") as sink:
        pq.write_table(pa.table({"name": names, "raw": [b"\0\xff"] * PEOPLE}), sink, row_group_size=7)
    table = pa.table({"from": names, "to": [f"j{n}" for n in range(PEOPLE)]})
    with open_output(f"{place}/Knows.arrow") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=9)
    return place


def put(name: str, data: bytes) -> None:
    with open_output(name) as sink:
        sink.write(data)


def lines_of(graph: Graph) -> list[bytes]:
    """Return what a graph exports, sorted, without the ids of edges."""
    records = [json.loads(line) for line in b"".join(graph.export().lines()).splitlines()]
    return sorted(
        json.dumps(record | {"data": {**record["data"], "id": None}}, sort_keys=True).encode()
        for record in records
    )


def test_inputs_of_a_store_make_the_graph_that_the_same_files_of_a_disk_make(
    spark: SparkSession, graph: Graph, data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(monkeypatch, "omnigraph.operations.load.spark.SLICE_BYTES_MIN", 400)
    patched(monkeypatch, "omnigraph.operations.load.spark.SLICE_BYTES_MAX", 400)
    for name in objects_below(data):
        with open_input(name) as source:
            write(tmp_path, "data" + name.removeprefix(data), source.read())
    other = omnigraph.init(tmp_path / "graph", SCHEMA, durability="process")

    loaded = graph.load(data, "append", engine="spark", index=False)
    expected = other.load(tmp_path / "data", "append", engine="local", index=False)

    assert (loaded.engine, loaded.tables) == ("spark", expected.tables)
    assert loaded.tables == (("edge:Knows", PEOPLE), ("node:Person", 4 * PEOPLE))
    assert lines_of(graph) == lines_of(other)
    sources = [f"Person={data}/Person/*.csv", f"{data}/a.jsonl"]
    merged = graph.load(sources, "merge", engine="spark", index=False)
    assert (merged.engine, merged.tables) == ("spark", (("node:Person", 2 * PEOPLE),))
    put(f"{data}/a.jsonl", b'{"type": "Person", "data": {"age": 1}}')
    with pytest.raises(ValidationError, match=r"s3://.*/Knows\.arrow:1: dst 'j0' not found"):
        graph.load(data, "overwrite", engine="spark", index=False)


@pytest.mark.parametrize("format_", list(ExportFormat))
def test_an_export_into_a_store_is_loaded_from_there(
    spark: SparkSession, graph: Graph, root: GraphRoot, data: str, format_: ExportFormat
) -> None:
    graph.load([f"{data}/a.jsonl", f"Person={data}/Person/d.parquet"], "append", engine="local", index=False)
    before = lines_of(graph)
    folder = f"s3://{root.bucket}/out-{format_}"

    by_tasks = graph.export().to_folder_on_spark(f"{folder}/tasks", format_)
    alone = graph.export().to_folder(f"{folder}/alone", format_)

    assert sorted(item.path for item in by_tasks) == objects_below(f"{folder}/tasks")
    assert sum(item.rows for item in by_tasks) == sum(item.rows for item in alone) == 2 * PEOPLE
    for part in ("tasks", "alone"):
        graph.load(f"{folder}/{part}", "overwrite", index=False)
        assert lines_of(graph) == before
    with pytest.raises(BadRequest, match="is not empty"):
        graph.export().to_folder(f"{folder}/alone", format_)


def test_frames_go_into_a_graph_in_a_store_and_come_out_of_it(
    spark: SparkSession, graph: Graph, root: GraphRoot, tmp_path: Path
) -> None:
    graph.close()
    people = spark.createDataFrame([("ann", 1), ("ben", 2)], "name string, age int")
    knows = spark.createDataFrame([("ann", "ben")], "`from` string, `to` string")

    loaded = load_dataframe(spark, root.uri, {"Person": people, "Knows": knows}, mode="append", index=False)
    shown = python("-c", BY_THE_DATA_SOURCE, root.uri, cwd=tmp_path)

    assert loaded.tables == (("edge:Knows", 1), ("node:Person", 2))
    assert json.loads(shown.stdout) == [["ann", 1], ["ann2", 1], ["ben", 2], ["ben2", 2]], shown
    assert not [name for name in objects_below(root.uri) if "__spool" in name or "__executor" in name]


# Spark plans a Python data source in a process that has the environment of the JVM: one that starts here.
BY_THE_DATA_SOURCE = """\
import json, sys
from omnigraph.bulk.connect.session import SparkSettings, close_session, open_session
spark = open_session(SparkSettings("local[1]", options={"spark.driver.memory": "512m"}))
import omnigraph.spark
options = {"uri": sys.argv[1], "type": "Person"}
people = spark.createDataFrame([("ann2", 1), ("ben2", 2)], "name string, age int")
people.write.format("omnigraph").options(**options).option("index", "false").mode("append").save()
rows = spark.read.format("omnigraph").options(**options).load().collect()
print(json.dumps(sorted([row["name"], row["age"]] for row in rows)))
close_session()
"""


def test_commands_take_addresses_of_a_store(
    spark: SparkSession, graph: Graph, data: str, tmp_path: Path
) -> None:
    uri = graph.uri
    graph.close()
    write(
        tmp_path, "load.yaml", json.dumps({"sources": [{"path": f"{data}/Person/c.csv", "type": "Person"}]})
    )

    arguments = ("load", uri, "--mode", "append", "--data", f"{data}/a.jsonl", "--mapping", "load.yaml")
    loaded = document(*arguments, "--no-index", cwd=tmp_path)

    assert loaded["tables"] == [{"table_key": "node:Person", "rows_loaded": 2 * PEOPLE}]


def test_what_is_not_in_the_store_is_named(graph: Graph, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadRequest, match=r"cannot read s3://.*/none\.jsonl: no such object"):
        graph.load(f"{data}/none.jsonl", "append")
    with pytest.raises(BadRequest, match="no file matches"):
        graph.load(f"{data}/*.none", "append", engine="local")
    with pytest.raises(BadRequest, match="cannot write s3://no-such-bucket/x: the bucket does not exist"):
        graph.export().to_file("s3://no-such-bucket/x")
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StorageError, match="an s3:// address needs AWS_SECRET_ACCESS_KEY"):
        file_size(f"{data}/a.jsonl")
