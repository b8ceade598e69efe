"""Lowering, step by step: roots, traversals, filters, negation."""

import pytest

from omnigraph.catalog.bound import (
    NOW_PARAMETER,
    Comparison,
    LiteralValue,
    Operator,
    ParameterValue,
    PropertyValue,
    TextMatchValue,
)
from omnigraph.core.values import Scalar, ValueType
from omnigraph.plan.logical import (
    AntiJoin,
    Expand,
    Filter,
    NodeScan,
)
from tests.support.queries import outline, pipeline

TEXT = ValueType(Scalar.STRING)


def lowered(match: str, params: str = "") -> list[str]:
    """Return the outline of a match block's plan."""
    return outline(pipeline(match, params))


# Step 1: bindings


def test_inline_matches_become_filters() -> None:
    (scan,) = pipeline('$b: Book { format: "paper", tags: $t }', "$t: String")

    values = ("audio", "ebook", "paper")
    tags_type = ValueType(Scalar.STRING, nullable=True, is_list=True)
    assert scan == NodeScan(
        "b",
        "Book",
        (
            Comparison(
                PropertyValue("b", "format", ValueType(Scalar.STRING, enum_values=values)),
                Operator.EQ,
                LiteralValue("paper", TEXT),
            ),
            Comparison(PropertyValue("b", "tags", tags_type), Operator.CONTAINS, ParameterValue("t", TEXT)),
        ),
    )


def test_bindings_of_one_variable_are_merged() -> None:
    assert lowered('$b: Book { format: "paper" } $a: Author $b: Book { pages: 3, code: "x" }') == [
        "scan b Book +3",
        "scan a Author",
    ]


# Step 2: roots


@pytest.mark.parametrize(
    ("match", "plan"),
    [
        ("$b: Book", ["scan b Book"]),
        ("$a: Author $s: Shelf $n: Note", ["scan a Author", "scan s Shelf", "scan n Note"]),
        ("$b: Book $a: Author $a wrote $b", ["scan b Book", "in Wrote b -> a Author"]),
        ("$a wrote $b $b: Book", ["scan b Book", "in Wrote b -> a Author"]),
        ("$a wrote $b", ["scan a Author", "out Wrote a -> b Book"]),
        ("$_ wrote $b", ["scan b Book", "in Wrote b -> ~1 Author"]),
        ("$a wrote $_", ["scan a Author", "out Wrote a -> ~1 Book"]),
        (
            "$b storedOn $s $a wrote $b",
            ["scan b Book", "out StoredOn b -> s Shelf", "in Wrote b -> a Author"],
        ),
        (
            "$a wrote $b $c: Book $c storedOn $s $n: Note",
            [
                "scan a Author",
                "scan c Book",
                "scan n Note",
                "out Wrote a -> b Book",
                "out StoredOn c -> s Shelf",
            ],
        ),
        (
            "$n: Note $a wrote $b $b: Book $s: Shelf $b storedOn $s",
            ["scan n Note", "scan b Book", "in Wrote b -> a Author", "out StoredOn b -> s Shelf"],
        ),
        (
            "$a wrote $b $c cites $d",
            ["scan a Author", "scan c Book", "out Wrote a -> b Book", "out Cites c -> d Book"],
        ),
        (
            "$a wrote $b $c cites $d $b cites $c",
            ["scan a Author", "out Wrote a -> b Book", "out Cites b -> c Book", "out Cites c -> d Book"],
        ),
        ("$x cites $x", ["scan x Book", "out Cites x -> ~1 Book", "filter ~1.id eq x.id"]),
    ],
)
def test_every_component_of_connected_variables_has_one_root(match: str, plan: list[str]) -> None:
    assert lowered(match) == plan


@pytest.mark.parametrize(
    ("match", "plan"),
    [
        ("$_ wrote $_", ["scan ~1 Author", "out Wrote ~1 -> ~2 Book"]),
        ("$_ <cites> $_", ["scan ~1 Book", "both Cites ~1 -> ~2 Book"]),
        ("$s: Shelf $_ wrote $_", ["scan s Shelf", "scan ~1 Author", "out Wrote ~1 -> ~2 Book"]),
        (
            "$_ cites $_ $_ cites $_",
            ["scan ~1 Book", "out Cites ~1 -> ~2 Book", "scan ~3 Book", "out Cites ~3 -> ~4 Book"],
        ),
    ],
)
def test_a_traversal_of_two_anonymous_ends_has_an_unnamed_root(match: str, plan: list[str]) -> None:
    assert lowered(match) == plan


def test_an_edge_variable_of_two_anonymous_ends_is_kept() -> None:
    assert lowered("$_ $w:wrote $_") == ["scan ~1 Author", "out w:Wrote ~1 -> ~2 Book"]


# Step 3: traversals


