"""Where indexes are built: in this process, or by the executors of Spark.

B1  Both give the same answers, and both leave one commit to be made by the caller.
B2  Where the caller leaves the choice, missing or unfit executors are a warning: this process builds instead.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from omnigraph.bulk.connect.probe import probed
from omnigraph.bulk.connect.session import settings_from
from omnigraph.bulk.indexes import BuiltTables, DueTable, IndexPlace, build_on_executors
from omnigraph.core.errors import SparkUnavailable, StorageError
from omnigraph.core.shield import delivering_behind
from omnigraph.history.fold import TableEntry
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.engine import Engine, start_spark
from omnigraph.operations.progress import Tables
from omnigraph.operations.settings import environment, index_spark_rows
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.tables.handle import SnapshotHandle, ref_path
from omnigraph.storage.tables.index_build import DueIndex, StagedIndex, build_all

SESSION_ROWS_MIN = 2_000_000  # indexed in this process before executors that are there have begun and ended


@dataclass(frozen=True, slots=True)
class IndexPlacing:
    """Where a caller wants indexes to be built; `is_beside_spark` says that a session is there anyway."""

    engine: Engine = "auto"
    master: str | None = None
    is_beside_spark: bool = False

    def is_spark(self, rows: int) -> bool:
        """Return whether executors index so many rows, counted once for each index.

        Raises:
            SparkUnavailable: the settings of Spark are malformed.
        """
        if self.engine != "auto":
            return self.engine == "spark" and rows > 0
        if self.is_beside_spark or settings_from(environment(), master=self.master).is_given:
            return rows >= SESSION_ROWS_MIN
        return rows >= index_spark_rows()


ANYWHERE = IndexPlacing()


@dataclass(frozen=True, slots=True)
class DueOnTable:
    """What is due on a table at one version."""

    entry: TableEntry
    handle: SnapshotHandle
    due: tuple[DueIndex, ...]


def build_indexes(
    graph: OpenGraph, placing: IndexPlacing, due: Sequence[DueOnTable], tables: Tables
) -> list[list[StagedIndex]]:
    """Write the files of all indexes that are due, by table.

    Raises:
        SparkUnavailable: the caller wants Spark, and there is none, or a job failed.
        StorageError: the store failed.
    """
    if placing.is_spark(sum(index.rows for table in due for index in table.due)):
        try:
            return _on_executors(graph, placing, due, tables)
        except SparkUnavailable as error:
            if placing.engine != "auto":
                raise
            graph.parts.warn(f"indexes are built in this process: {error}")  # B2
    return [_in_process(table, tables) for table in due]


def _in_process(table: DueOnTable, tables: Tables) -> list[StagedIndex]:
    with tables.at(table.entry.table_key) as advance:
        return build_all(table.handle, table.due, advance)


def _on_executors(
    graph: OpenGraph, placing: IndexPlacing, due: Sequence[DueOnTable], tables: Tables
) -> list[list[StagedIndex]]:
    parts = graph.parts
    durability = Durability.FULL if parts.syncer.is_active else Durability.PROCESS
    with delivering_behind(), ExitStack() as held:
        jobs = held.enter_context(probed(start_spark(graph, placing.master), parts.root, parts.adapter))
        for table in due:
            held.enter_context(tables.at(table.entry.table_key))
        places = [IndexPlace(parts.pinned(table.entry), parts.root.uri, durability) for table in due]
        asked = [DueTable(place, table.handle, table.due) for place, table in zip(places, due, strict=True)]
        made = build_on_executors(jobs, asked)
    _remove_used(graph, due, made)
    return made.indexes


def _remove_used(graph: OpenGraph, due: Sequence[DueOnTable], made: BuiltTables) -> None:
    """Remove parts that were put together; best effort: `cleanup` takes what stays."""
    folders = {
        graph.parts.pinned(table.entry): ref_path(table.entry.location, table.entry.pin.ref) for table in due
    }
    for table, part in made.used:
        try:
            graph.parts.adapter.delete_prefix(f"{folders[table]}/_indices/{part.uuid}")
        except StorageError as error:
            graph.parts.warn(f"a part of an index was left behind: {error}")
