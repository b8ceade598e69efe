"""The error tree.

Codes, statuses and exit codes belong to the class; raising code passes none of them.

    OmnigraphError                  internal, 500, exit 1
      BadRequest                    bad_request, 400
        SourceError                 something is wrong at a place in a text
          ParseError                lexer, grammar, checks of one source
            MixedMutation           inserts or updates together with deletes
          CatalogError              a parsed schema that makes no catalog
          TypeCheckError            a query that does not fit the schema; type_code T1..T24 or none
          PlanError                 well typed, but without an executable meaning
        ExecutionError              evaluation of values
          ParameterError            missing, undeclared or of the wrong type
        SchemaError                 an unsupported migration
      NotFoundError                 not_found, 404
        QueryNotFound               no query of that name in the source
"""

from collections.abc import Sequence
from typing import ClassVar

from omnigraph.core.diagnostics import Diagnostic, render
from omnigraph.core.span import Source


class OmnigraphError(Exception):
    """The root of every error that Omnigraph raises on purpose; never raised itself."""

    code: ClassVar[str | None] = "internal"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1


class BadRequest(OmnigraphError):
    """The call cannot be carried out as it was made; nothing was executed or stored."""

    code = "bad_request"
    status = 400


class SourceError(BadRequest):
    """Something is wrong with a text; the first diagnostic decides message and span."""

    label: ClassVar[str] = "error"

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source) -> None:
        """Take at least one diagnostic, in the order they are to be shown."""
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
    """The text does not fit the grammar, or a check that needs nothing but this text."""

    label = "parse error"


class MixedMutation(ParseError):
    """A query mixes inserts or updates with deletes; decided before any catalog lookup or I/O."""

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source, *, query_name: str) -> None:
        """Take the name of the query besides what every source error takes."""
        super().__init__(diagnostics, source)
        self.query_name = query_name


class CatalogError(SourceError):
    """A schema that parses but makes no catalog, alone or against the accepted one."""

    label = "catalog error"


class TypeCheckError(SourceError):
    """A query that does not fit the schema."""

    label = "type error"

    @property
    def type_code(self) -> str | None:
        """`T1` to `T24`, or none for the few errors without a code."""
        return self.diagnostics[0].code


class PlanError(SourceError):
    """A query that is well typed but has no executable meaning."""

    label = "plan error"


class ExecutionError(BadRequest):
    """A value that cannot be bound, evaluated or stored."""

    def __init__(self, message: str) -> None:
        """Take the message without the class's label."""
        super().__init__(f"execution error: {message}")
        self.message = message


class ParameterError(ExecutionError):
    """A parameter is missing, undeclared or of the wrong type."""

    def __init__(self, message: str, *, name: str | None = None) -> None:
        """Take the parameter's name, or none where the whole parameter object is wrong."""
        super().__init__(message)
        self.name = name


class SchemaError(BadRequest):
    """A migration that is not supported; `steps` is the whole plan, the blocking steps included."""

    def __init__(self, message: str, *, steps: Sequence[object]) -> None:
        """Take the reason of the first unsupported step, already behind its code."""
        super().__init__(message)
        self.steps = tuple(steps)


class NotFoundError(OmnigraphError):
    """Something named does not exist, decided by whoever is the authority on it."""

    code = "not_found"
    status = 404


class QueryNotFound(NotFoundError):
    """No query of that name is declared."""

    def __init__(self, name: str, *, known: Sequence[str]) -> None:
        """Take the name asked for and the names that exist."""
        listed = ", ".join(f"'{other}'" for other in known) or "none"
        super().__init__(f"query '{name}' not found; declared: {listed}")
        self.name = name
