"""What a query can name at one place: parameters, and the variables bound so far."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NoReturn

from omnigraph.catalog.model import Catalog, EdgeType, NodeType, Property
from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import TypeCheckError
from omnigraph.core.limits import VECTOR_DIMENSION_MAX
from omnigraph.core.span import Source, Span
from omnigraph.core.values import ValueType
from omnigraph.language.query_ast import ANONYMOUS, Parameter, PropertyAccess


class Scope:
    """Names and their types; nodes and edges share one table of variables."""

    def __init__(self, catalog: Catalog, parameters: Iterable[Parameter], source: Source) -> None:
        """Start with the parameters and no variables.

        Raises:
            TypeCheckError: a parameter's type does not exist.
        """
        self.catalog = catalog
        self.source = source
        self.parameters: dict[str, ValueType] = {}
        self.variables: dict[str, NodeType | EdgeType] = {}
        for parameter in parameters:
            dimension = parameter.type.dimension
            if dimension is not None and not 1 <= dimension <= VECTOR_DIMENSION_MAX:
                message = f"the dimension of '${parameter.name}' is not between 1 and {VECTOR_DIMENSION_MAX}"
                self.fail(None, message, parameter.span)
            self.parameters[parameter.name] = parameter.type

    def inner(self) -> "Scope":
        """Return a copy whose new variables stay inside."""
        copy = Scope(self.catalog, (), self.source)
        copy.parameters = self.parameters
        copy.variables = dict(self.variables)
        return copy

    def fail(self, code: str | None, message: str, span: Span | None, help: str | None = None) -> NoReturn:
        """Stop with a type error.

        Raises:
            TypeCheckError: always.
        """
        raise TypeCheckError([Diagnostic(message, span, help, code)], self.source)

    def property_of(self, access: PropertyAccess, code: str = "T6") -> tuple[NodeType | EdgeType, Property]:
        """Return what `$variable.property` names, or fail with the given code."""
        owner = None if access.variable == ANONYMOUS else self.variables.get(access.variable)
        if owner is None:
            help = nearest_name(access.variable, self.variables, "$")
            self.fail(code, f"variable '${access.variable}' is not bound here", access.span, help)
        item = owner.properties.get(access.property)
        if item is None:
            help = nearest_name(access.property, owner.properties)
            self.fail(code, f"'{owner.name}' has no property '{access.property}'", access.span, help)
        return owner, item


def nearest_name(name: str, known: Iterable[str], prefix: str = "") -> str | None:
    """Return a help line with the known name closest to a wrong one."""
    known = list(known)
    matches = get_close_matches(name, known, n=1) or [
        other for other in known if other.lower() == name.lower()
    ]
    return f"did you mean '{prefix}{matches[0]}'?" if matches else None


def hinting(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a wrong name: the known one that is most like it, if there is any."""
    help = nearest_name(name, known)
    return f"; {help}" if help else ""
