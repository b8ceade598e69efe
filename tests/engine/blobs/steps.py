"""A graph of documents with values of every size that matters, and how tests look at them."""

import base64
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

import pyarrow as pa

from omnigraph.graph.graph import Graph
from tests.support.engine import ndjson, new_graph, node

SCHEMA = """\
node Doc { name: String @key  note: String?  body: Blob? }
edge Cites: Doc -> Doc { proof: Blob?  note: String? }
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where values are: in a property of nodes, or of edges that lead from a document to itself."""

    entity: str
    type_name: str
    property: str
    names: tuple[str, ...]  # what is given to say which value it is
    column: str  # where that is in a table

    def __str__(self) -> str:
        """Return the name of the type."""
        return self.type_name


DOCS = Place("node", "Doc", "body", ("name",), "name")
CITES = Place("edge", "Cites", "proof", ("from", "to"), "src")
FIVE = 5_000_000
VALUES: dict[str, bytes | None] = {
    "null": None,
    "empty": b"",
    "one": b"x",
    "short": bytes(range(256)),
    "zeros": bytes(300_000),
    "five": Random(5).randbytes(FIVE),
}


def encoded(value: bytes | None) -> str | None:
    """Return a value as NDJSON has it."""
    return None if value is None else f"base64:{base64.b64encode(value).decode()}"


def records() -> bytes:
    """Return all values as NDJSON."""
    return ndjson(node("Doc", name=name, body=encoded(value)) for name, value in VALUES.items())


def table(
    values: dict[str, bytes | None], type_: "pa.DataType | None" = None, place: Place = DOCS
) -> pa.Table:
    """Return values as a table to load."""
    names = {column: list(values) for column in place.names}
    return pa.table({**names, place.property: pa.array(list(values.values()), type_ or pa.large_binary())})


def documents(root: Path) -> Graph:
    """Return a new graph of all values."""
    graph = new_graph(root, SCHEMA)
    graph.load(records(), "append", index=False)
    return graph


def digest(value: bytes | None) -> str | None:
    """Return a value as something short, so that a failure is not megabytes long."""
    return None if value is None else f"{len(value)}:{sha256(value).hexdigest()}"


def held(graph: Graph, *, branch: str | None = None, place: Place = DOCS) -> dict[str, str | None]:
    """Return what every document of a branch holds, or every edge, each value read through its blob."""
    found = graph.table(place.type_name, branch=branch)
    columns = (found[place.column].to_pylist(), found["id"].to_pylist(), found[place.property].is_null())
    return {
        str(name): None
        if null.as_py()
        else digest(graph.blob(place.entity, place.type_name, str(id), place.property, branch=branch).read())
        for name, id, null in zip(*columns, strict=True)
    }


def ids_of_edges(graph: Graph) -> dict[str, str]:
    """Return the id of each document's edge to itself."""
    found = graph.table("Cites")
    return {
        str(name): str(id) for name, id in zip(found["src"].to_pylist(), found["id"].to_pylist(), strict=True)
    }


def expected(values: dict[str, bytes | None] | None = None) -> dict[str, str | None]:
    """Return what `held` says of values, all of them unless others are given."""
    return {name: digest(value) for name, value in (VALUES if values is None else values).items()}
