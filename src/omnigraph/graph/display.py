"""What an interpreter and a notebook show of a handle on a graph, in its storage or behind a server."""

import re
from collections.abc import Callable

from omnigraph.catalog.model import Catalog
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.markup import Markup, joined, tag
from omnigraph.history.identity import MAIN

_PASSWORD = re.compile(r"//[^/]*@")
_QUERY = re.compile(r"\?.*", re.DOTALL)


def graph_line(kind: str, uri: str, branch: str | None, actor: str | None, *, is_closed: bool) -> str:
    """Return the line of a handle, which reads nothing and shows no password."""
    who = "" if actor is None else f", actor={actor!r}"
    state = ", closed" if is_closed else ""
    return f"{kind}({without_secrets(uri)!r}, branch={branch or MAIN!r}{who}{state})"


def graph_picture(line: str, catalog: Callable[[], Catalog], *, is_closed: bool) -> Markup:
    """Return the picture of a schema below the line of its handle; where it cannot be read, the line."""
    said = tag("p", line)
    if is_closed:
        return said
    try:
        from omnigraph.catalog.diagram import schema_diagram  # late: for notebooks alone

        return joined([said, schema_diagram(catalog())])
    except OmnigraphError as error:
        return joined([said, tag("p", str(error))])


def without_secrets(uri: str) -> str:
    """Return an address without a password before an '@' and without what follows a question mark."""
    return _QUERY.sub("?…", _PASSWORD.sub("//…@", uri)) if "://" in uri else uri
