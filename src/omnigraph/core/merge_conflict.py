"""What two branches cannot agree on."""

from dataclasses import dataclass
from enum import StrEnum


class MergeConflictKind(StrEnum):
    """Why two branches cannot be merged.

    Both sides changed an entity, their combined result breaks the schema, or they disagree about the schema.
    """

    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"
    SCHEMA_CONFLICT = "schema_conflict"  # the two schemas disagree; no row is named
    DROPPED_TYPE = "dropped_type"  # one side dropped a type in which the other changed rows
    DROPPED_PROPERTY = "dropped_property"  # the same for a property and its values


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """One entity that a merge cannot decide about; resolve it on one side and merge again."""

    table_key: str
    row_id: str | None
    kind: MergeConflictKind
    message: str

    @property
    def sort_key(self) -> tuple[str, str, str, str]:
        """The place in the one order of conflicts: table, row, kind."""
        return self.table_key, self.row_id or "", self.kind.value, self.message
