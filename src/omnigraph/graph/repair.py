"""What can be done with a graph that is too damaged to be opened."""

from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.commit.recovery.restore import Quarantined
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import is_count, shown
from omnigraph.graph.arguments import check_flags, given_place
from omnigraph.graph.guard import require
from omnigraph.operations import repair as verbs
from omnigraph.operations.open import make_parts
from omnigraph.operations.repair import RepairResult
from omnigraph.policy.request import Action

if TYPE_CHECKING:
    from omnigraph.graph.guard import GivenPolicy


def repair(
    uri: str | Path,
    to: int,
    *,
    branch: str | None = None,
    actor: str | None = None,
    dry_run: bool = False,
    policy: "GivenPolicy | None" = None,
) -> RepairResult:
    """Go back to an older version of a branch and give up what came after it; a dry run says what that is.

    Nothing is deleted: what was given up stays where it is, and `repair` to its version brings it back.

    With a policy, the actor needs `admin`, for a dry run as well.

    Raises:
        PolicyDenied: the policy does not allow this to the actor.
        BadRequest: an argument is none, or the branch is at that version.
        VersionNotFound, BranchNotFound: there is no such version or branch.
        GraphDamaged: that version is damaged too.
        ConflictError: a writer is active.
    """
    check_flags(dry_run=dry_run)
    if not is_count(to):
        raise BadRequest(f"to must be the number of a version, not {shown(to)}")
    require(policy, actor, Action.ADMIN)
    parts = make_parts(given_place("uri", uri))
    loss = verbs.foresee(parts, to, branch)
    return RepairResult(loss, None) if dry_run else verbs.repair(parts, loss, actor=actor)


def quarantined(
    uri: str | Path, *, actor: str | None = None, policy: "GivenPolicy | None" = None
) -> tuple[Quarantined, ...]:
    """Return what was moved to quarantine after a power cut, newest first.

    With a policy, the actor needs `read` of every branch.

    Raises:
        PolicyDenied: the policy does not allow this to the actor.
    """
    require(policy, actor, Action.READ)
    return verbs.quarantined(make_parts(given_place("uri", uri)))


def restore_quarantined(
    uri: str | Path,
    quarantine_id: str,
    *,
    actor: str | None = None,
    policy: "GivenPolicy | None" = None,
) -> Quarantined:
    """Put back versions that were moved to quarantine.

    With a policy, the actor needs `admin`.

    Raises:
        PolicyDenied: the policy does not allow this to the actor.
        AlreadyExistsError: something was published over them.
        GraphDamaged: what would come back is itself damaged.
    """
    require(policy, actor, Action.ADMIN)
    return verbs.put_back(make_parts(given_place("uri", uri)), quarantine_id)
