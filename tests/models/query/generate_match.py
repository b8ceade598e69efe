"""Random match blocks that are valid by construction, in the oracle's own words.

G1  A variable is used after the clause that introduces it, and with its type.
G2  A name introduced in a `not` block is never a name of an enclosing block, before it or after it.
"""

from collections.abc import Iterable, Sequence
from random import Random

from tests.models.query.generate_graph import (
    EDGES_MAX,
    F64,
    I32,
    NODES_MAX,
    NUMBERS,
    TEXTS,
    WORLD,
    random_value,
)
from tests.models.query.oracle import single
from tests.models.query.shape import (
    ANONYMOUS,
    INTEGERS,
    Binding,
    Cell,
    Clause,
    Data,
    EdgeType,
    Entity,
    Filter,
    Literal,
    Negation,
    Now,
    Operand,
    Parameter,
    Property,
    Schema,
    TextPredicate,
    Traversal,
    Type,
)
from tests.models.query.words import UNKNOWN, VOCABULARY

# More names than a query can use up; later ones may sort earlier.
OUTER = ("a", "m", "x", "b", "z", "c", "aB", "_u", "order", "count", "e", "g", "o", "s")
INNER = ("i", "f", "w", "y", "not", "d", "h", "j", "k", "l", "n", "q", "r", "t", "u", "v")
SIGNS = ("=", "!=", "<", "<=", ">", ">=")
RANGES = {"I32": (-(2**31), 2**31), "I64": (-(2**63), 2**63), "U32": (0, 2**32), "U64": (0, 2**63)}

Scope = dict[str, str]  # variable -> name of its node or edge type


