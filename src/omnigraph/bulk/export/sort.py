"""Rows in the order of their ids, however many: sorted runs on disk, merged.

M1  Memory does not grow with the table: it is bounded by one run while rows come, and by one block of each of
    fewer than `RUNS_MAX` runs of each size while they go. So many runs of one size become one larger run.
M2  What is yielded is small, by its bytes and not only by its rows: whoever takes it makes more of it.
"""

import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

RUN_BYTES = 8 * 1024 * 1024  # sorted in memory, which takes it three times; a smaller table needs no disk
RUNS_MAX = 32  # of one size: the second size is 256 MiB, the third 8 GiB
BLOCK_BYTES = 256 * 1024  # of each run while runs are merged, and of what is yielded


def sorted_by_id(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, run_bytes: int = RUN_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches by id."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-export-") as folder:
        runs = _Runs(Path(folder))
        pending: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            pending.append(batch)
            size += batch.nbytes
            if size >= run_bytes:
                runs.add(_sorted(pending, schema), schema)
                pending, size = [], 0
        if runs.is_empty:
            yield from _sorted(pending, schema)
            return
        runs.add(_sorted(pending, schema), schema)
        del pending
        yield from _merged(runs.paths)


class _Runs:
    """The sorted runs of one export, by size: each level has those of as many runs of the level before."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self._levels: list[list[Path]] = []

    @property
    def is_empty(self) -> bool:
        return not self._levels

    @property
    def paths(self) -> list[Path]:
        return [path for level in self._levels for path in level]

    def add(self, blocks: Iterable[pa.RecordBatch], schema: pa.Schema, level: int = 0) -> None:
        """Write a run; if there are as many of its size as may be, make one of them (M1)."""
        path = self._folder / str(self._count)
        self._count += 1
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for block in blocks:
                writer.write_batch(block)
        if level == len(self._levels):
            self._levels.append([])
        self._levels[level].append(path)
        if len(self._levels[level]) == RUNS_MAX:
            full, self._levels[level] = self._levels[level], []
            self.add(_merged(full), schema, level + 1)
            for merged in full:
                merged.unlink()


def _sorted(batches: list[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    return _blocks(pa.Table.from_batches(batches, schema).sort_by("id"))


def _blocks(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield rows in pieces of about `BLOCK_BYTES` (M2)."""
    rows = max(1, table.num_rows * BLOCK_BYTES // max(1, table.nbytes))
    yield from table.to_batches(max_chunksize=rows)


class _SortedRun:
    """A sorted run, of which one block is in memory."""

    def __init__(self, path: Path) -> None:
        # Not mapped: pages of a mapped file count as memory of the process until the run is closed.
        self._file = pa.OSFile(str(path), "rb")
        self._reader = pa.ipc.open_file(self._file)
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

    def close(self) -> None:
        self._file.close()


def _merged(paths: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of runs by id: all up to the least id at which a block ends, and so on."""
    opened = [_SortedRun(path) for path in paths]
    try:
        runs = [run for run in opened if run.block is not None]
        while runs:
            bound = min((_last(run) for run in runs if run.has_more), default=None)
            taken = [rows for run in runs if (rows := run.take(bound)) is not None]
            table = pa.Table.from_batches(taken)
            yield from _blocks(table if len(taken) == 1 else table.sort_by("id"))
            runs = [run for run in runs if run.block is not None]
    finally:
        for run in opened:
            run.close()


def _last(run: _SortedRun) -> str:
    assert run.block is not None
    return str(run.block.column("id")[-1])


def _place(block: pa.RecordBatch, bound: str) -> int:
    """Return how many rows of a sorted block have an id up to a bound."""
    ids = block.column("id")
    return bisect_right(range(len(ids)), bound, key=lambda row: str(ids[row]))
