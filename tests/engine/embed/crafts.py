"""The graph and the answers that tests of `embed` share."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import omnigraph
from omnigraph import EmbeddingConfig, Graph
from omnigraph.storage.tables.rows import read_rows, row_ids_of
from tests.support.engine import ndjson, node
from tests.support.seam import internals
from tests.unit.embedding.stand_in import Answer

SCHEMA = """\
node Craft {
    code: String @key
    name: String?
    purpose: String?
    mass_kg: F64?
    launched: Date?
    photo: Blob?
    tags: [String]?
    name_vector: Vector(4)? @embed(name, model="lab/mini-4") @index
    purpose_vector: Vector(3)? @embed(purpose)
}
node Mission {
    title: String @key
    vector: Vector(2)? @embed(title)
}
edge Flew: Craft -> Mission
"""
MODEL = "lab/mini-4"
MOCK = EmbeddingConfig("mock", model=MODEL)
CRAFTS = (
    node("Craft", code="VGR-1", name="Voyager", purpose="outer planets", mass_kg=721.9, tags=["far", "old"]),
    node("Craft", code="VGR-2", name="Voyager", launched="1977-08-20", photo="base64:AAEC"),
    node("Craft", code="CAS", name="Cassini", name_vector=[3, 0, 0, 0]),
    node("Craft", code="NONE", purpose="", name_vector=[0, 0, 0, 1]),
)


def new_graph(root: Path, *records: dict[str, object], embedding: EmbeddingConfig = MOCK) -> Graph:
    """Return a graph with crafts, or with these records, in one fragment."""
    with omnigraph.init(root, SCHEMA, durability="process") as graph:
        graph.load(ndjson(records or CRAFTS), "append", index=False)
    return reopened(root, embedding)


def reopened(root: Path, embedding: EmbeddingConfig = MOCK) -> Graph:
    """Return a handle with a provider."""
    return omnigraph.open(root, durability="process", embedding=embedding)


def vectors(graph: Graph, column: str = "name_vector") -> dict[str, list[float] | None]:
    """Return the vectors of crafts by code."""
    return {row["code"]: row[column] for row in graph.table("Craft").to_pylist()}


def row_ids(graph: Graph, table_key: str = "node:Craft") -> dict[str, int]:
    """Return the stable row ids of a table by id."""
    parts = internals(graph).parts
    entry = graph.snapshot().entry(table_key)
    found = read_rows(parts.open(entry), ["id"])
    return dict(zip(map(str, found["id"].to_pylist()), row_ids_of(found).tolist(), strict=True))


def data_files(graph: Graph) -> list[str]:
    """Return the data files of all tables, referred to or not."""
    return sorted(str(path) for path in Path(graph.uri).glob("nodes/*/data/*.lance"))


def openai(url: str, api_key: str | None = "sk-very-secret", **settings: int) -> EmbeddingConfig:
    """Return settings for a server on this machine that never waits between tries."""
    values = {"retry_backoff_ms": 0} | settings
    return EmbeddingConfig("openai", base_url=url, model=MODEL, api_key=api_key, **values)


def answer(*vectors_: Sequence[float]) -> Answer:
    """Return an answer with these vectors."""
    return Answer({"data": [{"index": place, "embedding": list(v)} for place, v in enumerate(vectors_)]})


def is_unit(vector: Sequence[float] | None) -> bool:
    """Return whether a vector has the length one."""
    return vector is not None and bool(np.isclose(np.linalg.norm(vector), 1.0, atol=1e-6))
