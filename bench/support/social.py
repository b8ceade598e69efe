"""A social graph from a seed: people with skewed numbers of acquaintances, a text and a vector each."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

SEED = 20_261
DIMENSION = 64
CITIES, WORDS, CLUSTERS = 100, 5_000, 200
YEARS = (1990, 2025)
_ENDS = "kmpt"  # no stemmer shortens a word that ends so
_PEOPLE, _KNOWS = "people.arrow", "knows.arrow"

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Size:
    """How large a graph is, and whether people have vectors."""

    people: int
    edges: int
    has_vectors: bool


SIZES = {"small": Size(100_000, 1_000_000, True), "large": Size(1_000_000, 5_000_000, False)}


@dataclass(frozen=True, slots=True)
class Social:
    """Two tables: people by handle, and who knows whom, ordered by source."""

    people: pa.Table
    knows: pa.Table

    def write(self, folder: Path) -> None:
        """Keep the tables as files, so that every engine loads the same."""
        for name, table in ((_PEOPLE, self.people), (_KNOWS, self.knows)):
            with ipc.new_file(folder / name, table.schema) as file:
                file.write_table(table)

    @staticmethod
    def read(folder: Path) -> "Social":
        """Return what was written."""
        people, knows = (ipc.open_file(pa.memory_map(str(folder / name))) for name in (_PEOPLE, _KNOWS))
        return Social(people.read_all(), knows.read_all())


def make_social(size: Size) -> Social:
    """Return the graph of a size; the same one every time."""
    rng = np.random.default_rng(SEED)
    handles = handles_of(np.arange(size.people))
    people = {
        "handle": handles,
        "name": pc.binary_join_element_wise(
            "Person", pa.array(rng.permutation(size.people)).cast(pa.utf8()), " "
        ),
        "age": pa.array(rng.integers(18, 90, size.people)),
        "city": _cities().take(pa.array(_zipf(rng, CITIES, size.people, 0.5))),
        "bio": _texts(rng, size.people),
    }
    if size.has_vectors:
        people["taste"] = _vectors(rng, size.people)
    sources, targets = _pairs(rng, size)
    since = pa.array(rng.integers(*YEARS, len(sources)))
    ends = {"from": handles.take(pa.array(sources)), "to": handles.take(pa.array(targets))}
    return Social(pa.table(people), pa.table({**ends, "since": since}))


def handles_of(numbers: Numbers) -> pa.Array:
    """Return the handles of people by their numbers."""
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.utf8()), 7, "0")
    return pc.binary_join_element_wise("p", digits, "")


def city(number: int) -> str:
    """Return the name of a city; the first ones have the most people."""
    return f"city{number:02d}"


def word(number: int) -> str:
    """Return a word of the texts; the first ones are the most frequent."""
    consonants, vowels = "bdfgklmnprstvz", "aou"
    letters = ""
    rest = number + len(consonants) * len(vowels)  # two syllables at least
    while rest:
        rest, at = divmod(rest, len(consonants) * len(vowels))
        letters += consonants[at % len(consonants)] + vowels[at // len(consonants)]
    return letters + _ENDS[number % len(_ENDS)]


def vector(rng: np.random.Generator) -> list[float]:
    """Return a vector that lies near some of the people's."""
    found = _centres()[rng.integers(CLUSTERS)] + 0.1 * rng.standard_normal(DIMENSION)
    return [float(x) for x in (found / np.linalg.norm(found)).astype(np.float32)]


def _cities() -> pa.Array:
    return pa.array([city(number) for number in range(CITIES)])


def _zipf(rng: np.random.Generator, kinds: int, count: int, power: float) -> Numbers:
    """Return random numbers below `kinds`, the lower the more frequent."""
    ends = np.cumsum(1.0 / np.arange(1, kinds + 1) ** power)
    return np.searchsorted(ends, rng.random(count) * ends[-1])


def _texts(rng: np.random.Generator, count: int) -> pa.Array:
    lengths = rng.integers(6, 20, count)
    ends = np.concatenate(([0], np.cumsum(lengths)))
    vocabulary = pa.array([word(number) for number in range(WORDS)])
    words = vocabulary.take(pa.array(_zipf(rng, WORDS, int(ends[-1]), 1.0)))
    lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), words)
    return pc.binary_join(lists, " ")


def _centres() -> npt.NDArray[np.float64]:
    centres = np.random.default_rng(SEED).standard_normal((CLUSTERS, DIMENSION))
    return centres / np.linalg.norm(centres, axis=1, keepdims=True)


def _vectors(rng: np.random.Generator, count: int) -> pa.Array:
    found = _centres()[rng.integers(CLUSTERS, size=count)] + 0.1 * rng.standard_normal((count, DIMENSION))
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    flat = pa.array(found.astype(np.float32).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, DIMENSION)


def _pairs(rng: np.random.Generator, size: Size) -> tuple[Numbers, Numbers]:
    """Return distinct pairs without loops, by source: so that walks and sets of neighbours agree."""
    active = np.cumsum(rng.lognormal(0.0, 1.0, size.people))
    popular = np.cumsum(rng.pareto(1.5, size.people) + 0.1)
    packed = np.empty(0, np.int64)
    while len(packed) < size.edges:
        count = size.edges + size.edges // 10
        source = np.searchsorted(active, rng.random(count) * active[-1])
        target = np.searchsorted(popular, rng.random(count) * popular[-1])
        fresh = (source << 32 | target)[source != target]
        packed = np.unique(np.concatenate((packed, fresh)))
    packed = np.sort(rng.choice(packed, size.edges, replace=False))
    return packed >> 32, packed & 0xFFFFFFFF
