"""From a target to one snapshot: a branch now, a commit, a manifest version, or a moment in the past.

A commit is looked for on the given branch first, then on every other one: a branch that inherited it shows
the same state. What only a deleted branch had is gone.
"""

from datetime import datetime
from typing import TypeAlias

import pyarrow as pa

from omnigraph.catalog.arrow_schema import with_moments
from omnigraph.catalog.bind_expression import hinting
from omnigraph.core.errors import BadRequest, BranchNotFound, CommitNotFound, NotFoundError
from omnigraph.core.values import named
from omnigraph.history.branches import trimmed_name
from omnigraph.history.commits import GraphCommit
from omnigraph.history.identity import MAIN
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.reclaimed import at_head
from omnigraph.storage.tables.pinned import PinnedTable

SnapshotLike: TypeAlias = (
    Snapshot | str | int | datetime
)  # also the id of a commit, a manifest version, a moment
Target: TypeAlias = Snapshot | str  # also the name of a branch, or the id of a commit


def resolve(graph: OpenGraph, target: Target) -> Snapshot:
    """Return what a branch shows now, or what a commit showed.

    Raises:
        NotFoundError: there is neither a branch nor a commit of that name.
    """
    if isinstance(target, Snapshot):
        return target
    name = trimmed_name(target)
    try:
        return graph.newest(name).snapshot()
    except BranchNotFound:
        pass
    try:
        return resolve_snapshot(graph, MAIN, name)
    except CommitNotFound:
        raise NotFoundError(f"there is neither a branch nor a commit '{name}'") from None


def read_target(graph: OpenGraph, target: Target, actor: str | None) -> Snapshot:
    """Return what a target shows to an actor; one that may not read its branch learns nothing about it.

    Raises:
        NotFoundError: there is neither a branch nor a commit of that name.
        PolicyDenied: the actor may not read it.
    """
    graph.enter(actor, "read", _branch_named(graph, target))
    snapshot = resolve(graph, target)
    graph.enter(actor, "read", snapshot.branch)
    return snapshot


def _branch_named(graph: OpenGraph, target: Target) -> str | None:
    if isinstance(target, Snapshot):
        return target.branch
    name = trimmed_name(target)
    return name if graph.parts.branches.find(name) is not None else None


def resolve_snapshot(graph: OpenGraph, branch: str, snapshot: SnapshotLike) -> Snapshot:
    """Return a past state; versions and times are those of the branch.

    Raises:
        CommitNotFound: no live branch has a commit with that id.
        VersionNotFound: the branch has no such manifest version.
        NotFoundError: the moment is before the first commit.
        BadRequest: the value is none of these.
    """
    match snapshot:
        case bool():
            pass
        case Snapshot():
            return snapshot
        case datetime():
            return graph.state(branch).snapshot_at(_version_at(graph, branch, snapshot))
        case int():
            return graph.state(branch).snapshot_at(snapshot)
        case str():
            state, commit = find_commit(graph, snapshot, branch)
            return state.snapshot_at(commit.manifest_version)
    expected = "a snapshot, the id of a commit, a manifest version or a time"
    raise BadRequest(f"expected {expected}, not {named(snapshot)}")


def find_commit(graph: OpenGraph, commit_id: str, branch: str = MAIN) -> tuple[ManifestState, GraphCommit]:
    """Return a commit and the state of a branch that shows it, the given branch first.

    Raises:
        CommitNotFound: no live branch has it.
    """
    state = graph.state(branch)
    commit = state.commits.find(commit_id)
    if commit is not None:
        return state, commit
    for name in graph.parts.branches.names():
        if name == branch:
            continue
        try:
            state = graph.state(name)
        except BranchNotFound:  # deleted since it was listed
            continue
        commit = state.commits.find(commit_id)
        if commit is not None:
            return state, commit
    raise CommitNotFound(commit_id)


def pin_snapshot(
    graph: OpenGraph,
    *,
    branch: str | None = None,
    commit_id: str | None = None,
    before_micros: int | None = None,
) -> Snapshot:
    """Return what a branch shows now, at a commit, or at a moment: the newest commit not after it.

    Raises:
        BranchNotFound: there is no such branch.
        CommitNotFound: no branch has such a commit.
        NotFoundError: the moment is before the first commit.
    """
    assert commit_id is None or before_micros is None, "one of them says when"
    name = graph.enter(None, "read", branch)
    if commit_id is not None:
        return resolve_snapshot(graph, name, commit_id)
    if before_micros is None:
        return graph.newest(name).snapshot()
    state = graph.state(name)
    return state.snapshot_at(_commit_at(state, before_micros).manifest_version)


def pin_table(graph: OpenGraph, snapshot: Snapshot, name: str) -> PinnedTable:
    """Return one table of a snapshot, by the name of its type or its table key.

    Raises:
        BadRequest: the snapshot has no such table.
    """
    if not isinstance(name, str):
        raise BadRequest(f"the name of a type must be a text, not {named(name)}")
    keys = [name] if ":" in name else [f"node:{name}", f"edge:{name}"]
    for key in keys:
        entry = snapshot.entries.get(key)
        if entry is not None:
            return graph.parts.pinned(entry)
    known = [*snapshot.entries] if ":" in name else [key.split(":", 1)[1] for key in snapshot.entries]
    raise BadRequest(f"unknown type '{name}'{hinting(name, known)}")


def read_table(graph: OpenGraph, name: str, *, branch: str | None, actor: str | None) -> pa.Table:
    """Return all rows of a type on a branch now, by id; a `DateTime` is a timestamp in UTC.

    Raises:
        BadRequest: there is no such type.
        HistoricalVersionReclaimed: the table's version was cleaned up.
    """
    branch, store = graph.enter(actor, "read", branch), graph.parts.store

    def read(state: ManifestState) -> pa.Table:
        return store.scan(pin_table(graph, state.snapshot(), name).open(store))

    return with_moments(at_head(graph, lambda: graph.newest(branch), read).sort_by("id"))


def _version_at(graph: OpenGraph, branch: str, moment: datetime) -> int:
    """Return the manifest version of a branch at a time; one without a zone is in UTC."""
    from datetime import UTC

    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    micros = round((aware - datetime.fromtimestamp(0, UTC)).total_seconds() * 1_000_000)
    return _commit_at(graph.state(branch), micros).manifest_version


def _commit_at(state: ManifestState, micros: int) -> GraphCommit:
    """Return the newest commit of the first-parent chain that existed at a time."""
    commit = state.commits.head
    while commit is not None and commit.created_at > micros:
        parent = commit.parent_commit_id
        commit = None if parent is None else state.commits.find(parent)
    if commit is None:
        raise NotFoundError("the graph has no commit that old")
    return commit
