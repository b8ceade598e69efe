"""Values of which the one that was not used for longest goes first."""

import pytest

from omnigraph.core.recent import Recent


def test_what_was_not_used_for_longest_goes() -> None:
    recent: Recent[str, int] = Recent(2)
    recent.put("a", 1)
    recent.put("b", 2)

    assert recent.get("a") == 1
    recent.put("c", 3)

    assert (recent.get("a"), recent.get("b"), recent.get("c")) == (1, None, 3)


def test_the_first_value_of_a_key_is_kept_and_a_later_one_put_in_its_place() -> None:
    recent: Recent[str, str] = Recent(2)

    assert recent.keep("a", "first") == "first"
    assert recent.keep("a", "second") == "first"
    recent.put("a", "third")

    assert recent.values() == ["third"]


def test_keeping_a_value_again_counts_as_use() -> None:
    recent: Recent[str, int] = Recent(2)
    for key in ("a", "b", "a", "c"):
        recent.keep(key, 0)

    assert recent.get("b") is None
    assert recent.get("a") == 0


def test_a_weight_is_kept_below_the_limit_and_what_is_above_it_alone_is_not_kept() -> None:
    recent: Recent[str, str] = Recent(5, weigh=len)
    recent.put("a", "xx")
    recent.put("b", "yyy")
    assert recent.values() == ["xx", "yyy"]

    recent.put("a", "x")
    recent.put("c", "z")
    assert recent.values() == ["yyy", "x", "z"]

    recent.put("d", "uuuuuu")
    assert recent.values() == []
    recent.put("e", "vvvvv")
    assert recent.values() == ["vvvvv"]


def test_what_is_made_is_made_once_and_an_error_is_not_remembered() -> None:
    recent: Recent[str, int] = Recent(2)
    made: list[int] = []

    def make() -> int:
        made.append(1)
        if len(made) == 1:
            raise ValueError("not yet")
        return 7

    with pytest.raises(ValueError, match="not yet"):
        recent.made("a", make)

    assert [recent.made("a", make) for _ in range(3)] == [7, 7, 7]
    assert len(made) == 2


def test_a_value_made_meanwhile_by_somebody_else_is_used_by_both() -> None:
    recent: Recent[str, str] = Recent(2)

    def make() -> str:
        recent.put("a", "theirs")
        return "ours"

    assert recent.made("a", make) == "theirs"


def test_what_is_gone_is_forgotten() -> None:
    recent: Recent[str, str] = Recent(4, weigh=len)
    for key in ("a", "ab", "b"):
        recent.put(key, "x")

    recent.forget(lambda key: key.startswith("a"))
    assert recent.values() == ["x"]

    recent.put("c", "yyy")
    assert recent.values() == ["x", "yyy"]
    recent.clear()
    assert recent.values() == []
