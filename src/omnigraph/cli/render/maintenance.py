"""Maintenance of tables as text, and its progress: the table at hand, and the time that is left."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from omnigraph.cli.render.columns import columns, count
from omnigraph.operations.optimize import OptimizedTable, OptimizeResult
from omnigraph.operations.progress import TableProgress, TableProgressCallback, unseen


def render_optimize(result: OptimizeResult, branch: str | None) -> str:
    """Return one line per table of a branch that changed or was skipped, and the commit."""
    shown = [table for table in result.tables if table.committed or table.skipped]
    rows = [
        [table.table_key, str(table.fragments_removed), str(table.fragments_added), _remark(table, branch)]
        for table in shown
    ]
    lines = [columns(["table", "files before", "files after", ""], rows, numbers=frozenset({1, 2})), ""]
    if result.commit is None:
        return "\n".join([*(lines if shown else []), "nothing to do in the tables: no commit"])
    return "\n".join([*lines, f"commit {result.commit.graph_commit_id}"])


@contextmanager
def table_progress(
    *, quiet: bool, as_json: bool, waiting: str = "looking at tables"
) -> Iterator[TableProgressCallback]:
    """Yield the callback for the progress of work on tables.

    A bar on a terminal, an event per line for machines, a line per table in a pipe, nothing if quiet.
    `waiting` is said until the first table is begun.
    """
    if quiet:
        yield unseen
    elif as_json:
        yield _print_event
    elif not sys.stderr.isatty():
        yield _print_line
    else:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        shown = (
            TextColumn("{task.description:<24}"),
            BarColumn(bar_width=12),
            TextColumn("{task.fields[left]}"),
        )
        with Progress(*shown, console=Console(stderr=True), transient=True) as bars:
            bar = bars.add_task(waiting, total=None, left="")

            def show(progress: TableProgress) -> None:
                bars.update(
                    bar,
                    description=_label(progress),
                    total=progress.units_total,
                    completed=progress.units_done,
                    left=describe(progress),
                )

            yield show


def describe(progress: TableProgress) -> str:
    """Return how far the work has come, in a few words."""
    done = f"{progress.tables_done} of {count(progress.tables_total, 'table')}"
    if progress.remaining_s is None or progress.tables_done == progress.tables_total:
        return done
    return f"{done}, {progress.remaining_s:.0f} s left"


def progress_document(progress: TableProgress) -> dict[str, object]:
    """Return the progress for machines; unknown values are null."""
    left = progress.remaining_s
    return {
        "operation": progress.operation,
        **({} if progress.stage is None else {"stage": progress.stage}),
        "table_key": progress.table_key,
        "done": progress.is_done,
        "tables_done": progress.tables_done,
        "tables_total": progress.tables_total,
        f"{progress.unit}_done": progress.units_done,
        f"{progress.unit}_total": progress.units_total,
        "seconds": round(progress.seconds, 3),
        "seconds_left": None if left is None else round(left, 1),
    }


def _print_event(progress: TableProgress) -> None:
    click.echo(json.dumps({"progress": progress_document(progress)}), err=True)


def _print_line(progress: TableProgress) -> None:
    if progress.is_done:
        click.echo(f"{_label(progress):<23} {describe(progress)}", err=True)


def _label(progress: TableProgress) -> str:
    """Return the table at hand, and what is done with it where that is not all."""
    return progress.table_key if progress.stage is None else f"{progress.table_key}, {progress.stage}"


def _remark(table: OptimizedTable, branch: str | None) -> str:
    if table.skipped is None:
        return ""
    versions = f"at version {table.lance_head_version}, published at {table.manifest_version}"
    return f"skipped: {versions}; run omnigraph repair" + (f" --branch {branch}" if branch else "")
