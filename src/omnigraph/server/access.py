"""What callers may do, decided once when the server starts.

A server without tokens and without policy is open only if its operator says so. With tokens and no policy,
callers may read and do nothing else. There is no policy engine in this build: a server that is given a policy
does not start.
"""

from dataclasses import dataclass
from enum import Enum

from omnigraph.core.errors import BadRequest, PolicyDenied
from omnigraph.server.settings import ServerSettings
from omnigraph.server.tokens import ONE_TOKEN, TOKENS_FILE, TOKENS_JSON

READ = "read"
GRAPH_LIST = "graph_list"
_DEFAULT_DENY = "default-deny: only read is permitted until a policy bundle is applied"
_NO_LISTING = "the graphs of a server are listed only for callers that a server policy grants 'graph_list'"


class Access(Enum):
    """The state a server runs in."""

    OPEN = "open"
    DEFAULT_DENY = "default-deny"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a request wants to do: an action, and the branch, or the target, that it concerns."""

    action: str
    branch: str | None = None
    target: str | None = None


def decide_access(settings: ServerSettings) -> Access:
    """Return the state that a server runs in.

    Raises:
        BadRequest: there is no token, and nobody said that none is needed.
    """
    if settings.tokens:
        return Access.DEFAULT_DENY
    if settings.is_unauthenticated:
        return Access.OPEN
    raise BadRequest(
        "a server without tokens lets everybody do everything:"
        f" set {TOKENS_FILE}, {TOKENS_JSON} or {ONE_TOKEN}, or say that this is meant with --unauthenticated"
    )


def authorize(access: Access, actor: str | None, need: Need) -> None:
    """Let a request do something, or refuse it.

    Raises:
        PolicyDenied: this caller may not.
    """
    branch = need.branch if need.target is None else need.target
    if need.action == GRAPH_LIST:
        raise PolicyDenied(action=need.action, actor=actor, branch=branch, reason=_NO_LISTING)
    if access is Access.DEFAULT_DENY and need.action != READ:
        raise PolicyDenied(action=need.action, actor=actor, branch=branch, reason=_DEFAULT_DENY)
