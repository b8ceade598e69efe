"""The colours of a query while it is typed: one style per token, by its kind."""

from collections.abc import Iterator

from omnigraph.cli.shell.candidates import KEYWORDS
from omnigraph.cli.shell.statement import COMMAND_MARK
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.span import Source
from omnigraph.language.parser import Token, tokenize

Fragment = tuple[str, str]  # a style, and the text that has it

_STYLES = {
    "type": "ansicyan",
    "variable": "ansiyellow",
    "string": "ansigreen",
    "integer": "ansimagenta",
    "decimal": "ansimagenta",
    "comment": "ansibrightblack",
    "unclosed": "ansigreen",
    "bad": "ansired",
}
_KEYWORD, _COMMAND = "bold ansiblue", "bold"


def highlighted(text: str) -> list[list[Fragment]]:
    """Return the fragments of each line; together they are the text."""
    lines: list[list[Fragment]] = [[]]
    for style, piece in _pieces(text):
        first, *others = piece.split("\n")
        lines[-1].append((style, first))
        lines += [[(style, other)] for other in others]
    return [[fragment for fragment in line if fragment[1]] for line in lines]


def _pieces(text: str) -> Iterator[Fragment]:
    if text.lstrip().startswith(COMMAND_MARK):
        command, blank, rest = text.partition(" ")
        yield _COMMAND, command
        yield "", blank + rest
        return
    end = 0
    for token in _tokens(text):
        yield "", text[end : token.start]
        # What is not closed goes on to the end of the text.
        stop = len(text) if token.kind == "unclosed" else token.end
        yield _style(token), text[token.start : stop]
        end = stop
    yield "", text[end:]


def _tokens(text: str) -> list[Token]:
    try:
        found = tokenize(Source(text))
    except OmnigraphError:  # half a character, or more text than a query may have
        return []
    return sorted((*found.tokens[:-1], *found.comments), key=lambda token: token.start)


def _style(token: Token) -> str:
    return _KEYWORD if token.kind == "name" and token.text in KEYWORDS else _STYLES.get(token.kind, "")
