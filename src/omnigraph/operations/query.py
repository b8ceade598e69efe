"""`query`: one read, on one snapshot; and what the queries of one open graph share.

Pin a snapshot, parse and bind under its schema (or take the cached bound read), bind the parameters, choose
the physical plan for its tables, run.

D1  All of it may be dropped at any time without changing any answer.

Plans made earlier are kept for reuse:

C1  What depends on the text and the schema is keyed by these; what depends on data, by the pins as well.
    Parameters are in no key.
C2  A cached plan is determined by its key: nothing needs to be invalidated, old entries are only evicted.
C3  Thread-safe. No thread waits while a plan is made; two may make the same one, and both use the first.
"""

import os
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

import pyarrow as pa

from omnigraph.catalog.bind import bind, find_query
from omnigraph.catalog.bound import NOW_PARAMETER, BoundRead
from omnigraph.catalog.model import Catalog
from omnigraph.catalog.params import bind_parameters
from omnigraph.commit.parts import Parts
from omnigraph.core.clock import deadline
from omnigraph.core.environment import number_setting, word_setting
from omnigraph.core.errors import BadRequest
from omnigraph.core.failpoint import hit
from omnigraph.core.names import refuse_both
from omnigraph.core.recent import Recent
from omnigraph.core.span import Source
from omnigraph.exec.context import QueryContext
from omnigraph.exec.dense import CacheSettings, Derived
from omnigraph.exec.rows import Budget
from omnigraph.exec.run import execute
from omnigraph.exec.settings import QuerySettings, TraversalMode
from omnigraph.exec.view import GraphView, HopCosts
from omnigraph.history.identity import MAIN
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.language import query_ast as ast
from omnigraph.language.query_parser import parse_queries
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.pin import SnapshotLike, permitted_snapshot
from omnigraph.operations.reclaimed import ReadRows, at_head, reading_of
from omnigraph.plan.optimize import plan_read
from omnigraph.plan.pattern import Pattern, pattern_of, tables_of
from omnigraph.plan.physical import PhysicalPlan
from omnigraph.policy.request import Action

if TYPE_CHECKING:
    from omnigraph.embedding import Embedder, EmbeddingConfig
    from omnigraph.plan.describe import Explanation, PlanIndexes


PLANS_MAX = 512  # of each kind: an application has tens of queries, a console makes new ones all day
CACHED_TEXT_MAX = 65_536  # characters: larger texts are generated, rarely twice, and would fill memory

Cached = TypeVar("Cached")


VIEWS_MAX = 8  # snapshots whose tables stay open; each holds no rows of its own
MEMORY_BYTES, TIMEOUT_MS = "OMNIGRAPH_QUERY_MEMORY_BYTES", "OMNIGRAPH_QUERY_TIMEOUT_MS"
FRONTIER_MAX, HOPS_MAX = "OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER", "OMNIGRAPH_EXPAND_INDEXED_MAX_HOPS"
TRAVERSAL_MODE = "OMNIGRAPH_TRAVERSAL_MODE"
MEMORY_SHARE = 4  # a query may take the machine's memory divided by this


@dataclass(frozen=True, slots=True)
class PhysicalKey:
    """What decides a physical plan; `pins` are those of the tables that the query reads."""

    text: str
    name: str | None
    schema_hash: str
    pins: Hashable


class PlanCache:
    """The plans of one process; the least recently used is evicted first."""

    def __init__(self, plans_max: int = PLANS_MAX) -> None:
        self._logical: Recent[tuple[str, str | None, str], object] = Recent(plans_max)
        self._physical: Recent[PhysicalKey, PhysicalPlan] = Recent(plans_max)

    def logical(self, text: str, name: str | None, schema_hash: str, make: Callable[[], Cached]) -> Cached:
        """Return what was made from a query's text under a schema, making it if it is not cached.

        An error from `make` is raised and not remembered. One cache holds one kind of value.
        """
        if len(text) > CACHED_TEXT_MAX:
            return make()
        return cast("Cached", self._logical.made((text, name, schema_hash), make))

    def physical(self, key: PhysicalKey, make: Callable[[], PhysicalPlan]) -> PhysicalPlan:
        """Return the plan of a query for pinned versions, making it if it is not cached.

        An error from `make` is raised and not remembered.
        """
        if len(key.text) > CACHED_TEXT_MAX:
            return make()
        return self._physical.made(key, make)


