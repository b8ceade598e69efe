"""A second reading of the two languages, to hold the product's parsers against.

The grammars beside this file and the checks below come from the specification alone. `oracle_schema` and
`oracle_queries` return the tree of a text in a neutral form, nested tuples of strings; `tree_of` brings the
product's trees into the same form.

O1  A tree is the name of its class and its fields in order; spans and sources take no part in it, as they
    take none in comparing trees.
O2  A name is its text; a number or truth value is a pair of its kind and its text, so that 1 is not 1.0.
O3  A text with two trees is a mistake in the oracle, not a choice of it.
"""

import dataclasses
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeAlias

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from omnigraph.language.tree import Name

Neutral: TypeAlias = "str | tuple[Neutral, ...] | None"
Parsed: TypeAlias = Tree[Token]

I64_MAX = 2**63 - 1
U64_MAX = 2**64 - 1
SOURCE_BYTES_MAX = 16 * 1024 * 1024
NESTING_MAX = 64
ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
CALLS = frozenset({"nearest", "search", "fuzzy", "match_text", "bm25", "rrf", "aggregate"})


class OracleReject(Exception):
    """The text is no file of the language, for the reason given."""


def oracle_schema(text: str) -> Neutral:
    """Return the neutral tree of a schema.

    Raises:
        OracleReject: The text does not fit the grammar or a check of a single file.
    """
    # A schema's numbers are not bounded by the grammar: a bound may be that of a U64, and the numbers of a
    # vector (S05) and of a cardinality (S08) are checked with what they mean.
    tree = _parse("schema", text)
    return ("SchemaFile", tuple(_declaration(child) for child in _trees(tree)))


def oracle_queries(text: str) -> Neutral:
    """Return the neutral tree of a query file.

    Raises:
        OracleReject: The text does not fit the grammar or a check of a single query.
    """
    tree = _parse("query", text)
    _check_queries(tree)
    return ("QueryFile", tuple(_query(child) for child in _trees(tree)))


def tree_of(ast: object) -> Neutral:
    """Return the neutral tree of one of the product's trees, or of a value in it."""
    match ast:
        case None:
            return None
        case Name(text=text):
            return text
        case str():
            return str(ast)
        case bool() | int() | float():
            return _scalar(ast)
        case tuple():
            return tuple(tree_of(item) for item in ast)
        case _:
            return _node_of(ast)


def _node_of(ast: object) -> Neutral:
    assert dataclasses.is_dataclass(ast), f"{type(ast).__name__} is no part of a tree"
    names = [field.name for field in dataclasses.fields(ast) if field.compare]
    return (type(ast).__name__, *(tree_of(getattr(ast, name)) for name in names))


# Reading


@cache
def _grammar(name: str) -> Lark:
    path = Path(__file__).with_name(f"{name}.lark")
    return Lark(path.read_text(encoding="utf-8"), parser="earley", lexer="dynamic", ambiguity="explicit")


def _parse(grammar: str, text: str) -> Parsed:
    if len(text.encode(errors="surrogatepass")) > SOURCE_BYTES_MAX:
        raise OracleReject("more than 16 MiB")
    try:
        tree = _grammar(grammar).parse(text)
    except UnexpectedInput as error:
        raise OracleReject(f"does not fit the grammar: {type(error).__name__}") from None
    assert not list(tree.find_data("_ambig")), f"two trees for {text!r}"
    for string in _tokens(tree, "STRING"):
        _decode(string)
    return tree


def _trees(tree: Parsed, *names: str) -> list[Parsed]:
    """Return the children that are trees, of the given names if there are any."""
    return [c for c in tree.children if isinstance(c, Tree) and (not names or c.data in names)]


def _leaves(tree: Parsed, name: str) -> list[str]:
    """Return the texts of the children that are tokens of the given name."""
    return [str(c) for c in tree.children if isinstance(c, Token) and c.type == name]


def _tokens(tree: Parsed, name: str) -> list[str]:
    """Return the texts of the tokens of the given name anywhere below."""
    return [
        str(token) for token in tree.scan_values(lambda leaf: isinstance(leaf, Token) and leaf.type == name)
    ]


def _decode(string: str) -> str:
    """Return what a string means; the escapes are five."""
    characters = iter(string[1:-1])
    decoded = []
    for character in characters:
        if character == "\\":
            escape = next(characters)
            if escape not in ESCAPES:
                raise OracleReject(f"unsupported escape sequence \\{escape}")
            decoded.append(ESCAPES[escape])
        else:
            decoded.append(character)
    return "".join(decoded)


