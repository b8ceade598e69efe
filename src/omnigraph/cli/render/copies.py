"""A copy of a graph, and the comparison of two, as text."""

from omnigraph.cli.load_progress import size_text
from omnigraph.cli.render.columns import columns, count
from omnigraph.cli.steering import on_one_line
from omnigraph.operations.clone.check_copy import CopyDifference, CopyReport
from omnigraph.operations.clone.clone import CloneResult


def render_clone(result: CloneResult) -> str:
    """Return what was copied, and what of the past cannot be read."""
    branches = count(len(result.branches), "branch", "branches")
    lines = [
        f"cloned {result.source} to {result.target}: {branches}, {count(result.files, 'file')}, "
        f"{size_text(result.bytes)}"
    ]
    if result.files_copied < result.files:
        lines.append(f"{count(result.files - result.files_copied, 'file')} had been copied before")
    lines += [
        f"{count(number, 'older commit')} of {name} can be listed and not read"
        for name, number in result.unreadable.items()
    ]
    return "\n".join(map(on_one_line, lines))


def render_check_copy(report: CopyReport) -> str:
    """Return what differs, and how much was compared."""
    branches = count(len(report.branches), "branch", "branches")
    compared = f"{branches}, {count(report.commits, 'commit')}, {count(report.files, 'file')}"
    if report.is_same:
        return f"no difference: {compared}, {size_text(report.bytes)}"
    rows = [_row(difference) for difference in report.differences]
    number = count(len(report.differences), "difference")
    return f"{columns(['differs', 'what', 'source', 'copy'], rows)}\n{number} in {compared}"


def _row(difference: CopyDifference) -> list[str]:
    both = (difference.source, difference.target)
    return [
        difference.kind.value,
        on_one_line(difference.what),
        *("-" if side is None else side for side in both),
    ]
