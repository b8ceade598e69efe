"""`schema apply`: another schema for a branch, as one commit or none.

A1  Tables, their names and the schema change in one publish: no reader sees one without the others.
A2  Other branches keep the schema that they have. They are neither waited for nor looked at, unless the
    caller wants to be alone.
A3  The files that repeat main's schema follow the publish. Whoever dies in between leaves that to the next
    open.
A4  What is dropped for good is in no file of the version that the publish shows. Behind the publish it is
    purged from the past, as far as nobody else needs it. What stays, and which branches keep it, is a
    warning.
A5  A text is the whole schema: what it does not name is dropped. Whoever names the commit that the text was
    made from drops nothing that came in between.
"""

from dataclasses import dataclass, replace

from omnigraph.catalog.build import read_schema
from omnigraph.catalog.identity import inherit
from omnigraph.catalog.migrate import MigrationPlan, plan_migration
from omnigraph.catalog.migration_steps import (
    AddProperty,
    DropProperty,
    Step,
    WidenProperty,
    Work,
    step_work,
)
from omnigraph.catalog.reshape import TableChanges
from omnigraph.commit.schema_lock import schema_lock
from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import BranchesBlockSchemaApply, CommitNotFound, OmnigraphError, SchemaChanged
from omnigraph.core.failpoint import hit
from omnigraph.core.span import Source
from omnigraph.history.commits import GraphCommit
from omnigraph.history.contract import accepted_in, promote_schema
from omnigraph.history.identity import BranchIdentity
from omnigraph.history.state import ManifestState
from omnigraph.operations.context import OpenGraph, check_message
from omnigraph.operations.ensure_indices import PendingIndex, build_behind
from omnigraph.operations.progress import TableProgressCallback, unseen
from omnigraph.operations.schema.change import ANYWHERE, Where, accept, publish_schema
from omnigraph.operations.schema.show import enter_schema
from omnigraph.policy.request import Action
from omnigraph.storage.tables.reshape import columns_in_files, rows_beside


@dataclass(frozen=True, slots=True)
class SchemaApplyResult:
    """What a change of schema did; without a commit there was nothing to change."""

    branch: str | None
    steps: tuple[Step, ...]
    commit: GraphCommit | None
    manifest_version: int
    index_commit: GraphCommit | None = None
    pending_indexes: tuple[PendingIndex, ...] = ()
    warnings: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()  # what the planner noticed besides the steps: ignored hints

    @property
    def supported(self) -> bool:
        """Whether the plan could be applied; one that cannot raises."""
        return True

    @property
    def applied(self) -> bool:
        """Whether anything changed."""
        return self.commit is not None


