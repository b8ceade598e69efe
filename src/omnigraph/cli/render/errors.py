"""Errors as text for people."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

from omnigraph.core.errors import (
    ExecutionError,
    MergeConflicts,
    OmnigraphError,
    SourceError,
    ValidationError,
)
from omnigraph.core.merge_conflict import MergeConflict

if TYPE_CHECKING:
    from omnigraph.validate.violations import Violation

VIOLATIONS_SHOWN_MAX = 10  # a screen; the first one is what to mend


def render_error(error: OmnigraphError) -> str:
    """Return what goes to standard error: every diagnostic of a text, the first violations of data."""
    if isinstance(error, SourceError):
        return error.render()
    if isinstance(error, MergeConflicts):
        return "\n".join([f"error: {error}", *render_conflicts(error.conflicts)])
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


def render_conflicts(conflicts: Iterable[MergeConflict]) -> Iterator[str]:
    """Yield a line for each conflict of a merge."""
    for conflict in conflicts:
        row = "" if conflict.row_id is None else f" '{conflict.row_id}'"
        yield f"  {conflict.table_key}{row} {conflict.kind}: {conflict.message}"
