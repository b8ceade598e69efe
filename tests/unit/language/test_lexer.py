"""Text to tokens, and what is refused before any token is read."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.core.limits import SOURCE_BYTES_MAX
from omnigraph.core.source_errors import ParseError
from omnigraph.core.span import Source
from omnigraph.language.parser import Token, decode_source, tokenize
from tests.support.library import compile_item, parse_failure, pointed_at, wrap


def kinds(text: str) -> list[tuple[str, str]]:
    """Return kind and text of every token but the last."""
    tokens = tokenize(Source(text)).tokens
    assert tokens[-1] == Token("end", "", len(text), len(text))
    return [(token.kind, token.text) for token in tokens[:-1]]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("title", "name"),
        ("_x9", "name"),
        ("camelCase", "name"),
        ("Book", "type"),
        ("I32", "type"),
        ("A_b9", "type"),
        ("$x", "variable"),
        ("$_x1", "variable"),
        ("123", "integer"),
        ("007", "integer"),
        ("1.5", "decimal"),
        ('""', "string"),
        ('"a\nb"', "string"),
        (r'"a\"b"', "string"),
        (r'"\\"', "string"),
        ("->", "mark"),
        ("..", "mark"),
        (">=", "mark"),
        ("!=", "mark"),
        ("@", "mark"),
        ("-", "mark"),
        ("#", "bad"),
        ("!", "bad"),
        ("$", "bad"),
        ("é", "bad"),
        ("\N{ZERO WIDTH NO-BREAK SPACE}", "bad"),
        ("\N{NO-BREAK SPACE}", "bad"),
        ("\x0b", "bad"),
    ],
)
def test_a_text_is_one_token_of_its_kind(text: str, kind: str) -> None:
    assert kinds(text) == [(kind, text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0..1", ["0", "..", "1"]),
        ("0.5..1.5", ["0.5", "..", "1.5"]),
        ("1...5", ["1", "..", ".", "5"]),
        (".5", [".", "5"]),
        ("1.", ["1", "."]),
        ("-1", ["-", "1"]),
        ("a->b", ["a", "->", "b"]),
        ("1e3", ["1", "e3"]),
        ("nodeBook", ["nodeBook"]),
        ("$Book", ["$", "Book"]),
        ("naïve", ["na", "ï", "ve"]),
    ],
)
def test_neighbours_are_told_apart(text: str, expected: list[str]) -> None:
    assert [found for _, found in kinds(text)] == expected


def test_white_space_is_skipped_and_comments_are_kept_apart() -> None:
    text = "a // one\n\t/* two */\r\nb/**/c"

    tokens = tokenize(Source(text))

    assert [token.text for token in tokens.tokens] == ["a", "b", "c", ""]
    assert [token.text for token in tokens.comments] == ["// one", "/* two */", "/**/"]
    assert all(text[token.start : token.end] == token.text for token in tokens.tokens + tokens.comments)


def test_a_block_comment_is_not_nested() -> None:
    assert [text for _, text in kinds("/* a /* b */ c */")] == ["c", "*", "/"]


def test_comment_marks_inside_a_string_are_text() -> None:
    assert kinds('"// a /* b"') == [("string", '"// a /* b"')]


@pytest.mark.parametrize("text", ['a "b', "a /* b", r'a "b\"'])
def test_what_is_never_closed_ends_the_tokens(text: str) -> None:
    (_, first), (kind, mark) = kinds(text)

    assert (first, kind) == ("a", "unclosed")
    assert mark in {'"', "/*"}


@given(st.text(max_size=200))
def test_every_text_has_tokens_in_order_that_cover_what_is_not_space(text: str) -> None:
    tokens = tokenize(Source(text))

    pieces = sorted(tokens.tokens + tokens.comments, key=lambda token: (token.start, token.end))
    assert all(one.end <= other.start for one, other in pairwise(pieces))
    if all(token.kind != "unclosed" for token in pieces):
        assert "".join(token.text for token in pieces) == "".join(
            character
            for position, character in enumerate(text)
            if character not in " \t\r\n" or any(t.start <= position < t.end for t in pieces)
        )


# Refusals (S37 to S39)


def test_a_byte_order_mark_is_refused_with_the_advice_to_save_without_it() -> None:
    error = parse_failure("\N{ZERO WIDTH NO-BREAK SPACE}node N {}")

    assert error.span == (0, 3)
    assert "without a byte order mark" in (error.diagnostics[0].help or "")


def test_bytes_that_are_no_utf8_are_refused_at_the_first_of_them() -> None:
    with pytest.raises(ParseError, match="UTF-8") as caught:
        decode_source("// é\nnode N".encode() + b"\xff\xfe {}", "a.pg")

    assert caught.value.span is not None
    assert caught.value.span[0] == len("// é\nnode N".encode())
    assert caught.value.position == (2, 7)
    assert caught.value.source.path == "a.pg"


def test_bytes_that_are_utf8_are_the_text() -> None:
    assert decode_source("node É".encode(), "a.pg") == Source("node É", "a.pg")


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ParseError, match="UTF-8") as caught:
        tokenize(Source("ab \ud800"))

    assert caught.value.position == (1, 4)


@pytest.mark.parametrize("character", [" ", "é", "日"])
def test_a_source_above_the_limit_is_refused_however_its_bytes_are_spread(character: str) -> None:
    width = len(character.encode())
    text = "//" + character * ((SOURCE_BYTES_MAX - 2) // width)

    fits = tokenize(Source(text))
    with pytest.raises(ParseError, match=str(SOURCE_BYTES_MAX)):
        tokenize(Source(text + character))
    with pytest.raises(ParseError, match=str(SOURCE_BYTES_MAX)):
        decode_source((text + character).encode())

    assert fits.tokens[-1].kind == "end"


@pytest.mark.parametrize("number", ["1e3", "3abc", "1_000", "1.5e3", "2E5", "0x10"])
def test_a_number_glued_to_a_word_is_one_error_that_speaks_of_exponents(number: str) -> None:
    error = parse_failure(wrap(f"n: F64  @range(n, 0..{number})"))

    assert pointed_at(error) == number
    assert len(error.diagnostics) == 1
    assert "exponent" in f"{error.diagnostics[0].message} {error.diagnostics[0].help}"


@pytest.mark.parametrize("item", ["n: I32  @range(n, 0..{})", "v: Vector({})", "n: I32 @vendor({})"])
def test_a_number_of_absurd_length_is_refused_with_a_reason(item: str) -> None:
    error = parse_failure(wrap(item.format("9" * 401)))

    assert "None" not in str(error)
    assert len(str(error)) < 200


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("2nd, 3abc, 1e3", ("1e3", "2nd", "3abc")),
        ("-, a-, -a, a--b", ("-", "-a", "a-", "a--b")),
        ("node, enum, true, String", ("String", "enum", "node", "true")),
        ("a/* c */,b // d\n", ("a", "b")),
    ],
)
def test_an_enum_value_is_letters_digits_hyphens_and_underscores(
    written: str, values: tuple[str, ...]
) -> None:
    type_ = compile_item(f"x: enum({written})").nodes["N"].properties["x"].type

    assert type_.enum_values == values


@pytest.mark.parametrize("written", ["a b", "a- b", "1.5", "a->b", "$a", "é", '"a"', "a.b", "a,"])
def test_nothing_else_is_an_enum_value(written: str) -> None:
    parse_failure(wrap(f"x: enum({written})"))