@pytest.mark.parametrize(
    ("match", "plan"),
    [
        ("$a: Author $a wrote $b", "out Wrote a -> b Book"),
        ("$b: Book $a wrote $b", "in Wrote b -> a Author"),
        ("$b: Book $b wrote $a", "in Wrote b -> a Author"),
        ("$a: Author $b wrote $a", "out Wrote a -> b Book"),
        ("$l: Author $l mentors $r", "out Mentors l -> r Author"),
        ("$r: Author $l mentors $r", "in Mentors r -> l Author"),
        ("$l: Author $l <mentors> $r", "both Mentors l -> r Author"),
        ("$r: Author $l <mentors> $r", "both Mentors r -> l Author"),
        ("$l: Author $l mentors{2,4} $r", "out Mentors 2-4 l -> r Author"),
        ("$r: Author $l mentors{1,3} $r", "in Mentors 1-3 r -> l Author"),
        ("$l: Author $l <mentors>{1,2} $r", "both Mentors 1-2 l -> r Author"),
        ("$a: Author $a $w:wrote $b", "out w:Wrote a -> b Book"),
        ("$b: Book $a $w:wrote $b", "in w:Wrote b -> a Author"),
        ("$a: Author $a $_:wrote $b", "out Wrote a -> b Book"),
        ("$a: Author $a wrote $_", "out Wrote a -> ~1 Book"),
        ("$b: Book $_ wrote $b", "in Wrote b -> ~1 Author"),
        ("$b: Book $_ <cites> $b", "both Cites b -> ~1 Book"),
    ],
)
def test_a_traversal_starts_at_its_bound_end(match: str, plan: str) -> None:
    assert lowered(match)[1:] == [plan]


@pytest.mark.parametrize(
    ("match", "plan"),
    [
        (
            "$a: Author $a wrote $b $a wrote $b",
            ["out Wrote a -> b Book", "out Wrote a -> ~1 Book", "filter ~1.id eq b.id"],
        ),
        (
            "$a: Author $a wrote $b $b wrote $a",
            ["out Wrote a -> b Book", "in Wrote b -> ~1 Author", "filter ~1.id eq a.id"],
        ),
        (
            "$a: Book $a cites $b $b cites $c $c cites $a",
            [
                "out Cites a -> b Book",
                "out Cites b -> c Book",
                "out Cites c -> ~1 Book",
                "filter ~1.id eq a.id",
            ],
        ),
        (
            "$a: Book $a cites $b $a $w:cites $b",
            ["out Cites a -> b Book", "out w:Cites a -> ~1 Book", "filter ~1.id eq b.id"],
        ),
        (
            "$a: Book $a cites $b $a <cites>{1,3} $b",
            ["out Cites a -> b Book", "both Cites 1-3 a -> ~1 Book", "filter ~1.id eq b.id"],
        ),
        (
            "$a: Book $a cites $a $a cites $a",
            [
                "out Cites a -> ~1 Book",
                "filter ~1.id eq a.id",
                "out Cites a -> ~2 Book",
                "filter ~2.id eq a.id",
            ],
        ),
    ],
)
def test_a_traversal_between_bound_ends_is_a_condition(match: str, plan: list[str]) -> None:
    assert lowered(match)[1:] == plan


def test_traversals_wait_until_an_end_is_bound() -> None:
    assert lowered("$a: Book $c cites $d $b cites $c $a cites $b") == [
        "scan a Book",
        "out Cites a -> b Book",
        "out Cites b -> c Book",
        "out Cites c -> d Book",
    ]


@pytest.mark.parametrize("clause", ["$_ cites $x", "$x cites $_"])
def test_a_traversal_with_one_anonymous_end_waits_for_the_other(clause: str) -> None:
    first, *_, last = lowered(f"$r: Book {clause} $r cites $x")

    assert first == "scan r Book"
    assert last in {"in Cites x -> ~1 Book", "out Cites x -> ~1 Book"}


def test_ready_traversals_are_taken_in_source_order() -> None:
    assert lowered("$b: Book $b storedOn $s $c cites $d $a wrote $b $b cites $c $n about $b") == [
        "scan b Book",
        "out StoredOn b -> s Shelf",
        "in Wrote b -> a Author",
        "out Cites b -> c Book",
        "in About b -> n Note",
        "out Cites c -> d Book",
    ]


def test_a_waiting_traversal_that_is_written_twice_is_followed_twice() -> None:
    assert sorted(lowered("$r: Book $x cites $_ $r cites $x $x cites $_")) == sorted(
        ["scan r Book", "out Cites r -> x Book", "out Cites x -> ~1 Book", "out Cites x -> ~2 Book"]
    )


def test_the_matches_of_a_reached_variable_are_its_destination_filters() -> None:
    scan, expand = pipeline(
        '$a: Author { handle: "x" } $b: Book { pages: 3 } $a wrote $b $b: Book { code: "y" }'
    )

    assert isinstance(scan, NodeScan)
    assert len(scan.filters) == 1
    assert isinstance(expand, Expand)
    assert [(f.left, f.operator) for f in expand.dst_filters if isinstance(f, Comparison)] == [
        (PropertyValue("b", "pages", ValueType(Scalar.I32, nullable=True)), Operator.EQ),
        (PropertyValue("b", "code", TEXT), Operator.EQ),
    ]


