"""Variables of a not block that share their name with one outside."""

import pytest

from omnigraph.catalog.bound import Comparison, PropertyValue
from omnigraph.plan.logical import AntiJoin, Expand, Filter
from tests.support.queries import outline, pipeline


@pytest.mark.parametrize("later", ["$x: Book", "$x: Author", "$a wrote $x", "$b cites $x"])
def test_a_variable_of_a_not_block_is_not_the_outer_one_that_is_bound_behind_it(later: str) -> None:
    """Names are resolved in source order: where the block stands, nothing outside is called `$x` yet."""
    *_, anti_join = pipeline(f"$b: Book not {{ $b cites $x }} {later}")

    assert isinstance(anti_join, AntiJoin)
    (expand,) = anti_join.inner
    assert isinstance(expand, Expand)
    assert expand.dst_var != "x"


def test_an_edge_variable_of_a_not_block_is_not_the_outer_one_that_is_bound_behind_it() -> None:
    *_, anti_join = pipeline("$b: Book not { $b $x:cites $y $x.page = 3 } $x: Author")

    assert isinstance(anti_join, AntiJoin)
    expand, condition = anti_join.inner
    assert isinstance(expand, Expand)
    assert expand.edge_binding != "x"
    assert isinstance(condition, Filter)
    assert isinstance(condition.condition, Comparison)
    assert isinstance(condition.condition.left, PropertyValue)
    assert condition.condition.left.variable == expand.edge_binding


def test_every_use_of_such_a_variable_is_renamed() -> None:
    inside = (
        '$b cites $x search($x.title, "y") $x.pages > 3 $b.title contains $x.title $x: Book { pages: 5 } '
        "not { $x storedOn $s $s.slot = 1 }"
    )

    assert outline(pipeline(f"$b: Book not {{ {inside} }} $x: Author $s: Shelf")) == [
        "scan b Book",
        "scan x Author",
        "scan s Shelf",
        "not b [out Cites b -> ~1 Book +1, filter search ~1.title, filter ~1.pages gt 3, "
        "filter b.title string_contains ~1.title, not ~1 [out StoredOn ~1 -> ~2 Shelf, filter ~2.slot eq 1]]",
    ]


def test_the_filters_of_a_renamed_destination_are_about_it() -> None:
    *_, anti_join = pipeline("$b: Book not { $b cites $x $x: Book { pages: 5 } } $x: Author")

    assert isinstance(anti_join, AntiJoin)
    (expand,) = anti_join.inner
    assert isinstance(expand, Expand)
    (condition,) = expand.dst_filters
    assert isinstance(condition, Comparison)
    assert isinstance(condition.left, PropertyValue)
    assert condition.left.variable == expand.dst_var


def test_two_blocks_may_use_one_name_for_two_variables() -> None:
    assert outline(
        pipeline("$b: Book not { $b cites $x } not { $a wrote $b $x: Note $x.body = $a.name }")
    ) == [
        "scan b Book",
        "not b [out Cites b -> x Book]",
        "not b [scan x Note, in Wrote b -> a Author, filter x.body eq a.name]",
    ]


def test_an_outer_variable_that_stands_before_the_block_is_the_same_inside() -> None:
    assert outline(pipeline("$x: Book $b: Book not { $b cites $x }")) == [
        "scan x Book",
        "scan b Book",
        "not b [out Cites b -> ~1 Book, filter ~1.id eq x.id]",
    ]
