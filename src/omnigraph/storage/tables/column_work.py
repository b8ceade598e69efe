"""What is written for the fragments of a table that gets other columns: here, or in a task of Spark.

V1  Values are taken from the rows that are there. In the place of a row that was deleted a file of a required
    column may hold a null, over which the library stumbles where it reads all places.
V2  Where something is dropped for good, a file that holds a column which the new schema lacks is left out of
    its fragment: the values of the dropped one may be there under an older type too. What else it holds is
    written to a new file first, under the same field ids, place by place, so that fragments, deletions and
    row ids stay as they are. In the place of a deleted row stands its neighbour: nobody reads it.
V3  Row ids that are kept in a file are copied with the rest of it.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.fragment import DataFile, FragmentMetadata, LanceFragment, write_fragments
from lance.schema import LanceSchema

from omnigraph.core.errors import InvariantViolation
from omnigraph.storage.files.data_file import data_file_name
from omnigraph.storage.tables.carried import copy_hidden
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.pinned import BATCH_ROWS

_WIDTH = 8  # bytes of a value, where its type does not say more
_OFFSET = np.uint64(0xFFFFFFFF)  # the place of a row in its fragment, in the address of the row


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


@dataclass(frozen=True, slots=True)
class ColumnWork:
    """The columns of a table after a change of schema, and what has to be written for them.

    By the new names: types, sources, field ids (of a column and of its item), and which of the columns that
    stay take the name of another one. `purges` says that something is dropped for good.
    """

    fields: Mapping[str, "pa.Field[Any]"]
    sources: Mapping[str, ColumnSource]
    ids: Mapping[str, Sequence[int]]
    taken: tuple[str, ...]
    purges: bool = False

    @property
    def written(self) -> tuple[str, ...]:
        """The columns whose values are worked out for every row."""
        return tuple(name for name, source in self.sources.items() if source.is_written)

    @property
    def copies(self) -> bool:
        """Whether anything of what is written is taken from files that are there."""
        return self.purges or any(self.sources[name].column is not None for name in self.written)

    def is_due(self, fragment: FragmentMetadata) -> bool:
        """Say whether a fragment needs a file for other reasons than the name of a column."""
        return bool(self.written) or bool(self._left_out(fragment))

    def size(self, fragment: FragmentMetadata) -> int:
        """Return about how many bytes are written for a fragment, or read to write what stays."""
        fills = (self.sources[name].fill for name in self.written)
        width = sum(_WIDTH if fill is None else max(_WIDTH, fill.nbytes) for fill in fills)
        files = (file.file_size_bytes or 0 for file in self._left_out(fragment))
        return width * fragment.num_rows + sum(files)

    def on(self, handle: SnapshotHandle, number: int) -> FragmentMetadata:
        """Write what a fragment needs; return it with the files that it has from then on.

        Raises:
            StorageError: the store failed.
        """
        dataset = handle._dataset
        fragment = dataset.get_fragment(number)
        if fragment is None:
            raise InvariantViolation(f"{dataset.uri} has no fragment {number}")
        with translated(f"write columns of {handle.address.open_uri}"):
            return self._without_gone(handle, fragment, self._with_values(fragment))

    def _left_out(self, fragment: FragmentMetadata) -> list[DataFile]:
        """Return the data files that hold what no file may hold any more (V2)."""
        if not self.purges:
            return []
        kept = {number for ids in self.ids.values() for number in ids}
        return [file for file in fragment.files if has_others(file, kept)]

    def _with_values(self, fragment: LanceFragment) -> FragmentMetadata:
        """Write the values for the rows of a fragment; return the fragment with its further file."""
        held = {number for file in fragment.metadata.files for number in file.fields}
        lacking = [name for name in self.taken if self.ids[name][0] not in held]
        names = [*self.written, *lacking]
        if not names:
            return fragment.metadata
        read = sorted({source.column for name in self.written if (source := self.sources[name]).column})
        rows = fragment.to_table(columns=["id", *(name for name in read if name != "id")])  # V1

        def values(batch: pa.RecordBatch) -> pa.RecordBatch:
            places = pc.index_in(batch["id"], value_set=rows["id"])
            # Under names of their own: a column may be replaced by one of the same name.
            columns = {_temporary(name): self._column(rows, name, places) for name in names}
            return pa.RecordBatch.from_pydict(columns)

        metadata, schema = fragment.merge_columns(values, columns=["id"])
        given = {
            own: self.ids[name][place]
            for name in names
            for place, own in enumerate(_own_ids(schema, _temporary(name)))
        }
        return _renumbered(metadata, given)

    def _column(self, rows: pa.Table, name: str, places: "pa.Array[Any]") -> "pa.Array[Any]":
        source, field = self.sources[name], self.fields[name]
        if source.is_written and source.column is not None:
            return rows[source.column].take(places).cast(field.type).combine_chunks()
        fill = pa.nulls(1, field.type) if source.fill is None else source.fill
        return fill.take(pa.array([0] * len(places)))

    def _without_gone(
        self, handle: SnapshotHandle, fragment: LanceFragment, metadata: FragmentMetadata
    ) -> FragmentMetadata:
        """Leave out the files that hold what is dropped for good, with what else they hold written anew."""
        left_out = self._left_out(fragment.metadata)
        if not left_out:
            return metadata
        names = {data_file_name(file) for file in left_out}
        held = {number for file in left_out for number in file.fields}
        stays: dict[str, Sequence[int]] = {
            source.column: self.ids[name]
            for name, source in self.sources.items()
            if source.number is None and source.column is not None and not held.isdisjoint(self.ids[name])
        }
        files = [file for file in metadata.files if data_file_name(file) not in names]
        if stays:
            files.append(_copied(handle._dataset, fragment, stays))
        hidden = (copy_hidden(handle, file) for file in left_out)  # V3
        files += [file for file in hidden if file is not None]
        if not files:
            raise InvariantViolation(f"{handle._dataset.uri}: fragment {metadata.id} would have no file")
        metadata.files = files
        return metadata


def has_others(file: DataFile, kept: Collection[int]) -> bool:
    """Return whether a data file holds columns besides some, given by their field ids; hidden ones apart."""
    return any(number >= 0 and number not in kept for number in file.fields)


def _copied(dataset: LanceDataset, fragment: LanceFragment, stays: Mapping[str, Sequence[int]]) -> DataFile:
    """Write columns of a fragment to a file of their own, under the field ids that they have (V2)."""
    schema = pa.schema([dataset.schema.field(name) for name in stays])
    rows = pa.RecordBatchReader.from_batches(schema, _by_place(fragment, schema))
    count = fragment.metadata.physical_rows
    written = write_fragments(rows, dataset, schema=schema, mode="overwrite", max_rows_per_file=count)
    assert isinstance(written, list)
    (made,) = written
    if made.physical_rows != count:
        raise InvariantViolation(f"{dataset.uri}: {made.physical_rows} rows were written instead of {count}")
    own = LanceSchema.from_pyarrow(schema)
    given = {
        number: ids[place] for name, ids in stays.items() for place, number in enumerate(_own_ids(own, name))
    }
    (file,) = _renumbered(made, given).files
    return file


def _by_place(fragment: LanceFragment, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a fragment with a row in every place: for a deleted one, its neighbour (V2)."""
    scanner = fragment.scanner(columns=schema.names, with_row_address=True, batch_size=BATCH_ROWS)
    place, last = 0, None
    for batch in scanner.to_batches():
        if not batch.num_rows:
            continue
        offsets = np.asarray(batch["_rowaddr"]) & _OFFSET
        end = int(offsets[-1]) + 1
        rows = batch.select(schema.names)
        yield rows.take(np.searchsorted(offsets, np.arange(place, end)))
        place, last = end, rows.slice(rows.num_rows - 1)
    missing = fragment.metadata.physical_rows - place
    if missing:
        if last is None:
            raise InvariantViolation(f"fragment {fragment.fragment_id} is listed without a row")
        yield last.take(np.zeros(missing, np.int64))


def _renumbered(fragment: FragmentMetadata, given: Mapping[int, int]) -> FragmentMetadata:
    """Return a fragment whose last file names its columns by other field ids."""
    document = fragment.to_json()
    added = document["files"][-1]
    added["fields"] = [given[number] for number in added["fields"]]
    return FragmentMetadata.from_json(json.dumps(document))


def _temporary(name: str) -> str:
    return f"__new_{name}"


def _own_ids(schema: LanceSchema, name: str) -> Iterator[int]:
    field = schema.field(name)
    assert field is not None, "the column was just written"
    yield field.id()
    yield from (child.id() for child in field.children())
