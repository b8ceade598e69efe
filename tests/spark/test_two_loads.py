"""Two loads on Spark at once: one winner for a table, and both where they do not meet."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.bulk.connect.progress import ProgressEvent, Stage
from omnigraph.core.errors import ExpectedVersionMismatch, OmnigraphError
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.graph.opening import open as open_graph
from omnigraph.operations.load.load import LoadOptions, LoadResult, RecordInput, load
from tests.support.engine import PEOPLE, ndjson, node
from tests.support.seam import internals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 100.0  # for a load that never comes


def load_together(root: Path, *types: str, retry: float = 0.0) -> list[LoadResult | OmnigraphError]:
    """Load one row into each type, from two handles; nobody commits before both have written."""
    both = threading.Barrier(len(types))

    def run(number: int, type_name: str) -> LoadResult | OmnigraphError:
        waits = iter([both.wait])  # a second attempt has nobody to wait for

        def wait_before_commit(event: ProgressEvent) -> None:
            if event.stage is Stage.COMMIT and not event.is_done and not event.tasks_total:
                for wait in waits:
                    wait(PATIENCE_S)

        data = RecordInput(ndjson([node(type_name, name=f"n{number}")]))
        options = LoadOptions("append", engine="spark", progress=wait_before_commit)
        with open_graph(root, durability="process") as graph:
            try:
                return load(internals(graph), [data], options, index=False, retry=retry)
            except OmnigraphError as error:
                return error

    with ThreadPoolExecutor(len(types)) as pool:
        return list(pool.map(run, range(len(types)), types))


def files_of(graph: Graph) -> list[Path]:
    return sorted(path for path in Path(graph.uri).glob("nodes/*/data/*"))


def test_two_loads_of_one_table_have_one_winner(spark: "SparkSession", tmp_path: Path) -> None:
    with init(tmp_path / "graph", PEOPLE, durability="process") as graph:
        outcomes = load_together(tmp_path / "graph", "Person", "Person")

        (lost,) = [outcome for outcome in outcomes if isinstance(outcome, OmnigraphError)]
        assert isinstance(lost, ExpectedVersionMismatch)
        (won,) = [outcome for outcome in outcomes if isinstance(outcome, LoadResult)]
        assert won.commit is not None
        winner = outcomes.index(won)
        assert graph.table("Person")["name"].to_pylist() == [f"n{winner}"]
        assert len(files_of(graph)) == 1, "what the loser wrote is gone"
        assert len(graph.commits()) == 2


def test_a_load_may_be_prepared_again(spark: "SparkSession", tmp_path: Path) -> None:
    with init(tmp_path / "graph", PEOPLE, durability="process") as graph:
        outcomes = load_together(tmp_path / "graph", "Person", "Person", retry=60)

        assert [type(outcome) for outcome in outcomes] == [LoadResult, LoadResult]
        assert graph.table("Person")["name"].to_pylist() == ["n0", "n1"]
        assert len(files_of(graph)) == 2, "what the first attempt wrote is gone"


def test_two_loads_of_different_tables_both_land(spark: "SparkSession", tmp_path: Path) -> None:
    with init(tmp_path / "graph", PEOPLE, durability="process") as graph:
        outcomes = load_together(tmp_path / "graph", "Person", "Company")

        assert [type(outcome) for outcome in outcomes] == [LoadResult, LoadResult]
        assert graph.table("Person").num_rows == graph.table("Company").num_rows == 1
        assert len(graph.commits()) == 3
        assert not [*tmp_path.glob("graph/__spool_*"), *tmp_path.glob("graph/__executor_probe_*")]
