"""Tokens to a schema tree: one method per rule of the grammar."""

import re

from omnigraph.core.span import Source, Span
from omnigraph.core.values import SCALAR_WORDS, Scalar
from omnigraph.language.parser import SyntaxFailure, TokenCursor, clip, tokenize
from omnigraph.language.schema_ast import (
    Annotation,
    AnnotationValue,
    Cardinality,
    Constraint,
    Declaration,
    Edge,
    Interface,
    ListArgument,
    LiteralArgument,
    NameArgument,
    Node,
    PropertyDeclaration,
    RangeArgument,
    SchemaFile,
    TypeName,
)
from omnigraph.language.tree import Name

CONSTRAINTS = frozenset({"key", "unique", "index", "range", "check"})
_DECLARATIONS = ("node", "edge", "interface")
_QUOTES = "a value that is no plain name or number is written in quotes, as in '@default(\"b-c\")'"
_ENUM_VALUE = re.compile(r"[A-Za-z0-9_-]+")


def parse_schema(source: Source) -> SchemaFile:
    """Return the tree of a schema file.

    Raises:
        ParseError: the text does not fit the grammar; every error that could be recovered from is in it.
    """
    return _SchemaParser(source).schema()


class _SchemaParser(TokenCursor):
    def __init__(self, source: Source) -> None:
        super().__init__(tokenize(source))

    def schema(self) -> SchemaFile:
        declarations: list[Declaration] = []
        while self.token.kind != "end":
            try:
                declarations.append(self.declaration())
            except SyntaxFailure as failure:
                self.report(failure.diagnostic)
                self.skip_to_declaration()
        self.raise_reported()
        return SchemaFile(tuple(declarations), self.source)

    def declaration(self) -> Declaration:
        if self.at("node"):
            return self.node()
        if self.at("edge"):
            return self.edge()
        if self.at("interface"):
            return self.interface()
        raise self.unexpected(
            "'node', 'edge' or 'interface'",
            help="a schema is a list of node, edge and interface declarations",
        )

    def interface(self) -> Interface:
        start = self.take()
        name = self.type_name("the name of the interface")
        help = "an interface has properties only: no annotations, no constraints, no parents"
        self.expect("{", help=help)
        properties: list[PropertyDeclaration] = []
        while not self.accept("}"):
            with_constraint = self.at("@")
            if with_constraint or self.token.kind != "name":
                raise self.unexpected("a property or '}'", help=help if with_constraint else None)
            properties.append(self.property())
        return Interface(name, tuple(properties), self.since(start))

    def node(self) -> Node:
        start = self.take()
        name = self.type_name("the name of the node type")
        annotations = self.annotations()
        implements: list[Name] = []
        if self.accept("implements"):
            implements.append(self.type_name("the name of an interface"))
            while self.accept(","):
                implements.append(self.type_name("the name of an interface"))
        self.expect("{", help="annotations of a node come before 'implements'" if self.at("@") else None)
        return Node(name, annotations, tuple(implements), self.body(), self.since(start))

    def edge(self) -> Edge:
        start = self.take()
        name = self.type_name("the name of the edge type")
        self.expect(":", help="an edge is declared as 'edge Name: Source -> Target'")
        source = self.type_name("the node type that the edge comes from")
        self.expect("->")
        target = self.type_name("the node type that the edge goes to")
        cardinality = self.cardinality() if self.at_cardinality() else None
        annotations = self.annotations()
        body = self.body() if self.accept("{") else ()
        return Edge(name, source, target, cardinality, annotations, body, self.since(start))

    def at_cardinality(self) -> bool:
        at, name = self.token, self.ahead()
        return at.text == "@" and name.text == "card" and at.end == name.start

    def cardinality(self) -> Cardinality:
        start = self.take()
        self.take()
        self.expect("(", help="write '@card(low..high)' or '@card(low..)'")
        help = "write '@card(low..high)' or '@card(low..)': the lower bound is always given"
        if self.token.kind != "integer":
            raise self.unexpected("the smallest number of edges", help=help)
        low = self.integer("the cardinality")
        self.expect("..", help=help)
        high = None
        if self.token.kind == "integer":
            high = self.integer("the cardinality")
        self.expect(")", help="leave the upper bound out for 'any number'" if self.at("*") else None)
        return Cardinality(low, high, self.since(start))

    # Bodies

    def body(self) -> tuple[PropertyDeclaration | Constraint, ...]:
        """Read a body after its brace; an error in an item loses that item, not the declaration."""
        items: list[PropertyDeclaration | Constraint] = []
        while not self.accept("}"):
            start = self.index
            try:
                items.append(self.item())
            except SyntaxFailure as failure:
                if self.index == start:
                    self.take()
                if not self.skip_to_item():
                    raise
                self.report(failure.diagnostic)
        return tuple(items)

    def item(self) -> PropertyDeclaration | Constraint:
        if self.at_constraint():
            return self.constraint()
        if self.token.kind == "name":
            return self.property()
        if self.at(","):
            raise self.unexpected("a property, a constraint or '}'", help="properties need no separator")
        if self.token.kind == "type":
            self.name("the name of a property")
        raise self.unexpected("a property, a constraint or '}'")

    def property(self) -> PropertyDeclaration:
        start = self.token
        name = self.name("the name of a property")
        self.expect(":", help="a property is written 'name: Type'")
        return PropertyDeclaration(name, self.type(), self.annotations(), self.since(start))

    def at_constraint(self) -> bool:
        return self.at("@") and self.ahead().text in CONSTRAINTS and self.ahead(2).text == "("

    def constraint(self) -> Constraint:
        start = self.take()
        name = self.take().text
        self.expect("(")
        arguments = [self.constraint_argument()]
        while self.accept(","):
            arguments.append(self.constraint_argument())
        self.expect(")")
        return Constraint(name, tuple(arguments), self.since(start))

    def constraint_argument(self) -> NameArgument | LiteralArgument | RangeArgument:
        token = self.token
        if token.kind == "name":
            self.take()
            return NameArgument(token.text, token.span)
        if token.kind == "string":
            return LiteralArgument(*self.string("a pattern"))
        if token.kind in {"integer", "decimal"} or self.at("-") or self.at(".."):
            return self.range()
        raise self.unexpected("the name of a property, a range or a string")

    def range(self) -> RangeArgument:
        start = self.token
        low = None if self.at("..") else self.number()
        self.expect("..", help="a range is written 'low..high', 'low..' or '..high'")
        bounded = low is None or self.token.kind in {"integer", "decimal"} or self.at("-")
        high = self.number() if bounded else None
        return RangeArgument(low, high, self.since(start))

    def number(self) -> int | float:
        minus = self.token
        is_negative = self.accept("-")
        if is_negative and self.token.start != minus.end:
            raise self.unexpected("a number directly after '-'")
        if self.token.kind == "decimal":
            decimal = self.decimal()
            return -decimal if is_negative else decimal
        integer = self.integer("a number")
        return -integer if is_negative else integer

    # Types

    def type(self) -> TypeName:
        start = self.token
        scalar, is_list, enum_values, dimension = Scalar.STRING, False, None, None
        if self.accept("["):
            scalar, is_list = self.scalar(help="a list holds plain scalars"), True
            self.expect(
                "]", help="a list holds plain scalars: write '?' after the bracket" if self.at("?") else None
            )
        elif self.at("enum") and self.ahead().text == "(":
            enum_values = self.enum_values()
        elif self.token.text == "Vector":
            self.take()
            self.expect("(", help="a vector has a dimension: write 'Vector(384)'")
            scalar, dimension = Scalar.VECTOR, self.integer("the dimension of the vector")
            self.expect(")")
        else:
            scalar = self.scalar()
        nullable = self.accept("?")
        return TypeName(scalar, nullable, is_list, enum_values, dimension, self.since(start))

    def scalar(self, *, help: str | None = None) -> Scalar:
        scalar = SCALAR_WORDS.get(self.token.text)
        if scalar is None or self.token.kind != "type":
            known = help or f"types are {', '.join(SCALAR_WORDS)}, Vector(n), enum(...) and [scalar]"
            raise self.unexpected("a type", help=known)
        self.take()
        return scalar

    def enum_values(self) -> tuple[Name, ...]:
        self.take()
        self.expect("(")
        values = [self.enum_value()]
        while self.accept(","):
            values.append(self.enum_value())
        self.expect(")")
        return tuple(values)

    def enum_value(self) -> Name:
        """Read a value such as `soft-back` or `2nd`, which the lexer has cut into several tokens."""
        start = self.token.start
        match = _ENUM_VALUE.match(self.source.text, start)
        if match is None:
            raise self.unexpected("an enum value", help="values are made of letters, digits, '_' and '-'")
        end = match.end()
        while self.token.start < end:
            if self.token.end > end:
                text = clip(self.source.text[start : self.token.end])
                raise self.failure(f"'{text}' is not an enum value", Span(start, self.token.end))
            self.take()
        return Name(match.group(), Span(start, end))

    # Annotations

    def annotations(self) -> tuple[Annotation, ...]:
        annotations: list[Annotation] = []
        while self.at("@") and not self.at_constraint():
            annotations.append(self.annotation())
        return tuple(annotations)

    def annotation(self) -> Annotation:
        start = self.take()
        name = self.name("the name of an annotation")
        if name.text == "card":
            help = "@card goes on an edge, directly after its target type"
            raise self.failure("@card is not allowed here", name.span, help=help)
        if not self.accept("("):
            return Annotation(name.text, None, (), self.since(start))
        if name.text == "default":
            value = self.default_argument()
            self.expect(")", help=_QUOTES)
            return Annotation(name.text, value, (), self.since(start))
        if name.text == "external":
            bases = self.external_argument()
            self.expect(")", help="further bases follow a comma, each in quotes")
            return Annotation(name.text, bases, (), self.since(start))
        argument = self.annotation_argument()
        keywords: list[tuple[str, AnnotationValue]] = []
        while self.accept(","):
            keyword = self.name("a keyword argument").text
            self.expect("=", help="further arguments are written 'name=value'")
            keywords.append((keyword, self.literal().value))
        self.expect(")")
        return Annotation(name.text, argument, tuple(keywords), self.since(start))

    def default_argument(self) -> NameArgument | LiteralArgument | ListArgument:
        """Read a value: what any annotation takes, a negative number, or a list of literals."""
        start = self.token
        if not self.accept("["):
            return self.signed_literal() if self.at("-") else self.annotation_argument(help=_QUOTES)
        items: list[LiteralArgument] = []
        if not self.at("]"):
            items.append(self.signed_literal())
            while self.accept(","):
                items.append(self.signed_literal())
        self.expect("]")
        return ListArgument(tuple(items), self.since(start))

    def external_argument(self) -> ListArgument:
        start = self.token
        bases = [LiteralArgument(*self.string("a base of references in quotes"))]
        while self.accept(","):
            bases.append(LiteralArgument(*self.string("a base of references in quotes")))
        return ListArgument(tuple(bases), self.since(start))

    def signed_literal(self) -> LiteralArgument:
        start = self.token
        return LiteralArgument(self.number(), self.since(start)) if self.at("-") else self.literal()

    def annotation_argument(self, *, help: str | None = None) -> NameArgument | LiteralArgument:
        token = self.token
        if token.kind == "name" and token.text not in {"true", "false"}:
            self.take()
            return NameArgument(token.text, token.span)
        return self.literal(help=help)

    def literal(self, *, help: str | None = None) -> LiteralArgument:
        token = self.token
        if token.kind == "string":
            return LiteralArgument(*self.string("a string"))
        if token.kind == "integer":
            return LiteralArgument(self.integer("a number"), token.span)
        if token.kind == "decimal":
            return LiteralArgument(self.decimal(), token.span)
        if self.at("true") or self.at("false"):
            return LiteralArgument(self.take().text == "true", token.span)
        raise self.unexpected("a string, a number, true or false", help=help)

    # Recovery

    def skip_to_declaration(self) -> None:
        """Step to the next declaration; always makes progress."""
        self.surface()
        if self.token.kind != "end":
            self.take()
        while self.token.kind != "end" and not self.at_declaration():
            self.take()

    def skip_to_item(self) -> bool:
        """Step to the next item or brace of this body; return whether there is one."""
        while self.token.kind != "end" and not self.at_declaration():
            if self.at("}") or (self.at("@") and self.is_first_on_line):
                return True
            if self.token.kind == "name" and self.ahead().text == ":":
                return True
            self.take()
        return False

    def at_declaration(self) -> bool:
        return self.token.text in _DECLARATIONS and self.ahead().kind == "type"
