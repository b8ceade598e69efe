"""Whole plans: where they start, what they follow, where conditions stand."""

import pytest

from omnigraph.catalog.bound import NOW_PARAMETER, ParameterValue
from omnigraph.core.values import Scalar, ValueType
from omnigraph.plan.physical import Close
from tests.engine.plan.planning import ROWS, Counts, explained, operators, planned
from tests.support.queries import bind_read, books


def test_a_plan_starts_at_the_most_selective_scan() -> None:
    assert explained('$a: Author $a wrote $b $b.code = "AA-1" $b storedOn $s') == [
        "scan $b: Book  ~1 row",
        '  where $b.code = "AA-1"',
        "expand $b -[StoredOn]-> $s: Shelf  ~0.9 rows",
        "expand $b <-[Wrote]- $a: Author  ~1.4 rows",
    ]


def test_a_plan_keeps_the_root_of_the_query_where_another_saves_little() -> None:
    counts = Counts(tables={**ROWS, "node:Author": 1_000, "node:Book": 900})

    assert operators("$a: Author $a wrote $b", "return { $a.name, $b.code }", counts=counts) == [
        "scan $a: Author",
        "expand $a -[Wrote]-> $b: Book",
    ]


def test_the_traversal_that_leads_to_few_goes_first() -> None:
    match = '$b: Book { code: "x" } $b cites $c $a wrote $b $b storedOn $s'

    assert operators(match) == [
        "scan $b: Book",
        "expand $b -[StoredOn]-> $s: Shelf",
        "expand $b <-[Wrote]- $a: Author",
        "expand $b -[Cites]-> $c: Book",
    ]


def test_other_counts_give_another_order() -> None:
    match = '$b: Book { code: "x" } $b cites $c $a wrote $b'
    few = Counts(tables={**ROWS, "edge:Cites": 10})

    assert operators(match)[1] == "expand $b <-[Wrote]- $a: Author"
    assert operators(match, counts=few)[1] == "expand $b -[Cites]-> $c: Book"


def test_conditions_stand_where_their_variable_is_introduced() -> None:
    match = """
        $a: Author { handle: "ada" }
        $a $w:wrote $b
        $b: Book { format: "paper" }
        $w.role = "main"
        search($b.blurb, $q)
        $b.added <= now()
        1 < 2
    """

    assert explained(match, params="$q: String") == [
        "filter  ~1 row",
        "  where 1 < 2",
        "scan $a: Author  ~1 row",
        '  where $a.handle = "ada"',
        "expand $a -[$w:Wrote]-> $b: Book  <0.1 rows",
        '  where $w.role = "main"',
        '  where $b.format = "paper"',
        "  where search($b.blurb, $q)",
        "  where $b.added <= now()",
    ]


def test_a_condition_on_several_variables_is_tested_as_soon_as_they_are_bound() -> None:
    match = (
        '$a: Author { handle: "ada" } $a $w:wrote $b $b storedOn $s $w.share < $b.price $s.slot = $b.pages'
    )

    assert operators(match) == [
        "scan $a: Author",
        "expand $a -[$w:Wrote]-> $b: Book",
        "filter",
        "expand $b -[StoredOn]-> $s: Shelf",
        "filter",
    ]


def test_a_cycle_is_closed() -> None:
    assert explained("$a: Book $a cites $b $b cites $c $c cites $a", "return { count($a) as n }") == [
        "scan $a: Book  ~1000 rows",
        "expand $a -[Cites]-> $b: Book  ~4000 rows",
        "expand $b -[Cites]-> $c: Book  ~16000 rows",
        "close $c -[Cites]-> $a  ~64 rows",
    ]


def test_a_bound_edge_of_a_cycle_is_introduced_where_it_closes() -> None:
    plan = planned("$a: Book $a cites $b $b $w:cites $a", "return { $w.page }")

    assert [(v.name, v.is_edge) for v in plan.variables.values()] == [("a", False), ("b", False), ("w", True)]
    assert isinstance(plan.pipeline[-1], Close)
    assert plan.pipeline[-1].edge_binding == "w"


def test_a_traversal_to_itself_is_closed() -> None:
    assert operators("$x cites $x") == ["scan $x: Book", "close $x -[Cites]-> $x"]


