"""Migrations: from the storage format of an earlier build to that of this one, a branch at a time.

X1  Work first, stamp last: a step that died is taken again, and does only what is missing.
X2  Any number of processes may take the same step. One wins each commit; the others look again and find it
    done. Nobody fails because another was faster, and no stamp is ever lowered.
X3  Only a proven "not there" is an empty history. Every other error ends the migration before the stamp.
X4  The same graph gives the same rows and the same control objects, in the same order.
X5  Nothing is built on a version that could not be synced (`secure`).
X6  A branch is migrated by its own publisher, into its own manifest; main goes first, when a graph is opened
    for writing. What belongs to all branches at once, the refs of runs and the control objects, is settled
    with main, and only while main has no lineage of its own: later the control objects decide.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import RowLevelCasContention, StaleCommit
from omnigraph.core.failpoint import hit
from omnigraph.history.branches import Branches
from omnigraph.history.coordinator import Coordinator
from omnigraph.history.identity import BranchIdentity
from omnigraph.history.manifest_rows import PRIMARY_KEY, SCHEMA_OF_MANIFEST, STAMP_KEY, rows_table
from omnigraph.history.native_branches import native_branches, run_refs
from omnigraph.history.older_formats import OlderFormats, has_lineage
from omnigraph.history.stamp import STEPS, supported_stamp
from omnigraph.storage.control.durability import Syncer
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.manifest_table import ManifestHandle
from omnigraph.storage.tables.refs import RefStore

MIGRATION_MERGE_RETRY_BUDGET = 5  # rounds; each that is lost means that another process has made progress
STAMP_RETRY_BUDGET = 5
_KEY = "object_id"
_PUBLISHED_AT = SCHEMA_OF_MANIFEST.field("published_at")


@dataclass(frozen=True, slots=True)
class Migrating:
    """What the steps work on.

    `secure` takes the ref of a manifest and two of its versions, before and after a commit: it makes the
    later one durable, or brings the earlier one back and raises.
    """

    coordinator: Coordinator
    branches: Branches
    adapter: StorageAdapter
    refs: RefStore
    syncer: Syncer
    secure: Callable[[str | None, int, int], None]

    def open(self, branch: BranchIdentity) -> ManifestHandle:
        """Open the manifest of a branch, looked up now."""
        return self.coordinator.manifest.open_fresh(self.coordinator.address(branch.ref))

    def older(self) -> OlderFormats:
        """Return the reader of what the steps start from."""
        return OlderFormats(self.coordinator.root, self.coordinator.manifest, self.adapter)


MigrationStep = Callable[[Migrating, BranchIdentity], None]


def migrate(graph: Migrating, branch: BranchIdentity) -> ManifestHandle:
    """Bring the manifest of a branch to the format of this build; return it as it is then.

    Raises:
        FormatVersionError: this build does not read its format.
        RowLevelCasContention: others kept changing it; trying again is safe.
        StorageError: something cannot be read or written: the stamp is that of the last step that was done.
    """
    handle = graph.open(branch)
    while (stamp := supported_stamp(handle.schema_metadata)) < INTERNAL_SCHEMA_VERSION:
        _STEPS[stamp](graph, branch)
        handle = _stamped(graph, branch, stamp + 1)
    return handle


def v1_to_v2(graph: Migrating, branch: BranchIdentity) -> None:
    """Annotate the key of the manifest, by which builds of stamp 2 and above compare rows."""
    older = graph.coordinator.manifest.older

    def annotate(handle: ManifestHandle) -> int | None:
        is_there = older.has_field_metadata(handle, _KEY, PRIMARY_KEY)
        return None if is_there else older.annotate(handle, _KEY, PRIMARY_KEY)

    _until_it_lands(graph, branch, annotate, budget=STAMP_RETRY_BUDGET, what="annotate the key")
    hit("migration.v1_to_v2.pre_stamp")


def v2_to_v3(graph: Migrating, branch: BranchIdentity) -> None:
    """Remove the staging refs of runs from the manifest (X6).

    A ref that came back with the power would be a branch for the next step. The sync is also for those that
    a runner before this one has dropped.
    """
    if branch.is_main and not has_lineage(graph.older().read(graph.open(branch))):
        address = graph.coordinator.address()
        for ref in run_refs(graph.coordinator):
            graph.refs.drop(TableAddress(address.uri, ref))
            hit("migration.v2_to_v3.post_ref_drop")
        graph.syncer.sync([graph.refs.notes(address)], stage="manifest")
    hit("migration.v2_to_v3.pre_stamp")


def v3_to_v4(graph: Migrating, branch: BranchIdentity) -> None:
    """Give every branch a control object, and this one its lineage in rows."""
    if branch.is_main:
        _give_control_objects(graph, branch)
    else:
        _keep_copy(graph, branch)
    manifest, older = graph.coordinator.manifest, graph.older()

    def add_column(handle: ManifestHandle) -> int | None:
        is_lacking = manifest.older.lacks(handle, _PUBLISHED_AT)
        return manifest.older.add_column(handle, _PUBLISHED_AT) if is_lacking else None

    def write_rows(handle: ManifestHandle) -> int | None:
        missing = older.conversion(branch, older.read(handle))
        if not missing.rows:
            return None
        rows = rows_table(list(missing.rows))
        try:
            return manifest.publish(
                handle, rows, commit_id=STEPS[3], replaced=sorted(missing.replaced)
            ).version
        except StaleCommit as stale:
            # A build of an earlier format has published beside us: what it left is brought up as well.
            raise RowLevelCasContention(str(stale)) from stale

    _until_it_lands(graph, branch, add_column, budget=MIGRATION_MERGE_RETRY_BUDGET, what="add a column")
    _until_it_lands(graph, branch, write_rows, budget=MIGRATION_MERGE_RETRY_BUDGET, what="write the lineage")
    hit("migration.v3_to_v4.post_merge_pre_stamp")


def _give_control_objects(graph: Migrating, main: BranchIdentity) -> None:
    """Make every ref of the manifest a branch, unless that was done before (X6).

    An object is created only if it is absent: what a deletion left in an object store stays ended.
    """
    handle = graph.open(main)
    if has_lineage(graph.older().read(handle)):
        return
    known = {branch.ref for branch in graph.branches.all()}
    for branch in native_branches(graph.coordinator, supported_stamp(handle.schema_metadata)):
        if branch.ref not in known:
            graph.adapter.write_text_if_absent(branch.file, branch.to_text())
            hit("migration.v3_to_v4.post_control")


def _keep_copy(graph: Migrating, branch: BranchIdentity) -> None:
    """Keep a copy of the control object, as of one that was created in this format."""
    found = graph.branches.require(branch.name, branch.ref)
    graph.branches.copies.keep(found.ref, found.file, found.to_text())


def _stamped(graph: Migrating, branch: BranchIdentity, target: int) -> ManifestHandle:
    """Stamp a manifest unless it has that stamp, or a higher one; return it as it is then (X2)."""
    manifest = graph.coordinator.manifest

    def stamp(handle: ManifestHandle) -> int | None:
        if target == INTERNAL_SCHEMA_VERSION:
            hit("migration.v4_stamp.force_incompatible")
        if supported_stamp(handle.schema_metadata) >= target:
            return None
        return manifest.stamp(handle, {STAMP_KEY: str(target)})

    _until_it_lands(graph, branch, stamp, budget=STAMP_RETRY_BUDGET, what=f"stamp {target}")
    return graph.open(branch)


def _until_it_lands(
    graph: Migrating,
    branch: BranchIdentity,
    attempt: Callable[[ManifestHandle], int | None],
    *,
    budget: int,
    what: str,
) -> None:
    """Make a commit, on a fresh look at the manifest whenever another one came first (X2, X5).

    `attempt` returns the version that it made, or `None` if there was nothing left to do.

    Raises:
        RowLevelCasContention: every round was lost.
    """
    for _ in range(budget):
        handle = graph.open(branch)
        try:
            version = attempt(handle)
        except RowLevelCasContention:
            continue
        if version is not None:
            graph.secure(branch.ref, handle.version, version)
        return
    raise RowLevelCasContention(f"branch '{branch.name}': {what}: lost {budget} times: try again")


_STEPS: Mapping[int, MigrationStep] = {1: v1_to_v2, 2: v2_to_v3, 3: v3_to_v4}
assert {source: step.__name__ for source, step in _STEPS.items()} == STEPS, "floor and steps go together"
