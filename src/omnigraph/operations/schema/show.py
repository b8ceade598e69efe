"""`schema show`: the schema of a branch, as it was given."""

from omnigraph.catalog.render import render_schema
from omnigraph.history.contract import SCHEMA_IR, accepted_in, contract_of
from omnigraph.history.identity import MAIN
from omnigraph.history.state import Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.pin import read_snapshot
from omnigraph.policy.request import Action


def enter_schema(graph: OpenGraph, actor: str | None, branch: str | None) -> str:
    """Check a call that shows a schema: of a branch that it names, else of the graph. Return the branch."""
    if branch is not None:
        return graph.enter(actor, Action.READ, branch)
    graph.enter_whole(actor, Action.READ)
    return MAIN


def schema_source(graph: OpenGraph, *, branch: str | None = None, actor: str | None = None) -> str:
    """Return the text of a branch's schema, as it was given.

    Raises:
        BranchNotFound: there is no such branch.
    """
    state = graph.newest(enter_schema(graph, actor, branch))
    if state.schema.text == graph.contract.texts[SCHEMA_IR]:
        return graph.contract.source
    return contract_of(graph.parts.coordinator, state).source


def schema_at(graph: OpenGraph, snapshot: Snapshot, actor: str | None) -> str:
    """Return the text of a snapshot's schema: written from what the snapshot has, which is no text.

    Raises:
        PolicyDenied: the actor may not read the branch of the snapshot.
    """
    seen = read_snapshot(graph, actor, MAIN, snapshot)
    return render_schema(accepted_in(seen.schema_text).shape)
