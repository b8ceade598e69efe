"""`init`: an empty graph from a schema.

I1  `__manifest` appears in one write that holds every table's registration and first pin, the schema, the
    genesis commit, the head and the stamp: before it there is no graph, after it there is a whole one.
I2  Before the first table is created, a failure removes what this attempt wrote. After that nothing is
    cleaned up: the answer to "is there a graph?" is looked up, and if it cannot be, the claim stays.
"""

import json

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.build import read_schema
from omnigraph.catalog.identity import accept_first
from omnigraph.commit.parts import RECOVERIES_DATASET, Parts, host_name, process_id
from omnigraph.core.errors import (
    AlreadyExistsError,
    AlreadyInitialized,
    ClusterManaged,
    InitializationClaimed,
    InitializationIndeterminate,
    OmnigraphError,
    StorageError,
)
from omnigraph.core.failpoint import hit
from omnigraph.core.shield import shielded
from omnigraph.core.span import Source
from omnigraph.history.contract import SCHEMA_FILES, SCHEMA_IR, Contract
from omnigraph.history.identity import MAIN, identity_of
from omnigraph.history.manifest_rows import (
    MANIFEST_DIR,
    STAMP_KEY,
    ManifestRow,
    PublishedPin,
    commit_row,
    head_row,
    pin_row,
    registration_row,
    rows_table,
    schema_row,
)
from omnigraph.operations.clone.journal import refuse_unfinished
from omnigraph.operations.context import check_actor
from omnigraph.policy.gate import OPEN_GATE, Gate
from omnigraph.policy.request import AccessRequest, Action
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.probe import probe_store
from omnigraph.storage.control.uri import GraphRoot, refuse_file
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.tables.refs import refuse_without_refs
from omnigraph.storage.tables.stage import CommittedTable

INIT_CLAIM = "__init_claim.json"
_WRITER = "init"
_FOLDERS = (
    MANIFEST_DIR,
    "nodes",
    "edges",
    RECOVERIES_DATASET,
)  # that the library writes to, through links too


CLUSTER_STATE = "__cluster/state.json"
_GRAPHS = "graphs"
_SUFFIX = ".omni"


def init_graph(
    parts: Parts,
    schema: Source,
    *,
    force: bool = False,
    actor: str | None = None,
    gate: Gate = OPEN_GATE,
) -> str:
    """Create an empty graph and return the id of its genesis commit.

    Raises:
        PolicyDenied: the actor may not do this.
        ParseError, CatalogError: the schema is invalid.
        BadRequest: the path does not allow branches.
        AlreadyInitialized: there is a graph here, or there are leftover schema files and no `force`.
        AlreadyExistsError: there is a link at the name of a folder of the graph.
        InitializationClaimed: another init is running, or died.
        CloneUnfinished: a graph is being copied here.
        ClusterManaged: the place belongs to a cluster.
        InitializationIndeterminate: it is unknown whether the graph was created.
        StorageError: the store failed, or does not keep its promises.
    """
    if actor is not None:
        check_actor(actor)
    gate.require(AccessRequest(actor, Action.ADMIN))
    desired = read_schema(schema)
    contract = Contract.of(desired, accept_first(desired, make_domain=parts.new_id))
    refuse_file(parts.root)
    refuse_managed(parts.root)
    refuse_without_refs(parts.root.uri)
    _refuse_existing(parts, force=force)
    probe_store(parts.adapter, parts.root)
    genesis = parts.new_id()
    with shielded():  # an interrupt in the middle would leave the claim, and the outcome unknown
        _create(parts, contract, genesis, force=force)
    return genesis


def _create(parts: Parts, contract: Contract, genesis: str, *, force: bool) -> None:
    _claim(parts, genesis)
    try:
        _refuse_existing(parts, force=force)
    except OmnigraphError:
        parts.adapter.delete(INIT_CLAIM)
        raise
    _write_contract(parts, contract)
    _create_physically(parts, contract, genesis)
    parts.adapter.delete(INIT_CLAIM)


def _claim(parts: Parts, genesis: str) -> None:
    """Claim the place; where the answer was lost, what is there tells whose claim it is."""
    claim = {"genesis": genesis, "host": host_name(), "pid": process_id(), "started_at": parts.clock()}
    text = json.dumps(claim)
    try:
        is_ours = parts.adapter.write_text_if_absent(INIT_CLAIM, text)
    except StorageError:
        found = parts.adapter.read_text_if_exists(INIT_CLAIM)
        if found is None:
            raise
        is_ours = found == text
    else:
        is_ours = is_ours or parts.adapter.read_text_if_exists(INIT_CLAIM) == text
    if not is_ours:
        raise InitializationClaimed(
            f"{INIT_CLAIM} exists: another init is running, or died before it was done; if none runs, "
            "remove that file and start over"
        )


