"""Text to tokens, the cursor that both parsers move over them, and how they recover from an error.

A rule that meets something else raises `SyntaxFailure`. A caller that can continue after the damage catches
it, keeps its diagnostic and skips to where a new item starts; at the end all diagnostics are raised together.

X1  Lexing ends for every text, in time linear in its length: the pattern never gives back what it matched.
X2  Nothing is an error here. A character that starts no token, or a quote or comment that never closes,
    becomes a token of kind `bad` or `unclosed`, and the parser says what it expected in its place.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from omnigraph.core.clock import LOOK_EVERY, look_at_deadline
from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.limits import DIAGNOSTICS_MAX, NESTING_MAX, NUMBER_DIGITS_MAX, SOURCE_BYTES_MAX
from omnigraph.core.source_errors import ParseError
from omnigraph.core.span import Source, Span
from omnigraph.language.tree import Name

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
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_CHARACTER_HELP = {
    "#": "comments start with //",
    "\N{ZERO WIDTH NO-BREAK SPACE}": "save the file as UTF-8 without a byte order mark",
    "'": "strings are written in double quotes",
    ";": "no separator is needed here",
}
_FOUND_MAX = 40  # characters of an unexpected token that a message quotes


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


class SyntaxFailure(Exception):
    """One syntax error on its way to a caller that can continue after it."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        """Take the diagnostic to report."""
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class TokenCursor:
    """A place among tokens; `token` is the next one.

    A word or mark is recognised by its text alone: strings keep their quotes and variables their `$`.
    """

    def __init__(self, tokens: Tokens) -> None:
        """Start before the first token."""
        self.source = tokens.source
        self.tokens = tokens.tokens
        self.index = 0
        self.token = self.tokens[0]
        self.diagnostics: list[Diagnostic] = []
        self._depth = 0

    # Looking

    def at(self, text: str) -> bool:
        """Return whether the next token is this word or mark."""
        return self.token.text == text

    def ahead(self, count: int = 1) -> Token:
        """Return the token `count` places after the next one."""
        return self.tokens[min(self.index + count, len(self.tokens) - 1)]

    @property
    def is_first_on_line(self) -> bool:
        """Whether the next token is the first on its line."""
        before = self.tokens[self.index - 1].end if self.index else 0
        return self.index == 0 or "\n" in self.source.text[before : self.token.start]

    def since(self, start: Token) -> Span:
        """Return the span from a token to the last one taken."""
        return Span(start.start, self.tokens[self.index - 1].end)

    # Taking

    def take(self) -> Token:
        """Return the next token and step past it."""
        token = self.token
        if self.index < len(self.tokens) - 1:
            self.index += 1
            self.token = self.tokens[self.index]
            if self.index % LOOK_EVERY == 0:
                look_at_deadline()
        return token

    def accept(self, text: str) -> bool:
        """Step past this word or mark if it is next."""
        if self.token.text == text:
            self.take()
            return True
        return False

    def expect(self, text: str, *, help: str | None = None) -> Token:
        """Take this word or mark, or fail."""
        if self.token.text != text:
            raise self.unexpected(f"'{text}'", help=help)
        return self.take()

    def expect_kind(self, kind: str, what: str, *, help: str | None = None) -> Token:
        """Take a token of a kind, or fail saying what was expected."""
        if self.token.kind != kind:
            raise self.unexpected(what, help=help)
        return self.take()

    def name(self, what: str) -> Name:
        """Take a name that starts lower case."""
        help = "names of properties, parameters and aliases start with a lower-case letter or _"
        token = self.expect_kind("name", what, help=help if self.token.kind == "type" else None)
        return Name(token.text, token.span)

    def type_name(self, what: str) -> Name:
        """Take a name that starts upper case."""
        help = "names of types start with an upper-case letter"
        token = self.expect_kind("type", what, help=help if self.token.kind == "name" else None)
        return Name(token.text, token.span)

    def integer(self, what: str, *, maximum: int | None = None) -> int:
        """Take an unsigned integer, refusing one above a maximum."""
        token = self.expect_kind("integer", what)
        self.refuse_glued_word(token)
        if len(token.text) > NUMBER_DIGITS_MAX:
            raise self.failure(
                f"{what} {clip(token.text)} has more than {NUMBER_DIGITS_MAX} digits", token.span
            )
        value = int(token.text)
        if maximum is not None and value > maximum:
            raise self.failure(f"{what} {clip(token.text)} is larger than {maximum}", token.span)
        return value

    def decimal(self) -> float:
        """Take a decimal number."""
        token = self.expect_kind("decimal", "a decimal number")
        self.refuse_glued_word(token)
        value = float(token.text)
        if value == float("inf"):
            raise self.failure(f"the number {clip(token.text)} is too large", token.span)
        return value

    def string(self, what: str) -> tuple[str, Span]:
        """Take a string and return its decoded text."""
        token = self.expect_kind("string", what)
        return self._decode(token), token.span

    def refuse_glued_word(self, token: Token) -> None:
        """Fail if a letter or `_` directly follows a number."""
        following = self.token
        if following.start == token.end and following.kind in {"name", "type"}:
            glued = Span(token.start, following.end)
            message = f"'{clip(self.source.text[glued.start : glued.end])}' is not a number"
            help = "numbers have no exponent, suffix or digit separator; a text is written in quotes"
            raise self.failure(message, glued, help=help)

    # Failing

    def failure(self, message: str, span: Span, *, help: str | None = None) -> SyntaxFailure:
        """Return an error at a place."""
        return SyntaxFailure(Diagnostic(message, span, help))

    def unexpected(self, what: str, *, help: str | None = None) -> SyntaxFailure:
        """Return the error that says what was expected in place of the next token."""
        token = self.token
        if token.kind == "unclosed":
            thing = "string" if token.text == '"' else "comment"
            return self.failure(f"this {thing} is never closed", token.span)
        if token.kind == "bad":
            message = f"expected {what}, found the character {token.text!a}"
            return self.failure(message, token.span, help=_CHARACTER_HELP.get(token.text, help))
        found = "the end of the text" if token.kind == "end" else f"'{clip(token.text)}'"
        return self.failure(f"expected {what}, found {found}", token.span, help=help)

    # Recovering

    def report(self, diagnostic: Diagnostic) -> None:
        """Keep an error; give up on the file when there are too many."""
        self.diagnostics.append(diagnostic)
        if len(self.diagnostics) >= DIAGNOSTICS_MAX:
            self.raise_reported()

    def raise_reported(self) -> None:
        """Raise what was reported, if anything was.

        Raises:
            ParseError: with every diagnostic, in the order of the text.
        """
        if self.diagnostics:
            raise ParseError(self.diagnostics, self.source)

    def enter(self) -> None:
        """Go one level deeper, or fail: recursion follows the text's nesting."""
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise self.failure(f"nested deeper than the limit of {NESTING_MAX} levels", self.token.span)

    def leave(self) -> None:
        """Come back up."""
        self._depth -= 1

    def surface(self) -> None:
        """Forget the nesting that an error left behind."""
        self._depth = 0

    def _decode(self, token: Token) -> str:
        raw = token.text[1:-1]
        if "\\" not in raw:
            return raw
        parts = []
        position = 0
        while (slash := raw.find("\\", position)) >= 0:
            parts.append(raw[position:slash])
            escaped = raw[slash + 1]
            if escaped not in _ESCAPES:
                place = Span(token.start + 1 + slash, token.start + 3 + slash)
                message = f"unsupported escape sequence '\\{escaped}'"
                raise self.failure(message, place, help='escape sequences are \\" \\\\ \\n \\r \\t')
            parts.append(_ESCAPES[escaped])
            position = slash + 2
        parts.append(raw[position:])
        return "".join(parts)


def clip(text: str) -> str:
    """Return a token as a message quotes it: one line, not too long."""
    shown = text if len(text) <= _FOUND_MAX else text[:_FOUND_MAX] + "…"
    return "".join(c if c.isprintable() else " " for c in shown)
