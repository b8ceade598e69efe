"""The end of a branch on an object store, where no lock keeps others from publishing on it meanwhile.

E1  A deleter first writes into the control object at which version of the branch's manifest it looked: the
    branch is ending. The version that follows decides: if it is a fence, the branch has ended; if it is
    anything else, somebody has published, and the branch goes on.
E2  Whoever meets an ending branch before it publishes decides the same in the same way, so that a deleter
    which dies or stalls is waited for by nobody.
E3  A publish that was prepared earlier is refused by the fence, looks at the branch again and finds it gone:
    what is acknowledged on a branch is never lost to a deletion that had looked before.
"""

from contextlib import suppress
from dataclasses import replace

from omnigraph.commit.parts import Parts
from omnigraph.commit.recovery.fence import is_fence
from omnigraph.core.errors import (
    BranchInUse,
    BranchNotFound,
    CommitConflict,
    RecoveryRequired,
    StaleCommit,
    StorageError,
)
from omnigraph.core.failpoint import hit
from omnigraph.history.branches import Branch
from omnigraph.history.identity import BranchIdentity
from omnigraph.storage.tables.undo import TableUndo


def end_branch(parts: Parts, branch: Branch, version: int) -> None:
    """End a branch on which nothing was published since a version of its manifest (E1).

    Raises:
        BranchInUse: something was, or another process is deleting it.
        StorageError: it may still exist.
    """
    ending = replace(branch, ending_version=version)
    if not parts.branches.change(branch, ending):
        raise BranchInUse(branch.name, "another process is using or deleting it")
    hit("branch_delete.post_ending_pre_fence")
    if not _has_ended(parts, ending):
        raise BranchInUse(branch.name, "a writer has published on it meanwhile")


def require_going_on(parts: Parts, branch: BranchIdentity) -> None:
    """Make sure that a branch exists and is not about to end; decide it if nobody has (E2).

    Raises:
        BranchNotFound: it is gone, or was replaced by another of the same name.
    """
    if branch.is_main:
        return
    found = parts.branches.require(branch.name, branch.ref)
    if found.ending_version is not None and _has_ended(parts, found):
        raise BranchNotFound(branch.name)


def _has_ended(parts: Parts, ending: Branch) -> bool:
    """Decide an ending branch, and say so in its control object."""
    assert ending.ending_version is not None
    try:
        is_over = _is_fenced(parts, ending, ending.ending_version)
    except StorageError as error:
        if error.kind != "not_found" or parts.branches.is_live(ending.identity):
            raise
        return True  # its manifest was removed since: others have decided
    if is_over:
        parts.branches.delete(ending)
    else:
        parts.branches.change(ending, replace(ending, ending_version=None))
    return is_over


def _is_fenced(parts: Parts, ending: Branch, version: int) -> bool:
    """Return whether a fence follows a version of the branch's manifest, after trying to put it there."""
    address = parts.coordinator.address(ending.ref)
    if parts.store.latest_version(address) == version:
        handle = parts.store.open_at(address, version)
        healer = "" if parts.writer is None else parts.writer.writer_id
        try:
            with suppress(
                CommitConflict, StaleCommit
            ):  # somebody was faster: with a publish, or the same fence
                TableUndo(parts.store).commit_fence(handle, operation_id=ending.ref, healer=healer)
        except RecoveryRequired as error:  # there is no sidecar: whoever uses the branch next decides (E2)
            told = (
                f"it is not known yet whether branch '{ending.name}' has ended; whoever uses it next decides"
            )
            raise StorageError(f"{told}: {error}", kind="unknown") from error
    return is_fence(parts.store.transaction_info(address, version + 1))
