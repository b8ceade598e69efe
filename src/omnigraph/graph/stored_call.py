"""Calling a stored query: what fits its kind, and what does not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.catalog.stored_queries import StoredQueries
from omnigraph.core.errors import BadRequest, UnsupportedError

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph
    from omnigraph.graph.result import Result
    from omnigraph.operations.mutate import MutationResult
    from omnigraph.operations.pin import SnapshotLike


@dataclass(frozen=True, slots=True)
class InvokeOptions:
    """What a caller gives besides the name."""

    params: Mapping[str, object] | None = None
    branch: str | None = None
    snapshot: "SnapshotLike | None" = None
    if_commit: str | None = None
    actor: str | None = None
    message: str | None = None


def invoke_stored(
    graph: "Graph", registry: StoredQueries | None, name: str | None, call: InvokeOptions
) -> "Result | MutationResult":
    """Run a query of a registry.

    Raises:
        UnsupportedError: there is no registry.
        QueryNotFound: there is no stored query of that name.
        BadRequest: a mutation was asked of a snapshot, or a read was given what only writes have.
    """
    if registry is None:
        raise UnsupportedError(
            "this graph was opened without stored queries: name them with open(queries=...), "
            "or connect to a server that has them"
        )
    if name is None:
        raise BadRequest("the name of a stored query must be a text, not nothing")
    stored = registry.find(name)
    if stored.is_mutation:
        if call.snapshot is not None:
            raise BadRequest(f"stored query '{name}' is a mutation: it changes a branch, not a snapshot")
        return graph.mutate(
            stored.source,
            stored.name,
            call.params,
            branch=call.branch,
            actor=call.actor,
            if_commit=call.if_commit,
            message=call.message,
        )
    if call.if_commit is not None or call.message is not None:
        raise BadRequest(f"stored query '{name}' is a read: if_commit and message go with mutations")
    return graph.query(
        stored.source,
        stored.name,
        call.params,
        branch=call.branch,
        snapshot=call.snapshot,
        actor=call.actor,
    )
