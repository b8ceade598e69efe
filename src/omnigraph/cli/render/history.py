"""Commits, snapshots and recoveries as text."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from omnigraph.cli.render.columns import columns, count, moment
from omnigraph.cli.steering import on_lines, on_one_line
from omnigraph.history.identity import branch_name

if TYPE_CHECKING:
    from omnigraph.commit.recovery.audit import RecoveryRecord
    from omnigraph.history.commits import GraphCommit
    from omnigraph.history.state import Snapshot

_NOBODY = "-"


def render_commits(commits: "Sequence[GraphCommit]") -> str:
    """Return one line per commit."""
    if not commits:
        return "no commits"
    rows = [
        [
            commit.graph_commit_id,
            str(commit.manifest_version),
            moment(commit.created_at),
            branch_name(commit.manifest_branch),
            commit.actor_id or _NOBODY,
            commit.message or "",
        ]
        for commit in commits
    ]
    head = ["commit", "version", "time", "branch", "actor", "message"]
    return columns(head, rows, numbers=frozenset({1}))


def render_commit(commit: "GraphCommit") -> str:
    """Return every field of one commit, and its message in full."""
    fields = {
        "commit": commit.graph_commit_id,
        "branch": branch_name(commit.manifest_branch),
        "version": str(commit.manifest_version),
        "parent": commit.parent_commit_id,
        "merged": commit.merged_parent_commit_id,
        "actor": commit.actor_id,
        "time": moment(commit.created_at),
    }
    lines = [
        f"{click.style(f'{name:<8}', bold=True)}{on_one_line(value or _NOBODY)}"
        for name, value in fields.items()
    ]
    message = (
        ["", *(f"    {line}" for line in on_lines(commit.message).splitlines())] if commit.message else []
    )
    return "\n".join([*lines, *message])


def render_snapshot(snapshot: "Snapshot") -> str:
    """Return the version, and one line per table."""
    head = snapshot.head
    branch = branch_name(snapshot.branch)
    title = f"branch {branch} at version {head.manifest_version}, commit {head.graph_commit_id}"
    rows = [
        [entry.table_key, str(entry.version), entry.pin.branch, str(entry.row_count)]
        for entry in snapshot.entries.values()
    ]
    table = columns(["table", "version", "branch", "rows"], rows, numbers=frozenset({1, 3}))
    return "\n".join([title, f"internal-schema {snapshot.stamp}", "", table])


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
    yield f"{moment(record.created_at)}  {kind}{writer}{author}, {count(len(record.outcomes), 'table')}"
    yield f"  operation {record.operation_id}{commit}"
    for found in record.outcomes:
        yield f"  {found.table_key}: version {found.from_version} to {found.to_version}"
