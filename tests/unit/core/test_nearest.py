"""Hints at the name that was meant."""

from omnigraph.core.nearest import LENGTH_MAX, hinting


def test_a_name_that_is_too_long_to_be_meant_is_compared_with_none() -> None:
    """A body may be one name of 32 MiB."""
    known = iter(["Craft"])

    assert hinting("Craf" + "t" * LENGTH_MAX, known) == ""
    assert list(known) == ["Craft"]
    assert hinting("Carft", ["Craft"]) == "; did you mean 'Craft'?"
