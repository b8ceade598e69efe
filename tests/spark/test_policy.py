"""A policy before graphs in Spark: every way in asks, before anything is read or written."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

import omnigraph.spark
from omnigraph.bulk.datasource.read import read_options
from omnigraph.bulk.datasource.sink import write_options
from omnigraph.core.errors import BadRequest, PolicyDenied
from omnigraph.graph.graph import Graph
from omnigraph.policy.model import Policy
from omnigraph.spark import GraphSource, GraphWriter, load_dataframe
from tests.support.engine import PEOPLE, files, ids, new_graph, node
from tests.support.gates import policy_text
from tests.support.queries import mutation

NOTHING = policy_text()
COLUMNS = StructType([StructField("name", StringType())])
ADD = mutation('insert Person { name: "joe" }')


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    """Yield a graph with ann on main, and joe on june as well."""
    with new_graph(tmp_path / "graph", PEOPLE, node("Person", name="ann")) as graph:
        graph.create_branch("june")
        graph.mutate(ADD, branch="june")
        yield graph


def options(graph: Graph, policy: str, **more: str) -> dict[str, str]:
    return {"uri": graph.uri, "type": "Person", "policy": policy, "actor": "ann", **more}


def written(graph: Graph, policy: str, **more: str) -> None:
    GraphWriter(write_options(options(graph, policy, **more), is_overwrite=False), COLUMNS, "nowhere").load(
        []
    )


def loaded(
    graph: Graph, policy: str | Policy, monkeypatch: pytest.MonkeyPatch, branch: str = "main"
) -> object:
    """Load no frames, for which no session is needed."""
    session = cast("SparkSession", object())
    monkeypatch.setattr(omnigraph.spark, "active_session", lambda: session)
    return load_dataframe(session, graph.uri, {}, mode="append", branch=branch, actor="ann", policy=policy)


@pytest.mark.case("surfaces", 543)
@pytest.mark.case("surfaces", 695)
def test_every_way_in_asks_before_anything_is_written(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = GraphSource(options(graph, policy_text("read")))
    ways: dict[str, Callable[[], object]] = {
        "GraphSource": lambda: GraphSource(options(graph, NOTHING)),
        "GraphSource, to write": lambda: reading.sink(
            write_options(options(graph, NOTHING), is_overwrite=False), COLUMNS
        ),
        "GraphWriter": lambda: written(graph, NOTHING),
        "load_dataframe": lambda: loaded(graph, NOTHING, monkeypatch),
    }
    assert {name.split(",")[0] for name in ways} == {*omnigraph.spark.__all__} - {"register"}
    before = files(Path(graph.uri))

    for name, way in ways.items():
        with pytest.raises(PolicyDenied, match="on branch 'main' for actor 'ann'"):
            way()
        assert files(Path(graph.uri)) == before, name


@pytest.mark.case("surfaces", 695)
def test_a_policy_decides_for_the_actor_and_the_branch(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    june = policy_text("read, change; branch_scope: unprotected")
    heads = {name: graph.commits(branch=name, limit=1)[0].graph_commit_id for name in ("main", "june")}

    assert GraphSource(options(graph, june, branch="june")).table.table_key == "node:Person"
    assert GraphSource(options(graph, june, commit=heads["june"])).table.table_key == "node:Person"
    for more in ({}, {"commit": heads["main"]}, {"commit": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, {"actor": "eve"}):
        with pytest.raises(PolicyDenied):
            GraphSource(options(graph, june, **more))
    with pytest.raises(PolicyDenied, match="names no actor"):
        GraphSource({name: text for name, text in options(graph, june).items() if name != "actor"})
    loaded(graph, Policy.parse(june), monkeypatch, branch="june")
    written(graph, june, branch="june")
    with pytest.raises(PolicyDenied, match="'change' on branch 'main'"):
        loaded(graph, june, monkeypatch)
    with pytest.raises(BadRequest, match="missing"):
        GraphSource(options(graph, "missing.yaml"))
    assert read_options(options(graph, june)).actor == "ann"
    assert ids(graph, "Person") == ["ann"]


@pytest.mark.case("surfaces", 695)
def test_without_a_policy_everything_is_allowed(graph: Graph) -> None:
    assert GraphSource({"uri": graph.uri, "type": "Person"}).table.table_key == "node:Person"
