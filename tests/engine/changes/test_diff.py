"""What differs between two branches or commits."""

from pathlib import Path

import pytest

from omnigraph.changes import table_changes
from omnigraph.changes.model import ChangeFilter
from omnigraph.changes.table_changes import CHUNK_ROWS_MAX
from omnigraph.core.errors import BadRequest, NotFoundError
from omnigraph.graph.graph import Graph
from tests.engine.changes.reading import committed, ends, ordered, properties, short, update_age
from tests.support.engine import ndjson, new_graph, node
from tests.support.people_graph import people_graph
from tests.support.protocol import WRITERS, give_up
from tests.support.protocol import new_graph as new_protocol_graph
from tests.support.seam import internals, patched


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "graph")


@pytest.mark.case("engine", 274)
def test_inserts_updates_and_deletes_with_their_cascade(graph: Graph) -> None:
    graph.create_branch("june")
    update_age(graph, "a", 77, branch="june")
    committed(graph, 'query q() { delete Person where name = "c" }', branch="june")
    committed(graph, 'query q() { insert Person { name: "z", age: 5 } }', branch="june")

    changes = {f"{change.type.name} {change.id}": change for change in graph.diff("june")}

    assert ordered(changes.values()) == ["-Knows k4", "-Knows k5", "~Person a", "-Person c", "+Person z"]
    updated = changes["Person a"]
    assert (updated.kind, properties(updated.before), properties(updated.after)) == (
        "node",
        {"name": "a", "age": 1, "share": 0.1, "town": "x"},
        {"name": "a", "age": 77, "share": 0.1, "town": "x"},
    )
    assert properties(changes["Person z"].before) is None
    assert properties(changes["Person z"].after) == {"name": "z", "age": 5, "share": None, "town": None}
    gone = changes["Knows k5"]
    assert (gone.kind, gone.after, properties(gone.before)) == ("edge", None, {"since": 5})
    assert ends(gone.before) == ("c", "c")


@pytest.mark.case("engine", 274)
def test_backwards_every_change_is_turned_round(graph: Graph) -> None:
    graph.create_branch("june")
    update_age(graph, "a", 77, branch="june")
    committed(graph, 'query q() { insert Person { name: "z" } }', branch="june")

    forwards, backwards = list(graph.diff("june", "main")), list(graph.diff("main", "june"))

    assert ordered(forwards) == ["~Person a", "+Person z"]
    assert ordered(backwards) == ["~Person a", "-Person z"]
    assert [(change.before, change.after) for change in backwards] == [
        (change.after, change.before) for change in forwards
    ]
    assert list(graph.diff("june", "june")) == []


@pytest.mark.case("engine", 274)
def test_filters_choose_kinds_types_and_operations(graph: Graph) -> None:
    graph.create_branch("june")
    committed(graph, 'query q() { delete Person where name = "c" }', branch="june")
    committed(graph, 'query q() { insert Empty { name: "e1" } }', branch="june")

    assert short(graph.diff("june", kinds=["edge"])) == ["-Knows k4", "-Knows k5"]
    assert short(graph.diff("june", types=["Empty"])) == ["+Empty e1"]
    assert short(graph.diff("june", types=["edge:Knows", "Empty"], ops=["insert"])) == ["+Empty e1"]
    assert short(graph.diff("june", ops=["update"])) == []
    with pytest.raises(BadRequest, match="unknown kind 'nodes': use one of node, edge"):
        graph.diff("june", kinds=["nodes"])
    with pytest.raises(BadRequest, match="unknown type 'Knot'"):
        graph.diff("june", types=["Knot"])
    with pytest.raises(BadRequest, match="unknown operation 'upsert'"):
        graph.diff("june", ops=["upsert"])


@pytest.mark.case("engine", 274)
def test_rows_that_were_written_again_with_equal_values_are_no_changes(graph: Graph) -> None:
    graph.create_branch("june")
    update_age(graph, "a", 1, branch="june")
    update_age(graph, "b", 9, branch="june")
    update_age(graph, "b", 2, branch="june")
    committed(graph, 'query q() { insert Person { name: "z" } }', branch="june")
    committed(graph, 'query q() { delete Person where name = "z" }', branch="june")

    assert list(graph.diff("june")) == []
    assert graph.diff("june").stat() == ()


@pytest.mark.case("engine", 274)
def test_null_is_told_from_a_value(graph: Graph) -> None:
    graph.create_branch("june")
    committed(graph, 'query q() { update Person set { town: "" } where name = "c" }', branch="june")

    (change,) = graph.diff("june")

    assert change.before is not None
    assert change.after is not None
    assert (change.before.properties["town"], change.after.properties["town"]) == (None, "")


