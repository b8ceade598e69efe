"""`mutate`: one query, one commit or none; with others that wait for the same tables, one commit for all."""

from omnigraph.catalog.bind import find_query
from omnigraph.core.errors import BadRequest
from omnigraph.core.span import Source
from omnigraph.language import query_ast as ast
from omnigraph.language.query_parser import parse_queries
from omnigraph.operations.context import OpenGraph, check_message
from omnigraph.operations.group import WriteGroup
from omnigraph.operations.member import MutationCall, MutationResult
from omnigraph.operations.retry import RetryTime
from omnigraph.operations.settings import write_retry_s
from omnigraph.policy.request import Action

__all__ = ["MutationResult", "mutate"]


def mutate(
    graph: OpenGraph,
    source: Source,
    *,
    name: str | None = None,
    params: object = None,
    branch: str | None = None,
    actor: str | None = None,
    if_commit: str | None = None,
    message: str | None = None,
    retry: float | None = None,
) -> MutationResult:
    """Parse, wait for the turn, heal, check, run over one snapshot, validate, publish; then upkeep where due.

    Whoever has the turn takes along those who wait for it: this mutation may be carried out by another
    thread, or carry out others (`group.py`). A lost race is run again from a new snapshot for `retry`
    seconds; never if `if_commit` is given.

    Raises:
        MixedMutation, ParseError: before any I/O.
        TypeCheckError, ParameterError, ValidationError: nothing was written.
        ConflictError: another writer was first; nothing of this mutation is visible.
        PreconditionFailed: the branch is not at `if_commit`.
    """
    target = graph.enter(actor, Action.CHANGE, branch)
    graph.require_writable()
    check_message(message)
    retry_s = 0.0 if if_commit is not None else write_retry_s(retry)
    member = MutationCall(
        _pick(parse_queries(source), name),
        source,
        params,
        actor,
        message,
        if_commit,
        RetryTime(retry_s),
        graph.parts.clock() // 1_000,
        graph.parts.new_id,
    )
    claim = member.claim(target, graph.catalog_of(graph.seen(target)))
    with graph.turns.turn(claim, member, may_be_carried=member.may_go_with_others) as ticket:
        if not ticket.is_served:
            graph.heal_if_due()
            WriteGroup(graph, target, ticket).run()
    return member.outcome()


def _pick(file: ast.QueryFile, name: str | None) -> ast.Query:
    """Return the mutation that is meant: by name, or the only one in the source."""
    query = find_query(file, name)
    if not isinstance(query.body, ast.Mutation):
        raise BadRequest(f"'{query.name.text}' is a read: use query, not mutate")
    return query
