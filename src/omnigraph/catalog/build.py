"""From a schema source to its catalog, and the accepted schema as a document.

The checks here are those whose class is *catalog error* (S04, S11, S33 to S36).

The document is what `_schema.ir.json` and the manifest's `schema` rows hold.

K1  Reading a written document gives the same value back, ids, fills and counter included. A fill is written
    where it is not what the present default would give: documents of earlier builds have none, and a document
    in which no default was ever changed is as they wrote it.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from omnigraph.catalog.identity import AcceptedSchema, accept_first, added_fill
from omnigraph.catalog.model import Bounds, Catalog, EdgeType, InterfaceType, NodeType, Property
from omnigraph.catalog.shape import (
    DeclarationKind,
    DesiredSchema,
    PropertyShape,
    Rule,
    SchemaShape,
    TypeShape,
    desire,
)
from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.external_uri import base_fault
from omnigraph.core.limits import DIAGNOSTICS_MAX, VECTOR_DIMENSION_MAX, VECTOR_DIMENSION_STORED_MAX
from omnigraph.core.source_errors import CatalogError
from omnigraph.core.span import Source
from omnigraph.core.values import Scalar, ValueType, read_json
from omnigraph.language.schema_ast import (
    DefaultValue,
    Edge,
    Embed,
    Interface,
    NameArgument,
    Node,
    Note,
    PropertyDeclaration,
    SchemaFile,
    default_of,
    embed_of,
    external_of,
    notes_of,
    written_columns,
)
from omnigraph.language.schema_parser import parse_schema
from omnigraph.language.schema_rules import check_schema
from omnigraph.language.tree import Name

NO_KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType({})


_NODE_COLUMNS = frozenset({"id"})
_EDGE_COLUMNS = frozenset({"id", "src", "dst", "from", "to"})

IDENTITY_VERSION = 1


def compile_schema(source: Source) -> Catalog:
    """Return the catalog of a schema source, numbered as the first of its graph.

    Raises:
        ParseError: the text does not parse or breaks a rule of one source.
        CatalogError: it parses but does not make a valid catalog.
    """
    desired = read_schema(source)
    return build_catalog(accept_first(desired), written_keys(desired.file))


def read_schema(source: Source) -> DesiredSchema:
    """Return the checked shape of a schema source, ready to be accepted or planned against.

    Raises:
        ParseError: the text does not parse or breaks a rule of one source.
        CatalogError: it parses but does not make a valid catalog.
    """
    return _read(source, VECTOR_DIMENSION_MAX)


def reread_schema(source: Source) -> DesiredSchema:
    """Return the checked shape of a schema that a graph has already: its vectors may be any that exist.

    Raises:
        ParseError, CatalogError: it is no valid schema.
    """
    return _read(source, VECTOR_DIMENSION_STORED_MAX)


def _read(source: Source, dimension_max: int) -> DesiredSchema:
    file = parse_schema(source)
    check_schema(file, dimension_max=dimension_max)
    check_catalog(file)
    return desire(file)


def written_keys(file: SchemaFile) -> dict[str, tuple[str, ...]]:
    """Return the members of composite keys by node type, in the order written in the source."""
    return {
        node.name.text: tuple(
            dict.fromkeys(arg.name for arg in rule.arguments if isinstance(arg, NameArgument))
        )
        for node in file.nodes
        for rule in node.constraints
        if rule.name == "key"
    }


def build_catalog(accepted: AcceptedSchema, keys: Mapping[str, tuple[str, ...]] = NO_KEYS) -> Catalog:
    """Return the catalog of an accepted schema.

    An accepted schema keeps no order of key members; `keys` come from its source, where there is one.
    """
    shapes = accepted.shape
    edges = {shape.name: _edge(shape, accepted) for shape in shapes.of_kind(DeclarationKind.EDGE)}
    return Catalog(
        interfaces={
            shape.name: _interface(shape, accepted) for shape in shapes.of_kind(DeclarationKind.INTERFACE)
        },
        nodes={shape.name: _node(shape, accepted, keys) for shape in shapes.of_kind(DeclarationKind.NODE)},
        edges=edges,
        edges_by_lower_name={name.lower(): edge for name, edge in edges.items()},
        shape_hash=shapes.hash,
    )


def _interface(shape: TypeShape, accepted: AcceptedSchema) -> InterfaceType:
    return InterfaceType(shape.name, accepted.type_ids[shape.kind, shape.name], _properties(shape, accepted))


def _node(shape: TypeShape, accepted: AcceptedSchema, written: Mapping[str, tuple[str, ...]]) -> NodeType:
    properties = _properties(shape, accepted)
    keys = _columns(shape, "key")
    key = tuple(sorted(keys[0], key=lambda name: properties[name].id)) if keys else None
    indexes = _columns(shape, "index")
    ranges: dict[str, tuple[Bounds, ...]] = {}
    checks: dict[str, tuple[str, ...]] = {}
    for rule in shape.rules:
        column = rule.columns[0]
        if rule.kind == "range":
            ranges[column] = (*ranges.get(column, ()), Bounds(rule.low, rule.high))
        elif rule.kind == "check" and rule.pattern is not None:
            checks[column] = (*checks.get(column, ()), rule.pattern)
    return NodeType(
        name=shape.name,
        id=accepted.type_ids[shape.kind, shape.name],
        incarnation=accepted.incarnations[shape.kind, shape.name],
        interfaces=shape.implements,
        properties=properties,
        key=key,
        written_key=written.get(shape.name, key),
        unique=_columns(shape, "unique"),
        indexes=indexes if not keys or keys[0] in indexes else (*indexes, keys[0]),
        ranges=ranges,
        checks=checks,
        notes=shape.notes,
    )


def _edge(shape: TypeShape, accepted: AcceptedSchema) -> EdgeType:
    assert shape.source is not None
    assert shape.target is not None
    return EdgeType(
        name=shape.name,
        id=accepted.type_ids[shape.kind, shape.name],
        incarnation=accepted.incarnations[shape.kind, shape.name],
        source=shape.source,
        target=shape.target,
        low=shape.cardinality[0],
        high=shape.cardinality[1],
        properties=_properties(shape, accepted),
        unique=_columns(shape, "unique"),
        indexes=_columns(shape, "index"),
        notes=shape.notes,
    )


def _properties(shape: TypeShape, accepted: AcceptedSchema) -> dict[str, Property]:
    return {
        item.name: Property(
            item.name,
            item.type,
            accepted.property_ids[shape.kind, shape.name, item.name],
            item.notes,
            item.embed,
            None if item.default is None else item.default.value,
            accepted.fills[shape.kind, shape.name, item.name],
            item.external,
        )
        for item in shape.properties
    }


def _columns(shape: TypeShape, kind: str) -> tuple[tuple[str, ...], ...]:
    return tuple(rule.columns for rule in shape.rules if rule.kind == kind)


def check_catalog(file: SchemaFile) -> None:
    """Check that the declarations of a schema fit together.

    Raises:
        CatalogError: with every fault found, up to the limit.
    """
    faults = sorted(_faults(file), key=lambda fault: fault.span.start if fault.span else 0)
    if faults:
        raise CatalogError(faults[:DIAGNOSTICS_MAX], file.source)


def _faults(file: SchemaFile) -> Iterator[Diagnostic]:
    for kind, declarations in (("interface", file.interfaces), ("node", file.nodes), ("edge", file.edges)):
        yield from _repeated((declaration.name for declaration in declarations), f"{kind} type")  # S33
    interfaces = {interface.name.text: interface for interface in file.interfaces}
    node_names = {node.name.text for node in file.nodes}
    for declaration in file.declarations:
        yield from _repeated((item.name for item in declaration.properties), "property")  # S34
        match declaration:
            case Interface():
                pass
            case Node():
                yield from _reserved(declaration, declaration.properties, _NODE_COLUMNS)
                yield from _disagreeing(declaration, interfaces)
            case Edge():
                yield from _reserved(declaration, declaration.properties, _EDGE_COLUMNS)
                yield from _endpoints(declaration, node_names)
    yield from _same_lower_case(file.edges)


def _repeated(names: Iterable[Name], what: str) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for name in names:
        if name.text in seen:
            yield Diagnostic(f"{what} '{name.text}' is declared twice", name.span)
        seen.add(name.text)


def _reserved(
    owner: Node | Edge, items: Iterable[PropertyDeclaration], columns: frozenset[str]
) -> Iterator[Diagnostic]:
    for item in items:
        if item.name.text in columns:  # S04
            message = f"'{item.name.text}' of '{owner.name.text}' is reserved for a column of its table"
            yield Diagnostic(message, item.name.span)


def _disagreeing(node: Node, interfaces: dict[str, Interface]) -> Iterator[Diagnostic]:
    """Yield where two interfaces supply different properties of one name (S11), or a reserved one (S04)."""
    own = {item.name.text for item in node.properties}
    supplied: dict[str, tuple[str, PropertyDeclaration]] = {}
    for name in sorted({implemented.text for implemented in node.implements}):
        for item in interfaces[name].properties:
            property_name = item.name.text
            if property_name in own:
                continue
            if property_name in _NODE_COLUMNS:
                message = (
                    f"interface '{name}' gives '{node.name.text}' the reserved property '{property_name}'"
                )
                yield Diagnostic(message, node.name.span)
            other, first = supplied.setdefault(property_name, (name, item))
            if _meaning(first) != _meaning(item):
                message = (
                    f"interfaces '{other}' and '{name}' disagree on '{property_name}' of '{node.name.text}'"
                )
                yield Diagnostic(
                    message, node.name.span, f"declare '{property_name}' in '{node.name.text}' itself"
                )


def _meaning(item: PropertyDeclaration) -> tuple[object, ...]:
    notes = notes_of(item.annotations)
    meant = default_of(item), external_of(item)
    return item.type.value_type, written_columns(item), embed_of(item), meant, notes


def _endpoints(edge: Edge, node_names: set[str]) -> Iterator[Diagnostic]:
    for end in (edge.source, edge.target):
        if end.text not in node_names:  # S35
            known = ", ".join(sorted(node_names)) or "none"
            message = f"edge '{edge.name.text}' names unknown node type '{end.text}'"
            yield Diagnostic(message, end.span, f"node types are: {known}")


def _same_lower_case(edges: Iterable[Edge]) -> Iterator[Diagnostic]:
    seen: dict[str, str] = {}
    for edge in edges:
        other = seen.setdefault(edge.name.text.lower(), edge.name.text)
        if other != edge.name.text:  # S36
            message = f"edges '{other}' and '{edge.name.text}' differ in case only"
            yield Diagnostic(message, edge.name.span, "queries ignore the case of edge names")


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
    for item, entry in zip(shape.properties, document["properties"], strict=True):
        key = (shape.kind, shape.name, item.name)
        entry["id"] = accepted.property_ids[key]
        if accepted.fills[key] != added_fill(item):
            entry["fill"] = accepted.fills[key]
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
    fills: dict[tuple[DeclarationKind, str, str], DefaultValue | None] = {}
    for entry in document["types"]:
        shape = _shape(entry)
        shapes.append(shape)
        type_ids[shape.kind, shape.name] = entry["id"]
        if entry["incarnation"] is not None:
            incarnations[shape.kind, shape.name] = entry["incarnation"]
        for item, told in zip(shape.properties, entry["properties"], strict=True):
            key = (shape.kind, shape.name, item.name)
            property_ids[key] = told["id"]
            fills[key] = _note_value(told["fill"]) if "fill" in told else added_fill(item)
    schema = SchemaShape(tuple(shapes))
    return AcceptedSchema(
        schema, document["domain"], document["next_id"], type_ids, property_ids, incarnations, fills
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
    type_, notes = value_type(item["type"]), _notes(item["annotations"])
    external = next((_bases(note) for note in notes if note.name == "external"), ())
    if type_.scalar is not Scalar.BLOB:  # an annotation of an earlier build, where it meant nothing
        external = ()
    return PropertyShape(
        name=item["name"],
        type=type_,
        notes=tuple(
            note for note in notes if note.name != "default" and not (external and note.name == "external")
        ),
        written=tuple(item["written"]),
        embed=Embed(*item["embed"]) if item["embed"] else None,
        is_declared=item["declared"],
        satisfies=tuple(item["satisfies"]),
        default=next((note for note in notes if note.name == "default"), None),
        external=external,
    )


def _bases(note: Note) -> tuple[str, ...]:
    """Return the bases that an `@external` names; none if it is one without a meaning."""
    given = note.value if isinstance(note.value, tuple) else (note.value,)
    bases = tuple(base for base in given if isinstance(base, str) and base_fault(base) is None)
    return bases if len(bases) == len(given) else ()


def value_type(document: dict[str, Any]) -> ValueType:
    """Return the type that a document of `shape.type_json` describes."""
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
        Note(entry["name"], _note_value(entry["value"]), tuple(entry.get("kwargs", {}).items()))
        for entry in entries
    )


def _note_value(value: Any) -> DefaultValue | None:  # noqa: ANN401 - whatever the document says
    return tuple(value) if isinstance(value, list) else value
