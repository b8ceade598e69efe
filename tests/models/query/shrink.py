"""Make a failing pair of graph and query smaller, greedily, for as long as it fails in the same way."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.models.query.shape import Binding, Clause, Data, Edge, Negation, Node, Query, Schema, Traversal


def shrink_query(query: Query, fails: Callable[[Query], bool], *, seconds: float) -> Query:
    """Drop parts of a query. A candidate that is no valid query fails in another way, if at all."""
    deadline = time.monotonic() + seconds
    progress = True
    while progress:
        progress = False
        for candidate in _smaller_queries(query):
            if time.monotonic() > deadline:
                return query
            if fails(candidate):
                query, progress = candidate, True
                break
    return query


def shrink_data(schema: Schema, data: Data, fails: Callable[[Data], bool], *, seconds: float) -> Data:
    """Drop nodes, with their edges, and edges: first many at once, then one by one."""
    deadline = time.monotonic() + seconds
    size = max(len(data.nodes), len(data.edges)) // 2
    while size:
        for candidate in _smaller_data(schema, data, size):
            if time.monotonic() > deadline:
                return data
            if fails(candidate):
                data = candidate
                break
        else:
            size //= 2
    return data


def _smaller_queries(query: Query) -> Iterator[Query]:
    for clauses in _smaller_clauses(query.clauses):
        yield replace(query, clauses=clauses)
    for at in range(len(query.projections)):
        if len(query.projections) > 1:
            yield replace(query, projections=(*query.projections[:at], *query.projections[at + 1 :]))
    for at in range(len(query.order)):
        yield replace(query, order=(*query.order[:at], *query.order[at + 1 :]))
    if query.limit is not None:
        yield replace(query, limit=None)
    for at in range(len(query.parameters)):
        yield replace(query, parameters=(*query.parameters[:at], *query.parameters[at + 1 :]))


def _smaller_clauses(clauses: tuple[Clause, ...]) -> Iterator[tuple[Clause, ...]]:
    for at, clause in enumerate(clauses):
        before, after = clauses[:at], clauses[at + 1 :]
        if len(clauses) > 1:
            yield (*before, *after)
        match clause:
            case Negation(inner):
                for fewer in _smaller_clauses(inner):
                    yield (*before, Negation(fewer), *after)
            case Binding(variable, type_name, matches) if matches:
                for place in range(len(matches)):
                    fewer_matches = (*matches[:place], *matches[place + 1 :])
                    yield (*before, Binding(variable, type_name, fewer_matches), *after)
            case Traversal() if clause.bounds or clause.edge_variable or clause.is_undirected:
                simple = replace(clause, bounds=None, edge_variable=None, is_undirected=False)
                yield (*before, simple, *after)
            case _:
                pass


def _smaller_data(schema: Schema, data: Data, size: int) -> Iterator[Data]:
    for at in range(0, len(data.nodes), size):
        nodes = (*data.nodes[:at], *data.nodes[at + size :])
        yield Data(nodes, tuple(edge for edge in data.edges if _has_ends(schema, edge, nodes)))
    for at in range(0, len(data.edges), size):
        yield Data(data.nodes, (*data.edges[:at], *data.edges[at + size :]))


def _has_ends(schema: Schema, edge: Edge, nodes: tuple[Node, ...]) -> bool:
    kind = schema.edges[edge.type_name]
    ends = {(kind.source, edge.source), (kind.target, edge.target)}
    return ends <= {(node.type_name, node.id) for node in nodes}
