"""Other columns for a table, without touching its rows.

R1  One strict `Merge` lists every fragment as it is, under another schema: columns are added, dropped and
    renamed in one commit that writes no data file. A commit of rows since its version makes it fail.
R2  A column that stays keeps its field id, whatever its name: data files are read by field ids, and indexes
    and all that queries derive of the column follow it. A new column gets an id made of a number that the
    graph issues once and for all, so that no column is ever taken for one that was dropped.
R3  Values that have to be worked out, a default for older rows or the same value in a wider type, go to data
    files of their own, one for each fragment; no other column is written.
R4  A column that becomes nullable stays as it is in storage, and so does one that takes the name of another.
    The library has only a `Project` for these, which passes deletions, and they pass it: there the check of
    the version decides, as with indexes. Beside values that are written, such a name is written as well: a
    `Merge` takes it only if every fragment holds the column.
R5  A column that is dropped for good is in no file of the new version: what stays of the files that hold it
    is written anew, in the same commit, fragment by fragment. Fragments, places and row ids stay.

What is written for a fragment, and how, is in `column_work.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata
from lance.schema import LanceSchema

from omnigraph.core.errors import InvariantViolation
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.files.version_file import encode, fields
from omnigraph.storage.tables.column_work import ColumnSource, ColumnWork, has_others
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.stage import staged_on
from omnigraph.storage.tables.staged import StagedWrite, new_files

ISSUED_FROM = 1 << 20  # ids of columns that were there when their table was made are far below
IDS_PER_COLUMN = 2  # a list has an item
_NAME, _ID, _PARENT = 2, 3, 4  # of a field, in the library's messages
_NUMBERS = frozenset({_ID, _PARENT})
_ROOT = (1 << 64) - 1  # the parent of a column


@dataclass(frozen=True, slots=True)
class Reshaping:
    """Other columns for one version of a table: the schema they have, and what is written for them.

    `work` is what each of `fragments` needs; without any nothing is written, and it is `None`.
    """

    target: LanceSchema
    work: ColumnWork | None
    fragments: tuple[int, ...]
    rows: int  # of these fragments
    size: int  # bytes that are read or written for them, about
    is_projected: bool


def plan_reshape(
    handle: SnapshotHandle,
    schema: pa.Schema,
    sources: Mapping[str, ColumnSource],
    *,
    purges: bool = False,
) -> Reshaping:
    """Find out what it takes to give a table exactly the columns of a schema, each from its source.

    `purges` says that what the schema lacks is dropped for good (R5). Nothing is written.

    Raises:
        InvariantViolation: the table lacks a column.
    """
    dataset = handle._dataset
    ids = {name: _field_ids(dataset, source) for name, source in sources.items()}
    taken = [
        name
        for name, source in sources.items()
        if not source.is_written and _takes_a_name(dataset, name, ids[name])
    ]
    work = ColumnWork(
        {name: schema.field(name) for name in sources}, dict(sources), ids, tuple(taken), purges
    )
    parts = [part.metadata for part in dataset.get_fragments()]
    # A `Merge` takes what is written for some fragments; a taken name needs all of them (R4).
    has_work = any(work.is_due(part) for part in parts)
    due = [part for part in parts if work.is_due(part) or (taken and has_work)]
    is_relaxed = any(_is_relaxed(dataset, schema.field(name), source) for name, source in sources.items())
    assert not (is_relaxed and due), "a column that becomes nullable is written anew beside others that are"
    return Reshaping(
        numbered_schema(schema, ids),
        work if due else None,
        tuple(part.id for part in due),
        sum(part.num_rows for part in due),
        sum(work.size(part) for part in due),
        is_relaxed or (not due and bool(taken)),
    )


def stage_reshape(handle: SnapshotHandle, planned: Reshaping) -> StagedWrite:
    """Prepare other columns for a table (R1).

    Raises:
        StorageError: the new values could not be worked out or written.
    """
    written: dict[int, FragmentMetadata] = {}
    for number in planned.fragments:
        assert planned.work is not None, "fragments are written for some work"
        written[number] = planned.work.on(handle, number)
    return _staged(handle, planned, written)


def rows_beside(handle: SnapshotHandle, column: str) -> int:
    """Return the rows of which something is written anew if a column is dropped for good (R5).

    A file that holds nothing of the new version is left out, and nothing is written for it.
    """
    names = [name for name in handle.schema.names if name != column]
    kept = {number for name in names for number in _field_ids(handle._dataset, ColumnSource(name))}
    parts = [part.metadata for part in handle._dataset.get_fragments()]
    return sum(
        part.num_rows
        for part in parts
        if any(has_others(file, kept) and not kept.isdisjoint(file.fields) for file in part.files)
    )


def columns_in_files(handle: SnapshotHandle) -> frozenset[int]:
    """Return the field ids of all columns that data files of a version hold, of those it lacks too."""
    parts = [part.metadata for part in handle._dataset.get_fragments()]
    held = (number for part in parts for file in part.files for number in file.fields)
    return frozenset(number for number in held if number >= 0)


def stage_reshape_fragments(
    handle: SnapshotHandle, planned: Reshaping, descriptions: Mapping[int, str], sums: Sequence[FileSum]
) -> StagedWrite:
    """Prepare the same from fragments that other processes wrote and synced, given by their descriptions.

    Raises:
        InvariantViolation: a fragment is missing.
    """
    if descriptions.keys() != set(planned.fragments):
        raise InvariantViolation(f"{handle.address.open_uri}: not every fragment was written")
    written = {number: FragmentMetadata.from_json(text) for number, text in descriptions.items()}
    staged = _staged(handle, planned, written)
    return replace(staged, files=(), others_files=staged.files, sums=tuple(sums))


def _staged(
    handle: SnapshotHandle, planned: Reshaping, written: Mapping[int, FragmentMetadata]
) -> StagedWrite:
    if planned.is_projected:
        return staged_on(handle, "reshape", LanceOperation.Project(planned.target), ())
    dataset = handle._dataset
    parts = [part.metadata for part in dataset.get_fragments()]
    files = new_files(handle.address, dataset, new=(), updated=written.values())
    operation = LanceOperation.Merge([written.get(part.id, part) for part in parts], planned.target)
    return staged_on(handle, "reshape", operation, files)


def _takes_a_name(dataset: LanceDataset, name: str, ids: Sequence[int]) -> bool:
    """Return whether a column gets a name that another one has in the present version (R4)."""
    field = dataset.lance_schema.field(name)
    return field is not None and field.id() != ids[0]


def _is_relaxed(dataset: LanceDataset, field: "pa.Field[Any]", source: ColumnSource) -> bool:
    """Return whether a column that stays takes nulls from now on (R4)."""
    if source.column is None or source.number is not None:
        return False
    return field.nullable and not dataset.schema.field(source.column).nullable


def numbered_schema(schema: pa.Schema, ids: Mapping[str, Sequence[int]]) -> LanceSchema:
    """Return a schema in the library's form, with these field ids: of each column and then of its item (R2).

    The library's own conversion numbers the columns from zero.
    """
    plain = cast("Any", LanceSchema.from_pyarrow(schema)).__reduce__()[1]
    metadata, messages = plain[0], plain[1:]
    owners: dict[int, str] = {}
    seen: dict[str, int] = {}
    numbered = []
    for message in messages:
        values = dict(fields(memoryview(message)))
        parent = values.get(_PARENT, 0)
        column = bytes(cast("memoryview", values[_NAME])).decode() if parent == _ROOT else owners[int(parent)]
        owners[int(values.get(_ID, 0))] = column
        place = seen[column] = seen.get(column, -1) + 1
        above = _ROOT if place == 0 else ids[column][place - 1]
        kept = [(number, value) for number, value in fields(memoryview(message)) if number not in _NUMBERS]
        numbered.append(encode([*kept, (_ID, ids[column][place]), (_PARENT, above)]))
    return cast("LanceSchema", cast("Any", LanceSchema)._from_protos(metadata, *numbered))


def _field_ids(dataset: LanceDataset, source: ColumnSource) -> list[int]:
    if source.number is not None:
        first = ISSUED_FROM + IDS_PER_COLUMN * source.number
        return [first, first + 1]
    assert source.column is not None, "a column stays, or has a number"
    field = dataset.lance_schema.field(source.column)
    if field is None:
        raise InvariantViolation(f"{dataset.uri} has no column {source.column}")
    return [field.id(), *(child.id() for child in field.children())]
