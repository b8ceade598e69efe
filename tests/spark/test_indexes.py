"""Indexes that executors build: the same answers as in process, one commit, and nothing left over."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import omnigraph
from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.indexes import BuiltTables, DueTable, build_on_executors
from omnigraph.core.errors import BadRequest, BranchNotFound, SparkUnavailable, StorageError
from omnigraph.graph.graph import Graph
from omnigraph.operations.settings import INDEX_SPARK_ROWS
from tests.support.engine import edge, ndjson, new_graph, node
from tests.support.seam import internals, patched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Text { name: String @key  words: String? @index  rank: I64? @index  place: Vector(4)? @index }
edge Cites: Text -> Text { weight: F64? }
"""
WORDS = ("graph", "table", "Nodes", "edges", "café", "branches", "merged")
FIND = """
query found($word: String) {
  match { $t: Text  search($t.words, $word) }
  return { $t.name as name, bm25($t.words, $word) as score }
  order { name }
}
"""
RANKED = "query q($rank: I64) { match { $t: Text { rank: $rank } } return { $t.name as n } order { n } }"
NEAR = """
query near($at: Vector(4)) {
  match { $t: Text }
  return { $t.name as name }
  order { nearest($t.place, $at) }
  limit 5
}
"""


def graph_at(root: Path, seed: int = 1) -> Graph:
    """Return a graph of several fragments with deleted rows and without an index, and a branch."""
    draw = random.Random(seed)
    graph = new_graph(root, SCHEMA)
    for start in range(0, 90, 30):
        texts = [_text(draw, number) for number in range(start, start + 30)]
        cites = [edge("Cites", f"t{draw.randrange(start + 30)}", f"t{start}") for _ in range(20)]
        graph.load(ndjson([*texts, *cites]), "append", index=False)
    graph.mutate('query no() { delete Text where name = "t3" }')
    graph.create_branch("june")
    return graph


def _text(draw: random.Random, number: int) -> dict[str, object]:
    words = None if draw.random() < 0.1 else " ".join(draw.choices(WORDS, k=draw.randint(0, 6)))
    place = None if draw.random() < 0.1 else [draw.gauss(0, 1) for _ in range(4)]
    return node("Text", name=f"t{number}", words=words, rank=draw.randrange(9), place=place)


def answers(graph: Graph, branch: str | None = None) -> dict[str, Any]:
    """Return what lookups and searches find."""
    found: dict[str, Any] = {}
    for word in WORDS:
        rows = graph.query(FIND, params={"word": word}, branch=branch).rows
        found[word] = {row["name"]: pytest.approx(row["score"], rel=1e-5) for row in rows}
    for number in range(9):
        at = [float(number == place) for place in range(4)]
        found[f"near {number}"] = graph.query(NEAR, params={"at": at}, branch=branch).rows
        found[f"rank {number}"] = graph.query(RANKED, params={"rank": number}, branch=branch).rows
    found["indexes"] = {
        (table.table_key, index.property, index.coverage)
        for table in graph.index_status(branch=branch)
        for index in table.indexes
    }
    return found


def unnamed(graph: Graph, branch: str | None = None) -> list[str]:
    """Return the folders of indexes that a branch has written and no index of it names."""
    found: list[str] = []
    for entry in graph.snapshot(branch).entries.values():
        handle = internals(graph).parts.open(entry)
        named = {segment.uuid for item in handle._dataset.describe_indices() for segment in item.segments}
        place = handle.address.local_path
        assert place is not None
        found += [folder.name for folder in (place / "_indices").glob("*") if folder.name not in named]
    return found


