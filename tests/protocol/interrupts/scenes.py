"""Every kind of writer, on main and on branches, ready to be interrupted.

A scene is a graph and one call. What the call does to the graph is not written down here: it is found by
letting it run undisturbed on a copy. An interrupted call must leave either that, or what was there before.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import omnigraph
from omnigraph.commit.publish import UPKEEP_INTERVAL
from omnigraph.core.errors import NotFoundError
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.graph.graph import Graph
from tests.support.protocol import BEFORE, EXTRA, Contents, records

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    bio: String?
    face: Vector(4)? @embed("bio")
}

node Company {
    name: String @key
    city: String?
}

edge Knows: Person -> Person {
    since: I32?
}

edge WorksAt: Person -> Company
"""
COLUMNS = {
    "Person": ("name", "age", "face"),
    "Company": ("name", "city"),
    "Knows": ("src", "dst", "since"),
    "WorksAt": ("src", "dst"),
}
EVOLVED = SCHEMA.replace("city: String?", "city: String?\n    size: I32 @default(3)").replace(
    "since: I32?", "since: I32?\n    until: I32?"
)
WITH_TYPE = EVOLVED + "\nnode Town {\n    name: String @key\n}\n\nedge In: Company -> Town\n"
INSERT = """
query insert() {
    insert Person { name: "dan", age: 50 }
    insert Knows { from: "dan", to: "ann", since: 2003 }
}
"""
DELETE = 'query delete() { delete Person where name = "ann" }'
TOUCH = 'query touch() { update Person set { age: 31 } where name = "ann" }'
LOADED: Contents = {
    "Person": frozenset({("ann", 33), ("eve", 60)}),
    "Knows": frozenset({("eve", "ann", 2005)}),
}
OVERWRITTEN: Contents = {
    "Person": frozenset({("ann", 31), ("bob", 41)}),
    "Knows": frozenset({("bob", "ann", 2004)}),
}


@dataclass(frozen=True, slots=True)
class Scene:
    """A graph as `prepare` leaves it, and a call."""

    name: str
    prepare: Callable[[Graph], object]
    act: Callable[[Graph], object]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Seen:
    """What a graph shows: the rows of every branch, its indexes and its schema."""

    rows: Mapping[str, Contents]
    indexes: Mapping[str, object]
    schemas: Mapping[str, str]


def new_graph(root: Path) -> Graph:
    """Create a graph with a few rows, texts to embed among them."""
    graph = omnigraph.init(root, SCHEMA, durability="process")  # what is copied need not be synced
    graph.load(records(BEFORE), "append", index=False)
    graph.mutate('query bio() { update Person set { bio: "likes bees" } where name = "bob" }')
    return graph


def open_graph(root: Path) -> Graph:
    """Open a graph of a scene."""
    return omnigraph.open(root, embedding=EmbeddingConfig("mock"))


def look(graph: Graph) -> Seen:
    """Read every branch in full."""
    rows: dict[str, Contents] = {}
    indexes: dict[str, object] = {}
    for branch in graph.branches():
        found = {}
        for name, columns in COLUMNS.items():
            taken = [
                tuple(_plain(row[column]) for column in columns)
                for row in graph.table(name, branch=branch).to_pylist()
            ]
            assert len(set(taken)) == len(taken), f"{name} of {branch} has a row twice: {taken}"
            found[name] = frozenset(taken)
        rows[branch] = found
        indexes[branch] = graph.index_status(branch=branch)
    return Seen(rows, indexes, {branch: graph.schema(branch=branch) for branch in graph.branches()})


def write_everywhere(graph: Graph) -> None:
    """Add a row to every table of every branch: that works only where all of them stand at their pins."""
    for branch in graph.branches():
        graph.load(records(EXTRA), "merge", index=False, branch=branch, retry=0)


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _branch(graph: Graph) -> None:
    graph.create_branch("june")


def _written_branch(graph: Graph) -> None:
    _branch(graph)
    graph.mutate('query more() { insert Person { name: "fay", age: 20 } }', branch="june")
    graph.mutate('query more() { insert Knows { from: "fay", to: "bob", since: 2000 } }', branch="june")


