"""What a load reads: files, the pieces of them that tasks take, and what is counted beforehand.

All of it is small and can be sent to another process: a piece is a description, never data.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from omnigraph.bulk.files import is_object


class Format(StrEnum):
    """What a file holds; the text is what an error calls it."""

    NDJSON = "NDJSON"
    CSV = "CSV"
    PARQUET = "Parquet"
    ARROW = "Arrow"

    @property
    def is_text(self) -> bool:
        """Whether the file is lines of text."""
        return self in {Format.NDJSON, Format.CSV}


class Compression(StrEnum):
    """How a text file is packed; such a file cannot be cut."""

    GZIP = "gzip"
    ZSTD = "zstd"


@dataclass(frozen=True, slots=True)
class EndColumns:
    """The columns that one end of an edge is made from.

    `is_key` says that they hold the parts of the node's key, in the order of its id; otherwise the one column
    holds the id.
    """

    columns: tuple[str, ...]
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """How the columns of a file become the properties of a type.

    `columns` is keyed by property, and by `id` too. A property that it does not name has the column of its
    own name, if the file has one; a column that nothing names is left out. `constants` are JSON values.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, object] = field(default_factory=dict)
    source: EndColumns | None = None
    target: EndColumns | None = None


@dataclass(frozen=True, slots=True)
class SourceInput:
    """One file of a load, on a disk or in a store: its place among the inputs, and how it is read.

    `name` is what errors call it; `None` if it is the only file and lines are enough. `table_key` is `None`
    for NDJSON, whose records name their types. A relative path counts from `folder`, which is that of the
    process that made the input: a task may run in another.
    """

    path: str
    format: Format
    name: str | None = None
    compression: Compression | None = None
    table_key: str | None = None
    mapping: ColumnMap | None = None
    file: int = 0
    folder: str = field(default_factory=os.getcwd)

    @property
    def location(self) -> str:
        """Where the file is, for any process."""
        return self.path if is_object(self.path) else str(Path(self.folder) / self.path)


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of one file, for one task.

    `start` and `end` count bytes of plain text, row groups of Parquet or batches of Arrow; a packed file is
    one slice without an end. `lines_before` is how many lines (or rows) end before `start`, and `is_quoted`
    says that `start` is inside a quoted field of CSV: both are exact once the earlier slices were surveyed.
    `header` has the columns of CSV.
    """

    source: SourceInput
    number: int
    start: int
    end: int | None
    size: int
    lines_before: int = 0
    is_quoted: bool = False
    header: tuple[str, ...] = ()

    @property
    def is_first(self) -> bool:
        """Whether this is the slice that speaks for its file."""
        return self.number == 0


@dataclass(frozen=True, slots=True)
class SliceSurvey:
    """What a slice holds between its bounds: line ends (or rows) and quotes."""

    lines: int
    quotes: int = 0
