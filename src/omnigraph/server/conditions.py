"""The condition of a conditional write: the commit that a branch must be at.

Routes that take the condition demand it, all others refuse it: a server that does not know it would otherwise
write in spite of it.
"""

import re
from typing import TYPE_CHECKING

from starlette.requests import Request

from omnigraph.core.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.server.route import RouteCall

IF_COMMIT = "Omnigraph-If-Graph-Commit"
_COMMIT_ID = re.compile(r"[0-9A-Za-z]+")


def required_commit(call: "RouteCall") -> str:
    """Return the commit that a request is made for.

    Raises:
        BadRequest: there is no such header, or it is not one plain id.
    """
    given = call.request.headers.getlist(IF_COMMIT)
    if not given:
        raise BadRequest(
            f"this route needs the header {IF_COMMIT}, with the commit that the branch must be at"
        )
    if len(given) > 1 or not _COMMIT_ID.fullmatch(given[0].strip()):
        raise BadRequest(f"{IF_COMMIT} takes one commit id, without quotes, lists or '*'")
    return given[0].strip()


def check_condition(call: "RouteCall") -> None:
    """Refuse a request whose condition cannot be read.

    Raises:
        BadRequest: there is none, or it is not one plain id.
    """
    required_commit(call)


def refuse_condition(request: Request, conditional: str | None) -> None:
    """Refuse a condition where it would not be kept; `conditional` ends the path of the route that keeps it.

    Raises:
        BadRequest: there is one.
    """
    if IF_COMMIT not in request.headers:
        return
    if conditional is None:
        raise BadRequest(f"this route keeps no condition: send it without {IF_COMMIT}")
    before, _, last = request.scope["path"].rpartition("/")
    raise BadRequest(f"{IF_COMMIT} goes to {before}/{conditional.format(last)}")
