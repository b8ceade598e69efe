"""A look at a graph, as text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omnigraph.cli.render.columns import columns, count, moment, size_of
from omnigraph.cli.steering import on_one_line
from omnigraph.history.identity import branch_name
from omnigraph.history.manifest_rows import MANIFEST_DIR

if TYPE_CHECKING:
    from omnigraph.operations.status import GraphStatus, OptimizeWork, PendingWrite

_NAME_WIDTH = 10
_INDENT = " " * _NAME_WIDTH


def render_status(found: "GraphStatus", uri: str) -> str:
    """Return the head, unfinished writes, tables, indexes, and what maintenance would do."""
    lines = [*_head(found, uri), "", _tables(found), "", *_indexes(found), *_maintenance(found)]
    return "\n".join(lines)


def _head(found: "GraphStatus", uri: str) -> Iterator[str]:
    head = found.head
    actor = "" if head.actor_id is None else f" by {on_one_line(head.actor_id)}"
    branches = count(found.branches, "branch", "branches")
    yield _named("graph", f"{on_one_line(uri)}, {branches}, {size_of(found.bytes)}")
    yield _named("branch", f"{branch_name(found.branch)} at version {head.manifest_version}")
    yield _named("head", f"{head.graph_commit_id}{actor}, {moment(head.created_at_micros)}")
    if head.message is not None:
        first, *more = head.message.splitlines() or [""]
        yield _INDENT + on_one_line(first) + (" …" if more else "")
    if not found.pending:
        yield _named("recovery", "nothing pending")
        return
    yield _named("recovery", f"{count(len(found.pending), 'write')} begun and not ended")
    for write in found.pending:
        yield _INDENT + _pending(write)


def _pending(write: "PendingWrite") -> str:
    actor = "" if write.actor_id is None else f" by {on_one_line(write.actor_id)}"
    what = f"{write.operation_id}  {write.writer_kind} on {branch_name(write.branch)}{actor}"
    match write.is_alive:
        case True:
            became = "its writer is at work"
        case False:
            became = "its writer died; the next write or open settles it"
        case None:
            became = "whether its writer is at work is not known to a reader"
    return f"{what}, {moment(write.started_at_micros)}: {became}"


def _tables(found: "GraphStatus") -> str:
    rows = [
        [
            table.table_key,
            str(table.rows),
            str(table.version),
            str(table.versions),
            str(table.fragments),
            size_of(table.bytes),
        ]
        for table in found.tables
    ]
    rows.append(
        [MANIFEST_DIR, "", "", str(found.manifest.versions), "", size_of(found.manifest.bytes)],
    )
    head = ["table", "rows", "version", "versions", "fragments", "size"]
    return columns(head, rows, numbers=frozenset(range(1, 6)))


def _indexes(found: "GraphStatus") -> Iterator[str]:
    every = [(table.table_key, index) for table in found.tables for index in table.indexes]
    partial = [
        [key, index.property, index.kind, index.coverage, index.reason or ""]
        for key, index in every
        if index.coverage != "indexed"
    ]
    total = count(len(every), "index", "indexes")
    if not partial:
        yield _named("indexes", f"{total}, covering every row" if every else "none declared")
        return
    yield _named("indexes", f"{total}, {len(every) - len(partial)} of them covering every row")
    table = columns(["table", "property", "kind", "coverage", "reason"], partial)
    yield from (_INDENT + line for line in table.splitlines())


def _maintenance(found: "GraphStatus") -> Iterator[str]:
    if not found.optimize:
        yield _named("optimize", "nothing to do")
    for place, work in enumerate(found.optimize):
        yield _named("" if place else "optimize", f"{work.table_key}: {_work(work)}")
    cleanup = found.cleanup
    kept = f"keeping {cleanup.keep} versions of each table"
    if cleanup.obstacle is not None:
        yield _named("cleanup", f"not known: {on_one_line(cleanup.obstacle)}")
    elif cleanup.bytes:
        versions = count(cleanup.versions, "version")
        yield _named("cleanup", f"would remove {versions}, {size_of(cleanup.bytes)}, {kept}")
    else:
        yield _named("cleanup", f"nothing to remove, {kept}")


def _work(work: "OptimizeWork") -> str:
    if work.skipped is not None:
        return "skipped, it is ahead of what is published; run omnigraph repair"
    parts = []
    if work.fragments_to_fold:
        parts.append(f"{count(work.fragments_to_fold, 'fragment')} to fold")
    if work.indexes_to_fold:
        parts.append(f"indexes to fold: {', '.join(work.indexes_to_fold)}")
    if work.indexes_to_build:
        parts.append(f"indexes to build: {', '.join(work.indexes_to_build)}")
    return "; ".join(parts) or "settings of the library to remove"


def _named(name: str, text: str) -> str:
    return f"{click.style(f'{name:<{_NAME_WIDTH}}', bold=True)}{text}"
