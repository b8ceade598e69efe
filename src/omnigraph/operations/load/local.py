"""A load in process: everything is read into memory, validated there, and staged from there."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from omnigraph.bulk.connect.progress import ProgressCallback, ProgressEvent, Stage, told
from omnigraph.bulk.load.new_rows import LeftOut
from omnigraph.bulk.load.vectors import STAND_IN, standing_in, with_made_vectors
from omnigraph.bulk.sources.sources import SourceInput, read_source
from omnigraph.catalog.model import Catalog
from omnigraph.commit.finalize import WriteRequest, finalize
from omnigraph.commit.sidecar import WriterKind
from omnigraph.core.cancellation import check_cancelled
from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import BadRequest, SchemaChanged
from omnigraph.exec.mutation import CommittedTables
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.load.cleared import cleared_properties
from omnigraph.operations.load.model import (
    LoadInput,
    LoadMode,
    LoadOptions,
    LoadResult,
    RecordInput,
    TableInput,
)
from omnigraph.operations.load.rejects import Rejection, new_log
from omnigraph.operations.load.vectors import vectors_of
from omnigraph.operations.settings import check_ceilings, load_concurrency, read_limits
from omnigraph.operations.turns import Claim
from omnigraph.staging.write_set import WriteSet, work_of
from omnigraph.validate.arrow_questions import cleared_rows, replaced_rows
from omnigraph.validate.columns import Column, TableChange, TypedRows, concat_rows, null_properties
from omnigraph.validate.expansion import within_memory
from omnigraph.validate.records import read_ndjson
from omnigraph.validate.set_checks import validate_changeset
from omnigraph.validate.sets import NO_IDS, KeyOps
from omnigraph.validate.soundness import sound_rows
from omnigraph.validate.tables import read_table, wrong_column
from omnigraph.validate.violations import ViolationLog


class LocalLoad:
    """One load in process; what it read serves every attempt."""

    def __init__(
        self,
        graph: OpenGraph,
        inputs: Sequence[LoadInput],
        options: LoadOptions,
        *,
        branch: str,
        actor: str | None,
        message: str | None,
    ) -> None:
        """Read all inputs; what cannot be read is kept in a log."""
        self._graph, self._options = graph, options
        self._branch, self._actor, self._message = branch, actor, message
        self._log = new_log(options)
        self._catalog = graph.catalog_of(graph.newest(branch))
        self._rows = _read(graph, self._catalog, inputs, self._log, options.progress)
        self._vectors = 0  # made for the rows

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do and nothing to report."""
        rows = self._rows
        has_work = (self._options.mode == "overwrite" and bool(rows)) or any(r.count for r in rows.values())
        return not has_work and not self._log.total

    @property
    def claim(self) -> Claim | None:
        """The tables of its rows, and those that they refer to; a dry run takes no turn."""
        if self._options.is_dry_run:
            return None
        moved = frozenset(self._rows)
        return Claim(self._branch, moved, looked_at(self._catalog, moved, self._options.mode))

    def prepare(self) -> None:
        """Make the vectors that rows lack, once everything else about the load is right.

        It is not done in the turn of the load, which other writers would wait for as long as the provider
        takes, and once for all attempts.

        Raises:
            ValidationError, KeyConflict, ColumnsLeftOut: as of an attempt; no text was sent.
            EmbeddingModelMismatch: a property records another model; no text was sent.
            EmbeddingError: the provider failed; nothing was written.
        """
        if not self._options.makes_vectors:
            return
        with vectors_of(self._graph, self._catalog, self._rows, self._options.progress) as provider:
            if provider is None:
                return
            lacking = self._rows
            with within_memory("the input"):
                self._rows = {key: standing_in(rows, STAND_IN) for key, rows in lacking.items()}
                self._checked(self._graph.state(self._branch))
                if self._options.is_dry_run:
                    return
                made = {key: with_made_vectors(rows, provider) for key, rows in lacking.items()}
            self._rows = {key: rows for key, (rows, _) in made.items()}
            self._vectors = sum(count for _, count in made.values())

    def attempt(self, state: ManifestState) -> tuple[LoadResult, Snapshot]:
        """Validate against the newest state, and publish.

        Raises:
            ValidationError, KeyConflict, ColumnsLeftOut: nothing was written.
            SchemaChanged: the rows were read under another schema.
            ConflictError: another writer was first.
        """
        result, write_set, folded = self._checked(state)
        snapshot = state.snapshot()
        if self._options.is_dry_run or write_set.is_empty:
            return result, snapshot
        graph = self._graph
        check_ceilings(list(work_of(write_set, folded, snapshot.entries)))
        request = WriteRequest(WriterKind.LOAD, snapshot, self._actor, self._message)
        with told(self._options.progress, Stage.COMMIT, tables=_counts(self._rows)):
            outcome = finalize(
                graph.parts, graph.publisher, request, write_set, folded, concurrency=load_concurrency()
            )
        return replace(result, commit=outcome.commit), snapshot

    def _checked(self, state: ManifestState) -> tuple[LoadResult, WriteSet, dict[str, TypedRows]]:
        """Return what the load does to the newest state, with the rows that are written."""
        graph, mode = self._graph, self._options.mode
        snapshot = state.snapshot()
        if graph.catalog_of(snapshot) is not self._catalog:
            raise SchemaChanged(state.branch.name)
        committed = CommittedTables(snapshot, graph.parts.store, graph.parts.pinned)
        with told(self._options.progress, Stage.KEYS, tables=_counts(self._rows)):
            write_set, folded, rejection = self._validated(committed)
        counts = tuple((key, folded[key].count) for key in sorted(self._rows))
        ops = KeyOps(committed, write_set.changes)
        cleared = cleared_properties(
            self._options,
            {key: null_properties(rows) for key, rows in folded.items()},
            {key: rows.left_out for key, rows in folded.items()},
            count=lambda key, names: cleared_rows(folded[key], names, ops),
            count_replaced=lambda key, names: replaced_rows(folded[key], names, ops),
            catalog=graph.catalog,
        )
        result = LoadResult(
            snapshot.branch,
            mode,
            counts,
            None,
            is_dry_run=self._options.is_dry_run,
            rejected_rows=len(rejection.places),
            violations=rejection.first,
            cleared=cleared,
            vectors=self._vectors,
        )
        return result, write_set, folded

    def _validated(self, committed: CommittedTables) -> tuple[WriteSet, dict[str, TypedRows], Rejection]:
        """Return what passes: everything, or the rows that remain without those with violations."""
        rejection = Rejection(self._options, new_log(self._options))
        rows = self._rows
        found = new_log(self._options)
        found.merge(self._log)
        while True:
            check_cancelled()
            write_set = _write_set(self._catalog, rows, self._options.mode, committed)
            key_ops = KeyOps(committed, write_set.changes)
            folded = validate_changeset(write_set.changes, self._catalog, key_ops, found)
            if not rejection.take(found):
                rejection.write()
                return write_set, folded, rejection
            left_out = LeftOut.of(rejection.places)
            rows = {key: part.filter(left_out.kept(part.files, part.lines)) for key, part in rows.items()}
            found = new_log(self._options)
            found.take_names(self._log)
            rejection.tell_refused(found)