def _integer(text: str) -> Neutral:
    return _scalar(int(text.lstrip("0") or "0"))  # Python reads no integer of more than 4,300 digits


def _decimal(text: str) -> Neutral:
    value = float(text)
    if math.isinf(value):
        raise OracleReject("F64 values are finite")
    return _scalar(value)


def _scalar(value: bool | int | float) -> Neutral:
    return (type(value).__name__, repr(value))


def _token_value(token: Token) -> Neutral:
    """Return the value of a literal that is one token."""
    match token.type:
        case "STRING":
            return _decode(token)
        case "BOOL":
            return _scalar(token == "true")
        case "INTEGER":
            return _integer(token)
        case "DECIMAL":
            return _decimal(token)
        case "NUMBER":
            return _decimal(token) if "." in token else _signed(token)
        case _:
            raise AssertionError(f"{token.type} is no literal")


# Checks that are not grammar


def _check_integer(text: str, maximum: int) -> None:
    digits = text.lstrip("0")
    if len(digits) > len(str(maximum)) or int(digits or "0") > maximum:
        raise OracleReject(f"an integer of {len(digits)} digits is above {maximum}")


def _signed(text: str) -> Neutral:
    """Return a bound of a range, or an integer of a default."""
    if text.startswith("-"):
        return _scalar(-int(text[1:].lstrip("0") or "0"))
    return _integer(text)


def _check_queries(tree: Parsed) -> None:
    """Check what 3.2 asks of each query besides its grammar."""
    for integer in _tokens(tree, "INTEGER"):
        _check_integer(integer, I64_MAX)
    for rows in _tokens(tree, "ROWS"):
        _check_integer(rows, U64_MAX)
    for variable in _tokens(tree, "VARIABLE"):
        if variable.startswith("$__"):
            raise OracleReject(f"{variable} is reserved")
    for query in _trees(tree):
        _check_once([_leaves(p, "VARIABLE")[0] for p in query.find_data("parameter")])
        _check_once([_leaves(a, "Q_ANNOTATION")[0] for a in _trees(query, "q_annotation")])
        for mutation in _trees(query, "mutation"):
            if _trees(mutation, "delete") and _trees(mutation, "insert", "update"):
                raise OracleReject("mixes inserts or updates with deletes")
        # Each kind for itself: whether they add up is not said, and no generated text is near the limit.
        for kind in (frozenset({"negation"}), frozenset({"list"}), CALLS):
            if _depth(query, kind) > NESTING_MAX:
                raise OracleReject(f"nests {sorted(kind)} deeper than {NESTING_MAX}")


def _check_once(names: list[str]) -> None:
    if len(names) != len(set(names)):
        raise OracleReject(f"a name of {names} is given twice")


def _depth(tree: Parsed, kind: frozenset[str]) -> int:
    """Return how many trees of a kind are nested in one another."""
    below = max((_depth(child, kind) for child in _trees(tree)), default=0)
    return below + (tree.data in kind)


# Schema trees


def _declaration(tree: Parsed) -> Neutral:
    names = _leaves(tree, "TYPE_NAME")
    annotations = tuple(_annotation(child) for child in _trees(tree, "annotation"))
    body = tuple(_item(child) for child in _trees(tree, "property", "constraint"))
    match tree.data:
        case "interface":
            return ("Interface", names[0], body)
        case "node":
            implemented = [
                name for child in _trees(tree, "implements") for name in _leaves(child, "TYPE_NAME")
            ]
            return ("Node", names[0], annotations, tuple(implemented), body)
        case "edge":
            cardinalities = [_bounds("Cardinality", child) for child in _trees(tree, "cardinality")]
            return ("Edge", *names, cardinalities[0] if cardinalities else None, annotations, body)
        case _:
            raise AssertionError(tree.data)


def _bounds(class_name: str, tree: Parsed) -> Neutral:
    """Return a lower bound and one that may be missing."""
    integers = [_integer(text) for text in _leaves(tree, "INTEGER")]
    return (class_name, integers[0], integers[1] if len(integers) == 2 else None)


def _item(tree: Parsed) -> Neutral:
    if tree.data == "constraint":
        name, *arguments = tree.children
        return ("Constraint", str(name), tuple(_constraint_argument(argument) for argument in arguments))
    type_, *annotations = _trees(tree)
    return (
        "PropertyDeclaration",
        _leaves(tree, "NAME")[0],
        _type_name(type_),
        tuple(_annotation(a) for a in annotations),
    )


