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
        {"id": "ann", "age": 41, "born": date(1984, 2, 29), "name": "ann"},
        {"id": "ben", "age": 7, "born": None, "name": "ben"},
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
    with pytest.raises(BadRequest, match="the table for Person is a list, not a table"):
        graph.load_tables({"Person": [1]}, "append")
    with pytest.raises(BadRequest, match="unknown type 'Persn'"):
        graph.load_tables({"Persn": pd.DataFrame()}, "append")
