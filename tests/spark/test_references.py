"""References to bytes elsewhere on Spark: loaded and refused as without it, and read as texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph.core.errors import ValidationError
from omnigraph.graph.graph import Graph
from omnigraph.spark import load_dataframe, register
from tests.engine.references.steps import COVERS, EVIL, OTHER, S3, SCHEMA, covers, images
from tests.support.engine import new_graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.operations.engine import Engine

pytestmark = pytest.mark.case("surfaces", 739)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return images(tmp_path / "graph")


def test_a_load_checks_as_the_local_engine_does(spark: SparkSession, graph: Graph, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.csv", tmp_path / "good.csv"
    bad.write_text(f"code,cover\nx,{S3}\ny,{EVIL}\n", encoding="utf-8")
    good.write_text(f"code,cover\nx,{S3}\n", encoding="utf-8")
    told = set()
    engines: tuple[Engine, ...] = ("local", "spark")
    for engine in engines:
        with pytest.raises(ValidationError) as caught:
            graph.load([f"Book={bad}"], "append", engine=engine)
        told.add((caught.value.message, caught.value.line, caught.value.row_id))

    graph.load([f"Book={good}"], "append", engine="spark")

    ((message, line, _),) = told
    assert "Book.cover: not a reference that @external allows" in message
    assert line == 3
    assert covers(graph) == {**COVERS, "x": S3}


def test_a_frame_has_texts_and_is_written_back_equal(
    spark: SparkSession, graph: Graph, tmp_path: Path
) -> None:
    register(spark)
    books, cites = (
        spark.read.format("omnigraph").option("uri", graph.uri).option("type", name).load()
        for name in ("Book", "Cites")
    )

    assert dict(books.dtypes)["cover"] == "string"
    assert {row["code"]: row["cover"] for row in books.collect()} == COVERS
    assert [row["code"] for row in books.filter(books["cover"] == S3).collect()] == ["a"]
    with new_graph(tmp_path / "again", SCHEMA) as again:
        ends = cites.withColumnsRenamed({"src": "from", "dst": "to"})
        load_dataframe(spark, again.uri, {"Book": books, "Cites": ends}, mode="append")
        again.refresh()
        assert covers(again) == COVERS
        assert again.table("Cites")["scan"].to_pylist() == [OTHER]
