"""Keys as Spark frames: a few columns of the rows of a load, and of the rows that are committed.

F1  A frame is made from descriptions; its rows exist only on the executors.
F2  A key column has a type that Spark compares as Arrow does (see `key_types`). For any other property a
    frame can say whether it is null (`null_of`), and never holds the values.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.load.key_types import encode, spark_type
from omnigraph.bulk.load.new_rows import NewRows, columns_of, stored_columns
from omnigraph.bulk.load.quick import ROW_ADDRESS, ROW_ID, KeyPiece
from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.validate.questions import FILE, ID, LINE, is_null_flag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class NewFrames:
    """The rows of a load as frames and as pieces."""

    jobs: Jobs
    rows: Mapping[str, Sequence[NewRows]]  # by table

    def written(self, type_: NodeType | EdgeType, columns: Sequence[str]) -> "DataFrame":
        """Return file, line, id and the columns of every row of a table that passed the value checks."""
        names = _names(columns)

        def batches(piece: NewRows) -> Iterator[pa.RecordBatch]:
            for rows, places in piece.read(names):
                assert places is not None, "they were asked for"
                yield from _encoded(rows, places)

        found = self.rows.get(type_.table_key, ())
        return self.jobs.over(found, batches, ddl(type_, names, with_places=True))

    def pieces(self, table_key: str) -> tuple[KeyPiece, ...]:
        """Return the rows of a table as pieces that tasks can read."""
        return tuple(KeyPiece(item.count, new=item) for item in self.rows.get(table_key, ()))


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
        for whole in piece.read(stored_columns(names), with_rows=with_rows):
            rows = [pa.field(name, pa.int64()) for name in (ROW_ID, ROW_ADDRESS)] if with_rows else []
            numbers_ = pa.Table.from_arrays(
                [whole[item.name].cast(pa.int64()) for item in rows], names=[item.name for item in rows]
            )
            yield from _encoded(columns_of(whole, names), numbers_)

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


def _encoded(rows: pa.Table, beside: pa.Table) -> Iterator[pa.RecordBatch]:
    columns = [encode(rows.column(name).combine_chunks()) for name in rows.column_names]
    others = [column.combine_chunks() for column in beside.columns]
    names = [*rows.column_names, *beside.column_names]
    if rows.num_rows:
        yield pa.RecordBatch.from_arrays([*columns, *others], names=names)
