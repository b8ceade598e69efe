"""Branches: create, list, delete.

J1  A branch costs one ref on the manifest and one control object, whatever the number of tables; the tables
    are forked when the branch first writes them.
J2  Logical deletion is one step. The storage it leaves behind is invisible; nothing waits for its removal.
J3  Storage that another branch came to need while a branch was deleted stays; so does what an unreadable
    branch may need, and that of a branch in whose commits two others may meet: what those have in common is
    read there when they are merged. Commits that only one chain took are ancestors of a commit of that chain,
    and the branches that have them meet there.
J4  A branch is removed under its publish lock, after a look at its head where that must be a known one: no
    writer on this host publishes between the two, and one that waits finds the branch gone.
J5  A branch begins at a version that is on the disk: the process that creates one syncs it, under the
    source's publish lock.
J6  A damaged branch can be deleted, and does not prevent the deletion of another. One whose control object
    the disk or the store does not give just now does: it may have been created from that other one.
J7  On an object store a branch ends only if nothing was published on it since the look (`ending`): a writer
    that was taken for dead deletes nothing that others have published.

What only a change needs is imported where it is used: branches are listed from the shell all the time.
"""

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.commit.parts import Parts
from omnigraph.core.cancellation import begin_effects
from omnigraph.core.errors import (
    AlreadyExistsError,
    BadRequest,
    BranchInUse,
    BranchMoved,
    BranchNotFound,
    InvariantViolation,
    OmnigraphError,
    SchemaApplyInProgress,
    StorageError,
)
from omnigraph.core.failpoint import hit
from omnigraph.history.branches import (
    Branch,
    check_branch_name,
    control_file,
    given_name,
    mint_ref,
    source_name,
)
from omnigraph.history.commits import GraphCommit
from omnigraph.history.identity import MAIN, stored_name
from omnigraph.history.state import ManifestState
from omnigraph.operations.context import OpenGraph
from omnigraph.policy.request import Action
from omnigraph.storage.files.version_file import version_file_name


def list_branches(graph: OpenGraph, *, actor: str | None = None) -> list[str]:
    """Return the names of all branches, sorted.

    Raises:
        GraphDamaged: a branch that was never deleted is missing.
    """
    graph.enter_whole(actor, Action.READ)
    graph.parts.branches.copies.refuse_lost()
    return graph.parts.branches.names()


def create_branch(
    graph: OpenGraph, name: str, *, from_: str | None = None, actor: str | None = None
) -> Branch:
    """Create a branch from the head of another (J1); no commit is written.

    Raises:
        BadRequest: the name is reserved or not allowed; nothing was created.
        AlreadyExistsError: there is a branch of that name.
        GraphDamaged: the control object of a branch of that name was lost.
        BranchNotFound: the branch to start from does not exist.
        ConflictError: another process holds the publish lock of the branch to start from.
        StorageError: it is unknown whether the branch exists.
    """
    from omnigraph.commit.reclaim import drop_refs

    graph.enter_target(actor, Action.BRANCH_CREATE, name, source=given_name(from_))
    name = check_branch_name(name)
    graph.require_writable()
    source = source_name(from_)
    graph.heal_if_due()
    parts = graph.parts
    with parts.queues.schema_gate, parts.queues.branch_gates([source, name]):
        _refuse_schema_apply(parts)
        if _exists(parts, name):
            raise _taken(name)
        parts.branches.copies.refuse_lost(control_file(name))
        with graph.publisher.turn(source):
            graph.publisher.supersede_unsynced(graph.require_branch(source).ref)
            state = graph.state(source)
            if state.stamp < INTERNAL_SCHEMA_VERSION:  # its commits lie where the new branch could not look
                graph.publisher.bring_up(state.branch)
                state = graph.state(source)
            _refuse_name_in_history(state, name)
            graph.publisher.make_durable(state.ref, state.version)  # J5
            ref = mint_ref(name, parts.new_id())
            branch = Branch(name, ref, stored_name(source), state.version, parts.clock(), actor)
            address = parts.coordinator.address(branch.ref)
            parts.check_writer()
            begin_effects()
            parts.refs.create(parts.coordinator.address(state.ref), state.version, branch.ref)
        files = parts.refs.files(address, state.version)
        parts.syncer.sync(files, stage="manifest")
        own = parts.summer.sum(file for file in files if file.endswith(version_file_name(state.version)))
        parts.coordinator.manifest.note(address, state.version, is_synced=parts.syncer.is_active, sums=own)
        hit("branch_create.post_ref_pre_control")
        if not parts.branches.create(branch):
            drop_refs(parts, [address])
            raise _taken(name)
        if not parts.branches.is_live(state.branch):
            # The source was deleted by another process in the meantime: its storage may already be going.
            parts.branches.delete(branch)
            drop_refs(parts, [address])
            raise BranchNotFound(source)
        _keep_copy(parts, branch)
    return branch