class MatchMaker:
    """Makes the clauses of one query, and declares the parameters they use."""

    def __init__(self, rng: Random, schema: Schema, data: Data) -> None:
        self.rng, self.schema = rng, schema
        self.parameters = list[Parameter]()
        self.stored = _stored_values(data)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    # Names

    def fresh(self, scope: Scope, names: Sequence[str]) -> str:
        return next(name for name in names if name not in scope)

    def node_type(self) -> str:
        names = list(self.schema.nodes)
        return self.rng.choices(names, [NODES_MAX[name] for name in names])[0]

    def edge_type(self, edges: Sequence[EdgeType]) -> EdgeType:
        return self.rng.choices(edges, [EDGES_MAX[edge.name] for edge in edges])[0]

    def nodes(self, scope: Scope) -> list[str]:
        return [name for name, kind in scope.items() if kind in self.schema.nodes]

    def fields(self, scope: Iterable[str], types: Scope, *, orderable: bool = False) -> list[Property]:
        return [
            Property(variable, name)
            for variable in scope
            for name, kind in self.schema.properties(types[variable]).items()
            if not orderable or kind.is_orderable
        ]

    def type_of(self, field: Property, scope: Scope) -> Type:
        return self.schema.properties(scope[field.variable])[field.name]

    # Match

    def binding(self, variable: str, type_name: str, scope: Scope) -> Binding:
        scope[variable] = type_name
        kinds = self.schema.nodes[type_name].properties
        names = [name for name, kind in kinds.items() if not kind.dimension]
        chosen = self.rng.sample(names, self.rng.choice((0, 0, 0, 0, 1, 1, 2)))
        return Binding(
            variable, type_name, tuple((n, self.operand(n, kinds[n], is_inline=True)) for n in chosen)
        )

    def traversal(self, scope: Scope, names: Sequence[str]) -> list[Clause]:
        """Return a traversal from a bound variable, or one that introduces both of its ends."""
        known = self.nodes(scope)
        if not known or self.chance(0.04):
            edge = self.edge_type(list(self.schema.edges.values()))
            left = self.end(scope, names, edge.source)
            right = self.end(scope, names, edge.target)
        else:
            near = self.rng.choice(known)
            edges = [e for e in self.schema.edges.values() if scope[near] in (e.source, e.target)]
            edge = self.edge_type(edges)
            is_source = scope[near] == edge.source
            if edge.source == edge.target:
                is_source = self.chance(0.5)
            far_type = edge.target if is_source else edge.source
            same = [name for name in known if scope[name] == far_type]
            far = self.rng.choice(same) if same and self.chance(0.25) else self.end(scope, names, far_type)
            left, right = (near, far) if is_source else (far, near)
            if edge.source != edge.target and self.chance(0.5):
                left, right = right, left
        return [self.finish(edge, left, right, scope, names), *self.late_binding(left, right, scope)]

    def end(self, scope: Scope, names: Sequence[str], type_name: str) -> str:
        if self.chance(0.2):
            return ANONYMOUS
        name = self.fresh(scope, names)
        scope[name] = type_name
        return name

    def finish(self, edge: EdgeType, left: str, right: str, scope: Scope, names: Sequence[str]) -> Traversal:
        is_undirected = edge.source == edge.target and self.chance(0.25)
        edge_variable, bounds = None, None
        if self.chance(0.3):
            edge_variable = self.fresh(scope, names)
            scope[edge_variable] = edge.name
        elif self.chance(0.05):
            edge_variable = ANONYMOUS
        elif self.chance(0.4):
            low = self.rng.choice((1, 1, 1, 2, 2, 3))
            bounds = (low, low + self.rng.choice((0, 1, 2, 5)))
        return Traversal(left, edge.name, right, edge_variable, bounds, is_undirected, self.chance(0.1))

    def late_binding(self, left: str, right: str, scope: Scope) -> list[Clause]:
        named = [name for name in (left, right) if name != ANONYMOUS]
        if not named or not self.chance(0.2):
            return []
        name = self.rng.choice(named)
        return [self.binding(name, scope[name], scope)]

    def condition(self, scope: Scope) -> list[Clause]:
        texts = [field for field in self.fields(self.nodes(scope), scope) if field.name in TEXTS]
        if texts and self.chance(0.25):
            return [self.text(self.rng.choice(texts))]
        if self.chance(0.05):
            return [
                Filter(
                    self.number(self.rng.choice(I32)),
                    self.rng.choice(SIGNS),
                    self.number(self.rng.choice(F64)),
                )
            ]
        fields = [f for f in self.fields(scope, scope) if not self.type_of(f, scope).dimension]
        return [self.filter(self.rng.choice(fields), fields, scope)] if fields else []

    def text(self, field: Property) -> TextPredicate:
        function = self.rng.choice(("search", "match_text", "fuzzy"))
        words = [
            self.rng.choice((*VOCABULARY, *UNKNOWN, "the")) for _ in range(self.rng.choice((0, 1, 1, 2, 3)))
        ]
        wanted = self.rng.choice((" ", ", ", "-")).join(
            self.rng.choice((str, str.upper))(word) for word in words
        )
        edits = self.rng.choice((None, 0, 1, 2, 3)) if function == "fuzzy" else None
        query = self.given(wanted, Type("String", is_nullable=False))
        return TextPredicate(function, field, query, edits, self.chance(0.2))

    def filter(self, field: Property, fields: list[Property], scope: Scope) -> Filter:
        kind = self.type_of(field, scope)
        others = [each for each in fields if _comparable(kind, self.type_of(each, scope))]
        if kind.is_list:
            item = Type(kind.scalar)
            same = [each for each in others if not self.type_of(each, scope).is_list]
            right = self.rng.choice(same) if same and self.chance(0.2) else self.operand(field.name, item)
            return Filter(field, "contains", right)
        others = [each for each in others if not self.type_of(each, scope).is_list]
        right = self.rng.choice(others) if self.chance(0.2) else self.operand(field.name, kind)
        if kind.is_string and self.chance(0.4):
            sign = self.rng.choice(("contains", "starts_with"))
            swapped = isinstance(right, Literal) and self.chance(0.3)
            return Filter(right, sign, field) if swapped else Filter(field, sign, right)
        sign = self.rng.choice(SIGNS)
        return Filter(right, sign, field) if self.chance(0.25) else Filter(field, sign, right)

    def negation(self, scope: Scope, depth: int) -> Negation:
        """Return a block whose first clause mentions a variable from outside."""
        inside, clauses = dict(scope), list[Clause]()
        way = self.rng.random()
        if way < 0.65:
            before = set(inside)
            while not clauses:
                inside = dict(scope)
                clauses = self.traversal(inside, INNER)
                first = clauses[0]
                assert isinstance(first, Traversal)
                if not {first.left, first.right} & before:
                    clauses = []
            if self.chance(0.2):
                clauses += self.traversal(inside, INNER)
        elif way < 0.85:
            inner = self.binding(self.fresh(inside, INNER), self.node_type(), inside)
            ours = self.fields([inner.variable], inside, orderable=True)
            theirs = self.fields(scope, scope, orderable=True)
            pairs = [
                (a, b)
                for a in ours
                for b in theirs
                if _comparable(self.type_of(a, inside), self.type_of(b, scope))
            ]
            if pairs:
                left, right = self.rng.choice(pairs)
                clauses = [inner, Filter(left, self.rng.choice(SIGNS), right)]
        if not clauses:
            plain = [f for f in self.fields(scope, scope) if not self.type_of(f, scope).dimension]
            clauses.append(self.filter(self.rng.choice(plain), plain, inside))
        for _ in range(self.rng.choice((0, 1, 1))):
            clauses += self.condition(inside)
        if depth < 2 and self.chance(0.25):
            clauses.append(self.negation(inside, depth + 1))
        return Negation(tuple(clauses))

    # Values

    def operand(self, name: str, kind: Type, *, is_inline: bool = False) -> Operand:
        """Return a literal, a parameter or `now()` that may stand beside a property, an item for a list."""
        kind = Type(kind.scalar, members=kind.members)
        if self.chance(0.03):
            return self.parameter(kind if not kind.members else Type("String"), None)
        if kind.scalar == "DateTime" and self.chance(0.1):
            return Now()
        stored = self.stored.get((name, kind.scalar))
        if stored and self.chance(0.6):
            value = self.rng.choice(stored)
            of_it = Type(kind.scalar, is_nullable=self.chance(0.3))
            return self.number(value) if kind.is_number else self.given(value, of_it)
        if kind.is_number:
            scalar = kind.scalar if self.chance(0.6) else self.rng.choice(list(NUMBERS))
            pool = [value for value in NUMBERS[scalar] if value < 2**63 or isinstance(value, float)]
            return self.number(self.rng.choice(pool))
        value = random_value(self.rng, name, kind)
        if kind.members and not is_inline and self.chance(0.2):
            value = "vinyl"
        elif kind.scalar == "String" and not kind.members and value and self.chance(0.4):
            value = value[: self.rng.randint(1, len(value))]
        return self.given(value, Type(kind.scalar, is_nullable=self.chance(0.3)))

    def number(self, value: float) -> Operand:
        if isinstance(value, int):
            fitting = [name for name in INTEGERS if RANGES[name][0] <= value < RANGES[name][1]]
        else:
            fitting = ["F64", *(["F32"] * (single(value) == value))]
        kind = Type(self.rng.choice(fitting), is_nullable=self.chance(0.3))
        return self.given(value, kind) if value >= 0 else self.parameter(kind, value)

    def given(self, value: Cell, kind: Type) -> Literal | Parameter:
        return Literal(value) if self.chance(0.6) else self.parameter(kind, value)

    def parameter(self, kind: Type, value: Cell) -> Parameter:
        declared = Parameter(f"p{len(self.parameters)}", kind, value)
        self.parameters.append(declared)
        return declared


def _comparable(a: Type, b: Type) -> bool:
    if a.dimension or b.dimension:
        return False
    return a.scalar == b.scalar or (a.scalar in NUMBERS and b.scalar in NUMBERS)


def _stored_values(data: Data) -> dict[tuple[str, str], list[Cell]]:
    """Return what is stored under a name and a scalar, so that conditions are often met."""
    found = dict[tuple[str, str], list[Cell]]()
    entities: list[Entity] = [*data.nodes, *data.edges]
    for entity in entities:
        for name, kind in WORLD.properties(entity.type_name).items():
            value: Cell = entity.values[name]
            values = value if kind.is_list and value is not None else [value]
            if not kind.dimension:
                fit = [each for each in values if each is not None and (kind.scalar != "U64" or each < 2**63)]
                found.setdefault((name, kind.scalar), []).extend(fit)
    return found
