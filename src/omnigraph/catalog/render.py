"""The text of a schema, written from its shape: for schemas whose own text is not kept, and merged ones.

R1  Reading the text gives the shape back. Comments and the order in which things were written are not in it.
"""

import json
from collections.abc import Iterator, Sequence

from omnigraph.catalog.shape import DeclarationKind, Rule, SchemaShape, TypeShape
from omnigraph.language.schema_ast import Embed, Note


def render_schema(shape: SchemaShape) -> str:
    """Return a schema file with every declaration (R1)."""
    return "\n\n".join("\n".join(_declaration(type_)) for type_ in shape.types) + "\n"


def _declaration(type_: TypeShape) -> Iterator[str]:
    body = [*_properties(type_), *(f"    {rule}" for rule in _body_rules(type_))]
    head = f"{type_.kind} {type_.name}"
    if type_.kind is DeclarationKind.EDGE:
        head += f": {type_.source} -> {type_.target}"
        low, high = type_.cardinality
        if (low, high) != (0, None):
            head += f" @card({low}..{'' if high is None else high})"
    head += "".join(f" {note_text(note)}" for note in type_.notes)
    if type_.implements:
        head += f" implements {', '.join(type_.implements)}"
    if not body and type_.kind is DeclarationKind.EDGE:
        yield head
        return
    yield f"{head} {{"
    yield from body
    yield "}"


def _properties(type_: TypeShape) -> Iterator[str]:
    """Yield what a declaration says of its properties; those that interfaces supply are said there."""
    for item in type_.properties:
        if item.is_declared:
            words = [f"@{kind}" for kind in item.written]
            words += [] if item.embed is None else [embed_text(item.embed)]
            words += [] if item.default is None else [note_text(item.default)]
            words += [external_text(item.external)] if item.external else []
            words += [note_text(note) for note in item.notes]
            yield " ".join([f"    {item.name}: {item.type}", *words])


def _body_rules(type_: TypeShape) -> Iterator[Rule]:
    """Yield the rules that are not written on a property, here or in an interface."""
    written = {(kind, item.name) for item in type_.properties for kind in item.written}
    for rule in type_.rules:
        if len(rule.columns) > 1 or (rule.kind, rule.columns[0]) not in written:
            yield rule


def embed_text(embed: Embed) -> str:
    """Return where vectors come from, as written on their property."""
    model = "" if embed.model is None else f", model={literal_text(embed.model)}"
    return f"@embed({literal_text(embed.source)}{model})"


def external_text(bases: Sequence[str]) -> str:
    """Return below which bases references lie, as written on their property."""
    return f"@external({', '.join(map(literal_text, bases))})"


def note_text(note: Note) -> str:
    """Return an annotation as written."""
    if note.value is None and not note.keywords:
        return f"@{note.name}"
    values = [] if note.value is None else [literal_text(note.value)]
    values += [f"{name}={literal_text(value)}" for name, value in note.keywords]
    return f"@{note.name}({', '.join(values)})"


def literal_text(value: object) -> str:
    """Return a value as written in an annotation."""
    return json.dumps(value, ensure_ascii=False)