@pytest.mark.parametrize(
    ("hops", "plan"),
    [
        ("{1,3}", ["scan $b: Book", "expand $b <-[Cites{1,3}]- $a: Book"]),
        ("{2,3}", ["scan $a: Book", "expand $a -[Cites{2,3}]-> $b: Book"]),
    ],
)
def test_a_search_with_a_lower_bound_is_not_turned_round(hops: str, plan: list[str]) -> None:
    assert operators(f'$a: Book $a cites{hops} $b $b.code = "x"') == plan


def test_a_search_that_cannot_be_turned_round_is_closed_between_two_selective_ends() -> None:
    match = '$a: Book { code: "x" } $b: Book { code: "y" } $b storedOn $s $a cites{2,3} $b'

    plan = operators(match)

    assert "close $a -[Cites{2,3}]-> $b" in plan or "expand $a -[Cites{2,3}]-> $b: Book" in plan


# Joins


def test_components_with_an_equality_are_joined_by_it() -> None:
    assert explained("$a: Book $b: Book $a.pages = $b.pages $a.code < $b.code") == [
        "scan $a: Book  ~1000 rows",
        "join $b: Book  ~100000 rows",
        "  on $b.pages = $a.pages",
        "filter  ~33333 rows",
        "  where $a.code < $b.code",
    ]


def test_numbers_of_two_types_are_compared_by_value_behind_the_cross_product() -> None:
    assert explained("$a: Book $b: Book $a.pages = $b.stock") == [
        "scan $a: Book  ~1000 rows",
        "cross $b: Book  ~1000000 rows",
        "filter  ~100000 rows",
        "  where $a.pages = $b.stock",
    ]


def test_components_that_share_nothing_are_multiplied() -> None:
    plan = planned("$a: Author $s: Shelf", "return { count($a) as n }")

    assert [operator.estimate for operator in plan.pipeline] == [200.0, 4_000.0]
    assert plan.estimate == 1.0


def test_a_component_is_entered_where_its_key_is() -> None:
    match = '$a: Book { code: "x" } $b: Book $b storedOn $s $a.title = $b.title'

    assert operators(match) == [
        "scan $a: Book",
        "join $b: Book",
        "  on $b.title = $a.title",
        "expand $b -[StoredOn]-> $s: Shelf",
    ]


# What is kept


@pytest.mark.parametrize(
    ("tail", "kept"),
    [
        ("return { $a.name }", ""),
        ("return { $a.name, count($b) as n }", ", counted"),
        ("return { $a.name, count($a) as n }", ", counted"),
        ("return { $a.name, count($b.pages) as n }", ""),
        ("return { max($a.name) as m }", ", if any"),
        ("return { max($b.title) as m, count($a) as n }", ""),
    ],
)
def test_destinations_that_nobody_reads_are_counted(tail: str, kept: str) -> None:
    assert operators("$a: Author $a wrote $b", tail) == [
        "scan $a: Author",
        f"expand $a -[Wrote]-> $b: Book{kept}",
    ]


def test_a_destination_that_is_followed_or_compared_is_no_leaf() -> None:
    tail = "return { $a.name, count($c) as n }"

    assert operators("$a: Author $a wrote $b $b cites $c", tail) == [
        "scan $a: Author",
        "expand $a -[Wrote]-> $b: Book",
        "expand $b -[Cites]-> $c: Book, counted",
    ]
    assert "counted" not in " ".join(
        operators("$a: Author $a wrote $b $b.title = $a.name", tail.replace("c)", "b)"))
    )
    negated = operators(
        '$a: Author { handle: "x" } $a wrote $b not { $b storedOn $_ }', tail.replace("$c", "$b")
    )
    assert negated[1] == "expand $a -[Wrote]-> $b: Book"


def test_a_count_starts_in_the_middle_where_that_makes_fewer_rows() -> None:
    counts = Counts(tables={**ROWS, "edge:Wrote": 15_000})

    assert operators("$a: Author $a wrote $b $b cites $c", "return { count($a) as n }", counts=counts) == [
        "scan $b: Book",
        "expand $b <-[Wrote]- $a: Author, counted",
        "expand $b -[Cites]-> $c: Book, counted",
    ]


# Negations


