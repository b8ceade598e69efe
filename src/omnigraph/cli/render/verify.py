"""A verification as text, and its progress."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.cli.render.columns import columns, count
from omnigraph.cli.steering import on_one_line
from omnigraph.operations.verify import FileReport, FileStatus, Progress, VerifyProgress, VerifyReport

_WORDS = {
    FileStatus.OK: "ok",
    FileStatus.MISSING: "missing",
    FileStatus.LENGTH: "wrong length",
    FileStatus.CHECKSUM: "wrong checksum",
    FileStatus.NOT_RECORDED: "not recorded",
}
_ADVICE = "put the files back from a copy of the graph, then verify again"
_REPEATED_ADVICE = "two writers have published at once: compare `commit list` with what they wrote"


def render_verify(report: VerifyReport) -> str:
    """Return what is wrong, file by file, and the counts of all files."""
    lines = [on_one_line(f"cannot follow the manifest of branch {reason}") for reason in report.unread]
    lines += [on_one_line(f"key written twice on branch {reason}") for reason in report.repeated]
    if report.damaged:
        lines.append(columns(["file", "status", "length", "found"], [_row(f) for f in report.damaged]))
    counted = [f"{number} {_WORDS[FileStatus(name)]}" for name, number in report.counts.items() if number]
    branches = count(len(report.branches), "branch", "branches")
    lines.append(f"{count(len(report.files), 'file')} of {branches}: {', '.join(counted) or 'none'}")
    if report.damaged or report.unread:
        lines.append(_ADVICE)
    if report.repeated:
        lines.append(_REPEATED_ADVICE)
    return "\n".join(lines)


@contextmanager
def verify_progress(*, quiet: bool) -> Iterator[Progress]:
    """Yield the callback for the progress of a verification: a bar on a terminal, nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("comparing files", total=None)

        def show(progress: VerifyProgress) -> None:
            bars.update(bar, total=progress.files_total, completed=progress.files_done)

        yield show


def _row(file: FileReport) -> list[str]:
    lengths = (file.length, file.found_length)
    return [file.path, _WORDS[file.status], *("-" if length is None else str(length) for length in lengths)]
