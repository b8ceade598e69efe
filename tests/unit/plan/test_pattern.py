"""From clauses to a pattern, step by step: bindings, roots, traversals, filters, negation."""

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
from tests.support.queries import outline, pattern

TEXT = ValueType(Scalar.STRING)


def asked(match: str, params: str = "") -> list[str]:
    """Return the outline of a match block's pattern."""
    return outline(pattern(match, params))


def test_a_pattern_is_a_function_of_text_and_schema() -> None:
    match = "$b: Book $_ cites $b $b cites $b not { $b storedOn $_ }"

    assert pattern(match) == pattern(match)


# Step 1: bindings


def test_inline_matches_become_conditions() -> None:
    found = pattern('$b: Book { format: "paper", tags: $t }', "$t: String")

    values = ("audio", "ebook", "paper")
    tags_type = ValueType(Scalar.STRING, nullable=True, is_list=True)
    assert found.nodes == {"b": "Book"}
    assert found.conditions == (
        Comparison(
            PropertyValue("b", "format", ValueType(Scalar.STRING, enum_values=values)),
            Operator.EQ,
            LiteralValue("paper", TEXT),
        ),
        Comparison(PropertyValue("b", "tags", tags_type), Operator.CONTAINS, ParameterValue("t", TEXT)),
    )


def test_bindings_of_one_variable_are_merged() -> None:
    assert asked('$b: Book { format: "paper" } $a: Author $b: Book { pages: 3, code: "x" }') == [
        "from b Book",
        "from a Author",
        "where b.format eq 'paper'",
        "where b.pages eq 3",
        "where b.code eq 'x'",
    ]


# Step 2: roots


@pytest.mark.parametrize(
    ("match", "outlined"),
    [
        ("$b: Book", ["from b Book"]),
        ("$a: Author $s: Shelf $n: Note", ["from a Author", "from s Shelf", "from n Note"]),
        ("$b: Book $a: Author $a wrote $b", ["from b Book", "in Wrote b -> a Author"]),
        ("$a wrote $b $b: Book", ["from b Book", "in Wrote b -> a Author"]),
        ("$a wrote $b", ["from a Author", "out Wrote a -> b Book"]),
        ("$_ wrote $b", ["from b Book", "in Wrote b -> ~1 Author"]),
        ("$a wrote $_", ["from a Author", "out Wrote a -> ~1 Book"]),
        (
            "$b storedOn $s $a wrote $b",
            ["from b Book", "out StoredOn b -> s Shelf", "in Wrote b -> a Author"],
        ),
        (
            "$a wrote $b $c: Book $c storedOn $s $n: Note",
            [
                "from a Author",
                "from c Book",
                "from n Note",
                "out Wrote a -> b Book",
                "out StoredOn c -> s Shelf",
            ],
        ),
        (
            "$n: Note $a wrote $b $b: Book $s: Shelf $b storedOn $s",
            ["from n Note", "from b Book", "in Wrote b -> a Author", "out StoredOn b -> s Shelf"],
        ),
        (
            "$a wrote $b $c cites $d",
            ["from a Author", "from c Book", "out Wrote a -> b Book", "out Cites c -> d Book"],
        ),
        (
            "$a wrote $b $c cites $d $b cites $c",
            ["from a Author", "out Wrote a -> b Book", "out Cites b -> c Book", "out Cites c -> d Book"],
        ),
        ("$x cites $x", ["from x Book", "out Cites x -> x"]),
    ],
)
def test_every_group_of_connected_variables_has_one_root(match: str, outlined: list[str]) -> None:
    assert asked(match) == outlined


@pytest.mark.parametrize(
    ("match", "outlined"),
    [
        ("$_ wrote $_", ["not [not [from ~1 Author, out Wrote ~1 -> ~2 Book]]"]),
        ("$_ <cites> $_", ["not [not [from ~1 Book, both Cites ~1 -> ~2 Book]]"]),
        ("$s: Shelf $_ wrote $_", ["from s Shelf", "not [not [from ~1 Author, out Wrote ~1 -> ~2 Book]]"]),
        (
            "$_ cites $_ $_ cites $_",
            [
                "not [not [from ~1 Book, out Cites ~1 -> ~2 Book]]",
                "not [not [from ~3 Book, out Cites ~3 -> ~4 Book]]",
            ],
        ),
    ],
)
def test_a_traversal_of_two_anonymous_ends_is_a_question_with_a_root_of_its_own(
    match: str, outlined: list[str]
) -> None:
    assert asked(match) == outlined


