"""A sign of life on a terminal while a long command works; nothing at all on a pipe."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def working(what: str, *, quiet: bool) -> Iterator[None]:
    """Show a moving line with the elapsed time on standard error, and remove it at the end."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    line = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*line, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(what, total=None)
        yield
