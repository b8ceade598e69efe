"""Text to tokens, shared by both languages.

X1  Lexing ends for every text, in time linear in its length: the pattern never gives back what it matched.
X2  Nothing is an error here. A character that starts no token, or a quote or comment that never closes,
    becomes a token of kind `bad` or `unclosed`, and the parser says what it expected in its place.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from omnigraph.core.clock import LOOK_EVERY, look_at_deadline
from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import ParseError
from omnigraph.core.limits import SOURCE_BYTES_MAX
from omnigraph.core.span import Source, Span


class Token(NamedTuple):
    """A piece of text with its place.

    Kinds: `name` (starts lower case or with `_`), `type` (starts upper case), `variable`, `integer`,
    `decimal`, `string`, `mark` (punctuation), `bad`, `unclosed`, `end`.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """The token's place."""
        return Span(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a source, the last of kind `end`, and, separately, its comments."""

    source: Source
    tokens: tuple[Token, ...]
    comments: tuple[Token, ...]


_PATTERN = re.compile(
    r"""[ \t\r\n]*+(?:
      (?P<name>     [a-z_][A-Za-z0-9_]*+ )
    | (?P<mark>     -> | \.\. | [<>!]= | [][{}():,@=<>.?*-] )
    | (?P<variable> \$[a-z_][A-Za-z0-9_]*+ )
    | (?P<type>     [A-Z][A-Za-z0-9_]*+ )
    | (?P<string>   "[^"\\]*+(?:\\.[^"\\]*+)*+" )
    | (?P<decimal>  [0-9]++\.[0-9]++ )
    | (?P<integer>  [0-9]++ )
    | (?P<comment>  //[^\n]*+ | /\*.*?\*/ )
    | (?P<unclosed> " | /\* )
    | (?P<end>      \Z )
    | (?P<bad>      . )
    )""",
    re.VERBOSE | re.DOTALL,
)


def tokenize(source: Source) -> Tokens:
    """Return the tokens of a source.

    Raises:
        ParseError: the source is larger than `SOURCE_BYTES_MAX`, or holds half of a surrogate pair.
    """
    text = source.text
    _refuse_large(_utf8_size(source), source)
    tokens: list[Token] = []
    comments: list[Token] = []
    for match in _PATTERN.finditer(text):
        kind = match.lastgroup
        assert kind is not None, "the last alternative matches everything"
        start, end = match.span(kind)
        if kind == "comment":
            comments.append(Token(kind, text[start:end], start, end))
            continue
        tokens.append(Token(kind, text[start:end], start, end))
        if len(tokens) % LOOK_EVERY == 0:
            look_at_deadline()
        if kind in {"end", "unclosed"}:
            break
    if tokens[-1].kind != "end":
        tokens.append(Token("end", "", len(text), len(text)))
    return Tokens(source, tuple(tokens), tuple(comments))


def decode_source(data: bytes, path: str | None = None) -> Source:
    """Return the text of a file.

    Raises:
        ParseError: the bytes are not UTF-8, or too many.
    """
    _refuse_large(len(data), Source("", path))
    try:
        return Source(data.decode(), path)
    except UnicodeDecodeError as error:
        shown = Source(data.decode(errors="replace"), path)
        offset = len(data[: error.start].decode(errors="replace"))
        message = f"invalid UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise ParseError(
            [Diagnostic(message, Span(offset, offset + 1), "save the file as UTF-8")], shown
        ) from None


def _refuse_large(size: int, source: Source) -> None:
    if size > SOURCE_BYTES_MAX:
        message = f"the source has {size} bytes, more than the limit of {SOURCE_BYTES_MAX}"
        raise ParseError([Diagnostic(message, Span(0, 1))], source)


def _utf8_size(source: Source) -> int:
    """Return the size of a text in bytes; one without a UTF-8 form only comes from a caller with strings."""
    if source.text.isascii():
        return len(source.text)
    try:
        return len(source.text.encode())
    except UnicodeEncodeError as error:
        message = f"the character {source.text[error.start]!a} has no UTF-8 form"
        raise ParseError([Diagnostic(message, Span(error.start, error.start + 1))], source) from None
