"""The checks of a parsed schema whose class is *catalog error* (S04, S11, S33 to S36)."""

from collections.abc import Iterable, Iterator

from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import CatalogError
from omnigraph.core.limits import DIAGNOSTICS_MAX
from omnigraph.language.annotations import embed_of, notes_of, written_columns
from omnigraph.language.schema_ast import Edge, Interface, Node, PropertyDeclaration, SchemaFile
from omnigraph.language.tree import Name

_NODE_COLUMNS = frozenset({"id"})
_EDGE_COLUMNS = frozenset({"id", "src", "dst", "from", "to"})


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
