"""One snapshot for a read that many take part in: a branch now, a commit, or a moment in the past."""

from omnigraph.catalog.scope import nearest_name
from omnigraph.core.errors import BadRequest, CommitNotFound, NotFoundError
from omnigraph.history.commits import GraphCommit
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.storage.pinned import PinnedTable


def pin_snapshot(
    graph: OpenGraph,
    *,
    branch: str | None = None,
    commit_id: str | None = None,
    before_micros: int | None = None,
) -> Snapshot:
    """Return what a branch shows now, at a commit of it, or at a moment: the newest commit not after it.

    Raises:
        BranchNotFound: there is no such branch.
        CommitNotFound: the branch has no such commit.
        NotFoundError: the moment is before the first commit.
    """
    assert commit_id is None or before_micros is None, "one of them says when"
    branch = graph.enter(None, "read", branch)
    state = graph.state(branch)
    if commit_id is not None:
        found = state.commits.find(commit_id)
        if found is None:
            raise CommitNotFound(commit_id)
        return state.snapshot_at(found.manifest_version)
    if before_micros is not None:
        return state.snapshot_at(_commit_at(state, before_micros).manifest_version)
    return state.snapshot()


def pin_table(graph: OpenGraph, snapshot: Snapshot, name: str) -> PinnedTable:
    """Return one table of a snapshot, by the name of its type or its table key.

    Raises:
        BadRequest: the snapshot has no such table.
    """
    keys = [name] if ":" in name else [f"node:{name}", f"edge:{name}"]
    for key in keys:
        entry = snapshot.entries.get(key)
        if entry is not None:
            return PinnedTable(graph.parts.root.uri, graph.parts.address(entry), entry.version)
    known = [*snapshot.entries] if ":" in name else [key.split(":", 1)[1] for key in snapshot.entries]
    help = nearest_name(name, known)
    raise BadRequest(f"unknown type '{name}'{f'; {help}' if help else ''}")


def _commit_at(state: ManifestState, micros: int) -> GraphCommit:
    """Return the newest commit of the first-parent chain that was there at a moment."""
    commit: GraphCommit | None = state.head
    while commit is not None and commit.created_at > micros:
        parent = commit.parent_commit_id
        commit = None if parent is None else state.commits.find(parent)
    if commit is None:
        raise NotFoundError("the graph has no commit that old")
    return commit
