"""The same inputs through both engines: equal graphs, equal counts, equal violations."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa
import pytest

from omnigraph.core.errors import KeyConflict, ValidationError
from omnigraph.graph.graph import Graph, init
from omnigraph.graph.graph import open as open_graph
from omnigraph.operations.load import MODES, LoadMode, LoadResult
from omnigraph.operations.load_model import Engine, LoadKeywords
from tests.bulk.inputs import SCHEMA, Inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Outcome = tuple[object, ...]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with a few rows in every table; each engine gets a copy."""
    folder = tmp_path_factory.mktemp("base")
    inputs = Inputs(1, faults=0.3)
    with init(folder / "graph", SCHEMA, durability="process") as graph:
        graph.load(inputs.files(folder, 1, 300), "append", engine="local", on_error="skip")
    return folder / "graph"


def outcome(graph: Graph, files: list[Path], mode: LoadMode, **options: Unpack[LoadKeywords]) -> Outcome:
    """Return all that a user sees of a load."""
    try:
        result: LoadResult = graph.load(files, mode, **options)
    except ValidationError as error:
        return "invalid", str(error), error.kind, error.file, error.line, error.total, seen(error.violations)
    except KeyConflict as error:
        return "conflict", str(error), error.table_key, error.row_id
    return "loaded", result.tables, result.rejected_rows, seen(result.violations)


def seen(violations: Iterable[Any]) -> list[tuple[object, ...]]:
    """Return violations without ids that were made up."""
    return [(v.file, v.line, v.kind, v.constraint, v.table_key, v.message) for v in violations]


def content(graph: Graph) -> dict[str, list[str]]:
    """Return all rows; ids that were made up are left out."""
    return {name: rows_of(graph.table(name)) for name in [*graph.catalog.nodes, *graph.catalog.edges]}


def rows_of(table: pa.Table) -> list[str]:
    def shown(row: dict[str, Any]) -> str:
        is_made = len(row["id"]) == 26 and row["id"].startswith("01")
        return repr({**row, "id": None} if is_made else row)

    return sorted(shown(row) for row in table.to_pylist())


def compare(
    base: Path, folder: Path, files: list[Path], mode: LoadMode, **options: Unpack[LoadKeywords]
) -> Outcome:
    """Load on both engines, compare, and return what both did."""
    outcomes, contents = [], []
    engines: tuple[Engine, ...] = ("local", "spark")
    for engine in engines:
        shutil.copytree(base, folder / engine)
        with open_graph(folder / engine, durability="process", upkeep=False) as graph:
            before = sorted(str(path) for path in (folder / engine).rglob("*"))
            options |= {"engine": engine, "index": False}
            outcomes.append(outcome(graph, files, mode, **options))
            contents.append(content(graph))
            if outcomes[-1][0] != "loaded":
                assert sorted(str(path) for path in (folder / engine).rglob("*")) == before
        shutil.rmtree(folder / engine)
    assert outcomes[0] == outcomes[1]
    assert contents[0] == contents[1]
    return outcomes[0]


@pytest.mark.case("engine", 301)
@pytest.mark.case("engine", 357)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(7))
def test_both_engines_do_the_same_with_faults(
    spark: "SparkSession", base: Path, tmp_path: Path, seed: int, mode: LoadMode
) -> None:
    files = Inputs(seed, faults=0.02 * seed).files(tmp_path, 1 + seed % 3, 150)

    compare(base, tmp_path, files, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(3))
def test_both_engines_leave_out_the_same_rows(
    spark: "SparkSession", base: Path, tmp_path: Path, seed: int, mode: LoadMode
) -> None:
    files = Inputs(100 + seed, faults=0.1).files(tmp_path, 2, 150)

    compare(base, tmp_path, files, mode, on_error="skip")