def test_a_negation_runs_from_the_outer_variables_that_it_mentions() -> None:
    assert explained('$b: Book not { $b cites $x  $x.format = "paper" }') == [
        "scan $b: Book  ~1000 rows",
        "anti-join on $b  ~500 rows",
        "  expand $b -[Cites]-> $x: Book  ~1000 rows, if any",
        '    where $x.format = "paper"',
    ]


def test_a_negation_of_a_condition_is_a_filter_inside() -> None:
    assert operators('$a: Author not { $a wrote $b  not { $b.format = "paper" } }') == [
        "scan $a: Author",
        "anti-join on $a",
        "  expand $a -[Wrote]-> $b: Book",
        "  anti-join on $b",
        "    filter",
    ]


def test_what_a_negation_does_not_share_is_joined() -> None:
    assert operators("$a: Author not { $x: Author  $x.born < $a.born }") == [
        "scan $a: Author",
        "anti-join on $a",
        "  cross $x: Author",
        "  filter",
    ]
    assert operators("$a: Author not { $x: Author  $x.born = $a.born $x wrote $_ }") == [
        "scan $a: Author",
        "anti-join on $a",
        "  join $x: Author",
        "    on $x.born = $a.born",
        "  expand $x -[Wrote]-> $__1: Book, if any",
    ]


def test_a_negation_between_bound_nodes_closes() -> None:
    assert operators('$a: Book { code: "x" } $a cites $b not { $b cites $a }')[-2:] == [
        "anti-join on $a, $b",
        "  close $b -[Cites]-> $a",
    ]


def test_a_negation_goes_before_what_grows_the_rows_and_behind_what_shrinks_them() -> None:
    assert operators("$b: Book not { $_ wrote $b } $b cites $c $b storedOn $s $s.slot = 3")[1:4] == [
        "expand $s <-[StoredOn]- $b: Book",
        "anti-join on $b",
        "  expand $b <-[Wrote]- $__1: Author, if any",
    ]


def test_deep_negations_are_planned_in_time() -> None:
    match = "$b0: Book " + "".join(f"not {{ $b{n} cites $b{n + 1} " for n in range(40)) + "}" * 40

    assert len(operators(match)) == 81


# The result


@pytest.mark.parametrize(
    ("match", "tail", "estimate"),
    [
        ("$b: Book", "return { $b.code } limit 7", 7.0),
        ("$b: Book", "return { $b.format, count($b) as n }", 4.0),
        ("$b: Book", "return { $b.pages, count($b) as n }", 1_000.0),
        ("$b: Book", "return { count($b) as n }", 1.0),
        ("$a: Author $a wrote $b", "return { $a, count($b) as n }", 200.0),
        ("$b: Book", "return { $b.code } limit 0", 0.0),
    ],
)
def test_the_estimate_of_the_result(match: str, tail: str, estimate: float) -> None:
    assert planned(match, tail).estimate == pytest.approx(estimate, rel=0.01)


def test_a_plan_keeps_the_head_and_the_tail_of_its_query() -> None:
    tail, params = "return { $b.pages as p, $b } order { p desc, $b.code } limit 3", "$t: String?"
    bound = bind_read(books(tail=tail, params=params))

    plan = planned("$b: Book", tail, params)

    assert (plan.name, plan.limit) == ("q", 3)
    assert plan.parameters == {"t": ValueType(Scalar.STRING, nullable=True)}
    assert plan.projections == bound.projections
    assert plan.orderings == bound.orderings


def test_a_plan_without_order_and_limit_has_neither() -> None:
    plan = planned("$b: Book")

    assert plan.orderings == ()
    assert plan.limit is None


def test_now_is_a_reserved_parameter() -> None:
    (projection,) = planned("$b: Book", "return { now() }").projections

    assert projection.expression == ParameterValue(NOW_PARAMETER, ValueType(Scalar.DATETIME))
    assert NOW_PARAMETER == "__omnigraph_now"


def test_an_empty_graph_has_a_plan() -> None:
    empty = Counts(tables=dict.fromkeys(ROWS, 0))

    plan = planned("$a: Author $a wrote $b $s: Shelf not { $b cites $_ }", counts=empty)

    assert all(operator.estimate == 0 for operator in plan.pipeline)


def test_a_plan_is_the_same_every_time() -> None:
    match = "$a: Book $b: Book $c: Book $a cites $b $b cites $c $n: Note $n about $a not { $b storedOn $_ }"

    assert len({repr(planned(match)) for _ in range(5)}) == 1