def query_settings() -> QuerySettings:
    """Return the settings of this process, read now."""
    defaults = QuerySettings()
    return QuerySettings(
        memory_bytes=number_setting(MEMORY_BYTES, 0) or machine_memory() // MEMORY_SHARE,
        timeout_ms=number_setting(TIMEOUT_MS, 0) or None,
        indexed_frontier_max=number_setting(FRONTIER_MAX, defaults.indexed_frontier_max),
        indexed_hops_max=number_setting(HOPS_MAX, defaults.indexed_hops_max),
        traversal_mode=word_setting(TRAVERSAL_MODE, TraversalMode.AUTO),
    )


def machine_memory() -> int:
    """Return how many bytes of memory the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@dataclass(slots=True)
class Reading:
    """The shared part of queries; safe for threads."""

    parts: Parts
    derived: Derived
    embedding: "EmbeddingConfig | None" = None
    settings: QuerySettings = field(default_factory=query_settings)
    plans: PlanCache = field(default_factory=PlanCache)
    costs: HopCosts = field(default_factory=HopCosts)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _views: Recent[tuple[str, str, int], GraphView] = field(default_factory=lambda: Recent(VIEWS_MAX))
    _embedder: "Embedder | None" = None
    _newest: dict[str | None, tuple[ManifestState, Catalog, GraphView]] = field(default_factory=dict)

    @staticmethod
    def of(parts: Parts, genesis_id: str, embedding: "EmbeddingConfig | None") -> "Reading":
        """Return what queries of a graph initially share: settings, and nothing derived yet."""
        derived = Derived(parts.store, genesis_id, CacheSettings.from_environment())
        return Reading(parts, derived, embedding)

    def newest(self, state: ManifestState, catalog: Catalog) -> GraphView:
        """Return the view of a branch's newest snapshot; the same one as long as nothing has moved."""
        newest = self._newest.get(state.branch.name)
        if newest is not None and newest[0] is state and newest[1] is catalog:
            return newest[2]
        view = self.view(state.snapshot(), catalog)
        with self._lock:
            while len(self._newest) >= VIEWS_MAX:
                self._newest.pop(next(iter(self._newest)))
            self._newest[state.branch.name] = (state, catalog, view)
        return view

    def follow(self, state: ManifestState, catalog: Catalog) -> None:
        """Bring what recent queries used up to a newer state; nothing happens if there were none since."""
        newest = self._newest.get(state.branch.name)
        if newest is None or newest[0] is state or newest[1] is not catalog or not newest[2].was_asked:
            return
        self.newest(state, catalog).follow(newest[2])

    def view(self, snapshot: Snapshot, catalog: Catalog) -> GraphView:
        """Return the view of a snapshot."""
        key = (catalog.shape_hash, snapshot.commit_id, snapshot.manifest_version)
        view = self._views.get(key)
        if view is not None:
            return view
        made = GraphView(
            snapshot,
            catalog,
            store=self.parts.store,
            pinned=self.parts.pinned,
            derived=self.derived,
            costs=self.costs,
            settings=self.settings,
        )
        self._views.put(key, made)
        return made

    def forget_past(self) -> None:
        """Drop the views of snapshots that are not the newest of their branches."""
        self._views.clear()

    def embed_query(self, text: str, dimension: int, recorded_model: str | None, where: str) -> list[float]:
        """Return the vector of the text given to a search of the property `where`.

        Raises:
            EmbeddingModelMismatch: the property records another model.
            EmbeddingError: there is no such provider, its key is missing, or it fails.
        """
        with self._lock:
            if self._embedder is None:
                from omnigraph.embedding import Embedder  # late: most queries embed nothing

                self._embedder = Embedder(self.embedding)
            embedder = self._embedder
        return embedder.embed_query(text, dimension, recorded_model, where)

    def close(self) -> None:
        """Release everything."""
        self._views.clear()
        with self._lock:
            self._newest.clear()
            embedder, self._embedder = self._embedder, None
        self.derived.close()
        if embedder is not None:
            embedder.close()


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
    place = _enter(graph, actor, branch, snapshot)
    settings = graph.reading.settings
    budget = Budget(
        settings.memory_bytes if memory_bytes is None else memory_bytes,
        settings.timeout_ms if timeout_ms is None else timeout_ms,
    )
    now = graph.parts.clock() // 1_000

    def run(view: GraphView) -> QueryAnswer:
        with deadline(budget.check):
            prepared = _prepare(graph, source, name, view.catalog)
            parameters = bind_parameters(prepared.read.parameters, params)
            parameters[NOW_PARAMETER] = now
        with graph.parts.readers.reading(view.snapshot):
            hit("query.post_pin_pre_read")
            budget.hold(0)
            with deadline(budget.check):
                view.begin()
                plan = _physical(graph, source, name, prepared, view)
            table = execute(plan, QueryContext(view, parameters, budget, graph.reading.embed_query, exact))
        commit_id = view.snapshot.commit_id
        return QueryAnswer(plan.name, table, place.target(commit_id), commit_id)

    return _read(graph, place, run, budget.check)


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

    place = _enter(graph, actor, branch, snapshot)

    def run(view: GraphView) -> "Explanation":
        prepared = _prepare(graph, source, name, view.catalog)
        if params is not None:
            declared = prepared.read.parameters
            given = params if isinstance(params, dict) else {}
            bind_parameters({key: type_ for key, type_ in declared.items() if key in given}, params)
        plan = _planned(prepared, view)  # not from the cache: its estimates must be current
        return describe(plan, _indexes_for(plan, view))

    return _read(graph, place, run)


