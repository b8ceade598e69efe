"""The steps that lead from one accepted schema to the next, and how they are printed."""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from omnigraph.catalog.shape import DeclarationKind, type_json
from omnigraph.core.values import ValueType
from omnigraph.language.schema_ast import Note


class DropMode(StrEnum):
    """What a drop does to the past: keep it readable until cleanup, or purge it."""

    SOFT = "soft"
    HARD = "hard"


@dataclass(frozen=True, slots=True)
class AddType:
    """A new interface, node or edge."""

    type_kind: DeclarationKind
    name: str


@dataclass(frozen=True, slots=True)
class RenameType:
    """A type under a new name; its table, rows and history stay."""

    type_kind: DeclarationKind
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class AddProperty:
    """A new nullable column."""

    type_kind: DeclarationKind
    type_name: str
    property_name: str
    property_type: ValueType


@dataclass(frozen=True, slots=True)
class RenameProperty:
    """A column under a new name."""

    type_kind: DeclarationKind
    type_name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class AddIndex:
    """A new index declaration, the only constraint that an existing type can gain."""

    type_kind: DeclarationKind
    type_name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExtendEnum:
    """An enum gains values."""

    type_kind: DeclarationKind
    type_name: str
    property_name: str
    added_values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata:
    """Descriptions or instructions of a type change; `annotations` are the new ones."""

    type_kind: DeclarationKind
    name: str
    annotations: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata:
    """The description of a property changes; `annotations` are the new ones."""

    type_kind: DeclarationKind
    type_name: str
    property_name: str
    annotations: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class DropType:
    """A node or edge type leaves the current version of the graph."""

    type_kind: DeclarationKind
    name: str
    mode: DropMode


@dataclass(frozen=True, slots=True)
class DropProperty:
    """A column leaves the current version of its table."""

    type_kind: DeclarationKind
    type_name: str
    property_name: str
    mode: DropMode


@dataclass(frozen=True, slots=True)
class UnsupportedChange:
    """A change that cannot be applied; it blocks the whole plan."""

    entity: str
    reason: str
    code: str | None = None

    def __str__(self) -> str:
        """Return the reason, preceded by its code."""
        return f"[{self.code}] {self.reason}" if self.code else self.reason


Step = (
    AddType
    | RenameType
    | AddProperty
    | RenameProperty
    | AddIndex
    | ExtendEnum
    | UpdateTypeMetadata
    | UpdatePropertyMetadata
    | DropType
    | DropProperty
    | UnsupportedChange
)

_KINDS: dict[type[Step], str] = {
    AddType: "add_type",
    RenameType: "rename_type",
    AddProperty: "add_property",
    RenameProperty: "rename_property",
    AddIndex: "add_constraint",
    ExtendEnum: "extend_enum",
    UpdateTypeMetadata: "update_type_metadata",
    UpdatePropertyMetadata: "update_property_metadata",
    DropType: "drop_type",
    DropProperty: "drop_property",
    UnsupportedChange: "unsupported_change",
}
_JSON_NAMES = {"old": "from", "new": "to", "columns": "constraint"}


def step_json(step: Step) -> dict[str, Any]:
    """Return a step as every surface prints it: its kind, then its fields."""
    document: dict[str, Any] = {"kind": _KINDS[type(step)]}
    for field in fields(step):
        value = getattr(step, field.name)
        if field.name == "code" and value is None:
            continue
        document[_JSON_NAMES.get(field.name, field.name)] = _value_json(field.name, value)
    return document


def _value_json(name: str, value: object) -> object:
    match value:
        case ValueType():
            return type_json(value)
        case tuple() if name == "columns":
            return {"Index": list(value)}
        case tuple():
            return [item.to_json() if isinstance(item, Note) else item for item in value]
        case StrEnum():
            return str(value)
        case _:
            return value
