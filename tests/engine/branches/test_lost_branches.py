"""Writers whose branch is deleted, remade or damaged under them, and races of processes for one name."""

import logging
from dataclasses import replace
from pathlib import Path

import lance
import pytest

from omnigraph.commit.changes import Expectation, LineageIntent, UpdateTable
from omnigraph.commit.parts import Parts
from omnigraph.commit.write import refuse_drift
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import BadRequest, ConflictError, DriftNeedsRepair, StorageError
from omnigraph.core.failpoint import EXIT_STATUS, InjectedFault, failpoint
from omnigraph.core.ids import new_ulid
from omnigraph.graph.graph import Graph
from omnigraph.history.branches import control_file, mint_ref
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import MAIN_BRANCH
from omnigraph.storage.control.local_files import LocalFiles
from tests.engine.branches.steps import insert, manifest_refs, names, refs
from tests.engine.branches.test_forks import FIRST_WRITE
from tests.support.engine import reopen
from tests.support.forked import Forked
from tests.support.seam import internals, patched


def left_by_a_dead_writer(graph: Graph) -> None:
    """Leave a sidecar of a write on the branch june."""
    graph.create_branch("june")
    insert(graph, "first", "june")
    place = "write.post_table_commit=exit"
    with Forked(FIRST_WRITE, graph.uri, "killed", OMNIGRAPH_FAILPOINTS=place) as script:
        assert script.wait() == EXIT_STATUS


@pytest.mark.case("engine", 197)
@pytest.mark.parametrize("is_recreated", [False, True])
@pytest.mark.parametrize("place", [None, "recovery.record_audit", "recovery.post_audit_pre_delete"])
def test_a_sidecar_of_a_deleted_branch_is_discarded(
    graph: Graph, is_recreated: bool, place: str | None
) -> None:
    left_by_a_dead_writer(graph)
    branches = internals(graph).parts.branches
    gone = branches.require("june")
    branches.delete(gone)
    if is_recreated:
        branches.create(replace(gone, ref=mint_ref("june", new_ulid())))
        made = branches.require("june")
        parts = internals(graph).parts
        parts.refs.create(parts.coordinator.address(), made.parent_manifest_version, made.ref)
    if place is not None:
        with failpoint(place, "raise"), pytest.raises(InjectedFault):
            reopen(graph)

    with reopen(graph) as healed:
        (record,) = healed.recoveries()
        assert record.recovery_kind.wire == "orphaned_branch_discarded"
        (commit,) = [c for c in healed.commits() if c.actor_id == "omnigraph:recovery"]
        assert commit.graph_commit_id == record.graph_commit_id
        assert refs(healed, "node:Person") == set()  # nothing names the fork of the branch that is gone
        assert not list((Path(graph.uri) / "__recovery").iterdir())
        if not is_recreated:
            healed.create_branch("june")
        assert names(healed, "june") == ["ann", "bob", "eve"]
        insert(healed, "next", "june")
        insert(healed, "next")


