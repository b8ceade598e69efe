"""Changes of schema whose rows Spark writes: the same graph as in process, and nothing left over."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph.core.errors import BadRequest, SparkUnavailable
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.operations.settings import SCHEMA_SPARK_BYTES
from omnigraph.storage.tables.reshape import columns_in_files
from tests.support.engine import ndjson, new_graph, node
from tests.support.seam import internals, patched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE = "node T { name: String @key  n: I32?  secret: String?  tags: [String]? }\n"
AFTER = 'node T { name: String @key  n: I64?  tags: [String]?  word: String @default("x") }\n'


def graph_at(root: Path) -> Graph:
    """Return a graph of several fragments with deleted rows, and a branch."""
    rows = [node("T", name=f"t{n}", n=n, secret=f"s{n}", tags=["a", f"t{n}"]) for n in range(12)]
    graph = new_graph(root, BEFORE, *rows[:8])
    graph.load(ndjson(rows[8:]), "append")
    graph.mutate('query no() { delete T where name = "t3" }')
    graph.create_branch("june")
    return graph


def shown(graph: Graph, branch: str | None = None) -> list[dict[str, Any]]:
    return graph.table("T", branch=branch).to_pylist()


def strays(graph: Graph, branch: str | None = None) -> set[int]:
    """Return the columns in files that a branch shows, which its schema lacks."""
    handle = internals(graph).parts.open(graph.snapshot(branch).entry("node:T"))
    fields = handle._dataset.lance_schema.fields()
    known = {number for field in fields for number in (field.id(), *(each.id() for each in field.children()))}
    return set(columns_in_files(handle)) - known


def leftovers(root: Path) -> list[str]:
    return [path.name for path in root.iterdir() if path.name.startswith(("__spool_", "__executor_probe_"))]


@pytest.mark.slow
@pytest.mark.case("engine", 750)
def test_executors_write_what_the_process_would_have_written(spark: "SparkSession", tmp_path: Path) -> None:
    seen = []
    for engine in ("local", "spark"):
        root = tmp_path / engine
        graph = graph_at(root)
        graph.apply_schema(AFTER, allow_data_loss=True, engine=engine)
        result = graph.upgrade_branch("june", allow_data_loss=True, engine=engine)

        assert result.warnings == ()
        assert strays(graph) == strays(graph, "june") == set()
        assert leftovers(root) == []
        assert graph.verify(deep=True).is_whole
        states = {index.coverage for table in graph.index_status() for index in table.indexes}
        seen.append((shown(graph), shown(graph, "june"), states))
    assert seen[0] == seen[1]
    assert seen[1][2] == {"indexed"}


@pytest.mark.slow
@pytest.mark.case("engine", 751)
def test_what_tasks_wrote_for_a_change_that_fails_is_removed(spark: "SparkSession", tmp_path: Path) -> None:
    root = tmp_path / "graph"
    graph = graph_at(root)
    before, files = shown(graph), sorted(root.glob("nodes/**/*.lance"))

    with failpoint("schema_apply.post_stage_pre_gate", "raise"), pytest.raises(Exception, match="post_stage"):
        graph.apply_schema(AFTER, allow_data_loss=True, engine="spark")

    assert sorted(root.glob("nodes/**/*.lance")) == files
    assert leftovers(root) == []
    assert shown(graph) == before
    assert graph.apply_schema(AFTER, allow_data_loss=True, engine="spark").applied


@pytest.mark.case("engine", 752)
def test_auto_goes_to_spark_above_a_size_and_never_without_rows_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMNIGRAPH_SPARK_MASTER", "OMNIGRAPH_SPARK_CONF", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    started: list[str] = []

    def refused(*_: object) -> None:
        started.append("spark")
        raise SparkUnavailable("not today")

    patched(monkeypatch, "omnigraph.operations.schema.spark.start_spark", refused)
    graph = graph_at(tmp_path / "graph")
    with pytest.raises(BadRequest, match="engine"):
        graph.apply_schema(AFTER, engine="cluster")  # type: ignore[arg-type]

    graph.apply_schema(BEFORE.replace("n: I32?", "n: I32?  more: String?"), engine="spark")
    graph.apply_schema(BEFORE.replace("n: I32?", "n: I64?  more: String?"))
    assert started == []
    monkeypatch.setenv(SCHEMA_SPARK_BYTES, "1")
    with pytest.raises(SparkUnavailable, match="not today"):
        graph.apply_schema(AFTER, allow_data_loss=True)
    assert started == ["spark"]
