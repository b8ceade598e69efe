"""Graphs that the tests of shapes start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph

TOWN = """\
node Person {
    name: String @key
    age: I64?
    share: F64?
    half: F32?
    born: Date?
    seen: DateTime?
    seen_at: [DateTime]?
    mood: enum(calm, glad)?
    badge: String?
    tags: [String]?
    place: Vector(2)?
    photo: Blob?
    class: String?
    town: String? @default("Ruhr")
}
node Note { text: String  kept: Bool? }
edge Knows: Person -> Person { since: I32? }
"""


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Graph]:
    """An empty graph whose persons have a property of every kind."""
    with omnigraph.init(tmp_path / "town.omni", TOWN, durability="process") as graph:
        yield graph
