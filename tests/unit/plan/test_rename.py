"""Variables of a not block that share their name with one outside."""

import pytest

from omnigraph.catalog.bound import Comparison, PropertyValue
from tests.support.queries import outline, pattern


@pytest.mark.parametrize("later", ["$x: Book", "$x: Author", "$a wrote $x", "$b cites $x"])
def test_a_variable_of_a_not_block_is_not_the_outer_one_that_is_bound_behind_it(later: str) -> None:
    """Names are resolved in source order: where the block stands, nothing outside is called `$x` yet."""
    (negation,) = pattern(f"$b: Book not {{ $b cites $x }} {later}").negations

    (traversal,) = negation.pattern.traversals
    assert traversal.right != "x"
    assert negation.on == ("b",)


def test_an_edge_variable_of_a_not_block_is_not_the_outer_one_that_is_bound_behind_it() -> None:
    (negation,) = pattern("$b: Book not { $b $x:cites $y $x.page = 3 } $x: Author").negations

    (traversal,) = negation.pattern.traversals
    assert traversal.edge_binding != "x"
    (condition,) = negation.pattern.conditions
    assert isinstance(condition, Comparison)
    assert isinstance(condition.left, PropertyValue)
    assert condition.left.variable == traversal.edge_binding


def test_every_use_of_such_a_variable_is_renamed() -> None:
    inside = (
        '$b cites $x search($x.title, "y") $x.pages > 3 $b.title contains $x.title $x: Book { pages: 5 } '
        "not { $x storedOn $s $s.slot = 1 }"
    )

    assert outline(pattern(f"$b: Book not {{ {inside} }} $x: Author $s: Shelf")) == [
        "from b Book",
        "from x Author",
        "from s Shelf",
        "not b [out Cites b -> ~1 Book, where ~1.pages eq 5, where search ~1.title, where ~1.pages gt 3, "
        "where b.title string_contains ~1.title, not ~1 [out StoredOn ~1 -> ~2 Shelf, where ~2.slot eq 1]]",
    ]


def test_the_matches_of_a_renamed_destination_are_about_it() -> None:
    (negation,) = pattern("$b: Book not { $b cites $x $x: Book { pages: 5 } } $x: Author").negations

    (traversal,) = negation.pattern.traversals
    (condition,) = negation.pattern.conditions
    assert isinstance(condition, Comparison)
    assert isinstance(condition.left, PropertyValue)
    assert condition.left.variable == traversal.right


def test_two_blocks_may_use_one_name_for_two_variables() -> None:
    assert outline(
        pattern("$b: Book not { $b cites $x } not { $a wrote $b $x: Note $x.body = $a.name }")
    ) == [
        "from b Book",
        "not b [out Cites b -> x Book]",
        "not b [from x Note, in Wrote b -> a Author, where x.body eq a.name]",
    ]


def test_an_outer_variable_that_stands_before_the_block_is_the_same_inside() -> None:
    assert outline(pattern("$x: Book $b: Book not { $b cites $x }")) == [
        "from x Book",
        "from b Book",
        "not b x [out Cites b -> x]",
    ]
