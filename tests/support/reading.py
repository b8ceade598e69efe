"""Short ways to ask a graph and to look at what it answers."""

from collections.abc import Mapping
from typing import Any

from omnigraph.graph.graph import Graph
from omnigraph.graph.result import Result
from tests.support.queries import books, read


def ask(graph: Graph, match: str, tail: str, **params: object) -> Result:
    """Return the result of a match block and its tail."""
    return graph.query(read(match, tail), params=params or None)


def json_rows(result: Result) -> list[dict[str, Any]]:
    """Return the rows as JSON documents carry them."""
    rows: list[dict[str, Any]] = result.to_json()["rows"]
    return rows


def values(result: Result) -> list[Any]:
    """Return the values of the only column in order, or the rows as tuples."""
    rows = result.json_rows()
    return [row[0] for row in rows] if len(result.columns) == 1 else [tuple(row) for row in rows]


def codes(
    graph: Graph,
    clauses: str,
    tail: str = "",
    *,
    declared: str = "",
    params: Mapping[str, object] | None = None,
) -> list[str]:
    """Return the codes of the books that clauses leave; without `order` sorted, since order is not meant."""
    result = graph.query(books(clauses, f"return {{ $b.code }} {tail}", declared), params=params)
    found = values(result)
    return found if "order" in tail else sorted(found)


def named(graph: Graph, match: str, shown: str, tail: str = "") -> list[Any]:
    """Return one column of a match; without `order` sorted."""
    found = values(graph.query(read(match, f"return {{ {shown} }} {tail}")))
    return found if "order" in tail else sorted(found)
