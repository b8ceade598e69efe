"""A graph of images that lie elsewhere: three of a node, one of an edge, one of no image."""

from pathlib import Path

from omnigraph.graph.graph import Graph
from tests.support.engine import edge, ndjson, new_graph, node

SCHEMA = """\
node Book {
    code: String @key
    note: String?
    cover: Blob? @external("s3://assets/atlas/", "https://cdn.example/")
}
edge Cites: Book -> Book { scan: Blob? @external("https://cdn.example/") }
"""
WITHOUT_S3 = SCHEMA.replace('"s3://assets/atlas/", ', "")
S3 = "s3://assets/atlas/b/caf%C3%A9%20au%20lait.png"
WEB = "https://cdn.example/a.png?width=200"
OTHER = "https://cdn.example/b.png"
EVIL = "s3://assets/atlas/../evil"
COVERS: dict[str, str | None] = {"a": S3, "b": WEB, "c": None}


def records() -> bytes:
    """Return the books and an edge as NDJSON."""
    books = [node("Book", code=code, cover=cover) for code, cover in COVERS.items()]
    return ndjson([*books, edge("Cites", "a", "b", scan=OTHER)])


def images(root: Path) -> Graph:
    """Return a new graph with them."""
    graph = new_graph(root, SCHEMA)
    graph.load(records(), "append", index=False)
    return graph


def covers(graph: Graph, *, branch: str | None = None) -> dict[str, str | None]:
    """Return what each book has for its cover."""
    found = graph.table("Book", branch=branch)
    codes = (str(code) for code in found["code"].to_pylist())
    return dict(zip(codes, found["cover"].to_pylist(), strict=True))
