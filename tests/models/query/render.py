"""Schemas, data, queries and parameters as the texts that the engine reads."""

import json
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal

from tests.models.query.answer import plain
from tests.models.query.shape import (
    Aggregate,
    Alias,
    Binding,
    Bm25,
    Cell,
    Clause,
    Data,
    Entity,
    Expression,
    Filter,
    Literal,
    Nearest,
    Negation,
    Node,
    Now,
    Ordering,
    Parameter,
    Projection,
    Property,
    Query,
    Rrf,
    Schema,
    TextPredicate,
    Traversal,
    Type,
    Variable,
)

QUERY_NAME = "q"
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def schema_text(schema: Schema) -> str:
    """Return the `.pg` text of a schema."""
    lines = []
    for node in schema.nodes.values():
        lines += [f"node {node.name} {{", *_properties(node.properties.items())]
        lines += [f"    {node.body}"] * bool(node.body) + ["}"]
    for edge in schema.edges.values():
        lines += [
            f"edge {edge.name}: {edge.source} -> {edge.target} {{",
            *_properties(edge.properties.items()),
            "}",
        ]
    return "\n".join(lines) + "\n"


def _properties(properties: Iterable[tuple[str, Type]]) -> list[str]:
    return [f"    {name}: {type_text(kind)} {kind.index}".rstrip() for name, kind in properties]


def type_text(kind: Type) -> str:
    """Return a type as the two languages write it."""
    text = f"enum({', '.join(kind.members)})" if kind.members else kind.scalar
    text = f"[{text}]" if kind.is_list else f"Vector({kind.dimension})" if kind.dimension else text
    return f"{text}?" if kind.is_nullable else text


def ndjson(schema: Schema, data: Data) -> bytes:
    """Return data as the input of a load, nodes first."""
    lines = []
    entities: list[Entity] = [*data.nodes, *data.edges]
    for entity in entities:
        values = {name: _stored(value) for name, value in entity.values.items() if value is not None}
        if isinstance(entity, Node):
            given = {} if schema.nodes[entity.type_name].key else {"id": entity.id}
            record: dict[str, object] = {"type": entity.type_name, "data": {**given, **values}}
        else:
            ends = {"from": entity.source, "to": entity.target}
            record = {"edge": entity.type_name, **ends, "data": {"id": entity.id, **values}}
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def _stored(value: Cell) -> Cell:
    return plain(value) if isinstance(value, date) else value


def parameters_json(query: Query) -> dict[str, object]:
    """Return the values of a query's parameters; a null that may be left out is left out."""
    return {each.name: _stored(each.value) for each in query.parameters if each.value is not None}


def query_text(query: Query) -> str:
    """Return the `.gq` text of a query."""
    parameters = ", ".join(f"${each.name}: {type_text(each.type)}" for each in query.parameters)
    lines = [f"query {QUERY_NAME}({parameters}) {{", "    match {"]
    lines += [f"        {clause_text(clause)}" for clause in query.clauses]
    lines += ["    }", f"    return {{ {', '.join(_projection(item) for item in query.projections)} }}"]
    if query.order:
        lines.append(f"    order {{ {', '.join(_ordering(item) for item in query.order)} }}")
    if query.limit is not None:
        lines.append(f"    limit {query.limit}")
    return "\n".join(lines) + "\n}\n"


def clause_text(clause: Clause) -> str:
    """Return one clause of a match block."""
    match clause:
        case Binding(variable, type_name, ()):
            return f"${variable}: {type_name}"
        case Binding(variable, type_name, matches):
            inner = ", ".join(f"{name}: {expression_text(value)}" for name, value in matches)
            return f"${variable}: {type_name} {{ {inner} }}"
        case Traversal(left, edge, right, edge_variable, bounds, is_undirected, is_lower_case):
            word = edge.lower() if is_lower_case else edge[0].lower() + edge[1:]
            word = f"<{word}>" if is_undirected else word
            prefix = f"${edge_variable}:" if edge_variable else ""
            hops = f"{{{bounds[0]},{bounds[1]}}}" if bounds else ""
            return f"${left} {prefix}{word}{hops} ${right}"
        case Filter(left_operand, sign, right_operand):
            return f"{expression_text(left_operand)} {sign} {expression_text(right_operand)}"
        case TextPredicate(function, field, query, edits, is_compared):
            more = "" if edits is None else f", {edits}"
            text = f"{function}({expression_text(field)}, {expression_text(query)}{more})"
            return f"{text} = true" if is_compared else text
        case Negation(clauses):
            return f"not {{ {'  '.join(clause_text(inner) for inner in clauses)} }}"


def _projection(item: Projection) -> str:
    return expression_text(item.expression) + (f" as {item.alias}" if item.alias else "")


def _ordering(item: Ordering) -> str:
    return expression_text(item.expression) + (" desc" if item.is_descending else "")


def expression_text(expression: Expression) -> str:
    """Return one expression."""
    match expression:
        case Property(variable, name):
            return f"${variable}.{name}"
        case Variable(name) | Parameter(name):
            return f"${name}"
        case Alias(name):
            return name
        case Literal(value):
            return literal_text(value)
        case Now():
            return "now()"
        case Aggregate(function, argument):
            return f"{function}({expression_text(argument)})"
        case Nearest(field, query):
            return f"nearest({expression_text(field)}, {expression_text(query)})"
        case Bm25(field, query):
            return f"bm25({expression_text(field)}, {expression_text(query)})"
        case Rrf(first, second, k):
            more = "" if k is None else f", {k}"
            return f"rrf({expression_text(first)}, {expression_text(second)}{more})"


def literal_text(value: Cell) -> str:
    """Return a literal; there are no negative ones and no exponents."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            text = format(Decimal(repr(value)), "f")
            return text if "." in text else f"{text}.0"
        case datetime():
            return f'datetime("{plain(value)}")'
        case date():
            return f'date("{plain(value)}")'
        case str():
            return f'"{value.translate(_ESCAPES)}"'
        case _:
            return f"[{', '.join(literal_text(item) for item in value)}]"
