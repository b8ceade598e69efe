"""What a repair gives up, and what is in quarantine, as text."""

from collections.abc import Iterator, Sequence

from omnigraph.cli.render.columns import columns, count, moment
from omnigraph.cli.render.history import render_commits
from omnigraph.commit.recovery.repair import Loss
from omnigraph.commit.recovery.restore import Quarantined
from omnigraph.history.identity import branch_name
from omnigraph.wire.documents import commit_document


def render_loss(loss: Loss) -> str:
    """Return the commits and the rows that going back gives up."""
    return "\n".join(_loss_lines(loss))


def _loss_lines(loss: Loss) -> Iterator[str]:
    yield (
        f"going back from version {loss.newest_version} to {loss.to_version} of branch "
        f"{branch_name(loss.branch)} gives up {count(len(loss.commits), 'commit')} that can be read:"
    )
    if loss.commits:
        yield render_commits([commit_document(commit) for commit in loss.commits])
    if loss.untold:
        versions = ", ".join(map(str, loss.untold))
        yield f"versions whose commit can no longer be read, or that had none: {versions}"
    if loss.tables:
        rows = [[found.table_key, str(found.rows), str(found.rows_after)] for found in loss.tables]
        yield columns(["table", "rows now", "rows then"], rows, numbers=frozenset({1, 2}))


def render_quarantined(found: Sequence[Quarantined]) -> str:
    """Return one line per dataset."""
    if not found:
        return "nothing is in quarantine"
    rows = [
        [
            part.quarantine_id,
            moment(part.created_at_micros),
            versions.dataset,
            ", ".join(map(str, versions.versions)),
            part.obstacle or "can be put back",
        ]
        for part in found
        for versions in part.datasets
    ]
    return columns(["id", "time", "dataset", "versions", "state"], rows)