def _type_name(tree: Parsed) -> Neutral:
    described, *nullable = tree.children
    assert isinstance(described, Tree)
    is_list = described.data == "list"
    values: Neutral = None
    dimension: Neutral = None
    scalar = "String"
    match described.data:
        case "enum":
            values = tuple(_leaves(described, "ENUM_VALUE"))
        case "vector":
            scalar, dimension = "Vector", _integer(_leaves(described, "INTEGER")[0])
        case _:
            scalar = _leaves(described, "SCALAR")[0]
    return ("TypeName", scalar, _scalar(bool(nullable)), _scalar(is_list), values, dimension)


def _annotation(tree: Parsed) -> Neutral:
    arguments = [_argument(child) for child in _trees(tree, "argument", "default", "argument_list", "bases")]
    keywords = tuple(_keyword(child) for child in _trees(tree, "keyword"))
    (name,) = (
        name for kind in ("ANNOTATION", "DEFAULT", "EXTERNAL") for name in _leaves(tree, f"{kind}_NAME")
    )
    return ("Annotation", name, arguments[0] if arguments else None, keywords)


def _argument(tree: Parsed) -> Neutral:
    if tree.data in {"argument_list", "bases"}:
        items = [child for child in tree.children if isinstance(child, Token)]
        return ("ListArgument", tuple(("LiteralArgument", _token_value(item)) for item in items))
    (token,) = tree.children
    assert isinstance(token, Token)
    if token.type == "ARGUMENT_NAME":
        return ("NameArgument", str(token))
    return ("LiteralArgument", _token_value(token))


def _keyword(tree: Parsed) -> Neutral:
    name, value = tree.children
    assert isinstance(value, Token)
    return (str(name), _token_value(value))


def _constraint_argument(argument: Token | Parsed) -> Neutral:
    if isinstance(argument, Token):
        return (
            ("NameArgument", str(argument))
            if argument.type == "NAME"
            else ("LiteralArgument", _decode(argument))
        )
    bounds = [_token_value(child) for child in argument.children if isinstance(child, Token)]
    match argument.data:
        case "between":
            return ("RangeArgument", *bounds)
        case "from":
            return ("RangeArgument", bounds[0], None)
        case "up_to":
            return ("RangeArgument", None, bounds[0])
        case _:
            raise AssertionError(argument.data)


# Query trees


def _query(tree: Parsed) -> Neutral:
    texts: dict[str, Neutral] = {}
    for annotation in _trees(tree, "q_annotation"):
        text = ("Literal", "String", _decode(_leaves(annotation, "STRING")[0]))
        texts[_leaves(annotation, "Q_ANNOTATION")[0]] = text
    (parameters,) = _trees(tree, "parameters")
    (body,) = _trees(tree, "read", "mutation")
    return (
        "Query",
        _leaves(tree, "NAME")[0],
        tuple(_parameter(child) for child in _trees(parameters)),
        texts.get("@description"),
        texts.get("@instruction"),
        _read(body)
        if body.data == "read"
        else ("Mutation", tuple(_statement(child) for child in _trees(body))),
    )


def _parameter(tree: Parsed) -> Neutral:
    (type_,) = _trees(tree)
    described, *nullable = type_.children
    assert isinstance(described, Tree)
    is_list = described.data == "list_type"
    if described.data == "vector_type":
        scalar, dimension = "Vector", _integer(_leaves(described, "INTEGER")[0])
    else:
        scalar, dimension = _leaves(described, "SCALAR")[0], None
    value_type = ("ValueType", scalar, _scalar(bool(nullable)), _scalar(is_list), None, dimension)
    return ("Parameter", _leaves(tree, "VARIABLE")[0][1:], value_type)


def _read(tree: Parsed) -> Neutral:
    (block,) = _trees(tree, "block")
    (returned,) = _trees(tree, "return")
    orderings = [_ordering(child) for order in _trees(tree, "order") for child in _trees(order)]
    limits = [_integer(text) for limit in _trees(tree, "limit") for text in _leaves(limit, "ROWS")]
    return (
        "Read",
        tuple(_clause(child) for child in _trees(block)),
        tuple(_projection(child) for child in _trees(returned)),
        tuple(orderings),
        limits[0] if limits else None,
    )


