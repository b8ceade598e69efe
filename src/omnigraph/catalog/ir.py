"""The accepted schema as a document: what `_schema.ir.json` and the manifest's `schema` rows hold.

K1  Reading a written document gives the same value back, ids and counter included.
"""

import hashlib
import json
from typing import Any

from omnigraph.catalog.identity import AcceptedSchema
from omnigraph.catalog.shape import DeclarationKind, PropertyShape, Rule, SchemaShape, TypeShape
from omnigraph.core.json_text import read_json
from omnigraph.core.values import Scalar, ValueType
from omnigraph.language.annotations import Embed, Note

IDENTITY_VERSION = 1


def ir_text(accepted: AcceptedSchema) -> str:
    """Return the document of an accepted schema; equal schemas have equal texts."""
    document = {
        "identity_version": IDENTITY_VERSION,
        "domain": accepted.domain,
        "next_id": accepted.next_id,
        "types": [_type_document(shape, accepted) for shape in accepted.shape.types],
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def ir_hash(text: str) -> str:
    """Return `sha256:<hex>` of a document."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def read_ir(text: str) -> AcceptedSchema:
    """Return the accepted schema of a document (K1).

    Raises:
        ValueError: the text is not a schema document.
    """
    try:
        document = read_json(text)
        return _accepted(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not an accepted schema: {error!r}") from error


def _type_document(shape: TypeShape, accepted: AcceptedSchema) -> dict[str, Any]:
    document = shape_document(shape)
    document["id"] = accepted.type_ids[shape.kind, shape.name]
    document["incarnation"] = accepted.incarnations.get((shape.kind, shape.name))
    for item in document["properties"]:
        item["id"] = accepted.property_ids[shape.kind, shape.name, item["name"]]
    return document


def shape_document(shape: TypeShape) -> dict[str, Any]:
    """Return a type's shape as plain data."""
    document: dict[str, Any] = SchemaShape((shape,)).to_json()[0]
    return document


def _accepted(document: dict[str, Any]) -> AcceptedSchema:
    if document["identity_version"] != IDENTITY_VERSION:
        raise ValueError(f"identity version {document['identity_version']} is not {IDENTITY_VERSION}")
    shapes: list[TypeShape] = []
    type_ids: dict[tuple[DeclarationKind, str], int] = {}
    property_ids: dict[tuple[DeclarationKind, str, str], int] = {}
    incarnations: dict[tuple[DeclarationKind, str], int] = {}
    for entry in document["types"]:
        shape = _shape(entry)
        shapes.append(shape)
        type_ids[shape.kind, shape.name] = entry["id"]
        if entry["incarnation"] is not None:
            incarnations[shape.kind, shape.name] = entry["incarnation"]
        for item in entry["properties"]:
            property_ids[shape.kind, shape.name, item["name"]] = item["id"]
    schema = SchemaShape(tuple(shapes))
    return AcceptedSchema(
        schema, document["domain"], document["next_id"], type_ids, property_ids, incarnations
    )


def _shape(entry: dict[str, Any]) -> TypeShape:
    low, high = entry["cardinality"]
    return TypeShape(
        kind=DeclarationKind(entry["kind"]),
        name=entry["name"],
        notes=_notes(entry["annotations"]),
        implements=tuple(entry["implements"]),
        properties=tuple(_property(item) for item in entry["properties"]),
        rules=tuple(_rule(rule) for rule in entry["constraints"]),
        source=entry["from"],
        target=entry["to"],
        cardinality=(low, high),
    )


def _property(item: dict[str, Any]) -> PropertyShape:
    return PropertyShape(
        name=item["name"],
        type=_value_type(item["type"]),
        notes=_notes(item["annotations"]),
        written=tuple(item["written"]),
        embed=Embed(*item["embed"]) if item["embed"] else None,
        is_declared=item["declared"],
        satisfies=tuple(item["satisfies"]),
    )


def _value_type(document: dict[str, Any]) -> ValueType:
    scalar = document["scalar"]
    dimension = scalar["Vector"] if isinstance(scalar, dict) else None
    values = document["enum_values"]
    return ValueType(
        Scalar.VECTOR if dimension is not None else Scalar(scalar),
        document["nullable"],
        document["list"],
        None if values is None else tuple(values),
        dimension,
    )


def _rule(entry: list[Any]) -> Rule:
    kind, columns, low, high, pattern = entry
    return Rule(kind, tuple(columns), low, high, pattern)


def _notes(entries: list[dict[str, Any]]) -> tuple[Note, ...]:
    return tuple(
        Note(entry["name"], entry["value"], tuple(entry.get("kwargs", {}).items())) for entry in entries
    )
