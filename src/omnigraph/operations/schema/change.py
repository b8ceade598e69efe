"""A schema that is about to be accepted: its numbers, what it does to tables, and its publish.

D1  Cost follows what changes, not how many rows there are: columns are added, dropped and renamed without
    touching a row. Only a fill for older rows and a wider type write values, and only those of one column;
    and what is dropped for good takes the rest of its files with it, which is written anew.
D2  Numbers of types, properties, tables and columns are reserved before they are used, and never used twice,
    whatever becomes of the change.
D3  Every table that the change moves, drops or renames must be where it was planned on.
D4  Rows get the fill of a property that is new to them. A required one has a fill: its column gets no nulls.
D5  Damage is not copied: files whose values are taken over are compared first (N1 of `commit/rewritten.py`).
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.build import build_catalog
from omnigraph.catalog.identity import AcceptedSchema
from omnigraph.catalog.model import Property
from omnigraph.catalog.reshape import EntityType, Reshape, TableChanges, table_changes
from omnigraph.commit.publish import PublishOutcome
from omnigraph.commit.rewritten import compare_before_rewrite
from omnigraph.commit.schema_change import EndedTable, RenamedTable, SchemaChange
from omnigraph.commit.section import FailpointNames, TableCommit
from omnigraph.commit.sidecar import WriterKind
from omnigraph.commit.write import Attempt, Change, NewTables, entered, new_tables, owns
from omnigraph.core.failpoint import hit
from omnigraph.history.contract import SCHEMA_IR, Contract, accepted_in, compiled
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import BranchIdentity, TableIdentity, identity_of
from omnigraph.history.manifest_rows import PublishedPin
from omnigraph.history.numbers import reserve_numbers
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.engine import Engine, choose_engine
from omnigraph.operations.progress import TableProgressCallback, Tables, unseen
from omnigraph.operations.settings import schema_spark_bytes
from omnigraph.storage.tables.column_work import ColumnSource
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.layout import names_of_fragments
from omnigraph.storage.tables.reshape import Reshaping, plan_reshape, stage_reshape
from omnigraph.storage.tables.staged import StagedWrite
from omnigraph.validate.columns import Column
from omnigraph.validate.defaults import stored_fill

if TYPE_CHECKING:
    from omnigraph.operations.schema.spark import ColumnExecutors

_FAILPOINTS = FailpointNames(
    post_sidecar="schema_apply.post_sidecar_pre_commit",
    post_table="schema_apply.post_table_commit",
    pre_publish="schema_apply.before_manifest_commit",
    post_publish="schema_apply.after_manifest_commit",
)


@dataclass(frozen=True, slots=True)
class Where:
    """Who writes the rows of a change: this process, or Spark; `auto` decides by their size."""

    engine: Engine = "auto"
    master: str | None = None

    def is_spark(self, size: int) -> bool:
        """Whether executors write that many bytes; nothing is left to them where nothing is written.

        Raises:
            SparkUnavailable: the settings of Spark are malformed.
        """
        if not size:
            return False
        return choose_engine(self.engine, self.master, lambda: size >= schema_spark_bytes()) == "spark"


ANYWHERE = Where()


@dataclass(frozen=True, slots=True)
class AcceptedChange:
    """A schema, what it does to tables, and the first of the numbers for their new columns."""

    contract: Contract
    tables: TableChanges
    first_column: int


def accept(
    graph: OpenGraph,
    state: ManifestState,
    numbered: Callable[[int], AcceptedSchema],
    *,
    source: str,
    purges: bool = False,
) -> AcceptedChange:
    """Reserve the numbers of a schema that follows that of a branch; `numbered` gives it numbers (D2).

    `purges` makes drops final.

    Raises:
        StorageError: the counter of the graph could not be moved.
    """
    before, accepted = graph.catalog_of(state), accepted_in(state.schema.text)
    draft = numbered(accepted.next_id)
    new_columns = _new_columns(table_changes(before, build_catalog(draft), purges=purges))
    needed = draft.next_id - accepted.next_id + len(new_columns)
    start = reserve_numbers(graph.parts.adapter, needed, least=accepted.next_id)
    given = numbered(start)
    # The numbers of columns count as issued by the schema too: its counter is a second record of them.
    contract = Contract.of(compiled(source), replace(given, next_id=start + needed))
    return AcceptedChange(contract, table_changes(before, contract.catalog, purges=purges), given.next_id)


def accept_merged(
    graph: OpenGraph,
    state: ManifestState,
    merged: AcceptedSchema,
    *,
    source: str,
    dry_run: bool = False,
    purges: bool = False,
) -> AcceptedChange:
    """Reserve the numbers for columns of a schema whose types and properties have theirs (D2).

    A dry run reserves none, and can publish nothing. `purges` makes drops final.

    Raises:
        StorageError: the counter of the graph could not be moved.
    """
    before, least = graph.catalog_of(state), max(merged.next_id, accepted_in(state.schema.text).next_id)
    tables = table_changes(before, build_catalog(merged), purges=purges)
    columns = len(_new_columns(tables))
    is_reserved = columns > 0 and not dry_run
    start = reserve_numbers(graph.parts.adapter, columns, least=least) if is_reserved else least
    contract = Contract.of(compiled(source), replace(merged, next_id=start + columns))
    return AcceptedChange(contract, table_changes(before, contract.catalog, purges=purges), start)


def publish_schema(
    graph: OpenGraph,
    state: ManifestState,
    accepted: AcceptedChange,
    *,
    actor: str | None,
    message: str | None,
    upgraded_to: ManifestState | None = None,
    progress: TableProgressCallback = unseen,
    where: Where = ANYWHERE,
) -> PublishOutcome:
    """Stage what tables need, and make all of it visible with the schema.

    `upgraded_to` is main, where its schema is taken over: a type that is new here has a table there.
    `progress` hears of the tables of which rows are written, `where` says who writes them.

    Raises:
        ExpectedVersionMismatch, ReadSetChanged, SchemaChanged: something moved meanwhile (D3).
        RecoveryRequired: the outcome is unknown or unfinished.
    """
    snapshot, tables = state.snapshot(), accepted.tables
    reshaped = [(snapshot.entry(item.old.table_key), item) for item in tables.reshaped]
    rows = {entry.table_key: entry.row_count for entry, item in reshaped if item.writes_rows}
    with ExitStack() as held:
        shaping = Shaping(graph, accepted, Tables("schema apply", rows, progress))
        if where.is_spark(shaping.size(reshaped) if rows else 0):
            from omnigraph.operations.schema.spark import column_executors

            shaping.executors = held.enter_context(column_executors(graph, where.master))
        return _publish(
            graph, state, accepted, shaping, reshaped, actor=actor, message=message, upgraded_to=upgraded_to
        )


def _publish(
    graph: OpenGraph,
    state: ManifestState,
    accepted: AcceptedChange,
    shaping: "Shaping",
    reshaped: Sequence[tuple[TableEntry, Reshape]],
    *,
    actor: str | None,
    message: str | None,
    upgraded_to: ManifestState | None,
) -> PublishOutcome:
    parts, snapshot, tables = graph.parts, state.snapshot(), accepted.tables
    for entry, item in reshaped:
        shaping.compare(state.branch, entry, item)
    owned = [(entry, shaping.stage(entry, item)) for entry, item in reshaped if owns(state.branch, entry)]
    inherited = {entry.table_key: item for entry, item in reshaped if not owns(state.branch, entry)}
    elsewhere = {} if upgraded_to is None else _entries(upgraded_to)
    known = [elsewhere[identity_of(type_)] for type_ in tables.added if identity_of(type_) in elsewhere]
    created = [
        new_entry(type_, state.branch) for type_ in tables.added if identity_of(type_) not in elsewhere
    ]
    change = Change(
        WriterKind.SCHEMA_APPLY,
        snapshot,
        frozenset(entry.table_key for entry, _ in reshaped),
        _FAILPOINTS,
        read=_depended_on(tables) - {entry.table_key for entry, _ in reshaped},
        actor=actor,
        message=message,
        created=(*created, *(unknown_entry(entry, state.branch) for entry in known)),
        schema=schema_change(snapshot, state, accepted, upgraded_to),
    )
    hit("schema_apply.post_stage_pre_gate")
    with (
        entered(parts, graph.publisher, change, moved=[entry for entry, _ in owned]) as attempt,
        attempt.forked(snapshot.entry(key) for key in inherited) as forks,
        attempt.forked(known) as begun,
        new_tables(parts) as made,
    ):
        writes = [*owned]
        writes += [(fork, shaping.stage(fork, inherited[key])) for key, fork in forks.tables.items()]
        commits = [attempt.staged(*write) for write in writes]
        types = {identity_of(type_): type_ for type_ in tables.added}
        commits += [_creation(graph, attempt, made, entry, types[entry.identity]) for entry in created]
        commits += [
            _emptied(graph, attempt, fork, types[fork.identity], state.branch)
            for fork in begun.tables.values()
        ]
        commits.sort(key=lambda commit: commit.entry.table_key)
        written = [] if shaping.executors is None else [shaping.executors]
        return attempt.commit(commits, [forks, begun, made, *written])


def _entries(state: ManifestState) -> dict[TableIdentity, TableEntry]:
    return {entry.identity: entry for entry in state.tables.entries()}


def schema_change(
    snapshot: Snapshot,
    state: ManifestState,
    accepted: AcceptedChange,
    upgraded_to: ManifestState | None = None,
) -> SchemaChange:
    """Return what the publish says of the schema, of names and of tables that end."""
    renames = tuple(
        RenamedTable(new.id, new.incarnation, old.table_key, new.table_key)
        for old, new in accepted.tables.renamed
    )
    ends = tuple(EndedTable.of(snapshot.entry(type_.table_key)) for type_ in accepted.tables.dropped)
    texts = accepted.contract.texts
    return SchemaChange(
        texts[SCHEMA_IR],
        accepted.contract.source,
        state.schema.published_at,
        renames,
        ends,
        None if upgraded_to is None else upgraded_to.head.graph_commit_id,
    )


def new_entry(type_: EntityType, branch: BranchIdentity) -> TableEntry:
    """Return the table of a type that no branch knows yet: at version 0."""
    identity = identity_of(type_)
    pin = PublishedPin(0, None, 0, None, branch.name)
    return TableEntry(identity, type_.table_key, identity.location(type_.table_key), pin)


class Shaping:
    """Stages the columns that tables get; each column that needs a number of the graph has its own (D2)."""

    def __init__(self, graph: OpenGraph, accepted: AcceptedChange, tables: Tables | None = None) -> None:
        """Take the change, whose numbers are reserved, and who counts the tables with rows to write."""
        self._parts = graph.parts
        self._tables = tables
        self.executors: ColumnExecutors | None = None
        columns = _new_columns(accepted.tables)
        self._numbers = dict(zip(columns, count(accepted.first_column), strict=False))

    def stage(self, entry: TableEntry, reshape: Reshape) -> StagedWrite:
        """Prepare the columns of a table, at its pin or on a fork of it (D1)."""
        is_told = self._tables is not None and reshape.writes_rows
        with self._tables.at(entry.table_key) if self._tables and is_told else nullcontext():
            handle = self._parts.open(entry)
            planned = self.plan(handle, reshape)
            if self.executors is None or planned.work is None:
                return stage_reshape(handle, planned)
            return self.executors.stage(entry, handle, reshape.old, planned)

    def compare(self, branch: BranchIdentity, entry: TableEntry, reshape: Reshape) -> None:
        """Compare the files of a table from which values are taken over into new ones, at its pin (D5).

        Raises:
            GraphDamaged: some are not what their commits wrote.
            StorageError: something cannot be read.
        """
        planned = self.plan(self._parts.open(entry), reshape)
        if planned.work is not None and planned.work.copies:
            chosen = partial(names_of_fragments, numbers=frozenset(planned.fragments))
            compare_before_rewrite(self._parts, branch, entry, chosen)

    def stage_on(self, handle: SnapshotHandle, reshape: Reshape) -> StagedWrite:
        """Prepare the columns of one version of a table."""
        return stage_reshape(handle, self.plan(handle, reshape))

    def size(self, reshaped: Iterable[tuple[TableEntry, Reshape]]) -> int:
        """Return about how many bytes the change writes."""
        return sum(self.plan(self._parts.open(entry), item).size for entry, item in reshaped)

    def plan(self, handle: SnapshotHandle, reshape: Reshape) -> Reshaping:
        """Find out what has to be written for the columns of one version of a table."""
        sources = {
            name: ColumnSource(
                origin.column,
                self._numbers.get((reshape.new.table_key, name)),
                _fill(origin.property) if origin.column is None and origin.property else None,
            )
            for name, origin in reshape.columns.items()
        }
        return plan_reshape(handle, arrow_schema(reshape.new), sources, purges=bool(reshape.purged))


def _fill(item: Property) -> Column | None:
    """Return what the rows of a table get for a property that is new to them (D4)."""
    assert item.fill is not None or item.type.nullable, f"{item.name} is required and has no value for rows"
    return stored_fill(item)


def _new_columns(tables: TableChanges) -> list[tuple[str, str]]:
    """Return the columns that get a place of their own in storage, by table and name."""
    return [
        (item.new.table_key, name)
        for item in tables.reshaped
        for name, origin in item.columns.items()
        if origin.is_new
    ]


def _depended_on(tables: TableChanges) -> frozenset[str]:
    """Return the tables that must be where they were although they do not move (D3)."""
    return frozenset(type_.table_key for type_ in (*tables.dropped, *(old for old, _ in tables.renamed)))


def unknown_entry(entry: TableEntry, branch: BranchIdentity) -> TableEntry:
    """Return a table of another branch as one that this branch does not know: at version 0."""
    return replace(entry, pin=PublishedPin(0, entry.pin.ref, 0, None, branch.name))


def _emptied(
    graph: OpenGraph, attempt: Attempt, fork: TableEntry, type_: EntityType, branch: BranchIdentity
) -> TableCommit:
    """Return the commit that begins a branch's own table, without rows, on a fork of another branch's."""
    staged = graph.parts.stager.stage_overwrite(graph.parts.open(fork), arrow_schema(type_), None)
    return attempt.creation(replace(unknown_entry(fork, branch), table_key=type_.table_key), staged)


def _creation(
    graph: OpenGraph, attempt: Attempt, made: NewTables, entry: TableEntry, type_: EntityType
) -> TableCommit:
    staged = graph.parts.stager.stage_create_table(graph.parts.address(entry), arrow_schema(type_))
    return attempt.creation(entry, made.add(entry, staged))