@pytest.mark.case("engine", 198)
@pytest.mark.parametrize("damage", ["lost", "unreadable", "of another"])
def test_a_branch_that_was_not_deleted_discards_nothing(
    graph: Graph, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    left_by_a_dead_writer(graph)
    control = Path(graph.uri) / control_file("june")
    text = control.read_text()
    ref = internals(graph).parts.branches.require("june").ref
    if damage == "lost":
        control.unlink()
    else:
        other = text.replace(ref, mint_ref("june", new_ulid()))
        control.write_text("{" if damage == "unreadable" else other)

    with caplog.at_level(logging.WARNING, logger="omnigraph"), reopen(graph) as opened:
        insert(opened, "on main")
        assert opened.recoveries() == []

    (sidecar,) = (Path(graph.uri) / "__recovery").glob("*.json")
    (told, *_) = [line for line in caplog.messages if sidecar.stem in line]
    assert "'june'" in told
    control.write_text(text)
    with reopen(graph) as healed:
        assert [record.recovery_kind.wire for record in healed.recoveries()] == ["rolled_forward"]
        assert names(healed, "june") == ["ann", "bob", "eve", "first", "killed"]
        insert(healed, "next", "june")


@pytest.mark.case("engine", 198)
def test_a_handle_that_was_open_recovers_a_branch_that_was_put_back(graph: Graph) -> None:
    left_by_a_dead_writer(graph)
    control = Path(graph.uri) / control_file("june")
    text = control.read_text()
    control.unlink()
    insert(graph, "on main")
    control.write_text(text)

    insert(graph, "next", "june")

    assert names(graph, "june") == ["ann", "bob", "eve", "first", "killed", "next"]


@pytest.mark.case("engine", 423)
def test_a_branch_without_a_copy_that_is_deleted_is_gone_for_certain(graph: Graph) -> None:
    left_by_a_dead_writer(graph)
    branches = internals(graph).parts.branches
    gone = branches.require("june")
    (Path(graph.uri) / "__manifest" / "tree" / gone.ref / "_branch").unlink()
    branches.delete(gone)

    with reopen(graph) as healed:
        (record,) = healed.recoveries()
        assert record.recovery_kind.wire == "orphaned_branch_discarded"


@pytest.mark.case("engine", 423)
def test_no_branch_takes_the_place_of_a_lost_one(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "first", "june")
    control = Path(graph.uri) / control_file("june")
    text = control.read_text()
    control.unlink()

    with pytest.raises(GraphDamaged, match="put the file back"):
        graph.create_branch("june")

    graph.create_branch("july")
    control.write_text(text)
    assert names(graph, "june") == ["ann", "bob", "eve", "first"]


@pytest.mark.case("engine", 423)
def test_a_branch_deleted_before_its_copy_was_kept_is_no_lost_one(graph: Graph) -> None:
    program = """
import sys
import omnigraph as og
og.open(sys.argv[1]).delete_branch("june")
"""

    def delete() -> None:
        with Forked(program, graph.uri) as script:
            assert script.wait() == 0

    with failpoint("branch_create.control_ack_lost", "call", delete):
        graph.create_branch("june")

    assert graph.branches() == ["main"]
    graph.create_branch("june")


VICTIMS = {
    "the branch's version of the table": "nodes/*/tree/june-*/_versions/*.manifest",
    "the manifest of the branch": "__manifest/tree/june-*/_versions/*.manifest",
}


@pytest.mark.case("engine", 424)
@pytest.mark.parametrize("is_emptied", [False, True])
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("place", ["write.post_sidecar_pre_commit", "write.post_finalize_pre_publisher"])
def test_damage_beside_a_dead_writer_is_the_trouble_of_its_branch(
    graph: Graph, caplog: pytest.LogCaptureFixture, place: str, victim: str, is_emptied: bool
) -> None:
    graph.create_branch("june")
    insert(graph, "first", "june")
    root = Path(graph.uri)
    published = min(root.glob(VICTIMS[victim]))
    with Forked(FIRST_WRITE, graph.uri, "killed", OMNIGRAPH_FAILPOINTS=f"{place}=exit") as script:
        assert script.wait() == EXIT_STATUS
    (sidecar,) = (root / "__recovery").glob("*.json")
    content = published.read_bytes()
    if is_emptied:
        published.write_bytes(b"")
    else:
        published.unlink()

    with caplog.at_level(logging.WARNING, logger="omnigraph"), reopen(graph) as opened:
        insert(opened, "on main")

    told = [line for line in caplog.messages if sidecar.stem in line]
    assert told
    assert all("'june'" in line and "ObservedTable" not in line for line in told)
    published.write_bytes(content)
    with reopen(graph) as healed:
        is_visible = place == "write.post_finalize_pre_publisher"
        expected = ["ann", "bob", "eve", "first", *(["killed"] if is_visible else [])]
        assert names(healed, "june") == expected
        insert(healed, "next", "june")
        assert not list((root / "__recovery").iterdir())


@pytest.mark.case("engine", 214)
def test_a_sidecar_of_a_branch_changes_no_advice_for_main(graph: Graph) -> None:
    left_by_a_dead_writer(graph)
    parts = internals(graph).parts
    entry = graph.snapshot().entry("node:Person")
    drift(parts, entry)

    with pytest.raises(DriftNeedsRepair, match="repair"):
        refuse_drift(parts, entry, parts.store.latest_version(parts.address(entry)), MAIN_BRANCH)


def drift(parts: Parts, entry: TableEntry) -> None:
    """Move a table of main behind the engine's back."""
    dataset = lance.dataset(parts.address(entry).open_uri)
    dataset.update_config({"somebody": "else"})


@pytest.mark.case("engine", 295)
def test_two_processes_make_one_branch(graph: Graph) -> None:
    program = """
import sys
import omnigraph as og
graph = og.open(sys.argv[1])
print("open", flush=True)
input()
try:
    graph.create_branch("june")
except og.AlreadyExistsError:
    print("taken", flush=True)
else:
    print("made", flush=True)
"""
    with Forked(program, graph.uri) as one, Forked(program, graph.uri) as other:
        for script in (one, other):
            assert script.read_line() == "open"
        for script in (one, other):
            script.write_line()
        assert sorted([one.read_line(), other.read_line()]) == ["made", "taken"]

    assert graph.branches() == ["june", "main"]
    assert manifest_refs(graph) == {internals(graph).state("june").ref}


@pytest.mark.case("engine", 326)
def test_a_branch_deleted_under_a_writer_of_another_process(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "first", "june")
    program = """
import sys
import omnigraph as og
from omnigraph.core.failpoint import failpoint
graph = og.open(sys.argv[1])
def wait():
    print("paused", flush=True)
    input()
try:
    with failpoint("write.post_finalize_pre_publisher", "call", wait):
        graph.mutate('query q() { insert Person { name: "late" } }', branch="june")
except og.OmnigraphError as error:
    print(f"{type(error).__name__}: {error}", flush=True)
"""
    with Forked(program, graph.uri) as writer:
        assert writer.read_line() == "paused"
        graph.delete_branch("june")
        writer.write_line()
        said = writer.read_line()
        assert "branch 'june' not found" in said
        assert writer.wait() == 0

    with reopen(graph) as healed:
        assert healed.branches() == ["main"]
        assert [r.recovery_kind.wire for r in healed.recoveries()] == ["orphaned_branch_discarded"]
        assert names(healed) == ["ann", "bob", "eve"]
        healed.create_branch("june")
        assert names(healed, "june") == ["ann", "bob", "eve"]


@pytest.mark.case("engine", 147)
@pytest.mark.parametrize("place", ["branch_merge.post_capture", "branch_merge.post_sidecar_pre_commit"])
def test_a_merge_and_a_write_on_its_target_lose_nothing(graph: Graph, place: str) -> None:
    graph.create_branch("june")
    insert(graph, "on june", "june")
    program = """
import sys
import omnigraph as og
try:
    og.open(sys.argv[1]).mutate('query q() { insert Person { name: "rival" } }')
except og.ConflictError as error:
    print("refused", flush=True)
else:
    print("done", flush=True)
"""
    said: list[str] = []

    def rival() -> None:
        with Forked(program, graph.uri) as script:
            said.append(script.read_line())
            assert script.wait() == 0

    merged = True
    with failpoint(place, "call", rival):
        try:
            graph.merge("june")
        except ConflictError:
            merged = False

    with reopen(graph) as healed:
        expected = {"ann", "bob", "eve"} | ({"rival"} if said == ["done"] else set())
        assert set(names(healed)) - {"on june"} == expected
        assert merged or said == ["done"]
        healed.merge("june")
        assert set(names(healed)) == expected | {"on june"}


@pytest.mark.case("engine", 337)
def test_a_branch_set_on_a_version_it_had_before_keeps_its_commits_apart(graph: Graph) -> None:
    graph.create_branch("june")
    shown = {graph.commits(branch="june")[0].graph_commit_id: names(graph, "june")}
    first = graph.snapshot("june").entry("node:Person").pin
    insert(graph, "own", "june")
    shown[graph.commits(branch="june")[0].graph_commit_id] = names(graph, "june")
    # Set back to the version of main that the branch had pinned at first, as a merge may do.
    state = internals(graph).state("june")
    entry = state.snapshot().entry("node:Person")
    change = UpdateTable(entry.identity, entry.table_key, replace(first, branch="june"))
    lineage = LineageIntent(new_ulid(), None, internals(graph).parts.clock())
    expected = {entry.identity: Expectation.of(entry)}
    internals(graph).publisher.publish(state.branch, [change], expected, lineage)
    shown[graph.commits(branch="june")[0].graph_commit_id] = ["ann", "bob", "eve"]
    insert(graph, "again", "june")
    shown[graph.commits(branch="june")[0].graph_commit_id] = ["again", "ann", "bob", "eve"]

    source = "query q() { match { $p: Person } return { $p.name as name } order { $p.name } }"
    with reopen(graph) as fresh:
        for commit, expected_names in shown.items():
            found = [str(row["name"]) for row in fresh.query(source, snapshot=commit).rows]
            assert found == expected_names


def test_no_branch_is_made_over_the_commits_of_a_lost_one_of_its_name(graph: Graph) -> None:
    """Their commits would pass for those of one branch, and a merge for one that was done before."""
    graph.create_branch("june")
    insert(graph, "j1", "june")
    graph.create_branch("july", from_="june")
    path = Path(graph.uri, control_file("june"))
    path.write_text("damaged")
    graph.delete_branch("june")

    with pytest.raises(BadRequest, match="commits of an earlier branch 'june'"):
        graph.create_branch("june", from_="july")

    graph.create_branch("june", from_="main")


def test_a_branch_that_could_not_be_deleted_keeps_its_copy(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.create_branch("june")
    path = Path(graph.uri, control_file("june"))

    def fail(_files: LocalFiles, _name: str) -> None:
        raise StorageError("the disk failed", kind="permanent")

    with monkeypatch.context() as patch:
        patched(patch, "omnigraph.storage.control.local_files.LocalFiles.delete", fail)
        with pytest.raises(StorageError, match="the disk failed"):
            graph.delete_branch("june")
    path.unlink()

    with pytest.raises(GraphDamaged, match="june"):
        graph.branches()
