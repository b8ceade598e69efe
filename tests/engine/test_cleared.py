"""A merge replaces whole rows: what it clears of existing ones is counted, told, and refused where asked."""

from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import ColumnsLeftOut
from omnigraph.core.cleared_property import ClearedProperty
from omnigraph.operations.engine import Engine
from omnigraph.operations.load.model import OnError
from omnigraph.operations.settings import KEY_ROWS
from tests.support.spark import spark_session

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    note: String?
    seen: DateTime?
    tags: [String]?
    place: Vector(2)?
    photo: Blob?
}

edge Knows: Person -> Person {
    since: Date?
}
"""
FULL = b"""\
{"type": "Person", "data": {"name": "ann", "age": 1, "note": "a", "seen": "2024-01-01T10:00:00Z", \
"tags": ["x"], "place": [1, 2], "photo": "base64:AAE="}}
{"type": "Person", "data": {"name": "bo", "age": 2, "note": null, "photo": "base64:AAE="}}
{"type": "Person", "data": {"name": "cy"}}
{"edge": "Knows", "from": "ann", "to": "bo", "data": {"id": "k1", "since": "2024-01-01"}}
{"edge": "Knows", "from": "ann", "to": "bo", "data": {"id": "k2", "since": "2024-01-01"}}
"""
PART = b"""\
{"type": "Person", "data": {"name": "ann", "note": "b"}}
{"type": "Person", "data": {"name": "bo", "age": 3}}
{"type": "Person", "data": {"name": "cy", "age": null}}
{"type": "Person", "data": {"name": "dee"}}
{"edge": "Knows", "from": "ann", "to": "bo", "data": {"id": "k1", "since": "2024-01-02"}}
{"edge": "Knows", "from": "ann", "to": "bo", "data": {"id": "k1"}}
{"edge": "Knows", "from": "ann", "to": "bo", "data": {"id": "k2"}}
{"edge": "Knows", "from": "ann", "to": "bo", "data": {"id": "k2", "since": "2024-01-02"}}
{"edge": "Knows", "from": "ann", "to": "cy"}
"""
CLEARED = (
    ClearedProperty("edge:Knows", "since", 1),
    ClearedProperty("node:Person", "age", 1),
    ClearedProperty("node:Person", "photo", 2),
    ClearedProperty("node:Person", "place", 1),
    ClearedProperty("node:Person", "seen", 1),
    ClearedProperty("node:Person", "tags", 1),
)


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    """A graph with a full row, a partial one, and one without anything but its key."""
    made = omnigraph.init(tmp_path / "g.omni", SCHEMA, durability="process")
    made.load(FULL, "append", engine="local", index=False)
    return made


@pytest.mark.case("surfaces", 230)
def test_a_merge_says_what_it_clears_of_existing_rows(graph: omnigraph.Graph) -> None:
    result = graph.load(PART, "merge", engine="local", index=False)

    assert result.cleared == CLEARED
    (ann,) = [row for row in graph.table("Person").to_pylist() if row["name"] == "ann"]
    assert (ann["age"], ann["note"]) == (None, "b")


@pytest.mark.slow
@pytest.mark.case("surfaces", 230)
@pytest.mark.parametrize(
    ("keys", "way"), [("few", "direct"), ("many", "direct"), ("few", "skip"), ("many", "dry")]
)
def test_spark_counts_what_is_cleared_as_the_process_does(
    keys: str, way: str, graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_session()
    if keys == "many":
        monkeypatch.setenv(KEY_ROWS, "1")
    on_error: OnError = "skip" if way == "skip" else "fail"

    with pytest.raises(ColumnsLeftOut) as caught:
        graph.load(PART, "merge", engine="spark", on_error=on_error, strict_columns=True)
    result = graph.load(PART, "merge", engine="spark", on_error=on_error, dry_run=way == "dry", index=False)

    assert result.cleared == CLEARED
    assert caught.value.cleared == CLEARED


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.slow)])
@pytest.mark.case("surfaces", 231)
def test_strict_columns_refuse_what_was_not_said(engine: Engine, graph: omnigraph.Graph) -> None:
    if engine == "spark":
        spark_session()
    before = graph.snapshot().head.graph_commit_id
    table = pa.table({"name": ["ann", "bo", "new"], "age": [1, None, 3], "note": ["x", "y", "z"]})

    with pytest.raises(
        ColumnsLeftOut, match=r"clear Person.photo of 2 rows, Person.place of 1 row, "
    ) as caught:
        graph.load({"Person": table}, "merge", engine=engine, strict_columns=True)

    assert caught.value.cleared[0] == ClearedProperty("node:Person", "photo", 2)
    assert [item.property for item in caught.value.cleared] == ["photo", "place", "seen", "tags"]
    assert graph.snapshot().head.graph_commit_id == before


def test_strict_columns_let_a_null_pass_that_stands_in_the_input(graph: omnigraph.Graph) -> None:
    whole = graph.table("Person").drop_columns(["id"])
    empty = whole.set_column(whole.schema.get_field_index("age"), "age", pa.nulls(3, pa.int32()))

    result = graph.load({"Person": empty}, "merge", engine="local", strict_columns=True, index=False)

    assert result.cleared == (ClearedProperty("node:Person", "age", 2),)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_only_a_merge_clears(mode: omnigraph.LoadMode, graph: omnigraph.Graph) -> None:
    rows = b'{"edge": "Knows", "from": "ann", "to": "bo", "data": {"id": "k3"}}'

    result = graph.load(rows, mode, engine="local", strict_columns=True, index=False, dry_run=True)

    assert result.cleared == ()


def test_new_rows_clear_nothing(graph: omnigraph.Graph) -> None:
    rows = b'{"type": "Person", "data": {"name": "eve"}}\n{"edge": "Knows", "from": "eve", "to": "ann"}'

    result = graph.load(rows, "merge", engine="local", strict_columns=True, index=False)

    assert result.cleared == ()
    assert dict(result.tables) == {"node:Person": 1, "edge:Knows": 1}


def test_many_rows_are_looked_at_in_one_pass(graph: omnigraph.Graph) -> None:
    names = [f"p{number}" for number in range(1_500)]
    graph.load({"Person": pa.table({"name": names, "age": list(range(1_500))})}, "append", index=False)

    result = graph.load({"Person": pa.table({"name": names})}, "merge", engine="local", index=False)

    assert result.cleared == (ClearedProperty("node:Person", "age", 1_500),)
