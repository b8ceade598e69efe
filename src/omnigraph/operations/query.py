"""`query`: one read, on one snapshot.

Parse and bind (or take the cached bound read), bind the parameters, pin a snapshot, choose the physical plan
for its tables, run.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.catalog.bind import bind, find_query
from omnigraph.catalog.bound import NOW_PARAMETER, BoundRead
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.params import bind_parameters
from omnigraph.core.clock import deadline
from omnigraph.core.errors import BadRequest
from omnigraph.core.span import Source
from omnigraph.exec.budget import Budget
from omnigraph.exec.context import QueryContext
from omnigraph.exec.run import execute
from omnigraph.exec.view import GraphView
from omnigraph.language import query_ast as ast
from omnigraph.language.query_parser import parse_queries
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.pin import SnapshotLike, resolve_snapshot
from omnigraph.operations.reading import PhysicalKey
from omnigraph.plan.optimize import plan_read
from omnigraph.plan.pattern import Pattern, pattern_of, tables_of
from omnigraph.plan.physical import PhysicalPlan

if TYPE_CHECKING:
    from omnigraph.plan.describe import Explanation


@dataclass(frozen=True, slots=True)
class PreparedRead:
    """What a query's text means under a schema: what it matches, and the tables it reads."""

    read: BoundRead
    pattern: Pattern
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """What to read: the newest state of a branch, or a snapshot."""

    branch: str | None
    snapshot: str | None


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """The rows of a read, and the commit they were read from."""

    query_name: str
    table: pa.Table
    target: ReadTarget
    commit_id: str


def query(
    graph: OpenGraph,
    source: Source,
    *,
    name: str | None = None,
    params: object = None,
    branch: str | None = None,
    snapshot: SnapshotLike | None = None,
    actor: str | None = None,
    timeout_ms: int | None = None,
    memory_bytes: int | None = None,
    exact: bool = False,
) -> QueryAnswer:
    """Run one read.

    Raises:
        ParseError, TypeCheckError, PlanError: the text is not a valid query for this graph.
        ParameterError: a parameter is missing, undeclared or of the wrong type; nothing was read.
        BadRequest: the query is a mutation, or both a branch and a snapshot are named.
        BranchNotFound, CommitNotFound, VersionNotFound: there is nothing of that name to read.
        QueryTimeout, QueryMemoryExceeded, CartesianProductRefused: it needs more than it is allowed.
    """
    named = _enter(graph, actor, branch, snapshot)
    settings = graph.reading.settings
    budget = Budget(
        settings.memory_bytes if memory_bytes is None else memory_bytes,
        settings.timeout_ms if timeout_ms is None else timeout_ms,
    )
    with deadline(budget.check):
        prepared = _prepare(graph, source, name)
        parameters = bind_parameters(prepared.read.parameters, params)
        parameters[NOW_PARAMETER] = graph.parts.clock() // 1_000
        view = _view(graph, named, snapshot)
        view.begin()
        plan = _physical(graph, source, name, prepared, view)
    table = execute(plan, QueryContext(view, parameters, budget, graph.reading.embed_query, exact))
    commit_id = view.snapshot.head.graph_commit_id
    return QueryAnswer(plan.name, table, _target(named, snapshot, commit_id), commit_id)


def explain(
    graph: OpenGraph,
    source: Source,
    *,
    name: str | None = None,
    params: object = None,
    branch: str | None = None,
    snapshot: SnapshotLike | None = None,
    actor: str | None = None,
) -> "Explanation":
    """Return how a read would be carried out; parameters may be left out, those given are checked.

    Raises:
        ParseError, TypeCheckError, PlanError: the text is not a valid query for this graph.
        ParameterError: a parameter that was given is undeclared or of the wrong type.
        BadRequest: the query is a mutation.
        BranchNotFound, CommitNotFound, VersionNotFound: there is nothing of that name to read.
    """
    from omnigraph.plan.describe import describe

    named = _enter(graph, actor, branch, snapshot)
    prepared = _prepare(graph, source, name)
    if params is not None:
        declared = prepared.read.parameters
        given = params if isinstance(params, dict) else {}
        bind_parameters({key: type_ for key, type_ in declared.items() if key in given}, params)
    view = _view(graph, named, snapshot)
    return describe(_planned(prepared, view))  # not from the cache: its estimates must be current


def _enter(graph: OpenGraph, actor: str | None, branch: str | None, snapshot: SnapshotLike | None) -> str:
    if branch is not None and snapshot is not None:
        raise BadRequest("a branch and a snapshot cannot be combined: a snapshot implies its branch")
    return graph.enter(actor, "read", branch)


def _view(graph: OpenGraph, branch: str, snapshot: SnapshotLike | None) -> GraphView:
    if snapshot is None:
        return graph.reading.newest(graph.state(branch), graph.catalog)
    return graph.reading.view(resolve_snapshot(graph, branch, snapshot), graph.catalog)


def _target(branch: str, snapshot: SnapshotLike | None, commit_id: str) -> ReadTarget:
    return ReadTarget(branch, None) if snapshot is None else ReadTarget(None, commit_id)


# Plans


def _prepare(graph: OpenGraph, source: Source, name: str | None) -> PreparedRead:
    catalog = graph.catalog
    return graph.reading.plans.logical(
        source.text, name, catalog.shape_hash, lambda: _bind_read(source, name, catalog)
    )


def _bind_read(source: Source, name: str | None, catalog: Catalog) -> PreparedRead:
    read = bind(_pick(parse_queries(source), name), catalog, source)
    assert isinstance(read, BoundRead)
    return PreparedRead(read, pattern_of(read), tables_of(read, catalog))


def _physical(
    graph: OpenGraph, source: Source, name: str | None, prepared: PreparedRead, view: GraphView
) -> PhysicalPlan:
    key = PhysicalKey(source.text, name, view.catalog.shape_hash, view.magnitudes(prepared.tables))
    return graph.reading.plans.physical(key, lambda: _planned(prepared, view))


def _planned(prepared: PreparedRead, view: GraphView) -> PhysicalPlan:
    return plan_read(prepared.read, view.catalog, view, prepared.pattern)


def _pick(file: ast.QueryFile, name: str | None) -> ast.Query:
    """Return the read that is meant: by name, or the only one in the source."""
    query = find_query(file, name)
    if isinstance(query.body, ast.Mutation):
        raise BadRequest(f"'{query.name.text}' is a mutation: use mutate, not query")
    return query
