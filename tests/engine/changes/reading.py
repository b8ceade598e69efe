"""Changes in the short form that tests compare: a sign, the type, the id and what the images say."""

from collections.abc import Iterable

from omnigraph.changes.model import EntityChange, Image
from omnigraph.graph.graph import Graph

SIGNS = {"insert": "+", "update": "~", "delete": "-"}


def short(changes: Iterable[EntityChange]) -> list[str]:
    """Return each change as `+Person a`."""
    return [f"{SIGNS[change.op]}{change.type.name} {change.id}" for change in changes]


def ordered(changes: Iterable[EntityChange]) -> list[str]:
    """Return the short forms in the order of names: that of types is by an opaque id."""
    return sorted(short(changes), key=lambda text: text[1:])


def properties(image: Image | None) -> dict[str, object] | None:
    """Return the properties of an image, or none."""
    return None if image is None else dict(image.properties)


def ends(image: Image | None) -> tuple[str, str] | None:
    """Return both ends of an image of an edge."""
    assert image is not None
    return None if image.endpoints is None else (image.endpoints.source, image.endpoints.target)


def update_age(graph: Graph, name: str, age: int, *, branch: str | None = None) -> str:
    """Change the age of a person and return the commit."""
    text = f'query change() {{ update Person set {{ age: {age} }} where name = "{name}" }}'
    return committed(graph, text, branch=branch)


def committed(graph: Graph, text: str, *, branch: str | None = None, actor: str | None = None) -> str:
    """Run a mutation and return its commit."""
    commit = graph.mutate(text, branch=branch, actor=actor).commit
    assert commit is not None
    return commit.graph_commit_id
