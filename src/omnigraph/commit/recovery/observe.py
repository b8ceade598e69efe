"""The current state of a dead writer's tables."""

from dataclasses import dataclass

from omnigraph.commit.parts import Parts
from omnigraph.commit.recovery.classify import Classification, FoundTable, HealingMode, classify, mode_of
from omnigraph.commit.recovery.fence import is_layout, without_fences
from omnigraph.commit.sidecar import Sidecar, SidecarTable
from omnigraph.core.errors import StorageError
from omnigraph.history.manifest_rows import PublishedPin
from omnigraph.history.state import ManifestState
from omnigraph.storage.files.transactions import TransactionInfo
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.stage import OPERATION_ID_PROPERTY


@dataclass(frozen=True, slots=True)
class ObservedTable:
    """One table of a sidecar: what was found, and what it means.

    `last` is the newest version up to HEAD that is not a fence.
    """

    table: SidecarTable
    address: TableAddress
    pin: PublishedPin | None
    head: int
    last: int
    classification: Classification

    @property
    def pinned_version(self) -> int:
        """The published version; 0 if the table is not registered."""
        return 0 if self.pin is None else self.pin.version

    @property
    def has_moved(self) -> bool:
        """Whether anything other than fences is ahead of the pin."""
        return self.last > self.pinned_version

    @property
    def is_only_fenced(self) -> bool:
        """Whether fences are all that is ahead of the pin."""
        return not self.has_moved and self.head > self.pinned_version

    @property
    def is_first_touch(self) -> bool:
        """Whether the writer worked on a fork, or made a table, that no pin shows: dropping it is enough."""
        return self.table.is_created if self.pin is None else self.pin.ref != self.table.ref


def observe(parts: Parts, sidecar: Sidecar, state: ManifestState) -> tuple[ObservedTable, ...]:
    """Look at every table of a sidecar and classify it."""
    return tuple(_observe(parts, sidecar, table, state) for table in sidecar.tables)


def _observe(parts: Parts, sidecar: Sidecar, table: SidecarTable, state: ManifestState) -> ObservedTable:
    address = parts.address_of(table.table_path, table.ref)
    pin = state.tables.pins.get(table.identity)
    pinned = 0 if pin is None else pin.version
    if state.tables.is_dead(table.identity):  # dropped since: nothing of it can become visible
        return ObservedTable(table, address, pin, pinned, pinned, Classification.NO_MOVEMENT)
    if pin is not None and pin.ref != table.ref:
        if not _is_ref(parts, address):
            return ObservedTable(table, address, pin, pinned, pinned, Classification.NO_MOVEMENT)
        if pinned != table.expected_version:  # the branch went on without this fork
            head = parts.store.latest_version(address)
            return ObservedTable(table, address, pin, head, head, Classification.UNEXPECTED_MULTISTEP)
    head = _created_head(parts, address) if table.is_created else parts.store.latest_version(address)
    begin = max(pinned, _begin(parts, address)) if table.is_created else pinned
    since = parts.store.transactions(address, range(begin + 1, head + 1))
    made = without_fences(since)
    last = head - (len(since) - len(made))
    if table.is_created and last == begin:  # nothing of the writer's: neither it nor a fence is published
        head = last = pinned
    found = FoundTable(
        head=last,
        pin=pinned,
        head_has_our_uuid=bool(made) and table.transaction_uuid in {None, made[-1].uuid},
        is_ours=tuple(
            sidecar.is_judged_by_numbers or _is_ours(version, sidecar.operation_id) for version in made
        ),
    )
    mode = mode_of(sidecar.writer_kind)
    if sidecar.is_judged_by_numbers and mode is HealingMode.CONFIRMED:
        mode = HealingMode.LOOSE  # no version of it was ever confirmed
    elif mode is HealingMode.CONFIRMED and sidecar.is_staged:
        mode = HealingMode.STRICT  # each table has made its one commit or none
    classification = classify(table, found, sidecar.writer_kind, mode)
    return ObservedTable(table, address, pin, head, last, classification)


def _created_head(parts: Parts, address: TableAddress) -> int:
    """Return the newest version of a table that the writer was to make; 0 if it had not."""
    try:
        return parts.store.latest_version(address)
    except StorageError as error:
        if error.kind != "not_found":
            raise
        return 0


def _begin(parts: Parts, address: TableAddress) -> int:
    """Return the version that a table made as a fork begins with: those up to it are its source's."""
    start = None if address.ref is None else parts.store.ref_start(address)
    return 0 if start is None else start.version


def _is_ref(parts: Parts, address: TableAddress) -> bool:
    """Return whether a ref exists, by its table's own list."""
    return any(ref.name == address.ref for ref in parts.store.list_refs(address))


def ours(parts: Parts, address: TableAddress, operation_id: str, versions: range) -> tuple[bool, ...]:
    """Return for each version whether it is this operation's, or an unmarked layout commit of the library."""
    return tuple(_is_ours(made, operation_id) for made in parts.store.transactions(address, versions))


def _is_ours(made: TransactionInfo, operation_id: str) -> bool:
    """Return whether a version is this operation's, or a layout commit of the library or of a healer."""
    return made.properties.get(OPERATION_ID_PROPERTY) == operation_id or is_layout(made)
