"""Tokens to a query tree: one method per rule of the grammar.

Q1  A query that mixes inserts or updates with deletes is refused here, before anything looks at a catalog.
"""

from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.limits import I64_MAX, U64_MAX
from omnigraph.core.source_errors import MixedMutation
from omnigraph.core.span import Source
from omnigraph.core.values import SCALAR_WORDS, Scalar, ValueType
from omnigraph.language.clause_parser import COMPARISONS, ClauseParser
from omnigraph.language.parser import SyntaxFailure, Token, tokenize
from omnigraph.language.query_ast import (
    Assignment,
    Delete,
    Insert,
    Literal,
    Mutation,
    Ordering,
    Parameter,
    Predicate,
    Projection,
    Query,
    QueryFile,
    Read,
    Statement,
    Update,
)


def parse_queries(source: Source) -> QueryFile:
    """Return the tree of a query file.

    Raises:
        MixedMutation: a query mixes inserts or updates with deletes, and that is the first error.
        ParseError: the text does not fit the grammar; every error that could be recovered from is in it.
    """
    return _QueryParser(tokenize(source)).query_file()


class _QueryParser(ClauseParser):
    first_mixed: str | None = None  # the mixed mutation that is the first error of the file

    def query_file(self) -> QueryFile:
        queries: list[Query] = []
        while self.token.kind != "end":
            try:
                queries.append(self.query())
            except SyntaxFailure as failure:
                self.report(failure.diagnostic)
                self.skip_to_query()
        self.raise_reported()
        return QueryFile(tuple(queries), self.source)

    def query(self) -> Query:
        start = self.token
        self.expect("query", help="a query file is a list of 'query name(...) { ... }'")
        name = self.name("the name of the query")
        self.expect("(", help="parameters are listed after the name; without any, write '()'")
        parameters: list[Parameter] = []
        if not self.accept(")"):
            parameters.append(self.parameter())
            while self.accept(","):
                parameters.append(self.parameter())
            self.expect(")")
        self.refuse_repeated(parameters)
        texts = self.query_annotations()
        self.expect("{")
        body = self.read() if self.at("match") else self.mutation(name.text)
        self.expect("}", help="the parts of a read come in the order match, return, order, limit")
        description, instruction = texts.get("description"), texts.get("instruction")
        return Query(name, tuple(parameters), description, instruction, body, self.since(start))

    def query_annotations(self) -> dict[str, Literal]:
        texts: dict[str, Literal] = {}
        while self.at("@"):
            start = self.take()
            word = self.token
            if word.text not in {"description", "instruction"} or word.start != start.end:
                raise self.unexpected(
                    "'@description' or '@instruction'", help="a query has no other annotations"
                )
            self.take()
            if word.text in texts:
                raise self.failure(f"@{word.text} is given twice", self.since(start))
            self.expect("(")
            text, span = self.string("a text")
            texts[word.text] = Literal(Scalar.STRING, text, span)
            self.expect(")")
        return texts

    def parameter(self) -> Parameter:
        start = self.token
        name = self.declared_variable("a parameter").name
        self.expect(":", help="a parameter is written '$name: Type'")
        return Parameter(name, self.parameter_type(), self.since(start))

    def parameter_type(self) -> ValueType:
        scalar, is_list, dimension = Scalar.STRING, False, None
        if self.accept("["):
            scalar, is_list = self.scalar(), True
            self.expect("]")
        elif self.token.text == "Vector":
            self.take()
            self.expect("(")
            scalar, dimension = Scalar.VECTOR, self.integer("the dimension of the vector", maximum=I64_MAX)
            self.expect(")")
        else:
            scalar = self.scalar()
        return ValueType(scalar, self.accept("?"), is_list, None, dimension)

    def scalar(self) -> Scalar:
        scalar = SCALAR_WORDS.get(self.token.text)
        if scalar is None:
            help = "there are no enum parameters: use String" if self.at("enum") else None
            known = help or f"types are {', '.join(SCALAR_WORDS)}, Vector(n) and [scalar]"
            raise self.unexpected("a type", help=known)
        self.take()
        return scalar

    def refuse_repeated(self, parameters: list[Parameter]) -> None:
        seen: set[str] = set()
        for parameter in parameters:
            if parameter.name in seen:
                raise self.failure(f"the parameter '${parameter.name}' is declared twice", parameter.span)
            seen.add(parameter.name)

    # Reads

    def read(self) -> Read:
        self.take()
        clauses = self.block()
        self.expect("return", help="every read query ends its match with a return block")
        self.expect("{")
        projections = [self.projection()]
        while not self.accept("}"):
            projections.append(self.projection())
        orderings: list[Ordering] = []
        if self.accept("order"):
            self.expect("{")
            orderings.append(self.ordering())
            while self.accept(","):
                orderings.append(self.ordering())
            self.expect("}")
        limit = self.integer("the limit", maximum=U64_MAX) if self.accept("limit") else None
        return Read(clauses, tuple(projections), tuple(orderings), limit)

    def projection(self) -> Projection:
        start = self.token
        expression = self.expression("a projection")
        alias = self.name("an alias") if self.accept("as") else None
        projection = Projection(expression, alias, self.since(start))
        self.accept(",")
        return projection

    def ordering(self) -> Ordering:
        start = self.token
        if self.at_call("nearest"):
            expression = self.nearest()
            if self.at("asc") or self.at("desc"):
                raise self.unexpected("',' or '}'", help="nearest always orders the closest first")
            return Ordering(expression, False, self.since(start))
        ordered = self.expression("an order key")
        descending = self.accept("desc")
        if not descending:
            self.accept("asc")
        return Ordering(ordered, descending, self.since(start))

    # Mutations

    def mutation(self, query_name: str) -> Mutation:
        start = self.token
        statements = [self.statement()]
        while not self.at("}"):
            statements.append(self.statement())
        deletes = [isinstance(statement, Delete) for statement in statements]
        if any(deletes) and not all(deletes):
            self.refuse_mixed(query_name, start)
        return Mutation(tuple(statements))

    def statement(self) -> Statement:
        start = self.token
        if self.accept("insert"):
            name = self.type_name("the type to insert")
            return Insert(name, self.assignments(), self.since(start))
        if self.accept("update"):
            name = self.type_name("the type to update")
            self.expect("set")
            assignments = self.assignments()
            self.expect("where", help="an update says which nodes it changes")
            return Update(name, assignments, self.predicate(), self.since(start))
        if self.accept("delete"):
            name = self.type_name("the type to delete")
            self.expect("where", help="a delete says what it removes")
            return Delete(name, self.predicate(), self.since(start))
        raise self.unexpected("'match', 'insert', 'update' or 'delete'")

    def assignments(self) -> tuple[Assignment, ...]:
        self.expect("{")
        assignments = [self.assignment()]
        while not self.accept("}"):
            assignments.append(self.assignment())
        return tuple(assignments)

    def assignment(self) -> Assignment:
        name = self.name("the name of a property")
        self.expect(":", help="an assignment is written 'property: value'")
        assignment = Assignment(name, self.value())
        self.accept(",")
        return assignment

    def predicate(self) -> Predicate:
        start = self.token
        name = self.name("the name of a property")
        if self.token.text not in COMPARISONS:
            raise self.unexpected("a comparison such as '='", help="a mutation selects by one comparison")
        operator = self.take().text
        return Predicate(name, operator, self.value(), self.since(start))

    def refuse_mixed(self, query_name: str, start: Token) -> None:
        message = (
            f"mutation '{query_name}' mixes inserts/updates and deletes; "
            "split it into separate mutations: first the inserts and updates, then the deletes"
        )
        help = "a delete would not see the rows that the same query inserts"
        if not self.diagnostics:
            self.first_mixed = query_name
        self.report(Diagnostic(message, self.since(start), help))

    def raise_reported(self) -> None:
        """Raise what was reported; its class is that of the first error (Q1)."""
        if self.first_mixed is not None:
            raise MixedMutation(self.diagnostics, self.source, query_name=self.first_mixed)
        super().raise_reported()

    # Recovery

    def skip_to_query(self) -> None:
        """Step to the next query; always makes progress."""
        self.surface()
        if self.token.kind != "end":
            self.take()
        while self.token.kind != "end" and not self.at_query():
            self.take()

    def at_query(self) -> bool:
        return self.at("query") and self.ahead().kind == "name" and self.ahead(2).text == "("
