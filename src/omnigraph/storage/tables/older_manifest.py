"""What only manifests of earlier formats need: their rows with where those came from, and what they lack.

M6  Every change here is refused if another one of its kind came first: two of an annotation, two of a column.
"""

from typing import final

import pyarrow as pa
from lance import LanceDataset

from omnigraph.core.errors import InvariantViolation
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.manifest_table import (
    ROW_ADDRESS,
    ManifestHandle,
    damage_is_told,
    refused_as_contention,
)
from omnigraph.storage.tables.table import TableStore

CREATED_AT = "_row_created_at_version"  # the version that a row came with; compactions and updates keep it


@final
class OlderManifests:
    """Raw operations on manifests of earlier formats; safe to share between threads."""

    def __init__(self, store: TableStore) -> None:
        """Take the store that counts what is read."""
        self._store = store

    def read(self, handle: ManifestHandle, schema: pa.Schema) -> pa.Table:
        """Return all rows with `CREATED_AT` and `ROW_ADDRESS`; a column that the manifest lacks is null.

        Raises:
            InvariantViolation: its rows have no stable ids, so nobody knows which version each came with.
            StorageError: it cannot be read.
        """
        dataset = handle._dataset
        if not dataset.has_stable_row_ids:
            raise InvariantViolation(f"{handle.address.open_uri}: the rows have no stable row ids")
        there = [name for name in schema.names if name in dataset.schema.names]
        with damage_is_told(handle.address), translated(f"read {handle.address.open_uri}"):
            rows = dataset.scanner(columns=[*there, CREATED_AT], with_row_address=True).to_table()
        self._store.count_io(dataset)
        for field in schema:
            if field.name not in there:
                rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        return rows.select([*schema.names, CREATED_AT, ROW_ADDRESS])

    def has_field_metadata(self, handle: ManifestHandle, column: str, metadata: dict[bytes, bytes]) -> bool:
        """Say whether a column has all of some metadata."""
        found = handle._dataset.schema.field(column).metadata or {}
        return metadata.items() <= found.items()

    def annotate(self, handle: ManifestHandle, column: str, metadata: dict[bytes, bytes]) -> int:
        """Set the metadata of a column; return the version that came out.

        Raises:
            RowLevelCasContention: another process changed metadata first; nothing of ours landed.
            StorageError: it failed; whether it landed is unknown.
        """
        dataset: LanceDataset = handle._dataset.checkout_version(handle.version)
        values: dict[str, str | None] = {key.decode(): value.decode() for key, value in metadata.items()}
        with refused_as_contention(handle, "annotate"):
            # Inline: field metadata has no staged form; two of them refuse each other.
            dataset.update_field_metadata({column: values})
        self._store.count_io(dataset)
        return dataset.version

    def lacks(self, handle: ManifestHandle, field: "pa.Field[pa.DataType]") -> bool:
        """Say whether the manifest has no such column."""
        return field.name not in handle._dataset.schema.names

    def add_column(self, handle: ManifestHandle, field: "pa.Field[pa.DataType]") -> int:
        """Add a column of nulls, of which no file is written; return the version that came out.

        Raises:
            RowLevelCasContention: another commit came first; nothing of ours landed.
            StorageError: it failed; whether it landed is unknown.
        """
        dataset: LanceDataset = handle._dataset.checkout_version(handle.version)
        with refused_as_contention(handle, "add a column to"):
            # Inline: two additions, and one and a publish, refuse each other.
            dataset.add_columns(pa.schema([field]))
        self._store.count_io(dataset)
        return dataset.version
