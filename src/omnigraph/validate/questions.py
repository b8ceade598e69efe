"""What the set checks ask about the rows of a write, and the answers.

A question is about one table of the write and is answered with the rows that break a rule: the first of them
in order, and how many there are. Arrow answers in process, Spark in a bulk load, passes over whole tables
where committed rows are verified; the checks, their texts and their order are the same.

A1  A tuple with a null part equals no tuple, not even itself. Both zeros of a float are one value.
A2  An answer holds at most the rows that a log keeps; `total` counts all.
A3  Rows of the write are in the order (file, line, id); committed ones by id.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import pyarrow as pa

from omnigraph.catalog.model import EdgeType

FILE, LINE, ID = "@file", "@line", "id"  # no property can have these names
HOLDER, COUNT = "@holder", "@n"
_NULL = "@null:"
Refused = Mapping[str, Collection[str]]  # ids of nodes of the write that were refused, by table
NONE_REFUSED: Refused = MappingProxyType({})
_PLACE: list[tuple[str, pa.DataType]] = [(FILE, pa.int32()), (LINE, pa.int64()), (ID, pa.utf8())]


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows that break a rule: their places, their ids, and the columns in question."""

    rows: pa.Table
    total: int


NOTHING = FoundRows(pa.schema(_PLACE).empty_table(), 0)


def null_of(name: str) -> str:
    """Return the column that says whether a property is null, where its values are not included."""
    return _NULL + name


def property_of(column: str) -> str:
    """Return the property that a column is about."""
    return column.removeprefix(_NULL)


def is_null_flag(column: str) -> bool:
    """Return whether a column comes from `null_of`."""
    return column.startswith(_NULL)


class SetQuestions(Protocol):
    """The questions of the set checks."""

    def duplicates(self, table_key: str, columns: Sequence[str], shown: Sequence[str] = ()) -> FoundRows:
        """Return the rows whose tuple appears in an earlier row, with the columns and those to show (A1)."""
        ...

    def existing(self, table_key: str, columns: Sequence[str]) -> FoundRows:
        """Return the rows whose tuple is held by a committed row that the write leaves alone (A1).

        The columns are included, and `HOLDER`, the smallest id of those committed rows. Rows that are
        duplicates are left out. Where rows of one id replace each other only the last one is checked; for
        `id` itself every row is, and every committed row counts.
        """
        ...

    def missing(self, edge: EdgeType, refused: Refused = NONE_REFUSED) -> tuple[FoundRows, FoundRows]:
        """Return the edges whose `src`, and those whose `dst`, is neither written nor committed and kept.

        Edges to nodes that were refused are left out: those are `following`.
        """
        ...

    def following(self, edge: EdgeType, refused: Refused) -> tuple[FoundRows, FoundRows]:
        """Return the edges whose `src`, and those whose `dst`, is missing because the node was refused."""
        ...

    def retained(self, edge: EdgeType) -> tuple[FoundRows, FoundRows]:
        """Return committed edges outside the write whose `src`, or `dst`, is a node that it removes."""
        ...

    def counts(self, edge: EdgeType) -> tuple[FoundRows, FoundRows]:
        """Return the first row beyond the maximum of each source, and the sources below the minimum.

        `COUNT` says how many edges the source has after the write. Sources come as `id`, without a place;
        those that the write removes are left out.
        """
        ...


class KeyQuestions(SetQuestions, Protocol):
    """Those questions, and what else a load asks about its rows."""

    def folded_count(self, table_key: str) -> int:
        """Return how many ids the rows of a table have."""
        ...

    def cleared(self, table_key: str, names: Sequence[str]) -> dict[str, int]:
        """Return for each of these properties in how many committed rows its value becomes null."""
        ...

    def replaced(self, table_key: str, names: Sequence[str]) -> dict[str, int]:
        """Return for each of these properties how many committed rows with a value are written anew."""
        ...
