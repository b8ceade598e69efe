"""What a publish can change, the rows that say so, and the checksums of the manifest's own files.

A version cannot contain the checksum of the file it is stored in, so each publish looks one step back. Only
what the newest publish of a branch wrote is not recorded, for lack of a successor.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from omnigraph.core.errors import (
    ExpectedVersionMismatch,
    InvariantViolation,
    SchemaChanged,
    StorageError,
)
from omnigraph.history.commits import CommitOperation
from omnigraph.history.fold import TableEntry, TableStates
from omnigraph.history.identity import MAIN, TableIdentity
from omnigraph.history.manifest_rows import (
    TOMBSTONE,
    ManifestRow,
    PublishedPin,
    pin_row,
    registration_row,
    schema_row,
)
from omnigraph.history.state import ManifestState
from omnigraph.storage.files.added_files import files_between
from omnigraph.storage.files.sums import FileSum, Summer
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.manifest_table import ManifestHandle
from omnigraph.storage.tables.table import TableStore


@dataclass(frozen=True, slots=True)
class SetSchema:
    """The accepted schema from here on: as a document, and as it was written.

    `follows` is the publish that brought the schema that is replaced.
    """

    ir_text: str
    source: str
    follows: int
    upgraded_to: str | None = None  # the commit of main whose schema was taken over


@dataclass(frozen=True, slots=True)
class RegisterTable:
    """A new lifetime with its first pin."""

    identity: TableIdentity
    table_key: str
    pin: PublishedPin


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Another name for a lifetime."""

    identity: TableIdentity
    expected_key: str
    new_key: str


@dataclass(frozen=True, slots=True)
class UpdateTable:
    """A new pin."""

    identity: TableIdentity
    table_key: str
    pin: PublishedPin


@dataclass(frozen=True, slots=True)
class TombstoneTable:
    """The end of a lifetime; `version` is its last pin plus one."""

    identity: TableIdentity
    table_key: str
    version: int


PinChange = RegisterTable | UpdateTable
ManifestChange = SetSchema | RegisterTable | RenameTable | UpdateTable | TombstoneTable


@dataclass(frozen=True, slots=True)
class Expectation:
    """The version that a table must be published at; 0 means that it does not exist.

    A branch that adopts the version of another ref may show an old number with other rows: where the
    transaction is known, it must match too.
    """

    table_key: str
    version: int
    transaction_uuid: str | None = None

    @staticmethod
    def of(entry: TableEntry) -> "Expectation":
        """Return the expectation that a table is where a snapshot shows it."""
        return Expectation(entry.table_key, entry.version, entry.pin.transaction_uuid)

    def is_met(self, tables: TableStates, identity: TableIdentity) -> bool:
        """Return whether the published state is the expected one."""
        if published_version(tables, identity) != self.version:
            return False
        pin = tables.pins.get(identity)
        return self.transaction_uuid is None or pin is None or pin.transaction_uuid == self.transaction_uuid


@dataclass(frozen=True, slots=True)
class LineageIntent:
    """The commit that a publish will add: its id and time are minted once, before the first attempt."""

    graph_commit_id: str
    actor_id: str | None
    created_at: int
    merged_parent_commit_id: str | None = None
    message: str | None = None
    operations: tuple[CommitOperation, ...] = ()
    merged_history: Mapping[str, object] | None = None  # what a merge records of its source's history
    sums: tuple[FileSum, ...] = ()  # of the files that it adds to tables


def pinned_change(entry: TableEntry, pin: PublishedPin) -> PinChange:
    """Return what pins a table: the first pin of one that no branch knew registers it."""
    kind = UpdateTable if entry.version else RegisterTable
    return kind(entry.identity, entry.table_key, pin)


def check_expectations(tables: TableStates, expected: Mapping[TableIdentity, Expectation]) -> None:
    """Compare every expectation with the published state.

    Raises:
        ExpectedVersionMismatch: for the first table that is at another version.
    """
    for identity, expectation in sorted(expected.items(), key=lambda item: item[1].table_key):
        if not expectation.is_met(tables, identity):
            actual = published_version(tables, identity)
            raise ExpectedVersionMismatch(
                table_key=expectation.table_key, expected=expectation.version, actual=actual
            )


def check_schema(state: ManifestState, changes: Iterable[ManifestChange]) -> None:
    """Compare the schema that a change was planned on with the published one.

    Raises:
        SchemaChanged: another change of the schema came in between.
    """
    for change in changes:
        if isinstance(change, SetSchema) and change.follows != state.schema.published_at:
            raise SchemaChanged(state.branch.name)


def published_version(tables: TableStates, identity: TableIdentity) -> int:
    """Return the version a lifetime is published at: 0 if unknown, that of its tombstone if it has ended."""
    if tables.is_dead(identity):
        return tables.tombstones[identity][0]
    pin = tables.pins.get(identity)
    return 0 if pin is None else pin.version


