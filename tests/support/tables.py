"""A table on disk, and the steps that tests of the storage package take on it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from omnigraph.storage.tables.filter import RowFilter
from omnigraph.storage.tables.manifest_table import (
    ROW_ADDRESS,
    ManifestHandle,
    ManifestTable,
)
from omnigraph.storage.tables.stage import CommittedTable, IndexRequest, StagedWrite, TableStager
from omnigraph.storage.tables.table import SnapshotHandle, TableAddress, TableStore

PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}


def table_schema(*fields: "pa.Field[Any]") -> pa.Schema:
    """Return a schema with a primary key `id` before the given fields."""
    return pa.schema([pa.field("id", pa.utf8(), nullable=False, metadata=PRIMARY_KEY), *fields])


SCHEMA = table_schema(pa.field("rank", pa.int64()))
ROW_COLUMNS = ["id", "rank", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def rows(ids: Sequence[str], rank: int | None = 0) -> pa.Table:
    """Return rows of `SCHEMA`, all of one rank."""
    return pa.table({"id": list(ids), "rank": [rank] * len(ids)}, schema=SCHEMA)


def names(count: int, prefix: str = "n") -> list[str]:
    """Return so many ids."""
    return [f"{prefix}{number:06d}" for number in range(count)]


def put_rows(manifest: ManifestTable, handle: ManifestHandle, rows: pa.Table, commit_id: str = "x") -> int:
    """Publish rows in place of those that have the same keys; return the version."""
    found = manifest.read(handle, columns=["object_id"], with_places=True).to_pylist()
    places = {row["object_id"]: row[ROW_ADDRESS] for row in found}
    keys = rows["object_id"].to_pylist()
    order = sorted(range(len(keys)), key=lambda number: keys[number] not in places)
    replaced = [places[keys[number]] for number in order if keys[number] in places]
    return manifest.publish(handle, rows.take(order), commit_id=commit_id, replaced=replaced).version


class Workbench:
    """One table in a directory of its own, made with the staged writes it serves to test."""

    def __init__(self, directory: Path, schema: pa.Schema = SCHEMA, *, name: str = "table") -> None:
        self.address = TableAddress(str(directory / name))
        self.store = TableStore()
        self.stager = TableStager(self.store)
        if not self.store.exists(self.address):
            self.commit(self.stager.stage_create_table(self.address, schema))

    def head(self) -> SnapshotHandle:
        """Return the newest version."""
        return self.store.open_head(self.address)

    def commit(self, staged: StagedWrite) -> CommittedTable:
        """Commit as some operation."""
        return self.stager.commit_staged(staged, operation_id="OPERATION", writer_kind="mutation")

    def append(self, table: pa.Table) -> CommittedTable:
        """Append to the newest version."""
        return self.commit(self.stager.stage_append(self.head(), table))

    def upsert(self, table: pa.Table) -> CommittedTable:
        """Upsert into the newest version."""
        return self.commit(self.stager.stage_upsert(self.head(), table))

    def delete(self, ids: Sequence[str]) -> CommittedTable:
        """Delete rows that exist from the newest version."""
        staged = self.stager.stage_delete(self.head(), ids)
        assert staged is not None
        return self.commit(staged)

    def index(self, *requests: IndexRequest) -> CommittedTable:
        """Build indexes on the newest version."""
        staged, pending = self.stager.stage_create_indices(self.head(), requests)
        assert staged is not None
        assert not pending
        return self.commit(staged)

    def ids(self, handle: SnapshotHandle | None = None, filter_: RowFilter | None = None) -> list[str]:
        """Return the ids of the rows that match."""
        found = self.store.scan(handle or self.head(), columns=["id"], filter=filter_)
        return cast("list[str]", found["id"].to_pylist())

    def content(self, handle: SnapshotHandle | None = None) -> dict[str, dict[str, object]]:
        """Return every row with its row id and its versions, by id."""
        found = self.store.scan(handle or self.head(), columns=ROW_COLUMNS)
        return {row["id"]: row for row in found.to_pylist()}
