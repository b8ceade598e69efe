"""What is wrong at which place in a source, and how it is shown to a person."""

from dataclasses import dataclass
from enum import StrEnum

from omnigraph.core.span import Source, Span


class Severity(StrEnum):
    """How much a diagnostic matters, most serious first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a message, where it is, and what to do about it."""

    message: str
    span: Span | None = None
    help: str | None = None
    code: str | None = None
    severity: Severity = Severity.ERROR

    @property
    def text(self) -> str:
        """The message, preceded by its code where it has one."""
        return f"{self.code}: {self.message}" if self.code else self.message


def render(diagnostic: Diagnostic, source: Source, *, label: str | None = None) -> str:
    """Return the diagnostic with its source line and a caret, as shown on a terminal.

    Without a span it is the message and its help. The label replaces the severity for error classes that
    have their own name.
    """
    lines = [f"{label or diagnostic.severity}: {diagnostic.text}"]
    gutter = ""
    if diagnostic.span is not None:
        excerpt = source.excerpt(diagnostic.span)
        gutter = " " * len(str(excerpt.line))
        where = f"{source.path}:" if source.path else ""
        lines += [
            f"{gutter}--> {where}{excerpt.line}:{excerpt.column}",
            f"{gutter} |",
            f"{excerpt.line} | {excerpt.text}",
            f"{gutter} | {' ' * excerpt.caret}{'^' * excerpt.width}",
        ]
    if diagnostic.help:
        lines.append(f"{gutter} = help: {diagnostic.help}")
    return "\n".join(lines)
