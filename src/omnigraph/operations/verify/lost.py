"""What must be there because something else says so: branches, the counter of numbers, the audit.

P1  A copy of a control object that has not ended, or in an object store a manifest with commits of a branch
    that has no control object at all, not even an ended one: the branch was lost and not deleted.
P2  A schema that has other numbers than the first one took them from the counter. So that is there, and is
    beyond every number that a schema of a live branch has.
P3  Every commit of recovery has a row in the audit, once no sidecar is left; a copy has those from before it
    only if it was not made at a commit.
"""

from collections.abc import Callable, Iterable, Iterator

from omnigraph.catalog.build import read_ir
from omnigraph.commit.parts import RECOVERIES_DATASET, Parts
from omnigraph.commit.recovery.audit import read_records
from omnigraph.core.errors import OmnigraphError
from omnigraph.history.branches import control_file
from omnigraph.history.commits import RECOVERY_ACTOR
from omnigraph.history.copied import Copied, read_copied
from omnigraph.history.identity import MAIN, BranchIdentity, branch_name
from omnigraph.history.numbers import NUMBERS_FILE, read_next_number
from omnigraph.history.state import ManifestState
from omnigraph.operations.verify.report import FindingKind, VerifyFinding
from omnigraph.storage.tables.table import RefInfo

_LOST_BRANCH = "the branch cannot be used; cleanup, copies and the list of branches are refused"
_LOST_COUNTER = "two branches may give one number to different types or columns, and take each other's values"
_NO_COUNTER = f"put it back from a copy of the graph, or write {NUMBERS_FILE} anew with the text "


def lost_findings(
    parts: Parts, states: Iterable[ManifestState], *, is_quiet: Callable[[], bool]
) -> Iterator[VerifyFinding]:
    """Yield what is missing although something proves it; `is_quiet` says that no write is unfinished."""
    known = tuple(states)
    try:
        yield from _lost_branches(parts)
        yield from _counter(parts, known)
    except (OmnigraphError, ValueError, LookupError):
        pass  # what cannot be read is a finding of its own
    yield from _audit(parts, known, is_quiet)


def _lost_branches(parts: Parts) -> Iterator[VerifyFinding]:
    for ref, control in parts.branches.copies.lost():
        copy = parts.branches.copies.place(ref)
        remedy = f"put the file back: its text is in '{copy}' below the first line"
        yield VerifyFinding(
            FindingKind.CONTROL_FILE, control, "is missing, and the branch with it", _LOST_BRANCH, remedy
        )
    if parts.local_root is None:
        named = {branch.ref for branch in parts.branches.live()}
        for listed in parts.store.list_refs(parts.coordinator.address(None)):
            if listed.name not in named:
                yield from _lost_in_store(parts, listed)


def _lost_in_store(parts: Parts, ref: RefInfo) -> Iterator[VerifyFinding]:
    """Yield a finding for a manifest with commits of a branch that never ended (P1)."""
    state = parts.coordinator.read_apart(BranchIdentity("?", ref.name))
    name = branch_name(state.head.manifest_branch)
    is_own = state.head.manifest_version > ref.parent_version and name != MAIN
    if is_own and parts.adapter.read_text_if_exists(control_file(name)) is None:
        remedy = "put the object back from a copy of the graph"
        what = f"is missing, and branch '{name}' with it"
        yield VerifyFinding(FindingKind.CONTROL_FILE, control_file(name), what, _LOST_BRANCH, remedy)


def _counter(parts: Parts, states: Iterable[ManifestState]) -> Iterator[VerifyFinding]:
    """Compare the counter with the schemas of the branches (P2)."""
    issued = {read_ir(text).next_id for state in states for text in state.schema_texts()}
    least, found = max(issued, default=0), read_next_number(parts.adapter)
    if len(issued) < 2 or (found is not None and found >= least):
        return
    what = f"is missing: {least} would be next" if found is None else f"gives {found}, {least} would be next"
    remedy = f'{_NO_COUNTER}{{"next": {least}}}'
    yield VerifyFinding(FindingKind.CONTROL_FILE, NUMBERS_FILE, what, _LOST_COUNTER, remedy)


def _audit(
    parts: Parts, states: Iterable[ManifestState], is_quiet: Callable[[], bool]
) -> Iterator[VerifyFinding]:
    """Read the audit, and compare it with the commits of recovery (P3)."""
    copied = _copied(parts)
    recovered = {
        commit.graph_commit_id
        for state in states
        for commit in state.commits.newest_first()
        if commit.actor_id == RECOVERY_ACTOR and commit.manifest_version > copied.of(state.branch.name).at
    }
    try:
        recorded = {record.graph_commit_id for record in read_records(parts)}
    except (OmnigraphError, ValueError, LookupError, TypeError) as error:
        yield VerifyFinding.of(FindingKind.AUDIT, RECOVERIES_DATASET, f"cannot be read: {error}")
        return
    lacking = sorted(recovered - recorded)
    if lacking and is_quiet():
        what = f"has no row of {len(lacking)} recoveries, the first of them commit {lacking[0]}"
        yield VerifyFinding.of(FindingKind.AUDIT, RECOVERIES_DATASET, what)


def _copied(parts: Parts) -> Copied:
    try:
        return read_copied(parts.adapter)
    except OmnigraphError:
        return Copied()
