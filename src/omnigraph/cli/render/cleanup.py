"""A cleanup as text."""

from omnigraph.cli.render.columns import columns, count, size_of
from omnigraph.operations.cleanup.model import CleanupResult, CleanupRow


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


def _cells(row: CleanupRow) -> list[str]:
    return [row.table_key, str(row.old_versions_removed), size_of(row.bytes_removed), row.error or "-"]
