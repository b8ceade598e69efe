"""Random queries: a match block and what is made of its rows.

G3  What the specification leaves open is not asked: the order of lists, of vectors and of sums of floats.
G4  Rounding decides no ranking: vectors are of halves, and a score is the sum of at most two words.
"""

from collections.abc import Iterable
from random import Random

from tests.models.query.generate_graph import TEXTS, WORLD, pool_of, random_value
from tests.models.query.generate_match import OUTER, MatchMaker, Scope
from tests.models.query.shape import (
    Aggregate,
    Alias,
    Bm25,
    Cell,
    Clause,
    Data,
    Expression,
    Literal,
    Nearest,
    Ordering,
    Parameter,
    Projection,
    Property,
    Query,
    Rank,
    Rrf,
    Schema,
    Type,
    Variable,
)
from tests.models.query.words import UNKNOWN, VOCABULARY

ALIASES = ("n", "total", "label", "limit", "r1", "as")

Tail = tuple[tuple[Projection, ...], tuple[Ordering, ...], int | None]


def random_query(seed: str, data: Data, schema: Schema = WORLD) -> Query:
    """Return the query of a seed about a graph."""
    return _QueryMaker(Random(f"query {seed}"), schema, data).query()


class _QueryMaker(MatchMaker):
    def query(self) -> Query:
        scope, clauses = Scope(), list[Clause]()
        if self.chance(0.75):
            clauses.append(self.binding(self.fresh(scope, OUTER), self.node_type(), scope))
        for _ in range(self.rng.choice((0, 1, 1, 1, 2, 2, 3)) if clauses else self.rng.choice((1, 2, 3))):
            clauses += self.traversal(scope, OUTER)
        if not self.nodes(scope) or self.chance(0.08):
            clauses.append(self.binding(self.fresh(scope, OUTER), self.node_type(), scope))
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            clauses += self.condition(scope)
        for _ in range(self.rng.choice((0, 0, 0, 1, 1, 2))):
            clauses.append(self.negation(scope, depth=1))
        if self.chance(0.3):
            projections, order, limit = self.aggregates(scope)
        else:
            projections, order, limit = self.rows(scope)
        used = set(_parameter_names([*clauses, *projections, *order]))
        declared = {each.name: each for each in self.parameters if each.name in used}
        return Query(tuple(declared.values()), tuple(clauses), projections, order, limit)

    # Tail

    def rows(self, scope: Scope) -> Tail:
        projections = [self.projection(scope) for _ in range(self.rng.choice((1, 2, 2, 3, 4)))]
        projections = self.aliased(projections)
        if (rank := self.rank(scope)) and self.chance(0.4):
            return self.ranked(rank, projections, scope)
        keys = list[Ordering]()
        if self.chance(0.55):
            choices: list[Expression] = [*self.fields(scope, scope, orderable=True)]
            choices += [
                Alias(item.alias) for item in projections if item.alias and self.is_sortable(item, scope)
            ] * 2
            keys = [
                Ordering(self.rng.choice(choices), self.chance(0.4))
                for _ in range(self.rng.choice((1, 1, 2, 3)))
            ]
        return tuple(projections), tuple(keys), self.limit(0.4 if keys else 0.1)

    def limit(self, share: float) -> int | None:
        return self.rng.choice((0, 1, 2, 3, 5, 10, 1000)) if self.chance(share) else None

    def is_sortable(self, item: Projection, scope: Scope) -> bool:
        match item.expression:
            case Property():
                return self.type_of(item.expression, scope).is_orderable
            case Parameter(_, kind):
                return kind.is_orderable
            case _:
                return True

    def projection(self, scope: Scope) -> Projection:
        way = self.rng.random()
        if way < 0.15:
            return Projection(Variable(self.rng.choice(list(scope))))
        if way < 0.2:
            name, kind = self.rng.choice(
                [(n, k) for n, k in self.schema.nodes["Person"].properties.items() if not k.dimension]
            )
            scalar = Type(kind.scalar, is_list=kind.is_list, is_nullable=True)
            value = self.rng.choice((random_value(self.rng, name, kind), None))
            fits = not isinstance(value, int) or value < 2**63
            return Projection(self.parameter(scalar, value if fits else 7))
        if way < 0.24:
            literals: list[Cell] = [0, 2**63 - 1, 2**53, 1.5, 'it\'s "x"', True, *pool_of(Type("Date"))]
            return Projection(Literal(self.rng.choice(literals)))
        fields: list[Expression] = [*self.fields(scope, scope)]
        return Projection(self.rng.choice(fields))

    def aliased(self, projections: list[Projection]) -> list[Projection]:
        names = self.rng.sample(ALIASES, len(projections))
        return [
            Projection(item.expression, name if self.chance(0.4) else None)
            for item, name in zip(projections, names, strict=True)
        ]

    def rank(self, scope: Scope) -> Rank | None:
        """Return a ranking of one of the variables, if one can be ranked."""
        fields = [
            f
            for f in self.fields(self.nodes(scope), scope)
            if f.name in TEXTS or self.type_of(f, scope).dimension
        ]
        if not fields:
            return None
        first = self.arm(self.rng.choice(fields), scope)
        if self.chance(0.3):
            second = self.arm(
                self.rng.choice([f for f in fields if f.variable == first.field.variable]), scope
            )
            return Rrf(first, second, self.rng.choice((None, None, 1, 10)))
        return first

    def arm(self, field: Property, scope: Scope) -> Nearest | Bm25:
        kind = self.type_of(field, scope)
        if kind.dimension:
            vector = random_value(self.rng, field.name, kind)
            wide = Type("F32", dimension=kind.dimension, is_nullable=False)
            return Nearest(
                field, self.given(vector, wide) if min(vector) >= 0 else self.parameter(wide, vector)
            )
        words = self.rng.sample((*VOCABULARY, UNKNOWN[0]), self.rng.choice((1, 1, 2)))
        return Bm25(field, self.given(" ".join(words), Type("String", is_nullable=False)))

    def ranked(self, rank: Rank, projections: list[Projection], scope: Scope) -> Tail:
        fields = self.fields(scope, scope, orderable=True)
        more = [Ordering(self.rng.choice(fields), self.chance(0.4))] * (self.chance(0.3) and bool(fields))
        limit = self.limit(0.5) if isinstance(rank, Bm25) else self.rng.choice((1, 2, 3, 5, 20))
        first: Expression = rank
        if self.chance(0.4):
            projections = [*projections, Projection(rank, "rank_score")]
            first = self.rng.choice((rank, Alias("rank_score")))
        is_descending = not isinstance(rank, Nearest) and self.chance(0.2)  # which has no effect
        return tuple(projections), (Ordering(first, is_descending), *more), limit

    def aggregates(self, scope: Scope) -> Tail:
        is_ordered = self.chance(0.5)
        fields = self.fields(scope, scope, orderable=is_ordered)
        keys: list[Expression] = [
            Variable(self.rng.choice(list(scope)))
            if not fields or self.chance(0.25)
            else self.rng.choice(fields)
            for _ in range(self.rng.choice((0, 1, 1, 2)))
        ]
        items = [Projection(key) for key in keys] + [
            Projection(self.aggregate(scope)) for _ in range(self.rng.choice((1, 1, 2, 3)))
        ]
        self.rng.shuffle(items)
        items = self.aliased(items)
        choices: list[Expression] = [key for key in keys if isinstance(key, Property)]
        choices += [
            Alias(item.alias) for item in items if item.alias and self.is_exact(item.expression, scope)
        ] * 2
        order = list[Ordering]()
        if is_ordered and choices:
            order = [
                Ordering(self.rng.choice(choices), self.chance(0.4))
                for _ in range(self.rng.choice((1, 1, 2)))
            ]
        return tuple(items), tuple(order), self.limit(0.4 if order else 0.1)

    def aggregate(self, scope: Scope) -> Aggregate:
        function = self.rng.choice(("count", "count", "sum", "avg", "min", "max"))
        fields = self.fields(scope, scope)
        if function in ("sum", "avg"):
            fields = [field for field in fields if self.type_of(field, scope).is_number]
        elif function != "count":
            kinds = {field: self.type_of(field, scope) for field in fields}
            fields = [
                f for f, kind in kinds.items() if kind.is_number or (kind.is_string and not kind.members)
            ]
        if not fields or (function == "count" and self.chance(0.5)):
            return Aggregate("count", Variable(self.rng.choice(list(scope))))
        return Aggregate(function, self.rng.choice(fields))

    def is_exact(self, expression: Expression, scope: Scope) -> bool:
        if isinstance(expression, Aggregate) and expression.function in ("sum", "avg"):
            assert isinstance(expression.argument, Property)
            return self.type_of(expression.argument, scope).scalar in ("I32", "U32")
        return True


def _parameter_names(items: Iterable[object]) -> Iterable[str]:
    """Yield the names of the parameters in a tree of dataclasses and tuples."""
    for item in items:
        if isinstance(item, Parameter):
            yield item.name
        elif isinstance(item, tuple):
            yield from _parameter_names(item)
        elif fields := getattr(item, "__dataclass_fields__", None):
            yield from _parameter_names(getattr(item, name) for name in fields)
