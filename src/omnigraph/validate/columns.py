"""Rows as columns, with the place in the input that each row came from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.arrays import Mask, Positions
from omnigraph.validate.violations import REFUSED_MAX, Violation, ViolationKind, ViolationLog

Column = Any  # an Arrow array, whole or in chunks: the stubs of pyarrow.compute know one of them at a time
WriteMode = Literal["append", "merge", "overwrite", "delete"]


@dataclass(frozen=True, slots=True)
class TypedRows:
    """Rows of one type, in the order of the input.

    `table` has the columns of the type's table. `flaws` marks, by column, the values that could not be
    converted: they are null in the table, were reported by the conversion, and fail their row.
    `has_fresh_ids` says that every id was made for this write and appears once, so no other row has it.
    `left_out` names the properties that some record did not mention at all, not even as null.
    """

    type: NodeType | EdgeType
    table: pa.Table
    files: npt.NDArray[np.int32]
    lines: npt.NDArray[np.int64]
    flaws: Mapping[str, Mask] = field(default_factory=dict)
    has_fresh_ids: bool = False
    left_out: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        count = self.table.num_rows
        assert len(self.files) == len(self.lines) == count, "every row has a place"

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.table.num_rows

    @property
    def ids(self) -> Column:
        """The id of each row."""
        return self.table.column("id")

    def take(self, positions: Positions) -> "TypedRows":
        """Return the rows at these positions, in that order."""
        return self._choose(self.table.take(positions), positions)

    def filter(self, mask: Mask) -> "TypedRows":
        """Return the rows of a mask; the same rows when it is true for all."""
        return self if mask.all() else self._choose(self.table.filter(pa.array(mask)), mask)

    def in_order(self) -> "TypedRows":
        """Return the rows by file, line and id; the same rows when each has its own line, in order."""
        ahead = np.diff(self.files)
        if bool(np.all((ahead > 0) | ((ahead == 0) & (np.diff(self.lines) > 0)))):
            return self
        return self.take(_order(_places(self)))

    def _choose(self, table: pa.Table, chosen: Mask | Positions) -> "TypedRows":
        flaws = {name: mask[chosen] for name, mask in self.flaws.items()}
        return replace(self, table=table, files=self.files[chosen], lines=self.lines[chosen], flaws=flaws)


@dataclass(frozen=True, slots=True)
class TableChange:
    """What one write does to one table.

    `removed_ids` are ids of committed rows that the write removes, except those that its rows bring back.
    `coalesce` folds the rows by id before anything is checked, as the statements of a mutation are; a record
    of bulk input is checked even when a later one replaces it.
    """

    type: NodeType | EdgeType
    rows: TypedRows | None
    removed_ids: Column
    mode: WriteMode
    coalesce: bool = False


def make_rows(
    type_: NodeType | EdgeType,
    columns: Mapping[str, Column],
    *,
    file: int = 0,
    lines: Sequence[int] | npt.NDArray[np.int64],
    has_fresh_ids: bool = False,
) -> TypedRows:
    """Return rows of one file from their columns; a property that is not given is null."""
    schema = arrow_schema(type_)
    count = len(lines)
    arrays = [columns[item.name] if item.name in columns else pa.nulls(count, item.type) for item in schema]
    return TypedRows(
        type_,
        pa.Table.from_arrays(arrays, schema=schema),
        np.full(count, file, dtype=np.int32),
        np.asarray(lines, dtype=np.int64),
        has_fresh_ids=has_fresh_ids,
    )


def concat_rows(parts: Sequence[TypedRows]) -> TypedRows:
    """Return the rows of one type from several pieces, in order."""
    assert parts, "every type has at least one piece"
    if len(parts) == 1:
        return parts[0]
    flawed = sorted({name for part in parts for name in part.flaws})
    return TypedRows(
        parts[0].type,
        pa.concat_tables([part.table for part in parts]),
        np.concatenate([part.files for part in parts]),
        np.concatenate([part.lines for part in parts]),
        {name: np.concatenate([_flaws(part, name) for part in parts]) for name in flawed},
        has_fresh_ids=all(part.has_fresh_ids for part in parts),
        left_out=frozenset().union(*(part.left_out for part in parts)),
    )


def null_properties(rows: TypedRows) -> frozenset[str]:
    """Return the properties that are null in some of the rows."""
    return frozenset(name for name in rows.type.properties if rows.table.column(name).null_count)


def charge(
    rows: TypedRows,
    positions: Positions,
    log: ViolationLog,
    *,
    kind: ViolationKind,
    message: Callable[[int], str],
    constraint: int = 0,
    violation: type[Violation] = Violation,
) -> None:
    """Report one violation for each position; only the first ones, which the log can keep, get a message."""
    if len(positions) == 0:
        return
    first = first_positions(rows, positions, log.limit)
    ids = rows.ids.take(first).to_pylist()
    if isinstance(rows.type, NodeType):
        log.refuse(rows.type.table_key, _least(rows.ids.take(positions)))
    found = [
        violation(
            kind=kind,
            message=message(int(position)),
            table_key=rows.type.table_key,
            row_id=id_,
            file=int(rows.files[position]),
            line=int(rows.lines[position]),
            file_name=log.file_name(int(rows.files[position])),
            constraint=constraint,
        )
        for position, id_ in zip(first, ids, strict=True)
    ]
    log.extend(found, more=len(positions) - len(found))


def first_positions(rows: TypedRows, positions: Positions, limit: int) -> Positions:
    """Return those of the positions that come first by file, line and id; all of them if within the limit."""
    return positions if len(positions) <= limit else positions[_order(_places(rows, positions), limit)]


def true_positions(mask: Column) -> Positions:
    """Return where a boolean column is true; null is not."""
    return np.flatnonzero(to_mask(mask)).astype(np.int64)


def to_mask(mask: Column) -> Mask:
    """Return a boolean column as numpy; null is false."""
    return np.asarray(pc.fill_null(mask, False), dtype=np.bool_)


def _least(ids: Column) -> list[str | None]:
    """Return the smallest of some ids, as many as a log keeps for refused rows."""
    if len(ids) > REFUSED_MAX:
        whole: Any = pa.table({"id": ids})
        ids = ids.take(pc.select_k_unstable(whole, REFUSED_MAX, [("id", "ascending")]))
    found: list[str | None] = ids.to_pylist()
    return found


def _places(rows: TypedRows, positions: Positions | None = None) -> pa.Table:
    columns: list[Column] = [pa.array(rows.files), pa.array(rows.lines), rows.ids]
    every = pa.Table.from_arrays(columns, names=["file", "line", "id"])
    return every if positions is None else every.take(positions)


def _order(places: pa.Table, limit: int | None = None) -> Positions:
    """Return the rows in order, or the first of them."""
    keys: Any = [(name, "ascending") for name in places.column_names]
    whole: Any = places
    order = pc.sort_indices(whole, keys) if limit is None else pc.select_k_unstable(whole, limit, keys)
    return np.asarray(order, dtype=np.int64)


def _flaws(part: TypedRows, name: str) -> Mask:
    found = part.flaws.get(name)
    return np.zeros(part.count, dtype=np.bool_) if found is None else found
