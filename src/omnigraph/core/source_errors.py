"""Errors of source texts: each says where in the text, and what to do.

They belong to the tree of `core/errors.py`.
"""

from collections.abc import Sequence
from typing import ClassVar

from omnigraph.core.diagnostics import Diagnostic, render
from omnigraph.core.errors import BadRequest
from omnigraph.core.span import Source


class SourceError(BadRequest):
    """Something is wrong with a text; the first diagnostic decides message and span."""

    label: ClassVar[str] = "error"

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source) -> None:
        """Take at least one diagnostic, in the order to show them."""
        assert diagnostics, "a source error says what is wrong"
        self.diagnostics = tuple(diagnostics)
        self.source = source
        super().__init__(self._headline())

    @property
    def span(self) -> tuple[int, int] | None:
        """The place of the first diagnostic, in bytes of the source."""
        span = self.diagnostics[0].span
        return None if span is None else self.source.byte_span(span)

    @property
    def position(self) -> tuple[int, int] | None:
        """Line and column of the first diagnostic, counted from one."""
        span = self.diagnostics[0].span
        return None if span is None else self.source.position(span.start)

    def render(self) -> str:
        """Return every diagnostic with its line and caret."""
        return "\n\n".join(render(found, self.source, label=self.label) for found in self.diagnostics)

    def _headline(self) -> str:
        first = self.diagnostics[0]
        position = self.position
        where = f" at {position[0]}:{position[1]}" if position else ""
        return f"{self.label}: {first.text}{where}"


class ParseError(SourceError):
    """The text does not fit the grammar, or fails a check that needs only this text."""

    label = "parse error"


class MixedMutation(ParseError):
    """A query mixes inserts or updates with deletes; decided before any catalog lookup or I/O."""

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source, *, query_name: str) -> None:
        """Take the name of the query in addition to what every source error takes."""
        super().__init__(diagnostics, source)
        self.query_name = query_name


class CatalogError(SourceError):
    """A schema that parses but is not a valid catalog, by itself or against the accepted one."""

    label = "catalog error"


class TypeCheckError(SourceError):
    """A query that does not fit the schema."""

    label = "type error"

    @property
    def type_code(self) -> str | None:
        """`T1` to `T24`, or `None` for the few errors without a code."""
        return self.diagnostics[0].code


class PlanError(SourceError):
    """A query that is well typed but has no executable meaning."""

    label = "plan error"
