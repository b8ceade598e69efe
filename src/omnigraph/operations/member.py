"""One mutation as it waits for its commit: what it asks for, how it is prepared, what became of it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from omnigraph.catalog.bind import bind
from omnigraph.catalog.bound import NOW_PARAMETER, BoundMutation
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.params import bind_parameters
from omnigraph.commit.finalize import check_if_commit
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.span import Source
from omnigraph.exec.mutation import (
    CommittedTables,
    MutationEffect,
    MutationPlan,
    execute_mutation,
    plan_mutation,
    tables_of,
)
from omnigraph.history.commits import CommitOperation, GraphCommit
from omnigraph.history.state import ManifestState
from omnigraph.language import query_ast as ast
from omnigraph.operations.retry import RetryTime
from omnigraph.operations.settings import check_ceilings
from omnigraph.operations.turns import Claim
from omnigraph.staging.write_set import work_of
from omnigraph.validate.columns import TypedRows
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


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a mutation would do to what was there before it, checked; `rows` are those of each table."""

    effect: MutationEffect
    rows: dict[str, TypedRows]

    @property
    def row_count(self) -> int:
        """How many rows it brings or removes."""
        changes = self.effect.write_set.changes.values()
        return sum(rows.count for rows in self.rows.values()) + sum(len(c.removed_ids) for c in changes)


@dataclass(slots=True, eq=False)
class MutationCall:
    """One call of `mutate`, in a group of its own or of several; ends with a result or an error."""

    query: ast.Query
    source: Source
    params: object
    actor: str | None
    message: str | None
    if_commit: str | None
    time: RetryTime
    now_ms: int
    new_id: Callable[[], str]
    result: MutationResult | None = None
    error: Exception | None = None
    _made_ids: list[str] = field(default_factory=list)
    _plan: tuple[Catalog, MutationPlan] | None = None

    @property
    def name(self) -> str:
        """The name of the query."""
        return self.query.name.text

    @property
    def may_go_with_others(self) -> bool:
        """Whether it only builds, and requires nothing of the head."""
        assert isinstance(self.query.body, ast.Mutation)
        return self.if_commit is None and not any(
            isinstance(statement, ast.Delete) for statement in self.query.body.statements
        )

    @property
    def fate(self) -> str:
        """What became of it, in words."""
        if self.result is not None and self.result.commit is not None:
            return f"the write had already landed, as commit {self.result.commit.graph_commit_id}"
        return "the mutation matched nothing" if self.error is None else f"the mutation failed: {self.error}"

    def claim(self, branch: str, catalog: Catalog) -> Claim:
        """Return which tables it will touch under a schema that may be an older one."""
        try:
            plan = self.plan(catalog)
        except OmnigraphError:  # under the newest schema it may be right: preparing it will say
            return Claim(branch, None)
        return Claim(branch, *tables_of(plan, catalog))

    def plan(self, catalog: Catalog) -> MutationPlan:
        """Return what it does under a schema."""
        if self._plan is None or self._plan[0] is not catalog:
            bound = bind(self.query, catalog, self.source)
            assert isinstance(bound, BoundMutation)
            self._plan = (catalog, plan_mutation(bound))
        return self._plan[1]

    def prepare(
        self, state: ManifestState, catalog: Catalog, view: CommittedTables
    ) -> Prepared | MutationEffect:
        """Run it over a view and check all of it; what matched nothing has no rows.

        Raises:
            TypeCheckError, ParameterError, ValidationError, ResourceLimit: it cannot be done.
            PreconditionFailed: the branch is not at the commit that it requires.
        """
        plan = self.plan(catalog)
        parameters = bind_parameters(plan.parameters, self.params) | {NOW_PARAMETER: self.now_ms}
        check_if_commit(state, self.if_commit)
        log = ViolationLog()
        effect = execute_mutation(plan, parameters, catalog, view, make_id=self._ids(), log=log)
        if effect.write_set.is_empty and not log.total:
            return effect
        changes = effect.write_set.changes
        rows = dict(validate_changeset(changes, catalog, KeyOps(view, changes), log))
        log.raise_if_any()
        check_ceilings(list(work_of(effect.write_set, rows, view.snapshot.entries)))
        return Prepared(effect, rows)

    def operation(self, effect: MutationEffect) -> CommitOperation:
        """Return it as a commit of several lists it."""
        return CommitOperation(
            self.actor, self.name, self.message, effect.affected_nodes, effect.affected_edges
        )

    def end(self, branch: str | None, effect: MutationEffect, commit: GraphCommit | None) -> None:
        """Take the result."""
        self.result = MutationResult(branch, self.name, effect.affected_nodes, effect.affected_edges, commit)

    def outcome(self) -> MutationResult:
        """Return the result.

        Raises:
            OmnigraphError: what became of it instead.
        """
        if self.error is not None:
            raise self.error
        assert self.result is not None, "a mutation ends with a result or an error"
        return self.result

    def _ids(self) -> Callable[[], str]:
        """Return a source of ids: preparing the same mutation again gives the same ones."""
        position = iter(range(1 << 62))

        def make() -> str:
            index = next(position)
            if index == len(self._made_ids):
                self._made_ids.append(self.new_id())
            return self._made_ids[index]

        return make
