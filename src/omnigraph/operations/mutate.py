"""`mutate`: one query, one commit or none."""

from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.catalog.bind import bind, find_query
from omnigraph.catalog.bound import NOW_PARAMETER, BoundMutation
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.params import bind_parameters
from omnigraph.commit.finalize import WriteRequest, check_if_commit, finalize
from omnigraph.commit.sidecar import WriterKind
from omnigraph.core.errors import BadRequest
from omnigraph.core.shield import noting
from omnigraph.core.span import Source
from omnigraph.exec.mutation import (
    CommittedTables,
    MutationEffect,
    MutationPlan,
    execute_mutation,
    plan_mutation,
)
from omnigraph.history.commits import GraphCommit
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.language import query_ast as ast
from omnigraph.language.query_parser import parse_queries
from omnigraph.operations.context import OpenGraph, check_message
from omnigraph.operations.retry import retry_on_conflict
from omnigraph.operations.settings import check_ceilings
from omnigraph.operations.upkeep import after_write
from omnigraph.staging.write_set import work_of
from omnigraph.validate.set_checks import validate_changeset
from omnigraph.validate.sets import KeyOps
from omnigraph.validate.violations import ViolationLog


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation did; without a commit it matched nothing."""

    branch: str | None
    query_name: str
    affected_nodes: int
    affected_edges: int
    commit: GraphCommit | None


def mutate(
    graph: OpenGraph,
    source: Source,
    *,
    name: str | None = None,
    params: object = None,
    branch: str | None = None,
    actor: str | None = None,
    if_commit: str | None = None,
    message: str | None = None,
    retries: int = 0,
) -> MutationResult:
    """Parse, heal, check, run over one snapshot, validate, publish; then upkeep where it is due.

    Raises:
        MixedMutation, ParseError: before any I/O.
        TypeCheckError, ParameterError, ValidationError: nothing was written.
        ConflictError: another writer was first; nothing of this mutation is visible.
        PreconditionFailed: the branch is not at `if_commit`.
    """
    target = graph.enter(actor, "change", branch)
    graph.require_writable()
    check_message(message)
    query = _pick(parse_queries(source), name)
    graph.require_branch(target)
    graph.heal_if_due()
    now = graph.parts.clock() // 1_000
    make_id = _Ids(graph.parts.new_id)

    def attempt(state: ManifestState) -> tuple[MutationResult, Snapshot]:
        snapshot, catalog = state.snapshot(), graph.catalog_of(state)
        plan = _planned(query, catalog, source)
        parameters = bind_parameters(plan.parameters, params) | {NOW_PARAMETER: now}
        check_if_commit(state, if_commit)
        committed = CommittedTables(snapshot, graph.parts.store, graph.parts.pinned)
        log = ViolationLog()
        effect = execute_mutation(plan, parameters, catalog, committed, make_id=make_id.again(), log=log)
        if effect.write_set.is_empty and not log.total:
            return _result(query, snapshot.branch, effect, None), snapshot
        changes = effect.write_set.changes
        rows = validate_changeset(changes, catalog, KeyOps(committed, changes), log)
        log.raise_if_any()
        check_ceilings(list(work_of(effect.write_set, rows, snapshot.entries)))
        request = WriteRequest(WriterKind.MUTATION, snapshot, actor, message, if_commit)
        outcome = finalize(graph.parts, graph.publisher, request, effect.write_set, rows)
        return _result(query, snapshot.branch, effect, outcome.commit), snapshot

    assert isinstance(query.body, ast.Mutation)
    is_replayable = all(isinstance(statement, ast.Insert) for statement in query.body.statements)
    budget = retries if is_replayable else 0
    result, before = retry_on_conflict(graph, target, attempt, budget=budget)
    if result.commit is not None:
        with noting(f"the mutation had already landed, as commit {result.commit.graph_commit_id}"):
            rows = result.affected_nodes + result.affected_edges
            after_write(graph, before, result.commit, rows=rows)
    return result


def _pick(file: ast.QueryFile, name: str | None) -> ast.Query:
    """Return the mutation that is meant: by name, or the only one in the source."""
    query = find_query(file, name)
    if not isinstance(query.body, ast.Mutation):
        raise BadRequest(f"'{query.name.text}' is a read: use query, not mutate")
    return query


def _planned(query: ast.Query, catalog: Catalog, source: Source) -> MutationPlan:
    """Return what a mutation does under a schema; each attempt asks again, because that may have changed."""
    bound = bind(query, catalog, source)
    assert isinstance(bound, BoundMutation)
    return plan_mutation(bound)


def _result(
    query: ast.Query, branch: str | None, effect: MutationEffect, commit: GraphCommit | None
) -> MutationResult:
    return MutationResult(branch, query.name.text, effect.affected_nodes, effect.affected_edges, commit)


class _Ids:
    """Ids generated for one call: preparing the same mutation again gives the same ones."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._made: list[str] = []

    def again(self) -> Callable[[], str]:
        """Return a source that starts with the first id again."""
        position = iter(range(1 << 62))

        def make() -> str:
            index = next(position)
            if index == len(self._made):
                self._made.append(self._new_id())
            return self._made[index]

        return make
