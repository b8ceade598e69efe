"""`embed` on Spark: the same vectors as in process, one commit or none."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph import EmbeddingConfig, EmbeddingError
from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.embed import Filling, FillTask, fill_with_own_provider, for_executors
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.tables.filter import Always
from omnigraph.storage.tables.fragments import TaskTable
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.pinned import PinnedTable
from tests.engine.embed.crafts import (
    MODEL,
    answer,
    data_files,
    is_unit,
    new_graph,
    openai,
    reopened,
    row_ids,
    vectors,
)
from tests.support.engine import assert_settled, contents, copy_of, head, ndjson, node
from tests.support.in_process import invoke
from tests.support.queries import mutation
from tests.support.spark import spark_session
from tests.unit.embedding.stand_in import stand_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 1_200  # of two tasks
FIRST, SECOND = 1_700, 900  # rows of two fragments: tasks of a thousand rows cut the first, and share both


@pytest.fixture(scope="module")
def spark() -> "SparkSession":
    return spark_session()


def crafts(start: int, end: int) -> list[dict[str, object]]:
    return [
        node("Craft", code=f"c{n}", name=f"name {n % 700}", purpose=None if n % 3 else f"p{n}", mass_kg=n / 8)
        for n in range(start, end)
    ]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of two fragments, with a row deleted, a row changed, and a vector that is there."""
    root = tmp_path_factory.mktemp("embed") / "template.omni"
    with new_graph(root, *crafts(0, FIRST)) as graph:
        graph.load(ndjson(crafts(FIRST, FIRST + SECOND)), "append", index=False)
        graph.load(ndjson([node("Mission", title="grand tour")]), "append", index=False)
        graph.mutate(mutation('delete Craft where code = "c5"'))
        graph.mutate(mutation('update Craft set { name_vector: [1, 0, 0, 0] } where code = "c9"'))
    return root


@pytest.mark.usefixtures("spark")
def test_spark_and_this_process_make_equal_graphs(template: Path, tmp_path: Path) -> None:
    made = {}
    for engine in ("local", "spark"):
        with reopened(copy_of(template, tmp_path / f"{engine}.omni")) as graph:
            kept, before = row_ids(graph), head(graph)

            result = graph.embed(engine=engine, index=False)

            again = graph.embed(engine=engine, index=False)
            assert (result.engine, again.commit) == (engine, None)
            assert row_ids(graph) == kept
            assert result.commit == head(graph)
            assert head(graph).parent_commit_id == before.graph_commit_id
            assert_settled(graph)
            made[engine] = (contents(graph), result.tables)

    assert made["local"] == made["spark"]
    found, tables = made["spark"]
    assert [(table.table_key, table.rows) for table in tables] == [
        ("node:Craft", FIRST + SECOND - 1),
        ("node:Mission", 1),
    ]
    assert found["Craft"]["c9"]["name_vector"] == [1, 0, 0, 0]
    assert all(is_unit(row["name_vector"]) for row in found["Craft"].values())
    assert found["Craft"]["c1"]["purpose_vector"] is None


@pytest.mark.usefixtures("spark")
def test_a_key_of_the_driver_reaches_executors_of_this_machine_and_a_failure_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = answer([0, 2, 0, 0])
    with stand_in(good, good, good, answer([1, 0])) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
        config = openai(server.url, api_key=None)
        records = [node("Craft", code=str(n), name="one name") for n in range(ROWS)]
        with new_graph(tmp_path / "g.omni", *records, embedding=config) as graph:
            graph.embed("Craft", engine="spark", index=False)
            made, before, files = vectors(graph), head(graph), data_files(graph)
            assert len(files) == 3, "the load and one for each task"

            with pytest.raises(
                EmbeddingError, match="asked for a vector of 4 numbers and returned 2"
            ) as caught:
                graph.embed("Craft", engine="spark", reembed_all=True)

            assert (head(graph), data_files(graph), vectors(graph)) == (before, files, made)
            assert_settled(graph)

    assert made == {str(n): [0, 1, 0, 0] for n in range(ROWS)}
    assert server.asked[0].headers["authorization"] == "Bearer sk-very-secret"
    assert [asked.body["input"] for asked in server.asked] == [["one name"]] * 4
    assert "secret" not in repr(caught.value)


def test_the_command_shows_stages_and_prints_a_document(
    spark: "SparkSession", template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_of(template, tmp_path / "g.omni")
    for name, value in {"EMBEDDINGS_MOCK": "1", "EMBED_MODEL": MODEL, "EMBED_SPARK_ROWS": "100"}.items():
        monkeypatch.setenv(f"OMNIGRAPH_{name}", value)

    outcome = invoke("embed", "g.omni", "--type", "Craft", "--no-index", "--json", cwd=tmp_path)

    assert outcome.code == 0, outcome.stderr
    document = json.loads(outcome.stdout)
    assert (document["engine"], document["mode"], document["model"]) == ("spark", "fill_missing", MODEL)
    assert document["tables"] == [
        {"table_key": "node:Craft", "rows_embedded": FIRST + SECOND - 1, "vectors": FIRST + SECOND - 2 + 867}
    ]
    lines = [line for line in outcome.stderr.splitlines() if line.startswith('{"progress"')]
    events = [json.loads(line)["progress"] for line in lines]
    assert [event["stage"] for event in events if event["done"]] == ["start", "embed", "stage", "commit"]
    nothing = invoke("embed", "g.omni", "--type", "Craft", cwd=tmp_path)
    assert nothing.stdout == "nothing to embed on main\n"


def test_a_key_stays_on_this_machine(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = EmbeddingConfig("openai", api_key="sk-very-secret")

    class Elsewhere(Jobs):
        @property
        def is_local(self) -> bool:
            return False

    assert for_executors(config, Jobs(spark, "one")).api_key == "sk-very-secret"
    sent = for_executors(config, Elsewhere(spark, "one"))
    assert sent.api_key is None
    table = TaskTable(PinnedTable(TableAddress(""), 1, "node:X"), "", b"", "append", Durability.PROCESS)
    with pytest.raises(EmbeddingError, match="has no OPENAI_API_KEY: a key is not sent over the network"):
        fill_with_own_provider(FillTask(0, Filling("node:X", table, (), Always(True), False, sent, 1), ()))
