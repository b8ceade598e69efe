"""A merge on Spark, on both sides of the setting for it, and the ceilings of a write."""

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph.core.errors import ResourceLimit
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.operations.engine import Engine
from omnigraph.operations.load.load import MODES, LoadMode
from omnigraph.operations.settings import KEYED_MAX_BYTES, KEYED_MAX_ROWS, MERGE_BYTES
from tests.support.engine import PEOPLE, edge, ndjson, node
from tests.support.seam import internals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HIDDEN = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def people(*numbers: int, **data: object) -> bytes:
    return ndjson([node("Person", name=f"p{number:02d}", **data) for number in numbers])


def fragments(graph: Graph, table_key: str) -> list[list[dict[str, Any]]]:
    """Return the rows of each fragment of a table, with what the storage keeps of them."""
    entry = graph.snapshot().entry(table_key)
    parts = internals(graph).parts
    dataset = parts.open(entry)._dataset
    columns = [*dataset.schema.names, *HIDDEN]
    return [part.to_table(columns=columns).to_pylist() for part in dataset.get_fragments()]


def files(folder: Path) -> list[str]:
    """Return every file; a folder that a write made for its files may stay."""
    return sorted(str(path) for path in folder.rglob("*") if path.is_file())


def merged(folder: Path, engine: Engine) -> tuple[Graph, list[list[dict[str, Any]]]]:
    """Merge into people of two fragments: some are replaced, some are new, and one edge stands twice."""
    graph = init(folder, PEOPLE, durability="process")
    graph.load(people(*range(40)), "append", engine="local", index=False)
    graph.load(people(*range(40, 60)), "append", engine="local", index=False)
    graph.load(ndjson([edge("Knows", "p01", "p02", id="e")]), "append", engine="local", index=False)
    edges = ndjson([edge("Knows", "p01", "p79", id="e"), edge("Knows", "p03", "p79", id="e")])

    result = graph.load(people(*range(30, 80), age=7) + edges, "merge", engine=engine, index=False)

    assert result.tables == (("edge:Knows", 1), ("node:Person", 50))
    assert [row["src"] for row in graph.table("Knows").to_pylist()] == ["p03"]
    return graph, fragments(graph, "node:Person")


