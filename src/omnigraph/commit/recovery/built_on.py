"""A publish that should have been taken back because it could not be synced, but that others have built on.

This cannot happen with writers of this build, because a process that builds on a branch holds its publish
lock (P5 of `commit/publish.py`). Graphs that older builds wrote may show it.

R1  What a later commit recorded as synced before building on it has landed, whatever its own writer found.
R2  If no commit says so, it is unknown what a power cut would leave of it: its tables are not written until a
    person decides, or a commit has built on it in full durability; everything else goes on.
"""

from omnigraph.commit.parts import Parts
from omnigraph.commit.publish import ManifestPublisher
from omnigraph.commit.recovery.outcome import SweepResult, finish
from omnigraph.commit.sidecar import Sidecar

KEEP = 'open the graph once with durability="process" to keep it'


def settle_built_on(parts: Parts, publisher: ManifestPublisher, sidecar: Sidecar) -> SweepResult:
    """Finish the sidecar of a commit that has landed after all, or leave it with a warning (R1, R2)."""
    state = parts.coordinator.state(sidecar.branch)
    commit = state.commits.find(sidecar.graph_commit_id)
    assert commit is not None, "it was found before, and what others have built on is never taken back"
    name = f"commit {commit.graph_commit_id} on branch '{sidecar.branch.name}'"
    if state.commits.is_known_synced(commit):
        parts.warn(f"{name} stands: its writer could not sync it, but the writers that built on it did")
        return finish(parts, publisher, sidecar, state)
    go_back = f"go back with omnigraph repair --to {commit.manifest_version - 1}"
    reason = f"{name} could not be synced, and others have built on it: {KEEP}, or {go_back}"
    parts.doubts.keep(sidecar, reason)
    parts.warn(f"operation {sidecar.operation_id}: {reason}")
    return SweepResult.UNRESOLVED
