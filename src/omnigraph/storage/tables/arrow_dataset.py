"""A table as an Arrow dataset: other engines ask it for columns and conditions, in a stream.

D1  A `DateTime` is a timestamp in UTC, as wherever a table leaves the engine (`catalog.arrow_schema` M1).
D2  Arrow applies every condition. Before that, the table does where it surely means the same: on columns of
    whole numbers, texts, days and truth values. So an index may serve, and nothing is lost if none does.
    The library refuses conditions on a table that has a `DateTime` or an unsigned column. A null in a list
    of values matches nothing, as in SQL.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.reading import reading

AHEAD_BYTES = 8 * 1024 * 1024  # what is decoded before it is asked for
_ROWS_AHEAD = 4  # batches
_SAME_MEANING = frozenset({pa.int32(), pa.int64(), pa.utf8(), pa.bool_(), pa.date32()})  # D2

Shaped = Callable[[pa.RecordBatch], pa.RecordBatch]


class BatchDataset(ds.Dataset):
    """A dataset over whatever gives batches of some columns, which may leave conditions to Arrow."""

    def __init__(self, schema: pa.Schema) -> None:
        """Take the columns as they leave the engine."""
        self._outside = schema

    @property
    def schema(self) -> pa.Schema:
        """The columns as they leave the engine."""
        return self._outside

    def scanner(  # type: ignore[override] # what other engines give besides is about how, not what
        self, columns: list[str] | None = None, filter: ds.Expression | None = None, **_: object
    ) -> ds.Scanner:
        """Return a scan of some columns of the rows that meet a condition."""
        names = self._outside.names if columns is None else list(columns)
        asked = [] if filter is None else self._named_in(filter)
        read = [name for name in self._outside.names if name in {*names, *asked}] or self._outside.names[:1]
        pushed = filter if all(self._outside.field(name).type in _SAME_MEANING for name in asked) else None
        schema = pa.schema([self._outside.field(name) for name in read])
        rows = pa.RecordBatchReader.from_batches(schema, self._batches(read, pushed))
        return ds.Scanner.from_batches(rows, columns=names, filter=filter)

    def _batches(self, columns: list[str], filter: ds.Expression | None) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError()  # abstract

    def _named_in(self, filter: ds.Expression) -> list[str]:
        """Return the columns that a condition names: those without which it cannot be bound."""
        return [name for name in self._outside.names if not _binds(filter, self._outside, name)]


class PinnedDataset(BatchDataset):
    """A version of a table; `shaped` gives batches the types with which they leave the engine (D1)."""

    def __init__(self, opened: Callable[[], SnapshotHandle], schema: pa.Schema, shaped: Shaped) -> None:
        """Take how the version is opened: for every scan anew, which is where a closed graph says so."""
        super().__init__(schema)
        self._opened, self._shaped = opened, shaped

    def _batches(self, columns: list[str], filter: ds.Expression | None) -> Iterator[pa.RecordBatch]:
        handle = self._opened()
        with reading(handle, "scan"):
            yield from map(self._shaped, _scan(handle, columns, filter))


def _scan(handle: SnapshotHandle, columns: list[str], filter: ds.Expression | None) -> pa.RecordBatchReader:
    if filter is not None:
        try:
            return _reader(handle, columns, filter)
        except (ValueError, NotImplementedError):  # a condition that the library cannot express: Arrow can
            pass
    return _reader(handle, columns, None)


def _reader(handle: SnapshotHandle, columns: list[str], filter: Any) -> pa.RecordBatchReader:  # noqa: ANN401
    scanner = handle._dataset.scanner(
        columns=columns,
        filter=filter,
        io_buffer_size=AHEAD_BYTES,
        batch_size_bytes=AHEAD_BYTES // _ROWS_AHEAD,
        batch_readahead=_ROWS_AHEAD,
    )
    return scanner.to_reader()


def _binds(filter: ds.Expression, schema: pa.Schema, without: str) -> bool:
    rest = pa.schema([field for field in schema if field.name != without])
    try:
        ds.Scanner.from_batches(iter(()), schema=rest, filter=filter)
    except pa.ArrowInvalid:
        return False
    return True
