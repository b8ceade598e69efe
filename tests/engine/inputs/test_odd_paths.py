"""Graphs whose paths have characters that addresses give a meaning: every verb, nothing beside the graph."""

import shutil
from pathlib import Path
from urllib.parse import quote

import pytest

import omnigraph
from omnigraph.core.errors import BadRequest, RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.refs import RefStore
from tests.support.in_process import invoke
from tests.support.spark import spark_session

SCHEMA = """\
node P {
    name: String @key
    note: String? @index
    v: Vector(4)? @embed("note")
}
edge K: P -> P
"""
DATA = b"""\
{"type": "P", "data": {"name": "a", "note": "hello"}}
{"type": "P", "data": {"name": "b"}}
{"edge": "K", "from": "a", "to": "b"}
"""
NAME = 'a#b 50%20 ~é☃ *[c]"{d}|\\'


def insert(name: str) -> str:
    return f'query q() {{ insert P {{ name: "{name}" }} }}'


def names(graph: Graph, branch: str | None = None) -> list[object]:
    return graph.table("P", branch=branch)["name"].to_pylist()


@pytest.mark.case("engine", 418)
def test_every_verb_works_whatever_the_path_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    place = tmp_path / "place"
    root = place / NAME / "graph"
    omnigraph.init(root, SCHEMA, durability="process").close()
    graph = omnigraph.open(root, durability="process")

    graph.load(DATA, "append")
    assert len(graph.query("query q() { match { $p: P\n $p k $q } return { $q.name } }").rows) == 1
    found = graph.query('query q() { match { $p: P\n search($p.note, "hello") } return { $p.name } }')
    assert len(found.rows) == 1
    graph.create_branch("one")
    graph.mutate(insert("c"), branch="one")
    graph.create_branch("two", from_="one")
    graph.mutate(insert("d"), branch="two")
    assert names(graph, "two") == ["a", "b", "c", "d"]
    graph.merge("two", into="one")
    graph.merge("one")
    graph.delete_branch("two")
    graph.delete_branch("one")
    graph.embed()
    graph.ensure_indices()
    graph.export().to_file(tmp_path / "out.jsonl")
    graph.load(tmp_path / "out.jsonl", "merge", index=False)
    with failpoint("write.post_finalize_pre_publisher", "raise"), pytest.raises(RecoveryRequired):
        graph.mutate(insert("e"))
    graph.mutate(insert("f"))

    assert names(graph) == ["a", "b", "c", "d", "e", "f"]
    assert list(graph.commit_changes(graph.commits()[0].graph_commit_id))
    assert omnigraph.open(f"file://{quote(str(root))}").table("P").num_rows == 6
    for command in (["snapshot"], ["recovery", "list"], ["index", "status"], ["commit", "list"]):
        assert invoke(*command, root, cwd=tmp_path).code == 0, command
    assert [path.name for path in place.iterdir()] == [NAME], "nothing is made beside the graph"


@pytest.mark.case("engine", 418)
def test_a_path_with_a_question_mark_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"a graph in a path with '\?' cannot have branches"):
        omnigraph.init(tmp_path / "a?b", SCHEMA, durability="process")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.case("engine", 418)
def test_a_graph_that_was_moved_to_such_a_path_has_everything_but_new_branches(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "graph", SCHEMA, durability="process").load(DATA, "append", index=False)
    shutil.move(tmp_path / "graph", tmp_path / "a?b")
    graph = omnigraph.open(tmp_path / "a?b", durability="process")

    graph.mutate(insert("c"))

    with pytest.raises(BadRequest, match="choose another path"):
        graph.create_branch("one")
    assert names(graph) == ["a", "b", "c"]
    assert [path.name for path in tmp_path.iterdir()] == ["a?b"]
    assert graph.branches() == ["main"]


def test_what_is_not_empty_beside_a_graph_stays(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "a#b", SCHEMA, durability="process")
    other = tmp_path / "a%23b" / "mine"
    other.mkdir(parents=True)

    graph.create_branch("one")

    assert other.exists()
    assert not (tmp_path / "a%23b" / "__manifest").exists()


@pytest.mark.case("engine", 418)
@pytest.mark.slow
def test_a_load_on_spark_works_whatever_the_path_is_called(tmp_path: Path) -> None:
    spark_session()
    graph = omnigraph.init(tmp_path / NAME / "a#b", SCHEMA, durability="process")
    path = tmp_path / NAME / "in #1%.jsonl"
    path.write_bytes(DATA)

    graph.load(path, "append", engine="spark")
    graph.create_branch("one")
    graph.load(path, "merge", engine="spark", branch="one")

    assert names(graph) == names(graph, "one") == ["a", "b"]


def test_refs_are_refused_where_they_would_lie_elsewhere() -> None:
    with pytest.raises(BadRequest):
        RefStore.create(RefStore.__new__(RefStore), TableAddress("/a?b/t"), 1, "x")


def test_the_address_of_a_server_is_none_of_a_graph() -> None:
    way_out = "az:// or gs://; a graph behind a server is reached by connect, or --server"
    for address in ("http://127.0.0.1:1", "HTTPS://graphs.example/atlas"):
        with pytest.raises(BadRequest, match=way_out):
            omnigraph.open(address)
