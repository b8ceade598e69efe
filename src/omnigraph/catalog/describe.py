"""The operation descriptor: what a query reads, writes and returns."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.bound import (
    BoundBinding,
    BoundClause,
    BoundDelete,
    BoundInsert,
    BoundNegation,
    BoundProjection,
    BoundQuery,
    BoundRead,
    BoundStatement,
    BoundTraversal,
    BoundUpdate,
    type_of,
)
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.values import Scalar

_KINDS = {
    Scalar.STRING: "string",
    Scalar.BLOB: "blob",
    Scalar.BOOL: "bool",
    Scalar.I32: "int",
    Scalar.U32: "int",
    Scalar.I64: "bigint",
    Scalar.U64: "bigint",
    Scalar.F32: "float",
    Scalar.F64: "float",
    Scalar.DATE: "date",
    Scalar.DATETIME: "datetime",
}
_KIND_ORDER = ("node", "edge")


@dataclass(frozen=True, slots=True)
class Fact:
    """A type that an operation touches."""

    kind: str
    type_name: str

    def to_json(self) -> dict[str, str]:
        """Return `{"kind", "type_name"}`."""
        return {"kind": self.kind, "type_name": self.type_name}


@dataclass(frozen=True, slots=True)
class ResultField:
    """A column of the result, under its short name."""

    name: str
    kind: str
    nullable: bool
    item_kind: str | None = None
    vector_dim: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the field, leaving out what is unset."""
        document: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if self.item_kind is not None:
            document["item_kind"] = self.item_kind
        if self.vector_dim is not None:
            document["vector_dim"] = self.vector_dim
        document["nullable"] = self.nullable
        return document


@dataclass(frozen=True, slots=True)
class Operation:
    """What a query returns and touches; facts are sorted, nodes before edges."""

    result: tuple[ResultField, ...]
    reads: tuple[Fact, ...]
    writes: tuple[Fact, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the descriptor as every surface prints it."""
        return {
            "result": [field.to_json() for field in self.result],
            "reads": [fact.to_json() for fact in self.reads],
            "writes": [fact.to_json() for fact in self.writes],
        }


def describe(bound: BoundQuery, catalog: Catalog) -> Operation:
    """Return the descriptor of a checked query."""
    if isinstance(bound, BoundRead):
        fields = tuple(_field(projection) for projection in bound.projections)
        return Operation(fields, _sorted(_clause_facts(bound.clauses)), ())
    reads = _sorted(fact for statement in bound.statements for fact in _read_facts(statement, catalog))
    writes = _sorted(fact for statement in bound.statements for fact in _written_facts(statement, catalog))
    return Operation((), reads, writes)


def _field(projection: BoundProjection) -> ResultField:
    type_ = type_of(projection.expression)
    name = projection.short_name
    if type_ is None:
        return ResultField(name, "object", nullable=False)
    if type_.is_vector:
        return ResultField(name, "vector", type_.nullable, vector_dim=type_.dimension)
    if type_.is_list:
        return ResultField(name, "list", type_.nullable, item_kind=_KINDS[type_.scalar])
    return ResultField(name, _KINDS[type_.scalar], type_.nullable)


def _clause_facts(clauses: Iterable[BoundClause]) -> Iterator[Fact]:
    for clause in clauses:
        match clause:
            case BoundBinding(type_name=type_name):
                yield Fact("node", type_name)
            case BoundTraversal():
                yield Fact("edge", clause.edge_type)
                yield Fact("node", clause.left_type)
                yield Fact("node", clause.right_type)
            case BoundNegation(clauses=inner):
                yield from _clause_facts(inner)
            case _:
                pass


def _read_facts(statement: BoundStatement, catalog: Catalog) -> Iterator[Fact]:
    yield from _written_facts(statement, catalog)
    if isinstance(statement, BoundInsert) and isinstance(statement.type, EdgeType):
        yield Fact("node", statement.type.source)
        yield Fact("node", statement.type.target)


def _written_facts(statement: BoundStatement, catalog: Catalog) -> Iterator[Fact]:
    match statement:
        case BoundInsert() | BoundUpdate() | BoundDelete():
            yield Fact("node" if isinstance(statement.type, NodeType) else "edge", statement.type.name)
    if isinstance(statement, BoundDelete) and isinstance(statement.type, NodeType):
        for edge in catalog.edges.values():
            if statement.type.name in {edge.source, edge.target}:
                yield Fact("edge", edge.name)


def _sorted(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(sorted(set(facts), key=lambda fact: (_KIND_ORDER.index(fact.kind), fact.type_name)))
