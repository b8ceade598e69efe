"""The offline provider."""

import math

import pytest

from omnigraph.embedding.mock import MockProvider, _fnv1a, _xorshift


def test_the_hash_and_the_generator_are_the_published_ones() -> None:
    assert _fnv1a(b"") == 0xCBF29CE484222325
    assert _fnv1a(b"a") == 0xAF63DC4C8601EC8C
    assert _fnv1a(b"foobar") == 0x85944171F73967E8
    assert _xorshift(1) == 0x40822041
    assert _xorshift(2**64 - 1) < 2**64


def test_a_text_has_one_vector_of_length_one() -> None:
    provider = MockProvider("m")

    first, second, other = provider.embed(["rivers", "rivers", "glass"], "query", 8)

    assert first == second == provider.embed(["rivers"], "document", 8)[0]
    assert first != other
    assert math.hypot(*first) == pytest.approx(1.0)
    assert all(-1.0 <= item <= 1.0 for item in first)


def test_the_first_components_do_not_depend_on_how_many_there_are() -> None:
    short, long = (MockProvider("").embed(["rivers"], "query", size)[0] for size in (2, 5))

    assert short[0] / short[1] == pytest.approx(long[0] / long[1])


@pytest.mark.parametrize("text", ["", "ж", "\N{GRINNING FACE}", "a" * 10_000])
def test_every_text_has_a_vector(text: str) -> None:
    [vector] = MockProvider("").embed([text], "query", 3)

    assert math.hypot(*vector) == pytest.approx(1.0)
