"""Export on Spark: each task writes one file from some fragments of one table, whole or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.export.files import ExportFormat, write_rows
from omnigraph.bulk.export.sort import sorted_by_id
from omnigraph.bulk.files import file_exists, is_object, whole_file
from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.errors import SparkUnavailable

if TYPE_CHECKING:
    from omnigraph.storage.tables.pinned import PinnedTable


@dataclass(frozen=True, slots=True)
class ExportTask:
    """One file to write: which rows, and where."""

    table: "PinnedTable"
    type: NodeType | EdgeType
    fragments: tuple[int, ...]
    format: ExportFormat
    path: str


def run_export(jobs: Jobs, tasks: Sequence[ExportTask]) -> list[int]:
    """Write the files of all tasks and return the rows of each.

    A task that runs twice writes the same file twice, and the last one stays.

    Raises:
        BadRequest: a file cannot be written.
        SparkUnavailable: a job failed, or an executor wrote to a disk that this process does not see.
    """
    rows = jobs.each(tasks, write_task) if tasks else []
    unseen = [task.path for task in tasks if not file_exists(task.path)]
    if unseen:
        raise SparkUnavailable(f"an executor wrote {unseen[0]}, but it is not on a shared disk")
    return rows


def write_task(task: ExportTask) -> int:
    """Write one file and return how many rows it has.

    Raises:
        StorageError: the table cannot be read.
        BadRequest: the file cannot be written.
    """
    from omnigraph.storage.tables.pinned import read_pieces  # late: a forked worker must not inherit lance

    schema = arrow_schema(task.type)
    batches = read_pieces(task.table.open(), task.fragments, columns=schema.names)
    if not is_object(task.path):
        Path(task.path).parent.mkdir(parents=True, exist_ok=True)
    with whole_file(task.path) as file:
        return write_rows(sorted_by_id(batches, schema), task.type, task.format, file)