@pytest.mark.case("engine", 122)
@pytest.mark.case("engine", 305)
def test_rows_keep_their_ids_on_either_side_of_the_setting(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, expected = merged(tmp_path / "local", "local")
    monkeypatch.setenv(MERGE_BYTES, "1000000")
    _, in_process = merged(tmp_path / "below", "spark")
    monkeypatch.setenv(MERGE_BYTES, "100")
    _, by_tasks = merged(tmp_path / "above", "spark")

    # One process writes replaced and new rows together; tasks write them apart.
    assert [len(part) for part in in_process] == [len(part) for part in expected] == [30, 50]
    assert [len(part) for part in by_tasks] == [30, 30, 20]
    for found in (in_process, by_tasks):
        rows = [row for part in found for row in part]
        assert len({row["_rowid"] for row in rows}) == len(rows) == 80
        assert facts(rows) == facts([row for part in expected for row in part])


def facts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows by id; which fresh row id a new row has is nobody's business."""
    return sorted(
        ({**row, "_rowid": row["_rowid"] if row["id"] < "p60" else None} for row in rows),
        key=lambda row: str(row["id"]),
    )


@pytest.mark.case("engine", 450)
@pytest.mark.case("engine", 451)
def test_many_replaced_rows_keep_their_ids_in_files_of_the_tasks(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MERGE_BYTES, "100")
    chosen = Random(1).sample(range(4_000), 400)
    found = []
    engines: tuple[Engine, ...] = ("local", "spark")
    for engine in engines:
        graph = init(tmp_path / engine, PEOPLE, durability="process")
        graph.load(people(*range(2_500)), "append", engine="local", index=False)
        graph.load(people(*range(2_500, 4_000)), "append", engine="local", index=False)

        graph.load(people(*chosen, 9_999, age=7), "merge", engine=engine, index=False)

        parts = internals(graph).parts
        dataset = parts.open(graph.snapshot().entry("node:Person"))._dataset
        replacing = [
            part for part in dataset.get_fragments() if part.metadata.to_json()["row_id_meta"] == "Column"
        ]
        row_ids = [part.to_table(columns=["_rowid"])["_rowid"].to_pylist() for part in replacing]
        assert row_ids == [sorted(chosen)]
        named = {file.path for part in dataset.get_fragments() for file in part.metadata.files}
        assert named == {path.name for path in Path(dataset.uri, "data").iterdir()}, "and nothing else"
        assert graph.verify().is_whole
        rows = [row for part in fragments(graph, "node:Person") for row in part]
        found.append(sorted(rows, key=lambda row: str(row["id"])))
    assert found[0] == found[1]


@pytest.mark.case("engine", 122)
def test_an_overwrite_on_executors_equals_one_in_process(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row for row: contents and versions of both tables that the load names; others stay."""
    monkeypatch.setenv(MERGE_BYTES, "100")
    found = []
    engines: tuple[Engine, ...] = ("local", "spark")
    for engine in engines:
        graph = init(tmp_path / engine, PEOPLE, durability="process")
        graph.load(people(*range(60)) + ndjson([node("Company", name="acme")]), "append", index=False)
        graph.load(ndjson([edge("Knows", "p01", "p02", id="e")]), "append", index=False)
        edges = ndjson([edge("Knows", "p30", f"p{number}", id=f"e{number}") for number in range(31, 40)])

        result = graph.load(people(*range(30, 80), age=7) + edges, "overwrite", engine=engine, index=False)

        assert result.tables == (("edge:Knows", 9), ("node:Person", 50))
        keys = ("node:Person", "edge:Knows", "node:Company")
        rows = {key: [row for part in fragments(graph, key) for row in part] for key in keys}
        assert all(len({row["_rowid"] for row in part}) == len(part) for part in rows.values())
        found.append(
            {key: sorted(({**row, "_rowid": None} for row in part), key=str) for key, part in rows.items()}
        )
    assert found[0] == found[1]
    assert [len(rows) for rows in found[1].values()] == [50, 9, 1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("setting", "what"), [(KEYED_MAX_ROWS, "entities"), (KEYED_MAX_BYTES, "bytes")])
def test_a_write_above_a_ceiling_is_refused_by_both_engines(
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: LoadMode,
    setting: str,
    what: str,
) -> None:
    graph = init(tmp_path / "graph", PEOPLE, durability="process")
    before = files(tmp_path)
    monkeypatch.setenv(setting, "9")

    for engine in ("local", "spark"):
        with pytest.raises(ResourceLimit, match=f"keyed write {what} for node:Person") as raised:
            graph.load(people(*range(10)), mode, engine=engine)
        assert raised.value.limit == 9
        assert files(tmp_path) == before


def test_a_ceiling_counts_each_id_of_a_merge_once(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = init(tmp_path / "graph", PEOPLE, durability="process")
    graph.load(people(1, 2), "append", engine="local", index=False)
    monkeypatch.setenv(KEYED_MAX_ROWS, "2")
    repeated = [edge("Knows", "p01", "p02", id=f"e{number % 2}") for number in range(6)]

    for limit in ("1000000", "100"):
        monkeypatch.setenv(MERGE_BYTES, limit)
        result = graph.load(ndjson(repeated), "merge", engine="spark", index=False)

        assert result.tables == (("edge:Knows", 2),)


@pytest.mark.case("engine", 416)
@pytest.mark.slow
def test_what_executors_write_is_recorded_with_its_checksums(
    tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark
    monkeypatch.setenv(MERGE_BYTES, "1")  # rewritten and deleted on executors
    with init(tmp_path / "graph", PEOPLE, durability="full") as graph:
        graph.load(people(*range(40)), "append", engine="spark", index=False)
        graph.load(people(*range(30, 50), age=7), "merge", engine="spark", index=False)

        report = graph.verify()

    tables = {
        file.path: file.status.value for file in report.files if not file.path.startswith("__manifest/")
    }
    assert report.is_whole
    assert set(tables.values()) == {"ok"}
    assert {path.split("/")[2] for path in tables} >= {"data", "_deletions", "_versions"}
