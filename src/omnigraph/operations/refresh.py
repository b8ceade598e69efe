"""Looking again without healing."""

from omnigraph.history.state import ManifestState
from omnigraph.operations.context import OpenGraph


def refresh_coordinator_only(graph: OpenGraph, branch: str | None = None) -> ManifestState:
    """Forget what is warm and read the manifest afresh; no sidecar is listed, read or touched.

    For code that holds a sidecar of its own: `refresh` heals, and would finish the caller's work under it.

    Raises:
        BranchNotFound: there is none of that name.
    """
    graph.parts.coordinator.forget()
    return graph.state(branch)
