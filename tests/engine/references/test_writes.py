"""References come in by every way, letter for letter; what the schema does not allow comes in by none."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.core.errors import OmnigraphError, ValidationError
from omnigraph.graph.graph import Graph
from tests.engine.references.steps import COVERS, EVIL, OTHER, S3, SCHEMA, WEB, covers
from tests.support.engine import edge, listed, ndjson, new_graph, node
from tests.support.http_app import serving_app, settings_for
from tests.support.queries import mutation

pytestmark = pytest.mark.case("surfaces", 732)
Covers = Mapping[str, str | None]
Fill = Callable[[Graph, Path, Covers], None]


def _lines(graph: Graph, _folder: Path, given: Covers) -> None:
    graph.load(ndjson(node("Book", code=code, cover=cover) for code, cover in given.items()), "append")


def _records(graph: Graph, _folder: Path, given: Covers) -> None:
    graph.load({"Book": [{"code": code, "cover": cover} for code, cover in given.items()]}, "append")


def _csv(graph: Graph, folder: Path, given: Covers) -> None:
    lines = [f"{code},{cover or ''}" for code, cover in given.items()]
    (folder / "Book.csv").write_text("\n".join(["code,cover", *lines]), encoding="utf-8")
    graph.load([f"Book={folder / 'Book.csv'}"], "append")


def _table(given: Covers, type_: pa.DataType) -> pa.Table:
    values = pa.array(list(given.values()), pa.utf8())
    return pa.table({"code": list(given), "cover": values.cast(type_)})


def _parquet(graph: Graph, folder: Path, given: Covers) -> None:
    pq.write_table(_table(given, pa.utf8()), folder / "Book.parquet")
    graph.load([f"Book={folder / 'Book.parquet'}"], "append")


def _arrow(graph: Graph, _folder: Path, given: Covers) -> None:
    graph.load_tables({"Book": _table(given, pa.large_utf8())}, "append")


def _dictionary(graph: Graph, _folder: Path, given: Covers) -> None:
    graph.load_tables({"Book": _table(given, pa.dictionary(pa.int32(), pa.utf8()))}, "append")


def _pandas(graph: Graph, _folder: Path, given: Covers) -> None:
    graph.load_tables({"Book": pd.DataFrame({"code": list(given), "cover": list(given.values())})}, "append")


def _mapping(graph: Graph, folder: Path, given: Covers) -> None:
    for code, cover in given.items():
        (folder / "codes.csv").write_text(f"book\n{code}\n", encoding="utf-8")
        constant = "" if cover is None else f"\n    constants: {{cover: '{cover}'}}"
        text = f"sources:\n  - path: codes.csv\n    type: Book\n    columns: {{code: book}}{constant}\n"
        (folder / "load.yaml").write_text(text, encoding="utf-8")
        graph.load([], "append", mapping=folder / "load.yaml")


def _parameters(graph: Graph, _folder: Path, given: Covers) -> None:
    for place, (code, cover) in enumerate(given.items()):
        kind = ("Blob?", "String?")[place % 2]
        insert = mutation("insert Book { code: $c, cover: $u }", f"$c: String, $u: {kind}")
        graph.mutate(insert, params={"c": code, "u": cover})


def _literals(graph: Graph, _folder: Path, given: Covers) -> None:
    for code, cover in given.items():
        graph.mutate(mutation(f'insert Book {{ code: "{code}" }}'))
        if cover is not None:
            graph.mutate(mutation(f'update Book set {{ cover: "{cover}" }} where code = "{code}"'))


WAYS: dict[str, Fill] = {
    "lines": _lines,
    "records": _records,
    "csv": _csv,
    "parquet": _parquet,
    "arrow": _arrow,
    "dictionary": _dictionary,
    "pandas": _pandas,
    "mapping": _mapping,
    "parameters": _parameters,
    "literals": _literals,
}
REFUSED = {
    EVIL: "not a reference that @external allows: '..' can lead to another folder",
    "s3://elsewhere/x": "it is not below https://cdn.example/, s3://assets/atlas/",
    "https://cdn.example/x?sig=0": "its query may hold a credential",
    "base64:eA==": "holds references (@external), not bytes",
}
every_way = pytest.mark.parametrize("fill", WAYS.values(), ids=WAYS)


@every_way
def test_references_come_in_letter_for_letter(tmp_path: Path, fill: Fill) -> None:
    with new_graph(tmp_path / "graph", SCHEMA) as graph:
        fill(graph, tmp_path, COVERS)

        assert covers(graph) == COVERS
        assert graph.verify(deep=True).is_whole


@every_way
def test_what_the_schema_does_not_allow_comes_in_by_no_way(tmp_path: Path, fill: Fill) -> None:
    with new_graph(tmp_path / "graph", SCHEMA) as graph:
        for cover, words in REFUSED.items():
            with pytest.raises(OmnigraphError) as caught:
                fill(graph, tmp_path, {"x": cover})

            assert "Book.cover: " in str(caught.value)
            assert words in str(caught.value)
            assert set(covers(graph).values()) <= {None}  # of two statements, the second is refused


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_bytes_are_no_reference(graph: Graph, type_: pa.DataType) -> None:
    table = pa.table({"code": ["x"], "cover": pa.array([S3.encode()], type_)})

    for write in (
        lambda: graph.load_tables({"Book": table}, "append"),
        lambda: graph.load({"Book": [{"code": "x", "cover": S3.encode()}]}, "append"),
        lambda: graph.mutate(
            mutation("insert Book { code: $c, cover: $u }", "$c: String, $u: Blob"),
            params={"c": "x", "u": S3.encode()},
        ),
    ):
        with pytest.raises(ValidationError, match=r"Book\.cover"):
            write()
    assert covers(graph) == COVERS


def test_an_edge_has_bases_of_its_own(graph: Graph) -> None:
    with pytest.raises(ValidationError) as caught:
        graph.load(ndjson([edge("Cites", "a", "b", scan=S3), edge("Cites", "b", "a", scan=OTHER)]), "append")
    insert = mutation("insert Cites { from: $a, to: $b, scan: $u }", "$a: String, $b: String, $u: Blob")
    with pytest.raises(ValidationError, match=r"Cites\.scan"):
        graph.mutate(insert, params={"a": "a", "b": "b", "u": S3})
    graph.mutate(insert, params={"a": "a", "b": "b", "u": OTHER})

    (violation,) = listed(caught.value)
    assert (violation.kind, violation.table_key, violation.line) == ("type", "edge:Cites", 1)
    assert graph.table("Cites")["scan"].to_pylist() == [OTHER, OTHER]


def test_a_statement_before_does_not_let_a_reference_in(graph: Graph) -> None:
    text = f'insert Book {{ code: "x", cover: "{EVIL}" }}  update Book set {{ note: "n" }} where code = "x"'

    with pytest.raises(ValidationError, match=r"Book\.cover"):
        graph.mutate(mutation(text))

    assert covers(graph) == COVERS


def test_a_blob_without_bases_takes_no_reference(tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph", "node Book { code: String @key  cover: Blob? }") as graph:
        for write in (_lines, _literals):
            with pytest.raises(ValidationError, match="a Blob cannot be a URI, write base64:<data>"):
                write(graph, tmp_path, {"x": S3})


def test_a_server_takes_the_same(tmp_path: Path, graph: Graph) -> None:
    insert = mutation("insert Book { code: $c, cover: $u }", "$c: String, $u: Blob")
    with serving_app(settings_for(Path(graph.uri))) as client:
        for code, cover in (("x", S3), ("y", EVIL)):
            body = {"query": insert, "params": {"c": code, "u": cover}}
            mutated = client.post("/mutate", json=body)
            lines = ndjson([node("Book", code=f"{code}{code}", cover=cover)])
            loaded = client.post("/load", json={"data": lines.decode(), "mode": "append"})
            for answer in (mutated, loaded):
                assert answer.status_code == (200 if cover is S3 else 400), answer.text
                assert cover is S3 or "not a reference that @external allows" in answer.json()["error"]

    graph.refresh()
    assert covers(graph) == {**COVERS, "x": S3, "xx": S3}
    assert WEB in covers(graph).values()
