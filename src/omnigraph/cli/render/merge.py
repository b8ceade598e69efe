"""What a merge did, or what prevents one, as text."""

from omnigraph.cli.render.columns import count
from omnigraph.cli.render.errors import render_conflicts
from omnigraph.operations.merge.merge import MergeResult


def render_merge(result: MergeResult, *, is_dry_run: bool) -> str:
    """Return how a merge ended, or how it would end."""
    where = f"{result.source} into {result.target}"
    if not is_dry_run:
        lines = [f"merged {where}: {result.outcome}"]
        if result.commit is not None:
            lines.append(f"commit {result.commit.graph_commit_id}")
        if result.branch_deleted:
            lines.append(f"deleted branch {result.source}")
        return "\n".join(lines)
    title = f"would merge {where}: {result.outcome}; nothing was written"
    if result.conflicts:
        title = f"cannot merge {where}: {count(len(result.conflicts), 'conflict')}; nothing was written"
    return "\n".join([title, *render_conflicts(result.conflicts)])
