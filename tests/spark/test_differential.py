"""The same inputs through both engines: equal graphs, equal counts, equal violations.

`BULK_SEED` repeats one case of the quick test; the fuzz test goes on from there.
"""

import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph.core.errors import KeyConflict, OmnigraphError, ValidationError
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.graph.opening import open as open_graph
from omnigraph.operations.engine import Engine
from omnigraph.operations.settings import KEY_ROWS, MERGE_BYTES
from tests.spark.case_files import write_case
from tests.spark.cases import BASE, SCHEMA, Case, random_case
from tests.support.engine import ndjson
from tests.support.seam import patched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK, JOINED, FUZZ = 30, 8, 1_000
JOINED_QUICK = {1, 18, 19, 28, 29}  # of the quick cases, some that take seconds by joins and not minutes
Outcome = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """An engine, with settings that say where keys are compared and rows merged."""

    name: str
    engine: Engine
    settings: tuple[tuple[str, str], ...] = ()


LOCAL = Way("local", "local")
DRIVER = Way("spark, keys in the driver", "spark")
# One row is the least that a setting can say: from two rows on, keys are joined and rows merged by tasks.
TASKS = Way("spark, keys in tasks", "spark", ((KEY_ROWS, "1"), (MERGE_BYTES, "1")))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with a few rows in every table; each way gets a copy."""
    path = tmp_path_factory.mktemp("base") / "graph"
    with init(path, SCHEMA, durability="process") as graph:
        graph.load(ndjson(BASE), "append", engine="local", index=False)
    return path


@pytest.mark.case("engine", 301)
@pytest.mark.case("engine", 357)
@pytest.mark.parametrize(
    "seed", [int(os.environ["BULK_SEED"])] if "BULK_SEED" in os.environ else range(QUICK)
)
def test_both_engines_do_the_same(spark: "SparkSession", base: Path, tmp_path: Path, seed: int) -> None:
    ways = (LOCAL, DRIVER, TASKS) if seed in JOINED_QUICK else (LOCAL, DRIVER)

    assert_equal(random_case(seed), base, tmp_path, ways)


@pytest.mark.slow  # tens of joins each, which Spark plans and compiles one by one
@pytest.mark.parametrize("seed", range(QUICK, QUICK + JOINED))
def test_keys_joined_by_tasks_do_the_same(
    spark: "SparkSession", base: Path, tmp_path: Path, seed: int
) -> None:
    assert_equal(random_case(seed), base, tmp_path, (LOCAL, TASKS))


@pytest.mark.fuzz
def test_both_engines_do_the_same_for_long(spark: "SparkSession", base: Path) -> None:
    first = int(os.environ.get("BULK_SEED", random.randrange(10**9)))
    count = int(os.environ.get("BULK_CASES", FUZZ))
    print(f"BULK_SEED={first}")  # noqa: T201 - how to repeat the run
    done: dict[object, int] = {}
    for seed in range(first, first + count):
        # A load whose keys are joined by tasks takes as long as ten others.
        ways = (LOCAL, TASKS) if seed % 20 == 0 else (LOCAL, DRIVER)
        with tempfile.TemporaryDirectory() as folder:
            kind = assert_equal(random_case(seed), base, Path(folder), ways)[0]
        done[kind] = done.get(kind, 0) + 1
    print(f"{count} loads: {done}")  # noqa: T201
    assert min(done["loaded"], done["invalid"]) > count // 10


def assert_equal(case: Case, base: Path, folder: Path, ways: Sequence[Way]) -> Outcome:
    """Load a case in some ways, compare all that a user sees of it, and return that."""
    with open_graph(base, mode="ro") as graph:
        data, mapping = write_case(case, folder, graph.catalog)
    seen: list[tuple[Outcome, dict[str, list[str]]]] = []
    for number, way in enumerate(ways):
        # A place of its own: what workers remember of a place would be that of another way's graph.
        graph_path = folder / f"graph{number}.omni"
        shutil.copytree(base, graph_path)
        with (
            pytest.MonkeyPatch.context() as patch,
            open_graph(graph_path, durability="process", upkeep=False) as graph,
        ):
            patched(patch, "omnigraph.operations.load.spark.SLICE_BYTES_MIN", case.slice_bytes)
            patched(patch, "omnigraph.operations.load.spark.SLICE_BYTES_MAX", case.slice_bytes)
            for name, value in way.settings:
                patch.setenv(name, value)
            before = tree(graph_path)
            found = outcome(graph, case, data, mapping, way.engine, folder / "rejects")
            seen.append((found, content(graph)))
            if found[0] != "loaded" or case.is_dry_run:
                assert tree(graph_path) == before, f"BULK_SEED={case.seed}: {way.name} left files behind"
        shutil.rmtree(graph_path)
    for way, other in zip(ways[1:], seen[1:], strict=True):
        assert other == seen[0], f"BULK_SEED={case.seed}: {way.name} is not as {ways[0].name}"
    return seen[0][0]


def outcome(
    graph: Graph, case: Case, data: Sequence[Any], mapping: Path | None, engine: Engine, rejects: Path
) -> Outcome:
    """Load a case and return all that a user is told."""
    rejects.unlink(missing_ok=True)
    told: Outcome
    try:
        result = graph.load(
            data,
            case.mode,
            mapping=mapping,
            engine=engine,
            index=False,
            dry_run=case.is_dry_run,
            on_error=case.on_error,
            rejects=rejects if case.has_rejects else None,
        )
        told = "loaded", result.tables, result.rejected_rows, shown(result.violations)
    except ValidationError as error:
        told = "invalid", str(error), error.kind, error.file, error.line, error.total, shown(error.violations)
    except KeyConflict as error:
        told = "conflict", str(error), error.table_key, error.row_id
    except OmnigraphError as error:
        told = "refused", error.code, str(error)
    written = rejects.read_text().splitlines() if rejects.exists() else []
    return *told, [{**json.loads(line), "row_id": None} for line in written]


def shown(violations: Iterable[Any]) -> list[tuple[object, ...]]:
    """Return violations without ids that were made up."""
    return [(v.file, v.line, v.kind, v.constraint, v.table_key, v.message) for v in violations]


def content(graph: Graph) -> dict[str, list[str]]:
    """Return all rows; ids that were made up are left out."""
    return {name: rows_of(graph.table(name)) for name in [*graph.catalog.nodes, *graph.catalog.edges]}


def rows_of(table: pa.Table) -> list[str]:
    def row_text(row: dict[str, Any]) -> str:
        is_made = len(row["id"]) == 26 and row["id"].startswith("01")
        return repr({**row, "id": None} if is_made else row)

    return sorted(row_text(row) for row in table.to_pylist())


def tree(folder: Path) -> list[str]:
    """Return everything below a folder, but for empty `data` folders of tables.

    The first write to a table makes that folder, for good: another writer may be about to write into it.
    """
    return sorted(
        str(path)
        for path in folder.rglob("*")
        if path.name != "data" or path.is_file() or any(path.iterdir())
    )
