"""Random cases: a graph and queries about it, whose answers have a sensible size."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tests.models.query.answer import Answer
from tests.models.query.generate_graph import WORLD, random_graph
from tests.models.query.generate_query import random_query
from tests.models.query.oracle import Oracle, TooManyRows
from tests.models.query.shape import Data, Query, Schema

ROWS_MAX = 1_500
EMPTY_SHARE = 0.2  # of the queries whose answer is empty, so many are asked all the same


@dataclass(frozen=True, slots=True)
class Asked:
    """A query and its answer; the seed names it among the queries about its graph."""

    seed: str
    query: Query
    answer: Answer


@dataclass(frozen=True, slots=True)
class Case:
    """A graph and queries about it."""

    seed: int
    schema: Schema
    data: Data
    asked: tuple[Asked, ...]


def random_case(seed: int, queries: int) -> Case:
    """Return the case of a seed."""
    data = random_graph(seed)
    asked = _ask(seed, data)
    return Case(seed, WORLD, data, tuple(next(asked) for _ in range(queries)))


def _ask(seed: int, data: Data) -> Iterator[Asked]:
    oracle = Oracle(WORLD, data, rows_max=ROWS_MAX)
    at = 0
    while True:
        at += 1
        name = f"{seed}/{at}"
        query = random_query(name, data)
        try:
            answer = oracle.answer(query)
        except TooManyRows:
            continue
        if answer.rows or Random(name).random() < EMPTY_SHARE:
            yield Asked(name, query, answer)
