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
R5  Values are taken from the rows that are there. In the place of a row that was deleted a file of a required
    column may hold a null, over which the library stumbles where it reads all places.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
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
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    is_written = any(source.is_written for source in sources.values()) and bool(fragments)
    files: tuple[str, ...] = ()
    if is_written:
        work = _Written(dataset, schema, sources, ids)
        with translated(f"write columns of {handle.address.open_uri}"):
            fragments = [work.on(fragment) for fragment in dataset.get_fragments()]
        files = new_files(handle.address, dataset, new=(), updated=fragments)
    target = numbered_schema(schema, ids)
    operation: LanceOperation.BaseOperation = LanceOperation.Merge(fragments, target)
    if any(_is_relaxed(dataset, schema.field(name), source) for name, source in sources.items()):
        assert not files, "a column that becomes nullable is written anew beside others that are"
        operation = LanceOperation.Project(target)
    elif not is_written and any(_takes_a_name(dataset, name, own) for name, own in ids.items()):
        operation = LanceOperation.Project(target)
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


class _Written:
    """Columns that are worked out for each fragment of a table."""

    def __init__(
        self,
        dataset: LanceDataset,
        schema: pa.Schema,
        sources: Mapping[str, ColumnSource],
        ids: Mapping[str, Sequence[int]],
    ) -> None:
        self._fields = {name: schema.field(name) for name in sources}
        self._sources = sources
        self._ids = ids
        self._written = [name for name, source in sources.items() if source.is_written]
        self._taken = [
            name for name in sources if name not in self._written and _takes_a_name(dataset, name, ids[name])
        ]

    def on(self, fragment: LanceFragment) -> FragmentMetadata:
        """Write the values for the rows of a fragment; return the fragment with its further file."""
        held = {number for file in fragment.metadata.files for number in file.fields}
        lacking = [name for name in self._taken if self._ids[name][0] not in held]  # R4
        names = [*self._written, *lacking]
        read = sorted({source.column for name in self._written if (source := self._sources[name]).column})
        rows = fragment.to_table(columns=["id", *(name for name in read if name != "id")])  # R5

        def values(batch: pa.RecordBatch) -> pa.RecordBatch:
            places = pc.index_in(batch["id"], value_set=rows["id"])
            # Under names of their own: a column may be replaced by one of the same name.
            columns = {_temporary(name): self._column(rows, name, places) for name in names}
            return pa.RecordBatch.from_pydict(columns)

        metadata, schema = fragment.merge_columns(values, columns=["id"])
        given = {
            own: self._ids[name][place]
            for name in names
            for place, own in enumerate(_own_ids(schema, _temporary(name)))
        }
        document = metadata.to_json()
        added = document["files"][-1]
        added["fields"] = [given[number] for number in added["fields"]]
        return FragmentMetadata.from_json(json.dumps(document))

    def _column(self, rows: pa.Table, name: str, places: "pa.Array[Any]") -> "pa.Array[Any]":
        source, field = self._sources[name], self._fields[name]
        if source.is_written and source.column is not None:
            return rows[source.column].take(places).cast(field.type).combine_chunks()
        fill = pa.nulls(1, field.type) if source.fill is None else source.fill
        return fill.take(pa.array([0] * len(places)))


def _temporary(name: str) -> str:
    return f"__new_{name}"


def _own_ids(schema: LanceSchema, name: str) -> Iterator[int]:
    field = schema.field(name)
    assert field is not None, "the column was just written"
    yield field.id()
    yield from (child.id() for child in field.children())