def change_rows(tables: TableStates, changes: Iterable[ManifestChange], *, at: int) -> list[ManifestRow]:
    """Return the rows of a batch of changes: registrations and renames first.

    Raises:
        InvariantViolation: the batch contradicts itself or the published state.
    """
    order = {SetSchema: 0, RegisterTable: 1, RenameTable: 2, UpdateTable: 3, TombstoneTable: 4}
    rows: list[ManifestRow] = []
    touched: set[tuple[str, TableIdentity]] = set()
    names = {i: found.table_key for i, found in tables.registrations.items() if not tables.is_dead(i)}
    for change in sorted(changes, key=lambda change: order[type(change)]):
        if not isinstance(change, SetSchema):
            _refuse_second(change, touched)
        match change:
            case SetSchema(ir_text, source, _, upgraded_to):
                rows.append(schema_row(ir_text, at=at, source=source, upgraded_to=upgraded_to))
            case RegisterTable(identity, table_key, pin):
                known = names.get(identity, "dropped" if identity in tables.registrations else None)
                _require(known is None, f"{table_key} is registered under an identity in use ({known})")
                names[identity] = table_key
                rows += [
                    registration_row(identity, table_key, at=at),
                    pin_row(identity, table_key, pin, at=at),
                ]
            case RenameTable(identity, expected_key, new_key):
                _require(identity in names, f"{expected_key} is renamed but not registered")
                current = names[identity]
                _require(current == expected_key, f"{expected_key} is renamed but is called {current}")
                rows.append(registration_row(identity, new_key, at=at))
            case UpdateTable(identity, table_key, pin):
                _require(identity in names, f"{table_key} is updated but not registered")
                rows += _update_rows(tables, change, at)
            case TombstoneTable(identity, table_key, version):
                _require(identity in names, f"{table_key} is dropped but not registered")
                rows.append(_tombstone_row(identity, table_key, version, at))
    return rows


def _update_rows(tables: TableStates, change: UpdateTable, at: int) -> list[ManifestRow]:
    current = tables.pins.get(change.identity)
    if current is not None and current.names_same(change.pin):
        if current.is_same(change.pin):
            return []
        raise ExpectedVersionMismatch(
            table_key=change.table_key, expected=change.pin.version, actual=current.version
        )
    pin = change.pin
    if current is not None and pin.upkeep_version == 0:
        pin = replace(pin, upkeep_version=current.upkeep_version)
    return [pin_row(change.identity, change.table_key, pin, at=at)]


def _tombstone_row(identity: TableIdentity, table_key: str, version: int, at: int) -> ManifestRow:
    row = pin_row(identity, table_key, PublishedPin(version, None, 0, None, MAIN), at=at)
    return row | {
        "object_id": f"{TOMBSTONE}:{identity.object_part}:{version}",
        "object_type": TOMBSTONE,
        "metadata": None,
        "row_count": None,
    }


def _refuse_second(
    change: RegisterTable | RenameTable | UpdateTable | TombstoneTable,
    touched: set[tuple[str, TableIdentity]],
) -> None:
    binding = "name" if isinstance(change, RenameTable) else "version"
    key = (binding, change.identity)
    _require(key not in touched, f"{change.identity.object_part} is changed twice in one publish")
    touched.add(key)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise InvariantViolation(f"publish: {message}")


class ManifestSums:
    """What this process has published and is not recorded yet; used under the publish lock."""

    def __init__(self, store: TableStore, summer: Summer, warn: Callable[[str], None]) -> None:
        """Take what opens manifests, and what computes checksums."""
        self._store = store
        self._summer = summer
        self._warn = warn
        self._last: dict[TableAddress, tuple[int, tuple[FileSum, ...]]] = {}

    def remember(self, before: ManifestHandle, after: ManifestHandle) -> None:
        """Compute the checksums of what a publish wrote, while its files are as they were written."""
        if self._summer.is_active and after.version == before.version + 1:
            self._last[after.address] = (after.version, self._sum(lambda: after.files))

    def of(self, address: TableAddress, version: int) -> tuple[FileSum, ...]:
        """Return the checksums of what a publish of this process wrote, if it was its last one there."""
        last, sums = self._last.get(address, (0, ()))
        return sums if last == version else ()

    def of_predecessor(self, handle: ManifestHandle, sequence: int) -> tuple[FileSum, ...]:
        """Return the checksums of everything since the publish numbered `sequence`, itself included.

        A manifest whose checksums cannot be computed is a warning: the publish itself reads what it needs and
        reports what it cannot.
        """
        if not self._summer.is_active:
            return ()
        version, sums = self._last.get(handle.address, (0, ()))
        if version == handle.version == sequence:
            return sums
        return self._sum(lambda: self._since(handle, sequence - 1))

    def _sum(self, files: Callable[[], tuple[str, ...]]) -> tuple[FileSum, ...]:
        try:
            return self._summer.sum(files())
        except StorageError as error:
            self._warn(f"checksums of the manifest are not recorded: {error}")
            return ()

    def _since(self, handle: ManifestHandle, older: int) -> tuple[str, ...]:
        """Return the files of the versions above one; of all versions if that one is gone."""
        newer = handle.version
        try:
            return files_between(self._store, handle.address, older=older if older > 0 else None, newer=newer)
        except StorageError as error:
            if error.kind != "not_found":
                raise
            return files_between(self._store, handle.address, older=None, newer=newer)
