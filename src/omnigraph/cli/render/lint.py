"""Lint reports as text."""

from collections.abc import Iterator, Sequence
from textwrap import indent

import click

from omnigraph.catalog.lint import LintReport, QueryResult
from omnigraph.cli.render.columns import count
from omnigraph.cli.steering import on_lines, on_one_line
from omnigraph.core.diagnostics import Severity
from omnigraph.core.source_errors import SourceError

_LABELS = {
    Severity.ERROR: ("ERROR", "red"),
    Severity.WARNING: ("WARN", "yellow"),
    Severity.INFO: ("INFO", "blue"),
}
_DETAIL = " " * 6


def render_report(report: LintReport) -> str:
    """Return one file: its queries in order, then what concerns the file as a whole."""
    return "\n".join([click.style(on_one_line(report.query_path), bold=True), *_lines(report)])


def render_summary(reports: Sequence[LintReport]) -> str:
    """Return the last line: how much was checked and what was found."""
    files, queries = len(reports), sum(len(report.results) for report in reports)
    errors, warnings = sum(report.errors for report in reports), sum(report.warnings for report in reports)
    where = f"{count(queries, 'query', 'queries')} in {count(files, 'file')}"
    return f"{where}: {count(errors, 'error')}, {count(warnings, 'warning')}"


def _lines(report: LintReport) -> Iterator[str]:
    if report.failure is not None:
        yield f"{_label(Severity.ERROR)} {report.findings[0].code} the file does not parse"
        yield indent(on_lines(report.failure.render()), _DETAIL)
        return
    for result in report.results:
        yield from _result(result)
    for finding in report.findings:
        names = f" ({', '.join(finding.query_names)})" if finding.query_names else ""
        yield f"{_label(finding.severity)} {finding.code} {on_lines(finding.message)}{names}"


def _result(result: QueryResult) -> Iterator[str]:
    label = click.style("OK   ", fg="green") if result.error is None else _label(Severity.ERROR)
    yield f"{label} {result.name} ({result.kind})"
    if isinstance(result.error, SourceError):
        yield indent(on_lines(result.error.render()), _DETAIL)
    elif result.error is not None:
        yield indent(on_lines(str(result.error)), _DETAIL)
    for warning in result.warnings:
        yield f"{_label(Severity.WARNING)} {result.name}: {on_lines(warning)}"


def _label(severity: Severity) -> str:
    text, color = _LABELS[severity]
    return click.style(f"{text:<5}", fg=color)
