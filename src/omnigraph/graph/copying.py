"""`clone` and `check_copy`: copies of whole graphs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.graph.arguments import check_flags, given_callback, given_names, given_place, given_text
from omnigraph.graph.guard import given_gate, require
from omnigraph.graph.opening import given_durability
from omnigraph.history.identity import MAIN
from omnigraph.operations.context import check_actor
from omnigraph.policy.request import AccessRequest, Action

if TYPE_CHECKING:
    from omnigraph.bulk.connect.progress import ProgressCallback
    from omnigraph.graph.guard import GivenPolicy
    from omnigraph.operations.clone.check_copy import CopyReport
    from omnigraph.operations.clone.clone import CloneResult


def clone(
    src: str | Path,
    dst: str | Path,
    *,
    branches: Sequence[str] | None = None,
    at: str | None = None,
    depth: int | None = None,
    durability: str | None = None,
    progress: "ProgressCallback | None" = None,
    actor: str | None = None,
    policy: "GivenPolicy | None" = None,
) -> "CloneResult":
    """Copy a graph, between disks and object stores in any direction, while others may write to it.

    Without a choice all of it is copied. `branches` are copied with main; `at` is the commit of main that
    becomes the head of a copy with main alone. With one branch, `at` is a commit that was made on it, and
    becomes its head; main is then copied up to its last commit in the history of that one. With a `depth`
    only so many commits of each branch can be read in the copy, and older ones are listed. A run that was
    interrupted is continued by the same call.

    With a policy, the actor needs `export`: of main and of each branch that is chosen, else of all.

    Raises:
        PolicyDenied: the policy does not allow the actor to copy this.
        GraphNotFound: there is no graph at `src`.
        BranchNotFound, CommitNotFound: there is no such branch, or it does not show this commit.
        HistoricalVersionReclaimed: a version that the commit shows is gone.
        BadRequest: the choice or the places contradict each other, or the branch has the commit from another.
        AlreadyInitialized, AlreadyExistsError: `dst` holds a graph, or something else.
        CloneUnfinished: another copy was begun at `dst`.
        ConflictError: another run has taken over.
        GraphDamaged: a file of the source is missing, or is not what its commit wrote.
    """
    from omnigraph.bulk.connect.progress import silent
    from omnigraph.operations.clone.clone import clone

    names, gate = given_names("branches", branches), given_gate(policy)
    if actor is not None:
        check_actor(actor)
    chosen = (None,) if names is None and at is None else (MAIN, *(names or ()))
    for branch in chosen:
        gate.require(AccessRequest(actor, Action.EXPORT, branch))
    return clone(
        given_place("src", src),
        given_place("dst", dst),
        branches=names,
        at=given_text("at", at),
        depth=depth,
        durability=given_durability(durability),
        progress=given_callback(progress, silent),
    )


def check_copy(
    src: str | Path,
    dst: str | Path,
    *,
    branches: Sequence[str] | None = None,
    at: str | None = None,
    deep: bool = False,
    progress: "ProgressCallback | None" = None,
    actor: str | None = None,
    policy: "GivenPolicy | None" = None,
) -> "CopyReport":
    """Compare two graphs: branches, heads, commits, and the files that the second one needs.

    Files are compared by length and, on a disk, by recorded checksum; with `deep` all are read on both sides.
    With `at`, `src` is looked at as a copy has it that ends at this commit of main, or of the branch chosen.

    With a policy, the actor needs `read` of every branch: the comparison tells of all of them.

    Raises:
        PolicyDenied: the policy does not allow the actor to look.
        GraphNotFound, CloneUnfinished: there is no graph at one of the places, or only a part of one.
        BranchNotFound, CommitNotFound: `src` has no such branch, or it does not show this commit.
        HistoricalVersionReclaimed: a version that the commit shows is gone from `src`.
        BadRequest: the branch has the commit from another one.
        GraphDamaged: a manifest cannot be read.
    """
    from omnigraph.bulk.connect.progress import silent
    from omnigraph.operations.clone.check_copy import check_copy

    check_flags(deep=deep)
    require(policy, actor, Action.READ)
    return check_copy(
        given_place("src", src),
        given_place("dst", dst),
        branches=given_names("branches", branches),
        at=given_text("at", at),
        deep=deep,
        progress=given_callback(progress, silent),
    )
