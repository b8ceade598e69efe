"""Plans are made once, by the right key, and the cache stays small."""

from collections.abc import Callable
from threading import Barrier, Thread

import pytest

from omnigraph.catalog.bind import bind
from omnigraph.catalog.bound import BoundRead
from omnigraph.catalog.model import Catalog
from omnigraph.core.span import Source
from omnigraph.language.query_parser import parse_queries
from omnigraph.operations.query import CACHED_TEXT_MAX, PhysicalKey, PlanCache
from omnigraph.plan.optimize import plan_read
from omnigraph.plan.physical import PhysicalPlan
from tests.engine.plan.planning import ROWS, Counts
from tests.support.library import LIB, catalog, compile_text

TWO = """
query first($n: I32) { match { $b: Book $b cites $c $b.code = "x" $b.pages > $n } return { $c.code } }
query second() { match { $a: Author $a wrote $b } return { $b.code } }
"""


class Maker:
    """Binds a query of a text, and counts how often it is asked to."""

    def __init__(self, text: str, name: str, against: Catalog) -> None:
        self.text, self.name, self.against = text, name, against
        self.calls = 0

    def __call__(self) -> BoundRead:
        self.calls += 1
        query = next(q for q in parse_queries(Source(self.text)).queries if q.name.text == self.name)
        read = bind(query, self.against, Source(self.text))
        assert isinstance(read, BoundRead)
        return read


def physical(read: BoundRead, counts: Counts) -> Callable[[], PhysicalPlan]:
    return lambda: plan_read(read, catalog(), counts)


def refuse() -> PhysicalPlan:
    raise AssertionError("made although it is cached")


def test_a_plan_is_made_once() -> None:
    cache, make = PlanCache(), Maker(TWO, "first", catalog())

    plans = [cache.logical(TWO, "first", catalog().shape_hash, make) for _ in range(3)]

    assert make.calls == 1
    assert plans[0] is plans[1] is plans[2]


def test_two_names_in_one_text_are_two_plans() -> None:
    cache, schema = PlanCache(), catalog().shape_hash

    first = cache.logical(TWO, "first", schema, Maker(TWO, "first", catalog()))
    second = cache.logical(TWO, "second", schema, Maker(TWO, "second", catalog()))

    assert (first.name, second.name) == ("first", "second")


def test_one_text_under_two_schemas_is_two_plans() -> None:
    other = compile_text(LIB.replace("price:     F64", "price:     F32"))
    cache = PlanCache()
    text = "query q() { match { $b: Book $b.price > 1.0 } return { $b.price } }"

    ours = cache.logical(text, "q", catalog().shape_hash, Maker(text, "q", catalog()))
    theirs = cache.logical(text, "q", other.shape_hash, Maker(text, "q", other))

    assert catalog().shape_hash != other.shape_hash
    assert ours != theirs


def test_a_write_changes_physical_choices_only() -> None:
    cache, make = PlanCache(), Maker(TWO, "first", catalog())
    schema = catalog().shape_hash
    before, after = (
        PhysicalKey(TWO, "first", schema, pins) for pins in ((("node:Book", 1),), (("node:Book", 2),))
    )

    read = cache.logical(TWO, "first", schema, make)
    old = cache.physical(before, physical(read, Counts()))
    new = cache.physical(after, physical(read, Counts(tables={**ROWS, "node:Book": 5})))

    assert make.calls == 1
    assert cache.logical(TWO, "first", schema, make) is read
    assert old != new
    assert cache.physical(before, refuse) is old
    assert cache.physical(after, refuse) is new


def test_parameters_are_in_no_plan() -> None:
    """The same objects serve every value: there is no place in the interface to pass one."""
    cache, make = PlanCache(), Maker(TWO, "first", catalog())

    read = cache.logical(TWO, "first", "h", make)
    plan = cache.physical(PhysicalKey(TWO, "first", "h", ()), physical(read, Counts()))

    assert list(plan.parameters) == ["n"]
    assert cache.physical(PhysicalKey(TWO, "first", "h", ()), refuse) is plan


def test_the_least_recently_used_plan_goes_first() -> None:
    cache = PlanCache(plans_max=2)
    made: list[str] = []

    def get(text: str) -> str:
        return cache.logical(text, None, "h", lambda: made.append(text) or text)  # type: ignore[func-returns-value]

    for text in ("a", "b", "a", "c", "a", "b"):
        assert get(text) == text

    assert made == ["a", "b", "c", "b"]


def test_an_error_is_raised_again() -> None:
    cache = PlanCache()

    def fail() -> str:
        raise ValueError("no plan")

    with pytest.raises(ValueError, match="no plan"):
        cache.logical("x", None, "h", fail)

    assert cache.logical("x", None, "h", lambda: "made") == "made"


def test_a_huge_text_is_not_kept() -> None:
    cache = PlanCache()
    text = " " * (CACHED_TEXT_MAX + 1)

    assert cache.logical(text, None, "h", lambda: 1) == 1
    assert cache.logical(text, None, "h", lambda: 2) == 2


def test_threads_that_make_the_same_plan_all_get_the_first() -> None:
    cache, barrier = PlanCache(), Barrier(4)
    found: list[object] = []

    def make() -> object:
        barrier.wait(timeout=30)
        return object()

    threads = [Thread(target=lambda: found.append(cache.logical("x", None, "h", make))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert len(set(map(id, found))) == 1
