"""Publishing a merge: the target's tables, one more look, then phases A to D.

G1  Nothing is written before the target is known to be where it was captured; every table of the target is
    held until the merge has landed.
G2  Damage is not copied: files of which all goes into new ones are compared (N1 of `commit/rewritten.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import Catalog
from omnigraph.commit.changes import PinChange, RegisterTable, UpdateTable
from omnigraph.commit.multi_step import Chunk, Chunks, Steps, new_table_commit, staged_alone, table_commit
from omnigraph.commit.publish import PublishOutcome
from omnigraph.commit.rewritten import compare_before_rewrite
from omnigraph.commit.section import FailpointNames, TableCommit
from omnigraph.commit.sidecar import WriterKind
from omnigraph.commit.write import Attempt, Change, MergedCommit, entered, owns
from omnigraph.core.errors import ReadSetChanged
from omnigraph.history.commits import GraphCommit
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import BranchIdentity, TableIdentity, identity_of
from omnigraph.history.manifest_rows import PublishedPin
from omnigraph.history.state import ManifestState
from omnigraph.merge.plan import tables_read
from omnigraph.merge.rows import DeltaRows, as_texts
from omnigraph.merge.three_way import TableDelta
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.progress import Advance, TableProgressCallback, Tables, unseen
from omnigraph.operations.schema.change import AcceptedChange, Shaping, schema_change
from omnigraph.storage.tables.layout import names_of_fragments
from omnigraph.storage.tables.staged import CommittedTable

_FAILPOINTS = FailpointNames(
    post_sidecar="branch_merge.post_sidecar_pre_commit",
    post_table="branch_merge.post_table",
    pre_confirm="branch_merge.post_phase_b_pre_confirm",
    pre_publish="branch_merge.post_phase_b_pre_manifest_commit",
    post_publish="branch_merge.post_publish_pre_sidecar_delete",
)


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Who merges what into what."""

    source: str
    target: str
    actor: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge does to the target: rows of some tables, another version of others, another schema.

    `looked_at` are all tables on which the decision depends, written or not. Tables are named as they will
    be.
    """

    looked_at: tuple[str, ...]
    deltas: tuple[TableDelta, ...]
    repointed: tuple[TableEntry, ...]  # as the source has them
    rows_read: int
    catalog: Catalog  # what the target will have
    change: AcceptedChange | None = None
    added: tuple[tuple[TableDelta, TableEntry], ...] = ()  # with the table as the source has it


def publish_merge(
    graph: OpenGraph,
    request: MergeRequest,
    plan: MergePlan,
    *,
    source_head: GraphCommit,
    source_history: Mapping[str, object],
    captured: ManifestState,
    progress: TableProgressCallback = unseen,
) -> PublishOutcome:
    """Write what the target takes, and make it visible with a commit that has two parents.

    Raises:
        ReadSetChanged: the target moved since it was captured.
        BranchNotFound: the target is gone, or was created again.
        ConflictError: another writer was first; with `recovery_operation_id` where effects wait for recovery.
        RecoveryRequired: the outcome is unknown or unfinished.
    """
    parts, branch = graph.parts, captured.branch
    snapshot = captured.snapshot()
    tables = _Tables(graph, captured, plan)
    written, pointed = tables.written, [tables.entry(entry.identity) for entry in plan.repointed]
    moved = frozenset(entry.table_key for entry in (*written, *pointed))
    change = Change(
        WriterKind.BRANCH_MERGE,
        snapshot,
        moved,
        _FAILPOINTS,
        read=tables.looked_at - moved,
        actor=request.actor,
        message=request.message,
        merged=MergedCommit(source_head.graph_commit_id, source_history),
        pointers=tables.pointers,
        requires=lambda state: _refuse_other_head(captured, state),
        created=tables.created,
        schema=None if plan.change is None else schema_change(snapshot, captured, plan.change),
    )
    owned = [entry for entry in (*written, *pointed) if owns(branch, entry)]
    tables.compare()
    with (
        entered(parts, graph.publisher, change, moved=owned, held=snapshot.entries) as attempt,
        attempt.forked(written) as forks,
    ):
        return attempt.commit(tables.commits(attempt, forks.tables, progress), [forks])


class _Tables:
    """The target's tables in a merge: by lifetime, since a schema that is merged may rename them."""

    def __init__(self, graph: OpenGraph, captured: ManifestState, plan: MergePlan) -> None:
        self._graph, self._plan, self._branch = graph, plan, captured.branch
        self._entries = {entry.identity: entry for entry in captured.snapshot().entries.values()}
        self._names = {type_.table_key: identity_of(type_) for type_ in plan.catalog.types}
        self._deltas = {self._names[delta.table_key]: delta for delta in plan.deltas}
        changes = () if plan.change is None else plan.change.tables.reshaped
        pointed = {entry.identity for entry in plan.repointed}
        self._reshaped = {
            identity_of(item.new): item for item in changes if identity_of(item.new) not in pointed
        }
        self._shaping = None if plan.change is None else Shaping(graph, plan.change)
        self._advance: dict[TableIdentity, Advance] = {}

    def commits(
        self, attempt: Attempt, forks: Mapping[str, TableEntry], progress: TableProgressCallback
    ) -> list[TableCommit]:
        """Return what happens to the tables; where one commit of each is all, that is staged now."""
        steps = [self._steps(forks[entry.table_key]) for entry in self.written]
        new = self._new_commits
        entries = [*(item.entry for item in steps), *(item.entry for item in new)]
        tables = self._told(entries, progress)
        if not new and all(item.is_one for item in steps):
            return [self._staged(attempt, item, tables) for item in steps]
        return self._running([*(self._commit(attempt, item) for item in steps), *new], tables)

    def _told(self, entries: Sequence[TableEntry], progress: TableProgressCallback) -> Tables:
        """Return what tells when tables begin, go on and end: how many rows each takes is known."""
        deltas = self._deltas | {entry.identity: delta for delta, entry in self._plan.added}
        rows = {
            entry.table_key: deltas[entry.identity].rows if entry.identity in deltas else 0
            for entry in entries
        }
        return Tables("merge", rows, progress, stage="rows")

    def _staged(self, attempt: Attempt, steps: Steps, tables: Tables) -> TableCommit:
        with tables.at(steps.entry.table_key) as self._advance[steps.entry.identity]:
            staged = staged_alone(self._graph.parts, steps)
        return attempt.staged(steps.entry, staged)

    def _running(self, commits: Sequence[TableCommit], tables: Tables) -> list[TableCommit]:
        """Return commits that tell when they begin, go on and end."""

        def run(commit: TableCommit, operation_id: str) -> CommittedTable | None:
            with tables.at(commit.entry.table_key) as self._advance[commit.entry.identity]:
                return commit.run(operation_id)

        return [replace(commit, run=partial(run, commit)) for commit in commits]

    def _counted(self, identity: TableIdentity, chunks: Chunks) -> Chunks:
        """Return chunks of rows that tell when they have been taken."""

        def counted() -> Iterator[Chunk]:
            for rows, replaced in chunks():
                yield rows, replaced
                self._advance[identity](rows.num_rows)

        return counted

    def entry(self, identity: TableIdentity) -> TableEntry:
        """Return a table as the target has it."""
        return self._entries[identity]

    @property
    def written(self) -> list[TableEntry]:
        """The tables that get rows, or other columns, by name."""
        chosen = self._deltas.keys() | self._reshaped.keys()
        return sorted((self._entries[identity] for identity in chosen), key=lambda entry: entry.table_key)

    @property
    def looked_at(self) -> frozenset[str]:
        """The tables on which the decision depends, as the target names them."""
        plan = self._plan
        losing = {delta.table_key for delta in plan.deltas if len(delta.deleted)}
        keys = {*plan.looked_at, *(delta.table_key for delta, _ in plan.added)}
        named = keys | set(tables_read(plan.catalog, keys, losing))
        known = [self._entries.get(self._names[key]) for key in named]
        ended = () if plan.change is None else (type_.table_key for type_ in plan.change.tables.dropped)
        return frozenset([*(entry.table_key for entry in known if entry is not None), *ended])

    @property
    def pointers(self) -> tuple[PinChange, ...]:
        """The versions that the target adopts as they are, tables that it does not have included."""
        adopted: list[PinChange] = [
            _pointer(entry, entry.table_key, self._branch.name) for entry in self._plan.repointed
        ]
        for delta, entry in self._plan.added:
            if self._is_adopted(entry):
                pin = _pointer(entry, delta.table_key, self._branch.name).pin
                adopted.append(RegisterTable(entry.identity, delta.table_key, pin))
        return tuple(adopted)

    @property
    def created(self) -> tuple[TableEntry, ...]:
        """The tables that the target does not have."""
        return tuple(_unknown(delta, entry, self._branch) for delta, entry in self._plan.added)

    @property
    def _new_commits(self) -> list[TableCommit]:
        """The rows of tables that the target does not have, and cannot adopt."""
        parts, types = self._graph.parts, self._plan.catalog
        return [
            new_table_commit(
                parts,
                _unknown(delta, entry, self._branch),
                arrow_schema(types.type_of(delta.table_key)),
                self._counted(entry.identity, delta.inserted.replacing_chunks),
            )
            for delta, entry in self._plan.added
            if not self._is_adopted(entry)
        ]

    def _is_adopted(self, entry: TableEntry) -> bool:
        """Return whether a version that lies on main's storage can be shown; main shows only its newest."""
        if entry.pin.ref is not None:
            return False
        parts = self._graph.parts
        return not self._branch.is_main or parts.store.latest_version(parts.address(entry)) == entry.version

    def compare(self) -> None:
        """Compare the files of tables that are copied as a whole, or get other columns, before that (G2).

        Raises:
            GraphDamaged: some are not what their commits wrote.
        """
        parts = self._graph.parts
        for _, entry in self._plan.added:
            if not self._is_adopted(entry):
                compare_before_rewrite(parts, self._branch, entry, names_of_fragments)
        for identity, reshape in self._reshaped.items():
            assert self._shaping is not None, "what is reshaped has a change"
            self._shaping.compare(self._branch, self._entries[identity], reshape)

    def _steps(self, written: TableEntry) -> Steps:
        """Return what happens to a table that the target has."""
        delta, reshape = self._deltas.get(written.identity), self._reshaped.get(written.identity)
        shaping = self._shaping
        return Steps(
            written,
            self._chunks(written, None if delta is None else delta.inserted),
            self._chunks(written, None if delta is None else delta.changed),
            [] if delta is None else as_texts(delta.deleted),
            None if reshape is None or shaping is None else lambda handle: shaping.stage_on(handle, reshape),
        )

    def _commit(self, attempt: Attempt, steps: Steps) -> TableCommit:
        return table_commit(
            self._graph.parts,
            steps,
            new_files=attempt.new_files(steps.entry),
            is_first_touch=attempt.is_first_touch(steps.entry),
        )

    def _chunks(self, written: TableEntry, rows: DeltaRows | None) -> Chunks | None:
        return (
            self._counted(written.identity, rows.replacing_chunks) if rows is not None and len(rows) else None
        )


def _refuse_other_head(captured: ManifestState, now: ManifestState) -> None:
    """Refuse a target that is not where it was captured, before the first effect (G1)."""
    if now.head != captured.head:
        raise ReadSetChanged(
            member=f"branch '{captured.branch.name}'",
            expected=captured.head.graph_commit_id,
            actual=now.head.graph_commit_id,
        )


def _pointer(entry: TableEntry, table_key: str, branch: str) -> UpdateTable:
    pin = PublishedPin(
        entry.version,
        entry.pin.ref,
        entry.row_count,
        entry.pin.transaction_uuid,
        branch,
        upkeep_version=entry.pin.upkeep_version,
    )
    return UpdateTable(entry.identity, table_key, pin)


def _unknown(delta: TableDelta, entry: TableEntry, branch: BranchIdentity) -> TableEntry:
    """Return a table of the source as one that the target does not know."""
    pin = PublishedPin(0, None, 0, None, branch.name)
    return TableEntry(entry.identity, delta.table_key, entry.identity.location(delta.table_key), pin)
