"""The steps that lead from one accepted schema to the next, what work each causes, and how they are printed.

W1  Only steps whose work is `column` or `rewrite` write values of rows. The former writes one column; the
    latter writes what stays of the rows, so that what is dropped for good is in no file.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, assert_never

from omnigraph.catalog.shape import DeclarationKind, type_json
from omnigraph.core.limits import JSON_INTEGER_MAX
from omnigraph.core.values import ValueType
from omnigraph.language.schema_ast import DefaultValue, Note


class DropMode(StrEnum):
    """What a drop does to the past: keep it readable until cleanup, or purge it."""

    SOFT = "soft"
    HARD = "hard"


class Work(StrEnum):
    """What a step does to the table of its type.

    `none` changes the catalog only. `schema` changes the columns of the table, or creates it empty, and
    touches no row. `column` writes one column for every row. `rewrite` writes anew what shares a file with
    the values that are dropped for good.
    """

    NONE = "none"
    SCHEMA = "schema"
    COLUMN = "column"
    REWRITE = "rewrite"


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
    """A new column; existing rows get the default, or null without one.

    With `external` its values are references below these bases.
    """

    type_kind: DeclarationKind
    type_name: str
    property_name: str
    property_type: ValueType
    default: DefaultValue | None = None
    external: tuple[str, ...] | None = None


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
class WidenProperty:
    """A column of a wider type, which holds every value of the old one."""

    type_kind: DeclarationKind
    type_name: str
    property_name: str
    old: ValueType
    new: ValueType


@dataclass(frozen=True, slots=True)
class RelaxProperty:
    """A required property becomes nullable."""

    type_kind: DeclarationKind
    type_name: str
    property_name: str


@dataclass(frozen=True, slots=True)
class ChangeDefault:
    """Later rows get another default, or none; existing rows keep their values."""

    type_kind: DeclarationKind
    type_name: str
    property_name: str
    old: DefaultValue | None
    new: DefaultValue | None


@dataclass(frozen=True, slots=True)
class ChangeExternal:
    """Later references may lie below other bases; those that rows have stay."""

    type_kind: DeclarationKind
    type_name: str
    property_name: str
    added_bases: tuple[str, ...]
    removed_bases: tuple[str, ...]


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
    | WidenProperty
    | RelaxProperty
    | ChangeDefault
    | ChangeExternal
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
    WidenProperty: "widen_property",
    RelaxProperty: "relax_property",
    ChangeDefault: "change_default",
    ChangeExternal: "change_external",
    UpdateTypeMetadata: "update_type_metadata",
    UpdatePropertyMetadata: "update_property_metadata",
    DropType: "drop_type",
    DropProperty: "drop_property",
    UnsupportedChange: "unsupported_change",
}
_JSON_NAMES = {"old": "from", "new": "to", "columns": "constraint"}


_LEFT_OUT_WHEN_NONE = frozenset({"code", "default", "external"})


def step_work(step: Step) -> Work | None:
    """Return what a step does to a table; an unsupported change does nothing at all."""
    if isinstance(step, UnsupportedChange):
        return None
    if step.type_kind is DeclarationKind.INTERFACE:
        return Work.NONE  # an interface has no table
    match step:
        case AddProperty(default=default) if default is not None:
            return Work.COLUMN
        case WidenProperty():
            return Work.COLUMN
        case DropProperty(mode=DropMode.HARD):
            return Work.REWRITE
        case AddType() | AddProperty() | RenameProperty() | RelaxProperty() | DropProperty():
            return Work.SCHEMA
        case RenameType() | AddIndex() | ExtendEnum() | ChangeDefault() | ChangeExternal() | DropType():
            return Work.NONE
        case UpdateTypeMetadata() | UpdatePropertyMetadata():
            return Work.NONE
        case _:
            assert_never(step)


def step_json(step: Step) -> dict[str, Any]:
    """Return a step as every surface prints it: its kind, then its fields, then the work it causes."""
    document: dict[str, Any] = {"kind": _KINDS[type(step)]}
    for field in fields(step):
        value = getattr(step, field.name)
        if field.name in _LEFT_OUT_WHEN_NONE and value is None:
            continue
        document[_JSON_NAMES.get(field.name, field.name)] = _value_json(field.name, value)
    work = step_work(step)
    if work is not None:
        document["work"] = str(work)
    return document


def _value_json(name: str, value: object) -> object:
    match value:
        case ValueType():
            return type_json(value)
        case tuple() if name == "columns":
            return {"Index": list(value)}
        case tuple():
            return [_value_json(name, item) for item in value]
        case Note():
            return value.to_json()
        case int() if abs(value) > JSON_INTEGER_MAX:
            return str(value)
        case StrEnum():
            return str(value)
        case _:
            return value
