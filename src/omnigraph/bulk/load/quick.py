"""Is there anything to look into? Answered in tasks that read keys where they are, without moving them.

A load is usually valid, and then a question about keys needs no join and no positions: each task takes a
share of the keys and compares it in Arrow, which is many times faster than sending rows through the JVM. A
yes only means that the exact question is worth asking.

U1  A no is certain: no rule of the question is broken. A yes may be wrong.
U2  A task holds a limited number of keys. Beyond what that allows, the answer is yes without looking.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.load.key_types import encode
from omnigraph.bulk.load.new_rows import NewRows
from omnigraph.validate.columns import Column
from omnigraph.validate.sets import later_positions, tuple_codes

if TYPE_CHECKING:
    from omnigraph.storage.tables.pinned import PinnedTable

ROW_ID, ROW_ADDRESS = "_rowid", "_rowaddr"
SHARE_ROWS = 3_000_000  # keys that one task compares at a time: about 300 MB with their hash table
SHARES_MAX = 16  # every share reads all keys: beyond this, a shuffle reads less


@dataclass(frozen=True, slots=True)
class KeyPiece:
    """Some rows of a table as a task can read them: new ones, or a committed fragment by its number."""

    rows: int
    new: NewRows | None = None
    table: "PinnedTable | None" = None
    number: int | None = None

    def read(self, columns: Sequence[str], *, with_rows: bool = False) -> Iterator[pa.Table]:
        """Yield columns of the rows; for committed ones also their row ids and addresses, where asked.

        Raises:
            HistoricalVersionReclaimed: the version of committed rows was cleaned up.
            StorageError: the store failed.
        """
        from omnigraph.storage.tables.fragments import READ_ROWS
        from omnigraph.storage.tables.pinned import read_pieces

        if self.new is not None:
            for rows, _ in self.new.read(columns, with_places=False):
                yield rows
        elif self.table is not None and self.number is not None:
            names = [*columns, *([ROW_ID, ROW_ADDRESS] if with_rows else [])]
            found = read_pieces(
                self.table.open(), [self.number], columns=columns, with_rows=with_rows, batch_rows=READ_ROWS
            )
            for batch in found:
                yield pa.Table.from_batches([batch]).select(names)


def may_repeat(jobs: Jobs, pieces: Sequence[KeyPiece], columns: Sequence[str]) -> bool:
    """Return whether a tuple may occur in two rows (U1, U2)."""
    shares = _shares(pieces)
    if shares > SHARES_MAX:
        return True
    names = list(columns)

    def repeats(share: int) -> bool:
        found = _share_of(pieces, names, share, shares)
        return len(later_positions(tuple_codes(found))) > 0

    return any(jobs.each(range(shares), repeats))


def may_miss(
    jobs: Jobs, pieces: Sequence[KeyPiece], columns: Sequence[str], among: Sequence[KeyPiece]
) -> bool:
    """Return whether a value of the columns may be missing from the other rows' ids (U1, U2)."""
    if sum(piece.rows for piece in among) > SHARE_ROWS:
        return True
    names = list(columns)

    def misses(group: tuple[KeyPiece, ...]) -> bool:
        values = _values(group, names)
        return len(values) > 0 and not pc.all(pc.is_in(values, value_set=_ids(among))).as_py()

    return any(jobs.each(_groups(pieces, jobs.parallelism), misses))


def may_meet(jobs: Jobs, pieces: Sequence[KeyPiece], among: Sequence[KeyPiece]) -> bool:
    """Return whether an id may be one of the other rows' ids (U1, U2)."""
    if not pieces or not among:
        return False
    if sum(piece.rows for piece in pieces) > SHARE_ROWS:
        return True

    def meets(group: tuple[KeyPiece, ...]) -> bool:
        values = _values(group, ["id"])
        return len(values) > 0 and bool(pc.any(pc.is_in(values, value_set=_ids(pieces))).as_py())

    return any(jobs.each(_groups(among, jobs.parallelism), meets))


