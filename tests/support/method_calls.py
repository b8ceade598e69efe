"""Calls of the methods of graphs: which of their arguments name something, and what to give the others.

A name is an argument that says what a call is about: a branch, a commit, a cursor, a stored query. Every
argument of a method is here, as one that is a name or as one that is none; a new one fails.
"""

import inspect
from collections.abc import Iterator, Mapping

from omnigraph.client.remote.embedded_only import EmbeddedOnly
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.graph.graph import Graph
from tests.support.atlas import ATLAS
from tests.support.http_requests import ADD, READ
from tests.support.route_requests import (
    Place,
    after,
    branch,
    commit,
    commit_page,
    cursor_at,
    cursor_of,
    feed_page,
)

SCHEMA = ATLAS + "\nnode Pad { name: String @key }\n"
PLACES: Mapping[str, tuple[Place, ...]] = {
    "branch": (branch,),
    "from_": (branch,),
    "into": (branch,),
    "snapshot": (commit,),
    "commit_id": (commit,),
    "base": (commit,),
    "if_commit": (commit,),
    "after": (commit,),
    "a": (branch, commit),
    "b": (branch, commit),
    "target": (branch, commit),
    "start": (after,),
    "cursor": (cursor_at, cursor_of),
    "branch.name": (branch,),
    "create_branch.name": (branch,),
    "delete_branch.name": (branch,),
    "upgrade_branch.name": (branch,),
    "merge.source": (branch,),
    "invoke.name": (lambda names: names.query,),
    "commit_changes_page.page_token": (commit_page,),
    "poll_changes.page_token": (feed_page,),
}
OTHERS = frozenset(
    [
        "embed",
        "actor",
        "allow_data_loss",
        "columns",
        "commits",
        "confirm",
        "data",
        "deep",
        "delete_branch",
        "delete_on_error",
        "dry_run",
        "edge_type",
        "engine",
        "entity",
        "entity_id",
        "exact",
        "exclusive",
        "force",
        "frames",
        "id",
        "index",
        "keep",
        "kinds",
        "limit",
        "lost",
        "mapping",
        "master",
        "memory_bytes",
        "merge_on_exit",
        "message",
        "mode",
        "name",
        "network",
        "node_type",
        "objects",
        "older_than",
        "on_error",
        "ops",
        "options",
        "page_bytes",
        "params",
        "progress",
        "property",
        "property_name",
        "rejects",
        "retry",
        "select",
        "source",
        "strict_columns",
        "tables",
        "text",
        "timeout_ms",
        "type",
        "type_name",
        "types",
        "where",
    ]
)
NEWEST = object()  # stands for the newest commit of june
GIVEN: Mapping[str, object] = {
    "source": READ,
    "mutate.source": ADD % "x",
    "type_name": "Mission",
    "property_name": "title",
    "entity": "node",
    "entity_id": "x",
    "type": "Mission",
    "id": "x",
    "property": "title",
    "text": SCHEMA,
    "data": b"{}",
    "mode": "append",
    "tables": {"Mission": [{"nothing": 1}]},
    "objects": [],
    "frames": {},
    "network": None,
    "branch": "june",
    "from_": "june",
    "a": "june",
    "b": "july",
    "name": "fresh",
    "invoke.name": "asked_for",
    "branch.name": "june",
    "upgrade_branch.name": "june",
    "merge.source": "june",
    "target": "june",
    "into": "july",
    "snapshot": NEWEST,
    "commit_id": NEWEST,
}
# Where something is copied from: whoever may make or merge a branch may name any.
SOURCES = frozenset(
    {"merge.source"}
    | {
        f"{method}.from_"
        for method in (
            *("branch", "create_branch", "require_load", "load"),
            *("load_dataframes", "load_networkx", "load_objects", "load_tables"),
        )
    }
)


def methods_of(kind: type) -> Iterator[tuple[str, inspect.Signature]]:
    """Yield the public methods of a class that do something."""
    for name in dir(kind):
        found = inspect.getattr_static(kind, name)
        if not name.startswith("_") and callable(found) and not isinstance(found, EmbeddedOnly):
            yield name, inspect.signature(found)


def places_in(kind: type) -> Iterator[tuple[str, str, Place]]:
    """Yield where calls of a class take a name."""
    for method, signature in methods_of(kind):
        for argument in [*signature.parameters][1:]:
            known = PLACES.get(f"{method}.{argument}", PLACES.get(argument))
            assert known is not None or argument in OTHERS, f"does {method}({argument}) name something?"
            yield from ((method, argument, place) for place in known or ())
        if "options" in signature.parameters:  # those of `load`, or of `embed`
            yield method, "branch", branch
            yield from [(method, "from_", branch)] if method != "embed" else ()


def call(graph: Graph | RemoteGraph, method: str, **names: str) -> object:
    """Call a method with names in some places, and with what the caller may see in the others."""
    parameters = inspect.signature(getattr(graph, method)).parameters
    given: dict[str, object] = {**names}
    for name, parameter in parameters.items():
        needed = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        if name not in given and (needed or name in SIDES):
            found = GIVEN.get(f"{method}.{name}", GIVEN.get(name))
            given[name] = newest(graph) if found is NEWEST else found
    if "from_" in names and "name" not in parameters:
        given["branch"] = "fresh"
    elif {"branch", "options"} & {*parameters} and not {"branch", "snapshot", "commit_id"} & {*given}:
        given["branch"] = "june"
    found = getattr(graph, method)(**given)
    if method == "branch":
        return found.__enter__()
    if hasattr(found, "lines"):
        return list(found.lines())
    return list(found) if method in LAZY else found


def newest(graph: Graph | RemoteGraph) -> str:
    """Return the id of the newest commit of june."""
    return graph.commits(branch="june", limit=1)[0].graph_commit_id


LAZY = {"changes", "events", "diff", "commit_changes", "scan"}
SIDES = {"b", "target", "into"}  # which are main unless they are given
