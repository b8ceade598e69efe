"""Upserting written rows into a table on executors: rewritten fragments, deletions, and row ids that stay.

M1  Of the rows with one id, the last in the order of the input is kept.
M2  A written row carries the row id of the committed row with its id, exactly when that one is deleted.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window, functions

from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.load.key_frames import committed_frame
from omnigraph.bulk.load.quick import ROW_ADDRESS, ROW_ID, KeyPiece
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.staging.fragments import Replaced
from omnigraph.validate.questions import FILE, ID, LINE

if TYPE_CHECKING:
    from omnigraph.storage.files.sums import FileSum
    from omnigraph.storage.tables.fragments import TaskTable, WrittenFragment

FRAGMENT, OFFSET = "@fragment", "@offset"


@dataclass(frozen=True, slots=True)
class UpsertedRows:
    """The rows of an upsert as new fragments, and the committed rows that they replace."""

    fragments: "tuple[WrittenFragment, ...]"
    replaced: Replaced


def merge_on_executors(
    jobs: Jobs,
    type_: NodeType | EdgeType,
    table: "TaskTable",
    written: "tuple[WrittenFragment, ...]",
    committed: Sequence[KeyPiece],
) -> UpsertedRows:
    """Rewrite written fragments so that they replace committed rows of the same ids (M1, M2).

    Raises:
        SparkUnavailable: a job failed.
    """
    matched = _matched(jobs, type_, table, written, committed)
    fragments = _rewritten(jobs, table, written, matched)
    return UpsertedRows(fragments, _deleted(jobs, table, matched))


def _matched(
    jobs: Jobs,
    type_: NodeType | EdgeType,
    table: "TaskTable",
    written: "tuple[WrittenFragment, ...]",
    committed: Sequence[KeyPiece],
) -> DataFrame:
    """Return, for each row that is kept, where it is, and the row that it replaces, if any."""

    def keys(item: "tuple[int, WrittenFragment]") -> Iterator[pa.RecordBatch]:
        from omnigraph.storage.tables.fragments import read_written

        number, fragment = item
        start = 0
        for rows, places in read_written(table.address, fragment, [ID]):
            assert places is not None, "a load writes places"
            count = rows.num_rows
            columns = [
                rows[ID].combine_chunks(),
                *(places[name].combine_chunks() for name in (FILE, LINE)),
                pa.array(np.full(count, number, dtype=np.int32)),
                pa.array(np.arange(start, start + count, dtype=np.int64)),
            ]
            start += count
            yield pa.RecordBatch.from_arrays(columns, names=[ID, FILE, LINE, FRAGMENT, OFFSET])

    schema = f"{ID} string, `{FILE}` int, `{LINE}` long, `{FRAGMENT}` int, `{OFFSET}` long"
    rows = jobs.over(list(enumerate(written)), keys, schema)
    last = functions.row_number().over(
        Window.partitionBy(ID).orderBy(functions.col(FILE).desc(), functions.col(LINE).desc())
    )
    kept = rows.withColumn("@last", last).where(functions.col("@last") == 1).select(ID, FRAGMENT, OFFSET)
    old = committed_frame(jobs, type_, committed, [], with_rows=True)
    return kept.join(old, [ID], "left")


def _rewritten(
    jobs: Jobs, table: "TaskTable", written: "tuple[WrittenFragment, ...]", matched: DataFrame
) -> "tuple[WrittenFragment, ...]":
    """Write the kept rows again, those that replace others first (M2)."""
    from omnigraph.storage.tables.fragments import WrittenFragment

    def rewrite(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:  # type: ignore[type-arg]
        from omnigraph.storage.tables.fragments import rewrite_written

        number: int = key[0].as_py()
        with table.writing():
            made = rewrite_written(
                table,
                written[number],
                offsets=rows[OFFSET].to_numpy(),
                row_ids=cast("pa.Int64Array", rows[ROW_ID].combine_chunks()),
            )
        return pa.table(
            {
                "description": pa.array([item.description for item in made], pa.string()),
                "rows": pa.array([item.rows for item in made], pa.int64()),
                "size": pa.array([item.size for item in made], pa.int64()),
                "sums": pa.array([_sum_text(item.sums) for item in made], pa.string()),
            }
        )

    frame = matched.select(FRAGMENT, OFFSET, ROW_ID)
    schema = "description string, rows long, size long, sums string"
    made: list[Any] = jobs.collect(frame.groupBy(FRAGMENT).applyInArrow(rewrite, schema)).to_pylist()
    return tuple(
        WrittenFragment(row["description"], row["rows"], row["size"], sums=_sums_of(row["sums"]))
        for row in made
    )


def _deleted(jobs: Jobs, table: "TaskTable", matched: DataFrame) -> Replaced:
    """Write the deletions of the replaced rows, one committed fragment in one task."""

    def delete(rows: pa.Table) -> pa.Table:
        from omnigraph.storage.tables.fragments import delete_committed

        addresses: list[Any] = rows[ROW_ADDRESS].to_pylist()
        with table.writing():
            removed, updated, sums = delete_committed(table, addresses)
        made = json.dumps({"removed": removed, "updated": updated, "sums": _sum_text(sums)})
        return pa.table({"made": pa.array([made]), "rows": pa.array([rows.num_rows], pa.int64())})

    found = matched.where(functions.col(ROW_ADDRESS).isNotNull()).select(
        functions.shiftright(ROW_ADDRESS, 32).alias(FRAGMENT), ROW_ADDRESS
    )
    made = jobs.collect(found.groupBy(FRAGMENT).applyInArrow(delete, "made string, rows long"))
    answers = [json.loads(str(text)) for text in made["made"].to_pylist()]
    return Replaced(
        tuple(number for answer in answers for number in answer["removed"]),
        tuple(text for answer in answers for text in answer["updated"]),
        sum(int(rows or 0) for rows in made["rows"].to_pylist()),
        tuple(item for answer in answers for item in _sums_of(answer["sums"])),
    )


def _sum_text(sums: "Sequence[FileSum]") -> str:
    """Return sums as a text that a column can hold."""
    return "\n".join(item.to_text() for item in sums)


def _sums_of(text: str) -> "tuple[FileSum, ...]":
    from omnigraph.storage.files.sums import FileSum

    return tuple(FileSum.of_text(line) for line in text.splitlines())
