"""A query whose text is long: each stage that grows with it looks at the clock of the query."""

from collections.abc import Callable

import pytest

import omnigraph
from omnigraph.catalog.bind import bind
from omnigraph.catalog.bound import BoundRead
from omnigraph.core.clock import deadline
from omnigraph.core.errors import QueryTimeout
from omnigraph.core.span import Source
from omnigraph.exec.operators import scan
from omnigraph.exec.rows import Budget
from omnigraph.graph.graph import Graph
from omnigraph.language.parser import tokenize
from omnigraph.language.query_parser import parse_queries
from omnigraph.plan.choose import pipeline_of
from omnigraph.plan.estimate import Estimator
from omnigraph.plan.pattern import pattern_of
from omnigraph.plan.physical import Keep
from omnigraph.storage.tables.filter import And, Or
from tests.support.library import compile_text
from tests.support.seam import internals, patched

SCHEMA = "node P { name: String @key  age: I32?  note: String? }\nedge K: P -> P\n"
CATALOG = compile_text(SCHEMA)


def conditions(count: int, property: str = "age") -> Source:
    """Return a query of so many conditions."""
    asked = "\n".join(f"$p.{property} != {number}" for number in range(count))
    return Source(f"query q() {{ match {{ $p: P\n{asked} }} return {{ $p.name }} }}")


def hops(count: int) -> Source:
    asked = "\n".join(f"$p{number} k $p{number + 1}" for number in range(count))
    return Source(f'query q() {{ match {{ $p0: P {{ name: "a" }}\n{asked} }} return {{ $p0.name }} }}')


class Over(Exception):
    """The time is over."""


def raise_over() -> None:
    raise Over


def bound_read(source: Source) -> BoundRead:
    read = bind(parse_queries(source).queries[0], CATALOG, source)
    assert isinstance(read, BoundRead)
    return read


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = omnigraph.init(tmp_path_factory.mktemp("long") / "graph", SCHEMA, durability="process")
    graph.load(b'{"type": "P", "data": {"name": "a", "age": -1}}', "append", index=False)
    return graph


@pytest.mark.case("engine", 415)
def test_every_stage_before_the_run_looks_at_the_clock(graph: Graph) -> None:
    source = conditions(2_000)
    parsed, asked, followed = parse_queries(source).queries[0], bound_read(source), bound_read(hops(3))
    view = internals(graph).reading.newest(internals(graph).state(), graph.catalog)
    way, estimator = pattern_of(followed), Estimator(view.catalog, view)
    stages: list[Callable[[], object]] = [
        lambda: tokenize(source),
        lambda: bind(parsed, CATALOG, source),
        lambda: pattern_of(asked),
        lambda: pattern_of(followed),
        lambda: pipeline_of(way, estimator, needed=frozenset(), keep=Keep.ROWS),
    ]

    for stage in stages:
        stage()
        with deadline(raise_over), pytest.raises(Over):
            stage()


@pytest.mark.case("engine", 415)
def test_the_parser_looks_at_the_clock_beside_the_lexer() -> None:
    looks = 0

    def count() -> None:
        nonlocal looks
        looks += 1

    with deadline(count):
        tokenize(conditions(2_000))
    of_lexer = looks
    with deadline(count):
        parse_queries(conditions(2_000))

    assert looks >= 3 * of_lexer > 0


@pytest.mark.case("engine", 415)
def test_a_query_of_twenty_thousand_conditions_obeys_its_timeout(graph: Graph) -> None:
    with pytest.raises(QueryTimeout):
        graph.query(conditions(20_000).text, timeout_ms=1)

    assert len(graph.query(conditions(1_000).text, timeout_ms=600_000).rows) == 1


@pytest.mark.case("engine", 415)
def test_conditions_on_rows_and_on_columns_that_are_read_look_at_the_clock(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def count(_budget: Budget) -> None:
        nonlocal looks
        looks += 1

    patched(monkeypatch, "omnigraph.exec.rows.Budget.check", count)
    text = conditions(500).text
    for change in ("$p: P", '$p: P { name: "a" }'):
        looks = 0
        graph.query(text.replace("$p: P", change))
        assert looks >= 500, change
    patched(monkeypatch, "omnigraph.exec.dense.derived.Derived.cached_column", lambda *_: None)
    patched(monkeypatch, "omnigraph.exec.operators.scan.TAKE_SHARE", 10)
    looks = 0
    graph.query(conditions(501).text)
    assert looks >= 501


def test_a_scan_is_narrowed_by_some_conditions_and_all_are_decided(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed = []
    plain = scan._pushed

    def watched(*arguments: object) -> object:
        found = plain(*arguments)  # type: ignore[arg-type] # as the original takes them
        pushed.append(found)
        return found

    patched(monkeypatch, "omnigraph.exec.operators.scan._pushed", watched)
    patched(monkeypatch, "omnigraph.exec.dense.derived.Derived.cached_column", lambda *_: None)
    text = conditions(300).text

    assert len(graph.query(text).rows) == 1
    assert graph.query(text.replace("!= 299", "= 299")).rows == []
    assert {len(found.filters) for found in pushed if isinstance(found, And | Or)} == {scan.PUSHED_MAX}


def test_a_deadline_ends_with_its_block() -> None:
    with deadline(raise_over):
        pass

    assert parse_queries(conditions(2_000)).queries
