"""The audit: one row for every finished recovery."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from omnigraph.commit.parts import RECOVERIES_DATASET, Parts
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.commit.sidecar import Outcome, Sidecar
from omnigraph.core.errors import OmnigraphError, StorageError
from omnigraph.core.failpoint import hit
from omnigraph.core.temporal import moment_of_micros
from omnigraph.core.values import read_json
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.files.added_files import files_between
from omnigraph.storage.files.sums import FileSum, decode_sums, encode_sums
from omnigraph.storage.versions.newest import write_mark

_FIELDS: "list[pa.Field[pa.DataType]]" = [
    pa.field("graph_commit_id", pa.utf8()),
    pa.field("recovery_kind", pa.utf8(), nullable=False),
    pa.field("recovery_for_actor", pa.utf8()),
    pa.field("operation_id", pa.utf8(), nullable=False),
    pa.field("sidecar_writer_kind", pa.utf8()),
    pa.field("per_table_outcomes_json", pa.utf8(), nullable=False),
    pa.field("created_at", pa.timestamp("us"), nullable=False),
]
AUDIT_SCHEMA = pa.schema(_FIELDS)
SUMS_NOTE = f"{RECOVERIES_DATASET}/_sums"


@dataclass(frozen=True, slots=True)
class RecoveryRecord:
    """One finished recovery."""

    operation_id: str
    recovery_kind: RecoveryKind
    graph_commit_id: str | None
    recovery_for_actor: str | None
    writer_kind: str | None
    created_at_micros: int
    outcomes: tuple[Outcome, ...]

    @property
    def created_at(self) -> datetime:
        """When it ended, in UTC."""
        return moment_of_micros(self.created_at_micros)


def record(
    parts: Parts, sidecar: Sidecar, kind: RecoveryKind, commit_id: str, outcomes: Sequence[Outcome]
) -> None:
    """Write the row of a finished recovery, unless it exists: a second pass adds none."""
    hit("recovery.record_audit")
    if any(found.operation_id == sidecar.operation_id for found in read_records(parts)):
        return
    _append(
        parts,
        graph_commit_id=commit_id,
        recovery_kind=kind.value,
        recovery_for_actor=sidecar.actor_id,
        operation_id=sidecar.operation_id,
        sidecar_writer_kind=sidecar.writer_kind.value,
        per_table_outcomes_json=json.dumps([asdict(outcome) for outcome in outcomes]),
    )


def record_quarantine(parts: Parts, quarantine_id: str, outcome: Outcome) -> None:
    """Write the row of a dataset whose hollow versions were moved aside."""
    _append(
        parts,
        recovery_kind=RecoveryKind.VERSION_QUARANTINED.value,
        operation_id=quarantine_id,
        per_table_outcomes_json=json.dumps([asdict(outcome)]),
    )


def read_records(parts: Parts) -> list[RecoveryRecord]:
    """Return every finished recovery, newest first."""
    table = parts.audit.scan(parts.audit_address)
    if table is None:
        return []
    micros = [int(str(at)) for at in table["created_at"].cast(pa.int64()).to_pylist()]
    records = [_decode(row, at) for row, at in zip(table.to_pylist(), micros, strict=True)]
    return sorted(records, key=lambda found: (found.created_at_micros, found.operation_id), reverse=True)


def _append(parts: Parts, **values: str | None) -> None:
    row = dict.fromkeys(AUDIT_SCHEMA.names) | values | {"created_at": parts.clock()}
    address = parts.audit_address
    parts.audit.append(address, pa.Table.from_pylist([row], schema=AUDIT_SCHEMA))
    newest = parts.store.latest_version(address)
    files = files_between(parts.store, address, older=None, newer=newest)
    if parts.syncer.is_active:
        parts.syncer.sync(files, stage="table")
    _note_sums(parts, files)
    if address.local_path is not None:
        write_mark(address.local_path, newest, is_synced=parts.syncer.is_active)


def noted_audit_sums(adapter: StorageAdapter) -> tuple[FileSum, ...]:
    """Return what the last row noted about the files of the audit; nothing where no such note can be read."""
    try:
        lines = read_json(adapter.read_text_if_exists(SUMS_NOTE) or "[]")
        return tuple(decode_sums([str(line) for line in lines]))
    except (OmnigraphError, ValueError, TypeError):
        return ()


def _note_sums(parts: Parts, files: Sequence[str]) -> None:
    """Note what the files of the audit hold, for `verify`: no commit records them.

    Files are never changed, so a note of another process that is newer or older than ours is true as well.
    """
    try:
        lines = encode_sums(parts.summer.sum(files))
        if lines is not None:
            parts.adapter.write_text(SUMS_NOTE, json.dumps(lines))
    except StorageError as error:  # the row is there, which is what counts
        parts.warn(f"checksums of the recovery audit could not be noted: {error}")


def _decode(row: dict[str, Any], created_at: int) -> RecoveryRecord:
    outcomes = tuple(Outcome(**outcome) for outcome in json.loads(row["per_table_outcomes_json"]))
    return RecoveryRecord(
        operation_id=row["operation_id"],
        recovery_kind=RecoveryKind(row["recovery_kind"]),
        graph_commit_id=row["graph_commit_id"],
        recovery_for_actor=row["recovery_for_actor"],
        writer_kind=row["sidecar_writer_kind"],
        created_at_micros=created_at,
        outcomes=outcomes,
    )
