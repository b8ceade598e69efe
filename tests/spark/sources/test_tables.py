"""Tables that a Python user holds: nodes and edges together, as one commit."""

from datetime import date
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.core.errors import BadRequest, ValidationError
from omnigraph.graph.graph import Graph

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    born: Date?
    seen: I64?
    score: F64?
}

edge Knows: Person -> Person {
    weight: F64?
}
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph", SCHEMA, durability="process")


@pytest.mark.case("surfaces", 192)
def test_frames_of_nodes_and_edges_are_one_commit_or_none(graph: Graph) -> None:
    people = pd.DataFrame({"name": ["ann", "ben"], "age": [41, 7], "born": [date(1984, 2, 29), None]})
    knows = pd.DataFrame({"from": ["ann"], "to": ["ben"], "weight": [0.5]})
    before = len(graph.commits())

    result = graph.load_tables({"Knows": knows, "Person": people}, "append", index=False)

    assert (result.engine, result.tables) == ("local", (("edge:Knows", 1), ("node:Person", 2)))
    assert len(graph.commits()) == before + 1
    assert graph.table("Person").to_pylist() == [
        {"id": "ann", "age": 41, "born": date(1984, 2, 29), "name": "ann", "score": None, "seen": None},
        {"id": "ben", "age": 7, "born": None, "name": "ben", "score": None, "seen": None},
    ]
    dangling = pd.DataFrame({"from": ["ann", "ann"], "to": ["ben", "nobody"]})
    more = pd.DataFrame({"name": ["cal"]})
    with pytest.raises(ValidationError, match="Knows:2: dst 'nobody' not found in Person"):
        graph.load_tables({"Person": more, "Knows": dangling}, "append")
    assert len(graph.commits()) == before + 1
    assert graph.table("Person").num_rows == 2


def test_batches_and_readers_of_arrow_are_tables(graph: Graph) -> None:
    batch = pa.RecordBatch.from_pydict({"name": ["ann"]})
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch, batch.slice(0, 0)])

    graph.load_tables({"Person": batch}, "append", index=False)
    result = graph.load_tables({"Person": reader}, "merge", index=False)

    assert result.tables == (("node:Person", 1),)


def test_what_is_no_table_and_no_type_is_named(graph: Graph) -> None:
    with pytest.raises(BadRequest, match="Person:1: an int is not a row"):
        graph.load_tables({"Person": [1]}, "append")
    with pytest.raises(BadRequest, match="unknown type 'Persn'"):
        graph.load_tables({"Persn": pd.DataFrame()}, "append")


@pytest.mark.case("surfaces", 241)
def test_a_float_column_of_pandas_with_whole_numbers_is_one_of_integers(graph: Graph) -> None:
    """Pandas makes an integer column with a gap one of floats."""
    people = pd.DataFrame({"name": ["ann", "ben"], "age": [41, None], "seen": [2.0**53 - 1, None]})
    people["score"] = [0.5, float("nan")]
    assert [str(dtype) for dtype in people.dtypes] == ["object", "float64", "float64", "float64"]

    graph.load_tables({"Person": people}, "append", index=False)

    found = graph.table("Person").select(["age", "seen", "score"]).to_pylist()
    assert found == [
        {"age": 41, "seen": 2**53 - 1, "score": 0.5},
        {"age": None, "seen": None, "score": None},
    ]


@pytest.mark.case("surfaces", 241)
@pytest.mark.parametrize("value", [60.5, float("inf"), 2.0**53, -(2.0**53)])
def test_other_floats_for_an_integer_are_refused_with_the_way_out(graph: Graph, value: float) -> None:
    people = pd.DataFrame({"name": ["ann", "ben", "cal"], "seen": [1.0, None, value]})

    with pytest.raises(
        BadRequest, match=r"row 3 of the pandas column for Person\.seen .* dtype 'Int64'"
    ) as refused:
        graph.load_tables({"Person": people}, "append")

    assert str(value) in str(refused.value)
    assert graph.table("Person").num_rows == 0


@pytest.mark.case("surfaces", 241)
def test_nan_beside_a_null_of_pandas_is_null_as_well(graph: Graph) -> None:
    zeros = pd.Series([0.0, None], dtype="Float64")
    people = pd.DataFrame({"name": ["ann", "ben"], "score": zeros / zeros, "seen": zeros / zeros})
    assert people["score"].isna().tolist() == [False, True]

    graph.load_tables({"Person": people}, "append", index=False)

    assert graph.table("Person").select(["score", "seen"]).to_pylist() == [{"score": None, "seen": None}] * 2


@pytest.mark.case("surfaces", 241)
def test_a_narrow_float_column_holds_fewer_whole_numbers(graph: Graph) -> None:
    exact = pd.DataFrame({"name": ["ann"], "seen": pd.array([2**24 - 1], dtype="float32")})
    exact["age"] = pd.array([41], dtype="float16")
    doubtful = pd.DataFrame({"name": ["ben"], "seen": pd.array([2**24 + 1], dtype="float32")})

    graph.load_tables({"Person": exact}, "append", index=False)
    graph.load_tables({"Person": exact.iloc[:0]}, "append", index=False)
    with pytest.raises(BadRequest, match="dtype 'Int64'"):
        graph.load_tables({"Person": doubtful}, "append")

    assert graph.table("Person").column("seen").to_pylist() == [2**24 - 1]


@pytest.mark.case("surfaces", 241)
@pytest.mark.parametrize(
    ("column", "value"), [("seen", 3.0), ("seen", float("nan")), ("score", float("nan"))]
)
def test_floats_of_arrow_are_what_they_are(graph: Graph, column: str, value: float) -> None:
    with pytest.raises(ValidationError, match=rf"Person:1: Person\.{column}"):
        graph.load_tables({"Person": pa.table({"name": ["ann"], column: [value]})}, "append")