def _indexes_for(plan: PhysicalPlan, view: GraphView) -> "PlanIndexes":
    """Return the indexes that a plan can use, with what they cover at the versions that it reads."""
    from omnigraph.operations.index_status import index_states
    from omnigraph.plan.describe import IndexNote, PlanIndexes
    from omnigraph.plan.index_use import all_indexes

    uses = all_indexes(plan, view.catalog)
    states = {
        (table_key, state.property, state.kind): state
        for table_key in {use.table_key for use in uses}
        for state in index_states(view.store, view.table(table_key).handle, view.catalog, table_key)
    }
    found = {use: states[use.table_key, use.column, use.kind.value] for use in uses}
    return PlanIndexes(view.catalog, {use: IndexNote(s.coverage, s.reason) for use, s in found.items()})


@dataclass(frozen=True, slots=True)
class _Place:
    """Where somebody reads: a branch now, which they may, or a snapshot, of which that shows."""

    branch: str
    snapshot: SnapshotLike | None
    actor: str | None
    may_read_all: bool = False

    def target(self, commit_id: str) -> ReadTarget:
        """Return the place as answers name it."""
        return ReadTarget(self.branch, None) if self.snapshot is None else ReadTarget(None, commit_id)


def _enter(graph: OpenGraph, actor: str | None, branch: str | None, snapshot: SnapshotLike | None) -> _Place:
    refuse_both(branch, snapshot)
    if snapshot is None:
        return _Place(graph.enter(actor, Action.READ, branch), None, actor)
    return _Place(MAIN, snapshot, actor, graph.enter_somewhere(actor, Action.READ))


def _read(
    graph: OpenGraph,
    place: _Place,
    run: Callable[[GraphView], ReadRows],
    check: Callable[[], None] = lambda: None,
) -> ReadRows:
    """Run a read on the view of a branch now, or on that of a snapshot."""
    if place.snapshot is None:

        def look() -> ManifestState:
            with deadline(check):
                return graph.newest(place.branch)

        return at_head(graph, look, lambda state: run(graph.reading.newest(state, graph.catalog_of(state))))
    with deadline(check):
        found = permitted_snapshot(
            graph, place.actor, place.branch, place.snapshot, may_read_all=place.may_read_all
        )
        view = graph.reading.view(found, graph.catalog_of(found))
    with reading_of(graph, found):
        return run(view)


# Plans


def _prepare(graph: OpenGraph, source: Source, name: str | None, catalog: Catalog) -> PreparedRead:
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
