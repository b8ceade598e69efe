"""The promises of the formatter (F1 to F5), checked on one text."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from omnigraph.core.span import Source
from omnigraph.language.format import format_queries, format_schema
from omnigraph.language.parser import Token, tokenize
from omnigraph.language.query_parser import parse_queries
from omnigraph.language.schema_parser import parse_schema


@dataclass(frozen=True, slots=True)
class Language:
    """One of the two languages, as the checks need it."""

    parse: Callable[[Source], object]
    format: Callable[[Source], str]


SCHEMA = Language(parse_schema, format_schema)
QUERY = Language(parse_queries, format_queries)


def check_promises(language: Language, text: str) -> str:
    """Return the formatted text after checking all promises on it."""
    formatted = language.format(Source(text))

    assert language.parse(Source(formatted)) == language.parse(Source(text)), "F1"
    assert language.format(Source(formatted)) == formatted, "F2"
    _check_comments(_Read.of(text), _Read.of(formatted))
    assert [t.text for t in _Read.of(text).tokens] == [t.text for t in _Read.of(formatted).tokens], "F4"
    _check_white_space(formatted)
    return formatted


@dataclass(frozen=True, slots=True)
class _Read:
    """A text as tokens without commas and the end, and its comments.

    `places` counts the tokens before each comment. A trailing one shares its line with what is before it.
    """

    text: str
    tokens: list[Token]
    comments: list[Token]
    places: list[int]
    are_trailing: list[bool]

    @classmethod
    def of(cls, text: str) -> "_Read":
        read = tokenize(Source(text))
        tokens = [token for token in read.tokens[:-1] if token.text != ","]
        places = [sum(token.start < comment.start for token in tokens) for comment in read.comments]
        are_trailing: list[bool] = []
        for index, comment in enumerate(read.comments):
            ends = [token.end for token in tokens[: places[index]]] + [c.end for c in read.comments[:index]]
            are_trailing.append(bool(ends) and "\n" not in text[max(ends, default=0) : comment.start])
        return cls(text, tokens, list(read.comments), places, are_trailing)

    def is_one_line(self, first: int, last: int) -> bool:
        """Return whether tokens stand on one line, but for line breaks in strings."""
        tokens = self.tokens[first : last + 1]
        return all("\n" not in self.text[a.end : b.start] for a, b in pairwise(tokens))


def _check_comments(before: _Read, after: _Read) -> None:
    assert [_words(c) for c in before.comments] == [_words(c) for c in after.comments], "F3: lost or changed"
    for index, comment in enumerate(before.comments):
        old, new = before.places[index], after.places[index]
        if old == new:
            stays = before.are_trailing[index] == after.are_trailing[index]
        else:
            stays = new < old and not after.are_trailing[index] and after.is_one_line(new, old)
        assert stays, f"F3: {comment.text!r} left its item"


def _words(comment: Token) -> list[str]:
    return [line.rstrip() for line in comment.text.split("\n")]


def _check_white_space(formatted: str) -> None:
    tokens = tokenize(Source(formatted))
    pieces = sorted([*tokens.tokens, *tokens.comments], key=lambda token: token.start)
    end, visible = 0, ""
    for piece in pieces:
        gap = formatted[end : piece.start]
        assert set(gap) <= {" ", "\n"}, "F5: white space"
        assert "\n\n\n" not in gap, "more than one blank line"
        visible += gap + ('""' if piece.kind == "string" else piece.text)
        end = piece.end
    assert not re.search(r"[ \t\r](\n|\Z)", visible), "F5: white space at the end of a line"
    assert formatted == "" or (formatted[-1] == "\n" and formatted[-2:] != "\n\n" and formatted[0] != "\n"), (
        "F5"
    )
