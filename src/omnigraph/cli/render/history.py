"""Commits, snapshots and recoveries as text."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from omnigraph.cli.render.columns import columns, count, moment
from omnigraph.cli.steering import on_lines, on_one_line
from omnigraph.client.answer import Document
from omnigraph.wire.commit_filter import MAIN

if TYPE_CHECKING:
    from omnigraph.commit.recovery.audit import RecoveryRecord

_NOBODY = "-"


def render_commits(commits: Sequence[Document]) -> str:
    """Return one line per commit."""
    if not commits:
        return "no commits"
    rows = [
        [
            commit["graph_commit_id"],
            str(commit["manifest_version"]),
            moment(commit["created_at"]),
            commit["manifest_branch"] or MAIN,
            _author(commit),
            commit.get("message", ""),
        ]
        for commit in commits
    ]
    head = ["commit", "version", "time", "branch", "actor", "message"]
    return columns(head, rows, numbers=frozenset({1}))


def render_commit(commit: Document) -> str:
    """Return every field of one commit, and its message in full."""
    fields = {
        "commit": commit["graph_commit_id"],
        "branch": commit["manifest_branch"] or MAIN,
        "version": str(commit["manifest_version"]),
        "parent": commit["parent_commit_id"],
        "merged": commit["merged_parent_commit_id"],
        "actor": _author(commit),
        "time": moment(commit["created_at"]),
    }
    lines = [
        f"{click.style(f'{name:<8}', bold=True)}{on_one_line(value or _NOBODY)}"
        for name, value in fields.items()
    ]
    text = commit.get("message")
    message = ["", *(f"    {line}" for line in on_lines(text).splitlines())] if text else []
    return "\n".join([*lines, *message, *_operations(commit)])


def _author(commit: Document) -> str:
    """Return who asked for a commit: of several mutations, everyone who asked for one of them."""
    operations = commit.get("operations")
    if commit["actor_id"] is not None or not operations:
        return commit["actor_id"] or _NOBODY
    return ", ".join(dict.fromkeys(item["actor_id"] or _NOBODY for item in operations))


def _operations(commit: Document) -> list[str]:
    """Return one line for each of the mutations that were committed together."""
    rows = [
        [
            item["query_name"],
            item["actor_id"] or _NOBODY,
            str(item["affected_nodes"]),
            str(item["affected_edges"]),
            item.get("message") or "",
        ]
        for item in commit.get("operations", ())
    ]
    head = ["operation", "actor", "nodes", "edges", "message"]
    return ["", columns(head, rows, numbers=frozenset({2, 3}))] if rows else []


def render_snapshot(shown: Document) -> str:
    """Return the version, and one line per table."""
    title = (
        f"branch {shown['branch']} at version {shown['manifest_version']}, commit {shown['graph_commit_id']}"
    )
    rows = [
        [
            table["table_key"],
            str(table["table_version"]),
            table["table_branch"] or MAIN,
            str(table["row_count"]),
        ]
        for table in shown["tables"]
    ]
    table = columns(["table", "version", "branch", "rows"], rows, numbers=frozenset({1, 3}))
    schema = f"internal-schema {shown['internal_schema_version']}"
    return "\n".join([on_one_line(title), on_one_line(schema), "", table])


def render_recoveries(records: "Sequence[RecoveryRecord]") -> str:
    """Return each recovery with what became of its tables."""
    if not records:
        return "no recoveries"
    return "\n".join(line for record in records for line in _recovery(record))


def _recovery(record: "RecoveryRecord") -> Iterator[str]:
    from omnigraph.commit.sidecar import WriterKind

    writer = "" if record.writer_kind is None else f" of a {WriterKind(record.writer_kind).wire}"
    author = f" by {on_one_line(record.recovery_for_actor)}" if record.recovery_for_actor else ""
    commit = f", commit {record.graph_commit_id}" if record.graph_commit_id else ""
    kind = click.style(record.recovery_kind.wire, bold=True)
    at = moment(record.created_at_micros)
    yield f"{at}  {kind}{writer}{author}, {count(len(record.outcomes), 'table')}"
    yield f"  operation {record.operation_id}{commit}"
    for found in record.outcomes:
        yield f"  {found.table_key}: version {found.from_version} to {found.to_version}"