def cut_finely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every index be cut, however few rows it has and however many others there are."""
    patched(monkeypatch, "omnigraph.bulk.indexes.parts_wanted", lambda *_, **__: 3)


@pytest.mark.slow
@pytest.mark.case("engine", 902)
def test_executors_build_what_the_process_would_have_built(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_finely(monkeypatch)
    seen = []
    for engine in ("local", "spark"):
        graph = graph_at(tmp_path / engine)
        before = len(graph.commits())
        result = graph.ensure_indices(engine=engine)
        on_branch = graph.ensure_indices(branch="june", engine=engine)

        assert (result.pending, on_branch.pending) == ((), ())
        assert result.commit is not None
        assert result.commit.actor_id == "omnigraph:maintenance"
        assert len(graph.commits()) == before + 1
        assert graph.verify(deep=True).is_whole
        assert graph.verify(branch="june", deep=True).is_whole
        if engine == "spark":
            assert unnamed(graph) == unnamed(graph, "june") == []
        again = graph.rebuild_index("Text", "words", engine=engine)
        assert again.commit is not None
        assert graph.ensure_indices(engine=engine).commit is None
        seen.append((answers(graph), answers(graph, "june")))
    assert seen[0] == seen[1]


@pytest.mark.slow
@pytest.mark.case("engine", 903)
@pytest.mark.parametrize(("rows_min", "is_by_executors"), [(1, True), (10_000, False)])
def test_a_large_load_has_its_indexes_built_by_its_executors(
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows_min: int,
    is_by_executors: bool,
) -> None:
    asked: list[int] = []

    def counted(jobs: Jobs, tables: Sequence[DueTable]) -> BuiltTables:
        asked.append(len(tables))
        return build_on_executors(jobs, tables)

    patched(monkeypatch, "omnigraph.operations.index_building.build_on_executors", counted)
    patched(monkeypatch, "omnigraph.operations.index_building.SESSION_ROWS_MIN", rows_min)
    graph = new_graph(tmp_path / "graph", SCHEMA)
    data = tmp_path / "texts.jsonl"
    data.write_bytes(ndjson([_text(random.Random(1), number) for number in range(40)]))

    result = graph.load(str(data), "append", engine="spark")

    assert asked == ([1] if is_by_executors else [])
    assert result.index_commit is not None
    assert (result.pending_indexes, result.warnings) == ((), ())
    states = next(table for table in graph.index_status() if table.table_key == "node:Text")
    assert {index.coverage for index in states.indexes} == {"indexed"}


@pytest.mark.case("engine", 904)
def test_without_spark_auto_builds_here_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: object) -> None:
        raise SparkUnavailable("there is no Java")

    patched(monkeypatch, "omnigraph.operations.index_building.start_spark", refused)
    graph = graph_at(tmp_path / "graph")
    head = graph.commits()[0].graph_commit_id
    with pytest.raises(BadRequest, match="engine"):
        graph.ensure_indices(engine="cluster")  # type: ignore[arg-type]
    with pytest.raises(SparkUnavailable, match="no Java"):
        graph.ensure_indices(engine="spark")
    assert graph.commits()[0].graph_commit_id == head
    assert list((tmp_path / "graph" / "__recovery").glob("*.json")) == []

    monkeypatch.setenv(INDEX_SPARK_ROWS, "1")
    result = graph.ensure_indices()

    assert result.commit is not None
    assert "indexes are built in this process: there is no Java" in caplog.text


@pytest.mark.slow
@pytest.mark.case("engine", 905)
def test_a_part_that_fails_fails_the_build_and_the_next_one_succeeds(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_finely(monkeypatch)
    root = tmp_path / "graph"
    graph = graph_at(root)
    head = graph.commits()[0].graph_commit_id
    handle = internals(graph).parts.open(graph.snapshot().entry("node:Text"))
    place = handle.address.local_path
    assert place is not None
    lost = max((place / "data").glob("*.lance"), key=lambda file: file.stat().st_mtime_ns)
    kept = lost.read_bytes()
    lost.unlink()

    with pytest.raises(StorageError):
        graph.ensure_indices(engine="spark")

    assert graph.commits()[0].graph_commit_id == head
    assert list((root / "__recovery").glob("*.json")) == []
    lost.write_bytes(kept)
    assert graph.ensure_indices(engine="spark").commit is not None
    assert graph.verify(deep=True).is_whole


@pytest.mark.slow
@pytest.mark.case("engine", 911)
def test_a_branch_that_goes_before_its_tables_are_opened_is_not_found(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "graph"
    graph = graph_at(root)
    graph.mutate('query no() { delete Text where name = "t5" }', branch="june")

    def after_deletion(jobs: Jobs, tables: Sequence[DueTable]) -> BuiltTables:
        with omnigraph.open(root) as other:
            other.delete_branch("june")
        return build_on_executors(jobs, tables)

    patched(monkeypatch, "omnigraph.operations.index_building.build_on_executors", after_deletion)

    with pytest.raises(BranchNotFound):
        graph.rebuild_index("Text", "words", branch="june", engine="spark")


@pytest.mark.fuzz
@pytest.mark.case("engine", 902)
def test_three_hundred_graphs_are_indexed_alike(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_finely(monkeypatch)
    for seed in range(300):
        seen = []
        for engine in ("local", "spark"):
            with graph_at(tmp_path / f"{engine}-{seed}", seed) as graph:
                graph.ensure_indices(engine=engine)
                seen.append(answers(graph))
        assert seen[0] == seen[1], f"seed {seed}"
