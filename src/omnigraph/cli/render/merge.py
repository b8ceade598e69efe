"""What a merge did, or what prevents one, as text."""

from omnigraph.cli.render.columns import count
from omnigraph.cli.render.errors import conflict_line
from omnigraph.client.answer import Document


def render_merge(merged: Document, *, is_dry_run: bool) -> str:
    """Return how a merge ended, or how it would end."""
    where, outcome = f"{merged['source']} into {merged['target']}", merged["outcome"]
    if not is_dry_run:
        lines = [f"merged {where}: {outcome}"]
        if merged["commit"] is not None:
            lines.append(f"commit {merged['commit']['graph_commit_id']}")
        if merged.get("branch_deleted"):
            lines.append(f"deleted branch {merged['source']}")
        return "\n".join(lines)
    conflicts = merged["conflicts"]
    title = f"would merge {where}: {outcome}; nothing was written"
    if conflicts:
        title = f"cannot merge {where}: {count(len(conflicts), 'conflict')}; nothing was written"
    return "\n".join([title, *map(conflict_line, conflicts)])
