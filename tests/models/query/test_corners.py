"""Corners that random queries seldom meet, in every way and against the oracle."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from tests.models.query.compare import ask, difference
from tests.models.query.generate import random_case
from tests.models.query.generate_graph import WORLD
from tests.models.query.oracle import Oracle
from tests.models.query.shape import (
    Aggregate,
    Alias,
    Binding,
    Cell,
    Clause,
    Data,
    Edge,
    Expression,
    Filter,
    Literal,
    Negation,
    Node,
    Ordering,
    Parameter,
    Projection,
    Property,
    Query,
    Traversal,
    Type,
    Variable,
)
from tests.models.query.ways import WAYS, open_ways

EMPTY = Data((), ())


def _person(handle: str, **values: Cell) -> Node:
    given: dict[str, Cell] = {"handle": handle, **values}
    return Node("Person", handle, {name: given.get(name) for name in WORLD.nodes["Person"].properties})


def _place(code: int) -> Node:
    given: dict[str, Cell] = {"code": code, "label": str(code)}
    return Node("Place", str(code), {name: given.get(name) for name in WORLD.nodes["Place"].properties})


def _edges(type_name: str, *pairs: str) -> list[Edge]:
    names = WORLD.edges[type_name].properties
    ends = [pair.split(">") for pair in pairs]
    return [
        Edge(type_name, f"{type_name} {at}", source, target, dict.fromkeys(names))
        for at, (source, target) in enumerate(ends)
    ]


# A ring 1 > 2 > 3 > 1 with a tail 3 > 4 > 5, loops at 2 and 5, and places whose ids are those of persons.
RING = Data(
    (
        *(_person(str(n), age=n, tags=["a"] * (n % 2), spot=[0.0, 0.5, float(n % 2)]) for n in range(1, 7)),
        *(_place(n) for n in range(1, 4)),
    ),
    (
        *_edges("Knows", "1>2", "2>3", "3>1", "3>4", "4>5", "2>2", "5>5", "1>2", "2>1"),
        *_edges("LivesIn", "1>1", "1>1", "2>1", "1>2"),
        *_edges("Near", "1>1", "2>1", "1>2", "2>3"),
    ),
)
A, B = Binding("a", "Person"), Binding("b", "Person")
AGE = Property("a", "age")
IDS = (Property("a", "handle"), Property("b", "handle"))


def _query(
    clauses: tuple[Clause, ...], *expressions: Expression, parameters: tuple[Parameter, ...] = ()
) -> Query:
    return Query(parameters, clauses, tuple(Projection(each) for each in expressions))


def _nested(depth: int) -> Clause:
    inner: Clause = Filter(AGE, ">", Literal(3))
    for age in range(depth):  # each block speaks of a variable from outside
        inner = Negation((Filter(AGE, "!=", Literal(age)), inner))
    return inner


HIDING = Parameter("a", Type("I32", is_nullable=False), 3)
KEYS = (
    Projection(Property("a", "tags")),
    Projection(Property("a", "spot")),
    Projection(Aggregate("count", Variable("a"))),
)

QUERIES = {
    "a parameter hides a variable": _query(
        (A, Filter(AGE, ">", HIDING)), HIDING, Property("a", "handle"), parameters=(HIDING,)
    ),
    "a variable meets itself": _query((A, Traversal("a", "Knows", "a")), Property("a", "handle")),
    "a variable meets itself both ways": _query(
        (A, Traversal("a", "Knows", "a", bounds=(1, 4), is_undirected=True)), Property("a", "handle")
    ),
    "a named edge from a variable to itself": _query((A, Traversal("a", "Knows", "a", "w")), Variable("w")),
    "ids of two types are no loop": _query(
        (Traversal("a", "LivesIn", "p"),), Variable("a"), Property("p", "code")
    ),
    "ids of two types do not chain": _query(
        (A, Traversal("a", "LivesIn", "p", bounds=(1, 3))), Variable("a"), Property("p", "code")
    ),
    "two blocks use one name": _query(
        (
            A,
            Negation((Traversal("a", "Knows", "x"), Filter(Property("x", "age"), ">", Literal(4)))),
            Negation((Traversal("a", "LivesIn", "x"), Filter(Property("x", "code"), "=", Literal(2)))),
        ),
        Property("a", "handle"),
    ),
    "a deep negation": _query((A, _nested(9)), Property("a", "handle")),
    "lists and vectors are grouping keys": Query((), (A,), KEYS),
    "the largest limit": Query((), (A,), (Projection(AGE, "n"),), (Ordering(Alias("n"), True),), 2**64 - 1),
    "no limit is smaller than none": Query((), (A,), (Projection(AGE),), (), 0),
    "aggregates of nothing": Query(
        (),
        (A, Filter(AGE, ">", Literal(100))),
        tuple(Projection(Aggregate(name, AGE), name) for name in ("count", "sum", "avg", "min", "max")),
    ),
    **{
        f"{words} {low} to {high} hops": _query(
            (*bindings, Traversal("a", "Knows", "b", bounds=(low, high))), *IDS
        )
        for words, bindings in {"from the left": (A,), "from the right": (B,), "between": (A, B)}.items()
        for low, high in ((1, 1), (1, 9), (2, 2), (2, 3), (3, 3), (4, 9))
    },
}


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, omnigraph.Graph]]:
    with open_ways(tmp_path_factory.mktemp("ring"), WORLD, RING, seed=0) as graphs:
        yield graphs


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", QUERIES)
def test_a_corner_has_the_answer_of_the_oracle(ring: dict[str, omnigraph.Graph], name: str, way: str) -> None:
    expected = Oracle(WORLD, RING).answer(QUERIES[name])

    assert difference(QUERIES[name], expected, ask(ring[way], QUERIES[name])) is None


def test_an_empty_graph_answers_every_query(tmp_path: Path) -> None:
    with open_ways(tmp_path, WORLD, EMPTY, seed=0) as graphs:
        for asked in random_case(0, 40).asked:
            expected = Oracle(WORLD, EMPTY).answer(asked.query)
            for way in WAYS:
                assert difference(asked.query, expected, ask(graphs[way], asked.query)) is None
