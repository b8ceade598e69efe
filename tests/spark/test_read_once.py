"""A load on Spark reads its input once, whatever it is asked; small files share tasks and fragments."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph.bulk.connect.progress import ProgressEvent, Stage
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.operations.load.model import LoadMode, LoadResult
from omnigraph.operations.settings import KEY_ROWS, MERGE_BYTES
from tests.support.engine import PEOPLE, edge, ndjson, node
from tests.support.seam import internals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITTED = [node("Person", name="p0", age=1), node("Person", name="p1", age=2), edge("Knows", "p0", "p1")]
INPUT = [
    *(node("Person", name=f"p{number}") for number in range(1, 40)),
    node("Person", name="p7", age=3),
    node("Person", name="old", age="x"),  # fails the value checks, and the edges to it follow
    edge("Knows", "p3", "old"),
    edge("Knows", "p3", "nobody"),
    *(edge("Knows", f"p{number}", f"p{number + 1}") for number in range(1, 38)),
]


def gone_once_read(path: Path) -> Callable[[ProgressEvent], None]:
    """Return a listener that removes the input as soon as it was read."""

    def listen(event: ProgressEvent) -> None:
        if event.stage is Stage.VALUES and event.is_done:
            path.unlink()

    return listen


def graph_with(folder: Path, records: list[dict[str, object]]) -> Graph:
    graph = init(folder, PEOPLE, durability="process")
    graph.load(ndjson(records), "append", engine="local", index=False)
    return graph


def contents(graph: Graph) -> dict[str, list[dict[str, object]]]:
    people = graph.table("Person").sort_by("id").to_pylist()
    knows = graph.table("Knows").select(["src", "dst"]).to_pylist()
    return {"Person": people, "Knows": sorted(knows, key=str)}


def told(result: LoadResult) -> object:
    found = [(item.file, item.line, item.message) for item in result.violations]
    return result.tables, result.rejected_rows, found, result.cleared


def rejected(line: str) -> dict[str, object]:
    """Return an entry of a rejects file without the name of the file and the ids that were made for edges."""
    entry: dict[str, object] = json.loads(line)
    is_made = entry["table_key"] == "edge:Knows"
    return {**entry, "file": None, "row_id": None if is_made else entry["row_id"]}


@pytest.mark.case("engine", 834)
@pytest.mark.parametrize(
    "key_rows", [pytest.param("1", id="asked of Spark"), pytest.param("1000", id="here")]
)
@pytest.mark.parametrize("mode", ["append", "merge"])
@pytest.mark.parametrize("is_dry_run", [True, False])
def test_an_input_that_is_gone_once_read_is_left_out_of_as_in_process(
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: LoadMode,
    is_dry_run: bool,
    key_rows: str,
) -> None:
    monkeypatch.setenv(KEY_ROWS, key_rows)
    monkeypatch.setenv(MERGE_BYTES, "0")  # an upsert goes through fragments as well
    answers = []
    for engine in ("local", "spark"):
        graph = graph_with(tmp_path / engine, COMMITTED)
        before = contents(graph)
        path = tmp_path / f"{engine}.jsonl"
        path.write_bytes(ndjson(INPUT))
        rejects = tmp_path / f"{engine}-rejects.jsonl"

        result = graph.load(
            str(path),
            mode,
            engine=engine,
            index=False,
            dry_run=is_dry_run,
            on_error="skip",
            rejects=rejects,
            progress=gone_once_read(path) if engine == "spark" else lambda _event: None,
        )

        assert path.exists() == (engine == "local")
        after = contents(graph)
        assert (after == before) == is_dry_run
        answers.append((told(result), after, list(map(rejected, rejects.read_text().splitlines()))))
    assert answers[0] == answers[1]
    assert result.rejected_rows > 2


@pytest.mark.case("engine", 834)
def test_rows_that_are_left_out_are_in_no_fragment(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_ROWS, "1")
    graph = graph_with(tmp_path / "graph", COMMITTED)
    path = tmp_path / "input.jsonl"
    path.write_bytes(ndjson(INPUT))

    graph.load(str(path), "append", engine="spark", index=False, on_error="skip")

    entries = graph.snapshot().entries.values()
    named = set()
    for entry in entries:
        dataset = internals(graph).parts.open(entry)._dataset
        named |= {file.path for item in dataset.get_fragments() for file in item.metadata.files}
    data = {path.name for path in Path(graph.uri).glob("*/*/data/*")}
    assert data == named
    assert "nobody" not in graph.table("Knows")["dst"].to_pylist()
    assert not list(Path(graph.uri).glob("__spool_*"))


@pytest.mark.case("engine", 835)
def test_many_small_files_become_few_fragments(spark: "SparkSession", tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(120):
        records = [node("Person", name=f"p{number}"), edge("Knows", f"p{number}", f"p{(number + 1) % 120}")]
        (folder / f"{number:03}.jsonl").write_bytes(ndjson(records))
    wrong = folder / "077.jsonl"
    wrong.write_bytes(wrong.read_bytes() + ndjson([node("Person", name="old", age="x")]))
    graph = init(tmp_path / "graph", PEOPLE, durability="process")

    result = graph.load(str(folder), "append", engine="spark", index=False, on_error="skip")

    assert [(item.file_name, item.line) for item in result.violations] == [(str(wrong), 3)]
    assert (graph.table("Person").num_rows, graph.table("Knows").num_rows) == (120, 120)
    for key in ("node:Person", "edge:Knows"):
        dataset = internals(graph).parts.open(graph.snapshot().entry(key))._dataset
        assert len(dataset.get_fragments()) == 1
