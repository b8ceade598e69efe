"""A change of schema as a write carries it: what its publish says besides the versions of tables.

C1  Schema, names and ends of tables become visible in the same publish as the tables: nobody sees one of them
    without the others.
C2  A schema is planned on another one and published only on top of that one: of two changes at once the later
    one is refused, whichever tables they touch.
"""

from dataclasses import dataclass

from omnigraph.commit.changes import ManifestChange, RenameTable, SetSchema, TombstoneTable
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import TableIdentity


@dataclass(frozen=True, slots=True)
class RenamedTable:
    """A table that gets another name."""

    stable_table_id: int
    table_incarnation_id: int
    expected_table_key: str
    table_key: str

    @property
    def identity(self) -> TableIdentity:
        """The lifetime of the table."""
        return TableIdentity(self.stable_table_id, self.table_incarnation_id)


@dataclass(frozen=True, slots=True)
class EndedTable:
    """A table that leaves the graph; what it held stays readable at earlier commits."""

    stable_table_id: int
    table_incarnation_id: int
    table_key: str
    last_version: int

    @staticmethod
    def of(entry: TableEntry) -> "EndedTable":
        """Return a table that ends as it is pinned."""
        identity = entry.identity
        return EndedTable(
            identity.stable_table_id, identity.table_incarnation_id, entry.table_key, entry.version
        )

    @property
    def identity(self) -> TableIdentity:
        """The lifetime of the table."""
        return TableIdentity(self.stable_table_id, self.table_incarnation_id)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The schema from here on, and what it does to tables without moving them.

    `follows` is the publish that brought the schema it was planned on (C2), `upgraded_to` the commit of main
    whose schema a branch takes over.
    """

    ir_text: str
    source: str
    follows: int
    renames: tuple[RenamedTable, ...] = ()
    ends: tuple[EndedTable, ...] = ()
    upgraded_to: str | None = None

    @property
    def manifest_changes(self) -> tuple[ManifestChange, ...]:
        """What the publish says (C1)."""
        return (
            SetSchema(self.ir_text, self.source, self.follows, self.upgraded_to),
            *(RenameTable(item.identity, item.expected_table_key, item.table_key) for item in self.renames),
            *(TombstoneTable(item.identity, item.table_key, item.last_version + 1) for item in self.ends),
        )
