"""Tables that are ahead of what is published, as text: why, which rows that concerns, and what was done."""

from collections.abc import Iterator

from omnigraph.cli.render.columns import columns, count
from omnigraph.cli.steering import on_one_line
from omnigraph.commit.recovery.drift import DriftClass
from omnigraph.operations.repair_drift import DriftRepair, RepairAction, RepairedTable


def render_drift(result: DriftRepair) -> str:
    """Return the tables that were found ahead, and what became of them."""
    return "\n".join(_lines(result))


def _lines(result: DriftRepair) -> Iterator[str]:
    ahead = [table for table in result.tables if table.classification is not DriftClass.NO_DRIFT]
    if not ahead:
        told = count(len(result.tables), "table")
        yield f"{told} of branch {result.branch}: all are as they were published"
        return
    rows = [
        [
            table.table_key,
            str(table.pinned_version),
            str(table.head_version),
            table.classification.value,
            table.action.value,
        ]
        for table in ahead
    ]
    yield columns(["table", "published", "found", "class", "action"], rows, numbers=frozenset({1, 2}))
    for table in ahead:
        yield from _about(table)
    if result.commit is not None:
        yield f"published as commit {result.commit.graph_commit_id}"
    elif not result.confirm:
        yield _advice(ahead)


def _about(table: RepairedTable) -> Iterator[str]:
    found = table.rows
    if table.operations:
        yield f"{table.table_key}: committed by others: {', '.join(table.operations)}"
    if found.added is not None:
        told = f"{found.added} rows added, {found.changed} changed, {found.removed} removed"
        yield f"{table.table_key}: {told}"
    if found.broken_total:
        yield f"{table.table_key}: {count(found.broken_total, 'rule')} of the schema would not hold:"
        yield from (on_one_line(f"  {text}") for text in found.broken)
    if table.error is not None:
        yield on_one_line(f"{table.table_key}: {table.error}")


def _advice(ahead: list[RepairedTable]) -> str:
    in_doubt = [table for table in ahead if table.classification is not DriftClass.VERIFIED_MAINTENANCE]
    assert all(table.action is RepairAction.PREVIEW for table in ahead), "nothing was confirmed"
    if len(in_doubt) == len(ahead):
        return "nothing was changed: --confirm --force publishes these tables as they are found"
    if in_doubt:
        return "nothing was changed: --confirm publishes what is verified, --confirm --force all of it"
    return "nothing was changed: --confirm publishes these tables as they are found"