def may_exceed(
    jobs: Jobs, pieces: Sequence[KeyPiece], committed: Sequence[KeyPiece], *, low: int, high: int | None
) -> bool:
    """Return whether a source of the rows may have fewer or more edges than allowed, beside committed ones.

    U1 and U2 hold.
    """
    shares = _shares([*pieces, *committed])
    if not pieces:
        return False
    if shares > SHARES_MAX:
        return True

    def exceeds(share: int) -> bool:
        own = _share_of(pieces, ["src"], share, shares)["src"]
        others = _share_of(committed, ["src"], share, shares)["src"] if committed else own.slice(0, 0)
        both = pa.chunked_array([*own.chunks, *others.chunks], pa.utf8())
        counted = pc.value_counts(both)
        if len(counted) == 0:
            return False
        counts = np.asarray(counted.field("counts"))
        if low > 1:
            is_own = np.asarray(pc.is_in(counted.field("values"), value_set=pc.unique(own)))
            if bool((counts[is_own] < low).any()):
                return True
        return high is not None and bool(counts.max() > high)

    return any(jobs.each(range(shares), exceeds))


def _shares(pieces: Sequence[KeyPiece]) -> int:
    return max(1, -(-sum(piece.rows for piece in pieces) // SHARE_ROWS))


def _groups(pieces: Sequence[KeyPiece], parallelism: int) -> list[tuple[KeyPiece, ...]]:
    """Return the pieces in groups of about the same size, enough of them to keep all cores equally busy."""
    rows = sum(piece.rows for piece in pieces)
    count = -(-_shares(pieces) // parallelism) * parallelism
    groups: list[list[KeyPiece]] = [[]]
    filled = 0
    for piece in pieces:
        if filled >= rows * len(groups) / count:
            groups.append([])
        groups[-1].append(piece)
        filled += piece.rows
    return [tuple(group) for group in groups]


def _ids(pieces: Sequence[KeyPiece]) -> Column:
    found = [chunk for piece in pieces for table in piece.read(["id"]) for chunk in table["id"].chunks]
    return pa.chunked_array(found, pa.utf8()).combine_chunks()


def _values(group: Sequence[KeyPiece], names: Sequence[str]) -> Column:
    """Return the values of several columns as one, so that they are looked up in one go."""
    tables = [table for piece in group for table in piece.read(names)]
    chunks = [chunk for name in names for table in tables for chunk in table[name].chunks]
    return pa.chunked_array(chunks, pa.utf8())


def _share_of(pieces: Sequence[KeyPiece], names: Sequence[str], share: int, shares: int) -> pa.Table:
    """Return the rows of one share: equal tuples are in one share, whatever piece they are in."""
    tables = [table for piece in pieces for table in piece.read(names)]
    if shares > 1:
        tables = [table.filter(pa.array(_bucket(table[names[0]], shares) == share)) for table in tables]
    return pa.concat_tables(tables)


def _bucket(column: Column, shares: int) -> npt.NDArray[np.int64]:
    """Return a number below `shares` for each value, equal for equal values; null may have any."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_string(whole.type):
        values: npt.NDArray[np.float64] = np.asarray(
            encode(whole).cast(pa.float64(), safe=False).fill_null(0.0)
        )
        return np.asarray(np.abs(values) % shares, dtype=np.int64)
    _, offsets, data = whole.buffers()
    found: npt.NDArray[np.int64] = np.zeros(len(whole), dtype=np.int64)
    if offsets is None or data is None or data.size == 0:
        return found
    ends = np.frombuffer(memoryview(offsets), dtype=np.int32)[whole.offset : whole.offset + len(whole) + 1]
    text = np.frombuffer(memoryview(data), dtype=np.uint8)
    for back in range(1, 5):  # the last characters of keys differ the most
        position = ends[1:] - back
        is_inside = position >= ends[:-1]
        found = found * 31 + np.where(is_inside, text[np.maximum(position, 0)], 0)
    return found % shares