def _clause(tree: Parsed) -> Neutral:
    match tree.data:
        case "negation":
            (block,) = _trees(tree)
            return ("Negation", tuple(_clause(child) for child in _trees(block)))
        case "binding":
            (variable,) = _trees(tree, "variable")
            matches = tuple(_assigned("PropertyMatch", child) for child in _trees(tree, "prop_match"))
            return ("Binding", _expression(variable), _leaves(tree, "TYPE_NAME")[0], matches)
        case "traversal":
            return _traversal(tree)
        case "filter":
            left, right = _trees(tree)
            (operator,) = [str(child) for child in tree.children if isinstance(child, Token)]
            return ("Filter", _expression(left), operator, _expression(right))
        case "text_predicate":
            (expression,) = _trees(tree)
            return ("TextPredicate", _expression(expression))
        case _:
            raise AssertionError(tree.data)


def _traversal(tree: Parsed) -> Neutral:
    left, right = (_expression(child) for child in _trees(tree, "variable"))
    edge_variables = [_expression(v) for child in _trees(tree, "edge_variable") for v in _trees(child)]
    (edge,) = _trees(tree, "directed", "undirected")
    hops = [_bounds("Hops", child) for child in _trees(tree, "hops")]
    return (
        "Traversal",
        left,
        edge_variables[0] if edge_variables else None,
        _leaves(edge, "EDGE_WORD")[0],
        _scalar(edge.data == "undirected"),
        hops[0] if hops else None,
        right,
    )


def _projection(tree: Parsed) -> Neutral:
    (expression,) = _trees(tree)
    aliases = _leaves(tree, "NAME")
    return ("Projection", _expression(expression), aliases[0] if aliases else None)


def _ordering(tree: Parsed) -> Neutral:
    (expression,) = _trees(tree)
    return ("Ordering", _expression(expression), _scalar(_leaves(tree, "DIRECTION") == ["desc"]))


def _statement(tree: Parsed) -> Neutral:
    type_name = _leaves(tree, "TYPE_NAME")[0]
    assignments = tuple(_assigned("Assignment", child) for child in _trees(tree, "assignment"))
    predicates = [_predicate(child) for child in _trees(tree, "predicate")]
    match tree.data:
        case "insert":
            return ("Insert", type_name, assignments)
        case "update":
            return ("Update", type_name, assignments, predicates[0])
        case "delete":
            return ("Delete", type_name, predicates[0])
        case _:
            raise AssertionError(tree.data)


def _assigned(class_name: str, tree: Parsed) -> Neutral:
    (value,) = _trees(tree)
    return (class_name, _leaves(tree, "NAME")[0], _expression(value))


def _predicate(tree: Parsed) -> Neutral:
    (value,) = _trees(tree)
    return ("Predicate", _leaves(tree, "NAME")[0], _leaves(tree, "COMPARE")[0], _expression(value))


def _expression(tree: Parsed) -> Neutral:
    name = str(tree.data)
    if name in _TOKEN_EXPRESSIONS:
        tokens = [child for child in tree.children if isinstance(child, Token)]
        return _TOKEN_EXPRESSIONS[name](tokens)
    operands = tuple(_expression(child) for child in _trees(tree))
    match name:
        case "list":
            return ("ListLiteral", operands)
        case "aggregate":
            return ("Aggregate", _leaves(tree, "AGGREGATE")[0], *operands)
        case "nearest":
            return ("Nearest", *operands)
        case "bm25":
            return ("Bm25", *operands)
        case "rrf":
            return ("Rrf", *_padded(operands))
        case "search" | "fuzzy" | "match_text":
            return ("TextMatch", name, *_padded(operands))
        case _:
            raise AssertionError(name)


def _padded(operands: tuple[Neutral, ...]) -> tuple[Neutral, ...]:
    """Return three operands, of which the last may be missing."""
    return operands if len(operands) == 3 else (*operands, None)


_TOKEN_EXPRESSIONS: dict[str, Callable[[list[Token]], Neutral]] = {
    "variable": lambda tokens: ("Variable", tokens[0][1:]),
    "as_reference": lambda tokens: ("AliasReference", str(tokens[0])),
    "alias_reference": lambda tokens: ("AliasReference", str(tokens[0])),
    "prop_access": lambda tokens: ("PropertyAccess", tokens[0][1:], str(tokens[1])),
    "now": lambda tokens: ("Now",),
    "datetime": lambda tokens: ("Literal", "DateTime", _token_value(tokens[0])),
    "date": lambda tokens: ("Literal", "Date", _token_value(tokens[0])),
    "string": lambda tokens: ("Literal", "String", _token_value(tokens[0])),
    "decimal": lambda tokens: ("Literal", "F64", _token_value(tokens[0])),
    "integer": lambda tokens: ("Literal", "I64", _token_value(tokens[0])),
    "bool": lambda tokens: ("Literal", "Bool", _token_value(tokens[0])),
}
