"""Places in a text: lines, columns, bytes and the excerpt that is shown."""

import pytest

from omnigraph.core.limits import DIAGNOSTIC_EXCERPT_MAX
from omnigraph.core.span import Excerpt, Source, Span


@pytest.mark.parametrize(
    ("offset", "position"),
    [(0, (1, 1)), (1, (1, 2)), (2, (1, 3)), (3, (2, 1)), (4, (3, 1)), (6, (3, 3))],
)
def test_a_position_counts_lines_and_columns_from_one(offset: int, position: tuple[int, int]) -> None:
    assert Source("ab\n\ncd").position(offset) == position


def test_a_carriage_return_belongs_to_its_line() -> None:
    assert Source("a\r\nb").position(3) == (2, 1)


def test_a_span_reaches_to_the_end_of_another() -> None:
    assert Span(2, 4).to(Span(7, 9)) == Span(2, 9)


@pytest.mark.parametrize(
    ("text", "span", "expected"),
    [
        ("abc", Span(1, 2), (1, 2)),
        ("éabc", Span(1, 2), (2, 3)),
        ("aéb", Span(1, 2), (1, 3)),
        ("日本x", Span(2, 3), (6, 7)),
        ("😀x", Span(0, 1), (0, 4)),
        ("😀x", Span(1, 2), (4, 5)),
    ],
)
def test_a_byte_span_counts_utf8(text: str, span: Span, expected: tuple[int, int]) -> None:
    assert Source(text).byte_span(span) == expected


@pytest.mark.parametrize(
    ("text", "offset", "expected"), [("", 0, (0, 1)), ("ab", 2, (2, 3)), ("é", 1, (2, 3))]
)
def test_a_byte_span_without_width_is_widened_to_one_byte(
    text: str, offset: int, expected: tuple[int, int]
) -> None:
    assert Source(text).byte_span(Span(offset, offset)) == expected


def test_an_excerpt_is_the_line_where_the_span_starts() -> None:
    source = Source("one\ntwo three\nfour")

    assert source.excerpt(Span(8, 13)) == Excerpt(2, 5, "two three", 4, 5)


def test_an_excerpt_of_several_lines_ends_with_its_first() -> None:
    source = Source("ab cd\nef")

    assert source.excerpt(Span(3, 8)) == Excerpt(1, 4, "ab cd", 3, 2)


def test_an_excerpt_at_the_end_of_the_text_has_a_caret_of_one() -> None:
    assert Source("node N").excerpt(Span(6, 6)) == Excerpt(1, 7, "node N", 6, 1)
    assert Source("node N\n").excerpt(Span(7, 7)) == Excerpt(2, 1, "", 0, 1)


def test_a_tab_takes_one_column_of_an_excerpt() -> None:
    excerpt = Source("\ta\tb").excerpt(Span(3, 4))

    assert excerpt == Excerpt(1, 4, " a b", 3, 1)


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\u200b", "\u202e", "\ufeff", "\r"])
def test_an_invisible_character_is_shown_as_one_space(character: str) -> None:
    excerpt = Source(f"a{character}b").excerpt(Span(2, 3))

    assert excerpt == Excerpt(1, 3, "a b", 2, 1)


def test_a_long_line_is_cut_to_a_window_around_the_span() -> None:
    text = "x" * 1_000 + "HERE" + "y" * 1_000

    excerpt = Source(text).excerpt(Span(1_000, 1_004))

    assert len(excerpt.text) == DIAGNOSTIC_EXCERPT_MAX
    assert excerpt.column == 1_001
    assert excerpt.text[excerpt.caret : excerpt.caret + excerpt.width] == "HERE"


def test_the_caret_of_a_long_span_ends_with_the_window() -> None:
    excerpt = Source("x" * 1_000).excerpt(Span(0, 1_000))

    assert excerpt.caret + excerpt.width == len(excerpt.text) == DIAGNOSTIC_EXCERPT_MAX
