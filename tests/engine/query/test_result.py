"""`Result`: one answer in every form."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph import BadRequest, Graph, UnsupportedError
from omnigraph.graph.result import HTML_ROWS_MAX, Result
from tests.support.engine import copy_of, reopen
from tests.support.queries import books, mutation
from tests.support.reading import json_rows

SHOWN = "return { $b.code, $b.added, $b.published, $b.embedding, $b.tags, $b.pages } order { $b.code }"


@pytest.fixture
def result(library: Graph) -> Result:
    return library.query(books("", SHOWN))


def test_rows_are_dictionaries_of_python_values(result: Result) -> None:
    first = result.first()

    assert first == {
        "b.code": "AA-1",
        "b.added": datetime(2021, 1, 1, tzinfo=UTC),
        "b.published": date(2020, 5, 1),
        "b.embedding": [1.0, 0.0, 0.0, 0.0],
        "b.tags": ["river", "glass"],
        "b.pages": 300,
    }
    assert result.rows == result.to_pylist() == list(result)
    assert len(result) == result.row_count == 4
    assert [row["b.pages"] for row in result] == [300, 120, None, 120]


@pytest.mark.case("surfaces", 190)
def test_arrow_keeps_the_declared_types(result: Result) -> None:
    table = result.to_arrow()

    assert table.schema.types == [
        pa.utf8(), pa.timestamp("ms", "UTC"), pa.date32(),
        pa.list_(pa.float32(), 4), pa.list_(pa.utf8()), pa.int32(),
    ]  # fmt: skip
    assert pa.Table.from_batches(result.to_batches(2)) == table
    assert pa.table(result) == table


def test_the_document_of_a_read(library: Graph, result: Result) -> None:
    document = result.to_json()

    assert list(document) == ["query_name", "target", "row_count", "columns", "rows", "graph_commit_id"]
    assert document["query_name"] == "q"
    assert document["target"] == {"branch": "main", "snapshot": None}
    assert document["graph_commit_id"] == library.snapshot().head.graph_commit_id == result.commit_id
    assert json.loads(json.dumps(document)) == document
    assert document["rows"][2] == {
        "b.code": "BB-1",
        "b.added": "2021-01-03T00:00:00.000Z",
        "b.published": None,
        "b.embedding": None,
        "b.tags": None,
        "b.pages": None,
    }


def test_pandas_gets_moments_and_not_days(result: Result) -> None:
    frame = result.to_pandas()

    assert list(frame.columns) == result.columns
    assert str(frame["b.added"].dtype) == "datetime64[ms, UTC]"
    assert len(frame) == 4


def test_polars_is_asked_for_when_it_is_used(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)

    with pytest.raises(UnsupportedError, match="polars"):
        result.to_polars()


def test_single_rows_and_values(library: Graph) -> None:
    count = library.query(books("", "return { count($b) as n }"))
    none = library.query(books('{ code: "ZZ-1" }', "return { $b.title }"))
    many = library.query(books("", "return { $b.code, $b.title }"))

    assert (count.scalar(), count.one()) == (4, {"n": 4})
    assert none.first() is None
    for wrong in (none.one, many.one, none.scalar, many.scalar):
        with pytest.raises(BadRequest):
            wrong()


def test_a_notebook_shows_a_table_and_data_stays_data(library: Graph) -> None:
    html = library.query(books("", 'return { $b.code, "<b>" as x } order { $b.code }'))._repr_html_()

    assert "<th>b.code</th>" in html
    assert "<td>AA-1</td><td>&lt;b&gt;</td>" in html
    assert html.count("<tr>") == 5 <= HTML_ROWS_MAX
    assert "4 rows" in html


@pytest.mark.case("languages", 223)
def test_vectors_are_stored_as_given(library_root: Path, tmp_path: Path) -> None:
    fields = 'title: "t", price: 1.0, format: "paper", added: now()'
    with reopen(copy_of(library_root, tmp_path / "graph")) as graph:
        for code, vector in (("CC-1", "[3, 4, 0, 0]"), ("CC-2", "[0, 0, 0, 0]")):
            graph.mutate(mutation(f'insert Book {{ code: "{code}", {fields}, embedding: {vector} }}'))

        shown = json_rows(
            graph.query(books('$b.code starts_with "CC"', "return { $b.embedding as v } order { $b.code }"))
        )

    assert shown == [{"v": [3.0, 4.0, 0.0, 0.0]}, {"v": [0.0, 0.0, 0.0, 0.0]}]
