"""How far a load is: bars on a terminal, one event to a line for machines, nothing where it is quiet."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from omnigraph.bulk.progress import ProgressCallback, ProgressEvent


@contextmanager
def load_progress(*, quiet: bool, as_json: bool) -> "Iterator[ProgressCallback]":
    """Yield what a load tells its progress to; standard output is left to the result."""
    from omnigraph.bulk.progress import silent

    if as_json and not quiet:
        yield _print_event
    elif quiet or not sys.stderr.isatty():
        yield silent
    else:
        with _bars() as progress:
            yield _Bars(progress)


def event_document(event: "ProgressEvent") -> dict[str, object]:
    """Return an event as machines read it."""
    return {
        "stage": event.stage.value,
        "done": event.is_done,
        "tasks_done": event.tasks_done,
        "tasks_total": event.tasks_total,
        "rows": event.rows,
        "bytes": event.bytes_done,
        "bytes_total": event.bytes_total,
    }


def _print_event(event: "ProgressEvent") -> None:
    click.echo(json.dumps({"progress": event_document(event)}), err=True)


class _Bars:
    """One bar for each stage that a load has come to."""

    def __init__(self, progress: "Progress") -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}
        self._waiting: TaskID | None = progress.add_task("loading", total=None, detail="")

    def __call__(self, event: "ProgressEvent") -> None:
        """Move the bar of a stage: by bytes where they are known, else by tasks."""
        name = event.stage.value
        if self._waiting is not None:
            self._progress.remove_task(self._waiting)
            self._waiting = None
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=event.bytes_total or None, detail="")
        done, total = event.bytes_done, event.bytes_total
        if not total:
            done, total = event.tasks_done, event.tasks_total
        if event.is_done:
            done = total = total or 1
        detail = f"{event.rows:,} rows" if event.rows else ""
        if not event.is_done and event.tasks_total:
            detail = f"{event.tasks_done} of {event.tasks_total} tasks"
        self._progress.update(self._tasks[name], completed=done, total=total or None, detail=detail)
        if event.is_done:
            self._progress.stop_task(self._tasks[name])


def _bars() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<22}"),
        BarColumn(),
        TextColumn("{task.fields[detail]:>16}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)
