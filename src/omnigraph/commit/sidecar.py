"""The recovery sidecar: what a writer is about to do, written before its first effect.

D1  A sidecar is durable before any HEAD it names moves, and is deleted only after its outcome is visible or
    undone.
D2  What cannot be understood is loud and stays where it is (`sidecar_reader`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum

import orjson

from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.commit.schema_change import SchemaChange
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import BranchIdentity, TableIdentity, stored_name

RECOVERY_DIR = "__recovery"
FORMAT = 2  # the first one that a release wrote
FORMAT_OF_STORES = 3  # on object stores: with the writer, and with whose turn it is
FORMAT_OF_SCHEMAS = 4  # of a write that changes the schema: with that change, and with the two of stores
OF_STORES = frozenset({"writer_id", "owner"})  # the members that only this form and later ones have
OF_SCHEMAS = frozenset({"schema_change"})
MISSING_IN = {  # the members that a form lacks
    FORMAT: OF_STORES | OF_SCHEMAS,
    FORMAT_OF_STORES: OF_SCHEMAS,
    FORMAT_OF_SCHEMAS: frozenset[str](),
}
SPELLINGS = {"ref": "table_branch"}  # members whose name in the file is another one


class WriterKind(StrEnum):
    """Who wrote a sidecar, as stored."""

    MUTATION = "Mutation"
    LOAD = "Load"
    SCHEMA_APPLY = "SchemaApply"
    BRANCH_MERGE = "BranchMerge"
    ENSURE_INDICES = "EnsureIndices"
    OPTIMIZE = "Optimize"
    REPAIR = "Repair"

    @property
    def wire(self) -> str:
        """The spelling of results and JSON."""
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in self.value).lstrip("_")


@dataclass(frozen=True, slots=True)
class SidecarTable:
    """A table whose HEAD will advance: where it was, and what our commit will be."""

    table_key: str
    stable_table_id: int
    table_incarnation_id: int
    table_path: str
    ref: str | None
    expected_version: int
    post_commit_pin: int
    transaction_uuid: str | None = None
    confirmed_version: int | None = None

    @staticmethod
    def of(entry: TableEntry, transaction_uuid: str | None = None) -> "SidecarTable":
        """Return a table as it is pinned, about to make one commit."""
        return SidecarTable(
            table_key=entry.table_key,
            stable_table_id=entry.identity.stable_table_id,
            table_incarnation_id=entry.identity.table_incarnation_id,
            table_path=entry.location,
            ref=entry.pin.ref,
            expected_version=entry.version,
            post_commit_pin=entry.version + 1,
            transaction_uuid=transaction_uuid,
        )

    @property
    def identity(self) -> TableIdentity:
        """The lifetime of the table."""
        return TableIdentity(self.stable_table_id, self.table_incarnation_id)

    @property
    def is_created(self) -> bool:
        """Whether the write makes the table: no branch knew it before."""
        return self.expected_version == 0


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
class PointerUpdate:
    """A table that a merge repoints to an existing version: its HEAD does not move."""

    table_key: str
    stable_table_id: int
    table_incarnation_id: int
    version: int
    ref: str | None
    row_count: int

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

    kind: RecoveryKind
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One unfinished write.

    On an object store `writer_id` is the writer that began it, and `owner` whoever may go on with it: that
    writer until it has given up or is dead, then a healer that has claimed it. None means that anybody may.
    """

    operation_id: str
    writer_kind: WriterKind
    started_at: int
    branch: BranchIdentity
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
    pointer_updates: tuple[PointerUpdate, ...] = ()
    merge_source_commit_id: str | None = None
    writer_id: str | None = None
    owner: str | None = None
    schema_change: SchemaChange | None = None

    @property
    def name(self) -> str:
        """The graph-relative name of the file."""
        return f"{RECOVERY_DIR}/{self.operation_id}.json"

    @property
    def format(self) -> int:
        """The oldest form that can say all of it: what a build cannot finish, it must not read."""
        if self.schema_change is not None:
            return FORMAT_OF_SCHEMAS
        is_of_store = self.writer_id is not None or self.owner is not None
        return FORMAT_OF_STORES if is_of_store else FORMAT

    @property
    def is_judged_by_numbers(self) -> bool:
        """Whether versions cannot be told apart by who made them: only in graphs of earlier formats."""
        return False

    def names(self, identity: TableIdentity, ref: str | None) -> bool:
        """Return whether a table's HEAD on a ref is one that advances."""
        return any((table.identity, table.ref) == (identity, ref) for table in self.tables)

    def with_plan(self, plan: RecoveryPlan) -> "Sidecar":
        """Return the sidecar with what recovery is about to do."""
        return replace(self, recovery_plan=plan)

    def owned_by(self, owner: str | None) -> "Sidecar":
        """Return the sidecar with another owner."""
        return replace(self, owner=owner)

    @property
    def is_staged(self) -> bool:
        """Whether each table makes one commit, and which one that is was known before."""
        return all(table.transaction_uuid is not None for table in self.tables)

    def with_confirmed(self, versions: Mapping[TableIdentity, int]) -> "Sidecar":
        """Return the sidecar with the versions at which its tables are complete."""
        tables = (replace(table, confirmed_version=versions[table.identity]) for table in self.tables)
        return replace(self, tables=tuple(tables))

    def to_text(self) -> str:
        """Return the file's text."""
        document: dict[str, object] = {"schema_version": self.format}
        left_out = MISSING_IN[self.format]
        for name, value in _members(self).items():
            if name in left_out:
                continue
            document[name] = value
            if name == "branch":
                document |= {"branch": stored_name(self.branch.name), "branch_ref": self.branch.ref}
        form = orjson.OPT_INDENT_2 | orjson.OPT_PASSTHROUGH_DATACLASS
        return orjson.dumps(document | OF_SCHEMA_APPLIES, default=_members, option=form).decode()


def _members(value: object) -> dict[str, object]:
    """Return what a value holds, as the file spells it; every write makes two of these texts."""
    assert is_dataclass(value)
    return {SPELLINGS.get(member.name, member.name): getattr(value, member.name) for member in fields(value)}


# Members that were meant for changes of schema, with the values that every writer leaves in them.
OF_SCHEMA_APPLIES: dict[str, object] = {
    "additional_registrations": [],
    "renames": [],
    "tombstones": [],
    "target_schema_ir_hash": None,
}
