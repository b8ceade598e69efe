"""What can be done where rows cannot be compared, because the schema of their type differs on the two sides.

W1  Whatever is said here can be followed: a branch is told to be upgraded only if it has the schema that main
    had before, and a commit is named only if the type has the properties of the other side in it.
"""

from omnigraph.catalog.model import Catalog
from omnigraph.changes.pairs import Boundary, Side, properties_of
from omnigraph.history.branches import trimmed_name
from omnigraph.history.identity import MAIN, TableIdentity, identity_of
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.pin import Target

_WITHOUT = "leave the type out by naming others"


def way_out_of_diff(graph: OpenGraph, boundary: Boundary, from_target: Target, to_target: Target) -> str:
    """Return what to do about two targets: upgrade a branch, or compare with a commit before the change."""
    names = [_branch_at(graph, target) for target in (from_target, to_target)]
    sides = (boundary.before, boundary.after)
    for (older, newer), (lagging, ahead) in ((sides, names), (sides[::-1], names[::-1])):
        last = _last_alike(graph, boundary.identity, newer, older)
        if last is None:
            continue
        other = f"'{ahead or newer.snapshot.commit_id}'"
        ways = [f"compare with commit '{last}' from before the change in place of {other}", _WITHOUT]
        if ahead == MAIN and lagging is not None:
            ways.insert(0, f"upgrade branch '{lagging}' to the schema of main")
        return _one_of(ways)
    return _one_of(["query the type at both", _WITHOUT])


def way_out_of_commit(_boundary: Boundary) -> str:
    """Return what to do about one commit: its sides can be read, each in its own schema."""
    return _one_of(["query the type at both", _WITHOUT])


def way_out_of_feed(boundary: Boundary) -> str:
    """Return what to do about a feed: it goes on behind the commit, or without the type before it."""
    before, after = (side.snapshot.commit_id for side in (boundary.before, boundary.after))
    return _one_of(
        [
            f"go on with start 'after:{after}'",
            "take a baseline, which has what it made of the rows",
            f"{_WITHOUT}, with start 'after:{before}'",
        ]
    )


def _branch_at(graph: OpenGraph, target: Target) -> str | None:
    """Return the branch whose head a target names; None for a commit."""
    if not isinstance(target, str):
        return None
    name = trimmed_name(target)
    return name if name == MAIN or graph.parts.branches.find(name) is not None else None


def _last_alike(graph: OpenGraph, identity: TableIdentity, changed: Side, like: Side) -> str | None:
    """Return the last commit in the past of one side in which a type has the properties of the other side."""
    wanted = _properties(like.catalog, identity)
    snapshot = changed.snapshot
    state = graph.state(snapshot.branch or MAIN)
    end = snapshot.manifest_version
    for accepted in reversed(state.schemas()):
        if accepted.published_at > end:
            continue
        if _properties(graph.catalogs.of(accepted.text), identity) == wanted:
            head = state.commits.head_at(end)
            return None if head is None else head.graph_commit_id
        end = accepted.published_at - 1
    return None


def _properties(catalog: Catalog, identity: TableIdentity) -> dict[int, object] | None:
    return next((properties_of(type_) for type_ in catalog.types if identity_of(type_) == identity), None)


def _one_of(ways: list[str]) -> str:
    return f"{', '.join(ways[:-1])}, or {ways[-1]}" if len(ways) > 2 else " or ".join(ways)
