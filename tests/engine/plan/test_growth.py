"""What a long text costs grows as its length: lines of our code that run are counted, not seconds."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

import pytest

from omnigraph.catalog.bind import bind
from omnigraph.catalog.bound import BoundRead
from omnigraph.catalog.build import build_catalog, compile_schema, read_schema
from omnigraph.catalog.identity import accept_first, inherit
from omnigraph.catalog.lint import lint
from omnigraph.catalog.merge_schemas import merge_schemas
from omnigraph.catalog.migrate import plan_migration
from omnigraph.core.span import Source
from omnigraph.language.query_parser import parse_queries
from omnigraph.plan.optimize import plan_read
from tests.engine.plan.planning import Counts

if TYPE_CHECKING:
    from _typeshed import TraceFunction

CATALOG = compile_schema(
    Source("node P { name: String @key  age: I32? }\nedge Knows: P -> P { since: I32? }")
)
COUNTS = Counts({"node:P": 1_000, "edge:Knows": 5_000})
SHORT, LONG = 40, 160
GROWTH_MAX = 4.8  # of four times the length; what looks at all pairs grows to sixteen times


def lines_run(call: Callable[[], object]) -> int:
    """Return how many lines of Python run in a call."""
    count = 0

    def look(_frame: FrameType, event: str, _argument: object, /) -> "TraceFunction":
        nonlocal count
        count += event == "line"
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def assert_grows_as_its_length(work: Callable[[int], Callable[[], object]]) -> None:
    work(SHORT)()  # what is worked out once is not counted
    short, long = (lines_run(work(number)) for number in (SHORT, LONG))

    assert long / short < GROWTH_MAX


def each(template: str, number: int) -> str:
    """Return a line for each number, in which `#` is the number and `+` the next one."""
    return "\n".join(template.replace("#", str(n)).replace("+", str(n + 1)) for n in range(number))


def backwards(template: str, number: int) -> str:
    """Return the lines of `each`, the last one first."""
    return "\n".join(reversed(each(template, number).splitlines()))


@pytest.mark.case("languages", 263)
@pytest.mark.parametrize(
    "text",
    [
        lambda n: f"match {{ $v0: P {each('$v# knows $v+', n)} }} return {{ $v0.name }}",
        lambda n: f"match {{ $v0: P {backwards('$v# knows $v+', n)} }} return {{ $v0.name }}",
        lambda n: f"match {{ $v0: P {each('$v# $e#: knows $v+ $e#.since > $v+.age', n)} }} return {{ $v0 }}",
        lambda n: f"match {{ $c: P {each('$c knows $v#', n)} }} return {{ $c.name }}",
        lambda n: f"match {{ $c: P {each('$v# knows $c $c.age > $v#.age', n)} }} return {{ $c.name }}",
        lambda n: f"match {{ {each('$v#: P', n)} }} return {{ $v0.name }}",
        lambda n: f"match {{ $v0: P {each('$v+: P $v#.age = $v+.age', n)} }} return {{ $v0.name }}",
        lambda n: f"match {{ $a: P $b: P {each('$a knows $b', n)} }} return {{ $a.name }}",
        lambda n: f"match {{ $v0: P {each('$v+: P not { $v# knows $w }', n)} }} return {{ $v0.name }}",
        lambda n: f"match {{ $a: P {each('$_ knows $_ $a knows $_', n)} }} return {{ $a.name }}",
        lambda n: f"match {{ $a: P {each('$a.age > #', n)} }} return {{ $a.name }}",
        lambda n: (
            f"match {{ {each('$v#: P', n)} }} return {{ {each('$v#.name as a#', n)} count($v0) as c }} "
            f"order {{ {each('$v#.name, a#,', n).removesuffix(',')} }}"
        ),
    ],
    ids=[
        "a chain",
        "a chain written backwards",
        "named edges with conditions",
        "a star",
        "a star with conditions",
        "separate nodes",
        "joins",
        "closed traversals",
        "negations",
        "unnamed ends",
        "filters",
        "grouping keys and orders",
    ],
)
def test_a_read_is_parsed_checked_and_planned_in_one_pass(text: Callable[[int], str]) -> None:
    def work(number: int) -> Callable[[], object]:
        source = Source(f"query q() {{ {text(number)} }}")

        def plan() -> object:
            (query,) = parse_queries(source).queries
            read = bind(query, CATALOG, source)
            assert isinstance(read, BoundRead)
            return plan_read(read, CATALOG, COUNTS)

        return plan

    assert_grows_as_its_length(work)


@pytest.mark.case("languages", 263)
@pytest.mark.parametrize(
    "text",
    [
        lambda n: f"query q() {{ {each('insert P { age: # }', n)} }}",
        lambda n: f"query q() {{ {each('delete P where age = #', n)} }}",
        lambda n: each("query q#($p: String) { update P set { age: # } where name = $p }", n),
        lambda n: each("query q#() { match { $p: P } return { $p.nam } }", n),
    ],
    ids=["inserts", "deletes", "many queries", "many wrong queries"],
)
def test_a_file_is_linted_in_one_pass(text: Callable[[int], str]) -> None:
    def work(number: int) -> Callable[[], object]:
        source = Source(text(number))
        return lambda: lint(CATALOG, source, query_path="q.gq", schema_source={})

    assert_grows_as_its_length(work)


@pytest.mark.case("languages", 264)
@pytest.mark.parametrize("kind", ["types", "properties"])
def test_a_schema_is_compiled_migrated_and_merged_in_one_pass(kind: str) -> None:
    def schema(number: int, extra: str, renamed: str) -> Source:
        if kind == "properties":
            old = '@rename_from("p#")' if renamed else ""
            items = each(f"{renamed.lower() or 'p'}#: I32? @index {old}", number)
            return Source(f"node N {{ k: String @key {items} {extra} }}")
        old = '@rename_from("N#")' if renamed else ""
        name = renamed or "N"
        return Source(
            "interface Named { name: String }\n"
            + each(
                f"node {name}# {old} implements Named {{ name: String @key {extra} }}\n"
                f"edge E#: {name}# -> {name}#",
                number,
            )
        )

    def work(number: int) -> Callable[[], object]:
        def all_of_it() -> object:
            base = accept_first(read_schema(schema(number, "", "")))
            build_catalog(base)
            added, renamed = (read_schema(schema(number, *how)) for how in (("x: I32?", ""), ("", "M")))
            sides = [inherit(base, side, plan_migration(base, side).resolution) for side in (added, renamed)]
            merged = merge_schemas(base, *sides)
            assert not merged.conflicts
            return merged

        return all_of_it

    assert_grows_as_its_length(work)
