"""The rows of a slice whose file holds one type: Parquet, Arrow and CSV."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from omnigraph.bulk.sources.csv import read_csv
from omnigraph.bulk.sources.mapping import MappedTable, map_columns, needed_columns
from omnigraph.bulk.sources.model import Format, Slice
from omnigraph.bulk.sources.tables import Growth, read_schema, read_tables
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.arrays import Positions
from omnigraph.validate.columns import TypedRows
from omnigraph.validate.records import UNLIMITED, ReadLimits
from omnigraph.validate.soundness import sound_rows
from omnigraph.validate.tables import coerce_values, foreign_column, read_table, wrong_column
from omnigraph.validate.texts import coerce_texts
from omnigraph.validate.violations import Violation, ViolationKind, ViolationLog

ROWS_AT_ONCE = 16_384  # between two looks at whether enough is wrong: a batch may be 100 million rows


def read_typed(
    slice_: Slice,
    catalog: Catalog,
    *,
    make_id: Callable[[], str],
    log: ViolationLog,
    limits: ReadLimits = UNLIMITED,
) -> Iterator[TypedRows]:
    """Yield the rows of a slice, some at a time; the first slice of a file always yields, even without rows.

    A file with a wrong column is refused once, by its first slice.

    Raises:
        BadRequest: the file cannot be read, or lacks a column of its mapping.
        ResourceLimit: a line, or what the file unpacks to, is above a limit.
        ValidationError: its values are damaged.
    """
    source = slice_.source
    assert source.table_key is not None, f"{source.path} holds rows of one type"
    type_ = catalog.type_of(source.table_key)
    schema = _schema(slice_)
    coerce = coerce_texts if source.format is Format.CSV else coerce_values
    columns = None
    if source.mapping is not None:
        columns = needed_columns(schema.names, source.mapping, type_, source.path)

    def refuse(line: int, message: str) -> None:
        log.add(
            Violation(ViolationKind.RECORD, message, type_.table_key, None, source.file, line, source.name)
        )

    def mapped(table: pa.Table, lines: Positions) -> MappedTable:
        if source.mapping is None:
            return MappedTable(table, lines)
        return map_columns(table, lines, source.mapping, type_, catalog=catalog, coerce=coerce, refuse=refuse)

    if columns is None:
        wrong = wrong_column(schema, type_)
    else:  # a mapping may make something else of a column, which then has lost the name of its type
        schema = pa.schema([schema.field(name) for name in columns])
        wrong = foreign_column(schema, type_)
    if wrong is not None:  # before a table of very many columns is made
        if slice_.is_first:
            refuse(1, wrong)
        return
    found = mapped(schema.empty_table(), np.array([], dtype=np.int64))
    wrong = wrong_column(found.table.schema, type_)
    if wrong is not None:
        if slice_.is_first:
            refuse(1, wrong)
        return

    def rows_of(given: MappedTable) -> TypedRows:
        return read_table(
            given.table,
            type_,
            file=source.file,
            file_name=source.name,
            make_id=make_id,
            log=log,
            lines=given.lines,
            coerce=coerce,
        )

    if slice_.is_first:
        yield rows_of(found)
    for table, lines in _tables(slice_, columns, refuse, log=log, type_=type_, limits=limits):
        yield rows_of(mapped(table, lines))
        if log.has_enough:
            return


def _schema(slice_: Slice) -> pa.Schema:
    if slice_.source.format is Format.CSV:
        return pa.schema([pa.field(name, pa.utf8()) for name in slice_.header])
    return read_schema(slice_.source)


def _tables(
    slice_: Slice,
    columns: list[str] | None,
    refuse: Callable[[int, str], None],
    *,
    log: ViolationLog,
    type_: NodeType | EdgeType,
    limits: ReadLimits,
) -> Iterator[tuple[pa.Table, Positions]]:
    if slice_.source.format is Format.CSV:
        for table, lines in read_csv(slice_, refuse, limits):
            yield table if columns is None else table.select(columns), lines
        return
    source, line = slice_.source, 1 + slice_.lines_before
    growth = Growth(source, limits)
    for table in read_tables(slice_, columns):
        sound, lines = sound_rows(
            table,
            type_,
            file=source.file,
            file_name=source.name,
            log=log,
            first_line=line,
            check=growth.take,
        )
        for start in range(0, sound.num_rows, ROWS_AT_ONCE):
            yield sound.slice(start, ROWS_AT_ONCE), lines[start : start + ROWS_AT_ONCE]
        line += table.num_rows
