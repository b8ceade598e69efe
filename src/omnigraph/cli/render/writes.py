"""What loads, mutations and index builds did, as text."""

from collections.abc import Iterable, Sequence

from omnigraph.cli.render.columns import columns, count
from omnigraph.history.coordinator import MAIN
from omnigraph.operations.ensure_indices import IndexResult, PendingIndex
from omnigraph.operations.index_status import TableIndexes
from omnigraph.operations.load import LoadResult
from omnigraph.operations.mutate import MutationResult


def render_mutation(result: MutationResult) -> str:
    """Return the counts and the commit."""
    counts = f"{count(result.affected_nodes, 'node')} and {count(result.affected_edges, 'edge')} affected"
    where = f"{result.query_name} on {result.branch or MAIN}"
    if result.commit is None:
        return f"{where}: {counts}, nothing to commit"
    return f"{where}: {counts}\ncommit {result.commit.graph_commit_id}"


def render_load(result: LoadResult) -> str:
    """Return the rows of each table, and the commits."""
    if result.commit is None:
        return f"no records in the input: nothing loaded into {result.branch or MAIN}"
    total = count(sum(rows for _, rows in result.tables), "row")
    title = f"loaded {total} into {result.branch or MAIN} ({result.mode})"
    table = columns(
        ["table", "rows"], [[key, str(rows)] for key, rows in result.tables], numbers=frozenset({1})
    )
    lines = [title, "", table, "", f"commit {result.commit.graph_commit_id}"]
    if result.index_commit is not None:
        lines.append(f"indexes built in commit {result.index_commit.graph_commit_id}")
    return "\n".join(lines)


def render_index_result(result: IndexResult) -> str:
    """Return what was built."""
    if result.commit is None:
        return "nothing to build"
    return f"indexes built in commit {result.commit.graph_commit_id}"


def render_pending(indexes: Sequence[PendingIndex]) -> str:
    """Return a warning: every index that is not there, and why."""
    listed = [f"  {index.table_key} {index.property}: {index.reason}" for index in indexes]
    return "\n".join([f"warning: {count(len(indexes), 'index', 'indexes')} pending", *listed])


def render_index_status(tables: Iterable[TableIndexes]) -> str:
    """Return one line per index."""
    rows = [
        [table.table_key, index.property, index.kind, index.coverage, index.reason or ""]
        for table in tables
        for index in table.indexes
    ]
    return columns(["table", "property", "kind", "coverage", "reason"], rows)