def delete_branch(
    graph: OpenGraph,
    name: str,
    *,
    actor: str | None = None,
    ref: str | None = None,
    head: GraphCommit | None = None,
) -> None:
    """Delete a branch and the commits that only it has (J2).

    With a ref, only that incarnation of it; with a head, only if it has nothing newer (J4).

    Raises:
        BadRequest: main cannot be deleted.
        BranchNotFound: there is no branch of that name, or it has been replaced by another.
        BranchInUse: another branch was created from it or reads its tables, or a writer is publishing on it.
        BranchMoved: it has commits beyond that head.
    """
    branch = graph.enter_target(actor, Action.BRANCH_DELETE, name)
    graph.require_writable()
    if branch == MAIN:
        raise BadRequest("branch 'main' cannot be deleted")
    graph.heal_if_due()
    parts = graph.parts
    with parts.queues.schema_gate, parts.queues.branch_gates([branch]):
        _refuse_schema_apply(parts)
        try:
            captured = parts.branches.require(branch, ref)
            if not _exists(parts, branch):
                raise BranchNotFound(branch)
        except InvariantViolation as error:
            if head is not None:  # it is unknown whether it has something newer
                raise
            _delete_unreadable(parts, branch, error)
            return
        state = graph.state(branch) if head is not None else _state_if_readable(graph, branch)
        tables = [] if state is None else [(entry.table_key, branch) for entry in state.tables.entries()]
        with parts.queues.acquire_many(tables):
            parts.check_writer()
            is_certain = _refuse_use(graph, actor, captured, state)
            with graph.publisher.publish_lock(branch) as is_held:
                captured = parts.branches.require(branch, captured.ref)
                if state is not None:
                    state = parts.coordinator.state(captured.identity)
                if head is not None:
                    assert state is not None, "it was read for the comparison"
                    _refuse_newer(state, branch, head, is_alone=is_held)
                hit("branch_delete.post_look_pre_control")
                begin_effects()
                parts.check_writer()
                _end(parts, captured, state)
            hit("branch_delete.post_control_pre_refs")
            parts.coordinator.forget_branch(branch)
            if state is not None and is_certain:
                _let_go(graph, captured, state)


def _exists(parts: Parts, name: str) -> bool:
    """Return whether there is a branch; one whose deletion somebody has begun is decided now (J7)."""
    found = parts.branches.find(name)
    if found is None or found.ending_version is None:
        return found is not None
    from omnigraph.commit.recovery.ending import require_going_on

    try:
        require_going_on(parts, found.identity)
    except BranchNotFound:
        return False
    return True


def _keep_copy(parts: Parts, branch: Branch) -> None:
    try:
        parts.branches.copies.keep(branch.ref, branch.file, branch.to_text())
        if not parts.branches.is_live(branch.identity):
            parts.branches.copies.end(branch.ref)  # deleted by another process before there was a copy
    except OmnigraphError as error:
        parts.warn(f"no copy of the control object of branch '{branch.name}' could be kept: {error}")


def _state_if_readable(graph: OpenGraph, branch: str) -> ManifestState | None:
    try:
        return graph.state(branch)
    except (StorageError, InvariantViolation) as error:
        graph.parts.branches.require(branch)
        graph.parts.warn(f"branch '{branch}' cannot be read, so its storage is left for cleanup: {error}")
        return None


def _delete_unreadable(parts: Parts, branch: str, error: OmnigraphError) -> None:
    """Delete a branch whose control object is damaged: what it names is unknown, so all of it stays (J6)."""
    parts.branches.delete_unreadable(branch)
    parts.coordinator.forget_branch(branch)
    parts.warn(f"branch '{branch}' cannot be read, so its storage is left for cleanup: {error}")


def _refuse_name_in_history(state: ManifestState, name: str) -> None:
    """Refuse the name of an earlier branch whose commits would be in the history of the new one.

    Commits know their branch by its name, so the commits of the two could not be told apart. This happens
    only if the earlier one was lost: a branch that another was created from is never deleted.
    """
    if name in state.commits.branch_names():
        source = state.branch.name
        raise BadRequest(f"'{source}' has commits of an earlier branch '{name}': choose another name")


def _refuse_schema_apply(parts: Parts) -> None:
    """Refuse to make or delete a branch beside a schema change that wants to be alone."""
    from omnigraph.commit.schema_lock import living_holder

    holder = living_holder(parts)
    if holder is not None and holder.is_exclusive:
        raise SchemaApplyInProgress("a schema change is in progress: create or delete branches after it")


