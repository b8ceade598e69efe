"""The one way from a `Graph` to what lies below it, for tests of facts that the public verbs do not show."""

from omnigraph.graph.graph import Graph
from omnigraph.operations.context import OpenGraph


def internals(graph: Graph) -> OpenGraph:
    """Return what the verbs of a graph work on: its parts, its publisher, its states."""
    return graph._graph
