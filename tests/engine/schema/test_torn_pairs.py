"""Reads beside changes of the schema: nobody sees the tables of one schema by the types of another."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.fold import TableEntry
from tests.support.engine import new_graph, node
from tests.support.forked import Forked
from tests.support.seam import internals

ROUNDS = 6
BEFORE = "node Person { name: String @key  v0: I32?  gone: String? }\n"
AFTER = """\
node Person { name: String @key  v1: I32? @rename_from("v0") }
node City { name: String @key }
"""
ASK = "query q() { match { $p: Person } return { $p } }"
OLD, NEW = {"id": "ann", "name": "ann", "v0": 0, "gone": "x"}, {"id": "ann", "name": "ann", "v1": 1}
APPLYING = """
import sys
import omnigraph
with omnigraph.open(sys.argv[1]) as graph:
    print("ready", flush=True)
    sys.stdin.readline()
    graph.apply_schema(sys.argv[2], index=False)
    graph.mutate('query m() { update Person set { v1: 1 } where name = "ann" }')
    print("applied", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "graph"
    with new_graph(place, BEFORE, node("Person", name="ann", v0=0, gone="x")):
        return place


@pytest.fixture
def changed(root: Path) -> Iterator[Callable[[], None]]:
    """Return what has another process change the schema and then a row, once."""
    with Forked(APPLYING, root, AFTER) as other:
        assert other.read_line() == "ready"
        calls: list[str] = []

        def change() -> None:
            calls.append("called")
            if len(calls) == 1:
                other.write_line()
                assert other.read_line() == "applied"

        yield change
        assert calls, "the place was passed"
        other.write_line()


def assert_pair_fits(graph: Graph) -> None:
    """Compare the types of a handle with the tables that it shows, column by column."""
    types = {type_.table_key: type_ for type_ in graph.catalog.types}
    entries = graph.snapshot().entries
    assert types.keys() == entries.keys()
    for table_key, type_ in types.items():
        assert set(columns(graph, entries[table_key])) == {"id", *type_.properties}


def columns(graph: Graph, entry: TableEntry) -> list[str]:
    """Return the columns that a table has at its pin."""
    return internals(graph).parts.open(entry).schema.names


@pytest.mark.case("engine", 839)
@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_a_change_during_an_open_is_seen_as_a_whole(
    root: Path, changed: Callable[[], None], mode: str
) -> None:
    with failpoint("open.before_schema_contract_read", call=changed):
        graph = omnigraph.open(root, mode="ro" if mode == "ro" else "rw")

    with graph:
        assert_pair_fits(graph)
        assert [row["p"] for row in graph.query(ASK)] == [NEW]


@pytest.mark.case("engine", 839)
def test_a_change_during_a_refresh_is_seen_as_a_whole(root: Path, changed: Callable[[], None]) -> None:
    with omnigraph.open(root) as graph:
        assert [row["p"] for row in graph.query(ASK)] == [OLD]

        with failpoint("refresh.before_schema_reload", call=changed):
            graph.refresh()

        assert_pair_fits(graph)
        assert [row["p"] for row in graph.query(ASK)] == [NEW]


@pytest.mark.case("engine", 255)
@pytest.mark.case("engine", 839)
@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_a_query_that_has_chosen_its_snapshot_answers_by_the_schema_of_then(
    root: Path, changed: Callable[[], None], mode: str
) -> None:
    with omnigraph.open(root, mode="ro" if mode == "ro" else "rw") as graph:
        with failpoint("query.post_pin_pre_read", call=changed):
            during = graph.query(ASK)

        assert [row["p"] for row in during] == [OLD]
        assert [row["p"] for row in graph.query(ASK)] == [NEW]
        assert_pair_fits(graph)


READING = """
import sys
import omnigraph

ASK = "query q() { match { $p: Person } return { $p } }"
READS_MAX = 1_000_000
root, rounds = sys.argv[1], int(sys.argv[2])


def told(row, before):
    (name,) = [key for key in row if key.startswith("v")]
    number = int(name[1:])
    assert row.keys() == {"id", "name", name, *(["odd"] if number % 2 else [])}, row
    assert row[name] in {number - 1, number} or number == row[name] == 0, row
    assert before <= (number, row[name]), (before, row)
    return number, row[name]


kept = omnigraph.open(root, mode="ro")
last = (0, 0)
print("ready", flush=True)
for turn in range(READS_MAX):
    (row,) = kept.query(ASK)
    now = told(row["p"], last)
    if turn % 4 == 0:
        with omnigraph.open(root, mode="ro") as fresh:
            view = fresh.at(fresh.snapshot())
            (row,) = view.query(ASK)
            now = told(row["p"], now)
            tables = {"node:Person", *(["node:Odd"] if now[0] % 2 else [])}
            assert set(view.snapshot.entries) == tables, (row, tables)
            assert f"v{now[0]}:" in view.schema(), (row, view.schema())
    if turn % 4 == 2:
        kept.refresh()
    if now > last and now[0] == now[1]:
        print(now[0], flush=True)
    last = now
    if now == (rounds, rounds):
        break
"""


@pytest.mark.case("engine", 839)
def test_a_process_that_reads_beside_changes_sees_each_schema_with_its_rows(tmp_path: Path) -> None:
    """The number in the name of a property and its value never differ by more than the write in between."""
    place = tmp_path / "graph"
    with (
        new_graph(place, schema(0), node("Person", name="ann", v0=0)) as graph,
        Forked(READING, place, ROUNDS) as reader,
    ):
        assert reader.read_line() == "ready"
        for number in range(1, ROUNDS + 1):
            graph.apply_schema(schema(number), index=False)
            graph.mutate(f'query m() {{ update Person set {{ v{number}: {number} }} where name = "ann" }}')
            assert reader.read_line() == str(number)


def schema(number: int) -> str:
    """Return a schema that differs from the one before in the name of a property, a property and a type."""
    renamed = f' @rename_from("v{number - 1}")' if number else ""
    person = f"name: String @key  v{number}: I32?{renamed}"
    if number % 2:
        return f"node Person {{ {person}  odd: String? }}\nnode Odd {{ name: String @key }}\n"
    return f"node Person {{ {person} }}\n"
