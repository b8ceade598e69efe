"""`Graph.at`: reads that are bound to one snapshot."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.core.span import Source
from omnigraph.history.state import Snapshot

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph
    from omnigraph.graph.result import Result
    from omnigraph.operations.blob import Blob
    from omnigraph.operations.describe.describe import TypeDescription
    from omnigraph.plan.describe import Explanation


class SnapshotView:
    """One snapshot of an open graph; what is published later is neither seen nor looked for."""

    def __init__(self, graph: "Graph", snapshot: Snapshot) -> None:
        """Take the snapshot; users call `Graph.at`."""
        self._graph = graph
        self._snapshot = snapshot

    def __repr__(self) -> str:
        return f"SnapshotView({self._snapshot!r})"

    def _repr_html_(self) -> str:
        return self._snapshot._repr_html_()

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
    ) -> "Result":
        """Run one read of a `.gq` text or file on the snapshot."""
        return self._graph.query(
            source,
            name,
            params,
            snapshot=self._snapshot,
            actor=actor,
            timeout_ms=timeout_ms,
            memory_bytes=memory_bytes,
            exact=exact,
        )

    def explain(
        self,
        source: str | Path | Source,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        actor: str | None = None,
    ) -> "Explanation":
        """Return how a read would be carried out on the snapshot."""
        return self._graph.explain(source, name, params, snapshot=self._snapshot, actor=actor)

    def describe(self, type_name: str, *, actor: str | None = None) -> "TypeDescription":
        """Return a type with what its rows hold in the snapshot."""
        return self._graph.describe(type_name, snapshot=self._snapshot, actor=actor)

    def schema(self) -> str:
        """Return the text of the schema of the snapshot; it is written anew, and has no comments."""
        from omnigraph.operations.schema.show import schema_at

        return schema_at(self._graph._graph, self._snapshot, self._graph._actor)

    def blob(self, entity: str, type: str, id: str, property: str, *, actor: str | None = None) -> "Blob":
        """Return the value of a Blob property of a `node` or an `edge` of the snapshot."""
        return self._graph.blob(entity, type, id, property, snapshot=self._snapshot, actor=actor)