def _end(parts: Parts, branch: Branch, state: ManifestState | None) -> None:
    """Make a branch cease to exist; on an object store not if it was published on since the look (J7)."""
    if parts.local_root is not None or state is None:
        parts.branches.delete(branch)
        return
    from omnigraph.commit.recovery.ending import end_branch

    end_branch(parts, branch, state.version)


def _refuse_newer(state: ManifestState, branch: str, head: GraphCommit, *, is_alone: bool) -> None:
    """Refuse unless the branch shows what it showed at a head, and no writer can change that now (J4)."""
    if not is_alone:
        raise BranchInUse(branch, "a writer is publishing on it")
    if state.commits.effective(state.head) != state.commits.effective(head):
        raise BranchMoved(branch, expected=head.graph_commit_id, actual=state.head.graph_commit_id)


def _refuse_use(graph: OpenGraph, actor: str | None, branch: Branch, state: ManifestState | None) -> bool:
    """Refuse to delete what another branch needs; return whether every other one could be checked (J6).

    Which one needs it is told to an actor who may know that it is there.

    Raises:
        BranchInUse: another branch needs it.
        StorageError: it is unknown from which branch another one was created.
    """
    parts = graph.parts

    def told(name: str) -> str:
        return f"branch '{name}'" if graph.may_know(actor, name) else "a branch that you may not read"

    others, unreadable = parts.branches.readable()
    doubts = [(name, error) for name, error in unreadable if name != branch.name]
    for _, doubt in doubts:
        if isinstance(doubt, StorageError):
            raise doubt
    for other in others:
        if other.parent_branch == branch.name:
            raise BranchInUse(branch.name, f"{told(other.name)} was created from it")
        if other.name == branch.name or state is None:
            continue
        try:
            is_needed = _needs(parts, other, state)
        except (StorageError, InvariantViolation) as error:
            doubts.append((other.name, error))
            continue
        if is_needed:
            raise BranchInUse(branch.name, f"{told(other.name)} still reads its tables")
    for name, doubt in doubts:
        cause = f"branch '{name}' cannot be read and may need it: {doubt}"
        parts.warn(f"storage of the deleted branch '{branch.name}' is left for cleanup: {cause}")
    return not doubts


def _needs(parts: Parts, other: Branch, state: ManifestState) -> bool:
    theirs = parts.coordinator.state(other.identity)
    return not theirs.pinned_refs().isdisjoint(_own_refs(state))


def _own_refs(state: ManifestState) -> frozenset[str]:
    """Return the forks that a branch made, all of which are removed with it."""
    return frozenset(ref for _, ref in state.forks_of(state.branch.name))


def _let_go(graph: OpenGraph, branch: Branch, state: ManifestState) -> None:
    """Remove what a deleted branch leaves behind; a failure is a warning, and leaves it to cleanup (J2)."""
    from omnigraph.commit.publish import publish_lock_file
    from omnigraph.commit.reclaim import drop_refs
    from omnigraph.commit.table_locks import remove_table_locks

    parts = graph.parts
    try:
        if any(other.parent_branch == branch.name for other in parts.branches.all()):
            parts.warn(f"a branch was created from '{branch.name}' during its deletion: its storage stays")
            return  # J3
        if is_meeting_place(parts, branch.name, state):
            return  # J3
        if parts.writer is not None:
            parts.check_writer()
            _refuse_use(graph, None, branch, state)  # others may have come to need it
        root = parts.local_root
        with graph.publisher.turn(branch.name):  # whoever is publishing on it ends first
            drop_refs(parts, [parts.coordinator.address(branch.ref)])
            if root is not None:  # under the lock: a new branch of the same name may use it
                (root / publish_lock_file(branch.name)).unlink(missing_ok=True)
                remove_table_locks(root, branch.name, state.snapshot().entries)
        places = {identity: found.location for identity, found in state.tables.registrations.items()}
        forks = state.forks_of(branch.name)
        drop_refs(parts, [parts.address_of(places[identity], ref) for identity, ref in sorted(forks)])
    except (OmnigraphError, OSError) as error:
        parts.warn(f"storage of the deleted branch '{branch.name}' is left for cleanup: {error}")


def is_meeting_place(parts: Parts, branch: str, state: ManifestState) -> bool:
    """Return whether two branches may meet in a commit of a deleted one, of which this is left (J3)."""
    from omnigraph.history.lineage import ChainedLog, Lineage

    log = ChainedLog(state.commits, branch=branch)
    if not log.own:
        return False  # it never wrote
    states = [parts.coordinator.state(other) for other in parts.branches.live()]
    lineage = Lineage(ChainedLog(other.commits, branch=other.branch.name) for other in states)
    lineage.place_merges(log)
    return lineage.is_meeting_place(log.own)


def _taken(name: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"branch '{name}' already exists")
