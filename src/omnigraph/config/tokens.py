"""Which token goes with a request.

A token that belongs to a server is looked up by the longest of the servers' addresses that covers that of the
request, so it never leaves its server (`config/server_url.py`).
"""

from collections.abc import Mapping
from pathlib import Path

from omnigraph.config.credentials import check_token, read_token
from omnigraph.config.operator_file import token_variable
from omnigraph.config.server_url import ServerUrl
from omnigraph.core.errors import BadRequest

ANY_SERVER_VARIABLE = "OMNIGRAPH_BEARER_TOKEN"


def token_for(
    url: ServerUrl,
    *,
    servers: Mapping[str, ServerUrl],
    credentials: Path,
    variables: Mapping[str, str],
    bearer_token_env: str | None = None,
) -> str | None:
    """Return the token for an address, or None.

    In this order: the variable of its server, that server's section of the credentials, the variable that
    the project names for the graph, the variable for any server.

    Raises:
        BadRequest: the credentials cannot be used, or a token is not one.
    """
    server = server_of(url, servers)
    if server is not None:
        if (token := _variable(token_variable(server), variables)) is not None:
            return token
        if (token := read_token(credentials, server)) is not None:
            return token
    for name in (bearer_token_env, ANY_SERVER_VARIABLE):
        if name is not None and (token := _variable(name, variables)) is not None:
            return token
    return None


def server_of(url: ServerUrl, servers: Mapping[str, ServerUrl]) -> str | None:
    """Return the name of the server whose address covers another one the closest, or None."""
    covering = [name for name, server in servers.items() if server.covers(url)]
    return max(covering, key=lambda name: len(servers[name].path), default=None)


def _variable(name: str, variables: Mapping[str, str]) -> str | None:
    text = variables.get(name, "").strip()
    if not text:
        return None
    try:
        return check_token(text)
    except BadRequest as error:
        raise BadRequest(f"the variable {name}: {error}") from None