def _diverged(graph: Graph) -> None:
    _written_branch(graph)
    graph.mutate('query gus() { insert Person { name: "gus", age: 70 } }')


def _diverged_into_branch(graph: Graph) -> None:
    _branch(graph)
    graph.create_branch("july")
    graph.mutate('query gus() { insert Person { name: "gus", age: 70 } }', branch="july")
    graph.mutate('query acme() { update Company set { city: "Graz" } where name = "acme" }', branch="june")


def _behind(graph: Graph) -> None:
    _written_branch(graph)
    graph.apply_schema(WITH_TYPE, index=False)


def _ahead(graph: Graph) -> None:
    _diverged(graph)
    graph.apply_schema(WITH_TYPE, branch="june", index=False)


def _apply(schema: str, branch: str | None = None) -> Callable[[Graph], object]:
    return lambda graph: graph.apply_schema(schema, branch=branch, index=False)


def _due(branch: str | None) -> Callable[[Graph], None]:
    def prepare(graph: Graph) -> None:
        if branch is not None:
            _written_branch(graph)
        start = graph.snapshot(branch).entry("node:Person").pin.upkeep_version
        while graph.snapshot(branch).entry("node:Person").version - start < UPKEEP_INTERVAL - 1:
            graph.mutate(TOUCH, branch=branch)

    return prepare


def _nothing(_graph: Graph) -> None:
    """Leave the graph as it is."""


def _delete_branch(graph: Graph) -> None:
    try:
        graph.delete_branch("june")
    except NotFoundError:
        raise AssertionError("the branch was there") from None


def _load(branch: str | None) -> Callable[[Graph], object]:
    return lambda graph: graph.load(records(LOADED), "merge", index=False, branch=branch)


def _overwrite(graph: Graph) -> None:
    graph.load(records(OVERWRITTEN), "overwrite", index=False)


def _embed(branch: str | None) -> Callable[[Graph], object]:
    return lambda graph: graph.embed(engine="local", index=False, branch=branch)


SCENES = (
    Scene("mutation", _nothing, lambda graph: graph.mutate(INSERT)),
    Scene("cascade", _nothing, lambda graph: graph.mutate(DELETE)),
    Scene("mutation-first-touch", _branch, lambda graph: graph.mutate(INSERT, branch="june")),
    Scene("mutation-later", _written_branch, lambda graph: graph.mutate(INSERT, branch="june")),
    Scene("load", _nothing, _load(None)),
    Scene("load-overwrite", _nothing, _overwrite),
    Scene("load-first-touch", _branch, _load("june")),
    Scene("load-later", _written_branch, _load("june")),
    Scene("load-indexed", _nothing, lambda graph: graph.load(records(LOADED), "merge")),
    Scene("merge", _diverged, lambda graph: graph.merge("june")),
    Scene("merge-fast-forward", _written_branch, lambda graph: graph.merge("june")),
    Scene("merge-first-touch", _diverged_into_branch, lambda graph: graph.merge("july", into="june")),
    Scene("merge-later", _diverged, lambda graph: graph.merge("main", into="june")),
    Scene("indexes", _nothing, lambda graph: graph.ensure_indices()),
    Scene("indexes-first-touch", _branch, lambda graph: graph.ensure_indices(branch="june")),
    Scene("indexes-later", _written_branch, lambda graph: graph.ensure_indices(branch="june")),
    Scene("upkeep", _due(None), lambda graph: graph.mutate(INSERT)),
    Scene("upkeep-branch", _due("june"), lambda graph: graph.mutate(INSERT, branch="june")),
    Scene("embed", _nothing, _embed(None)),
    Scene("embed-first-touch", _branch, _embed("june")),
    Scene("schema", _nothing, _apply(EVOLVED)),
    Scene("schema-type", _nothing, _apply(WITH_TYPE)),
    Scene("schema-first-touch", _branch, _apply(EVOLVED, "june")),
    Scene("schema-later", _written_branch, _apply(WITH_TYPE, "june")),
    Scene("schema-upgrade", _behind, lambda graph: graph.upgrade_branch("june", index=False)),
    Scene("schema-merge", _ahead, lambda graph: graph.merge("june")),
    Scene("branch-create", _nothing, _branch),
    Scene("branch-delete", _written_branch, _delete_branch),
)
