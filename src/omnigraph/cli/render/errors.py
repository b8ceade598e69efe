"""Errors as text for people."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from omnigraph.cli.render.columns import count
from omnigraph.client.answer import Document
from omnigraph.core.errors import ExecutionError, MergeConflicts, OmnigraphError, ValidationError
from omnigraph.core.source_errors import SourceError
from omnigraph.wire.error_document import conflict_document

if TYPE_CHECKING:
    from omnigraph.validate.violations import Violation

VIOLATIONS_SHOWN_MAX = 10  # a screen; the first one is the one to fix


def render_error(error: OmnigraphError) -> str:
    """Return what goes to standard error: every diagnostic of a text, the first violations of data."""
    if isinstance(error, SourceError):
        return error.render() if error.diagnostics else str(error)  # a server's has its first line alone
    if isinstance(error, MergeConflicts):
        return "\n".join([f"error: {error}", *map(conflict_line, map(conflict_document, error.conflicts))])
    if isinstance(error, ValidationError):
        return "\n".join([str(error), *_further(error)])
    return str(error) if isinstance(error, ExecutionError) else f"error: {error}"


def _further(error: ValidationError) -> Iterator[str]:
    """Yield a line for each violation after the first, with what follows from it, and how many remain."""
    listed = cast("tuple[Violation, ...]", error.violations)
    causes, follows = causes_of(listed)
    shown = causes[:VIOLATIONS_SHOWN_MAX]
    for position, violation in enumerate(shown):
        place = "" if error.line is None else _place(violation)
        if position:
            yield f"  {place}{violation.message}"
        yield from follows.lines(violation)
    rest = error.total - error.consequences - max(len(shown), 1)
    if rest > 0:
        yield f"  and at least {rest:,} more" if error.is_cut_short else f"  and {rest} more"
    unsaid = error.consequences - follows.said
    if unsaid > 0:
        yield f"  and {count(unsaid, 'edge')} to refused nodes"


@dataclass(slots=True)
class Follows:
    """How many edges were refused because of each refused node; `said` counts those already reported."""

    counts: Counter[tuple[str, str]]
    said: int = 0

    def lines(self, violation: "Violation") -> Iterator[str]:
        """Yield the line below a cause, once for each refused row."""
        number = self.counts.pop((violation.table_key or "", violation.row_id or ""), 0)
        if number:
            self.said += number
            yield f"    and because of it {count(number, 'edge')} to '{violation.row_id}'"


def causes_of(violations: "Iterable[Violation]") -> "tuple[list[Violation], Follows]":
    """Return the violations to fix, and how many of the others follow from each of them."""
    from omnigraph.validate.violations import Consequence

    listed = list(violations)
    counts = Counter(item.cause for item in listed if isinstance(item, Consequence))
    return [item for item in listed if not isinstance(item, Consequence)], Follows(counts)


def _place(violation: "Violation") -> str:
    """Return where a violation is; one without a row has no place."""
    if violation.line < 1:
        return ""
    name = violation.file_name
    return f"line {violation.line}: " if name is None else f"{name}:{violation.line}: "


def conflict_line(conflict: Document) -> str:
    """Return the line of one conflict of a merge."""
    row = "" if conflict["row_id"] is None else f" '{conflict['row_id']}'"
    return f"  {conflict['table_key']}{row} {conflict['kind']}: {conflict['message']}"
