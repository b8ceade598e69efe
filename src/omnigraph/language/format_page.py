"""Lines, the comments between them and the blank lines an author has left, as one text."""

import re
from collections import deque
from collections.abc import Iterable

from omnigraph.core.span import Span
from omnigraph.language.format_layout import INDENT, Blank, Line, Sheet
from omnigraph.language.parser import Token

_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_WHITE_SPACE = " \t\r"


def render(sheet: Sheet, lines: Iterable[Line]) -> str:
    """Return the text of all lines, with every comment of the sheet in its place (F3)."""
    page = _Page(sheet.text)
    waiting = deque(sheet.comments)
    for line in lines:
        start, end = sheet.tokens[line.run.first].start, sheet.last_token(line.run).end
        blank = line.blank
        while waiting and waiting[0].start < start:
            if not page.put_comment(waiting.popleft(), line.comment_depth, blank) and blank is Blank.ALWAYS:
                blank = Blank.AS_WRITTEN
        texts = []
        while waiting and waiting[0].start < end:
            texts.append(INDENT * line.comment_depth + _clean(waiting.popleft()))
        texts.append(INDENT * line.depth + line.text)
        page.put_line("\n".join(texts), Span(start, end), blank, opens=line.opens)
    for comment in waiting:
        page.put_comment(comment, 0, Blank.AS_WRITTEN)
    return page.text()


class _Page:
    """A text under construction, and where in the source its last piece came from."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._pieces: list[str] = []
        self._end = 0
        self._is_open = True

    def text(self) -> str:
        return "".join(f"{piece}\n" for piece in self._pieces)

    def put_comment(self, comment: Token, depth: int, blank: Blank) -> bool:
        """Add a comment; return whether it follows something on the same line.

        A comment on its own line keeps its distance even before a line that never has a blank one before it.
        """
        if self._pieces and "\n" not in self._source[self._end : comment.start]:
            self._pieces[-1] += f" {_clean(comment)}"
            self._end = comment.end
            return True
        blank = Blank.AS_WRITTEN if blank is Blank.NEVER else blank
        self._put(INDENT * depth + _clean(comment), comment.span, blank)
        self._is_open = False
        return False

    def put_line(self, text: str, span: Span, blank: Blank, *, opens: bool) -> None:
        """Add a line, with the comments that moved before it."""
        self._put(text, span, blank)
        self._is_open = opens

    def _put(self, text: str, span: Span, blank: Blank) -> None:
        was_written = _BLANK_LINE.search(self._source, self._end, span.start) is not None
        if not self._is_open and (blank is Blank.ALWAYS or (blank is Blank.AS_WRITTEN and was_written)):
            self._pieces.append("")
        self._pieces.append(text)
        self._end = span.end


def _clean(comment: Token) -> str:
    """Return a comment without the white space at the ends of its lines (F5)."""
    return "\n".join(line.rstrip(_WHITE_SPACE) for line in comment.text.split("\n"))
