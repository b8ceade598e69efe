"""YAML of people: places, and what is too much."""

import pytest

from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import SETTINGS_NODES_MAX
from omnigraph.core.yaml_text import key_line, parse_placed_yaml


def test_keys_know_their_lines_and_merged_ones_those_where_they_are_written() -> None:
    found = parse_placed_yaml("# notes\na: &a {p: 1,\n  r: 2}\nb:\n  <<: *a\n  q: [{s: 3}]\n", "it")

    assert found == {"a": {"p": 1, "r": 2}, "b": {"p": 1, "r": 2, "q": [{"s": 3}]}}
    assert isinstance(found, dict)
    assert [key_line(found, key) for key in ("a", "b", "c")] == [2, 4, None]
    assert [key_line(found["b"], key) for key in ("p", "r", "q")] == [2, 3, 6]
    assert key_line(found["b"]["q"][0], "s") == 6
    assert key_line({"plain": 1}, "plain") is None


@pytest.mark.case("surfaces", 763)
def test_values_are_counted_across_all_that_is_open() -> None:
    most = SETTINGS_NODES_MAX // 2

    with pytest.raises(BadRequest) as error:
        parse_placed_yaml(f"[{'1,' * most}[{'1,' * most}", "it")  # which is not even YAML

    assert str(error.value) == f"it: more than {SETTINGS_NODES_MAX} values, with aliases written out"


@pytest.mark.parametrize("text", ["!" * 100_000, "a: 1\n" + "x" * 100_000 + ": 1\n" + "x" * 100_000 + ": 2"])
def test_what_is_wrong_is_said_in_few_words(text: str) -> None:
    with pytest.raises(BadRequest) as error:
        parse_placed_yaml(text, "it")

    assert len(str(error.value)) < 300


def test_a_key_given_twice_is_refused_with_its_line() -> None:
    with pytest.raises(BadRequest, match=r"^it:2: found duplicate key"):
        parse_placed_yaml("a: 1\na: 2\n", "it")
