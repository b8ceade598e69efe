"""What the tests of the engine lean on: differences are seen, and failures are made small."""

from collections.abc import Iterator

import pytest

from tests.models.query.answer import Answer, Approximate
from tests.models.query.compare import Told, difference, same
from tests.models.query.generate import random_case
from tests.models.query.generate_graph import WORLD
from tests.models.query.oracle import Oracle
from tests.models.query.shape import Alias, Cell, Data, Edge, Entity, Node, Ordering, Query, Traversal
from tests.models.query.shrink import shrink_data, shrink_query

UNORDERED = Query((), (), ())
ORDERED = Query((), (), (), (Ordering(Alias("x")),))
FIRST_OF_THREE = Query((), (), (), (), 1)


@pytest.mark.parametrize(
    ("query", "rows", "is_right"),
    [
        (UNORDERED, [2, 1, 1], True),
        (UNORDERED, [1, 2, 2], False),
        (UNORDERED, [1, 2], False),
        (ORDERED, [1, 1, 2], True),
        (ORDERED, [1, 2, 1], False),
        (FIRST_OF_THREE, [2], True),
        (FIRST_OF_THREE, [3], False),
        (FIRST_OF_THREE, [1, 2], False),
    ],
)
def test_rows_are_a_multiset_unless_they_are_ordered(query: Query, rows: list[Cell], is_right: bool) -> None:
    told = Told(["x"], [{"x": value} for value in rows])

    assert (difference(query, Answer(["x"], [[1], [1], [2]]), told) is None) == is_right


def test_values_are_equal_only_with_their_types() -> None:
    assert same({"id": "1", "b": [1.0]}, {"id": "1", "b": [1.0]})
    assert not same({"b": 1, "id": "1"}, {"id": "1", "b": 1})
    assert not same(1, 1.0)
    assert not same(True, 1)
    assert not same(None, Approximate(0.0, 1.0))
    assert same(1.1, Approximate(1.0, 0.2))
    assert not same(1.3, Approximate(1.0, 0.2))


class _GoesBackwards(Oracle):
    """A wrong oracle: it follows every edge against its direction."""

    def _ends(self, hop: Traversal, start: Entity, *, is_outward: bool) -> Iterator[tuple[Edge | None, Node]]:
        return super()._ends(hop, start, is_outward=not is_outward)


def test_a_failure_is_made_small() -> None:
    def fails(data: Data, query: Query) -> bool:
        try:
            return Oracle(WORLD, data).answer(query) != _GoesBackwards(WORLD, data).answer(query)
        except KeyError:  # a candidate that uses what it lacks
            return False

    case = random_case(1, 60)
    asked = next(each for each in case.asked if fails(case.data, each.query))

    query = shrink_query(asked.query, lambda each: fails(case.data, each), seconds=10)
    data = shrink_data(case.schema, case.data, lambda each: fails(each, query), seconds=10)

    assert fails(data, query)
    assert len(query.clauses) <= 2
    assert len(data.nodes) <= 4
