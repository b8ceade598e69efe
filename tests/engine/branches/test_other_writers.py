"""Every writer and reader takes a branch."""

from pathlib import Path

import pytest

from omnigraph.commit.recovery.pending import list_pending
from omnigraph.core.errors import BranchNotFound
from omnigraph.core.failpoint import failpoint
from omnigraph.core.ids import new_ulid
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.history.branches import Branch, mint_ref
from tests.engine.branches.steps import ages, everything, insert, manifest_refs, names, owners, refs, set_age
from tests.support.engine import foreign, ndjson, new_graph, node, reopen
from tests.support.seam import internals

INDEXED = """\
node Person { name: String @key  age: I32? @index }
node Other { name: String @key }
"""


def test_a_load_makes_a_branch_only_when_it_is_told_from_what(graph: Graph) -> None:
    data = ndjson([node("Person", name="new")])
    with pytest.raises(BranchNotFound, match="typo"):
        graph.load(data, "append", branch="typo")
    assert graph.branches() == ["main"]

    result = graph.load(data, "append", branch="june", from_="main")
    assert (result.branch, result.base_branch, result.branch_created) == ("june", "main", True)
    assert names(graph, "june") == ["ann", "bob", "eve", "new"]
    again = graph.load(ndjson([node("Person", name="more")]), "append", branch="june", from_="main")
    assert (again.base_branch, again.branch_created) == (None, False)
    assert names(graph) == ["ann", "bob", "eve"]


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_loads_of_every_mode_on_a_branch(graph: Graph, mode: str) -> None:
    before = everything(graph)
    graph.create_branch("june")
    records = [
        node("Person", name=name, age=7) for name in ("new", "ann") if mode != "append" or name == "new"
    ]
    if mode == "overwrite":
        records.append(node("Person", name="bob"))
        records.append(node("Person", name="eve"))

    graph.load(ndjson(records), mode, branch="june")  # type: ignore[arg-type]

    assert ages(graph, "june")["new"] == 7
    assert ages(graph, "june")["ann"] == (30 if mode == "append" else 7)
    assert everything(graph) == before


def test_an_export_is_of_its_branch(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "new", "june")

    exported = [record["data"] for record in graph.export(branch="june", types=["Person"])]
    assert [data["name"] for data in exported if isinstance(data, dict)] == ["ann", "bob", "eve", "new"]
    assert len(list(graph.export(types=["Person"]))) == 3


def test_traversals_follow_the_branch(graph: Graph) -> None:
    graph.create_branch("june")
    source = "query q() { match { $a: Person $a knows $b } return { $a.name as a, $b.name as b } }"
    assert len(graph.query(source, branch="june")) == 1  # with what main's queries derived, if any
    graph.load(
        b'{"edge": "Knows", "from": "bob", "to": "eve", "data": {"id": "k2"}}\n', "append", branch="june"
    )
    graph.load(b'{"edge": "Knows", "from": "eve", "to": "ann", "data": {"id": "k3"}}\n', "append")

    found = {
        name: {tuple(r.values()) for r in graph.query(source, branch=name).rows} for name in graph.branches()
    }
    assert found == {
        "june": {("ann", "bob"), ("bob", "eve")},
        "main": {("ann", "bob"), ("eve", "ann")},
    }


def test_indexes_are_built_on_what_a_branch_writes(tmp_path: Path) -> None:
    with new_graph(tmp_path / "indexed", INDEXED) as graph:
        graph.load(
            ndjson([node("Person", name="ann", age=1), node("Other", name="x")]), "append", index=False
        )
        graph.create_branch("june")
        before = everything_of(graph, "june")

        result = graph.ensure_indices(branch="june")

        assert result.commit is not None
        assert result.commit.manifest_branch == "june"
        assert None not in owners(graph, "june").values()  # each lacked the one of its id
        assert everything_of(graph, "june") == before
        coverage = {
            index.property: index.coverage
            for table in graph.index_status(branch="june")
            for index in table.indexes
        }
        assert set(coverage.values()) == {"indexed"}
        main = {index.coverage for table in graph.index_status() for index in table.indexes}
        assert main == {"missing"}
        assert graph.ensure_indices(branch="june").commit is None


def test_a_build_of_indexes_does_not_depend_on_tables_that_it_leaves_alone(tmp_path: Path) -> None:
    schema = "node Doc { name: String @key  place: Vector(2)? @index }\nnode Task { name: String @key }\n"
    with new_graph(tmp_path / "indexed", schema) as graph, foreign(graph) as other:
        graph.load(ndjson([node("Doc", name="ann")]), "append")  # its vector index waits for a vector
        graph.create_branch("june")
        graph.load(ndjson([node("Task", name="x")]), "append", branch="june", index=False)

        def write() -> None:
            other.load(ndjson([node("Doc", name="bob")]), "append", branch="june", index=False)

        with failpoint("ensure_indices.post_sidecar_pre_commit", call=write):
            result = graph.ensure_indices(branch="june")

        assert result.commit is not None
        assert [pending.table_key for pending in result.pending] == ["node:Doc"]
        assert list_pending(internals(graph).parts) == []
        assert graph.table("Doc", branch="june")["name"].to_pylist() == ["ann", "bob"]
        graph.mutate('query q() { insert Task { name: "y" } }', branch="june")


