"""What leaves the engine: a reference is its text, and nobody goes where it points."""

from pathlib import Path
from unittest.mock import patch

import polars as pl
import pytest

from omnigraph.bulk.export.files import ExportFormat
from omnigraph.core.blob_errors import ExternalBlobError
from omnigraph.core.errors import NotFoundError
from omnigraph.graph.graph import Graph
from tests.engine.references.steps import COVERS, OTHER, S3, SCHEMA, WEB, covers
from tests.support.engine import new_graph
from tests.support.queries import mutation

MOVED = mutation(f'update Book set {{ cover: "{OTHER}" }} where code = "a"')


@pytest.mark.case("surfaces", 733)
@pytest.mark.parametrize("format_", [None, ExportFormat.CSV, ExportFormat.PARQUET])
def test_an_export_is_loaded_back_equal(graph: Graph, tmp_path: Path, format_: ExportFormat | None) -> None:
    if format_ is None:
        graph.export().to_file(tmp_path / "all.jsonl")
        data = tmp_path / "all.jsonl"
        assert f'"cover":"{S3}"'.encode() in data.read_bytes()
    else:
        data = tmp_path / "folder"
        data.mkdir()
        graph.export().to_folder(data, format_)

    with new_graph(tmp_path / "again", SCHEMA) as again:
        again.load([str(data)], "overwrite", index=False)

        assert covers(again) == COVERS
        assert again.table("Cites")["scan"].to_pylist() == [OTHER]


@pytest.mark.case("surfaces", 733)
def test_tables_and_records_have_texts(graph: Graph, tmp_path: Path) -> None:
    table = graph.table("Book")
    records = {record["data"]["code"]: record["data"]["cover"] for record in graph.export(types=["Book"])}  # type: ignore[index]

    assert records == COVERS
    assert str(table.schema.field("cover").type) == "string"
    assert table.to_pandas()["cover"].tolist()[:2] == [S3, WEB]
    assert dict(zip(table["code"].to_pylist(), pl.DataFrame(table)["cover"], strict=True)) == COVERS
    assert graph.entity_at("Book", "a", "main")["cover"] == S3
    assert graph.duckdb().sql("select cover from Book where cover like 's3:%'").fetchall() == [(S3,)]
    with new_graph(tmp_path / "again", SCHEMA) as again:
        again.load_tables({"Book": table}, "append")
        again.load(list(graph.export(types=["Cites"])), "append")
        assert covers(again) == COVERS


@pytest.mark.case("surfaces", 733)
def test_images_of_changes_have_texts(graph: Graph) -> None:
    graph.create_branch("left")
    commit = graph.mutate(MOVED).commit
    assert commit is not None

    found = [
        next(iter(graph.diff("main", "left"))),
        next(iter(graph.commit_changes(commit.graph_commit_id))),
        [change for block in graph.changes(start="beginning") for change in block.changes][-1],
    ]

    for change in found:
        assert change.before is not None
        assert change.after is not None
        assert (change.before.properties["cover"], change.after.properties["cover"]) == (S3, OTHER)


@pytest.mark.case("surfaces", 736)
def test_a_reference_is_shown_and_never_followed(graph: Graph, tmp_path: Path) -> None:
    out = tmp_path / "out.bin"
    blob = graph.blob("node", "Book", "a", "cover")

    assert (blob.kind, blob.uri, blob.size) == ("external", S3, None)
    for read in (blob.read, blob.stream, lambda: blob.save(out)):
        with pytest.raises(ExternalBlobError, match="does not follow") as caught:
            read()
        assert (caught.value.uri, caught.value.status) == (S3, 424)
    assert not out.exists()
    assert graph.blob("edge", "Cites", graph.table("Cites")["id"][0].as_py(), "scan").uri == OTHER
    with pytest.raises(NotFoundError, match="it is null"):
        graph.blob("node", "Book", "c", "cover")


@pytest.mark.case("surfaces", 736)
def test_each_state_has_its_own_reference(graph: Graph) -> None:
    before = graph.snapshot()
    held = graph.blob("node", "Book", "a", "cover")
    graph.create_branch("left")
    graph.mutate(MOVED, branch="left")

    moved = graph.blob("node", "Book", "a", "cover", branch="left")
    again = graph.blob("node", "Book", "a", "cover", snapshot=before)

    assert (moved.uri, again.uri, held.uri) == (OTHER, S3, S3)
    assert moved.etag != again.etag == held.etag
    graph.merge("left")
    graph.optimize()
    graph.cleanup(keep=1, older_than=0)
    assert graph.blob("node", "Book", "a", "cover").uri == OTHER
    with pytest.raises(ExternalBlobError, match="caf%C3%A9"):
        held.read()


@pytest.mark.case("surfaces", 736)
@pytest.mark.parametrize("stored", ["s3://assets/atlas/x\r\nSet-Cookie: a=b", "https://u:p@host/", "bytes"])
def test_what_another_program_stored_is_shown_to_nobody(graph: Graph, stored: str) -> None:
    text = mutation("insert Book { code: $c, cover: $u }", "$c: String, $u: Blob")
    with (
        patch("omnigraph.validate.references.reference_fault", return_value=None),
        patch("omnigraph.validate.references.form_fault", return_value=None),
    ):
        graph.mutate(text, params={"c": "x", "u": stored})

    with pytest.raises(ExternalBlobError, match="is not a reference"):
        graph.blob("node", "Book", "x", "cover")
    (finding,) = graph.verify(deep=True).findings
    assert "Book.cover: not a reference" in finding.what
