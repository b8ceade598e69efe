"""A cleanup as text, and its progress."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.cli.render.columns import columns, count, size_of
from omnigraph.operations.cleanup.model import (
    CleanupCallback,
    CleanupProgress,
    CleanupResult,
    CleanupRow,
    silent,
)


def render_cleanup(result: CleanupResult) -> str:
    """Return what went, or would go, table by table, and the total."""
    rows = [row for row in result.tables if row.bytes_removed or row.error is not None]
    lines = [columns(["table", "versions", "size", "error"], [_cells(row) for row in rows])] if rows else []
    lines += [f"left by others: {name}" for name in result.leftovers]
    versions, size = count(result.old_versions_removed, "version"), size_of(result.bytes_removed)
    if result.is_dry_run:
        lines.append(f"would remove {versions}, {size}; add --confirm to do so")
    else:
        lines.append(f"removed {versions}, {size}")
    return "\n".join(lines)


@contextmanager
def cleanup_progress(*, quiet: bool) -> Iterator[CleanupCallback]:
    """Yield the callback for the progress of a cleanup: a bar on a terminal, nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("looking for what stays", total=None)

        def show(progress: CleanupProgress) -> None:
            bars.update(
                bar,
                description=progress.table_key,
                total=progress.tables_total,
                completed=progress.tables_done,
            )

        yield show


def _cells(row: CleanupRow) -> list[str]:
    return [row.table_key, str(row.old_versions_removed), size_of(row.bytes_removed), row.error or "-"]
