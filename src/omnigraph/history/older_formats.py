"""What a manifest below stamp 4 says, in the rows of stamp 4: for readers, and for the step that writes them.

F1  One function makes the rows. A reader folds them, the migration writes them: before and after it a branch
    shows the same tables, the same commits and the same past.
F2  The same manifest gives the same rows in the same order, whoever makes them, and however often.
F3  Once the manifest has lineage of its own, the datasets that had it before are not asked: nothing is to be
    done. The one exception is a table row without `published_at`: a build of an earlier format has published
    beside the migration, and what it left is brought up like the rest.
F4  In those formats a graph had one schema. A branch that is brought up later than main gets that one, also
    if main has been given another since.
"""

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.core.errors import InvariantViolation, NotFoundError
from omnigraph.history.commits import CommitLog, GraphCommit, lineage_row
from omnigraph.history.contract import SCHEMA_IR
from omnigraph.history.fold import greatest, where_equal, where_not_in, where_null, where_one_of
from omnigraph.history.identity import BranchIdentity
from omnigraph.history.legacy_lineage import LegacyLineage
from omnigraph.history.manifest_rows import (
    COMMIT,
    HEAD,
    MANIFEST_DIR,
    READ_COLUMNS,
    SCHEMA,
    SCHEMA_OF_MANIFEST,
    TABLE_KINDS,
    TABLE_VERSION,
    ManifestRow,
    head_row,
    rows_table,
    schema_row,
)
from omnigraph.history.state import ManifestState
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.object_store import StorageAdapter, open_adapter
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.manifest_table import ROW_ADDRESS, ManifestHandle, ManifestTable
from omnigraph.storage.tables.older_manifest import CREATED_AT

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Conversion:
    """The rows that a manifest lacks at stamp 4, and the addresses of those that they replace."""

    rows: "Sequence[ManifestRow]" = ()
    replaced: "Sequence[int]" = ()


class OlderFormats:
    """Reads manifests of earlier formats of one graph."""

    def __init__(
        self, root: GraphRoot, manifest: ManifestTable, adapter: StorageAdapter | None = None
    ) -> None:
        """Take the graph, the raw access to its manifest, and its control files if they are open."""
        self._root = root
        self._manifest = manifest
        self._adapter = adapter or open_adapter(root, Durability.PROCESS)
        self._lineage = LegacyLineage(root, manifest.store, self._adapter)

    def state(self, branch: BranchIdentity, handle: ManifestHandle, stamp: int) -> ManifestState:
        """Return what a branch shows, as its migration would leave it (F1).

        Raises:
            StorageError: the manifest or its lineage cannot be read.
            InvariantViolation: rows contradict each other.
        """
        found = self.read(handle)
        added = self.conversion(branch, found)
        kept = where_not_in(found, rows_table(list(added.rows))) if added.rows else found
        rows = pa.concat_tables(
            [kept.select(READ_COLUMNS), rows_table(list(added.rows)).select(READ_COLUMNS)]
        )
        state = ManifestState(branch, 0).with_rows(
            rows, version=handle.version, fragments=handle.fragments({})
        )
        return replace(state, stamp=stamp)

    def read(self, handle: ManifestHandle) -> pa.Table:
        """Return all rows, each with its address and the version that it came with."""
        return self._manifest.older.read(handle, SCHEMA_OF_MANIFEST)

    def conversion(self, branch: BranchIdentity, found: pa.Table) -> Conversion:
        """Return what is missing for a branch to be of stamp 4 (F2, F3)."""
        if has_lineage(found) and not _unnumbered(found).num_rows:
            return Conversion()
        return convert(found, branch, self._lineage.commits(branch.ref), self._schema_text(branch))

    def _schema_text(self, branch: BranchIdentity) -> str:
        """Return the schema of a branch: that of its time, though main may have another one since (F4)."""
        if not branch.is_main:
            main = self.read(self._manifest.open_fresh(TableAddress(self._root.child(MANIFEST_DIR))))
            schemas = where_equal(main, "object_type", SCHEMA).sort_by("published_at")["metadata"]
            if len(schemas):
                return str(schemas[0].as_py())
        text = self._adapter.read_text_if_exists(SCHEMA_IR)
        if text is None:
            raise NotFoundError(f"{SCHEMA_IR} is missing: put the schema files back")
        return text


def has_lineage(found: pa.Table) -> bool:
    """Return whether a manifest has commits of its own: those that lay elsewhere no longer count (F3)."""
    return bool(where_equal(found, "object_type", COMMIT).num_rows)


def convert(
    found: pa.Table, branch: BranchIdentity, commits: "Sequence[GraphCommit]", schema_text: str
) -> Conversion:
    """Return the rows that a manifest lacks, given its commits in the order of their ids (F2)."""
    tables = [_numbered(row) for row in _unnumbered(found).sort_by("object_id").to_pylist()]
    known = where_equal(found, "object_type", COMMIT)
    ids = set(known["object_id"].to_pylist())
    added = [lineage_row(commit) for commit in commits if commit.graph_commit_id not in ids]
    head = CommitLog().with_rows(known.select(READ_COLUMNS)).with_rows(rows_table(added)).head
    old_head = where_equal(found, "object_id", f"{HEAD}:{branch.name}").to_pylist()
    heads = [] if head is None else [head_row(branch.name, head.graph_commit_id, head.parent_commit_id)]
    if old_head and heads and old_head[0]["metadata"] == heads[0]["metadata"]:
        heads, old_head = [], []
    newest = head.manifest_version if head is not None else _newest(found)
    has_schema = where_equal(found, "object_type", SCHEMA).num_rows > 0
    schemas = [] if has_schema else [schema_row(schema_text, at=newest)]
    replaced = [row.pop(ROW_ADDRESS) for row in tables] + [row[ROW_ADDRESS] for row in old_head]
    return Conversion([*heads, *tables, *added, *schemas], replaced)


def _unnumbered(found: pa.Table) -> pa.Table:
    """Return the table rows that do not say which publish they came with."""
    return where_null(where_one_of(found, "object_type", TABLE_KINDS), "published_at")


def _numbered(row: ManifestRow) -> ManifestRow:
    """Return a table row with the version that it was inserted in, under its own id."""
    created = row.pop(CREATED_AT)
    if created is None:
        raise InvariantViolation(f"manifest row {row['object_id']!r}: nothing says when it was published")
    row["published_at"] = created
    if row["object_type"] == TABLE_VERSION:
        row["metadata"] = _with_branch(row["metadata"], row["table_branch"])
    return row


def _with_branch(metadata: str | None, ref: str | None) -> str:
    """Return the metadata of a pin with the branch that published it: refs had the names of branches."""
    members = {} if metadata is None else json.loads(metadata)
    if metadata is not None and "branch" in members:
        return metadata
    return json.dumps(members | {"branch": ref}, separators=(",", ":"), ensure_ascii=False)


def _newest(found: pa.Table) -> int:
    """Return the newest version that a row came with."""
    return greatest(found, CREATED_AT) if found.num_rows else 1
