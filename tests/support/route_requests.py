"""A request to each route, as complete as it must be to get past the reading of it; and the names in it.

A name says what a request is about: a branch, a commit, a stored query, a write, a graph. Each field that any
route has is here as one that names something or as one that does not; a new one fails a test.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import httpx

from omnigraph.server.route import GraphRoute, JsonBody
from omnigraph.server.routes import process
from omnigraph.server.routes.process import ProcessRoute
from tests.support.http_requests import REQUESTS, path_of

if TYPE_CHECKING:
    from omnigraph.server.serving import Serving

IF_COMMIT, LAST_EVENT_ID = "Omnigraph-If-Graph-Commit", "Last-Event-ID"
BODIES: dict[str, dict[str, Any]] = {
    "invoke_query": {"json": {}},
    "invoke_query_if_graph_commit": {"json": {}, "headers": {IF_COMMIT: "x"}},
}


@dataclass(frozen=True, slots=True)
class Names:
    """Names of one kind each, and a cursor to forge others from."""

    branch: str
    commit: str
    query: str
    write: str
    cursor: str = ""


Place = Callable[[Names], str]


def branch(names: Names) -> str:
    return names.branch


def commit(names: Names) -> str:
    return names.commit


def after(names: Names) -> str:
    return f"after:{names.commit}"


def cursor_at(names: Names) -> str:
    return forged(names.cursor, done=names.commit)


def cursor_of(names: Names) -> str:
    return forged(names.cursor, branch=names.branch)


def feed_page(names: Names) -> str:
    page = {"kind": "feed_page", "done": names.commit, "cut": names.commit, "is_head": True, "inside": None}
    return forged(names.cursor, **page)


def commit_page(names: Names) -> str:
    inside = {"kind": "node", "type_id": "x", "prefix": "x", "digest": None}
    return forged(names.cursor, kind="commit_page", branch="", commit=names.commit, inside=inside)


def diff_page(names: Names) -> str:
    asked = ["june", "july", [], [], []]
    return base64.urlsafe_b64encode(json.dumps([names.commit, names.commit, 1, asked]).encode()).decode()


def forged(cursor: str, **changed: object) -> str:
    """Return a token as anybody can make it from one that they have."""
    data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[:-32]
    other = json.dumps(json.loads(data) | changed, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(other + hashlib.sha256(other).digest()).rstrip(b"=").decode()


PLACES: Mapping[str, tuple[Place, ...]] = {
    "branch": (branch,),
    "from": (branch,),
    "target": (branch,),
    "source": (branch,),
    "snapshot": (commit,),
    "commit_id": (commit,),
    "base": (commit,),
    "start": (after,),
    "cursor": (cursor_at, cursor_of),
    "write_id": (lambda names: names.write,),
    IF_COMMIT: (commit,),
    LAST_EVENT_ID: (commit,),
    "createBranch.name": (branch,),
    "invoke_query.name": (lambda names: names.query,),
    "invoke_query_if_graph_commit.name": (lambda names: names.query,),
    "getEntity.target": (branch, commit),
    "diffBranches.from": (branch, commit),
    "diffBranches.to": (branch, commit),
    "diffBranches.page_token": (diff_page,),
    "pollChanges.page_token": (feed_page,),
    "getCommitChanges.page_token": (commit_page,),
}
# What names nothing: texts, filters, forms, and what is inside of a graph that the caller may see or not.
OTHERS = frozenset(
    [
        "query",
        "query_source",
        "query_name",
        "name",
        "params",
        "message",
        "data",
        "mode",
        "index",
        "type_names",
        "table_keys",
        "kind",
        "type",
        "op",
        "column",
        "entity",
        "id",
        "property",
        "actor",
        "since",
        "until",
        "merge",
        "limit",
        "delete_branch",
        "dry_run",
        "strict_columns",
        "schema_source",
        "allow_data_loss",
        "expect_mutation",
        "format",
    ]
)
LOADS = ("load", "ingest", "loadNdjson", "loadArrow", "loadNdjsonChecked", "loadArrowChecked")
# Where something is copied from: no scope looks at it, so who may make or merge a branch may name any.
SOURCES = frozenset({"createBranch.from", "mergeBranches.source"} | {f"{route}.from" for route in LOADS})


def fields_of(route: GraphRoute) -> Iterator[str]:
    """Yield what a request to a route may say, by its name there."""
    yield from (part[1:-1] for part in route.path.split("/") if part.startswith("{"))
    yield from route.headers
    models = [route.query] if route.query is not None else []
    models += [route.body.model] if isinstance(route.body, JsonBody) else []
    for model in models:
        yield from (found.alias or name for name, found in model.model_fields.items())


def places_in(route: GraphRoute) -> Iterator[tuple[str, Place]]:
    """Yield where a request has a name."""
    for field in fields_of(route):
        known = PLACES.get(f"{route.id}.{field}", PLACES.get(field))
        assert known is not None or field in OTHERS, f"does {route.id}.{field} name something? say so here"
        yield from ((field, place) for place in known or ())


def visible(route: GraphRoute, head: str) -> dict[str, str]:
    """Return values by which a request is about june and july, and about the head of june."""
    fields = {field for field, _ in places_in(route)}
    known = {**VISIBLE, "snapshot": head, "commit_id": head}
    chosen = {field: known[field] for field in fields if field in known}
    if "branch" in fields and "{branch}" not in route.path:
        chosen.pop("snapshot", None)
    if {
        "branch",
        "from",
    } <= fields:  # a load that would make a branch: into one that is there, `from` is nothing
        chosen["branch"] = "fresh"
    if "cursor" in fields:
        chosen.pop("start", None)
    if "Nonsense" in str(REQUESTS.get(route.id, {}).get("params")):
        chosen["type"] = "Mission"
    if "{name}" in route.path:
        chosen["name"] = "record" if route.headers else "listed"
    return chosen


VISIBLE = {"branch": "june", "from": "june", "to": "july", "source": "june", "target": "july", "start": "now"}


def send(
    client: httpx.Client,
    route: GraphRoute,
    values: Mapping[str, str] | None = None,
    *,
    prefix: str = "",
    headers: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
) -> httpx.Response:
    """Send a request, with values for some of its fields, and other words in the rest of it."""
    base: dict[str, Any] = REQUESTS.get(route.id, BODIES.get(route.id, {}))
    params, given = dict(base.get("params", {})), {**base.get("headers", {}), **(headers or {})}
    body = json.dumps(base["json"]) if "json" in base else None
    for old, new in (words or {}).items():
        body = None if body is None else body.replace(json.dumps(old), json.dumps(new))
    document = None if body is None else json.loads(body)
    path: dict[str, str] = {}
    in_query = () if route.query is None else [f.alias or n for n, f in route.query.model_fields.items()]
    for field, value in (values or {}).items():
        if f"{{{field}}}" in route.path:
            path[field] = value
        elif field in route.headers:
            given[field] = value
        elif field in in_query:
            params[field] = value
        else:
            assert document is not None, (route.id, field)
            document[field] = value
    where = prefix + path_of(route, **path)
    return client.request(
        route.method, where, json=document, content=base.get("content"), params=params, headers=given
    )


def process_routes() -> list[ProcessRoute]:
    """Return the routes of a server itself; what answers them is of no server, and is not for calling."""
    return process.routes(cast("Serving", None))
