"""From fragments written elsewhere to a staged write, checked against the table they were written for."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.core.errors import InvariantViolation
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.tables.fragments import WrittenFragment
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.stage import TableStager
from omnigraph.storage.tables.staged import StagedWrite
from omnigraph.validate.columns import WriteMode


@dataclass(frozen=True, slots=True)
class StagedFragments:
    """What one task wrote into one table, and what it assumed about that table."""

    table_key: str
    read_version: int
    schema_fingerprint: str
    fragments: tuple[WrittenFragment, ...]
    rows: int
    task: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """The committed rows that written ones replace: fragments that are now empty, and new deletions.

    `sums` are those of the deletion files.
    """

    removed: tuple[int, ...] = ()
    updated: tuple[str, ...] = ()
    rows: int = 0
    sums: tuple[FileSum, ...] = ()


NOTHING_REPLACED = Replaced()


def fingerprint(schema: pa.Schema) -> str:
    """Return what two processes compare to know that they write the same columns."""
    return hashlib.sha256(schema.serialize().to_pybytes()).hexdigest()


def stage_written(
    stager: TableStager,
    handle: SnapshotHandle,
    schema: pa.Schema,
    parts: Sequence[StagedFragments],
    *,
    mode: WriteMode,
    replaced: Replaced = NOTHING_REPLACED,
) -> StagedWrite:
    """Return one staged write of everything that tasks wrote into a table.

    Raises:
        InvariantViolation: a task wrote for another version, or for other columns.
    """
    expected = fingerprint(schema)
    for part in parts:
        if part.read_version != handle.version or part.schema_fingerprint != expected:
            raise InvariantViolation(
                f"task {part.task} wrote {part.table_key} for version {part.read_version} "
                f"with schema {part.schema_fingerprint[:12]}, not for version {handle.version} "
                f"with schema {expected[:12]}"
            )
    texts = [fragment.description for part in parts for fragment in part.fragments]
    if mode == "overwrite":
        staged = stager.stage_overwrite_fragments(handle, schema, texts)
    elif mode == "merge":
        staged = stager.stage_upsert_fragments(
            handle, texts, removed=replaced.removed, updated=replaced.updated, replaced_rows=replaced.rows
        )
    else:
        staged = stager.stage_fragments(handle, texts)
    sums = [item for part in parts for fragment in part.fragments for item in fragment.sums]
    return replace(staged, sums=(*sums, *replaced.sums))
