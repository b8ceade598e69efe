"""The codes of schema changes; a code's meaning never changes."""

from dataclasses import dataclass

from omnigraph.catalog.migration_steps import DropProperty, DropType, Step, UnsupportedChange
from omnigraph.catalog.shape import DeclarationKind


@dataclass(frozen=True, slots=True)
class MigrationCode:
    """What a code means: `tier` is how much care it needs; nothing raises a reserved one yet."""

    code: str
    tier: str
    meaning: str
    is_reserved: bool = False


DROPPED_NODE_TYPE = MigrationCode("OG-DS-102", "destructive", "drop of a populated node type")
DROPPED_EDGE_TYPE = MigrationCode("OG-DS-103", "destructive", "drop of a populated edge type")
DROPPED_PROPERTY = MigrationCode("OG-DS-104", "destructive", "drop of a property of a populated type")
REQUIRED_PROPERTY = MigrationCode("OG-MF-103", "validated", "required property added without a default")
CHANGED_TYPE = MigrationCode("OG-MF-106", "destructive", "property type changed")

CODES = (
    MigrationCode("OG-DS-101", "destructive", "drop of a populated graph type", is_reserved=True),
    DROPPED_NODE_TYPE,
    DROPPED_EDGE_TYPE,
    DROPPED_PROPERTY,
    MigrationCode("OG-DS-105", "destructive", "drop of a populated vector property", is_reserved=True),
    REQUIRED_PROPERTY,
    MigrationCode("OG-MF-104", "validated", "nullable made non-nullable", is_reserved=True),
    CHANGED_TYPE,
)


def step_code(step: Step) -> str | None:
    """Return the code that describes a step, or `None`."""
    match step:
        case DropType(type_kind=kind):
            return (DROPPED_NODE_TYPE if kind is DeclarationKind.NODE else DROPPED_EDGE_TYPE).code
        case DropProperty():
            return DROPPED_PROPERTY.code
        case UnsupportedChange(code=code):
            return code
        case _:
            return None
