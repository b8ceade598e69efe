"""A table of a graph as a data source of Spark.

D1  The version is chosen once, when the frame is made; every partition, and every run of the frame, reads it.
D2  Only the columns of the frame's schema are read. Spark does not prune a Python data source by itself: the
    columns are those of an explicit schema, or of the option `columns`.
D3  A frame is read as a whole, whatever is selected from it: Spark keeps one reader for all uses of a frame,
    and asks a Python reader to take filters over. Rows that it left out would be missing in every other use.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from omnigraph.bulk.datasource.sink import TableWriter, WriteOptions, write_options
from omnigraph.bulk.datasource.types import chosen_columns, spark_batch, spark_schema
from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.core.nearest import nearest_name

if TYPE_CHECKING:
    from omnigraph.storage.tables.pinned import Piece, PinnedTable

FORMAT = "omnigraph"
_DIGITS_MAX = 9  # of a number of partitions: no cluster has more
WRITE_OPTIONS = ("loadMode", "message", "index")
OPTIONS = (
    "uri",
    "type",
    "table_key",
    "branch",
    "snapshot",
    "commit",
    "timestamp",
    "columns",
    "numPartitions",
    "policy",
    "actor",
)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read, checked: which table of which snapshot, and how."""

    uri: str
    table: str
    branch: str | None
    commit: str | None
    timestamp: str | None
    columns: tuple[str, ...] | None
    partitions: int | None
    policy: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table of one snapshot, and which of its columns hold references: they are texts for Spark."""

    pinned: "PinnedTable"
    references: frozenset[str] = frozenset()


class TableSource(DataSource):
    """`format("omnigraph")`, except how a graph is opened: a subclass says that with `pin` and `sink`."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` takes."""
        return FORMAT

    def __init__(self, options: Mapping[str, str]) -> None:
        """Choose the version that is read (D1).

        Raises:
            BadRequest: an option is unknown, missing or contradicts another.
        """
        super().__init__(dict(options))
        self._given = read_options(options)
        found = self.pin(self._given)
        self.table, self._references = found.pinned, found.references
        self._columns = self.table.open().schema.serialize().to_pybytes()

    @abstractmethod
    def pin(self, options: ReadOptions) -> SourceTable:
        """Return the table of one snapshot."""

    def schema(self) -> StructType:
        """Return the columns: all of the table, or those of the option."""
        known = self._shown()
        names = self._given.columns
        if names is None:
            return spark_schema(known)
        for name in names:
            if name not in known.names:
                raise BadRequest(f"the table has no column '{name}'; it has {', '.join(known.names)}")
        return spark_schema(pa.schema([known.field(name) for name in names]))

    def reader(self, schema: StructType) -> "TableReader":
        """Return what reads the columns of a schema (D2)."""
        chosen_columns(schema, self._shown())
        return TableReader(self.table, schema, self._given.partitions)

    def writer(self, schema: StructType, overwrite: bool) -> TableWriter:
        """Return what writes a frame into the table."""
        return self.sink(write_options(self.options, is_overwrite=overwrite), schema)

    @abstractmethod
    def sink(self, options: WriteOptions, schema: StructType) -> TableWriter:
        """Return the writer of a graph."""

    def _stored(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(self._columns))

    def _shown(self) -> pa.Schema:
        return pa.schema(
            [item.with_type(pa.utf8()) if item.name in self._references else item for item in self._stored()]
        )


class FragmentShare(InputPartition):
    """The fragments that one task reads."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        """Take their numbers."""
        super().__init__(numbers)
        self.numbers = numbers


class TableReader(DataSourceReader):
    """Reads a pinned table in tasks, without filters (D3)."""

    def __init__(self, table: "PinnedTable", schema: StructType, partitions: int | None) -> None:
        """Take the table, the columns that are wanted, and how many tasks to split it into."""
        self._table, self._wanted, self._count = table, schema, partitions

    def partitions(self) -> Sequence[InputPartition]:
        """Return the shares of the fragments."""
        from omnigraph.storage.tables.pinned import pieces

        return [FragmentShare(numbers) for numbers in _shares(pieces(self._table.open()), self._count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some fragments."""
        from omnigraph.storage.tables.pinned import read_pieces

        assert isinstance(partition, FragmentShare), "the partitions are ours"
        target = to_arrow_schema(self._wanted, timezone="UTC")
        batches = read_pieces(self._table.open(), partition.numbers, columns=target.names)
        return (spark_batch(batch, target) for batch in batches)


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """Return the options of a read.

    Raises:
        BadRequest: one is unknown, missing or contradicts another.
    """
    known = {name.lower(): name for name in (*OPTIONS, *WRITE_OPTIONS)}
    options: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() not in known:
            help = nearest_name(name.lower(), known)
            raise BadRequest(f"unknown option '{name}'; {help or 'the options are ' + ', '.join(OPTIONS)}")
        options[name.lower()] = value
    tables = [options[name] for name in ("type", "table_key") if name in options]
    times = [name for name in ("snapshot", "commit", "timestamp") if name in options]
    if "uri" not in options:
        raise BadRequest("the option 'uri' is missing: it is the address of the graph")
    if len(tables) != 1:
        raise BadRequest("give one of the options 'type' and 'table_key' to say which table is read")
    if len(times) > 1:
        raise BadRequest(f"give only one of the options {' and '.join(repr(name) for name in times)}")
    columns = options.get("columns")
    return ReadOptions(
        uri=options["uri"],
        table=tables[0],
        branch=options.get("branch"),
        commit=options.get("snapshot", options.get("commit")),
        timestamp=options.get("timestamp"),
        columns=None if columns is None else tuple(name.strip() for name in columns.split(",")),
        partitions=_positive(options.get("numpartitions")),
        policy=options.get("policy"),
        actor=options.get("actor"),
    )


def _positive(text: str | None) -> int | None:
    if text is None:
        return None
    is_number = text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX
    if not is_number or int(text) == 0:
        raise BadRequest(f"the option 'numPartitions' must be a number above zero, not {text!r:.40}")
    return int(text)


def _shares(found: "Sequence[Piece]", count: int | None) -> Iterator[tuple[int, ...]]:
    """Yield the fragments of each partition: `count` partitions if possible, or of a full fragment's rows."""
    numbers = [piece.number for piece in found]
    if count is not None:
        parts = max(1, min(count, len(numbers)))
        bounds = [len(numbers) * part // parts for part in range(parts + 1)]
        yield from (tuple(numbers[start:end]) for start, end in pairwise(bounds))
        return
    share: list[int] = []
    rows = 0
    for piece in found:
        share.append(piece.number)
        rows += piece.rows
        if rows >= MAX_FRAGMENT_ROWS:
            yield tuple(share)
            share, rows = [], 0
    if share or not found:
        yield tuple(share)
