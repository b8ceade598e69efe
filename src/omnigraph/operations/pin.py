"""From a target to one snapshot: a branch now, a commit, a manifest version, or a moment in the past.

A commit is looked for on the given branch first, then on every other one: a branch that inherited it shows
the same state. What only a deleted branch had is gone.

D1  A past state is read with the right to read the branch on which its commit landed. Who may read some
    branches and not all of them gets one answer for a commit on another branch and for one that is not there.
D2  So it is where a name may be that of a branch or of a commit.
D3  A call names a branch or a snapshot. Beside a snapshot that may be read, a branch would be looked up
    without being asked for, and the answer would tell whether it is there.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import pyarrow as pa

from omnigraph.catalog.arrow_schema import shown_rows
from omnigraph.core.errors import BadRequest, BranchNotFound, CommitNotFound, NotFoundError, PolicyDenied
from omnigraph.core.names import refuse_both
from omnigraph.core.nearest import hinting
from omnigraph.core.values import named
from omnigraph.history.branches import trimmed_name
from omnigraph.history.commits import GraphCommit
from omnigraph.history.identity import MAIN, branch_name
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.operations.context import OpenGraph, named_branch
from omnigraph.operations.reclaimed import at_head
from omnigraph.policy.request import AccessRequest, Action
from omnigraph.storage.tables.pinned import PinnedTable

SnapshotLike: TypeAlias = (
    Snapshot | str | int | datetime
)  # also the id of a commit, a manifest version, a moment


@dataclass(frozen=True, slots=True)
class PinnedTarget:
    """What a branch has shown since it began, at a commit: of a page that continues where another ended."""

    name: str
    commit_id: str


Target: TypeAlias = Snapshot | PinnedTarget | str  # also the name of a branch, or the id of a commit


def read_target(graph: OpenGraph, target: Target, actor: str | None) -> Snapshot:
    """Return what a target shows to an actor; one that may not read its branch learns nothing about it (D2).

    Raises:
        NotFoundError: there is neither a branch nor a commit of that name.
        CommitNotFound: the branch has never shown the commit that it is pinned to.
        PolicyDenied: the actor may not read it.
    """
    if isinstance(target, Snapshot):
        return read_snapshot(graph, actor, MAIN, target)
    name = trimmed_name(target.name if isinstance(target, PinnedTarget) else target)
    may_read_all = graph.enter_somewhere(actor, Action.READ)
    is_branch = (found := _of_branch(graph, actor, name, may_read_all=may_read_all)) is not None
    found = found or _of_commit(graph, actor, name, may_read_all=may_read_all)
    if not isinstance(target, PinnedTarget) or found.head.graph_commit_id == target.commit_id:
        return found
    state = graph.state(name) if is_branch else None
    commit = None if state is None else state.commits.find(target.commit_id)
    if state is None or commit is None or commit.manifest_version < _beginning(graph, state):
        raise CommitNotFound(target.commit_id)
    return state.snapshot_at(commit.manifest_version)


def _beginning(graph: OpenGraph, state: ManifestState) -> int:
    """Return the version of the first commit that a branch has shown: what is before it landed elsewhere."""
    if state.branch.is_main:
        return 0
    start = graph.parts.branches.require(state.branch.name, state.branch.ref).parent_manifest_version
    first = state.commits.head_at(start)
    assert first is not None, "a branch begins at a version that has a commit"
    return first.manifest_version


def _of_branch(graph: OpenGraph, actor: str | None, name: str, *, may_read_all: bool) -> Snapshot | None:
    """Return what a branch shows now; none if there is no such branch, or the actor may not read it."""
    if not may_read_all and not graph.gate.allows(AccessRequest(actor, Action.READ, name)):
        return None  # a commit of that name may still be readable: what is said must not depend on the branch
    try:
        return graph.newest(name).snapshot()
    except BranchNotFound:
        return None


def _of_commit(graph: OpenGraph, actor: str | None, name: str, *, may_read_all: bool) -> Snapshot:
    missing = NotFoundError(f"there is neither a branch nor a commit '{name}'")
    try:
        found = resolve_snapshot(graph, MAIN, name)
    except NotFoundError:
        found = None
    if found is not None and (may_read_all or _may_read(graph, actor, found)):
        return found
    if not may_read_all:
        graph.enter(actor, Action.READ, name)  # denied, unless only a commit could have been denied
    raise missing


def read_view(
    graph: OpenGraph, actor: str | None, *, branch: str | None, snapshot: SnapshotLike | None
) -> Snapshot:
    """Return what a branch shows to an actor: now, or at a past state (D1).

    Raises:
        BranchNotFound: there is no such branch.
        BadRequest: both a branch and a snapshot are named.
        PolicyDenied, CommitNotFound, VersionNotFound, NotFoundError: as `read_snapshot`.
    """
    refuse_both(branch, snapshot)
    if snapshot is None:
        return graph.newest(graph.enter(actor, Action.READ, branch)).snapshot()
    return read_snapshot(graph, actor, MAIN, snapshot)


def read_snapshot(graph: OpenGraph, actor: str | None, branch: str, snapshot: SnapshotLike) -> Snapshot:
    """Return a past state to an actor that may read the branch on which its commit landed (D1).

    Raises:
        PolicyDenied: the actor may not; or it may read some branches only, and there is no such snapshot.
        CommitNotFound, VersionNotFound, NotFoundError, BadRequest: as `resolve_snapshot`.
    """
    may_read_all = graph.enter_somewhere(actor, Action.READ)
    return permitted_snapshot(graph, actor, branch, snapshot, may_read_all=may_read_all)


def permitted_snapshot(
    graph: OpenGraph, actor: str | None, branch: str, snapshot: SnapshotLike, *, may_read_all: bool
) -> Snapshot:
    """Return a past state to an actor of whom it is known that they may read something (D1).

    Raises:
        PolicyDenied, CommitNotFound, VersionNotFound, NotFoundError, BadRequest: as `read_snapshot`.
    """
    try:
        found = resolve_snapshot(graph, branch, snapshot)
    except NotFoundError:
        if may_read_all:
            raise
        raise _denied(actor, snapshot) from None
    if not may_read_all and not _may_read(graph, actor, found):
        raise _denied(actor, snapshot)
    return found


def _may_read(graph: OpenGraph, actor: str | None, snapshot: Snapshot) -> bool:
    return graph.gate.allows(AccessRequest(actor, Action.READ, branch_name(snapshot.head.manifest_branch)))


def _denied(actor: str | None, snapshot: SnapshotLike) -> PolicyDenied:
    """Return the one answer for what is not there and what is not allowed (D1)."""
    name = snapshot.commit_id if isinstance(snapshot, Snapshot) else str(snapshot)
    reason = f"policy denied action '{Action.READ}' on snapshot '{name}' for actor '{actor}'"
    return PolicyDenied(action=Action.READ.value, actor=actor, reason=reason)


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
    actor: str | None = None,
) -> Snapshot:
    """Return what a branch shows now, at a commit, or at a moment: the newest commit not after it.

    Raises:
        PolicyDenied: the actor may not read the branch, or that on which the commit landed.
        BranchNotFound: there is no such branch.
        CommitNotFound: no branch has such a commit.
        NotFoundError: the moment is before the first commit.
    """
    assert commit_id is None or before_micros is None, "one of them says when"
    if commit_id is not None:
        return read_snapshot(graph, actor, named_branch(branch), commit_id)
    name = graph.enter(actor, Action.READ, branch)
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
    """Return all rows of a type on a branch now, by id.

    A `DateTime` is a timestamp in UTC, a reference to bytes elsewhere its URI as a text.

    Raises:
        BadRequest: there is no such type.
        HistoricalVersionReclaimed: the table's version was cleaned up.
    """
    branch, store = graph.enter(actor, Action.READ, branch), graph.parts.store

    def read(state: ManifestState) -> pa.Table:
        snapshot = state.snapshot()
        pinned = pin_table(graph, snapshot, name)
        type_ = graph.catalog_of(snapshot).type_of(pinned.table_key)
        return shown_rows(store.scan(pinned.open(store)).sort_by("id"), type_)

    return at_head(graph, lambda: graph.newest(branch), read)


def _version_at(graph: OpenGraph, branch: str, moment: datetime) -> int:
    """Return the manifest version of a branch at a time; one without a zone is in UTC."""
    from datetime import UTC

    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    micros = round((aware - datetime.fromtimestamp(0, UTC)).total_seconds() * 1_000_000)
    return _commit_at(graph.state(branch), micros).manifest_version


def _commit_at(state: ManifestState, micros: int) -> GraphCommit:
    """Return the newest commit of the first-parent chain that existed at a time."""
    commit = state.commits.head
    while commit is not None and commit.created_at_micros > micros:
        parent = commit.parent_commit_id
        commit = None if parent is None else state.commits.find(parent)
    if commit is None:
        raise NotFoundError("the graph has no commit that old")
    return commit
