"""The names of graphs on a server and in a cluster: one rule wherever they are written."""

import re

from omnigraph.core.errors import BadRequest

RESERVED_IDS = frozenset({"policies", "healthz", "openapi", "graphs", "mcp", "console"})  # routes have them
_GRAPH_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def check_graph_id(text: str) -> str:
    """Return the id of a graph.

    Raises:
        BadRequest: it is not one.
    """
    if _GRAPH_ID.fullmatch(text) is None:
        raise BadRequest(
            f"'{text:.80}' is not the id of a graph: it has 1 to 64 letters, digits, '_' and '-', "
            "and begins with a letter or a digit"
        )
    if text in RESERVED_IDS:
        raise BadRequest(f"'{text}' is reserved and cannot be the id of a graph")
    return text
