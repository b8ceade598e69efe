"""What is typed at the prompt, and whether it is complete: a statement may go on over several lines.

I1  A text that can only be wrong at its end goes on. One that is wrong before it is complete: it is run, and
    the error shown. An empty line ends any text.
I2  A statement without a head (`match …`, `insert …`) is the body of a query of a fixed name; nothing of the
    text is changed, and it begins on a line of its own, which errors count as the first.
"""

from dataclasses import dataclass

from omnigraph.core.source_errors import ParseError
from omnigraph.core.span import Source
from omnigraph.language.parser import tokenize
from omnigraph.language.query_ast import Query
from omnigraph.language.query_parser import parse_queries

COMMAND_MARK = "\\"
BARE_NAME = "typed"
_HEAD = f"query {BARE_NAME}() {{\n"
_TAIL = "\n}"
_BODY_WORDS = frozenset({"match", "insert", "update", "delete"})
_OPEN, _CLOSE = frozenset("{(["), frozenset("})]")


@dataclass(frozen=True, slots=True)
class Declared:
    """Query declarations as typed, or the one that a bare statement stands for."""

    source: Source
    queries: tuple[Query, ...]


def is_complete(text: str) -> bool:
    """Say whether Enter runs a text, or begins another line (I1)."""
    stripped = text.strip()
    if not stripped or stripped.startswith(COMMAND_MARK):
        return True
    if text.endswith("\n") and not text.rsplit("\n", 2)[-2].strip():
        return True
    try:
        return _is_closed(text) and _is_whole(text)
    except ParseError:  # half a character, or more text than a query may have: no further line mends it
        return True


def _is_closed(text: str) -> bool:
    """Say whether every quote, comment and bracket is closed."""
    tokens = tokenize(Source(text)).tokens
    if any(token.kind == "unclosed" for token in tokens):
        return False
    return sum((token.text in _OPEN) - (token.text in _CLOSE) for token in tokens) <= 0


def _is_whole(text: str) -> bool:
    """Say whether a text parses, or fails before its end."""
    if is_call(text):
        return True
    try:
        declared(text)
    except ParseError as error:
        span = error.diagnostics[0].span
        return span is None or span.start < _end_of(text)
    return True


def is_call(text: str) -> bool:
    """Say whether a text calls a declaration by name: `name`, or `name {"parameter": value}`."""
    first, *others = tokenize(Source(text)).tokens
    is_name = first.kind == "name" and first.text not in _BODY_WORDS | {"query"}
    return is_name and (others[0].kind == "end" or others[0].text == "{")


def declared(text: str) -> Declared:
    """Parse what is typed (I2).

    Raises:
        ParseError: it is not a query.
    """
    is_bare = _is_bare(text)
    source = Source(_HEAD + text + _TAIL, first_line=1 - _HEAD.count("\n")) if is_bare else Source(text)
    return Declared(source, parse_queries(source).queries)


def _is_bare(text: str) -> bool:
    return tokenize(Source(text)).tokens[0].text in _BODY_WORDS


def _end_of(text: str) -> int:
    """Return the place behind the last token, in the text that is parsed."""
    last = tokenize(Source(text)).tokens[-2:-1]
    end = last[0].end if last else 0
    return end + (len(_HEAD) if _is_bare(text) else 0)
