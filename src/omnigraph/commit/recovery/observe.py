"""A dead writer's tables as they are now."""

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.commit.parts import Parts
from omnigraph.commit.recovery.classify import Classification, Found, classify, mode_of
from omnigraph.commit.sidecar import Sidecar, SidecarTable
from omnigraph.history.manifest_rows import Pin
from omnigraph.history.state import ManifestState
from omnigraph.storage.handle import TableAddress

OPERATION_PROPERTY = "omnigraph.operation_id"
_LAYOUT_OPERATIONS = frozenset({"reserve", "rewrite", "create_index", "config"})


@dataclass(frozen=True, slots=True)
class ObservedTable:
    """One table of a sidecar: what was found, and what it means."""

    table: SidecarTable
    address: TableAddress
    pin: Pin | None
    head: int
    classification: Classification

    @property
    def pinned_version(self) -> int:
        """The published version; 0 when the table is not registered."""
        return 0 if self.pin is None else self.pin.version

    @property
    def has_moved(self) -> bool:
        """Whether HEAD is ahead of the pin."""
        return self.head > self.pinned_version

    @property
    def is_first_touch(self) -> bool:
        """Whether the writer worked on a fork that no pin shows: dropping it undoes everything."""
        return self.pin is not None and self.pin.ref != self.table.table_branch


def observe(parts: Parts, sidecar: Sidecar, state: ManifestState) -> tuple[ObservedTable, ...]:
    """Look at every table of a sidecar and classify it."""
    return tuple(_observe(parts, sidecar, table, state) for table in sidecar.tables)


def _observe(parts: Parts, sidecar: Sidecar, table: SidecarTable, state: ManifestState) -> ObservedTable:
    address = parts.address_of(table.table_path, table.table_branch)
    pin = state.tables.pins.get(table.identity)
    pinned = 0 if pin is None else pin.version
    if pin is not None and pin.ref != table.table_branch:
        if not _is_ref(parts, address):
            return ObservedTable(table, address, pin, pinned, Classification.NO_MOVEMENT)
        if pinned != table.expected_version:  # the branch went on without this fork
            head = parts.store.latest_version(address)
            return ObservedTable(table, address, pin, head, Classification.UNEXPECTED_MULTISTEP)
    head = parts.store.latest_version(address)
    found = Found(
        head=head,
        pin=pinned,
        head_has_our_uuid=_has_our_uuid(parts, address, table, head),
        is_ours=ours(parts, address, sidecar.operation_id, range(pinned + 1, head + 1)),
    )
    mode = mode_of(sidecar.writer_kind)
    classification = classify(table, found, sidecar.writer_kind, mode)
    return ObservedTable(table, address, pin, head, classification)


def _is_ref(parts: Parts, address: TableAddress) -> bool:
    """Return whether a ref is there, by its table's own list."""
    return any(ref.name == address.ref for ref in parts.store.list_refs(address))


def _has_our_uuid(parts: Parts, address: TableAddress, table: SidecarTable, head: int) -> bool:
    if table.transaction_uuid is None:
        return True
    return parts.store.transaction_info(address, head).uuid == table.transaction_uuid


def ours(parts: Parts, address: TableAddress, operation_id: str, versions: Sequence[int]) -> tuple[bool, ...]:
    """Return for each version whether it is this operation's, or an unmarked layout commit of the library."""
    found = []
    for version in versions:
        info = parts.store.transaction_info(address, version)
        owner = info.properties.get(OPERATION_PROPERTY)
        is_layout = owner is None and info.operation in _LAYOUT_OPERATIONS
        found.append(owner == operation_id or is_layout)
    return tuple(found)
