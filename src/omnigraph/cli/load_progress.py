"""The progress of a load, or of another bulk operation.

Bars on a terminal, one event per line for machines, one line per finished stage where the output is a file or
a pipe, and nothing with --quiet. Standard output is left to the result.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from omnigraph.cli.render.columns import count

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from omnigraph.bulk.connect.progress import ProgressCallback, ProgressEvent

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@contextmanager
def load_progress(*, quiet: bool, as_json: bool, what: str = "loading") -> "Iterator[ProgressCallback]":
    """Yield the callback to which a load reports its progress; one in process is over too soon to show it."""
    from omnigraph.bulk.connect.progress import silent

    if quiet:
        yield silent
    elif as_json:
        yield _of_many_tasks(_print_event)
    elif not sys.stderr.isatty():
        yield _of_many_tasks(_print_line)
    else:
        with _bars() as progress:
            bars = _Bars(progress, what)
            try:
                yield _of_many_tasks(bars)
            finally:
                bars.stop_waiting()


def _of_many_tasks(show: "ProgressCallback") -> "ProgressCallback":
    return lambda event: show(event) if event.tables is None else None


def event_document(event: "ProgressEvent") -> dict[str, object]:
    """Return an event for machines; unknown values are null."""
    return {
        "stage": event.stage.value,
        "done": event.is_done,
        "tasks_done": event.tasks_done,
        "tasks_total": event.tasks_total,
        "rows": event.rows,
        "bytes": event.bytes_done,
        "bytes_total": event.bytes_total,
        "seconds": round(event.seconds, 3),
        "rows_per_second": _whole(event.rows_per_s),
        "bytes_per_second": _whole(event.bytes_per_s),
        "seconds_left": None if event.remaining_s is None else round(event.remaining_s, 1),
    }


def describe(event: "ProgressEvent") -> str:
    """Return the progress of a stage in a few words: rows, bytes, speed, time left."""
    parts = [f"{event.rows:,} {'row' if event.rows == 1 else 'rows'}"] if event.rows else []
    if event.bytes_total:
        done = size_text(event.bytes_done)
        parts.append(done if event.is_done else f"{done} of {size_text(event.bytes_total)}")
        if event.bytes_per_s is not None:
            parts.append(f"{size_text(event.bytes_per_s)}/s")
    elif event.tasks_total:
        parts.append(f"{event.tasks_done} of {count(event.tasks_total, 'task')}")
    if event.is_done:
        parts.append(f"{event.seconds:.1f} s")
    elif event.remaining_s is not None:
        parts.append(f"{event.remaining_s:.0f} s left")
    return ", ".join(parts)


def size_text(size: float) -> str:
    """Return a number of bytes for people: 1.5 GB, 320 MB."""
    unit = 0
    while size >= 1_000 and unit < len(_UNITS) - 1:
        size, unit = size / 1_000, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if size >= 10 or unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _print_event(event: "ProgressEvent") -> None:
    click.echo(json.dumps({"progress": event_document(event)}), err=True)


def _print_line(event: "ProgressEvent") -> None:
    if event.is_done:
        click.echo(f"{event.stage.value:<22}{describe(event)}", err=True)


class _Bars:
    """One bar for each stage that a load has reached."""

    def __init__(self, progress: "Progress", what: str) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}
        self._waiting: TaskID | None = progress.add_task(what, total=None, detail="")

    def __call__(self, event: "ProgressEvent") -> None:
        """Advance the bar of a stage: by bytes where they are known, else by tasks."""
        name = event.stage.value
        self.stop_waiting()
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=event.bytes_total or None, detail="")
        done, total = event.bytes_done, event.bytes_total
        if not total:
            done, total = event.tasks_done, event.tasks_total
        if event.is_done:
            done = total = total or 1
        self._progress.update(self._tasks[name], completed=done, total=total or None, detail=describe(event))

    def stop_waiting(self) -> None:
        """Remove the line that is shown until the first stage begins, or until the end."""
        if self._waiting is not None:
            self._progress.remove_task(self._waiting)
            self._waiting = None


def _bars() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description:<19}"),
        BarColumn(bar_width=12),
        TextColumn("{task.fields[detail]}"),
    )
    return Progress(*columns, console=Console(stderr=True))
