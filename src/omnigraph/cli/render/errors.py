"""Errors as text for people."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from omnigraph.core.errors import ExecutionError, OmnigraphError, SourceError, ValidationError

if TYPE_CHECKING:
    from omnigraph.validate.violations import Violation

VIOLATIONS_SHOWN_MAX = 10  # a screen; the first one is what to mend


def render_error(error: OmnigraphError) -> str:
    """Return what goes to standard error: every diagnostic of a text, the first violations of data."""
    if isinstance(error, SourceError):
        return error.render()
    if isinstance(error, ValidationError):
        return "\n".join([str(error), *_further(error)])
    return str(error) if isinstance(error, ExecutionError) else f"error: {error}"


def _further(error: ValidationError) -> Iterator[str]:
    """Yield a line for each violation behind the first one, and how many there are besides."""
    shown = cast("tuple[Violation, ...]", error.violations[1:VIOLATIONS_SHOWN_MAX])
    for violation in shown:
        place = "" if error.line is None else _place(violation)
        yield f"  {place}{violation.message}"
    rest = error.total - len(shown) - 1
    if rest > 0:
        yield f"  and {rest} more"


def _place(violation: "Violation") -> str:
    """Return where a violation stands; one without a row of its own stands nowhere."""
    if violation.line < 1:
        return ""
    name = violation.file_name
    return f"line {violation.line}: " if name is None else f"{name}:{violation.line}: "
