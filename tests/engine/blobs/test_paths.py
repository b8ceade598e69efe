"""A value that went in comes out with the same bytes, whatever is done between."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.bulk.export.files import ExportFormat
from omnigraph.core.damage import GraphDamaged
from omnigraph.graph.graph import Graph
from tests.engine.blobs.steps import (
    CITES,
    DOCS,
    SCHEMA,
    VALUES,
    Place,
    encoded,
    expected,
    held,
    ids_of_edges,
    table,
)
from tests.support.engine import edge, ndjson, new_graph, node, reopen
from tests.support.queries import mutation

pytestmark = pytest.mark.case("surfaces", 583)


def _parquet(graph: Graph, folder: Path, place: Place) -> None:
    file = folder / "values.parquet"
    pq.write_table(table(VALUES, place=place), file)
    graph.load([f"{place.type_name}={file}"], "append", index=False)


def _csv(graph: Graph, folder: Path, place: Place) -> None:
    lines = [",".join([*place.names, place.property])]
    lines += [",".join([*[name] * len(place.names), encoded(value) or ""]) for name, value in VALUES.items()]
    (folder / "values.csv").write_text("\n".join(lines), encoding="utf-8")
    graph.load([f"{place.type_name}={folder / 'values.csv'}"], "append", index=False)


def _ndjson(graph: Graph, _folder: Path, place: Place) -> None:
    lines = [
        node("Doc", name=name, body=encoded(value))
        if place is DOCS
        else edge("Cites", name, name, proof=encoded(value))
        for name, value in VALUES.items()
    ]
    graph.load(ndjson(lines), "append", index=False)


def _pandas(graph: Graph, _folder: Path, place: Place) -> None:
    names = {column: list(VALUES) for column in place.names}
    frame = pd.DataFrame({**names, place.property: list(VALUES.values())})
    graph.load_tables({place.type_name: frame}, "append", index=False)


def _polars(graph: Graph, _folder: Path, place: Place) -> None:
    names = {column: list(VALUES) for column in place.names}
    frame = pl.DataFrame({**names, place.property: pl.Series(list(VALUES.values()), dtype=pl.Binary)})
    graph.load_tables({place.type_name: frame}, "append", index=False)


def _arrow(graph: Graph, _folder: Path, place: Place) -> None:
    for name, type_ in zip(VALUES, (pa.binary(), pa.large_binary(), pa.binary_view()) * 2, strict=True):
        one = table({name: VALUES[name]}, type_, place)
        graph.load_tables({place.type_name: one}, "append", index=False)


def _mutated(graph: Graph, _folder: Path, place: Place) -> None:
    insert = mutation(_insert(place, "$n", "$b"), "$n: String, $b: Blob?")
    for number, (name, value) in enumerate(VALUES.items()):
        given = (value, encoded(value), value and memoryview(value), value and bytearray(value))[number % 4]
        graph.mutate(insert, params={"n": name, "b": value if given is None else given})


def _literally(graph: Graph, _folder: Path, place: Place) -> None:
    for name, value in VALUES.items():
        literal = None if value is None else f'"{encoded(value)}"'
        graph.mutate(mutation(_insert(place, f'"{name}"', literal)))


def _insert(place: Place, name: str, value: str | None) -> str:
    given = [f"{each}: {name}" for each in place.names]
    if value is not None:
        given.append(f"{place.property}: {value}")
    return f"insert {place.type_name} {{ {', '.join(given)} }}"


@pytest.mark.parametrize("place", [DOCS, CITES], ids=str)
@pytest.mark.parametrize("fill", [_ndjson, _parquet, _csv, _pandas, _polars, _arrow, _mutated, _literally])
def test_values_come_in_by_every_way(
    tmp_path: Path, fill: Callable[[Graph, Path, Place], None], place: Place
) -> None:
    with new_graph(tmp_path / "graph", SCHEMA) as graph:
        if place is CITES:
            graph.load_tables({"Doc": table(dict.fromkeys(VALUES))}, "append", index=False)
        fill(graph, tmp_path, place)

        assert held(graph, place=place) == expected()


def test_rows_that_are_written_anew_keep_their_values(docs: Graph) -> None:
    docs.mutate(mutation('update Doc set { note: "seen" } where name != "seen"'))
    assert held(docs) == expected()

    docs.create_branch("left")
    docs.mutate(mutation('update Doc set { note: "left" } where name = "five"'), branch="left")
    changed = mutation('update Doc set { body: $b } where name = "five"', "$b: Blob")
    docs.mutate(changed, params={"b": b"other"})
    docs.mutate(changed, params={"b": VALUES["five"]})
    docs.mutate(mutation('insert Doc { name: "new", body: "base64:eA==" }'), branch="left")
    merged = docs.merge("left")
    values = {**VALUES, "new": b"x"}
    assert merged.outcome.value == "merged"
    assert held(docs) == expected(values)

    docs.optimize()
    docs.cleanup(keep=1, older_than=0)
    assert held(docs) == expected(values)
    assert docs.verify(deep=True).is_whole


def test_values_that_differ_on_both_sides_are_a_conflict(docs: Graph) -> None:
    docs.create_branch("left")
    changed = mutation('update Doc set { body: $b } where name = "short"', "$b: Blob")
    docs.mutate(changed, params={"b": b"left"}, branch="left")
    docs.mutate(changed, params={"b": b"right"})

    with pytest.raises(omnigraph.MergeConflicts):
        docs.merge("left")

    docs.mutate(changed, params={"b": b"left"})
    docs.merge("left")
    assert docs.blob("node", "Doc", "short", "body").read() == b"left"


@pytest.mark.parametrize("place", [DOCS, CITES], ids=str)
def test_copies_and_exports_have_the_same_values(cited: Graph, place: Place, tmp_path: Path) -> None:
    omnigraph.clone(cited.uri, tmp_path / "clone")
    cited.export().to_file(tmp_path / "all.jsonl")
    (tmp_path / "folder").mkdir()
    cited.export(types=["Doc", "Cites"]).to_folder(tmp_path / "folder", ExportFormat.PARQUET)

    with reopen(tmp_path / "clone") as clone:
        assert held(clone, place=place) == expected()
    for name, data in (("lines", [str(tmp_path / "all.jsonl")]), ("parquet", [str(tmp_path / "folder")])):
        with new_graph(tmp_path / name, SCHEMA) as again:
            again.load(data, "overwrite", index=False)
            assert held(again, place=place) == expected()


def test_edges_that_are_written_anew_keep_their_values(cited: Graph) -> None:
    def written(name: str, value: bytes | None, note: str, branch: str = "main") -> None:
        changed = edge("Cites", name, name, id=ids[name], proof=encoded(value), note=note)
        cited.load(ndjson([changed]), "merge", branch=branch, index=False)

    ids = ids_of_edges(cited)

    for name, value in VALUES.items():
        written(name, value, "seen")
    assert held(cited, place=CITES) == expected()

    cited.create_branch("left")
    written("five", VALUES["five"], "left", "left")
    written("one", b"of left", "left", "left")
    written("short", None, "right")
    merged = cited.merge("left")
    values = {**VALUES, "one": b"of left", "short": None}
    assert merged.outcome.value == "merged"
    assert held(cited, place=CITES) == expected(values)

    cited.optimize()
    cited.cleanup(keep=1, older_than=0)
    assert held(cited, place=CITES) == expected(values)
    assert cited.verify(deep=True).is_whole


def test_values_of_edges_that_differ_on_both_sides_are_a_conflict(cited: Graph) -> None:
    id = ids_of_edges(cited)["short"]
    cited.create_branch("left")
    for branch in ("left", "main"):
        changed = ndjson([edge("Cites", "short", "short", id=id, proof=encoded(branch.encode()))])
        cited.load(changed, "merge", branch=branch, index=False)

    with pytest.raises(omnigraph.MergeConflicts):
        cited.merge("left")


def test_values_follow_their_property_through_schema_changes(docs: Graph) -> None:
    renamed = SCHEMA.replace("  body: Blob? }", '  text: Blob? @rename_from("body")  more: Blob? }')
    docs.apply_schema(renamed)
    docs.mutate(mutation('update Doc set { more: $b } where name = "one"', "$b: Blob"), params={"b": b"more"})

    assert docs.blob("node", "Doc", "five", "text").read() == VALUES["five"]
    assert docs.blob("node", "Doc", "one", "more").read() == b"more"
    with pytest.raises(omnigraph.NotFoundError, match="has no more: it is null"):
        docs.blob("node", "Doc", "five", "more")
    with pytest.raises(omnigraph.BadRequest, match="no property 'body'"):
        docs.blob("node", "Doc", "five", "body")
    dropped = renamed.replace('  text: Blob? @rename_from("body")', "")
    docs.apply_schema(dropped, allow_data_loss=True)
    docs.optimize()
    assert docs.blob("node", "Doc", "one", "more").read() == b"more"


def test_a_file_that_is_gone_is_damage(docs: Graph) -> None:
    blob = docs.blob("node", "Doc", "five", "body")
    for file in Path(docs.uri).rglob("data/*.lance"):
        file.unlink()

    with pytest.raises(GraphDamaged):
        blob.read()
