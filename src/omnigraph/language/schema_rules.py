"""The checks of a schema that need only its source.

Each rule yields diagnostics; they are reported together, in the order of the text. The labels S03 to S32 are
those of the languages specification, 1.11.
"""

from collections import Counter
from collections.abc import Iterator

from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import ParseError
from omnigraph.core.limits import CARDINALITY_MAX, DIAGNOSTICS_MAX, VECTOR_DIMENSION_MAX
from omnigraph.core.span import Span
from omnigraph.core.values import Scalar
from omnigraph.language.annotations import (
    COLUMN_ANNOTATIONS,
    OwnedProperty,
    argument_text,
    find,
    owned_properties,
)
from omnigraph.language.constraint_rules import check_constraint, column_fault
from omnigraph.language.schema_ast import (
    Annotation,
    Cardinality,
    Edge,
    Interface,
    LiteralArgument,
    Node,
    PropertyDeclaration,
    SchemaFile,
)

_STORAGE_COLUMNS = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
_ONCE = frozenset({*COLUMN_ANNOTATIONS, "embed", "description", "instruction", "rename_from"})
_PROPERTY_ONLY = frozenset({*COLUMN_ANNOTATIONS, "embed"})


def check_schema(schema: SchemaFile) -> None:
    """Check a parsed schema.

    Raises:
        ParseError: with every broken rule, up to the limit.
    """
    interfaces = {interface.name.text: interface for interface in reversed(schema.interfaces)}
    found: list[Diagnostic] = []
    for declaration in schema.declarations:
        match declaration:
            case Interface():
                found += _interface(declaration)
            case Node():
                found += _node(declaration, interfaces)
            case Edge():
                found += _edge(declaration)
    if found:
        found.sort(key=lambda diagnostic: diagnostic.span.start if diagnostic.span else 0)
        raise ParseError(found[:DIAGNOSTICS_MAX], schema.source)


def _interface(interface: Interface) -> Iterator[Diagnostic]:
    """Check what concerns the interface alone; the rest is checked in each node that implements it."""
    for item in interface.properties:
        yield from _type_and_name(item)
        hints = tuple(a for a in item.annotations if a.name == "rename_from")
        yield from _repeated(hints)
        yield from _rename_hint(hints)


def _node(node: Node, interfaces: dict[str, Interface]) -> Iterator[Diagnostic]:
    yield from _head(node.annotations)
    for item in node.properties:
        yield from _type_and_name(item)
        yield from _interface_types(node, item, interfaces)
    for name in node.implements:
        if name.text not in interfaces:
            yield Diagnostic(f"unknown interface '{name.text}'", name.span, _known(interfaces))  # S09
    owned = owned_properties(node, interfaces)
    types = {name: property_.item.type.value_type for name, property_ in owned.items()}
    for property_ in owned.values():
        for diagnostic in _property(property_, owned):
            # An error in an injected property is shown at the node that receives it.
            yield diagnostic if property_.is_declared else _moved(diagnostic, node, property_)
    for constraint in node.constraints:
        yield from check_constraint(constraint, types, owner=node.name.text, is_edge=False)
    yield from _keys(node, owned)


def _edge(edge: Edge) -> Iterator[Diagnostic]:
    yield from _head(edge.annotations)
    if edge.cardinality is not None:
        yield from _cardinality(edge, edge.cardinality)
    types = {item.name.text: item.type.value_type for item in reversed(edge.properties)}
    for item in edge.properties:
        yield from _type_and_name(item)
        yield from _annotations(item)
        for annotation in item.annotations:
            if annotation.name in {"key", "embed"}:  # S18
                yield Diagnostic(f"@{annotation.name} is not allowed on an edge property", annotation.span)
            elif annotation.name in COLUMN_ANNOTATIONS:
                yield from _column(annotation, item)
    for constraint in edge.constraints:
        yield from check_constraint(constraint, types, owner=edge.name.text, is_edge=True)


def _cardinality(edge: Edge, cardinality: Cardinality) -> Iterator[Diagnostic]:
    low, high = cardinality.low, cardinality.high
    if max(low, high or 0) > CARDINALITY_MAX:  # S08
        yield Diagnostic(f"@card of '{edge.name.text}': a bound is above {CARDINALITY_MAX}", cardinality.span)
    elif high is not None and low > high:  # S08
        yield Diagnostic(f"@card of '{edge.name.text}': the minimum {low} is above {high}", cardinality.span)


def _type_and_name(item: PropertyDeclaration) -> Iterator[Diagnostic]:
    name, type_ = item.name.text, item.type
    if name in _STORAGE_COLUMNS:  # S03
        yield Diagnostic(f"'{name}' is reserved for a storage column", item.name.span)
    if type_.dimension is not None and not 1 <= type_.dimension <= VECTOR_DIMENSION_MAX:  # S05
        message = f"the dimension of '{name}' is not between 1 and {VECTOR_DIMENSION_MAX}"
        yield Diagnostic(message, type_.span)
    if type_.is_list and type_.scalar is Scalar.BLOB:  # S06
        yield Diagnostic(f"'{name}' is a list of Blob, which does not exist", type_.span)
    seen: set[str] = set()
    for value in type_.enum_values or ():
        if value.text in seen:  # S07
            yield Diagnostic(f"the enum of '{name}' lists '{value.text}' twice", value.span)
        seen.add(value.text)


