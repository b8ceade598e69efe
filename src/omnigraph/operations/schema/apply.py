"""`schema apply`: another schema for a branch, as one commit or none.

A1  Tables, their names and the schema change in one publish: no reader sees one without the others.
A2  Other branches keep the schema that they have. They are neither waited for nor looked at, unless the
    caller wants to be alone.
A3  The files that repeat main's schema follow the publish. Whoever dies in between leaves that to the next
    open.
A4  What is dropped for good is purged from the past behind the publish, as far as nobody else needs it. What
    stays, and which branches keep it, is a warning.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from omnigraph.catalog.build import read_schema
from omnigraph.catalog.identity import inherit
from omnigraph.catalog.migrate import MigrationPlan, plan_migration
from omnigraph.catalog.migration_steps import (
    AddProperty,
    DropMode,
    DropProperty,
    DropType,
    Step,
    WidenProperty,
    Work,
    step_work,
)
from omnigraph.commit.schema_lock import schema_lock
from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import BranchesBlockSchemaApply, OmnigraphError
from omnigraph.core.failpoint import hit
from omnigraph.core.span import Source
from omnigraph.history.commits import GraphCommit
from omnigraph.history.contract import accepted_in, promote_schema
from omnigraph.history.identity import BranchIdentity
from omnigraph.history.state import ManifestState
from omnigraph.operations.context import OpenGraph, check_message
from omnigraph.operations.ensure_indices import PendingIndex, build_behind
from omnigraph.operations.schema.change import accept, publish_schema


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
    state = graph.newest(graph.enter(actor, "read", branch))
    plan = plan_migration(
        accepted_in(state.schema.text), read_schema(source), allow_data_loss=allow_data_loss
    )
    return SchemaPlan(plan, tuple(_rows_written(plan, state, step) for step in plan.steps))


def _rows_written(plan: MigrationPlan, state: ManifestState, step: Step) -> int:
    """Return how many rows of a table get a value of a column that a step writes."""
    if step_work(step) is not Work.COLUMN:
        return 0
    assert isinstance(step, AddProperty | WidenProperty), "these write values"
    before = plan.resolution.types[step.type_kind, step.type_name]
    entry = state.snapshot().entries.get(f"{step.type_kind}:{before}")
    return 0 if entry is None else entry.row_count


def apply_schema(
    graph: OpenGraph,
    source: Source,
    *,
    branch: str | None = None,
    allow_data_loss: bool = False,
    exclusive: bool = False,
    actor: str | None = None,
    message: str | None = None,
    index: bool = True,
) -> SchemaApplyResult:
    """Heal, plan, stage, publish once, repeat the schema in its files; then indexes.

    Raises:
        ParseError, CatalogError: the text is not a valid schema, or a rename cannot be followed.
        SchemaError: the plan has a change that is not supported; nothing changed.
        SchemaApplyInProgress: another process is changing the schema.
        BranchesBlockSchemaApply: the caller wants to be alone, and there are branches.
        ConflictError: a table or the schema moved meanwhile; nothing of this change is visible.
    """
    name = graph.enter(actor, "schema_apply", branch)
    graph.require_writable()
    check_message(message)
    desired = read_schema(source)
    graph.require_branch(name)
    graph.heal()
    parts = graph.parts
    with (
        schema_lock(parts, exclusive=exclusive),
        parts.queues.schema_gate,
        parts.queues.branch_gates([name]),
    ):
        hit("schema_apply.post_lock_pre_plan")
        if exclusive:
            _refuse_branches(graph)
        state = graph.state(name)
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
        )
        commit = publish_schema(graph, state, change, actor=actor, message=message).commit
        result = replace(result, commit=commit, manifest_version=commit.manifest_version)
        result = replace(result, warnings=follow_schema(graph, state.branch))
    result = replace(result, warnings=(*result.warnings, *_purge(graph, state, plan.steps)))
    if not index:
        return result
    tables = [type_.table_key for type_ in change.contract.catalog.types]
    built, trouble = build_behind(graph, name, tables, first=before_indexes)
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


def _purge(graph: OpenGraph, before: ManifestState, steps: Iterable[Step]) -> tuple[str, ...]:
    """Remove the past of what was dropped for good; return what went wrong, which undoes nothing (A4)."""
    hard = [
        step for step in steps if isinstance(step, DropType | DropProperty) and step.mode is DropMode.HARD
    ]
    if not hard:
        return ()
    from omnigraph.operations.cleanup.cleanup import purge

    now = graph.state(before.branch.name)
    keys = {
        f"{step.type_kind}:{step.name if isinstance(step, DropType) else step.type_name}" for step in hard
    }
    locations = {
        entry.location
        for state in (before, now)
        for entry in state.tables.entries()
        if entry.table_key in keys
    }
    try:
        hit("schema_apply.pre_purge")
        failed = [row.error for row in purge(graph, locations) if row.error is not None]
    except Exception as error:  # noqa: BLE001 - the change has landed: a warning, never its failure
        failed = [str(error)]
    warnings = tuple(f"what was dropped is still in the past, until a cleanup: {error}" for error in failed)
    warnings += _kept_past(graph, before, locations)
    for warning in warnings:
        graph.parts.warn(warning)
    return warnings


def _kept_past(graph: OpenGraph, before: ManifestState, locations: set[str]) -> tuple[str, ...]:
    """Say which branches keep values that were dropped for good (A4)."""
    others = [branch for branch in graph.parts.branches.live() if branch.name != before.branch.name]
    kept = {
        branch.name: sorted(entry.table_key for entry in entries if entry.location in locations)
        for branch in others
        for entries in [graph.state(branch.name).tables.entries()]
    }
    names = ", ".join(f"'{name}'" for name, tables in sorted(kept.items()) if tables)
    if not names:
        return ()
    tables = ", ".join(sorted({key for keys in kept.values() for key in keys}))
    return (
        f"values that were dropped from {tables} can still be read on {names}, and at older commits from "
        "where these branches start: merge into them or delete them, then run a cleanup",
    )


def before_indexes() -> None:
    """Mark the moment between a change of the schema and its index build."""
    hit("schema_apply.post_unlock_pre_index")


def _refuse_branches(graph: OpenGraph) -> None:
    """Refuse to be alone in a graph that has branches (A2)."""
    names: Iterable[str] = sorted(branch.name for branch in graph.parts.branches.all())
    if names := list(names):
        raise BranchesBlockSchemaApply(names)
