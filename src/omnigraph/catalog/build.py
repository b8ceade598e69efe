"""From a schema source to its catalog: parse, check, number, build.

The checks here are those whose class is *catalog error* (S04, S11, S33 to S36).
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from omnigraph.catalog.identity import AcceptedSchema, accept_first
from omnigraph.catalog.model import Bounds, Catalog, EdgeType, InterfaceType, NodeType, Property
from omnigraph.catalog.shape import DeclarationKind, DesiredSchema, TypeShape, desire
from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import CatalogError
from omnigraph.core.limits import DIAGNOSTICS_MAX
from omnigraph.core.span import Source
from omnigraph.language.annotations import embed_of, notes_of, written_columns
from omnigraph.language.schema_ast import Edge, Interface, NameArgument, Node, PropertyDeclaration, SchemaFile
from omnigraph.language.schema_parser import parse_schema
from omnigraph.language.schema_rules import check_schema
from omnigraph.language.tree import Name

NO_KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType({})


_NODE_COLUMNS = frozenset({"id"})
_EDGE_COLUMNS = frozenset({"id", "src", "dst", "from", "to"})


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
    return item.type.value_type, written_columns(item), embed_of(item), notes_of(item.annotations)


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
