"""What is declared in every language: a shape for each type, and for each query its parameters and its rows.

G1  The same schema and queries give the same shapes, in the order of the catalog and of the names of queries.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from omnigraph.catalog.bind import bind
from omnigraph.catalog.bound import AggregateValue, BoundExpression, BoundRead, EntityValue, type_of
from omnigraph.catalog.model import Catalog, EdgeType, NodeType, Property
from omnigraph.catalog.stored_queries import StoredQuery
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import Scalar, ValueType

_TEXT = ValueType(Scalar.STRING)


@dataclass(frozen=True, slots=True)
class ShapeField:
    """A member: its name in the graph or the result, and its type, which may be another shape's name.

    What is optional may be left out; what is nullable may be null.
    """

    name: str
    type: ValueType | str
    is_nullable: bool = False
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """A class or an interface; `about` says what it is of."""

    name: str
    about: str
    fields: tuple[ShapeField, ...]


@dataclass(frozen=True, slots=True)
class QueryShapes:
    """What a query takes, and what its rows are; a mutation has none."""

    name: str
    parameters: Shape
    row: Shape | None


@dataclass(frozen=True, slots=True)
class Declarations:
    """Everything that is declared, and the schema that it is of."""

    schema_hash: str
    types: tuple[Shape, ...]
    queries: tuple[QueryShapes, ...]


def shapes_of(catalog: Catalog, queries: Iterable[StoredQuery] = ()) -> Declarations:
    """Return the shapes of a schema and of queries that fit it (G1).

    Raises:
        BadRequest: two queries would have shapes of one name.
    """
    names = {type_.table_key: _type_name(type_, catalog) for type_ in catalog.types}
    types = tuple(_type_shape(type_, names[type_.table_key]) for type_ in catalog.types)
    found = tuple(_query_shapes(query, catalog, names) for query in sorted(queries, key=lambda one: one.name))
    _refuse_repeated(
        [*types, *(shape for query in found for shape in (query.parameters, query.row) if shape)]
    )
    return Declarations(catalog.shape_hash, types, found)


def _type_name(type_: NodeType | EdgeType, catalog: Catalog) -> str:
    """Return the name of a type's shape; an edge that is called like a node has the word behind its name."""
    return f"{type_.name}Edge" if isinstance(type_, EdgeType) and type_.name in catalog.nodes else type_.name


def _type_shape(type_: NodeType | EdgeType, name: str) -> Shape:
    return Shape(
        name,
        f"{'An edge' if isinstance(type_, EdgeType) else 'A node'} of type {type_.name}.",
        (
            *_identity(type_),
            *(
                ShapeField(item.name, _written_type(item), is_open, is_open)
                for item in type_.properties.values()
                for is_open in [item.type.nullable or item.default is not None or item.is_blob]
            ),
        ),
    )


def _written_type(item: Property) -> ValueType:
    """Return the type that a program gives a property as: a reference to bytes elsewhere is a text."""
    return replace(item.type, scalar=Scalar.STRING) if item.is_external else item.type


def _identity(type_: NodeType | EdgeType) -> Iterator[ShapeField]:
    if isinstance(type_, EdgeType):
        yield ShapeField("src", _TEXT)
        yield ShapeField("dst", _TEXT)
    if isinstance(type_, EdgeType) or type_.key is None:
        yield ShapeField("id", _TEXT, is_nullable=True, is_optional=True)


def _query_shapes(query: StoredQuery, catalog: Catalog, names: dict[str, str]) -> QueryShapes:
    bound = bind(query.declaration, catalog, query.source)
    stem = "".join(word[:1].upper() + word[1:] for word in query.name.split("_") if word)
    given = tuple(
        ShapeField(name, type_, type_.nullable, type_.nullable)
        for name, type_ in bound.parameters.items()
        if not name.startswith("__")
    )
    parameters = Shape(f"{stem}Params", f"The parameters of the query {query.name}.", given)
    if not isinstance(bound, BoundRead):
        return QueryShapes(query.name, parameters, None)
    columns = tuple(_column(item.column, item.expression, names) for item in bound.projections)
    return QueryShapes(
        query.name, parameters, Shape(f"{stem}Row", f"A row of the query {query.name}.", columns)
    )


def _column(name: str, expression: BoundExpression, names: dict[str, str]) -> ShapeField:
    if isinstance(expression, EntityValue):
        return ShapeField(name, names[f"{'edge' if expression.is_edge else 'node'}:{expression.type_name}"])
    type_ = type_of(expression)
    assert type_ is not None, "only whole entities have no type"
    if isinstance(expression, AggregateValue):  # of no rows, all but a count are null
        return ShapeField(name, type_, expression.function != "count")
    return ShapeField(name, type_, type_.nullable)


def _refuse_repeated(shapes: list[Shape]) -> None:
    seen: dict[str, Shape] = {}
    for shape in shapes:
        other = seen.setdefault(shape.name, shape)
        if other is not shape:
            what = f"{other.about[:-1]} and {shape.about[0].lower()}{shape.about[1:-1]}"
            raise BadRequest(f"{what} would both be called {shape.name}: rename one of them")