def test_destination_filters_stand_where_the_variable_is_introduced() -> None:
    assert lowered(
        "$a: Author $b: Book { pages: 3 } $a wrote $b $a wrote $b $c: Book { pages: 4 } $b cites $c"
    ) == [
        "scan a Author",
        "out Wrote a -> b Book +1",
        "out Wrote a -> ~1 Book",
        "filter ~1.id eq b.id",
        "out Cites b -> c Book +1",
    ]


def test_an_edge_between_two_types_does_not_chain() -> None:
    _, expand = pipeline("$a: Author $a wrote{1,5} $b")

    assert isinstance(expand, Expand)
    assert (expand.min_hops, expand.max_hops) == (1, 1)


# Step 4: filters


def test_filters_follow_the_traversals_in_source_order() -> None:
    match = (
        '$b: Book $b.pages > 3 search($b.title, "x") $a wrote $b $a.name = $n '
        'match_text($b.blurb, "y") = true $b.added <= now()'
    )

    assert lowered(match, "$n: String") == [
        "scan b Book",
        "in Wrote b -> a Author",
        "filter b.pages gt 3",
        "filter search b.title",
        "filter a.name eq $n",
        "filter match_text b.blurb",
        f"filter b.added le ${NOW_PARAMETER}",
    ]


@pytest.mark.parametrize(
    ("condition", "operator"),
    [
        ("$b.pages = 3", "eq"),
        ("$b.pages != 3", "ne"),
        ("$b.pages > 3", "gt"),
        ("$b.pages < 3", "lt"),
        ("$b.pages >= 3", "ge"),
        ("$b.pages <= 3", "le"),
        ('$b.tags contains "x"', "contains"),
        ('$b.title contains "x"', "string_contains"),
        ('$b.title starts_with "x"', "starts_with"),
    ],
)
def test_every_comparison_has_its_operator(condition: str, operator: str) -> None:
    _, found = pipeline(f"$b: Book {condition}")

    assert isinstance(found, Filter)
    assert isinstance(found.condition, Comparison)
    assert found.condition.operator == operator


def test_a_text_predicate_compared_with_true_is_the_predicate() -> None:
    bare, compared = (pipeline(f'$b: Book fuzzy($b.title, "x", 1){end}')[1] for end in ("", " = true"))

    assert isinstance(bare, Filter)
    assert isinstance(bare.condition, TextMatchValue)
    assert compared == bare


# Step 5: negation


@pytest.mark.parametrize(
    ("block", "plan"),
    [
        ("$b storedOn $_", "not b [out StoredOn b -> ~1 Shelf]"),
        ("$_ wrote $b", "not b [in Wrote b -> ~1 Author]"),
        ("$b cites $x $x.pages > 3", "not b [out Cites b -> x Book, filter x.pages gt 3]"),
        ("$x: Book { pages: 3 } $b cites $x", "not b [out Cites b -> x Book +1]"),
        ("$x: Author $x.name = $b.title", "not b [scan x Author, filter x.name eq b.title]"),
        ("$b.pages > 3", "not b [filter b.pages gt 3]"),
        ("$b: Book { pages: 3 }", "not b [filter b.pages eq 3]"),
        ("$b cites $b", "not b [out Cites b -> ~1 Book, filter ~1.id eq b.id]"),
        ("$b $w:cites $x $w.page = 3", "not b [out w:Cites b -> x Book, filter w.page eq 3]"),
        ("$_ wrote $_ $b.pages = 3", "not b [scan ~1 Author, out Wrote ~1 -> ~2 Book, filter b.pages eq 3]"),
        (
            "$b cites $x not { $x storedOn $s $s.slot = 1 }",
            "not b [out Cites b -> x Book, not x [out StoredOn x -> s Shelf, filter s.slot eq 1]]",
        ),
        (
            "$b cites $x not { $x cites $b }",
            "not b [out Cites b -> x Book, not x [out Cites x -> ~1 Book, filter ~1.id eq b.id]]",
        ),
    ],
)
def test_a_not_block_is_lowered_with_the_outer_variables_bound(block: str, plan: str) -> None:
    assert lowered(f"$b: Book not {{ {block} }}") == ["scan b Book", plan]


def test_negations_stand_last_in_source_order() -> None:
    assert lowered("$b: Book not { $b cites $x } $b.pages > 3 not { $b storedOn $s } $a wrote $b") == [
        "scan b Book",
        "in Wrote b -> a Author",
        "filter b.pages gt 3",
        "not b [out Cites b -> x Book]",
        "not b [out StoredOn b -> s Shelf]",
    ]


def test_a_negation_between_two_outer_variables_is_a_condition() -> None:
    assert lowered("$a: Author $b: Book not { $b wrote $a }") == [
        "scan a Author",
        "scan b Book",
        "not b [in Wrote b -> ~1 Author, filter ~1.id eq a.id]",
    ]


def test_a_negation_names_the_first_outer_variable_it_mentions() -> None:
    *_, anti_join = pipeline("$a: Author $b: Book not { $x: Book $x.title = $b.title $a wrote $x }")

    assert isinstance(anti_join, AntiJoin)
    assert anti_join.outer_var == "b"
