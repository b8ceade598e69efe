"""`load` in process: many records, one commit or none."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from omnigraph.commit.finalize import WriteRequest, finalize
from omnigraph.commit.sidecar import WriterKind
from omnigraph.core.errors import BadRequest
from omnigraph.core.failpoint import hit
from omnigraph.exec.committed import CommittedTables
from omnigraph.history.commits import GraphCommit
from omnigraph.history.state import Snapshot
from omnigraph.operations.context import OpenGraph, check_message
from omnigraph.operations.ensure_indices import PendingIndex, build_missing_indices, missing_indices
from omnigraph.operations.reprepare import with_repreparation
from omnigraph.operations.settings import check_ceilings, load_concurrency, read_limits
from omnigraph.operations.upkeep import run_upkeep
from omnigraph.staging.write_set import WriteSet, work_of
from omnigraph.validate.changeset import validate_changeset
from omnigraph.validate.columns import Column, Rows, TableChange, concat_rows
from omnigraph.validate.records import read_ndjson
from omnigraph.validate.sets import NO_IDS, ArrowKeyOps, is_not_among
from omnigraph.validate.tables import read_table
from omnigraph.validate.violations import ViolationLog

LoadMode = Literal["append", "merge", "overwrite"]
MODES: tuple[LoadMode, ...] = ("append", "merge", "overwrite")


@dataclass(frozen=True, slots=True)
class RecordInput:
    """NDJSON text of one input, with the name that errors give it."""

    data: bytes
    name: str | None = None


@dataclass(frozen=True, slots=True)
class TableInput:
    """A table of one type."""

    table_key: str
    table: pa.Table
    name: str | None = None


LoadInput = RecordInput | TableInput


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did. `commit` is its own; indexes are built in a second one."""

    branch: str | None
    mode: LoadMode
    tables: tuple[tuple[str, int], ...]
    commit: GraphCommit | None
    index_commit: GraphCommit | None = None
    pending_indexes: tuple[PendingIndex, ...] = ()
    warnings: tuple[str, ...] = ()


def load(
    graph: OpenGraph,
    inputs: Iterable[LoadInput],
    mode: LoadMode,
    *,
    branch: str | None = None,
    actor: str | None = None,
    message: str | None = None,
    index: bool = True,
    reprepare_budget: int = 0,
) -> LoadResult:
    """Heal, read everything, validate everything, publish once; then indexes and upkeep.

    Raises:
        ValidationError: with the first violation by file and line; nothing was written.
        KeyConflict: a strict insert met an id.
        ConflictError: somebody else was first; nothing of this load is visible.
    """
    branch = graph.enter(actor, "change", branch)
    graph.require_writable()
    check_message(message)
    if mode not in MODES:
        raise BadRequest(f"mode {mode!r} is none of {', '.join(MODES)}")
    graph.require_branch(branch)
    graph.heal()
    log = ViolationLog()
    rows = _read(graph, inputs, log)
    has_work = (mode == "overwrite" and bool(rows)) or any(found.count for found in rows.values())
    if not has_work and not log.total:
        return LoadResult(branch, mode, (), None)

    def attempt() -> tuple[LoadResult, Snapshot]:
        state = graph.state(branch)
        snapshot = state.snapshot()
        committed = CommittedTables(snapshot, graph.parts.store, graph.parts.address)
        write_set = _write_set(graph, rows, mode, committed)
        found = ViolationLog()
        found.merge(log)
        key_ops = ArrowKeyOps(committed, write_set.changes)
        folded = validate_changeset(write_set.changes, graph.catalog, key_ops, found)
        found.raise_if_any()
        check_ceilings(list(work_of(write_set, folded, snapshot.entries)))
        request = WriteRequest(WriterKind.LOAD, snapshot, state.ref, actor, message)
        outcome = finalize(
            graph.parts, graph.publisher, request, write_set, folded, concurrency=load_concurrency()
        )
        counts = tuple((key, folded[key].count) for key in sorted(rows))
        return LoadResult(branch, mode, counts, outcome.commit), snapshot

    budget = 0 if mode == "overwrite" else reprepare_budget
    result, before = with_repreparation(graph, branch, attempt, budget=budget)
    commit = result.commit
    assert commit is not None, "a load with rows publishes"
    if index:
        result = _with_indices(graph, result)
    run_upkeep(graph, before, commit)
    return result


def _read(graph: OpenGraph, inputs: Iterable[LoadInput], log: ViolationLog) -> dict[str, Rows]:
    """Return the rows of all inputs by table; what cannot be read is in the log."""
    parts: dict[str, list[Rows]] = {}
    for file, item in enumerate(inputs):
        if isinstance(item, RecordInput):
            found: Mapping[str, Rows] = read_ndjson(
                item.data,
                file=file,
                file_name=item.name,
                catalog=graph.catalog,
                make_id=graph.parts.new_id,
                log=log,
                limits=read_limits(),
            )
        else:
            type_ = graph.catalog.type_of(item.table_key)
            rows = read_table(
                item.table, type_, file=file, file_name=item.name, make_id=graph.parts.new_id, log=log
            )
            found = {item.table_key: rows}
        for table_key, rows in found.items():
            parts.setdefault(table_key, []).append(rows)
    return {table_key: concat_rows(pieces) for table_key, pieces in parts.items()}


def _write_set(
    graph: OpenGraph, rows: Mapping[str, Rows], mode: LoadMode, committed: CommittedTables
) -> WriteSet:
    changes = {
        key: TableChange(found.type, found, _removed(key, found, mode, committed), mode)
        for key, found in rows.items()
    }
    read: set[str] = set()
    for key in rows:
        type_ = graph.catalog.type_of(key)
        if key.startswith("edge:"):
            edge = graph.catalog.edges[type_.name]
            read |= {f"node:{edge.source}", f"node:{edge.target}"}
        elif mode == "overwrite":
            incident = (e for e in graph.catalog.edges.values() if type_.name in {e.source, e.target})
            read |= {edge.table_key for edge in incident}
    return WriteSet(changes, frozenset(rows), frozenset(read - rows.keys()))


def _removed(table_key: str, rows: Rows, mode: LoadMode, committed: CommittedTables) -> Column:
    """Return the committed ids that an overwrite takes away."""
    if mode != "overwrite":
        return NO_IDS
    present = committed.scan(table_key, columns=["id"])["id"].combine_chunks()
    return present.filter(is_not_among(present, rows.ids)) if rows.count else present


def _with_indices(graph: OpenGraph, result: LoadResult) -> LoadResult:
    """Build what is missing on the tables of a load; whatever fails, the load has succeeded."""
    keys = [key for key, _ in result.tables]
    try:
        hit("load.post_publish_pre_index")
        built = build_missing_indices(graph, result.branch, keys)
    except Exception as error:  # noqa: BLE001 - a warning, never a failed load
        warning = f"indexes could not be built and are pending: {error}"
        graph.parts.warn(warning)
        pending = missing_indices(graph, result.branch, keys, str(error))
        return _with(result, None, pending, (warning,))
    return _with(result, built.commit, built.pending, ())


def _with(
    result: LoadResult,
    index_commit: GraphCommit | None,
    pending: tuple[PendingIndex, ...],
    warnings: tuple[str, ...],
) -> LoadResult:
    return LoadResult(
        result.branch, result.mode, result.tables, result.commit, index_commit, pending, warnings
    )
