"""The inside of a match block: clauses, expressions and values."""

from omnigraph.core.limits import I64_MAX
from omnigraph.core.values import Scalar
from omnigraph.language.parser import TokenCursor, clip
from omnigraph.language.query_ast import (
    Aggregate,
    AliasReference,
    Binding,
    Bm25,
    Clause,
    Expression,
    Filter,
    Hops,
    ListLiteral,
    Literal,
    Nearest,
    Negation,
    Now,
    PropertyAccess,
    PropertyMatch,
    Rrf,
    TextMatch,
    TextPredicate,
    Traversal,
    Value,
    Variable,
)
from omnigraph.language.tree import Name

COMPARISONS = frozenset({">=", "<=", "!=", ">", "<", "="})
WORD_OPERATORS = frozenset({"contains", "starts_with"})
OPERATORS = COMPARISONS | WORD_OPERATORS
AGGREGATES = frozenset({"count", "sum", "avg", "min", "max"})
_TEXT_MATCHES = frozenset({"search", "fuzzy", "match_text"})
_RESERVED_PREFIX = "__"


class ClauseParser(TokenCursor):
    """Rules for what goes between the braces of `match`, `return`, `order` and assignments."""

    # Clauses

    def block(self) -> tuple[Clause, ...]:
        """Read `{ clause ... }` with at least one clause."""
        self.expect("{")
        clauses = [self.clause()]
        while not self.accept("}"):
            clauses.append(self.clause())
        return tuple(clauses)

    def clause(self) -> Clause:
        """Read one clause; the first token or two decide which."""
        start = self.token
        if self.at("not") and self.ahead().text not in OPERATORS:
            return self.negation()
        if start.kind == "variable":
            following = self.ahead()
            if following.text == ":":
                return self.binding()
            is_edge = following.kind in {"name", "variable"} and not self.at_parameter_filter()
            if is_edge or self.at_undirected():
                return self.traversal()
        left = self.expression("a clause")
        is_predicate = isinstance(left, TextMatch)
        if self.token.text in OPERATORS and not (is_predicate and self.at_alias_filter()):
            operator = self.take().text
            return Filter(left, operator, self.expression("a value to compare with"), self.since(start))
        if isinstance(left, TextMatch):
            return TextPredicate(left, self.since(start))
        raise self.unexpected("a comparison such as '=' or 'contains'", help=self.clause_help())

    def at_alias_filter(self) -> bool:
        """Return whether `contains` or `starts_with` is next as the alias that a filter compares."""
        return self.token.text not in COMPARISONS and self.ahead().text in COMPARISONS

    def negation(self) -> Negation:
        """Read `not { ... }`."""
        start = self.take()
        self.enter()
        clauses = self.block()
        self.leave()
        return Negation(clauses, self.since(start))

    def clause_help(self) -> str | None:
        """Return the hint for a word that follows an expression."""
        if self.token.kind == "type":
            return (
                "a node is bound with '$variable: Type', an edge is followed with a lower-case first letter"
            )
        return None

    def at_parameter_filter(self) -> bool:
        """Return whether `$parameter contains $variable.property` is next, or the same with `starts_with`."""
        has_property = self.ahead(2).kind == "variable" and self.ahead(3).text == "."
        return self.ahead().text in WORD_OPERATORS and has_property

    def at_undirected(self) -> bool:
        """Return whether `$variable <edge>` is next."""
        return self.ahead().text == "<" and self.ahead(2).kind == "name" and self.ahead(3).text == ">"

    def binding(self) -> Binding:
        """Read `$variable: Type { property: value }`."""
        start = self.token
        variable = self.declared_variable("a variable")
        self.take()
        type_name = self.type_name("a node type")
        matches: list[PropertyMatch] = []
        if self.accept("{"):
            matches.append(self.property_match())
            while self.accept(",") and not self.at("}"):
                matches.append(self.property_match())
            self.expect("}")
        return Binding(variable, type_name, tuple(matches), self.since(start))

    def property_match(self) -> PropertyMatch:
        """Read `property: value` of a binding."""
        name = self.name("the name of a property")
        self.expect(":", help="an inline match is written 'property: value'")
        return PropertyMatch(name, self.value())

    def traversal(self) -> Traversal:
        """Read `$left edge $right` in all its forms."""
        start = self.token
        left = self.declared_variable("a variable")
        edge_variable = None
        if self.token.kind == "variable":
            edge_variable = self.declared_variable("a variable")
            self.expect(":", help="a named edge is written '$left $name:edge $right'")
        undirected = self.accept("<")
        edge = self.edge_word()
        if undirected:
            self.expect(">")
        hops = self.hops() if self.at("{") else None
        help = "a variable followed by a word is a traversal: an operator needs a property or a literal"
        if self.token.kind != "variable":
            raise self.unexpected("the variable that the edge leads to", help=help)
        right = self.declared_variable("a variable")
        return Traversal(left, edge_variable, edge, undirected, hops, right, self.since(start))

    def edge_word(self) -> Name:
        """Take the name of an edge; `not` is not one."""
        help = "an edge is followed with a lower-case first letter: 'edge Wrote' is '$a wrote $b'"
        if self.token.kind != "name" or self.token.text == "not":
            raise self.unexpected("an edge", help=help if self.token.kind == "type" else None)
        return self.name("an edge")

    def hops(self) -> Hops:
        """Read `{low,high}`."""
        start = self.take()
        low = self.integer("a number of hops", maximum=I64_MAX)
        self.expect(",", help="hop bounds are written '{low,high}'")
        high = self.integer("a number of hops", maximum=I64_MAX) if self.token.kind == "integer" else None
        self.expect("}")
        return Hops(low, high, self.since(start))

    def declared_variable(self, what: str) -> Variable:
        """Take a variable where it may be introduced; names reserved for the runtime are refused."""
        token = self.expect_kind("variable", what)
        name = token.text[1:]
        if name.startswith(_RESERVED_PREFIX):
            raise self.failure(f"'{clip(token.text)}': names that start with '__' are reserved", token.span)
        return Variable(name, token.span)

    # Expressions

    def expression(self, what: str) -> Expression:
        """Read one expression; `what` names it in an error."""
        token = self.token
        if token.kind == "variable":
            variable = self.declared_variable(what)
            if not self.accept("."):
                return variable
            member = self.name("the name of a property").text
            return PropertyAccess(variable.name, member, self.since(token))
        if token.kind == "name":
            if self.ahead().text == "(":
                return self.call()
            if token.text not in {"true", "false"}:
                self.take()
                return AliasReference(token.text, token.span)
        literal = self.literal_or_none()
        if literal is None:
            help = "there are no negative literals: pass the value as a parameter" if self.at("-") else None
            raise self.unexpected(what, help=help)
        return literal

    def at_call(self, function: str) -> bool:
        """Return whether a call of this function is next."""
        return self.at(function) and self.ahead().text == "("

    def call(self) -> Expression:
        """Read a function call; the name decides its arguments."""
        start = self.token
        function = start.text
        if function == "now":
            return self.now()
        if function == "nearest":
            return self.nearest()
        if function == "bm25":
            return self.bm25()
        if function == "rrf":
            return self.rrf()
        if function in {"date", "datetime"}:
            return self.moment()
        self.take()
        if function in AGGREGATES:
            self.enter()
            self.expect("(")
            argument = self.expression(f"what to {function}")
            self.expect(")")
            self.leave()
            return Aggregate(function, argument, self.since(start))
        if function in _TEXT_MATCHES:
            return self.text_match(function)
        known = (
            "now, date, datetime, count, sum, avg, min, max, search, fuzzy, match_text, nearest, bm25, rrf"
        )
        raise self.failure(f"unknown function '{clip(function)}'", start.span, help=f"functions are {known}")

    def now(self) -> Now:
        """Read `now()`."""
        start = self.take()
        self.expect("(")
        self.expect(")")
        return Now(self.since(start))

    def text_match(self, function: str) -> TextMatch:
        """Read the arguments of a text match, whose name has been taken."""
        start = self.tokens[self.index - 1]
        field, query = self.field_and_query()
        edits = None
        if function == "fuzzy" and self.accept(","):
            edits = self.expression("the number of edits")
        self.close_call()
        return TextMatch(function, field, query, edits, self.since(start))

    def nearest(self) -> Nearest:
        """Read `nearest(field, query)`."""
        start = self.take()
        self.enter()
        self.expect("(")
        place = self.token
        field = self.expression("a vector property")
        if not isinstance(field, PropertyAccess):
            raise self.failure("expected a vector property such as '$b.embedding'", place.span)
        self.expect(",")
        query = self.expression("a vector or a text")
        self.close_call()
        return Nearest(field, query, self.since(start))

    def bm25(self) -> Bm25:
        """Read `bm25(field, query)`."""
        start = self.take()
        field, query = self.field_and_query()
        self.close_call()
        return Bm25(field, query, self.since(start))

    def rrf(self) -> Rrf:
        """Read `rrf(rank, rank, k)`."""
        start = self.take()
        self.enter()
        self.expect("(")
        first = self.rank()
        self.expect(",")
        second = self.rank()
        k = self.expression("the constant k") if self.accept(",") else None
        self.close_call()
        return Rrf(first, second, k, self.since(start))

    def rank(self) -> Nearest | Bm25:
        """Read one of the rankings that rrf fuses."""
        if self.at_call("nearest"):
            return self.nearest()
        if self.at_call("bm25"):
            return self.bm25()
        raise self.unexpected("nearest(...) or bm25(...)", help="rrf fuses two rankings of these kinds")

    def field_and_query(self) -> tuple[Expression, Expression]:
        """Read the first two arguments of a text function."""
        self.enter()
        self.expect("(")
        field = self.expression("a text property")
        self.expect(",")
        return field, self.expression("the text to look for")

    def close_call(self) -> None:
        """Take the parenthesis that ends a call."""
        self.expect(")")
        self.leave()

    # Values

    def value(self) -> Value:
        """Read a literal, a variable or `now()`."""
        if self.token.kind == "variable":
            return self.declared_variable("a value")
        if self.at_call("now"):
            return self.now()
        if self.at_call("date") or self.at_call("datetime"):
            return self.moment()
        literal = self.literal_or_none()
        if literal is None:
            raise self.unexpected("a literal, a parameter or now()", help=self.value_help())
        return literal

    def value_help(self) -> str | None:
        """Return the hint for a place where a value was expected."""
        if self.at("null"):
            return "there is no null literal: leave the property out, or pass a nullable parameter"
        if self.at("-"):
            return "there are no negative literals: pass the value as a parameter"
        return None

    def literal_or_none(self) -> Literal | ListLiteral | None:
        """Read a literal, if one is next; dates are calls and read elsewhere."""
        token = self.token
        if token.kind == "string":
            text, span = self.string("a string")
            return Literal(Scalar.STRING, text, span)
        if token.kind == "integer":
            return Literal(Scalar.I64, self.integer("the integer", maximum=I64_MAX), token.span)
        if token.kind == "decimal":
            return Literal(Scalar.F64, self.decimal(), token.span)
        if self.at("true") or self.at("false"):
            return Literal(Scalar.BOOL, self.take().text == "true", token.span)
        return self.list_literal() if self.at("[") else None

    def list_literal(self) -> ListLiteral:
        """Read `[a, b]`."""
        start = self.take()
        self.enter()
        items: list[Literal | ListLiteral] = []
        if not self.at("]"):
            items.append(self.item())
            while self.accept(","):
                items.append(self.item())
        self.expect("]")
        self.leave()
        return ListLiteral(tuple(items), self.since(start))

    def item(self) -> Literal | ListLiteral:
        """Read one item of a list."""
        if self.at_call("date") or self.at_call("datetime"):
            return self.moment()
        literal = self.literal_or_none()
        if literal is None:
            raise self.unexpected("a literal", help=self.value_help() or "lists hold literals only")
        return literal

    def moment(self) -> Literal:
        """Read `date("...")` or `datetime("...")`."""
        start = self.take()
        self.expect("(")
        text, _ = self.string('a text such as "2021-01-31"')
        self.expect(")")
        return Literal(Scalar.DATE if start.text == "date" else Scalar.DATETIME, text, self.since(start))
