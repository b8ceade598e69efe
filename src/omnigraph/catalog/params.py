"""A query from outside: the parameters it takes from JSON, and what it reads, writes and returns.

Parameters have one strict mode, the same on every surface.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, NoReturn

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
from omnigraph.core.errors import ExecutionError, ParameterError
from omnigraph.core.limits import I32_MAX, I32_MIN, I64_MAX, I64_MIN, U32_MAX
from omnigraph.core.nearest import hinting
from omnigraph.core.temporal import days_of, millis_of, parse_date, parse_datetime
from omnigraph.core.values import FLOATS, HALF_A_PAIR, INTEGERS, Scalar, ValueType, is_text, json_name

ParameterInput = str | bytes | int | float | bool | list[str | int | float | bool] | None
_DECIMAL_INTEGER = re.compile(r"-?[0-9]{1,20}")
_RANGES = {
    Scalar.I32: (I32_MIN, I32_MAX),
    Scalar.I64: (I64_MIN, I64_MAX),
    Scalar.U32: (0, U32_MAX),
    Scalar.U64: (0, I64_MAX),  # the languages' integers are signed: the upper half of U64 cannot be written
}

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


def bind_parameters(declared: Mapping[str, ValueType], given: object) -> dict[str, ParameterInput]:
    """Return a value for every declared parameter; omitted nullable ones are null.

    A `Date` becomes days and a `DateTime` milliseconds since the epoch.

    Raises:
        ParameterError: naming the parameter that is missing, undeclared or of the wrong type.
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise ParameterError(f"params must be an object, got {json_name(given)}")
    for name in given:
        if name not in declared:
            hint = hinting(str(name), declared)
            raise ParameterError(f"param '{name}': not declared by the query{hint}", name=str(name))
    return {name: _bind(name, type_, given) for name, type_ in declared.items()}


def _bind(name: str, type_: ValueType, given: Mapping[str, object]) -> ParameterInput:
    if name not in given:
        if type_.nullable:
            return None
        raise ParameterError(f"parameter '{name}' not provided", name=name)
    value = given[name]
    if value is None:
        if type_.nullable:
            return None
        _fail(name, f"expected {type_}, got null")
    if type_.is_list or type_.is_vector:
        return _bind_items(name, type_, value)
    if type_.scalar is Scalar.BLOB and isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)  # of a program; what comes as JSON is a text
    return _bind_scalar(name, type_.scalar, value)


def _bind_items(name: str, type_: ValueType, value: object) -> list[str | int | float | bool]:
    if not isinstance(value, list | tuple):
        _fail(name, f"expected {_expected(type_)}, got {json_name(value)}")
    if type_.dimension is not None and len(value) != type_.dimension:
        _fail(name, f"expected {_numbers(type_.dimension)}, got {len(value)}")
    scalar = Scalar.F32 if type_.is_vector else type_.scalar
    if scalar is Scalar.STRING and set(map(type, value)) == {str}:  # there may be very many
        if not is_text("".join(value)):
            position = next(position for position, item in enumerate(value) if not is_text(item))
            _fail(f"{name}[{position}]", HALF_A_PAIR, name)
        return list(value)
    return [_bind_scalar(f"{name}[{position}]", scalar, item, name) for position, item in enumerate(value)]


def _bind_scalar(
    where: str, scalar: Scalar, value: object, name: str | None = None
) -> str | int | float | bool:
    """Return one value; `where` is the parameter or one of its items."""
    name = name or where
    if scalar in INTEGERS:
        return _integer(where, scalar, value, name)
    if scalar in FLOATS:
        return _float(where, value, name)
    if scalar in {Scalar.DATE, Scalar.DATETIME}:
        return _moment(where, scalar, value, name)
    wanted = bool if scalar is Scalar.BOOL else str
    if not isinstance(value, wanted):
        _fail(where, f"expected {json_name(wanted())}, got {json_name(value)}", name)
    if isinstance(value, str) and not is_text(value):
        _fail(where, HALF_A_PAIR, name)
    return value


def _moment(where: str, scalar: Scalar, value: object, name: str) -> int:
    """Return a `Date` as days and a `DateTime` as milliseconds, from a text or from Python's own type."""
    parse, number = (parse_date, days_of) if scalar is Scalar.DATE else (parse_datetime, millis_of)
    if not isinstance(value, str | date):
        _fail(where, f"expected string, got {json_name(value)}", name)
    try:
        return parse(value) if isinstance(value, str) else number(value)
    except ExecutionError as error:
        _fail(where, error.message, name)


def _integer(where: str, scalar: Scalar, value: object, name: str) -> int:
    if isinstance(value, str) and _DECIMAL_INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        shown = f"{json_name(value)} {value!r:.40}" if isinstance(value, str | float) else json_name(value)
        _fail(where, f"expected {scalar}: an integer or a string of digits, got {shown}", name)
    low, high = _RANGES[scalar]
    if not low <= value <= high:
        _fail(where, f"{_clipped(value)} is not between {low} and {high}", name)
    return value


def _float(where: str, value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _fail(where, f"expected number, got {json_name(value)}", name)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        _fail(where, "expected a finite number", name)
    return number


def _fail(where: str, message: str, name: str | None = None) -> NoReturn:
    owner = name or where
    place = f"param '{owner}'" if owner == where else f"param '{owner}': item {where.removeprefix(owner)}"
    raise ParameterError(f"{place}: {message}", name=owner)


def _expected(type_: ValueType) -> str:
    return f"an array of {type_.scalar if type_.dimension is None else _numbers(type_.dimension)}"


def _numbers(count: int) -> str:
    return "1 number" if count == 1 else f"{count} numbers"


def _clipped(value: int) -> str:
    """Return an integer without the interpreter's limit on printing very large ones."""
    return str(value) if value.bit_length() <= 128 else "an integer of more than 128 bits"


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
    """A column of the result, under its short name; or a parameter."""

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
    return ResultField(name, "object", nullable=False) if type_ is None else field_of(name, type_)


def field_of(name: str, type_: ValueType) -> ResultField:
    """Return how a column or a parameter of some type is told to other programs."""
    if type_.is_vector:
        return ResultField(name, "vector", type_.nullable, vector_dim=type_.dimension)
    if type_.is_list:
        return ResultField(name, "list", type_.nullable, item_kind=_KINDS[type_.scalar])
    return ResultField(name, _KINDS[type_.scalar], type_.nullable)


def type_of_field(field: ResultField) -> ValueType:
    """Return the type that was told so; of types that are told alike, the first.

    Raises:
        KeyError: none is.
    """
    if field.vector_dim is not None:
        return ValueType(Scalar.VECTOR, field.nullable, dimension=field.vector_dim)
    kinds = {kind: scalar for scalar, kind in reversed(_KINDS.items())}
    is_list = field.item_kind is not None
    return ValueType(kinds[field.item_kind or field.kind], field.nullable, is_list)


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