def _interface_types(
    node: Node, item: PropertyDeclaration, interfaces: dict[str, Interface]
) -> Iterator[Diagnostic]:
    name = item.name.text
    for implemented in node.implements:
        interface = interfaces.get(implemented.text)
        for promised in interface.properties if interface else ():
            wanted, found = promised.type.value_type, item.type.value_type
            if promised.name.text == name and wanted != found:  # S10
                message = f"'{name}' is {found} here, but {wanted} in interface '{implemented.text}'"
                yield Diagnostic(message, item.type.span)


def _property(property_: OwnedProperty, owned: dict[str, OwnedProperty]) -> Iterator[Diagnostic]:
    item = property_.item
    yield from _annotations(item)
    for annotation in item.annotations:
        if annotation.name in COLUMN_ANNOTATIONS:
            yield from _column(annotation, item)
        elif annotation.name == "embed":
            yield from _embed(annotation, item, owned)


def _annotations(item: PropertyDeclaration) -> Iterator[Diagnostic]:
    yield from _repeated(item.annotations)
    yield from _rename_hint(item.annotations)
    yield from _text(find(item.annotations, "description"))
    instruction = find(item.annotations, "instruction")
    if instruction is not None:  # S28
        yield Diagnostic(f"@instruction is not allowed on a property ('{item.name.text}')", instruction.span)


def _column(annotation: Annotation, item: PropertyDeclaration) -> Iterator[Diagnostic]:
    fault = column_fault(annotation.name, item.type.value_type)
    if fault:
        yield Diagnostic(f"@{annotation.name} on '{item.name.text}': {fault}", annotation.span)


def _embed(
    annotation: Annotation, item: PropertyDeclaration, owned: dict[str, OwnedProperty]
) -> Iterator[Diagnostic]:
    name, type_ = item.name.text, item.type.value_type
    if not type_.is_vector:  # S15, S17, S30
        yield Diagnostic(f"@embed on '{name}': only a Vector is embedded, not {type_}", annotation.span)
        return
    source = argument_text(annotation)
    if source is None:  # S31
        yield Diagnostic(f"@embed on '{name}' needs the property that is embedded", annotation.span)
    elif source not in owned:  # S31
        yield Diagnostic(
            f"@embed on '{name}' names an unknown property '{source}'", annotation.span, _known(owned)
        )
    elif not owned[source].item.type.value_type.is_plain_string:  # S31
        found = owned[source].item.type.value_type
        yield Diagnostic(f"@embed on '{name}': '{source}' is {found}, not String", annotation.span)
    for keyword, value in annotation.keywords:
        if keyword != "model" or not isinstance(value, str):  # S32
            yield Diagnostic(f"@embed on '{name}' takes model=\"...\" only, not '{keyword}'", annotation.span)


def _head(annotations: tuple[Annotation, ...]) -> Iterator[Diagnostic]:
    yield from _repeated(annotations)
    yield from _rename_hint(annotations)
    yield from _text(find(annotations, "description"))
    yield from _text(find(annotations, "instruction"))
    for annotation in annotations:
        if annotation.name in _PROPERTY_ONLY:  # S25
            help = "put it on a property, or into the body as a constraint"
            yield Diagnostic(f"@{annotation.name} is not allowed on a type", annotation.span, help)


def _repeated(annotations: tuple[Annotation, ...]) -> Iterator[Diagnostic]:
    counts = Counter(annotation.name for annotation in annotations)
    for annotation in annotations[::-1]:
        if annotation.name in _ONCE and counts[annotation.name] > 1:  # S26
            yield Diagnostic(f"@{annotation.name} is given twice", annotation.span)
            counts[annotation.name] = 1


def _text(annotation: Annotation | None) -> Iterator[Diagnostic]:
    if annotation is None:
        return
    argument = annotation.argument
    text = argument.value if isinstance(argument, LiteralArgument) else None
    if not isinstance(text, str) or not text.strip() or annotation.keywords:  # S27
        yield Diagnostic(
            f'@{annotation.name} takes one text, as in @{annotation.name}("...")', annotation.span
        )


def _rename_hint(annotations: tuple[Annotation, ...]) -> Iterator[Diagnostic]:
    annotation = find(annotations, "rename_from")
    if annotation is None:
        return
    text = argument_text(annotation)
    if text is None or not text.strip() or annotation.keywords:  # S27, S29
        yield Diagnostic('@rename_from takes one name, as in @rename_from("Old")', annotation.span)


def _keys(node: Node, owned: dict[str, OwnedProperty]) -> Iterator[Diagnostic]:
    places: list[Span] = []
    for property_ in owned.values():
        annotation = find(property_.item.annotations, "key")
        if annotation is not None:
            places.append(annotation.span if property_.is_declared else node.name.span)
    places += [constraint.span for constraint in node.constraints if constraint.name == "key"]
    if len(places) > 1:  # S12
        help = "a key of several columns is written @key(a, b) in the body"
        yield Diagnostic(
            f"'{node.name.text}' has more than one key", max(places, key=lambda s: s.start), help
        )


def _moved(diagnostic: Diagnostic, node: Node, property_: OwnedProperty) -> Diagnostic:
    origin = ", ".join(property_.interfaces)
    return Diagnostic(f"{diagnostic.message} (injected by {origin})", node.name.span, diagnostic.help)


def _known(names: dict[str, object] | dict[str, Interface] | dict[str, OwnedProperty]) -> str | None:
    return f"known: {', '.join(sorted(names))}" if names else None
