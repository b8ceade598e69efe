"""The questions that every engine is asked, and the values they are asked with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from bench.support.social import CITIES, WORDS, Size, city, handles_of, vector, word

BATCH = 100_000
Values = Mapping[str, object]


class Agreement(Enum):
    """In what sense two engines give the same answer."""

    ROWS = auto()  # the same rows
    KEYS = auto()  # the same rows, as far as the first column goes
    BEST = auto()  # the best of a ranking, where scores tie or an index is approximate: mostly the same


@dataclass(frozen=True, slots=True)
class Question:
    """One line of the table."""

    name: str
    values: Callable[[np.random.Generator, Size], Values]
    agreement: Agreement = Agreement.ROWS
    needs_vectors: bool = False
    variants: int | None = None  # how many sets of values there are; as many as needed if not given


def _handle(rng: np.random.Generator, size: Size) -> str:
    return f"p{rng.integers(size.people):07d}"


def _words(rng: np.random.Generator) -> str:
    """Return one frequent and one rare word."""
    return f"{word(int(rng.integers(20, 100)))} {word(int(rng.integers(WORDS // 2, WORDS)))}"


def _city(rng: np.random.Generator) -> str:
    return city(int(rng.integers(CITIES)))


def _person(rng: np.random.Generator, size: Size) -> Values:
    return {"handle": _handle(rng, size)}


def _person_and_age(rng: np.random.Generator, size: Size) -> Values:
    return {"handle": _handle(rng, size), "age": int(rng.integers(30, 60))}


def _city_and_age(rng: np.random.Generator, _: Size) -> Values:
    return {"city": _city(rng), "age": int(rng.integers(30, 60))}


def _one_city(rng: np.random.Generator, _: Size) -> Values:
    return {"city": _city(rng)}


def _one_age(rng: np.random.Generator, _: Size) -> Values:
    return {"age": int(rng.integers(20, 50))}


def _nothing(_: np.random.Generator, __: Size) -> Values:
    return {}


def _text(rng: np.random.Generator, _: Size) -> Values:
    return {"words": _words(rng)}


def _vector_and_age(rng: np.random.Generator, _: Size) -> Values:
    return {"vector": vector(rng), "age": int(rng.integers(70, 78))}  # about a fifth of the people


def _text_and_vector(rng: np.random.Generator, _: Size) -> Values:
    return {"words": _words(rng), "vector": vector(rng)}


def _person_text_and_vector(rng: np.random.Generator, size: Size) -> Values:
    return {"handle": _handle(rng, size), "words": _words(rng), "vector": vector(rng)}


def _batch(rng: np.random.Generator, size: Size) -> Values:
    chosen = rng.choice(size.people, min(BATCH, size.people), replace=False)
    return {"handles": handles_of(chosen).to_pylist()}


QUESTIONS = (
    Question("point lookup", _person),
    Question("filtered count", _city_and_age),
    Question("one hop with filter", _person_and_age),
    Question("two hops distinct", _person, Agreement.KEYS),
    Question("reach 1..3", _person),
    Question("join with group-by", _one_age),
    Question("triangles", _one_city),
    Question("anti-join", _one_age),
    Question("top degree", _nothing),
    Question("BM25 top 10", _text, Agreement.BEST),
    Question("vector top 10 with filter", _vector_and_age, Agreement.BEST, needs_vectors=True),
    Question("hybrid plus one hop", _text_and_vector, Agreement.BEST, needs_vectors=True),
    Question("hybrid among acquaintances", _person_text_and_vector, Agreement.BEST, needs_vectors=True),
    Question("100k batched lookups", _batch, variants=6),
)
