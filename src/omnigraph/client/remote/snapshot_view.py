"""One snapshot of a graph behind a server, as a handle for reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.client.remote.read_back import RemoteSnapshot
from omnigraph.client.understood import understood
from omnigraph.core.span import Source
from omnigraph.graph.result import Result
from omnigraph.history.commits import GraphCommit
from omnigraph.wire.schema_responses import SchemaOutput

if TYPE_CHECKING:
    from omnigraph.client.remote.blob import RemoteBlob
    from omnigraph.client.remote.graph import RemoteGraph
    from omnigraph.client.remote.looks import RemoteExplanation
    from omnigraph.operations.describe.describe import TypeDescription


class RemoteSnapshotView:
    """One snapshot of a graph behind a server; what is published later is neither seen nor looked for."""

    def __init__(self, graph: "RemoteGraph", commit: GraphCommit) -> None:
        """Take the commit; users call `RemoteGraph.at`."""
        self._graph, self._commit = graph, commit

    def __repr__(self) -> str:
        return f"RemoteSnapshotView({self.snapshot!r})"

    def _repr_html_(self) -> str:
        """Return the commit of the snapshot: which tables it has is not known here."""
        return self._commit._repr_html_()

    @property
    def snapshot(self) -> RemoteSnapshot:
        """The snapshot that all reads see; which tables it has is not known here."""
        commit = self._commit
        return RemoteSnapshot(commit.manifest_branch, commit.manifest_version, commit.graph_commit_id)

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
        return self._graph.query(
            source,
            name,
            params,
            snapshot=self._commit.graph_commit_id,
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
    ) -> "RemoteExplanation":
        """Return how a read would be carried out on the snapshot."""
        return self._graph.explain(source, name, params, snapshot=self._commit.graph_commit_id, actor=actor)

    def describe(self, type_name: str, *, actor: str | None = None) -> "TypeDescription":
        """Return a type with what its rows hold in the snapshot."""
        return self._graph.describe(type_name, snapshot=self._commit.graph_commit_id, actor=actor)

    def schema(self) -> str:
        """Return the text of the schema of the snapshot; it is written anew, and has no comments."""
        document = self._graph._http.get("/schema", SchemaOutput, {"snapshot": self._commit.graph_commit_id})
        with understood():
            return str(document["schema_source"])

    def blob(
        self, entity: str, type: str, id: str, property: str, *, actor: str | None = None
    ) -> "RemoteBlob":
        """Return the value of a Blob property of a `node` or an `edge` of the snapshot."""
        return self._graph.blob(
            entity, type, id, property, snapshot=self._commit.graph_commit_id, actor=actor
        )
