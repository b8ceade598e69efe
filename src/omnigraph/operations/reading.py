"""What the queries of one open graph share: derived structures, plans, costs and settings.

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

from omnigraph.catalog.model import Catalog
from omnigraph.commit.parts import Parts
from omnigraph.core.environment import number_setting, word_setting
from omnigraph.core.recent import Recent
from omnigraph.exec.dense import CacheSettings, Derived
from omnigraph.exec.settings import QuerySettings, TraversalMode
from omnigraph.exec.view import GraphView, HopCosts
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.plan.physical import PhysicalPlan

if TYPE_CHECKING:
    from omnigraph.embedding import Embedder, EmbeddingConfig


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
    def of(parts: Parts, state: ManifestState, embedding: "EmbeddingConfig | None") -> "Reading":
        """Return what queries of a graph initially share: settings, and nothing derived yet."""
        derived = Derived(parts.store, state.commits.genesis_id, CacheSettings.from_environment())
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
        key = (catalog.shape_hash, snapshot.head.graph_commit_id, snapshot.manifest_version)
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