def looked_at(catalog: Catalog, keys: frozenset[str], mode: LoadMode) -> frozenset[str]:
    """Return the tables that a load into others reads: ends of edges, and edges of replaced nodes."""
    read: set[str] = set()
    for key in keys:
        type_ = catalog.type_of(key)
        if key.startswith("edge:"):
            edge = catalog.edges[type_.name]
            read |= {f"node:{edge.source}", f"node:{edge.target}"}
        elif mode == "overwrite":
            incident = (e for e in catalog.edges.values() if type_.name in {e.source, e.target})
            read |= {edge.table_key for edge in incident}
    return frozenset(read - keys)


def _read(
    graph: OpenGraph,
    catalog: Catalog,
    inputs: Sequence[LoadInput],
    log: ViolationLog,
    progress: ProgressCallback,
) -> dict[str, TypedRows]:
    """Return the rows of all inputs by table; what cannot be read is in the log."""
    parts: dict[str, list[TypedRows]] = {}
    counts: dict[str, int] = {}
    begun = boot_clock()

    def read_so_far(*, is_done: bool = False) -> ProgressEvent:
        tables, seconds = tuple(sorted(counts.items())), boot_clock() - begun
        return ProgressEvent(
            Stage.READ, rows=sum(counts.values()), is_done=is_done, seconds=seconds, tables=tables
        )

    progress(read_so_far())
    for file, item in enumerate(inputs):
        with within_memory(item.name or "the input"):
            for rows in _rows_of(graph, catalog, item, file, log):
                key = rows.type.table_key
                parts.setdefault(key, []).append(rows)
                counts[key] = counts.get(key, 0) + rows.count
                progress(read_so_far())
        if log.has_enough:
            break
    with within_memory("the input"):
        found = {table_key: concat_rows(pieces) for table_key, pieces in parts.items()}
    progress(read_so_far(is_done=True))
    return found


def _counts(rows: Mapping[str, TypedRows]) -> tuple[tuple[str, int], ...]:
    return tuple((key, rows[key].count) for key in sorted(rows))


def _rows_of(
    graph: OpenGraph, catalog: Catalog, item: LoadInput, file: int, log: ViolationLog
) -> Iterable[TypedRows]:
    new_id, limits = graph.parts.new_id, read_limits()
    if isinstance(item, SourceInput):
        source = replace(item, file=file)
        return read_source(source, catalog, make_id=new_id, log=log, limits=limits)
    if isinstance(item, RecordInput):
        found = read_ndjson(
            item.data,
            file=file,
            file_name=item.name,
            catalog=catalog,
            make_id=new_id,
            log=log,
            limits=limits,
        )
        return list(found.values())
    if isinstance(item, TableInput):
        type_ = catalog.type_of(item.table_key)
        table, lines = sound_rows(item.table, type_, file=file, file_name=item.name, log=log)
        rows = read_table(table, type_, file=file, file_name=item.name, make_id=new_id, log=log, lines=lines)
        # A table that is refused as a whole does not count for its type: an overwrite must not empty it.
        return [rows] if wrong_column(item.table.schema, type_) is None else []
    raise BadRequest("a Spark DataFrame can only be loaded by the spark engine")


def _write_set(
    catalog: Catalog, rows: Mapping[str, TypedRows], mode: LoadMode, committed: CommittedTables
) -> WriteSet:
    keys = frozenset(rows)
    return WriteSet(changes_of(rows, mode, committed), keys, looked_at(catalog, keys, mode))


def changes_of(
    rows: Mapping[str, TypedRows], mode: LoadMode, committed: CommittedTables
) -> dict[str, TableChange]:
    """Return what a load does to each table."""
    return {
        key: TableChange(found.type, found, _removed_ids(key, mode, committed), mode)
        for key, found in rows.items()
    }


def _removed_ids(table_key: str, mode: LoadMode, committed: CommittedTables) -> Column:
    """Return the committed ids, which an overwrite removes except for those it writes again."""
    if mode != "overwrite":
        return NO_IDS
    return committed.scan(table_key, columns=["id"])["id"].combine_chunks()