def everything_of(graph: Graph, branch: str) -> list[object]:
    return [graph.table(name, branch=branch).to_pylist() for name in ("Person", "Other")]


def test_inherited_tables_with_all_their_indexes_stay_inherited(tmp_path: Path) -> None:
    with new_graph(tmp_path / "indexed", INDEXED) as graph:
        graph.load(ndjson([node("Person", name="ann", age=1), node("Other", name="x")]), "append")
        graph.create_branch("june")

        assert graph.ensure_indices(branch="june").commit is None
        assert set(owners(graph, "june").values()) == {None}


@pytest.mark.case("engine", 349)
def test_upkeep_on_a_branch_is_for_tables_that_it_owns(graph: Graph) -> None:
    graph.create_branch("june")
    for number in range(70):
        set_age(graph, "ann", number, "june")

    maintained = [c for c in graph.commits(branch="june") if c.actor_id == "omnigraph:maintenance"]
    assert len(maintained) == 1
    moved = {key for key, owner in owners(graph, "june").items() if owner is not None}
    assert moved == {"node:Person"}
    assert ages(graph, "june")["ann"] == 69
    assert not [c for c in graph.commits() if c.actor_id == "omnigraph:maintenance"]


def test_a_bound_handle_reads_and_writes_its_branch(graph: Graph) -> None:
    with graph.branch("june", from_="main") as june:
        insert(june, "new")
        assert "new" in names(june)
        assert june.snapshot().branch == "june"
        assert june.create_branch("july").parent_branch == "june"
    assert "new" not in names(graph)
    assert graph.branches() == ["july", "june", "main"]


def insert_and_give_up(graph: Graph) -> None:
    with graph.branch("june", from_="main") as june:
        insert(june, "new")
        raise RuntimeError("changed my mind")


@pytest.mark.case("surfaces", 191)
def test_a_block_that_raises_takes_its_branch_along(graph: Graph) -> None:
    before = everything(graph)
    with pytest.raises(RuntimeError, match="changed my mind"):
        insert_and_give_up(graph)
    assert graph.branches() == ["main"]
    assert everything(graph) == before

    with graph.branch("june", from_="main", merge_on_exit=True) as june:
        insert(june, "new")
    assert "new" in names(graph)
    with pytest.raises(RuntimeError), graph.branch("june") as june:  # not made here, so not deleted here
        raise RuntimeError
    assert "june" in graph.branches()
    with pytest.raises(BranchNotFound), graph.branch("typo"):
        pass


def test_a_block_that_raises_leaves_a_branch_that_somebody_else_made_since(graph: Graph) -> None:
    def lose_it() -> None:
        with graph.branch("june", from_="main"):
            graph.delete_branch("june")
            graph.create_branch("june")
            raise RuntimeError

    with pytest.raises(BranchNotFound):
        lose_it()

    assert "june" in graph.branches()


def test_another_process_sees_branches_at_once(graph: Graph) -> None:
    with open_graph(graph.uri, mode="ro") as reader:
        graph.create_branch("june")
        insert(graph, "new", "june")
        assert names(reader, "june") == ["ann", "bob", "eve", "new"]


def test_a_branch_whose_source_is_deleted_while_it_is_made_does_not_exist(graph: Graph) -> None:
    graph.create_branch("may")
    insert(graph, "new", "may")
    rival = foreign(graph)
    place = "branch_create.post_ref_pre_control"

    with failpoint(place, "call", lambda: rival.delete_branch("may")), pytest.raises(BranchNotFound):
        graph.create_branch("june", "may")

    assert graph.branches() == ["main"]
    graph.create_branch("june")
    assert names(graph, "june") == ["ann", "bob", "eve"]


def test_storage_that_a_new_branch_came_to_need_stays_when_its_source_is_deleted(graph: Graph) -> None:
    """Another process makes its branch exist between the last look of the deletion and its removals."""
    graph.create_branch("may")
    insert(graph, "new", "may")
    forks = refs(graph, "node:Person")
    parts = internals(graph).parts
    state = internals(graph).state("may")
    made = Branch("june", mint_ref("june", new_ulid()), "may", state.version, 0, None)

    def make() -> None:
        parts.refs.create(parts.coordinator.address(state.ref), state.version, made.ref)
        assert parts.branches.create(made)

    with failpoint("branch_delete.post_control_pre_refs", "call", make):
        graph.delete_branch("may")

    assert graph.branches() == ["june", "main"]
    assert state.ref in manifest_refs(graph)
    assert refs(graph, "node:Person") == forks
    assert names(reopen(graph), "june") == ["ann", "bob", "eve", "new"]
