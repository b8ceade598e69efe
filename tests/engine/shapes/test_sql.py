"""SQL of DuckDB over the tables of one snapshot."""

import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import BadRequest, Graph, UnsupportedError
from omnigraph.catalog.arrow_schema import arrow_schema, with_moments
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.storage.tables.arrow_dataset import PinnedDataset
from tests.engine.shapes.conftest import TOWN
from tests.support.seam import internals

SEEN = datetime(2024, 5, 1, 13, 45, 12, 345_000, tzinfo=UTC)
PEOPLE = [
    {
        "name": "ann",
        "age": 3,
        "share": 0.5,
        "born": date(2000, 1, 2),
        "seen": SEEN,
        "tags": ["x", "y"],
        "town": "A",
    },
    {"name": "bo", "age": 2**60, "half": 0.1, "mood": "calm", "place": [1, 2], "seen_at": [SEEN]},
    {"name": "cy", "town": None},
]
KNOWS = [
    {"from": "ann", "to": "bo", "since": 1},
    {"from": "bo", "to": "cy"},
    {"from": "cy", "to": "ann", "since": 3},
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Three persons in a ring."""
    with omnigraph.init(tmp_path_factory.mktemp("sql") / "g.omni", TOWN, durability="process") as made:
        made.load({"Person": PEOPLE, "Knows": KNOWS}, "append")
        yield made


@pytest.mark.case("surfaces", 660)
def test_a_branch_is_a_view_for_each_type(graph: Graph) -> None:
    with graph.duckdb() as sql:
        names = [name for (name,) in sql.execute("SHOW TABLES").fetchall()]
        columns = [row[0] for row in sql.execute("DESCRIBE Knows").fetchall()]
        friends = """
            SELECT a.name, b.name, k.since
            FROM Knows k JOIN Person a ON a.id = k.src JOIN Person b ON b.id = k.dst
            WHERE k.since IS NOT NULL ORDER BY a.name
        """

        assert names == ["Knows", "Note", "Person"]
        assert columns == ["id", "src", "dst", "since"]
        assert sql.execute(friends).fetchall() == [("ann", "bo", 1), ("cy", "ann", 3)]
        assert sql.execute("SELECT count(*) FROM Person").fetchall() == [(3,)]
        people = sql.sql("SELECT * FROM Person ORDER BY id").to_arrow_table()
        some = ["id", "age", "seen", "tags", "town"]
        assert people.select(some).to_pylist() == graph.table("Person").select(some).to_pylist()
        for change in (
            "DELETE FROM Person",
            "UPDATE Person SET age = 1",
            "INSERT INTO Note SELECT * FROM Note",
        ):
            with pytest.raises(duckdb.Error):
                sql.execute(change)
        sql.execute("DROP VIEW Note")  # the connection is the caller's own
        sql.execute("CREATE OR REPLACE VIEW Person AS SELECT 1 AS one")
    with graph.duckdb() as sql:
        assert [name for (name,) in sql.execute("SHOW TABLES").fetchall()] == names
        assert sql.execute("SELECT count(*) FROM Person").fetchall() == [(3,)]


@pytest.mark.case("surfaces", 685)
def test_a_table_of_arrow_is_one_for_duckdb(graph: Graph) -> None:
    people, knows = graph.table("Person"), graph.table("Knows")

    joined = duckdb.sql("SELECT p.name, k.since FROM people p JOIN knows k ON k.src = p.id ORDER BY p.name")
    back = duckdb.sql("SELECT * FROM people ORDER BY id")

    assert joined is not None
    assert back is not None
    assert joined.fetchall() == [("ann", 1), ("bo", None), ("cy", 3)]
    assert back.to_arrow_table().to_pylist() == people.to_pylist()
    assert knows.num_rows == 3


@pytest.mark.case("surfaces", 661)
@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("age > 2", ["ann", "bo"]),
        ("age = 1152921504606846976", ["bo"]),
        ("age IS NULL", ["cy"]),
        ("name IN ('ann', 'cy')", ["ann", "cy"]),
        ("town IS NOT NULL AND age < 5 OR name = 'cy'", ["ann", "cy"]),
        ("NOT (age = 3)", ["bo"]),
        ("seen = TIMESTAMPTZ '2024-05-01 13:45:12.345+00'", ["ann"]),
        ("seen > TIMESTAMPTZ '2024-05-01 13:45:12.345+00' OR age = 3", ["ann"]),
        ("born = DATE '2000-01-02'", ["ann"]),
        ("share < 0.75", ["ann"]),
        ("half = 0.1::FLOAT", ["bo"]),
        ("mood = 'calm' AND len(place) = 2", ["bo"]),
        ("list_contains(tags, 'y')", ["ann"]),
        ("town LIKE 'R%'", ["bo"]),
    ],
)
def test_conditions_are_answered_as_sql_means_them(condition: str, names: list[str], graph: Graph) -> None:
    with graph.duckdb() as sql:
        found = sql.execute(f"SELECT name FROM Person WHERE {condition} ORDER BY name").fetchall()

    assert [name for (name,) in found] == names


@pytest.mark.case("surfaces", 661)
def test_only_the_columns_asked_for_are_read_and_conditions_are_those_of_arrow(graph: Graph) -> None:
    inside = internals(graph)
    snapshot = graph.snapshot()
    read: list[tuple[list[str], int]] = []

    def shaped(batch: pa.RecordBatch) -> pa.RecordBatch:
        read.append((batch.schema.names, batch.num_rows))
        return with_moments(batch)

    def dataset(type_: NodeType | EdgeType) -> PinnedDataset:
        handle = inside.parts.pinned(snapshot.entry(type_.table_key)).open(inside.parts.store)
        schema = with_moments(arrow_schema(type_).empty_table()).schema
        return PinnedDataset(lambda: handle, schema.remove_metadata(), shaped)

    people, knows = dataset(graph.catalog.nodes["Person"]), dataset(graph.catalog.edges["Knows"])
    seen, since = pc.field("seen") == pa.scalar(SEEN), pc.field("since")

    by_number = knows.scanner(columns=["src"], filter=since > 2).to_table()
    by_list = knows.scanner(columns=["src"], filter=since.isin([1, None])).to_table()
    by_time = people.scanner(columns=["name"], filter=seen & (pc.field("age") > 2)).to_table()
    counted = people.scanner(columns=[]).to_table()

    assert by_number.to_pylist() == [{"src": "cy"}]
    assert by_time.to_pylist() == [{"name": "ann"}]
    assert (by_list.num_rows, counted.num_rows) == (1, 3)
    columns = [sorted(names) for names, _ in read]
    assert columns == [["since", "src"], ["since", "src"], ["age", "name", "seen"], ["id"]]
    assert [rows for _, rows in read] == [1, 1, 3, 3], "a time is compared outside of the table"


@pytest.mark.case("surfaces", 662)
def test_a_connection_sees_one_snapshot_and_ends_with_the_graph(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g.omni", TOWN, durability="process")
    graph.load({"Person": [{"name": "a"}]}, "append", index=False)
    first = graph.commits()[0].graph_commit_id
    count = "SELECT count(*) FROM Person"
    with graph.branch("june", "main") as june:
        june.load({"Person": [{"name": "b"}]}, "append", index=False)
        before, branch = graph.duckdb(), june.duckdb()
        graph.load({"Person": [{"name": "c"}, {"name": "d"}]}, "append", index=False)

    assert before.execute(count).fetchone() == (1,)
    assert branch.execute(count).fetchone() == (2,)
    assert graph.duckdb().execute(count).fetchone() == (3,)
    assert graph.duckdb(snapshot=first).execute(count).fetchone() == (1,)
    assert graph.duckdb(branch="june").execute(count).fetchone() == (2,)
    graph.cleanup(keep=1, older_than=0)
    assert before.execute(count).fetchone() == (1,), "cleanup keeps what a connection reads"
    graph.close()
    with pytest.raises(duckdb.Error, match="closed"):
        before.execute(count).fetchall()


@pytest.mark.case("surfaces", 663)
def test_names_that_sql_cannot_tell_apart_are_table_keys(tmp_path: Path) -> None:
    schema = "node Knows { name: String @key }\nnode Order { name: String @key }\nedge KNOWS: Knows -> Order"
    graph = omnigraph.init(tmp_path / "g.omni", schema, durability="process")
    with graph.duckdb() as sql:
        assert [name for (name,) in sql.execute("SHOW TABLES").fetchall()] == [
            "Order",
            "edge:KNOWS",
            "node:Knows",
        ]
        assert sql.execute('SELECT * FROM "edge:KNOWS", "Order"').fetchall() == []


@pytest.mark.case("surfaces", 663)
@pytest.mark.parametrize(
    ("library", "verb"), [("duckdb", "duckdb"), ("networkx", "to_networkx"), ("polars", "to_polars")]
)
def test_a_missing_library_is_named_with_its_extra(
    library: str, verb: str, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = graph.query("query q() { match { $p: Person } return { $p.name } }")
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(UnsupportedError, match=rf"pip install 'omnigraph\[{library}\]'"):
        getattr(result if verb == "to_polars" else graph, verb)()


def test_what_does_not_exist_is_refused(graph: Graph) -> None:
    with pytest.raises(omnigraph.BranchNotFound):
        graph.duckdb(branch="nowhere")
    with pytest.raises(BadRequest):
        graph.to_networkx(types=["Nobody"])
