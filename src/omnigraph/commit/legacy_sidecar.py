"""Sidecars of version 1, which builds of stamps 1 to 3 wrote: without ids, and without confirmations.

D3  They are read only in a graph that has lineage datasets of those builds; elsewhere nobody can have written
    one. What recovery adds, its plan and on an object store its claim, is kept in the same form.
D4  Nothing in a table says which writer made a version, so versions are judged by their numbers alone, and a
    merge is judged like other writers of several versions: no version of it was ever confirmed.
D5  The ids that recovery needs are derived from that of the operation: every pass publishes the same commit.
"""

import hashlib
import json
from dataclasses import dataclass, fields
from typing import Any

from omnigraph.commit.sidecar import OF_SCHEMA_APPLIES, Sidecar

FORMAT = 1
_MEMBERS = {
    *("schema_version", "operation_id", "writer_kind", "started_at", "branch", "actor_id", "tables"),
    *("merge_source_commit_id", *OF_SCHEMA_APPLIES),
}
_ADDED = {"recovery_plan": None, "owner": None}  # by recovery
_NOT_RECORDED = {
    "host": "unknown",
    "boot_id": "unknown",
    "pid": 0,
    "writer_epoch": None,
    "writer_id": None,
    "read_set": [],
    "pointer_updates": [],
}
_OF_TABLES = {"transaction_uuid": None, "confirmed_version": None}
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TIME_LENGTH, _LENGTH = 10, 26  # characters of a ULID


@dataclass(frozen=True, slots=True)
class LegacySidecar(Sidecar):
    """An unfinished write of a build of stamps 1 to 3."""

    @property
    def is_judged_by_numbers(self) -> bool:
        """Whether versions cannot be told apart by who made them: here they cannot (D4)."""
        return True

    def to_text(self) -> str:
        """Return the file's text, in the form that it was read in."""
        document = json.loads(Sidecar.to_text(self))
        document = {key: value for key, value in document.items() if key in _MEMBERS | _ADDED.keys()}
        document |= {"schema_version": FORMAT}
        for name, unset in _ADDED.items():
            if document.get(name) == unset:
                document.pop(name, None)
        for table in document["tables"]:
            for name in _OF_TABLES:
                del table[name]
        return json.dumps(document, indent=1, ensure_ascii=False)


def completed(document: dict[str, Any]) -> dict[str, Any] | None:
    """Return a document of version 1 with all members of later ones; `None` if it is none."""
    if not _MEMBERS <= document.keys() <= _MEMBERS | _ADDED.keys():
        return None
    tables, operation_id = document["tables"], document["operation_id"]
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        return None
    if any(not _OF_TABLES.keys().isdisjoint(table) for table in tables) or not isinstance(operation_id, str):
        return None
    return {
        **_NOT_RECORDED,
        **_ADDED,
        **document,
        "branch_ref": document["branch"],  # refs had the names of branches
        "tables": [table | _OF_TABLES for table in tables],
        "graph_commit_id": _derived(operation_id, "commit"),
        "recovery_commit_id": _derived(operation_id, "recovery"),
    }


def as_legacy(sidecar: Sidecar) -> LegacySidecar:
    """Return a sidecar that was read from a completed document as what it is."""
    return LegacySidecar(**{field.name: getattr(sidecar, field.name) for field in fields(sidecar)})


def _derived(operation_id: str, purpose: str) -> str:
    """Return the ULID of something that belongs to an operation, always the same (D5)."""
    digest = int.from_bytes(hashlib.sha256(f"{operation_id}:{purpose}".encode()).digest(), "big")
    random = "".join(_ALPHABET[digest >> 5 * place & 31] for place in range(_LENGTH - _TIME_LENGTH))
    return operation_id[:_TIME_LENGTH] + random
