"""One run of `embed`: count, compute vectors, stage, publish; again where other writers were first.

R1  What is staged replaces rows of exactly the version that was read: a table that moved meanwhile is a
    conflict, and never loses what others wrote.
R2  Index builds and upkeep in the meantime changed no row: the rows that were written for an older version
    are used for the new one, and no vector is computed twice.
R3  Files that did not become part of a commit are removed when the run ends, as far as they are known. Once a
    commit has begun they belong to it, and to its recovery.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from omnigraph.bulk.connect.progress import ProgressEvent, Stage, told
from omnigraph.bulk.embed import Filling, FillReport
from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.commit.finalize import WriteRequest, finalize_staged
from omnigraph.commit.outcome import Made, NoEffect
from omnigraph.commit.sidecar import WriterKind
from omnigraph.commit.write import forked, owns
from omnigraph.core.errors import SchemaChanged, StorageError
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.provider import Provider
from omnigraph.embedding.remembering import RememberingProvider
from omnigraph.history.commits import GraphCommit
from omnigraph.history.fold import TableEntry
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.embed.model import EmbeddedTable, EmbedOptions, EmbedResult, EmbedTarget
from omnigraph.operations.embed.work import EmbedWork, Here, Workers, executors
from omnigraph.operations.engine import ChosenEngine, choose_engine, task_table
from omnigraph.operations.settings import check_ceiling, embed_spark_rows, write_retry_s
from omnigraph.staging.fragments import Replaced, StagedFragments, stage_written
from omnigraph.staging.write_set import WriteSet
from omnigraph.storage.tables.fragments import data_paths
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.pinned import pieces
from omnigraph.storage.tables.staged import StagedWrite


class EmbedRun:
    """One run; the work of one attempt is reused by the next ones where possible."""

    def __init__(
        self,
        graph: OpenGraph,
        options: EmbedOptions,
        targets: Sequence[EmbedTarget],
        config: EmbeddingConfig,
        provider: Provider,
        *,
        branch: str,
        actor: str | None,
        message: str | None,
    ) -> None:
        """Count what there is to do, and choose where to do it."""
        self._graph, self._options, self._targets = graph, options, targets
        self._config, self._model = config, provider.model
        self._branch, self._actor, self._message = branch, actor, message
        self._provider = RememberingProvider(provider, told=self._tell)
        self._vectors_done = 0
        self._made: tuple[GraphCommit, tuple[FillReport, ...]] | None = None
        self._written: list[tuple[TableAddress, StagedFragments]] = []
        snapshot = graph.state(branch).snapshot()
        self._counted = (snapshot, self._count(snapshot))
        self.engine = self._choose(self._rows)

    @property
    def retry_s(self) -> float:
        """How long the run may start over because rows changed: on Spark every vector is recomputed."""
        return write_retry_s() if self.engine == "local" else 0.0

    def attempt(self, state: ManifestState) -> tuple[EmbedResult, Snapshot]:
        """Find the rows in the newest state, compute their vectors, and publish (R1).

        Raises:
            EmbeddingError: the provider failed; nothing is visible.
            SchemaChanged: the run began under another schema.
            ConflictError: another writer was first.
            ResourceLimit: a table gets more rows or bytes than a setting allows.
        """
        snapshot = state.snapshot()
        if snapshot.schema_text != self._counted[0].schema_text:
            raise SchemaChanged(state.branch.name)
        if self._counted[0].manifest_version != snapshot.manifest_version:
            self._counted = (snapshot, self._count(snapshot))
        work = self._counted[1]
        result = EmbedResult(snapshot.branch, self._options.mode, self._model, (), None, self.engine)
        if not work:
            return result, snapshot
        with forked(self._graph.parts, state.branch, [item.entry for item in work]) as forks:
            work = [self._on(item, forks.tables[item.entry.table_key]) for item in work]
            with self._workers() as workers:
                reports = self._reports(state, work, workers)
                replaced = workers.delete(work)
            if any(not owns(state.branch, item.entry) for item in self._counted[1]):
                self._made = None  # what was written to this attempt's forks goes with them
            staged = [self._staged(item, reports, replaced) for item in work]
            request = WriteRequest(WriterKind.MUTATION, snapshot, self._actor, self._message)
            commit = self._published(request, staged, [forks, _Used(self, reports)])
        tables = tuple(
            EmbeddedTable(key, item.rows, sum(report.vectors for report in reports if _key(report) == key))
            for item in work
            for key in [item.entry.table_key]
        )
        return replace(result, tables=tables, commit=commit), snapshot

    def discard(self) -> None:
        """Remove the files that nothing refers to; best effort (R3)."""
        adapter, root = self._graph.parts.adapter, self._graph.parts.root.uri.rstrip("/") + "/"
        for address, part in self._written:
            for path in [path for item in part.fragments for path in data_paths(address, item)]:
                try:
                    adapter.discard(path.removeprefix(root))
                except StorageError as error:
                    self._graph.parts.warn(f"a file of a run was left behind: {error}")
        self._written = []

    @property
    def _rows(self) -> int:
        return sum(item.rows for item in self._counted[1])

    def _count(self, snapshot: Snapshot) -> list[EmbedWork]:
        """Return what there is to fill, by table; tables without such rows are left out."""
        parts = self._graph.parts
        work = []
        for target in self._targets:
            entry = snapshot.entry(target.type.table_key)
            found = pieces(parts.open(entry), target.where)
            if not found:
                continue
            filling = Filling(
                entry.table_key,
                task_table(self._graph, target.type, entry, "append"),
                target.columns,
                target.where,
                self._options.is_again,
                self._config,
                self._options.batch,
            )
            work.append(EmbedWork(entry, filling, found))
        return work

    def _on(self, item: EmbedWork, entry: TableEntry) -> EmbedWork:
        """Return the work on a table where this branch writes it."""
        table = replace(item.filling.table, pinned=self._graph.parts.pinned(entry))
        return replace(item, entry=entry, filling=replace(item.filling, table=table))

    def _choose(self, rows: int) -> ChosenEngine:
        """Return where vectors are computed: where the options say, else by their number."""
        if not rows and self._options.engine == "auto":
            return "local"
        return choose_engine(self._options.engine, self._options.master, lambda: rows >= embed_spark_rows())

    def _workers(self) -> AbstractContextManager[Workers]:
        progress = self._options.progress
        if self.engine == "local":
            self._vectors_done = 0
            return nullcontext(Here(self._provider, self._config, progress))
        return executors(self._graph, self._options.master, self._config, progress)

    def _reports(
        self, state: ManifestState, work: Sequence[EmbedWork], workers: Workers
    ) -> tuple[FillReport, ...]:
        """Return the rows that an earlier attempt wrote if no row changed since (R2), else write them now."""
        versions = {item.entry.table_key: item.entry.version for item in work}
        if self._made is not None:
            commit, made = self._made
            if state.commits.effective(commit) == state.commits.effective(state.head):
                return tuple(_moved(report, versions[_key(report)]) for report in made)
        reports = tuple(workers.fill(work))
        addresses = {item.entry.table_key: item.filling.table.address for item in work}
        self._written += [(addresses[_key(report)], report.written) for report in reports]
        for report in reports:
            if report.failure is not None:
                raise report.failure.error()
        self._made = (state.head, reports)
        return reports

    def _staged(
        self, item: EmbedWork, reports: Sequence[FillReport], replaced: Sequence[tuple[str, Replaced]]
    ) -> tuple[TableEntry, StagedWrite]:
        """Return one staged write for a table: new fragments, and deletions of what they replace."""
        parts, entry = self._graph.parts, item.entry
        written = [report.written for report in reports if _key(report) == entry.table_key]
        deleted = _together([found for key, found in replaced if key == entry.table_key])
        rows = sum(part.rows for part in written)
        assert rows == deleted.rows == item.rows, "every row that is written replaces one"
        size = sum(fragment.size for part in written for fragment in part.fragments)
        check_ceiling(entry.table_key, rows=rows, size=size)
        type_ = next(target.type for target in self._targets if target.type.table_key == entry.table_key)
        schema = arrow_schema(type_)
        handle = parts.open(entry)
        return entry, stage_written(parts.stager, handle, schema, written, mode="merge", replaced=deleted)

    def _published(
        self,
        request: WriteRequest,
        staged: Sequence[tuple[TableEntry, StagedWrite]],
        made: Sequence[Made],
    ) -> GraphCommit:
        write_set = WriteSet({}, frozenset(entry.table_key for entry, _ in staged))
        with told(self._options.progress, Stage.COMMIT):
            parts, publisher = self._graph.parts, self._graph.publisher
            return finalize_staged(parts, publisher, request, write_set, staged, made=made).commit

    def _tell(self, vectors: int) -> None:
        """Report how many vectors there are so far; executors report by their tasks."""
        self._vectors_done += vectors
        total = max(self._rows, self._vectors_done)  # a row may get several
        self._options.progress(
            ProgressEvent(
                Stage.EMBED, tasks_done=self._vectors_done, tasks_total=total, rows=self._vectors_done
            )
        )


class _Used:
    """The files of a run that one commit uses: they belong to the commit as soon as it has begun (R3)."""

    def __init__(self, run: EmbedRun, reports: Sequence[FillReport]) -> None:
        self._run = run
        self._fragments = {report.written.fragments for report in reports}
        self._handed: list[tuple[TableAddress, StagedFragments]] = []

    def hand_over(self) -> None:
        written = self._run._written
        self._handed = [item for item in written if item[1].fragments in self._fragments]
        self._run._written = [item for item in written if item[1].fragments not in self._fragments]

    def take_back(self, _end: NoEffect, /) -> None:
        self._run._written += self._handed


def _key(report: FillReport) -> str:
    return report.written.table_key


def _moved(report: FillReport, version: int) -> FillReport:
    return replace(report, written=replace(report.written, read_version=version))


def _together(parts: Sequence[Replaced]) -> Replaced:
    return Replaced(
        tuple(number for part in parts for number in part.removed),
        tuple(text for part in parts for text in part.updated),
        sum(part.rows for part in parts),
        tuple(item for part in parts for item in part.sums),
    )
