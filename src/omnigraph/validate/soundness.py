"""Arrow values from outside: proven sound before anything else looks at them.

A file, or a table in memory, may contain bytes that Arrow trusts blindly: offsets that lead out of a buffer,
indices without an entry, a wrong count of nulls, texts that are not UTF-8. Any computation on such values
gives a wrong answer, or ends the process.

A1  Values are validated in full, batch by batch, before any other Arrow function gets them.
A2  A text that is not UTF-8 is a violation of its row, as in a text file; the other rows are read, up to the
    one at which the log has enough (V4 of `violations`).
A3  Any other damage is an error that names the first row that shows it: what is left of such a batch means
    nothing, so leaving out rows does not help.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.arrays import Positions
from omnigraph.core.cancellation import check_cancelled
from omnigraph.validate.values import quote
from omnigraph.validate.violations import Violation, ViolationKind, ViolationLog

_BYTES: dict[pa.DataType, pa.DataType] = {
    pa.utf8(): pa.binary(),
    pa.large_utf8(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
_TEXTS = {as_bytes: text for text, as_bytes in _BYTES.items()}
_ROWS_AT_ONCE = 1_024  # examined one by one, if one of them is not sound
_PLAIN: dict[pa.DataType, pa.DataType] = {
    pa.string_view(): pa.large_utf8(),  # long enough for any batch
    pa.binary_view(): pa.large_binary(),
}


def sound_rows(
    table: pa.Table,
    type_: NodeType | EdgeType,
    *,
    file: int,
    file_name: str | None,
    log: ViolationLog,
    first_line: int = 1,
    check: Callable[[pa.Table], None] | None = None,
) -> tuple[pa.Table, Positions]:
    """Return the rows of a table whose values are sound, and their lines; the others are in the log (A2).

    `check` sees the values once they are proven, and before any of them is copied. Views become plain values,
    which every Arrow function accepts.

    Raises:
        ValidationError: the values are damaged (A3).
    """
    log.open_file(file, file_name)
    place = _CheckedPlace(type_.table_key, file, file_name)
    refused, count = _unsound(table, place, first_line, most=log.enough)
    if count < table.num_rows:
        table = table.slice(0, count)
    if check is not None:
        check(table)
    table = _without_views(table)
    lines = _lines(first_line, table.num_rows)
    if not refused:
        return table, lines
    for row, name in islice(refused.items(), log.limit):
        log.add(place.violation(int(lines[row]), f"invalid UTF-8 in column {quote(name)}"))
    log.extend((), more=max(0, len(refused) - log.limit))
    kept = np.ones(table.num_rows, dtype=np.bool_)
    kept[list(refused)] = False
    try:
        return table.filter(pa.array(kept)), lines[kept]
    except pa.ArrowNotImplementedError:
        row, name = next(iter(refused.items()))
        place.raise_damage(int(lines[row]), f"invalid UTF-8 in column {quote(name)}, {table[name].type}")
        raise


def _lines(first: int, count: int) -> Positions:
    try:
        return np.arange(first, first + count, dtype=np.int64)
    except ValueError as error:  # what numpy says when asked for more than any machine has
        raise MemoryError(str(error)) from error


def refuse_damage(table: pa.Table, table_key: str, *, file: int, file_name: str | None) -> None:
    """Make sure that a table can be copied and written; texts that are not UTF-8 are left to its reader.

    Raises:
        ValidationError: the values are damaged (A3).
    """
    _unsound(table, _CheckedPlace(table_key, file, file_name), 1, most=1)


class _CheckedPlace:
    """Where the rows of a table come from."""

    def __init__(self, table_key: str, file: int, file_name: str | None) -> None:
        self._table_key, self._file, self._file_name = table_key, file, file_name

    def violation(self, line: int, message: str) -> Violation:
        return Violation(
            ViolationKind.RECORD, message, self._table_key, None, self._file, line, file_name=self._file_name
        )

    def raise_damage(self, line: int, message: str) -> None:
        only = ViolationLog()
        only.open_file(self._file, self._file_name)
        only.add(self.violation(line, message))
        only.raise_if_any()


def _unsound(
    table: pa.Table, place: _CheckedPlace, first_line: int, *, most: int
) -> tuple[dict[int, str], int]:
    """Return the rows with a text that is not UTF-8, each with the first such column (A1, A2, A3).

    The second value is how many rows this is said of: those up to the last of `most` such rows of a column.
    """
    if any(len(column) != table.num_rows for column in table.columns):
        place.raise_damage(first_line, "the columns are damaged: they have different lengths")
    found: dict[int, str] = {}
    count = table.num_rows
    for name, column in zip(table.column_names, table.columns, strict=True):
        row, left = 0, most
        for chunk in column.chunks:
            for at, reason in _flaws(chunk, left):
                if reason is not None:
                    place.raise_damage(first_line + row + at, f"column {quote(name)} is damaged: {reason}")
                found.setdefault(row + at, name)
                left -= 1
                if not left:
                    count = min(count, row + at + 1)
            row += len(chunk)
    return {row: name for row, name in sorted(found.items()) if row < count}, count


def _flaws(array: Any, most: int) -> list[tuple[int, str | None]]:  # noqa: ANN401 - any array of Arrow
    """Return the rows that are not sound: one with the reason for damage, or those with an invalid text."""
    reason = _flaw(_seen_as(array, with_bytes=False))
    if reason is None:
        return []
    seen = _seen_as(array, with_bytes=True)
    damage = _flaw(seen)
    if damage is not None:
        return [(_first_damaged(seen), damage)]
    if most <= 0:
        return []
    return [(row, None) for row in _undecodable(seen, most)] or [(0, reason)]  # a text that no row refers to


def _undecodable(seen: Any, most: int) -> list[int]:  # noqa: ANN401 - any array of Arrow
    """Return the first rows with a text that is not UTF-8; each text of a dictionary is examined once."""
    if pa.types.is_dictionary(seen.type):
        used = pc.unique(seen.indices).drop_null()  # in the order of the rows
        texts = seen.dictionary
        if pa.types.is_binary_view(texts.type):  # which Arrow does not take from
            texts = texts.cast(pa.large_binary())
        bad = used.take(pa.array(_undecodable(texts.take(used), most), pa.int64()))
        places = np.flatnonzero(np.asarray(pc.is_in(seen.indices, bad)))
        return [int(place) for place in places[:most]]
    found: list[int] = []
    for start in range(0, len(seen), _ROWS_AT_ONCE):
        if len(found) >= most:
            break
        check_cancelled()
        piece = seen.slice(start, _ROWS_AT_ONCE)
        if _is_suspect(piece):
            found += [start + row for row, item in enumerate(piece) if not _is_decodable(item.as_py())]
    return found[:most]


def _is_suspect(piece: Any) -> bool:  # noqa: ANN401 - any array of Arrow
    """Return whether a text of some rows may not be UTF-8: Arrow examines many faster than Python one."""
    while _is_list(piece.type):
        piece = piece.flatten()
    if pa.types.is_dictionary(piece.type):
        return True
    return piece.type in _TEXTS and _flaw(piece.view(_TEXTS[piece.type])) is not None


def _without_views(table: pa.Table) -> pa.Table:
    """Return a table with its view columns made plain, byte for byte: an invalid text stays as it is."""
    for place, column in enumerate(table.columns):
        plain = _PLAIN.get(column.type)
        if plain is not None:
            copies: Any = [_copied(chunk) for chunk in column.chunks] or [pa.array([], plain)]
            values = pa.chunked_array(copies)
            table = table.set_column(place, table.field(place).with_type(plain), values)
    return table


def _copied(views: Any) -> Any:  # noqa: ANN401 - any array of Arrow
    values = views.view(pa.binary_view()).cast(pa.large_binary())
    return values.view(_PLAIN[views.type])


def _first_damaged(array: Any) -> int:  # noqa: ANN401 - any array of Arrow
    """Return the first row that shows the damage, or the very first row if no single one does."""
    sound, damaged = 0, len(array)
    while damaged - sound > 1:
        middle = (sound + damaged) // 2
        if _flaw(array.slice(0, middle)) is None:
            sound = middle
        else:
            damaged = middle
    is_shown = damaged > 0 and _flaw(array.slice(damaged - 1, 1)) is not None
    return damaged - 1 if is_shown else 0


def _is_decodable(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_decodable, value))
    if not isinstance(value, bytes):
        return True
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _flaw(array: Any) -> str | None:  # noqa: ANN401 - any array of Arrow
    """Return what Arrow says is wrong with an array."""
    try:
        array.validate(full=True)
    except pa.ArrowException as error:
        return str(error).partition("\n")[0]
    return None


def _seen_as(array: Any, *, with_bytes: bool) -> Any:  # noqa: ANN401 - any array of Arrow
    """Return the same memory under the types that it is validated as.

    Arrow calls a `date64` with a time of day invalid; here it is a valid point in time.
    """
    plain = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    type_ = _validated_type(plain.type, with_bytes=with_bytes)
    return plain if type_ == plain.type else plain.view(type_)


def _validated_type(type_: Any, *, with_bytes: bool) -> Any:  # noqa: ANN401 - any type of Arrow
    if with_bytes and type_ in _BYTES:
        return _BYTES[type_]
    if pa.types.is_date64(type_):
        return pa.int64()
    if pa.types.is_dictionary(type_):
        values = _validated_type(type_.value_type, with_bytes=with_bytes)
        return pa.dictionary(type_.index_type, values, ordered=type_.ordered)
    if _is_list(type_):
        values = _validated_type(type_.value_type, with_bytes=with_bytes)
        item = type_.value_field.with_type(values).with_nullable(True)  # nulls are left to the value checks
        if pa.types.is_fixed_size_list(type_):
            return pa.list_(item, type_.list_size)
        return pa.large_list(item) if pa.types.is_large_list(type_) else pa.list_(item)
    return type_


def _is_list(type_: Any) -> bool:  # noqa: ANN401 - any type of Arrow
    return pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)
