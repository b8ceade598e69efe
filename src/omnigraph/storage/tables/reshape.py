"""Other columns for a table, without touching its rows.

R1  One strict `Merge` lists every fragment as it is, under another schema: columns are added, dropped and
    renamed in one commit that writes no data file. A commit of rows since its version makes it fail.
R2  A column that stays keeps its field id, whatever its name: data files are read by field ids, and indexes
    and all that queries derive of the column follow it. A new column gets an id made of a number that the
    graph issues once and for all, so that no column is ever taken for one that was dropped.
R3  Values that have to be worked out, a default for older rows or the same value in a wider type, go to data
    files of their own, one for each fragment; no other column is written.
R4  A column that becomes nullable stays as it is in storage. The library has only a `Project` for that, which
    passes deletions, and they pass it: there the check of the version decides, as with indexes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata, LanceFragment
from lance.schema import LanceSchema

from omnigraph.core.errors import InvariantViolation
from omnigraph.storage.files.version_file import encode, fields
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.stage import staged_on
from omnigraph.storage.tables.staged import StagedWrite, new_files

ISSUED_FROM = 1 << 20  # ids of columns that were there when their table was made are far below
IDS_PER_COLUMN = 2  # a list has an item
_NAME, _ID, _PARENT = 2, 3, 4  # of a field, in the library's messages
_NUMBERS = frozenset({_ID, _PARENT})
_ROOT = (1 << 64) - 1  # the parent of a column


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """Where a column of the new schema comes from.

    `column` is one of the present version. With a `number` the values are written anew: those of the column
    in the new type, or the one value of `fill` in every row; with neither of these the column is null.
    """

    column: str | None
    number: int | None = None
    fill: "pa.Array[Any] | None" = None

    @property
    def is_written(self) -> bool:
        """Whether the values have to be worked out (R3)."""
        return self.number is not None and (self.column is not None or self.fill is not None)


def stage_reshape(
    handle: SnapshotHandle, schema: pa.Schema, sources: Mapping[str, ColumnSource]
) -> StagedWrite:
    """Prepare other columns for a table: exactly those of a schema, each from its source (R1).

    Raises:
        StorageError: the new values could not be worked out or written.
    """
    dataset = handle._dataset
    ids = {name: _field_ids(dataset, source) for name, source in sources.items()}
    written = [name for name, source in sources.items() if source.is_written]
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    files: tuple[str, ...] = ()
    if written and fragments:
        work = _Written(schema, {name: sources[name] for name in written}, ids)
        with translated(f"write columns of {handle.address.open_uri}"):
            fragments = [work.on(fragment) for fragment in dataset.get_fragments()]
        files = new_files(handle.address, dataset, new=(), updated=fragments)
    target = numbered_schema(schema, ids)
    operation: LanceOperation.BaseOperation = LanceOperation.Merge(fragments, target)
    if any(_is_relaxed(dataset, schema.field(name), source) for name, source in sources.items()):
        assert not files, "a column that becomes nullable is written anew beside others that are"
        operation = LanceOperation.Project(target)
    return staged_on(handle, "reshape", operation, files)


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


class _Written:
    """Columns that are worked out for each fragment of a table."""

    def __init__(
        self, schema: pa.Schema, sources: Mapping[str, ColumnSource], ids: Mapping[str, Sequence[int]]
    ) -> None:
        self._fields = {name: schema.field(name) for name in sources}
        self._sources = sources
        self._ids = ids

    def on(self, fragment: LanceFragment) -> FragmentMetadata:
        """Write the values for the rows of a fragment; return the fragment with its further file."""
        read = sorted({source.column for source in self._sources.values() if source.column is not None})
        metadata, schema = fragment.merge_columns(self._values, columns=read or ["id"])
        given = {
            own: self._ids[name][place]
            for name in self._sources
            for place, own in enumerate(_own_ids(schema, _temporary(name)))
        }
        document = metadata.to_json()
        added = document["files"][-1]
        added["fields"] = [given[number] for number in added["fields"]]
        return FragmentMetadata.from_json(json.dumps(document))

    def _values(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        # Under names of their own: a column may be replaced by one of the same name.
        columns = {_temporary(name): self._column(rows, name) for name in self._sources}
        return pa.RecordBatch.from_pydict(columns)

    def _column(self, rows: pa.RecordBatch, name: str) -> "pa.Array[Any]":
        source, field = self._sources[name], self._fields[name]
        if source.column is not None:
            return cast("pa.Array[Any]", rows[source.column].cast(field.type))
        assert source.fill is not None, "a column that is worked out has a source or a value"
        return source.fill.take(pa.array([0] * rows.num_rows))


def _temporary(name: str) -> str:
    return f"__new_{name}"


def _own_ids(schema: LanceSchema, name: str) -> Iterator[int]:
    field = schema.field(name)
    assert field is not None, "the column was just written"
    yield field.id()
    yield from (child.id() for child in field.children())
