"""The checks of a schema that need only its source.

Each rule yields diagnostics; they are reported together, in the order of the text. The labels S03 to S44 are
those of the languages specification, 1.11.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.limits import CARDINALITY_MAX, DIAGNOSTICS_MAX, VECTOR_DIMENSION_MAX
from omnigraph.core.source_errors import ParseError
from omnigraph.core.span import Span
from omnigraph.core.values import Scalar, ValueType
from omnigraph.language.pattern import pattern_error
from omnigraph.language.schema_ast import (
    COLUMN_ANNOTATIONS,
    Annotation,
    Cardinality,
    Constraint,
    Edge,
    Interface,
    LiteralArgument,
    NameArgument,
    Node,
    OwnedProperty,
    PropertyDeclaration,
    RangeArgument,
    SchemaFile,
    argument_text,
    find,
    owned_properties,
)
from omnigraph.language.schema_default import check_default
from omnigraph.language.schema_external import check_external

_STORAGE_COLUMNS = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
_PROPERTY_ONLY = frozenset({*COLUMN_ANNOTATIONS, "default", "embed", "external"})
_ONCE = frozenset({*_PROPERTY_ONLY, "description", "instruction", "rename_from"})
ENDPOINT_COLUMNS = frozenset({"src", "dst"})
_NODE_ONLY = frozenset({"key", "range", "check"})
_TWO_ARGUMENTS = 2


def check_schema(schema: SchemaFile, *, dimension_max: int = VECTOR_DIMENSION_MAX) -> None:
    """Check a parsed schema; one that a graph has already may have larger vectors than a new one.

    Raises:
        ParseError: with every broken rule, up to the limit.
    """
    interfaces = {interface.name.text: interface for interface in reversed(schema.interfaces)}
    found: list[Diagnostic] = []
    for declaration in schema.declarations:
        found += _dimensions(declaration.properties, dimension_max)
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
    promised = _promised(node, interfaces)
    for item in node.properties:
        yield from _type_and_name(item)
        yield from _interface_types(item, promised.get(item.name.text, ()))
    for implemented in node.implements:
        if implemented.text not in interfaces:
            message = f"unknown interface '{implemented.text}'"  # S09
            yield Diagnostic(message, implemented.span, _known(interfaces))
    owned = owned_properties(node, interfaces)
    types = {name: property_.item.type.value_type for name, property_ in owned.items()}
    rules = _rules_by_column(node)
    for name, property_ in owned.items():
        for diagnostic in _property(property_, owned, rules.get(name, ())):
            # An error in an injected property is shown at the node that receives it.
            yield diagnostic if property_.is_declared else _moved(diagnostic, node, property_)
    for constraint in node.constraints:
        yield from check_constraint(constraint, types, owner=node.name.text, is_edge=False)
    yield from _keys(node, owned)


def _rules_by_column(node: Node) -> dict[str, list[Constraint]]:
    rules: dict[str, list[Constraint]] = {}
    for constraint in node.constraints:
        for argument in constraint.arguments:
            if isinstance(argument, NameArgument):
                rules.setdefault(argument.name, []).append(constraint)
    return rules


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
            elif annotation.name == "default":
                yield from check_default(annotation, item, ())
            elif annotation.name == "external":
                yield from check_external(annotation, item)
    for constraint in edge.constraints:
        yield from check_constraint(constraint, types, owner=edge.name.text, is_edge=True)


def _cardinality(edge: Edge, cardinality: Cardinality) -> Iterator[Diagnostic]:
    low, high = cardinality.low, cardinality.high
    if max(low, high or 0) > CARDINALITY_MAX:  # S08
        yield Diagnostic(f"@card of '{edge.name.text}': a bound is above {CARDINALITY_MAX}", cardinality.span)
    elif high is not None and low > high:  # S08
        yield Diagnostic(f"@card of '{edge.name.text}': the minimum {low} is above {high}", cardinality.span)


def _dimensions(items: Sequence[PropertyDeclaration], most: int) -> Iterator[Diagnostic]:
    for item in items:
        if item.type.dimension is not None and not 1 <= item.type.dimension <= most:  # S05
            yield Diagnostic(
                f"the dimension of '{item.name.text}' is not between 1 and {most}", item.type.span
            )


def _type_and_name(item: PropertyDeclaration) -> Iterator[Diagnostic]:
    name, type_ = item.name.text, item.type
    if name in _STORAGE_COLUMNS:  # S03
        yield Diagnostic(f"'{name}' is reserved for a storage column", item.name.span)
    if type_.is_list and type_.scalar is Scalar.BLOB:  # S06
        yield Diagnostic(f"'{name}' is a list of Blob, which does not exist", type_.span)
    seen: set[str] = set()
    for value in type_.enum_values or ():
        if value.text in seen:  # S07
            yield Diagnostic(f"the enum of '{name}' lists '{value.text}' twice", value.span)
        seen.add(value.text)


def _promised(node: Node, interfaces: dict[str, Interface]) -> dict[str, list[tuple[str, ValueType]]]:
    """Return what the interfaces of a node promise, by the names of the properties."""
    promised: dict[str, list[tuple[str, ValueType]]] = {}
    for implemented in node.implements:
        interface = interfaces.get(implemented.text)
        for item in interface.properties if interface else ():
            promised.setdefault(item.name.text, []).append((implemented.text, item.type.value_type))
    return promised


def _interface_types(
    item: PropertyDeclaration, promised: Sequence[tuple[str, ValueType]]
) -> Iterator[Diagnostic]:
    found = item.type.value_type
    for interface, wanted in promised:
        if wanted != found:  # S10
            message = f"'{item.name.text}' is {found} here, but {wanted} in interface '{interface}'"
            yield Diagnostic(message, item.type.span)


def _property(
    property_: OwnedProperty, owned: dict[str, OwnedProperty], constraints: Sequence[Constraint]
) -> Iterator[Diagnostic]:
    item = property_.item
    yield from _annotations(item)
    for annotation in item.annotations:
        if annotation.name in COLUMN_ANNOTATIONS:
            yield from _column(annotation, item)
        elif annotation.name == "embed":
            yield from _embed(annotation, item, owned)
        elif annotation.name == "default":
            yield from check_default(annotation, item, constraints)
        elif annotation.name == "external":
            yield from check_external(annotation, item)


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


def column_fault(constraint: str, type_: ValueType) -> str | None:
    """Return why a column of this type cannot carry key, unique or index, or `None` if it can."""
    if type_.is_list:  # S15
        return f"a list cannot be used, and this is {type_}"
    if type_.scalar is Scalar.BLOB:  # S17
        return "a Blob cannot be used"
    if type_.is_vector and constraint != "index":  # S16
        return "a Vector cannot be used"
    if type_.nullable and constraint == "key":  # S14
        return f"a key is never null, and this is {type_}"
    return None


def check_constraint(
    constraint: Constraint, types: Mapping[str, ValueType], *, owner: str, is_edge: bool
) -> Iterator[Diagnostic]:
    """Yield what is wrong with one constraint of a body."""
    if is_edge and constraint.name in _NODE_ONLY:  # S18, S19
        yield Diagnostic(f"@{constraint.name} is not allowed on an edge ('{owner}')", constraint.span)
    elif constraint.name == "range":
        yield from _range(constraint, types, owner)
    elif constraint.name == "check":
        yield from _check(constraint, types, owner)
    else:
        endpoints = ENDPOINT_COLUMNS if is_edge else frozenset[str]()
        yield from _columns(constraint, types, owner, endpoints)


def _columns(
    constraint: Constraint, types: Mapping[str, ValueType], owner: str, endpoints: frozenset[str]
) -> Iterator[Diagnostic]:
    for argument in constraint.arguments:
        if not isinstance(argument, NameArgument):  # S24
            yield Diagnostic(f"@{constraint.name} takes names of properties", argument.span)
        elif argument.name in types:
            fault = column_fault(constraint.name, types[argument.name])
            if fault:
                yield Diagnostic(f"@{constraint.name} on '{argument.name}': {fault}", argument.span)
        elif argument.name not in endpoints:
            yield _unknown(constraint, argument, types, owner)


def _range(constraint: Constraint, types: Mapping[str, ValueType], owner: str) -> Iterator[Diagnostic]:
    target = _target(constraint, types)
    if target is None:
        yield from _bad_target(constraint, types, owner)
        return
    bounds = constraint.arguments[1]
    if not isinstance(bounds, RangeArgument):  # S22
        yield Diagnostic("the second argument of @range is a range such as 0..100", bounds.span)
    elif not types[target.name].is_number:  # S20
        message = f"@range on '{target.name}': only a number has a range, not {types[target.name]}"
        yield Diagnostic(message, target.span)
    elif bounds.low is not None and bounds.high is not None and bounds.low > bounds.high:  # S22
        yield Diagnostic(f"@range on '{target.name}': {bounds.low} is above {bounds.high}", bounds.span)


def _check(constraint: Constraint, types: Mapping[str, ValueType], owner: str) -> Iterator[Diagnostic]:
    target = _target(constraint, types)
    if target is None:
        yield from _bad_target(constraint, types, owner)
        return
    pattern = constraint.arguments[1]
    if not isinstance(pattern, LiteralArgument) or not isinstance(pattern.value, str):  # S23
        yield Diagnostic("the second argument of @check is a pattern in quotes", pattern.span)
    elif not types[target.name].is_plain_string:  # S21
        message = f"@check on '{target.name}': only a String is checked, not {types[target.name]}"
        yield Diagnostic(message, target.span)
    elif fault := pattern_error(pattern.value):  # S23
        help = "patterns are RE2: no look-around, no back-references"
        yield Diagnostic(
            f"the pattern of @check on '{target.name}' does not compile: {fault}", pattern.span, help
        )


def _target(constraint: Constraint, types: Mapping[str, ValueType]) -> NameArgument | None:
    """Return the property of a range or check whose number of arguments is right."""
    target = constraint.arguments[0]
    if len(constraint.arguments) != _TWO_ARGUMENTS or not isinstance(target, NameArgument):
        return None
    return target if target.name in types else None


def _bad_target(constraint: Constraint, types: Mapping[str, ValueType], owner: str) -> Iterator[Diagnostic]:
    target = constraint.arguments[0]
    if len(constraint.arguments) != _TWO_ARGUMENTS:  # S22, S23
        yield Diagnostic(f"@{constraint.name} takes exactly two arguments", constraint.span)
    elif not isinstance(target, NameArgument):  # S24
        yield Diagnostic(f"the first argument of @{constraint.name} is the name of a property", target.span)
    else:
        yield _unknown(constraint, target, types, owner)


def _unknown(
    constraint: Constraint, argument: NameArgument, types: Mapping[str, ValueType], owner: str
) -> Diagnostic:
    known = ", ".join(sorted(types)) or "none"  # S13
    message = f"@{constraint.name} names an unknown property '{argument.name}' of '{owner}'"
    return Diagnostic(message, argument.span, f"properties are: {known}")
