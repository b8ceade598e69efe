"""The recovery sidecar: what a writer is about to do, written before its first effect.

D1  A sidecar is durable before any HEAD it names moves, and goes only after its outcome is visible or undone.
D2  What cannot be understood is loud and stays where it is.
"""

import json
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any

from omnigraph.core.errors import SidecarCorrupt, SidecarTooNew
from omnigraph.history.identity import TableIdentity

RECOVERY_DIR = "__recovery"
FORMAT = 2
CONFIRMATION_FORMAT = 2  # the first format whose merges carry confirmation; fixed, never derived


class WriterKind(StrEnum):
    """Who wrote a sidecar, as stored."""

    MUTATION = "Mutation"
    LOAD = "Load"
    SCHEMA_APPLY = "SchemaApply"
    BRANCH_MERGE = "BranchMerge"
    ENSURE_INDICES = "EnsureIndices"
    OPTIMIZE = "Optimize"

    @property
    def wire(self) -> str:
        """The spelling of results and JSON."""
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in self.value).lstrip("_")


@dataclass(frozen=True, slots=True)
class SidecarTable:
    """A table whose HEAD will advance: where it stood, and what our commit will be."""

    table_key: str
    stable_table_id: int
    table_incarnation_id: int
    table_path: str
    table_branch: str | None
    expected_version: int
    post_commit_pin: int
    transaction_uuid: str | None = None
    confirmed_version: int | None = None

    @property
    def identity(self) -> TableIdentity:
        """The lifetime of the table."""
        return TableIdentity(self.stable_table_id, self.table_incarnation_id)


@dataclass(frozen=True, slots=True)
class ReadTable:
    """A table that the write was validated against and leaves alone: it must not have moved either."""

    table_key: str
    stable_table_id: int
    table_incarnation_id: int
    expected_version: int

    @property
    def identity(self) -> TableIdentity:
        """The lifetime of the table."""
        return TableIdentity(self.stable_table_id, self.table_incarnation_id)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What recovery did with one table."""

    table_key: str
    from_version: int
    to_version: int


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """What recovery decided, written before its first effect so that a second one says the same."""

    kind: str
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One unfinished write."""

    operation_id: str
    writer_kind: WriterKind
    started_at: int
    branch: str | None
    branch_ref: str | None
    actor_id: str | None
    graph_commit_id: str
    recovery_commit_id: str
    tables: tuple[SidecarTable, ...]
    host: str
    boot_id: str
    pid: int
    read_set: tuple[ReadTable, ...] = ()
    writer_epoch: int | None = None
    recovery_plan: RecoveryPlan | None = None
    schema_version: int = FORMAT

    @property
    def name(self) -> str:
        """The graph-relative name of the file."""
        return f"{RECOVERY_DIR}/{self.operation_id}.json"

    def with_plan(self, plan: RecoveryPlan) -> "Sidecar":
        """Return the sidecar with what recovery is about to do."""
        return replace(self, recovery_plan=plan)

    def to_text(self) -> str:
        """Return the file's text."""
        document = asdict(self) | _OF_MERGES | _OF_SCHEMA_APPLIES
        return json.dumps(document, indent=1, ensure_ascii=False)


# What a file says besides, and how every other kind of writer leaves it.
_OF_MERGES: dict[str, object] = {"pointer_updates": [], "merge_source_commit_id": None}
_OF_SCHEMA_APPLIES: dict[str, object] = {
    "additional_registrations": [],
    "renames": [],
    "tombstones": [],
    "target_schema_ir_hash": None,
}
_FIELDS = {field.name for field in fields(Sidecar)} | _OF_MERGES.keys() | _OF_SCHEMA_APPLIES.keys()


def read_sidecar(name: str, text: str) -> Sidecar:
    """Return the sidecar of a file.

    Raises:
        SidecarTooNew: a newer build wrote it.
        SidecarCorrupt: it is not a sidecar, or contradicts itself (D2).
    """
    try:
        document = json.loads(text)
        version = document["schema_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise SidecarCorrupt(name, f"no JSON object with a schema_version ({error!r:.80})") from error
    if not isinstance(version, int):
        raise SidecarCorrupt(name, "schema_version is not a number")
    if version > FORMAT:
        raise SidecarTooNew(name, version)
    try:
        sidecar = _decode(document)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise SidecarCorrupt(name, f"{error!r:.120}") from error
    _check(name, sidecar)
    return sidecar


def _decode(document: dict[str, Any]) -> Sidecar:
    if document.keys() != _FIELDS:
        raise ValueError(f"missing or unknown fields: {sorted(document.keys() ^ _FIELDS)}")
    kind = WriterKind(document["writer_kind"])
    _refuse_foreign(document, _OF_MERGES, kind, WriterKind.BRANCH_MERGE)
    _refuse_foreign(document, _OF_SCHEMA_APPLIES, kind, WriterKind.SCHEMA_APPLY)
    plan = document["recovery_plan"]
    return Sidecar(
        operation_id=_text(document, "operation_id"),
        writer_kind=kind,
        started_at=int(document["started_at"]),
        branch=document["branch"],
        branch_ref=document["branch_ref"],
        actor_id=document["actor_id"],
        graph_commit_id=_text(document, "graph_commit_id"),
        recovery_commit_id=_text(document, "recovery_commit_id"),
        tables=tuple(SidecarTable(**table) for table in document["tables"]),
        host=_text(document, "host"),
        boot_id=_text(document, "boot_id"),
        pid=int(document["pid"]),
        read_set=tuple(ReadTable(**table) for table in document["read_set"]),
        writer_epoch=document["writer_epoch"],
        recovery_plan=None
        if plan is None
        else RecoveryPlan(plan["kind"], tuple(Outcome(**outcome) for outcome in plan["outcomes"])),
        schema_version=document["schema_version"],
    )


def _refuse_foreign(
    document: dict[str, Any], unset: dict[str, object], kind: WriterKind, owner: WriterKind
) -> None:
    """Refuse a field that only another kind of writer sets."""
    if kind is not owner and any(document[key] != value for key, value in unset.items()):
        raise ValueError(f"a {kind} sets none of {', '.join(unset)}")


def _text(document: dict[str, Any], key: str) -> str:
    value = document[key]
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} is not a text")
    return value


def _check(name: str, sidecar: Sidecar) -> None:
    if name.rsplit("/", 1)[-1] != f"{sidecar.operation_id}.json":
        raise SidecarCorrupt(name, f"it belongs to operation {sidecar.operation_id}")
    identities = [table.identity for table in sidecar.tables]
    if len(set(identities)) != len(identities):
        raise SidecarCorrupt(name, "a table is listed twice")
    for table in sidecar.tables:
        if table.table_path != table.identity.location(table.table_key):
            raise SidecarCorrupt(name, f"{table.table_path} is not the path of {table.table_key}")
        if table.confirmed_version is not None and sidecar.writer_kind is not WriterKind.BRANCH_MERGE:
            raise SidecarCorrupt(name, "only a merge confirms versions")
