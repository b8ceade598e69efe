"""`Graph.at`: reads that are bound to one snapshot."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.core.span import Source
from omnigraph.graph.result import Result
from omnigraph.graph.source import query_name, text_source
from omnigraph.history.state import Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.query import explain, query

if TYPE_CHECKING:
    from omnigraph.plan.describe import Explanation


class SnapshotView:
    """One snapshot of an open graph; what is published later is neither seen nor looked for."""

    def __init__(self, graph: OpenGraph, snapshot: Snapshot, actor: str | None = None) -> None:
        """Take the snapshot; users call `Graph.at`."""
        self._graph = graph
        self._snapshot = snapshot
        self._actor = actor

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that all reads see."""
        return self._snapshot

    def query(
        self,
        source: str | Path | Source,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        actor: str | None = None,
        timeout_ms: int | None = None,
        memory_bytes: int | None = None,
        exact: bool = False,
    ) -> Result:
        """Run one read of a `.gq` text or file on the snapshot."""
        answer = query(
            self._graph,
            text_source(source),
            name=query_name(name),
            params=params,
            snapshot=self._snapshot,
            actor=self._actor if actor is None else actor,
            timeout_ms=timeout_ms,
            memory_bytes=memory_bytes,
            exact=exact,
        )
        return Result(answer)

    def explain(
        self,
        source: str | Path | Source,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        actor: str | None = None,
    ) -> "Explanation":
        """Return how a read would be carried out on the snapshot."""
        source = text_source(source)
        actor = self._actor if actor is None else actor
        name = query_name(name)
        return explain(self._graph, source, name=name, params=params, snapshot=self._snapshot, actor=actor)
