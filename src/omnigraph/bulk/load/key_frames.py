"""Keys as Spark frames: a few columns of the rows of a load, and of the rows that are committed.

F1  A frame is made from descriptions; its rows exist only on the executors.
F2  A key column has a type that Spark compares as Arrow does (see `key_types`). For any other property a
    frame can say whether it is null (`null_of`), and never holds the values.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.load.key_types import encode, spark_type
from omnigraph.bulk.load.quick import ROW_ADDRESS, ROW_ID, KeyPiece
from omnigraph.bulk.load.tasks import ReadPlan, SliceWork, passing_rows, places_of
from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.validate.questions import FILE, ID, LINE, is_null_flag, property_of
from omnigraph.validate.violations import ViolationLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from omnigraph.storage.tables.fragments import TaskTable, WrittenFragment


class WrittenFrames(Protocol):
    """The rows of a load as frames."""

    def written(self, type_: NodeType | EdgeType, columns: Sequence[str]) -> "DataFrame":
        """Return file, line, id and the columns of every row of a table that passed the value checks."""
        ...

    def pieces(self, table_key: str) -> "tuple[KeyPiece, ...] | None":
        """Return the rows of a table as pieces that tasks can read; `None` where they were not written."""
        ...


@dataclass(frozen=True, slots=True)
class SliceFrames:
    """Rows read from the input again, where nothing was written."""

    jobs: Jobs
    work: tuple[SliceWork, ...]
    plan: ReadPlan

    def written(self, type_: NodeType | EdgeType, columns: Sequence[str]) -> "DataFrame":
        """Return file, line, id and the columns of every row of a table that passed the value checks."""
        plan, names, table_key = self.plan, _names(columns), type_.table_key

        def batches(work: SliceWork) -> Iterator[pa.RecordBatch]:
            for rows in passing_rows(work, plan, ViolationLog()):
                if rows.type.table_key == table_key and rows.count:
                    yield from _encoded(_columns(rows.table, names), places_of(rows))

        return self.jobs.over(self.work, batches, ddl(type_, names, with_places=True))

    def pieces(self, table_key: str) -> None:
        """Return nothing: the rows are only in the input."""


@dataclass(frozen=True, slots=True)
class FragmentFrames:
    """Rows of fragments that the tasks of this load have written."""

    jobs: Jobs
    fragments: "Mapping[str, tuple[WrittenFragment, ...]]"
    table_of: "Callable[[str], TaskTable]"

    def written(self, type_: NodeType | EdgeType, columns: Sequence[str]) -> "DataFrame":
        """Return file, line, id and the columns of every row of a table."""
        names, address = _names(columns), self.table_of(type_.table_key).address

        def batches(fragment: "WrittenFragment") -> Iterator[pa.RecordBatch]:
            from omnigraph.storage.tables.fragments import read_written

            for rows, places in read_written(address, fragment, _stored(names)):
                assert places is not None, "a load writes places"
                yield from _encoded(_columns(rows, names), places)

        found = self.fragments.get(type_.table_key, ())
        return self.jobs.over(found, batches, ddl(type_, names, with_places=True))

    def pieces(self, table_key: str) -> "tuple[KeyPiece, ...]":
        """Return the written fragments."""
        table = self.table_of(table_key).pinned
        return tuple(KeyPiece(table, item.rows, written=item) for item in self.fragments.get(table_key, ()))


def committed_frame(
    jobs: Jobs,
    type_: NodeType | EdgeType,
    pieces: Sequence[KeyPiece],
    columns: Sequence[str],
    *,
    with_rows: bool = False,
) -> "DataFrame":
    """Return id and columns of committed rows of a table; with row id and row address where asked."""
    names = _names(columns)

    def batches(piece: KeyPiece) -> Iterator[pa.RecordBatch]:
        for whole in piece.read(_stored(names), with_rows=with_rows):
            rows = [pa.field(name, pa.int64()) for name in (ROW_ID, ROW_ADDRESS)] if with_rows else []
            numbers_ = pa.Table.from_arrays(
                [whole[item.name].cast(pa.int64()) for item in rows], names=[item.name for item in rows]
            )
            yield from _encoded(_columns(whole, names), numbers_)

    extra = f", {ROW_ID} long, {ROW_ADDRESS} long" if with_rows else ""
    return jobs.over(pieces, batches, ddl(type_, names, with_places=False) + extra)


def ddl(type_: NodeType | EdgeType, names: Sequence[str], *, with_places: bool) -> str:
    """Return the columns of a frame in Spark's spelling (F2)."""
    schema = arrow_schema(type_)
    types = {name: "boolean" if is_null_flag(name) else spark_type(schema.field(name).type) for name in names}
    columns = [f"`{name}` {type_}" for name, type_ in types.items()]
    return ", ".join([*columns, *([f"`{FILE}` int", f"`{LINE}` long"] if with_places else [])])


def _names(columns: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([ID, *columns]))


def _stored(names: Sequence[str]) -> list[str]:
    """Return the columns of a table that the columns of a frame are made from."""
    return list(dict.fromkeys(map(property_of, names)))


def _columns(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the columns of a frame from those of a table (F2)."""
    columns = [
        rows.column(property_of(name)).is_null() if is_null_flag(name) else rows.column(name)
        for name in names
    ]
    return pa.Table.from_arrays(columns, names=list(names))


def _encoded(rows: pa.Table, beside: pa.Table) -> Iterator[pa.RecordBatch]:
    columns = [encode(rows.column(name).combine_chunks()) for name in rows.column_names]
    others = [column.combine_chunks() for column in beside.columns]
    names = [*rows.column_names, *beside.column_names]
    if rows.num_rows:
        yield pa.RecordBatch.from_arrays([*columns, *others], names=names)
