"""Positions in source text, and the text itself with a name.

Spans count characters, because that is what Python slices. What leaves the process (an error on the wire)
asks the source for bytes.
"""

from dataclasses import dataclass

from omnigraph.core.limits import DIAGNOSTIC_EXCERPT_MAX


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` (exclusive) of a source."""

    start: int
    end: int

    def to(self, other: "Span") -> "Span":
        """Return the span from the start of this one to the end of the other."""
        return Span(self.start, other.end)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One line of a source around a span, short enough to print, with the position of its caret."""

    line: int
    column: int
    text: str
    caret: int
    width: int


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the name that errors give it.

    `first_line` is the number of its first line: that of what a person wrote is 1, also where we put lines of
    our own before it.
    """

    text: str
    path: str | None = None
    first_line: int = 1

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, both counted from one."""
        line_start = self.text.rfind("\n", 0, offset) + 1
        return self.text.count("\n", 0, line_start) + self.first_line, offset - line_start + 1

    def byte_span(self, span: Span) -> tuple[int, int]:
        """Return the span in UTF-8 bytes; one without width is widened to one byte."""
        start = len(self.text[: span.start].encode(errors="surrogatepass"))
        end = start + len(self.text[span.start : span.end].encode(errors="surrogatepass"))
        return start, max(end, start + 1)

    def excerpt(self, span: Span) -> Excerpt:
        """Return the line where the span starts; a long line is cut to a window around it."""
        line, column = self.position(span.start)
        line_start = span.start - column + 1
        line_end = self.text.find("\n", line_start)
        line_end = len(self.text) if line_end < 0 else line_end
        window_start = max(line_start, span.start - DIAGNOSTIC_EXCERPT_MAX // 2)
        window_end = min(line_end, window_start + DIAGNOSTIC_EXCERPT_MAX)
        # One character for one column: control characters and tabs would move the caret.
        window = "".join(c if c.isprintable() else " " for c in self.text[window_start:window_end])
        width = max(1, min(span.end, window_end) - span.start)
        return Excerpt(line, column, window.rstrip(), span.start - window_start, width)
