"""Table lifetimes: two numbers of the accepted schema, never a name."""

from dataclasses import dataclass

from omnigraph.catalog.model import EdgeType, NodeType


@dataclass(frozen=True, slots=True, order=True)
class TableIdentity:
    """One lifetime of a table. A rename keeps it; dropping and adding a type again gives another one."""

    stable_table_id: int
    table_incarnation_id: int

    def __str__(self) -> str:
        """Return the identity as it is written in object ids and paths."""
        return f"{self.stable_table_id:016x}"

    @property
    def object_part(self) -> str:
        """The identity inside a manifest object id."""
        return f"{self.stable_table_id:x}:{self.table_incarnation_id:x}"

    def location(self, table_key: str) -> str:
        """Return the graph-relative path of the table; the kind of a type never changes."""
        folder = "nodes" if table_key.startswith("node:") else "edges"
        return f"{folder}/{self.stable_table_id:016x}-{self.table_incarnation_id:016x}"


def identity_of(type_: NodeType | EdgeType) -> TableIdentity:
    """Return the current lifetime of a type of the catalog."""
    return TableIdentity(type_.id, type_.incarnation)
