"""Old versions of the manifests: removed behind a horizon, since history is in the rows.

T1  No commit becomes unreadable: what a manifest showed at a commit is folded from its newest rows.
T2  A trim holds the publish lock of its branch. Where that is taken, the branch is left for the next time: no
    publish stands between its open and its commit while versions go.
T3  The newest versions stay, those that a ref or branch starts from, and everything that was replaced within
    the horizon. No publisher uses a handle that is half as old as the shortest horizon there is.
T4  One manifest's failure is its own.
"""

from dataclasses import dataclass

from omnigraph.commit.parts import Parts
from omnigraph.commit.publish import HORIZON_S, HORIZON_S_MIN, ManifestPublisher
from omnigraph.commit.retention import Limits, hinted_version, note_reclaimed, version_files
from omnigraph.core.environment import number_setting
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.failpoint import hit
from omnigraph.history.identity import BranchIdentity, branch_name
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.storage.control.stored_files import remove_files
from omnigraph.storage.files.version_file import version_file_name
from omnigraph.storage.tables.handle import ref_path
from omnigraph.storage.tables.reclaim import Reclaimable, find_reclaimable
from omnigraph.storage.versions.newest import read_mark

MANIFEST_HORIZON = "OMNIGRAPH_MANIFEST_HORIZON"
VERSIONS_KEPT = 10  # whatever their age: enough to go back past what a power cut may leave


@dataclass(frozen=True, slots=True)
class TrimmedManifest:
    """What a trim removed from the manifest of one branch, or would remove; `error` says what went wrong.

    A busy one was left for the next time, because somebody is publishing on the branch.
    """

    branch: str
    versions: int = 0
    size: int = 0
    files: int = 0
    error: str | None = None
    is_busy: bool = False


def manifest_horizon_s() -> float:
    """Return how long replaced versions of a manifest stay, in seconds."""
    return float(number_setting(MANIFEST_HORIZON, int(HORIZON_S), least=int(HORIZON_S_MIN)))


def trim_manifests(
    parts: Parts, publisher: ManifestPublisher, *, dry_run: bool = False, horizon_s: float | None = None
) -> tuple[TrimmedManifest, ...]:
    """Trim the manifest of every branch; a busy one is skipped and reported (T2).

    Raises:
        StorageError: the branches cannot be listed.
    """
    horizon_s = manifest_horizon_s() if horizon_s is None else max(horizon_s, HORIZON_S_MIN)
    trimmed = []
    for branch in parts.branches.live():
        try:
            trimmed.append(_trim(parts, publisher, branch, horizon_s, dry_run=dry_run))
        except OmnigraphError as error:  # T4
            trimmed.append(TrimmedManifest(branch.name, error=str(error)))
    return tuple(trimmed)


def _trim(
    parts: Parts, publisher: ManifestPublisher, branch: BranchIdentity, horizon_s: float, *, dry_run: bool
) -> TrimmedManifest:
    if dry_run:
        return _counted(branch, _removable(parts, branch, horizon_s))
    with publisher.publish_lock(branch.name, wait_s=0) as is_held:
        if not is_held:  # T2
            return TrimmedManifest(branch.name, is_busy=True)
        parts.branches.confirm(branch)
        found = _removable(parts, branch, horizon_s)
        if found.versions:
            parts.check_writer()
            dataset = ref_path(MANIFEST_DIR, branch.ref)
            note_reclaimed(parts.adapter, {dataset: max(found.versions) + 1})
            hit("trim.pre_remove")
            remove_versions(parts, dataset, found)
    return _counted(branch, found)


def _counted(branch: BranchIdentity, found: Reclaimable) -> TrimmedManifest:
    sizes = (*found.versions.values(), *found.named.values())
    return TrimmedManifest(branch.name, len(found.versions), sum(sizes), len(sizes))


def _removable(parts: Parts, branch: BranchIdentity, horizon_s: float) -> Reclaimable:
    """Return what is behind the horizon of one manifest (T3)."""
    dataset, address = ref_path(MANIFEST_DIR, branch.ref), parts.coordinator.address(branch.ref)
    files = version_files(parts.root, dataset)
    old = Limits(VERSIONS_KEPT, horizon_s, 0.0).old(
        files, parts.clock(), hinted=hinted_version(parts.adapter, files)
    )
    begun = {
        other.parent_manifest_version
        for other in parts.branches.all()
        if branch_name(other.parent_branch) == branch.name
    }
    root = address.local_path
    acknowledged = None if root is None else read_mark(root).acknowledged
    chosen = {version for version in old - begun if acknowledged is None or version < acknowledged}
    if not chosen:
        return Reclaimable({}, {}, {})
    return find_reclaimable(parts.store, address, chosen)


def remove_versions(parts: Parts, dataset: str, found: Reclaimable) -> None:
    """Remove versions, and then what only they name; a crash in between leaves files that nothing names.

    Raises:
        StorageError: the system failed; the next cleanup goes on.
    """
    files = [f"{dataset}/{version_file_name(version)}" for version in sorted(found.versions)]
    remove_files(parts.root, files)
    parts.syncer.sync([parts.root.child(file) for file in files[:1]], stage="manifest")
    hit("cleanup.post_versions_pre_files")
    remove_files(parts.root, [f"{dataset}/{path}" for path in sorted(found.named)])
