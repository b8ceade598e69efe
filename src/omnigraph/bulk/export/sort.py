"""Rows in the order of their ids, however many: sorted runs on disk, merged.

Memory is bounded by one run, and by one block of each run while they are merged.
"""

import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

RUN_BYTES = 64 * 1024 * 1024  # sorted in memory; a smaller table never touches the disk
BLOCK_BYTES = 256 * 1024  # of each run, while runs are merged
_ROWS = 8_192


def sorted_by_id(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, run_bytes: int = RUN_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches by id."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-export-") as folder:
        runs: list[Path] = []
        pending: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            pending.append(batch)
            size += batch.nbytes
            if size >= run_bytes:
                runs.append(_write_run(_sorted(pending, schema), Path(folder) / str(len(runs))))
                pending, size = [], 0
        last = _sorted(pending, schema)
        if not runs:
            yield from last.to_batches(max_chunksize=_ROWS)
            return
        runs.append(_write_run(last, Path(folder) / str(len(runs))))
        del pending, last
        yield from _merged([_SortedRun(path) for path in runs])


def _sorted(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(batches, schema).sort_by("id")


def _write_run(table: pa.Table, path: Path) -> Path:
    rows = max(1, table.num_rows * BLOCK_BYTES // max(1, table.nbytes))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=rows)
    return path


class _SortedRun:
    """A sorted run, of which one block is in memory."""

    def __init__(self, path: Path) -> None:
        self._reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self._next = 0
        self.block: pa.RecordBatch | None = None
        self.advance()

    @property
    def has_more(self) -> bool:
        return self._next < self._reader.num_record_batches

    def advance(self) -> None:
        """Go to the next block that has rows, or to the end."""
        self.block = None
        while self.block is None and self.has_more:
            block = self._reader.get_batch(self._next)
            self.block = block if block.num_rows else None
            self._next += 1

    def take(self, bound: str | None) -> pa.RecordBatch | None:
        """Take the rows of the block up to an id, or all of them; if none are left, go to the next."""
        block = self.block
        assert block is not None, "a run at its end is put away"
        count = block.num_rows if bound is None else _place(block, bound)
        taken = block.slice(0, count) if count else None
        if count == block.num_rows:
            self.advance()
        elif count:
            self.block = block.slice(count)
        return taken


def _merged(runs: list[_SortedRun]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of runs by id: all up to the least id at which a block ends, and so on."""
    runs = [run for run in runs if run.block is not None]
    while runs:
        bound = min((_last(run) for run in runs if run.has_more), default=None)
        taken = [rows for run in runs if (rows := run.take(bound)) is not None]
        yield from pa.Table.from_batches(taken).sort_by("id").to_batches(max_chunksize=_ROWS)
        runs = [run for run in runs if run.block is not None]


def _last(run: _SortedRun) -> str:
    assert run.block is not None
    return str(run.block.column("id")[-1])


def _place(block: pa.RecordBatch, bound: str) -> int:
    """Return how many rows of a sorted block have an id up to a bound."""
    ids = block.column("id")
    return bisect_right(range(len(ids)), bound, key=lambda row: str(ids[row]))
