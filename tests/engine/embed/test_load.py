"""`load` that makes vectors: of what it loads, in its own commit, or nothing is loaded."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import (
    ColumnsLeftOut,
    EmbeddingConfig,
    EmbeddingError,
    EmbeddingModelMismatch,
    Graph,
    ValidationError,
)
from omnigraph.bulk.connect.progress import ProgressEvent, Stage
from omnigraph.core.failpoint import failpoint
from omnigraph.embedding.mock import MockProvider
from omnigraph.operations.engine import Engine
from omnigraph.operations.load.model import LoadMode
from tests.engine.embed.crafts import (
    CRAFTS,
    MOCK,
    MODEL,
    answer,
    data_files,
    is_unit,
    new_graph,
    openai,
    vectors,
)
from tests.support.engine import assert_settled, contents, edge, head, ndjson, node, rows
from tests.support.queries import mutation
from tests.support.spark import spark_session
from tests.unit.embedding.stand_in import Answer, stand_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLD = node("Craft", code="OLD", name="Sputnik")
ENGINES = ["local", pytest.param("spark", marks=pytest.mark.slow)]
STRICT = """\
node Craft {
    code: String @key
    name: String?
    vector: Vector(4) @embed(name)
}
"""


@pytest.fixture(scope="session")
def spark() -> "SparkSession":
    return spark_session()


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Engine:
    """The engine of a test; Spark is started for its own tests alone."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    found: Engine = request.param
    return found


def of_texts(texts: Sequence[str], dimension: int = 4) -> list[object]:
    return [pytest.approx(made) for made in MockProvider(MODEL).embed(texts, "document", dimension)]


@pytest.mark.case("surfaces", 664)
@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_what_is_loaded_gets_its_vectors_in_the_same_commit(tmp_path: Path, engine: Engine) -> None:
    with new_graph(tmp_path / "g.omni", OLD) as graph:
        before = head(graph)

        result = graph.load(ndjson(CRAFTS), "append", embed=True, index=False, engine=engine)

        assert result.commit == head(graph)
        assert head(graph).parent_commit_id == before.graph_commit_id
        assert (result.engine, result.vectors) == (engine, 3)
        made, purposes = vectors(graph), vectors(graph, "purpose_vector")
        assert [made["VGR-1"], made["VGR-2"]] == of_texts(["Voyager"] * 2)
        assert made["CAS"] == [3.0, 0.0, 0.0, 0.0], "a vector that is given stays"
        assert made["NONE"] == [0.0, 0.0, 0.0, 1.0]
        assert made["OLD"] is None, "what was there before is for omnigraph embed"
        assert [code for code, vector in purposes.items() if vector] == ["VGR-1"], "an empty text has none"
        assert_settled(graph)


@pytest.mark.case("surfaces", 664)
@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_an_upsert_makes_the_vector_of_the_new_text_and_clears_none_that_it_makes(
    tmp_path: Path, engine: Engine
) -> None:
    records = [node("Craft", code="VGR-1", name="Pioneer"), node("Craft", code="CAS")]
    with new_graph(tmp_path / "g.omni", OLD) as graph:
        graph.load(ndjson(CRAFTS), "append", embed=True, index=False)

        result = graph.load(ndjson(records), "merge", embed=True, index=False, engine=engine)

        assert [vectors(graph)["VGR-1"]] == of_texts(["Pioneer"])
        assert vectors(graph)["CAS"] is None
        cleared = {item.property: item.rows for item in result.cleared}
        assert (cleared["name_vector"], cleared["purpose_vector"], result.vectors) == (1, 1, 1)


@pytest.mark.case("surfaces", 668)
@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_a_provider_that_fails_leaves_the_graph_as_it_was(tmp_path: Path, engine: Engine) -> None:
    with (
        stand_in(*[Answer({"error": "down"}, status=400)] * 8) as server,
        new_graph(tmp_path / "g.omni", OLD, embedding=openai(server.url)) as graph,
    ):
        before, files = head(graph), data_files(graph)

        with pytest.raises(EmbeddingError):
            graph.load(ndjson(CRAFTS), "append", embed=True, engine=engine)

        assert server.asked
        assert (head(graph), data_files(graph)) == (before, files)
        assert list(rows(graph, "Craft")) == ["OLD"]
        assert_settled(graph)


@pytest.mark.case("surfaces", 668)
@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize(
    ("records", "mode", "error"),
    [
        ([*CRAFTS, node("Craft", code=7, name="new")], "append", ValidationError),
        ([*CRAFTS, OLD], "append", omnigraph.KeyConflict),
        ([*CRAFTS, edge("Flew", "VGR-1", "nowhere")], "append", ValidationError),
        ([node("Craft", code="OLD", name="new")], "merge", ColumnsLeftOut),
    ],
)
def test_no_text_is_sent_for_a_load_that_is_refused(
    tmp_path: Path, engine: Engine, records: list[dict[str, object]], mode: LoadMode, error: type[Exception]
) -> None:
    given = node("Craft", code="OLD", name="Sputnik", purpose="first")
    with (
        stand_in() as server,
        new_graph(tmp_path / "g.omni", given, embedding=openai(server.url)) as graph,
    ):
        before = head(graph)

        with pytest.raises(error):
            graph.load(ndjson(records), mode, embed=True, strict_columns=mode == "merge", engine=engine)

        assert head(graph) == before
        assert server.asked == []


