"""What tables and branches are besides their names: a table has lifetimes, a branch has incarnations.

I1  The lifetime of a table is two numbers of the accepted schema.
I2  A branch is its name and the Lance ref of its manifest. A name says which branch is meant, main included;
    `Branches.resolve` looks up which incarnation that is, and from then on the value is passed around.
I3  Main is null where branches are stored (manifest rows, sidecars, control objects), and None in the results
    of calls. Only code that reads or writes those converts names, with `branch_name` and `stored_name`.
"""

from dataclasses import dataclass

from omnigraph.catalog.model import EdgeType, NodeType

MAIN = "main"


@dataclass(frozen=True, slots=True)
class BranchIdentity:
    """One incarnation of a branch: a name that was deleted and created again has another ref (I2)."""

    name: str
    ref: str | None  # of its manifest; None for main

    @property
    def is_main(self) -> bool:
        """Whether it is the branch that every graph has."""
        return self.name == MAIN


MAIN_BRANCH = BranchIdentity(MAIN, None)


def branch_name(stored: str | None) -> str:
    """Return the name of a branch that is stored, or shown by a result (I3)."""
    return MAIN if stored is None else stored


def stored_name(name: str) -> str | None:
    """Return the name of a branch as it is stored, and shown by results (I3)."""
    return None if name == MAIN else name


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
