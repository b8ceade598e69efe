"""Items of a source, broken into lines.

An item goes on one line if that is allowed, if it fits, and if no comment comes between its pieces. Otherwise
every piece gets its own line, which leaves room for the comments.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import pairwise

from omnigraph.core.span import Span
from omnigraph.language.format_spacing import spell
from omnigraph.language.parser import Token, Tokens

INDENT = "    "
WIDTH_MAX = 100  # columns: two files side by side on a laptop's screen


# Items


@dataclass(frozen=True, slots=True)
class Run:
    """Tokens `first` to `last` (exclusive), which share a line."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Group:
    """Items between an opening and a closing, such as braces and what belongs to them.

    `separator` follows every item except the last. Only with `is_inline` may the whole group share one line;
    `padding` then goes inside the brackets.
    """

    opening: "LayoutItem"
    items: tuple["LayoutItem", ...]
    closing: Run
    separator: str = ""
    padding: str = " "
    is_inline: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a declaration; when broken, its parts are indented and the brace goes below them."""

    start: Run | Group
    parts: tuple[Run, ...]
    brace: Run | None


LayoutItem = Run | Group | Head


# Lines


class Blank(Enum):
    """Whether a blank line precedes a line."""

    NEVER = auto()
    AS_WRITTEN = auto()
    ALWAYS = auto()


@dataclass(frozen=True, slots=True)
class Line:
    """The text of some tokens, and how it keeps its distance.

    `opens` says that no blank line follows.
    """

    run: Run
    text: str
    depth: int
    comment_depth: int
    blank: Blank = Blank.AS_WRITTEN
    opens: bool = False


class Sheet:
    """The tokens and comments of a source, looked up by position."""

    def __init__(self, tokens: Tokens) -> None:
        """Index the tokens by where they start and end."""
        self.text = tokens.source.text
        self.tokens = tokens.tokens
        self.comments = tokens.comments
        written = tokens.tokens[:-1]  # the end has no width, and would end where the last token does
        self._starts = {token.start: index for index, token in enumerate(written)}
        self._ends = {token.end: index for index, token in enumerate(written)}
        self._comment_starts = [comment.start for comment in tokens.comments]

    def run(self, span: Span) -> Run:
        """Return the tokens of a tree."""
        return Run(self._starts[span.start], self._ends[span.end] + 1)

    def behind(self, run: Run) -> int:
        """Return the index of the first token after a run, skipping a comma."""
        return run.last + (self.tokens[run.last].text == ",")

    def spell(self, run: Run) -> str:
        """Return the tokens of a run on one line."""
        return spell(self.tokens[run.first : run.last])

    def has_comment(self, left: Run, right: Run) -> bool:
        """Return whether there is a comment between two runs."""
        start, end = self.last_token(left).end, self.tokens[right.first].start
        return bisect_left(self._comment_starts, start) < bisect_left(self._comment_starts, end)

    def last_token(self, run: Run) -> Token:
        """Return the token that ends a run."""
        return self.tokens[run.last - 1]


def lay_out(sheet: Sheet, item: LayoutItem, depth: int) -> Iterator[Line]:
    """Yield the lines of an item, at least one."""
    flat = _flat(sheet, item)
    if flat is not None and _fits(flat, depth):
        yield Line(extent(item), flat, depth, depth)
        return
    match item:
        case Run():
            yield Line(item, sheet.spell(item), depth, depth)
        case Group():
            yield from _group_lines(sheet, item, depth)
        case Head():
            yield from _head_lines(sheet, item, depth)


def _group_lines(sheet: Sheet, group: Group, depth: int) -> Iterator[Line]:
    *above, last = lay_out(sheet, group.opening, depth)
    yield from above
    yield replace(last, opens=True)
    for number, item in enumerate(group.items, 1):
        *above, last = lay_out(sheet, item, depth + 1)
        yield from above
        yield replace(last, text=last.text + group.separator) if number < len(group.items) else last
    yield Line(group.closing, sheet.spell(group.closing), depth, depth + 1, Blank.NEVER)


def _head_lines(sheet: Sheet, head: Head, depth: int) -> Iterator[Line]:
    lines = list(lay_out(sheet, head.start, depth))
    lines += [Line(part, sheet.spell(part), depth + 1, depth + 1, Blank.NEVER) for part in head.parts]
    if head.brace is not None:
        lines.append(Line(head.brace, sheet.spell(head.brace), depth, depth + 1, Blank.NEVER))
    yield from (replace(line, opens=True) for line in lines[:-1])
    yield lines[-1]


def _flat(sheet: Sheet, item: LayoutItem) -> str | None:
    """Return the item on one line, or `None` if it must be broken."""
    match item:
        case Run():
            return sheet.spell(item)
        case Head(start, parts, brace):
            pieces = [start, *parts] if brace is None else [start, *parts, brace]
            ends = [extent(piece) for piece in pieces]
            if any(sheet.has_comment(left, right) for left, right in pairwise(ends)):
                return None
            return _join(sheet, pieces, " ")
        case Group(opening, items, closing, separator, padding, is_inline):
            if not is_inline or sheet.has_comment(extent(opening), closing):
                return None
            inside = _join(sheet, items, f"{separator} ")
            around = _flat(sheet, opening)
            if inside is None or around is None:
                return None
            return f"{around}{padding}{inside}{padding}{sheet.spell(closing)}"


def _join(sheet: Sheet, items: Sequence[LayoutItem], separator: str) -> str | None:
    texts = [_flat(sheet, item) for item in items]
    known = [text for text in texts if text is not None]
    return separator.join(known) if len(known) == len(texts) else None


def extent(item: LayoutItem) -> Run:
    """Return all tokens of an item."""
    match item:
        case Run():
            return item
        case Group(opening, _, closing):
            return Run(extent(opening).first, closing.last)
        case Head(start, parts, brace):
            last = brace or (parts[-1] if parts else extent(start))
            return Run(extent(start).first, last.last)


def _fits(text: str, depth: int) -> bool:
    return "\n" not in text and len(INDENT) * depth + len(text) <= WIDTH_MAX