@pytest.mark.case("engine", 274)
def test_two_branches_that_never_met_are_compared(graph: Graph) -> None:
    for name in ("june", "july"):
        graph.create_branch(name)
        committed(graph, f'query q() {{ insert Person {{ name: "{name}", age: 1 }} }}', branch=name)
    update_age(graph, "a", 6, branch="june")
    update_age(graph, "a", 6, branch="july")
    update_age(graph, "b", 7, branch="july")

    changes = list(graph.diff("july", "june"))

    assert ordered(changes) == ["~Person b", "+Person july", "-Person june"]


@pytest.mark.case("engine", 274)
def test_a_branch_of_a_branch_is_compared_with_all_of_them(graph: Graph) -> None:
    graph.create_branch("june")
    update_age(graph, "a", 6, branch="june")
    graph.create_branch("deep", "june")
    update_age(graph, "b", 7, branch="deep")
    update_age(graph, "d", 8)

    assert ordered(graph.diff("deep", "june")) == ["~Person b"]
    assert ordered(graph.diff("deep", "main")) == ["~Person a", "~Person b", "~Person d"]


@pytest.mark.case("engine", 274)
def test_commits_of_one_branch_are_compared_across_index_builds_and_upkeep(graph: Graph) -> None:
    first = graph.commits(limit=1)[0].graph_commit_id
    graph.ensure_indices()
    parts = internals(graph).parts
    for age in range(70):
        update_age(graph, "a", age)

    changes = list(graph.diff("main", first))

    assert "omnigraph:maintenance" in {commit.actor_id for commit in graph.commits(limit=30)}
    assert short(changes) == ["~Person a"]
    assert parts.store.io_stats().reads > 0


@pytest.mark.case("engine", 274)
@pytest.mark.parametrize("writer", ["delete", "overwrite", "merge"])
def test_a_rollback_in_between_is_no_change(tmp_path: Path, writer: str) -> None:
    root = tmp_path / "graph"
    with new_protocol_graph(root) as graph:
        before = graph.commits(limit=1)[0].graph_commit_id
    give_up(root, writer, "P2")
    from omnigraph.graph.opening import open as open_graph

    with open_graph(root) as graph:
        assert graph.commits(limit=1)[0].actor_id == "omnigraph:recovery"
        assert WRITERS[writer].tables
        assert list(graph.diff("main", before)) == []

        update_age(graph, "bob", 41)

        assert short(graph.diff("main", before)) == ["~Person bob"]


def test_nodes_come_before_edges_and_ids_ascend_over_many_chunks(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph")
    count = CHUNK_ROWS_MAX + 100
    graph.create_branch("june")
    graph.load(
        ndjson(node("Person", name=f"p{number:05d}") for number in range(count)), "append", branch="june"
    )
    graph.load(ndjson([node("Company", name="c")]), "append", branch="june")

    changes = list(graph.diff("june"))

    assert [change.id for change in changes if change.type.name == "Person"] == [
        f"p{number:05d}" for number in range(count)
    ]
    assert graph.diff("june").stat()[0].inserted + graph.diff("june").stat()[1].inserted == count + 1


def test_what_is_neither_a_branch_nor_a_commit_is_not_found(graph: Graph) -> None:
    with pytest.raises(NotFoundError, match="neither a branch nor a commit 'nope'"):
        graph.diff("nope")


def test_chunks_hold_no_more_bytes_than_they_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = new_graph(tmp_path / "graph")
    graph.create_branch("june")
    records = [node("Person", name=f"p{number:03d}", nickName="x" * 1_000) for number in range(200)]
    graph.load(ndjson(records), "append", branch="june", index=False)
    patched(monkeypatch, "omnigraph.changes.table_changes.CHUNK_BYTES", 20_000)
    found = graph.diff("june")

    sizes = [
        rows.after.num_rows
        for pair in found.pairs
        for rows in table_changes.table_changes(internals(graph).parts.store, pair, ChangeFilter())
    ]

    assert sum(sizes) == 200
    assert max(sizes[1:]) <= 20
    assert len(sizes) > 10


def test_the_view_of_every_commit_is_folded_as_if_it_were_the_only_one(graph: Graph) -> None:
    graph.create_branch("june")
    for age in range(5):
        update_age(graph, "a", age, branch="june")
        update_age(graph, "b", age)
    committed(graph, 'query q() { delete Person where name = "c" }', branch="june")

    for branch in ("main", "june"):
        state = internals(graph).state(branch)
        commits = list(state.commits.oldest_first(above=0))
        expected = [state.snapshot_at(commit.manifest_version) for commit in commits]
        assert list(state.snapshots_of(commits)) == expected
        assert commits == list(reversed(list(state.commits.newest_first())))


def test_tables_of_one_version_on_two_branches_differ(graph: Graph) -> None:
    """Each side wrote once since they parted: the numbers are equal, the refs are not."""
    graph.create_branch("june")
    update_age(graph, "a", 5)
    update_age(graph, "b", 6, branch="june")
    entries = [graph.snapshot(branch).entry("node:Person") for branch in ("main", "june")]
    assert entries[0].version == entries[1].version

    assert short(graph.diff("june")) == ["~Person a", "~Person b"]