@pytest.mark.case("surfaces", 668)
@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_a_dry_run_sends_nothing_and_refuses_another_model(tmp_path: Path, engine: Engine) -> None:
    with (
        stand_in() as server,
        new_graph(tmp_path / "g.omni", OLD, embedding=openai(server.url)) as graph,
    ):
        result = graph.load(ndjson(CRAFTS), "append", embed=True, dry_run=True, engine=engine)
        assert (result.commit, result.tables, server.asked) == (None, (("node:Craft", 4),), [])

    other = EmbeddingConfig("mock", model="other")
    with omnigraph.open(tmp_path / "g.omni", durability="process", embedding=other) as graph:
        before = head(graph)
        for is_dry in (True, False):
            with pytest.raises(EmbeddingModelMismatch, match=r"Craft\.name_vector was built with"):
                graph.load(ndjson(CRAFTS), "append", embed=True, dry_run=is_dry, engine=engine)
        assert head(graph) == before


@pytest.mark.case("surfaces", 664)
@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_a_required_vector_may_be_left_to_the_load_where_there_is_a_text(
    tmp_path: Path, engine: Engine
) -> None:
    with omnigraph.init(tmp_path / "g.omni", STRICT, durability="process"):
        pass
    with omnigraph.open(tmp_path / "g.omni", durability="process", embedding=MOCK) as graph:
        records = [node("Craft", code="a", name="A"), node("Craft", code="b")]
        with pytest.raises(ValidationError, match=r"missing required property Craft\.vector") as caught:
            graph.load(ndjson(records), "append", embed=True, engine=engine)
        assert ["line 2" in str(caught.value), len(caught.value.violations)] == [True, 1]

        kept = graph.load(ndjson(records), "append", embed=True, on_error="skip", index=False, engine=engine)

        assert (kept.rejected_rows, kept.tables) == (1, (("node:Craft", 1),))
        assert [row["vector"] for row in rows(graph, "Craft").values()] == of_texts(["A"])


@pytest.mark.case("surfaces", 664)
def test_tables_and_dicts_get_vectors_too_and_no_text_is_sent_twice(tmp_path: Path) -> None:
    with (
        stand_in(answer([2, 0, 0, 0])) as server,
        new_graph(tmp_path / "g.omni", OLD, embedding=openai(server.url)) as graph,
    ):
        table = pa.table({"code": ["a", "b"], "name": ["same", "same"]})
        events: list[ProgressEvent] = []

        graph.load({"Craft": table}, "append", embed=True, index=False, progress=events.append)

        assert [vectors(graph)[code] for code in "ab"] == [[1, 0, 0, 0]] * 2
        assert [asked.body["input"] for asked in server.asked] == [["same"]]
        assert Stage.EMBED in {event.stage for event in events}


@pytest.mark.case("surfaces", 664)
def test_a_load_that_loses_a_race_sends_no_text_again(tmp_path: Path) -> None:
    with (
        stand_in(answer([2, 0, 0, 0])) as server,
        new_graph(tmp_path / "g.omni", OLD, embedding=openai(server.url)) as graph,
        omnigraph.open(tmp_path / "g.omni", durability="process") as other,
    ):
        pending = [True]

        def write() -> None:
            if pending:
                pending.clear()
                other.mutate(mutation('update Craft set { purpose: "first" } where code = "OLD"'))

        with failpoint("write.post_stage_pre_gate", call=write):
            graph.load(ndjson([node("Craft", code="a", name="A")]), "merge", embed=True, index=False)

        assert rows(graph, "Craft")["OLD"]["purpose"] == "first"
        assert vectors(graph)["a"] == [1, 0, 0, 0]
        assert len(server.asked) == 1


@pytest.mark.case("surfaces", 668)
def test_other_writers_do_not_wait_for_the_provider(tmp_path: Path) -> None:
    begun, written = threading.Event(), threading.Event()

    def wait(event: ProgressEvent) -> None:
        if event.stage is Stage.EMBED:
            begun.set()
            assert written.wait(30), "the other writer is not held up"

    with new_graph(tmp_path / "g.omni", OLD) as graph:
        load = threading.Thread(
            target=lambda: graph.load(
                ndjson([node("Craft", code="a", name="A")]),
                "append",
                embed=True,
                index=False,
                progress=wait,
            )
        )
        load.start()
        assert begun.wait(30)
        graph.load(ndjson([node("Craft", code="b")]), "append", index=False)
        written.set()
        load.join(30)

        assert is_unit(vectors(graph)["a"])
        assert set(rows(graph, "Craft")) == {"OLD", "a", "b"}


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
@pytest.mark.case("surfaces", 668)
def test_both_engines_make_equal_graphs(tmp_path: Path) -> None:
    made = {}
    engines: tuple[Engine, ...] = ("local", "spark")
    for engine in engines:
        records = [
            *(node("Craft", code=f"c{n}", name=f"n{n % 7}" if n % 3 else None) for n in range(300)),
            *(node("Craft", code=f"c{n}", name=f"again {n}") for n in range(0, 300, 50)),
            node("Mission", title="grand tour"),
            edge("Flew", "c1", "grand tour"),
            edge("Flew", "c2", "nowhere"),
        ]
        with new_graph(tmp_path / f"{engine}.omni", OLD) as graph:
            result = graph.load(
                ndjson(records), "merge", embed=True, on_error="skip", index=False, engine=engine
            )
            assert_settled(graph)
            made[engine] = (without_ids(graph), result.tables, result.rejected_rows)

    assert made["local"] == made["spark"]
    assert made["spark"][0]["Mission"]["grand tour"]["vector"] is not None


def without_ids(graph: Graph) -> dict[str, dict[str, dict[str, object]]]:
    """Return what is stored; edges by their ends, because each engine makes ids of its own."""
    found = contents(graph)
    flew = {f"{row['src']}-{row['dst']}": row for row in found["Flew"].values()}
    return {**found, "Flew": {key: {**row, "id": None} for key, row in flew.items()}}
