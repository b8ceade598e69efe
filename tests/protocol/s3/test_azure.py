"""Graphs on Azure's blob store, against Microsoft's emulator; left out where that is not installed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.errors import RecoveryRequired, StorageError, WriterLeaseHeld
from omnigraph.core.failpoint import failpoint
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.uri import GraphRoot
from tests.support.azure import azure_server, azure_settings_of, new_azure_root, program
from tests.support.hosts import Host
from tests.support.protocol import BEFORE, SCHEMA, records

pytestmark = [pytest.mark.slow, pytest.mark.skipif(program() is None, reason="azurite is not installed")]

COUNT = "query q() { match { $p: Person } return { count($p) as n } }"
ADD_DEE = 'query q() { insert Person { name: "dee" } insert Knows { from: "dee", to: "ann" } }'


@pytest.fixture(scope="module")
def azure() -> Iterator[str]:
    main = program()
    assert main is not None
    with azure_server(main) as endpoint:
        yield endpoint


@pytest.fixture
def place(azure: str, monkeypatch: pytest.MonkeyPatch) -> GraphRoot:
    for name, value in azure_settings_of(azure).items():
        monkeypatch.setenv(name, value)
    return new_azure_root(azure)


@pytest.mark.case("engine", 471)
def test_conditions_hold(place: GraphRoot) -> None:
    store = open_adapter(place, Durability.FULL)

    assert store.write_text_if_absent("a", "first")
    assert not store.write_text_if_absent("a", "second")
    found = store.read_text_versioned("a")
    assert found is not None
    assert store.write_text_if_match("a", "third", found[1])
    assert not store.write_text_if_match("a", "fourth", found[1])
    assert not store.write_text_if_match("missing", "fifth", found[1])
    assert store.read_text("a") == "third"
    assert store.read_text_if_exists("missing") is None
    store.delete("a")
    store.delete("a")
    assert store.list_lengths("none") == {}


@pytest.mark.case("engine", 471)
def test_a_graph_is_made_written_branched_merged_and_recovered(place: GraphRoot) -> None:
    with omnigraph.init(place.uri, SCHEMA) as graph:
        graph.load(records(BEFORE), "append")
        graph.create_branch("side")
        graph.mutate('query q() { insert Company { name: "yak" } }', branch="side")
        with failpoint("write.post_finalize_pre_publisher", "raise:once"), pytest.raises(RecoveryRequired):
            graph.mutate(ADD_DEE)

        graph.merge("side", "main", delete_branch=True)

        assert graph.branches() == ["main"]
        assert "dee" in graph.table("Person")["name"].to_pylist()
        assert "yak" in graph.table("Company")["name"].to_pylist()
        assert len(graph.recoveries()) == 1
    with omnigraph.open(place.uri, writers="one"), pytest.raises(WriterLeaseHeld):
        omnigraph.open(place.uri)
    assert open_adapter(place, Durability.FULL).list_dir(RECOVERY_DIR) == []


@pytest.mark.case("engine", 471)
def test_what_changes_keeps_compares_and_copies_a_graph_works(place: GraphRoot, tmp_path: Path) -> None:
    with omnigraph.init(place.uri, SCHEMA) as graph:
        graph.load(records(BEFORE), "append", index=False)
        graph.create_branch("side")
        changed = graph.apply_schema(SCHEMA.replace("age: I32?", "age: I32?\n    nick: String?"), index=False)
        assert changed.commit is not None
        graph.mutate('query q() { insert Person { name: "dee", nick: "d" } }')
        graph.upgrade_branch("side")
        graph.mutate('query q() { insert Company { name: "yak" } }', branch="side")

        assert graph.ensure_indices().commit is not None
        graph.optimize()
        graph.optimize(branch="side")
        assert graph.merge("side").commit is not None
        changes = graph.diff("main", changed.commit.graph_commit_id)
        graph.cleanup(keep=1)

        assert {(str(change.op), change.id) for change in changes} == {("insert", "dee"), ("insert", "yak")}
        assert len(list(graph.changes(start=f"after:{changed.commit.graph_commit_id}"))) > 1
        assert graph.at(changed.commit.graph_commit_id).query(COUNT).rows == [{"n": len(BEFORE["Person"])}]
        assert graph.status().head == graph.commits()[0]
        assert not graph.repair(confirm=True).is_refused
        assert graph.verify(deep=True).is_whole
        rows = sorted(map(str, graph.export()))
    omnigraph.clone(place.uri, tmp_path / "copy")
    omnigraph.clone(tmp_path / "copy", f"{place.uri}-again")
    assert omnigraph.check_copy(place.uri, f"{place.uri}-again", deep=True).is_same
    with omnigraph.open(f"{place.uri}-again") as copy:
        assert sorted(map(str, copy.export())) == rows


@pytest.mark.case("engine", 471)
def test_two_processes_write_and_one_that_died_is_recovered(place: GraphRoot, azure: str) -> None:
    omnigraph.init(place.uri, SCHEMA).close()
    with Host(azure_settings_of(azure), name="alpha") as first, Host(azure_settings_of(azure)) as second:
        for host in (first, second):
            assert "writer" in host.ask("open", uri=place.uri)
        first.tell("mutate", query='query q() { insert Person { name: "ann" } }')
        second.tell("mutate", query='query q() { insert Company { name: "yak" } }')
        assert "commit" in first.answer()
        assert "commit" in second.answer()
        point = {"point": "write.post_finalize_pre_publisher"}
        first.stop_inside("mutate", query=ADD_DEE, stop=point)
        second.ask("close")

        assert "writer" in second.ask("open", uri=place.uri)

        first.resume()
        assert first.answer()["error"] == "WriterEnded"
        second.ask("close")
    with omnigraph.open(place.uri, mode="ro") as graph:
        assert set(graph.table("Person")["name"].to_pylist()) == {"ann", "dee"}
        assert len(graph.recoveries()) == 1


@pytest.mark.case("engine", 471)
def test_settings_that_are_missing_are_named(place: GraphRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_ALLOW_HTTP", "AZURE_STORAGE_ACCOUNT_NAME"):
        monkeypatch.delenv(name)
        with pytest.raises(StorageError, match=name) as caught:
            omnigraph.open(place.uri)
        assert caught.value.kind == "configuration"


@pytest.mark.case("engine", 471)
def test_a_container_that_does_not_exist_is_said(place: GraphRoot) -> None:
    with pytest.raises(StorageError, match="container 'nowhere' does not exist") as caught:
        omnigraph.init("az://nowhere/graph", SCHEMA)

    assert place.bucket != "nowhere"
    assert caught.value.kind == "configuration"