def test_an_edge_variable_of_two_anonymous_ends_is_kept() -> None:
    assert asked("$_ $w:wrote $_") == ["from ~1 Author", "out w:Wrote ~1 -> ~2 Book"]


def test_an_edge_between_two_anonymous_ends_is_found_once_although_it_may_be_followed_both_ways() -> None:
    assert asked("$_ $w:<cites> $_") == ["from ~1 Book", "out w:Cites ~1 -> ~2 Book"]
    assert asked("$b: Book $b $w:<cites> $_") == ["from b Book", "both w:Cites b -> ~1 Book"]


# Step 3: traversals


@pytest.mark.parametrize(
    ("match", "outlined"),
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
def test_a_traversal_starts_at_its_known_end(match: str, outlined: str) -> None:
    assert asked(match)[1:] == [outlined]


@pytest.mark.parametrize(
    ("match", "outlined"),
    [
        ("$a: Author $a wrote $b $a wrote $b", ["out Wrote a -> b Book", "out Wrote a -> b"]),
        ("$a: Author $a wrote $b $b wrote $a", ["out Wrote a -> b Book", "in Wrote b -> a"]),
        (
            "$a: Book $a cites $b $b cites $c $c cites $a",
            ["out Cites a -> b Book", "out Cites b -> c Book", "out Cites c -> a"],
        ),
        ("$a: Book $a cites $b $a $w:cites $b", ["out Cites a -> b Book", "out w:Cites a -> b"]),
        ("$a: Book $a cites $b $a <cites>{1,3} $b", ["out Cites a -> b Book", "both Cites 1-3 a -> b"]),
        ("$a: Book $a cites $a $a cites $a", ["out Cites a -> a", "out Cites a -> a"]),
    ],
)
def test_a_traversal_between_known_ends_starts_left_and_introduces_nothing(
    match: str, outlined: list[str]
) -> None:
    assert asked(match)[1:] == outlined


def test_traversals_wait_until_an_end_is_known() -> None:
    assert asked("$a: Book $c cites $d $b cites $c $a cites $b") == [
        "from a Book",
        "out Cites a -> b Book",
        "out Cites b -> c Book",
        "out Cites c -> d Book",
    ]


@pytest.mark.parametrize("clause", ["$_ cites $x", "$x cites $_"])
def test_a_traversal_with_one_anonymous_end_waits_for_the_other(clause: str) -> None:
    first, *_, last = asked(f"$r: Book {clause} $r cites $x")

    assert first == "from r Book"
    assert last in {"in Cites x -> ~1 Book", "out Cites x -> ~1 Book"}


def test_traversals_with_a_known_end_are_taken_in_source_order() -> None:
    assert asked("$b: Book $b storedOn $s $c cites $d $a wrote $b $b cites $c $n about $b") == [
        "from b Book",
        "out StoredOn b -> s Shelf",
        "in Wrote b -> a Author",
        "out Cites b -> c Book",
        "in About b -> n Note",
        "out Cites c -> d Book",
    ]


def test_a_waiting_traversal_that_is_written_twice_is_asked_twice() -> None:
    assert sorted(asked("$r: Book $x cites $_ $r cites $x $x cites $_")) == sorted(
        ["from r Book", "out Cites r -> x Book", "out Cites x -> ~1 Book", "out Cites x -> ~2 Book"]
    )


def test_the_matches_of_a_reached_variable_are_conditions_on_it() -> None:
    found = pattern('$a: Author { handle: "x" } $b: Book { pages: 3 } $a wrote $b $b: Book { code: "y" }')

    assert found.nodes == {"a": "Author", "b": "Book"}
    assert [(f.left, f.operator) for f in found.conditions if isinstance(f, Comparison)] == [
        (PropertyValue("a", "handle", TEXT), Operator.EQ),
        (PropertyValue("b", "pages", ValueType(Scalar.I32, nullable=True)), Operator.EQ),
        (PropertyValue("b", "code", TEXT), Operator.EQ),
    ]


def test_matches_are_conditions_in_the_order_in_which_their_variables_become_known() -> None:
    assert asked(
        "$a: Author $c: Book { pages: 4 } $b: Book { pages: 3 } $a wrote $b $a wrote $b $b cites $c"
    ) == [
        "from a Author",
        "out Wrote a -> b Book",
        "out Wrote a -> b",
        "out Cites b -> c Book",
        "where b.pages eq 3",
        "where c.pages eq 4",
    ]


def test_an_edge_between_two_types_does_not_chain() -> None:
    (traversal,) = pattern("$a: Author $a wrote{1,5} $b").traversals

    assert (traversal.min_hops, traversal.max_hops) == (1, 1)


# Step 4: filters


def test_filters_are_conditions_behind_the_matches_in_source_order() -> None:
    match = (
        '$b: Book $b.pages > 3 search($b.title, "x") $a wrote $b $a.name = $n '
        'match_text($b.blurb, "y") = true $b.added <= now() $a: Author { name: "z" }'
    )

    assert asked(match, "$n: String") == [
        "from b Book",
        "in Wrote b -> a Author",
        "where a.name eq 'z'",
        "where b.pages gt 3",
        "where search b.title",
        "where a.name eq $n",
        "where match_text b.blurb",
        f"where b.added le ${NOW_PARAMETER}",
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
    (found,) = pattern(f"$b: Book {condition}").conditions

    assert isinstance(found, Comparison)
    assert found.operator == operator


def test_a_text_predicate_compared_with_true_is_the_predicate() -> None:
    bare, compared = (pattern(f'$b: Book fuzzy($b.title, "x", 1){end}').conditions for end in ("", " = true"))

    assert [type(condition) for condition in bare] == [TextMatchValue]
    assert compared == bare


# Step 5: negation


@pytest.mark.parametrize(
    ("block", "outlined"),
    [
        ("$b storedOn $_", "not b [out StoredOn b -> ~1 Shelf]"),
        ("$_ wrote $b", "not b [in Wrote b -> ~1 Author]"),
        ("$b cites $x $x.pages > 3", "not b [out Cites b -> x Book, where x.pages gt 3]"),
        ("$x: Book { pages: 3 } $b cites $x", "not b [out Cites b -> x Book, where x.pages eq 3]"),
        ("$x: Author $x.name = $b.title", "not b [from x Author, where x.name eq b.title]"),
        ("$b.pages > 3", "not b [where b.pages gt 3]"),
        ("$b: Book { pages: 3 }", "not b [where b.pages eq 3]"),
        ("$b cites $b", "not b [out Cites b -> b]"),
        ("$b $w:cites $x $w.page = 3", "not b [out w:Cites b -> x Book, where w.page eq 3]"),
        ("$_ wrote $_ $b.pages = 3", "not b [from ~1 Author, out Wrote ~1 -> ~2 Book, where b.pages eq 3]"),
        (
            "$b cites $x not { $x storedOn $s $s.slot = 1 }",
            "not b [out Cites b -> x Book, not x [out StoredOn x -> s Shelf, where s.slot eq 1]]",
        ),
        (
            "$b cites $x not { $x cites $b }",
            "not b [out Cites b -> x Book, not b x [out Cites x -> b]]",
        ),
    ],
)
def test_the_outer_variables_are_known_in_a_not_block(block: str, outlined: str) -> None:
    assert asked(f"$b: Book not {{ {block} }}") == ["from b Book", outlined]


def test_negations_stand_in_source_order() -> None:
    assert asked("$b: Book not { $b cites $x } $b.pages > 3 not { $b storedOn $s } $a wrote $b") == [
        "from b Book",
        "in Wrote b -> a Author",
        "where b.pages gt 3",
        "not b [out Cites b -> x Book]",
        "not b [out StoredOn b -> s Shelf]",
    ]


def test_a_negation_between_two_outer_variables_introduces_nothing() -> None:
    assert asked("$a: Author $b: Book not { $b wrote $a }") == [
        "from a Author",
        "from b Book",
        "not a b [in Wrote b -> a]",
    ]


@pytest.mark.parametrize(
    ("block", "on"),
    [
        ("$b storedOn $_", ["b"]),
        ("$_ about $b", ["b"]),
        ("$x cites $b", ["b"]),
        ("$b: Book { pages: 3 }", ["b"]),
        ("$x: Author $x.name = $a.name", ["a"]),
        ("$x: Author $b.title = $x.name", ["b"]),
        ('search($b.title, "x")', ["b"]),
        ('search($a.name, "x") = true $b cites $_', ["a", "b"]),
        ('$w.role = "main"', ["w"]),
        ("$x: Book $b cites $x $a wrote $x", ["a", "b"]),
        ("$x: Book $x.title = $b.title $a wrote $x", ["a", "b"]),
    ],
)
def test_a_negation_names_the_outer_variables_that_it_mentions(block: str, on: list[str]) -> None:
    (negation,) = pattern(f"$a $w:wrote $b not {{ {block} }}").negations

    assert list(negation.on) == on
