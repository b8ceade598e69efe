"""Branches below stamp 4: the refs of `__manifest`, which had the names of branches.

N5  Below stamp 4 no control object says which branches exist; the refs of the manifest do. A read-only handle
    goes by them until somebody has migrated main, and by the control objects from then on.
N6  What writers of earlier formats kept among the refs for themselves is no branch: the lock of a schema
    change, and below stamp 3 the staging refs of runs.
"""

from collections.abc import Iterable
from pathlib import Path

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import BadRequest, InvariantViolation
from omnigraph.history.branches import SCHEMA_APPLY_LOCK, Branch, Branches, check_branch_name
from omnigraph.history.coordinator import Coordinator
from omnigraph.storage.control.object_store import StorageAdapter

RUN_PREFIX = "__run__"
LAST_STAMP_WITH_RUNS = 2


def run_refs(coordinator: Coordinator) -> list[str]:
    """Return the staging refs of runs on the manifest, by name."""
    refs = coordinator.manifest.store.list_refs(coordinator.address())
    return [ref.name for ref in refs if ref.name.startswith(RUN_PREFIX)]


def native_branches(coordinator: Coordinator, stamp: int) -> list[Branch]:
    """Return the branches of a graph below stamp 4, by name (N5, N6).

    Raises:
        InvariantViolation: a ref has a name that no branch may have.
        StorageError: the refs cannot be listed.
    """
    refs = coordinator.manifest.store.list_refs(coordinator.address())
    is_run = [stamp <= LAST_STAMP_WITH_RUNS and ref.name.startswith(RUN_PREFIX) for ref in refs]
    return [
        Branch(_checked(ref.name), ref.name, ref.parent, ref.parent_version, ref.created_at, None)
        for ref, is_left_out in zip(refs, is_run, strict=True)
        if not is_left_out and ref.name != SCHEMA_APPLY_LOCK
    ]


def _checked(name: str) -> str:
    try:
        return check_branch_name(name)
    except BadRequest as error:
        way_out = "delete it with the build that made it"
        raise InvariantViolation(
            f"ref {name!r} of the manifest cannot be a branch: {error}; {way_out}"
        ) from error


class NativeBranches(Branches):
    """The branches of a graph that was below stamp 4 when it was opened for reading (N5)."""

    def __init__(self, adapter: StorageAdapter, root: Path | None, coordinator: Coordinator) -> None:
        """Take the graph's control files, its folder if it is on a disk, and the reader of its manifests."""
        super().__init__(adapter, root)
        self._coordinator = coordinator

    def find(self, name: str) -> Branch | None:
        """Return a live branch, or None."""
        stamp = self._coordinator.stamp()
        if stamp == INTERNAL_SCHEMA_VERSION:
            return super().find(name)
        return next(
            (found for found in native_branches(self._coordinator, stamp) if found.name == name), None
        )

    def _listed(self) -> Iterable[str]:
        stamp = self._coordinator.stamp()
        if stamp == INTERNAL_SCHEMA_VERSION:
            return super()._listed()
        return {found.name for found in native_branches(self._coordinator, stamp)}
