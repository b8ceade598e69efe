"""What names a version of a table for good: a number alone does not."""

from dataclasses import dataclass

from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import TableIdentity
from omnigraph.storage.tables.handle import SnapshotHandle


@dataclass(frozen=True, slots=True)
class TableLineage:
    """The versions that follow one another: one lifetime of a table on one Lance ref.

    Two forks go on with the same version numbers and the same row ids; nothing is shared between them.
    """

    identity: TableIdentity
    ref: str | None


@dataclass(frozen=True, slots=True)
class TablePin:
    """One version of a lineage, and the transaction that made it."""

    version: int
    uuid: str


@dataclass(frozen=True, slots=True)
class OpenTable:
    """One table of a snapshot, held open at its pin, with what the snapshot says about it.

    A `PinnedTable` says where it is. Derived structures are kept under its lineage and pin instead: their
    files outlive the process, and the graph may have moved by then.
    """

    entry: TableEntry
    handle: SnapshotHandle

    @property
    def lineage(self) -> TableLineage:
        """The lineage that the pin belongs to."""
        return TableLineage(self.entry.identity, self.entry.pin.ref)

    @property
    def pin(self) -> TablePin:
        """The version and its transaction."""
        uuid = self.entry.pin.transaction_uuid or self.handle.transaction_uuid
        return TablePin(self.entry.version, uuid or "")
