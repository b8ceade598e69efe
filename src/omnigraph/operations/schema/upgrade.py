"""`branch upgrade`: bring the changes of main's schema to a branch, and none of its rows.

U1  The schemas are merged as a merge of main would merge them: what the branch did to its schema stays, and
    what both did differently is a conflict. A later merge finds both sides agreed.
U2  The commit of main whose schema was taken over is recorded: later merges start from that schema, and bring
    back nothing that main drops from then on.
U3  What the branch wrote to something that main dropped is a conflict; nothing is lost without a word.
U4  Values that main dropped stay in the files of the branch, unless data loss is allowed: then they go as
    with a hard drop.
"""

from dataclasses import replace

from omnigraph.catalog.migration_steps import Step
from omnigraph.commit.schema_lock import schema_lock
from omnigraph.core.errors import BadRequest, MergeConflicts
from omnigraph.history.identity import MAIN
from omnigraph.operations.context import OpenGraph, check_message
from omnigraph.operations.ensure_indices import build_behind
from omnigraph.operations.merge.base import MergeBase
from omnigraph.operations.merge.schemas import merge_schema
from omnigraph.operations.progress import TableProgressCallback, unseen
from omnigraph.operations.schema.apply import (
    SchemaApplyResult,
    before_indexes,
    follow_schema,
    purge_past,
    written_tables,
)
from omnigraph.operations.schema.change import ANYWHERE, Where, publish_schema
from omnigraph.policy.request import Action

_NO_STEPS: tuple[Step, ...] = ()


def upgrade_branch(
    graph: OpenGraph,
    branch: str,
    *,
    actor: str | None = None,
    message: str | None = None,
    index: bool = True,
    allow_data_loss: bool = False,
    progress: TableProgressCallback = unseen,
    where: Where = ANYWHERE,
) -> SchemaApplyResult:
    """Heal, merge the two schemas, publish; then indexes.

    With data loss allowed, what main dropped leaves the files of the branch too (U4). `progress` hears of the
    tables of which rows are written, `where` says who writes them.

    Raises:
        BadRequest: main is what others are upgraded to.
        BranchNotFound: there is no such branch.
        MergeConflicts: the two schemas, or what the branch wrote and main dropped, are at odds (U1, U3).
        SchemaApplyInProgress: another process is changing the schema.
        ConflictError: the branch moved meanwhile; nothing of this change is visible.
    """
    name = graph.enter_target(actor, Action.SCHEMA_APPLY, branch)
    graph.require_writable()
    check_message(message)
    if name == MAIN:
        raise BadRequest("main has the newest schema: name a branch that is to be brought up to it")
    graph.require_branch(name)
    graph.heal_if_due(begins_again=False)
    queues = graph.parts.queues
    with schema_lock(graph.parts, exclusive=False), queues.schema_gate, queues.branch_gates([MAIN, name]):
        main, state = graph.state(MAIN), graph.state(name)
        base = MergeBase(graph, main, state)
        merged = merge_schema(
            graph, base.read(base.find()), main, state, with_rows=False, purges=allow_data_loss
        )
        if merged.conflicts:
            raise MergeConflicts(sorted(merged.conflicts, key=lambda conflict: conflict.sort_key))
        result = SchemaApplyResult(state.snapshot().branch, _NO_STEPS, None, state.sequence)
        if merged.change is None:
            return result
        outcome = publish_schema(
            graph,
            state,
            merged.change,
            actor=actor,
            message=message,
            upgraded_to=main,
            progress=progress,
            where=where,
        )
        commit = outcome.commit
        warnings = follow_schema(graph, state.branch)
        result = replace(result, commit=commit, manifest_version=commit.manifest_version, warnings=warnings)
    changed = merged.change.tables
    if allow_data_loss:
        result = replace(result, warnings=(*result.warnings, *purge_past(graph, state, changed, actor)))
    if not index:
        return result
    tables = [type_.table_key for type_ in merged.catalog.types]
    built, trouble = build_behind(graph, name, tables, first=before_indexes, written=written_tables(changed))
    return replace(
        result,
        index_commit=built.commit,
        pending_indexes=built.pending,
        warnings=(*result.warnings, *trouble),
    )
