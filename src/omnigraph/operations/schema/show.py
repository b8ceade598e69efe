"""`schema show`: the schema of a branch, as it was given."""

from omnigraph.history.contract import SCHEMA_IR, contract_of
from omnigraph.operations.context import OpenGraph


def schema_source(graph: OpenGraph, *, branch: str | None = None, actor: str | None = None) -> str:
    """Return the text of a branch's schema, as it was given.

    Raises:
        BranchNotFound: there is no such branch.
    """
    state = graph.newest(graph.enter(actor, "read", branch))
    if state.schema.text == graph.contract.texts[SCHEMA_IR]:
        return graph.contract.source
    return contract_of(graph.parts.coordinator, state).source
