"""Runs of items within limits."""

from omnigraph.core.runs import runs


def test_a_run_ends_before_the_item_that_would_break_a_limit() -> None:
    assert list(runs([2, 2, 1, 3], (int, 5))) == [[2, 2, 1], [3]]


def test_every_limit_counts() -> None:
    assert list(runs(["a", "bb", "c"], (len, 9), (lambda _: 1, 2))) == [["a", "bb"], ["c"]]


def test_an_item_above_a_limit_is_a_run_of_its_own() -> None:
    assert list(runs([1, 9, 1], (int, 5))) == [[1], [9], [1]]


def test_without_items_there_is_no_run() -> None:
    assert not list(runs([], (int, 5)))