@dataclass(frozen=True, slots=True)
class SchemaPlan:
    """The steps from the schema of a branch to another one; `rows` are those that each step writes."""

    migration: MigrationPlan
    rows: tuple[int, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps, in order."""
        return self.migration.steps

    @property
    def is_supported(self) -> bool:
        """Whether the plan can be applied."""
        return self.migration.is_supported


def plan_schema(
    graph: OpenGraph,
    source: Source,
    *,
    branch: str | None = None,
    allow_data_loss: bool = False,
    actor: str | None = None,
) -> SchemaPlan:
    """Return the steps from the schema of a branch to another one; nothing is written.

    Raises:
        ParseError, CatalogError: the text is not a valid schema, or a rename cannot be followed.
        BranchNotFound: there is no such branch.
    """
    state = graph.newest(enter_schema(graph, actor, branch))
    plan = plan_migration(
        accepted_in(state.schema.text), read_schema(source), allow_data_loss=allow_data_loss
    )
    return SchemaPlan(plan, tuple(_rows_written(graph, plan, state, step) for step in plan.steps))


def _rows_written(graph: OpenGraph, plan: MigrationPlan, state: ManifestState, step: Step) -> int:
    """Return of how many rows of a table a step writes values."""
    if step_work(step) not in {Work.COLUMN, Work.REWRITE}:
        return 0
    assert isinstance(step, AddProperty | WidenProperty | DropProperty), "these write values"
    before = plan.resolution.types[step.type_kind, step.type_name]
    entry = state.snapshot().entries.get(f"{step.type_kind}:{before}")
    if entry is None:
        return 0
    if isinstance(step, DropProperty):
        return rows_beside(graph.parts.open(entry), step.property_name)
    return entry.row_count


def apply_schema(
    graph: OpenGraph,
    source: Source,
    *,
    branch: str | None = None,
    base: str | None = None,
    allow_data_loss: bool = False,
    exclusive: bool = False,
    actor: str | None = None,
    message: str | None = None,
    index: bool = True,
    progress: TableProgressCallback = unseen,
    where: Where = ANYWHERE,
) -> SchemaApplyResult:
    """Heal, plan, stage, publish once, repeat the schema in its files; then indexes.

    `base` is the commit whose schema the text was made from (A5). `progress` hears of the tables of which
    rows are written, `where` says who writes them.

    Raises:
        ParseError, CatalogError: the text is not a valid schema, or a rename cannot be followed.
        CommitNotFound: there is no such commit as `base`.
        SchemaChanged: the branch has another schema than at `base`; nothing changed.
        SchemaError: the plan has a change that is not supported; nothing changed.
        SchemaApplyInProgress: another process is changing the schema.
        BranchesBlockSchemaApply: the caller wants to be alone, and there are branches.
        ConflictError: a table or the schema moved meanwhile; nothing of this change is visible.
    """
    name = graph.enter_target(actor, Action.SCHEMA_APPLY, branch)
    graph.require_writable()
    check_message(message)
    desired = read_schema(source)
    graph.require_branch(name)
    graph.heal_if_due(begins_again=False)
    parts = graph.parts
    with (
        schema_lock(parts, exclusive=exclusive),
        parts.queues.schema_gate,
        parts.queues.branch_gates([name]),
    ):
        hit("schema_apply.post_lock_pre_plan")
        if exclusive:
            _refuse_branches(graph, actor)
        state = graph.state(name)
        if base is not None:
            _require_schema_of(state, base)
        accepted = accepted_in(state.schema.text)
        plan = plan_migration(accepted, desired, allow_data_loss=allow_data_loss)
        plan.require_supported()
        result = SchemaApplyResult(
            state.snapshot().branch, plan.steps, None, state.sequence, diagnostics=plan.diagnostics
        )
        if not plan.steps:
            return result
        change = accept(
            graph,
            state,
            lambda start: inherit(accepted, desired, plan.resolution, start=start),
            source=source.text,
            purges=allow_data_loss,
        )
        outcome = publish_schema(
            graph, state, change, actor=actor, message=message, progress=progress, where=where
        )
        commit = outcome.commit
        result = replace(result, commit=commit, manifest_version=commit.manifest_version)
        result = replace(result, warnings=follow_schema(graph, state.branch))
    if allow_data_loss:
        result = replace(result, warnings=(*result.warnings, *purge_past(graph, state, change.tables, actor)))
    if not index:
        return result
    tables = [type_.table_key for type_ in change.contract.catalog.types]
    built, trouble = build_behind(
        graph, name, tables, first=before_indexes, written=written_tables(change.tables)
    )
    return replace(
        result,
        index_commit=built.commit,
        pending_indexes=built.pending,
        warnings=(*result.warnings, *trouble),
    )


def follow_schema(graph: OpenGraph, branch: BranchIdentity) -> tuple[str, ...]:
    """Do what follows the publish of a schema; return what went wrong, which undoes nothing (A3)."""
    graph.follow_write(branch)
    if not branch.is_main:
        return ()
    try:
        graph.learn(promote_schema(graph.parts.adapter, graph.parts.coordinator))
        hit("schema_apply.post_promote")
    except OmnigraphError as error:
        warning = f"the schema is in force; its files are written by the next open: {error}"
        graph.parts.warn(warning)
        return (warning,)
    return ()


def purge_past(
    graph: OpenGraph, before: ManifestState, tables: TableChanges, actor: str | None
) -> tuple[str, ...]:
    """Remove the past of what was dropped for good; return what went wrong, which undoes nothing (A4)."""
    from omnigraph.operations.cleanup.cleanup import purge

    gone = {type_.table_key for type_ in tables.dropped}
    gone |= {item.old.table_key for item in tables.reshaped if item.purged}
    locations = {entry.location for entry in before.tables.entries() if entry.table_key in gone}
    if not locations:
        return ()
    try:  # first: the purge may take the version that says what was there
        kept = _kept_past(graph, before, locations, actor)
    except Exception as error:  # noqa: BLE001 - the change has landed: a warning, never its failure
        kept = (f"whether other branches keep values that were dropped could not be found out: {error}",)
    try:
        hit("schema_apply.pre_purge")
        failed = [row.error for row in purge(graph, locations) if row.error is not None]
    except Exception as error:  # noqa: BLE001 - as above
        failed = [str(error)]
    warnings = tuple(f"what was dropped is still in the past, until a cleanup: {error}" for error in failed)
    warnings += kept
    for warning in warnings:
        graph.parts.warn(warning)
    return warnings


def _kept_past(
    graph: OpenGraph, before: ManifestState, locations: set[str], actor: str | None
) -> tuple[str, ...]:
    """Say which branches keep values that were dropped for good (A4): in files that they show now."""
    parts = graph.parts
    after = {entry.location: entry for entry in graph.state(before.branch.name).tables.entries()}
    gone = {
        entry.location: columns_in_files(parts.open(entry))
        - (columns_in_files(parts.open(after[entry.location])) if entry.location in after else set())
        for entry in before.tables.entries()
        if entry.location in locations
    }
    others = [branch for branch in parts.branches.live() if branch.name != before.branch.name]
    kept = {
        branch.name: sorted(
            entry.table_key
            for entry in graph.state(branch.name).tables.entries()
            if entry.location in gone and gone[entry.location] & columns_in_files(parts.open(entry))
        )
        for branch in others
    }
    keeping = [name for name, tables in sorted(kept.items()) if tables]
    known = [f"'{name}'" for name in keeping if graph.may_know(actor, name)]
    hidden = len(keeping) - len(known)
    if hidden:
        known.append("a branch that you may not read" if hidden == 1 else f"{hidden} that you may not read")
    names = ", ".join(known)
    if not names:
        return ()
    tables = ", ".join(sorted({key for keys in kept.values() for key in keys}))
    return (
        f"values that were dropped from {tables} can still be read on {names}, and at older commits from "
        "where these branches start: upgrade them with data loss allowed or delete them, then run a cleanup",
    )


def written_tables(tables: TableChanges) -> list[str]:
    """Return the tables whose indexes lost rows because these were written to other files (A4)."""
    return [item.new.table_key for item in tables.reshaped if item.purged]


def before_indexes() -> None:
    """Mark the moment between a change of the schema and its index build."""
    hit("schema_apply.post_unlock_pre_index")


def _require_schema_of(state: ManifestState, base: str) -> None:
    """Compare the schema of a branch with that of a commit; the publish refuses any that comes later (A5)."""
    made_from = state.commits.find(base)
    if made_from is None:
        raise CommitNotFound(base)  # also if another branch has it: whoever may not read that learns nothing
    if state.snapshot_at(made_from.manifest_version).schema_text != state.schema.text:
        raise SchemaChanged(state.branch.name, base=base)


def _refuse_branches(graph: OpenGraph, actor: str | None) -> None:
    """Refuse to be alone in a graph that has branches (A2); named are those that the actor may know of."""
    names = sorted(branch.name for branch in graph.parts.branches.all())
    if names:
        known = [name for name in names if graph.may_know(actor, name)]
        raise BranchesBlockSchemaApply(known, len(names) - len(known))
