"""From a schema source to its catalog: parse, check, number, build."""

from collections.abc import Mapping
from types import MappingProxyType

from omnigraph.catalog.check import check_catalog
from omnigraph.catalog.identity import AcceptedSchema, accept_first
from omnigraph.catalog.model import Bounds, Catalog, EdgeType, InterfaceType, NodeType, Property
from omnigraph.catalog.shape import DeclarationKind, DesiredSchema, TypeShape, desire
from omnigraph.core.span import Source
from omnigraph.language.schema_ast import NameArgument, SchemaFile
from omnigraph.language.schema_parser import parse_schema
from omnigraph.language.schema_rules import check_schema

NO_KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType({})


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
    file = parse_schema(source)
    check_schema(file)
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
        )
        for item in shape.properties
    }


def _columns(shape: TypeShape, kind: str) -> tuple[tuple[str, ...], ...]:
    return tuple(rule.columns for rule in shape.rules if rule.kind == kind)
