"""What `embed` did, as text."""

from omnigraph.cli.render.columns import columns, count
from omnigraph.history.identity import branch_name
from omnigraph.operations.embed.file import FileSummary
from omnigraph.operations.embed.model import EmbedResult


def render_embed(result: EmbedResult) -> str:
    """Return the rows of each table that got vectors, and the commits."""
    branch = branch_name(result.branch)
    if result.commit is None:
        return f"nothing to embed on {branch}"
    total = count(sum(table.vectors for table in result.tables), "vector")
    table = columns(
        ["table", "rows"],
        [[table.table_key, str(table.rows)] for table in result.tables],
        numbers=frozenset({1}),
    )
    model = f" with {result.model}" if result.model else ""
    lines = [f"made {total} on {branch}{model}", "", table, "", f"commit {result.commit.graph_commit_id}"]
    if result.index_commit is not None:
        lines.append(f"indexes built in commit {result.index_commit.graph_commit_id}")
    return "\n".join(lines)


def render_file_summary(summary: FileSummary) -> str:
    """Return how many records of a file were changed."""
    changed = f"cleaned {summary.cleaned_records}"
    if summary.mode != "clean":
        changed = f"embedded {summary.embedded_records}"
    selected = f"{summary.selected_records} selected"
    return f"{changed} of {selected} ({count(summary.records, 'record')} in all): {summary.output}"