def _refuse_existing(parts: Parts, *, force: bool) -> None:
    root = parts.local_root
    for name in () if root is None else _FOLDERS:
        assert root is not None, "only a folder has links"
        if (root / name).is_symlink():
            raise AlreadyExistsError(
                f"{parts.root.uri} has a link, '{name}': a graph is written through none"
            )
    refuse_unfinished(parts.adapter, parts.root)
    if parts.adapter.exists(MANIFEST_DIR):
        raise AlreadyInitialized(f"{parts.root.uri} already holds a graph")
    leftovers = [name for name in SCHEMA_FILES if parts.adapter.exists(name)]
    if leftovers and not force:
        raise AlreadyInitialized(f"{parts.root.uri} holds {', '.join(leftovers)}: use force to replace them")


def _write_contract(parts: Parts, contract: Contract) -> None:
    """Write the schema files; a failure removes them and the claim (I2)."""
    written: list[str] = []
    try:
        for name, text in contract.texts.items():
            written.append(name)
            parts.adapter.write_text(name, text)
            hit("init.after_schema_contract" if name == SCHEMA_FILES[-1] else "init.after_schema_source")
    except Exception:
        # If a removal fails, its error replaces the first one and the claim stays: the state is unknown.
        for name in written:
            hit("init.schema_cleanup_delete")
            parts.adapter.delete(name)
        parts.adapter.delete(INIT_CLAIM)
        raise


def _create_physically(parts: Parts, contract: Contract, genesis: str) -> None:
    """Create the tables and the manifest; from here on the truth is looked up, not assumed (I2)."""
    try:
        rows, sums = _table_rows(parts, contract)
        rows += [
            schema_row(contract.texts[SCHEMA_IR], at=1, source=contract.source),
            commit_row(genesis, MAIN, {"created_at": parts.clock()}, at=1, sums=sums),
            head_row(MAIN, genesis, None),
        ]
        stamp = {STAMP_KEY: str(INTERNAL_SCHEMA_VERSION)}
        address = parts.coordinator.address()
        version = parts.coordinator.manifest.create(address, rows_table(rows), stamp)
        hit("init.manifest_create_ack_lost")
        files = parts.coordinator.manifest.files_of(address, version)
        parts.syncer.sync(files, stage="manifest")
        own = parts.summer.sum(file for file in files if not file.endswith(".txn"))  # that copy nobody reads
        parts.coordinator.manifest.note(address, version, is_synced=parts.syncer.is_active, sums=own)
    except Exception as error:
        if not _is_ours(parts, genesis, error):
            raise InitializationIndeterminate(
                f"init failed half-way ({error}); {INIT_CLAIM} stays: remove {parts.root.uri} and start over"
            ) from error
    hit("init.post_manifest_create")


def _is_ours(parts: Parts, genesis: str, error: Exception) -> bool:
    """Return whether there is a manifest with this attempt's genesis commit."""
    try:
        hit("init.manifest_create_probe")
        if not parts.adapter.exists(MANIFEST_DIR):
            return False
        state = parts.coordinator.state()
    except Exception:  # noqa: BLE001 - the look itself failed: the answer is unknown
        return False
    if state.commits.find(genesis) is None and isinstance(error, AlreadyExistsError):
        raise AlreadyInitialized(f"{parts.root.uri} was initialized by another process") from error
    return state.commits.find(genesis) is not None


def _table_rows(parts: Parts, contract: Contract) -> tuple[list[ManifestRow], list[FileSum]]:
    """Create the tables; return their rows, and the sums of their files."""
    rows: list[ManifestRow] = []
    sums: list[FileSum] = []
    for type_ in contract.catalog.types:
        identity = identity_of(type_)
        address = parts.address_of(identity.location(type_.table_key), None)
        staged = parts.stager.stage_create_table(address, arrow_schema(type_))
        table: CommittedTable = parts.stager.commit_staged(
            staged, operation_id=parts.new_id(), writer_kind=_WRITER
        )
        parts.syncer.sync(table.files, stage="table")
        sums += parts.summer.sum(table.files)
        hit("init.after_table_create")
        pin = PublishedPin(table.version, None, table.row_count, table.transaction_uuid, MAIN)
        rows += [
            registration_row(identity, type_.table_key, at=1),
            pin_row(identity, type_.table_key, pin, at=1),
        ]
    return rows, sums


def refuse_managed(root: GraphRoot) -> None:
    """Refuse a place inside an established cluster: `<cluster>/graphs/<id>.omni`.

    Raises:
        ClusterManaged: a cluster is established there.
    """
    cluster, _, name = root.uri.rpartition(f"/{_GRAPHS}/")
    # A root in a store with no bucket before `graphs` is itself a bucket of that name, not a cluster.
    is_bucket = cluster.endswith(":") and not root.is_local
    if "/" in name or not name.endswith(_SUFFIX) or not cluster.strip("/") or is_bucket:
        return
    place = GraphRoot(cluster, root.is_local)
    if open_adapter(place, Durability.PROCESS).exists(CLUSTER_STATE):
        raise ClusterManaged(f"{root.uri} belongs to the cluster at {cluster}: use cluster apply")
