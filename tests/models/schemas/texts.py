"""Schemas of the model as texts of the schema language."""

from tests.models.schemas.shape import Property, Value, Wanted, WantedProperty, WantedType


def render(wanted: Wanted) -> str:
    """Return a schema as text."""
    return "\n".join(_type(each) for each in wanted) + "\n"


def type_text(shape: Property) -> str:
    """Return the type of a property as a schema has it."""
    name = f"enum({', '.join(sorted(shape.values))})" if shape.scalar == "enum" else shape.scalar
    return name + ("?" if shape.is_nullable else "")


def parameter_text(shape: Property) -> str:
    """Return the type of a parameter that has values of a property."""
    return ("String" if shape.scalar == "enum" else shape.scalar) + ("?" if shape.is_nullable else "")


def _type(each: WantedType) -> str:
    ends = "" if each.ends is None else f": {each.ends[0]} -> {each.ends[1]}"
    body = "".join(f"    {_property(item)}\n" for item in each.properties)
    return f"{each.kind} {each.name}{ends}{_hint(each.hint)} {{\n{body}}}\n"


def _property(item: WantedProperty) -> str:
    shape = item.shape
    marks = " @key" * shape.is_key + " @index" * shape.is_indexed
    default = "" if shape.default is None else f" @default({_literal(shape.default)})"
    return f"{shape.name}: {type_text(shape)}{marks}{default}{_hint(item.hint)}"


def _hint(name: str | None) -> str:
    return "" if name is None else f' @rename_from("{name}")'


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)
