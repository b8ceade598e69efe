"""A verification as text."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from omnigraph.cli.load_progress import size_text
from omnigraph.cli.render.columns import columns, count
from omnigraph.cli.steering import on_one_line
from omnigraph.operations.verify.report import (
    FileReport,
    FileStatus,
    FindingKind,
    UnreferencedFile,
    VerifyFinding,
    VerifyReport,
)

_WORDS = {
    FileStatus.OK: "ok",
    FileStatus.MISSING: "missing",
    FileStatus.LENGTH: "wrong length",
    FileStatus.CHECKSUM: "wrong checksum",
    FileStatus.NOT_RECORDED: "not recorded",
}
UNREFERENCED_SHOWN = 20  # lines of a list that may be long; the document has all of it


def render_verify(report: VerifyReport) -> str:
    """Return what is wrong, with its meaning and its remedy, and the counts of what was checked."""
    return "\n".join(_lines(report))


def _lines(report: VerifyReport) -> Iterator[str]:
    by_kind = sorted(report.findings, key=lambda finding: list(FindingKind).index(finding.kind))
    for kind, found in groupby(by_kind, key=lambda finding: finding.kind):
        yield from _group(kind, list(found), report)
    if report.untold:
        yield f"and {report.untold} more of these kinds"
    if report.pending:
        yield f"{count(len(report.pending), 'unfinished write')}: the next write or open settles what is left"
    counted = [f"{number} {_WORDS[FileStatus(name)]}" for name, number in report.counts.items() if number]
    branches = count(len(report.branches), "branch", "branches")
    yield f"{count(len(report.files), 'file')} of {branches}: {', '.join(counted) or 'none'}"
    if report.is_deep:
        yield f"{count(report.rows_checked, 'row')} and the indexes of their tables checked"
        yield from _unreferenced(report.unreferenced)


def _group(kind: FindingKind, found: Sequence[VerifyFinding], report: VerifyReport) -> Iterator[str]:
    """Yield the findings of one kind, what they mean, and what mends them: each once."""
    if kind is FindingKind.FILE:
        yield columns(["file", "status", "length", "found"], [_row(file) for file in report.damaged])
    else:
        yield from (on_one_line(f"{finding.where}: {finding.what}") for finding in found)
    yield f"  means: {found[0].meaning}"
    for remedy in dict.fromkeys(finding.remedy for finding in found):
        yield f"  way out: {on_one_line(remedy)}"


def _unreferenced(files: Sequence[UnreferencedFile]) -> Iterator[str]:
    if not files:
        return
    total = size_text(sum(file.length for file in files))
    yield f"{count(len(files), 'file')} that nothing needs, {total}; no fault, and cleanup may remove them:"
    for file in files[:UNREFERENCED_SHOWN]:
        yield f"  {file.path}  {size_text(file.length)}"
    if len(files) > UNREFERENCED_SHOWN:
        yield f"  and {len(files) - UNREFERENCED_SHOWN} more, which --json lists"


def _row(file: FileReport) -> list[str]:
    lengths = (file.length, file.found_length)
    return [file.path, _WORDS[file.status], *("-" if length is None else str(length) for length in lengths)]
