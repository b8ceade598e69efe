"""Rows of a load where its tasks have put them, until they are committed or the load ends.

N1  The input is read once. What later stages ask is asked of the fragments that tasks wrote or, where
    nothing may be written, of key columns that they keep in the spool.
N2  A row that is left out stays in its file. Who reads the file passes over it, by its place in the input.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.bulk.files import open_input
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.arrays import Mask
from omnigraph.core.input_lines import InputLines
from omnigraph.validate.questions import FILE, ID, LINE, is_null_flag, null_of, property_of

if TYPE_CHECKING:
    from omnigraph.storage.tables.fragments import TaskTable, WrittenFragment
    from omnigraph.storage.tables.handle import TableAddress

Lines = npt.NDArray[np.int64]
RowPlace = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Lines that are left out, by file, in order."""

    lines: Mapping[int, Lines]

    @staticmethod
    def of(places: Iterable[RowPlace]) -> "LeftOut":
        """Take them by file and line."""
        by_file: dict[int, list[int]] = {}
        for file, line in places:
            by_file.setdefault(file, []).append(line)
        return LeftOut({file: np.array(sorted(lines), np.int64) for file, lines in by_file.items()})

    def among(self, spans: Iterable[InputLines]) -> "LeftOut":
        """Return those in some parts of the input: a task gets what concerns its rows, and no more."""
        found: dict[int, Lines] = {}
        for span in spans:
            lines = self.lines.get(span.file)
            if lines is None:
                continue
            first, last = np.searchsorted(lines, [span.first, span.last + 1])
            if last > first:
                found[span.file] = lines[first:last]
        return LeftOut(found)

    def kept(self, files: npt.NDArray[np.int32], lines: Lines) -> Mask:
        """Return which rows are not left out, by their places."""
        kept = np.ones(len(files), dtype=np.bool_)
        for file, gone in self.lines.items():
            kept &= ~((files == file) & np.isin(lines, gone))
        return kept


NOTHING_LEFT_OUT = LeftOut({})


class NewRows(Protocol):
    """Some rows of one table of a load."""

    @property
    def count(self) -> int:
        """How many there are, with those that are left out."""
        ...

    def read(
        self, columns: Sequence[str], *, with_places: bool = True
    ) -> Iterator[tuple[pa.Table, pa.Table | None]]:
        """Yield columns of the rows that are not left out, and their places where asked (N2).

        Raises:
            StorageError: the store failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """The rows of a fragment that a task wrote."""

    address: "TableAddress"
    fragment: "WrittenFragment"
    left_out: LeftOut = NOTHING_LEFT_OUT

    @property
    def count(self) -> int:
        """How many rows the fragment has."""
        return self.fragment.rows

    def without(self, left_out: LeftOut) -> "WrittenRows":
        """Return the rows without those that are left out."""
        return replace(self, left_out=left_out.among(self.fragment.lines))

    def read(
        self, columns: Sequence[str], *, with_places: bool = True
    ) -> Iterator[tuple[pa.Table, pa.Table | None]]:
        """Yield columns of the rows that are not left out, and their places where asked (N2).

        Raises:
            StorageError: the store failed.
        """
        from omnigraph.storage.tables.fragments import read_written

        needs_places = with_places or bool(self.left_out.lines)
        found = read_written(self.address, self.fragment, stored_columns(columns), with_places=needs_places)
        for rows, places in found:
            assert places is not None or not needs_places, "a load writes places"
            yield _remaining(columns_of(rows, columns), places, self.left_out)


@dataclass(frozen=True, slots=True)
class SpooledRows:
    """The key columns of rows that are written nowhere else, in a file of the spool."""

    table_key: str
    path: str
    count: int
    lines: tuple[InputLines, ...]
    left_out: LeftOut = NOTHING_LEFT_OUT

    def without(self, left_out: LeftOut) -> "SpooledRows":
        """Return the rows without those that are left out."""
        return replace(self, left_out=left_out.among(self.lines))

    def read(
        self, columns: Sequence[str], *, with_places: bool = True
    ) -> Iterator[tuple[pa.Table, pa.Table | None]]:
        """Yield columns of the rows that are not left out, and their places where asked (N2).

        Raises:
            OSError: the file cannot be read.
        """
        with open_input(self.path) as source, pa.ipc.open_file(source) as file:
            for number in range(file.num_record_batches):
                whole = pa.Table.from_batches([file.get_batch(number)])
                places = whole.select([FILE, LINE]) if with_places or self.left_out.lines else None
                yield _remaining(whole.select(list(columns)), places, self.left_out)


def written_without(table: "TaskTable", rows: WrittenRows) -> "WrittenFragment | None":
    """Write a fragment again without the rows that are left out; nothing if none remains.

    Raises:
        StorageError: the store failed.
        SparkUnavailable: the operation was cancelled.
    """
    from omnigraph.storage.tables.fragments import FragmentWriter

    names = pa.ipc.read_schema(pa.py_buffer(table.schema)).names
    parts = [(part, places) for part, places in rows.read(names) if part.num_rows]
    if not parts:
        return None
    writer = FragmentWriter(table)
    made = writer.write(
        pa.concat_tables([part for part, _ in parts]),
        pa.concat_tables([places for _, places in parts if places is not None]),
    )
    writer.sync()
    return replace(made, lines=rows.fragment.lines)


def key_columns(type_: NodeType | EdgeType) -> list[str]:
    """Return the columns that the set checks for a type look at."""
    own = ["src", "dst"] if isinstance(type_, EdgeType) else [*(type_.key or ())]
    return list(dict.fromkeys([ID, *own, *(name for columns in type_.unique for name in columns)]))


def null_flags(type_: NodeType | EdgeType) -> list[str]:
    """Return the columns that say of a type's properties whether they are null."""
    return [null_of(name) for name in type_.properties]


def stored_columns(names: Sequence[str]) -> list[str]:
    """Return the columns of a table that these are made from."""
    return list(dict.fromkeys(map(property_of, names)))


def columns_of(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return columns of a table; of properties that may be large, only whether they are null."""
    columns = [
        rows.column(property_of(name)).is_null() if is_null_flag(name) else rows.column(name)
        for name in names
    ]
    return pa.Table.from_arrays(columns, names=list(names))


def _remaining(
    rows: pa.Table, places: pa.Table | None, left_out: LeftOut
) -> tuple[pa.Table, pa.Table | None]:
    if places is None or not left_out.lines:
        return rows, places
    mask = pa.array(left_out.kept(places[FILE].to_numpy(), places[LINE].to_numpy()))
    return rows.filter(mask), places.filter(mask)
