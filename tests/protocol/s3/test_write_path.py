"""The write path on an S3-compatible server: the same commits, the same recovery, and who may write."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from lance import LanceOperation

import omnigraph
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.commit.sidecar_reader import read_sidecar
from omnigraph.core.errors import (
    BadRequest,
    ConflictError,
    DriftNeedsRepair,
    ExpectedVersionMismatch,
    RecoveryRequired,
    StorageError,
    WriterEnded,
    WriterLeaseHeld,
)
from omnigraph.core.failpoint import EXIT_STATUS, InjectedFault, failpoint
from omnigraph.core.ids import new_ulid
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import MAINTENANCE_ACTOR, RECOVERY_ACTOR
from omnigraph.operations.open import Writers
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.lease import LEASE_LIFETIME, WRITER_LEASE, LeaseRecord
from omnigraph.storage.control.object_store import ObjectStore, open_adapter
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.control.writers import WRITERS_DIR, Watch, WriterRecord
from omnigraph.storage.tables.stage import staged_on
from omnigraph.storage.tables.undo import TableUndo
from tests.support.forked import Forked
from tests.support.protocol import SCHEMA
from tests.support.seam import internals, patched

pytestmark = pytest.mark.slow

ADD_DEE = """
query add() {
    insert Person { name: "dee" }
    insert Knows { from: "dee", to: "ann" }
}
"""
DIE = """
import sys
import omnigraph
omnigraph.open(sys.argv[1]).mutate(sys.argv[2])
"""


@pytest.fixture
def graph(indexed_graph: Graph) -> Graph:
    return indexed_graph


def people(graph: Graph) -> list[object]:
    return graph.table("Person")["name"].to_pylist()


def test_a_mutation_is_one_commit_that_a_second_open_reads(graph: Graph, root: GraphRoot) -> None:
    result = graph.mutate(ADD_DEE, actor="mira", message="a newcomer")

    with omnigraph.open(root.uri, mode="ro") as reader:
        assert people(reader) == ["ann", "bob", "cid", "dee"]
        assert reader.table("Knows").num_rows == 3
        (newest, *_) = reader.commits()
    assert result.commit is not None
    assert (newest.graph_commit_id, newest.actor_id) == (result.commit.graph_commit_id, "mira")


def test_each_mode_of_a_load_works(graph: Graph) -> None:
    graph.load(b'{"type": "Company", "data": {"name": "acme", "city": "Kiel"}}\n', "merge")
    graph.load(b'{"type": "Company", "data": {"name": "zoo"}}\n', "append")

    assert graph.table("Company").select(["name", "city"]).to_pylist() == [
        {"name": "acme", "city": "Kiel"},
        {"name": "ibex", "city": None},
        {"name": "zoo", "city": None},
    ]


@pytest.mark.parametrize(
    ("point", "kind", "is_visible"),
    [
        ("write.post_sidecar_pre_commit", RecoveryKind.ROLLED_BACK, False),
        ("write.pre_table_commit_at_once", RecoveryKind.ROLLED_BACK, False),
        ("write.post_table_commit", RecoveryKind.ROLLED_FORWARD, True),  # both tables had moved
        ("write.post_finalize_pre_publisher", RecoveryKind.ROLLED_FORWARD, True),
        ("write.post_publish_pre_sidecar_delete", RecoveryKind.ROLLED_FORWARD, True),
    ],
)
def test_a_write_that_fails_half_way_is_healed_by_the_next_one(
    graph: Graph, point: str, kind: RecoveryKind, *, is_visible: bool
) -> None:
    with failpoint(point, "raise:once"), pytest.raises(RecoveryRequired):
        graph.mutate(ADD_DEE)

    graph.mutate('query add() { insert Company { name: "yak" } }')

    assert ("dee" in people(graph)) is is_visible
    assert [record.recovery_kind for record in graph.recoveries()] == [kind]
    assert sum(commit.actor_id == RECOVERY_ACTOR for commit in graph.commits()) == 1


@pytest.mark.case("engine", 13)
def test_a_store_that_ignores_conditions_is_refused_for_writing(
    graph: Graph, root: GraphRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.close()
    new = GraphRoot.parse(f"s3://{root.bucket}/another/graph")

    def create_anyway(store: ObjectStore, name: str, text: str) -> bool:
        store.write_text(name, text)
        return True

    patched(
        monkeypatch, "omnigraph.storage.control.object_store.ObjectStore.write_text_if_absent", create_anyway
    )

    attempts: list[Callable[[], Graph]] = [
        lambda: omnigraph.init(new.uri, SCHEMA),
        lambda: omnigraph.open(root.uri),
    ]
    for attempt in attempts:
        with pytest.raises(StorageError, match="overwrites existing objects") as raised:
            attempt()
        assert raised.value.kind == "configuration"

    assert not ObjectStore(GraphRoot.parse(f"s3://{root.bucket}")).exists("another")
    with omnigraph.open(root.uri, mode="ro") as reader:
        assert len(people(reader)) == 3


@pytest.mark.case("engine", 137)
def test_eight_writers_of_eight_tables_make_one_chain(root: GraphRoot) -> None:
    graph = omnigraph.init(root.uri, "".join(f"node T{n} {{ k: String @key }}\n" for n in range(8)))
    barrier = threading.Barrier(8, timeout=60)

    def write(number: int) -> int:
        barrier.wait()
        for attempt in range(20):
            try:
                graph.mutate(f'query add() {{ insert T{number} {{ k: "x" }} }}')
            except ConflictError:
                continue
            return attempt
        raise AssertionError(f"writer {number} lost twenty times")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))

    commits = list(reversed(graph.commits()))
    assert len(commits) == 9
    assert [later.parent_commit_id for later in commits[1:]] == [c.graph_commit_id for c in commits[:-1]]
    assert [graph.table(f"T{number}").num_rows for number in range(8)] == [1] * 8
    assert internals(graph).state().heads == {"main": commits[-1].graph_commit_id}


@pytest.mark.case("engine", 324)
def test_the_only_writer_keeps_others_out_and_readers_not(graph: Graph, root: GraphRoot) -> None:
    graph.close()
    with omnigraph.open(root.uri, writers="one") as only:
        only.mutate(ADD_DEE)

        for writers in (None, "many", "one"):
            with pytest.raises(WriterLeaseHeld):
                omnigraph.open(root.uri, writers=writers)

        with omnigraph.open(root.uri, mode="ro") as reader:
            assert len(people(reader)) == 4
        only.mutate('query add() { insert Company { name: "yak" } }')
    with omnigraph.open(root.uri) as successor:
        assert len(people(successor)) == 4


@pytest.mark.case("engine", 324)
def test_whoever_comes_after_a_killed_only_writer_has_a_higher_epoch_and_settles_its_write(
    graph: Graph, root: GraphRoot
) -> None:
    graph.close()
    point = "write.post_finalize_pre_publisher=exit"
    with Forked(DIE, root.uri, ADD_DEE, OMNIGRAPH_WRITERS="one", OMNIGRAPH_FAILPOINTS=point) as writer:
        assert writer.wait() == EXIT_STATUS
    adapter = open_adapter(root, Durability.FULL)
    dead = LeaseRecord.from_json(adapter.read_text(WRITER_LEASE))
    assert not dead.is_free

    with omnigraph.open(root.uri, writers="one") as successor:
        held = LeaseRecord.from_json(adapter.read_text(WRITER_LEASE))
        assert held.epoch == dead.epoch + 1
        assert "dee" in people(successor)
        assert [record.recovery_kind for record in successor.recoveries()] == [RecoveryKind.ROLLED_FORWARD]
        assert adapter.list_dir(RECOVERY_DIR) == []


@pytest.mark.case("engine", 460)
def test_nobody_becomes_the_only_writer_beside_another_one(
    graph: Graph, root: GraphRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.close()
    monkeypatch.setenv("OMNIGRAPH_WRITER_LIFETIME", "1")
    with omnigraph.open(root.uri) as other:
        with pytest.raises(WriterLeaseHeld, match="closes the graph"):
            omnigraph.open(root.uri, writers="one")

        other.mutate(ADD_DEE)
    monkeypatch.setenv("OMNIGRAPH_WRITERS", "one")
    with omnigraph.open(root.uri) as only:
        assert len(people(only)) == 4
        with pytest.raises(WriterLeaseHeld):
            omnigraph.open(root.uri, writers="many")
    assert open_adapter(root, Durability.FULL).list_dir(WRITERS_DIR) == []


def test_a_lifetime_that_is_too_long_is_the_default(
    graph: Graph, root: GraphRoot, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    graph.close()
    monkeypatch.setenv("OMNIGRAPH_WRITER_LIFETIME", "86401")

    with omnigraph.open(root.uri) as other:
        writer = internals(other).parts.writer
        assert writer is not None
        assert writer.lifetime_s == LEASE_LIFETIME

    assert "OMNIGRAPH_WRITER_LIFETIME='86401' is not a whole number from 1 to 86400" in caplog.text


@pytest.mark.case("engine", 460)
def test_nobody_is_the_only_writer_of_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    omnigraph.init(tmp_path / "g", SCHEMA).close()

    with pytest.raises(BadRequest, match="object stores"):
        omnigraph.open(tmp_path / "g", writers="one")
    with pytest.raises(BadRequest, match="not one of many, one"):
        omnigraph.open(tmp_path / "g", writers="two")  # type: ignore[arg-type] # that is what is tried
    monkeypatch.setenv("OMNIGRAPH_WRITERS", "one")  # for the stores that a command works on besides
    with omnigraph.open(tmp_path / "g"), omnigraph.open(tmp_path / "g") as other:
        other.mutate(ADD_DEE.replace('insert Knows { from: "dee", to: "ann" }', ""))


@pytest.mark.case("engine", 461)
def test_a_killed_writer_of_this_host_is_recovered_at_once(graph: Graph, root: GraphRoot) -> None:
    graph.close()
    with Forked(
        DIE, root.uri, ADD_DEE, OMNIGRAPH_FAILPOINTS="write.post_finalize_pre_publisher=exit"
    ) as writer:
        assert writer.wait() == 86

    with omnigraph.open(root.uri) as successor:
        assert "dee" in people(successor)
        assert [record.recovery_kind for record in successor.recoveries()] == [RecoveryKind.ROLLED_FORWARD]


def take_for_dead(graph: Graph, root: GraphRoot) -> None:
    """Let somebody end a writer who has heard nothing of it for a whole lifetime, and let the writer wake."""
    writer, far = internals(graph).parts.writer, 10 * LEASE_LIFETIME
    assert writer is not None
    ticks = count(0, far)
    observer = WriterRecord("elsewhere", "elsewhere", "another boot", 1, LEASE_LIFETIME)
    adapter = open_adapter(root, Durability.FULL)
    watch = Watch(adapter, observer, boot_clock=lambda: float(next(ticks)), wait=lambda _seconds: None)
    assert not watch.has_ended(writer.writer_id)
    assert watch.has_ended(writer.writer_id)
    awake = writer._boot_clock
    writer._boot_clock = lambda: awake() + far


@pytest.mark.case("engine", 325)
def test_a_writer_that_was_taken_for_dead_is_refused_before_any_effect(graph: Graph, root: GraphRoot) -> None:
    before = graph.snapshot()
    take_for_dead(graph, root)

    with pytest.raises(WriterEnded, match="open the graph again") as caught:
        graph.mutate(ADD_DEE)

    assert caught.value.recovery_operation_id is None
    assert open_adapter(root, Durability.FULL).list_dir(RECOVERY_DIR) == []
    with omnigraph.open(root.uri) as successor:
        assert successor.snapshot() == before
        assert successor.recoveries() == []


@pytest.mark.case("engine", 325)
@pytest.mark.parametrize(
    ("point", "kinds", "is_visible"),
    [
        (
            "write.post_sidecar_pre_commit",
            [RecoveryKind.ROLLED_BACK],
            False,
        ),  # before any table
        ("write.post_table_commit", [RecoveryKind.ROLLED_FORWARD], True),
        ("write.post_finalize_pre_publisher", [RecoveryKind.ROLLED_FORWARD], True),
    ],
)
def test_a_writer_that_is_taken_for_dead_in_phase_b_publishes_nothing(
    graph: Graph, root: GraphRoot, point: str, kinds: list[RecoveryKind], *, is_visible: bool
) -> None:
    lost: list[bool] = []

    def lose() -> None:
        if not lost:
            lost.append(True)
            take_for_dead(graph, root)

    commits = len(graph.commits())
    with failpoint(point, call=lose), pytest.raises(WriterEnded) as caught:
        graph.mutate(ADD_DEE)

    assert len(graph.commits()) == commits
    adapter = open_adapter(root, Durability.FULL)
    name = f"{RECOVERY_DIR}/{caught.value.recovery_operation_id}.json"
    sidecar = read_sidecar(name, adapter.read_text(name))
    writer = internals(graph).parts.writer
    assert writer is not None
    assert sidecar.writer_id == writer.writer_id
    with omnigraph.open(root.uri) as successor:
        assert ("dee" in people(successor)) is is_visible
        assert [record.recovery_kind for record in successor.recoveries()] == kinds
    with omnigraph.open(root.uri) as third:
        assert len(third.recoveries()) == len(kinds)


@pytest.mark.case("engine", 325)
def test_a_writer_that_is_taken_for_dead_behind_its_publish_leaves_the_sidecar(
    graph: Graph, root: GraphRoot
) -> None:
    with failpoint("write.post_publish_pre_sidecar_delete", call=lambda: take_for_dead(graph, root)):
        graph.mutate(ADD_DEE)

    assert len(open_adapter(root, Durability.FULL).list_dir(RECOVERY_DIR)) == 1
    with omnigraph.open(root.uri) as successor:
        assert "dee" in people(successor)
        assert [record.recovery_kind for record in successor.recoveries()] == [RecoveryKind.ROLLED_FORWARD]


@pytest.mark.case("engine", 383)
@pytest.mark.parametrize("writers", [Writers.MANY, Writers.ONE])
@pytest.mark.parametrize(
    ("point", "is_swept"),
    [("open.before_schema_contract_read", False), ("recovery.before_fence", True)],
)
def test_an_open_that_fails_is_no_writer_any_more(
    graph: Graph, root: GraphRoot, point: str, writers: Writers, *, is_swept: bool
) -> None:
    if is_swept:
        with failpoint("write.pre_table_commit_at_once", "raise:once"), pytest.raises(RecoveryRequired):
            graph.mutate(ADD_DEE)
    graph.close()
    with failpoint(point, "raise:once"), pytest.raises(InjectedFault):
        omnigraph.open(root.uri, writers=writers.value)
    adapter = open_adapter(root, Durability.FULL)
    assert adapter.list_dir(WRITERS_DIR) == []
    if writers is Writers.ONE:
        assert LeaseRecord.from_json(adapter.read_text(WRITER_LEASE)).is_free

    with omnigraph.open(root.uri) as successor:
        assert "dee" not in people(successor)
        successor.mutate(ADD_DEE)
        assert "dee" in people(successor)


def test_a_sidecar_that_its_writer_takes_back_while_it_is_recovered_fails_no_open(
    graph: Graph, root: GraphRoot
) -> None:
    """A writer whose first commit the fence refuses may not know yet that it was taken for dead."""
    with failpoint("write.post_sidecar_pre_commit", "raise:once"), pytest.raises(RecoveryRequired):
        graph.mutate(ADD_DEE)
    graph.close()
    adapter = open_adapter(root, Durability.FULL)

    def take_back() -> None:
        for name in adapter.list_dir(RECOVERY_DIR):
            adapter.delete(f"{RECOVERY_DIR}/{name}")

    with failpoint("recovery.before_fence", call=take_back):
        successor = omnigraph.open(root.uri)

    with successor:
        assert successor.recoveries() == []
        successor.mutate(ADD_DEE)  # publishes the fences that nobody else does
        parts = internals(successor).parts
        for entry in successor.snapshot().entries.values():
            assert parts.store.latest_version(parts.address(entry)) == entry.version
        assert MAINTENANCE_ACTOR in {commit.actor_id for commit in successor.commits(limit=4)}


@pytest.mark.case("engine", 462)
@pytest.mark.parametrize("is_alive", [True, False])
def test_a_sidecar_is_left_to_its_owner_while_that_is_alive(
    graph: Graph, root: GraphRoot, *, is_alive: bool
) -> None:
    with failpoint("write.pre_table_commit_at_once", "raise:once"), pytest.raises(RecoveryRequired):
        graph.mutate(ADD_DEE)
    adapter = open_adapter(root, Durability.FULL)
    (name,) = adapter.list_dir(RECOVERY_DIR)
    path = f"{RECOVERY_DIR}/{name}"
    sidecar = read_sidecar(path, adapter.read_text(path))
    assert sidecar.owner is None, "its writer has let go of it"
    other = WriterRecord(new_ulid(), "elsewhere", "another boot", 1, LEASE_LIFETIME)
    if is_alive:
        adapter.write_text(other.file, other.to_json())
    kept = sidecar.owned_by(other.writer_id).to_text()
    adapter.write_text(path, kept)

    graph.refresh()

    assert (adapter.read_text_if_exists(path) == kept) is is_alive
    assert len(graph.recoveries()) == (0 if is_alive else 1)
    if is_alive:
        with pytest.raises(ExpectedVersionMismatch) as caught:
            graph.mutate(ADD_DEE.replace("dee", "eve"), retry=0)  # one of its tables is ahead
        assert caught.value.in_flight_operation_id == sidecar.operation_id


@pytest.mark.case("engine", 463)
def test_a_sidecar_of_an_earlier_build_is_of_a_dead_writer(graph: Graph, root: GraphRoot) -> None:
    with failpoint("write.post_finalize_pre_publisher", "raise:once"), pytest.raises(RecoveryRequired):
        graph.mutate(ADD_DEE)
    graph.close()
    adapter = open_adapter(root, Durability.FULL)
    (name,) = adapter.list_dir(RECOVERY_DIR)
    path = f"{RECOVERY_DIR}/{name}"
    document = json.loads(adapter.read_text(path))
    del document["writer_id"], document["owner"]
    adapter.write_text(path, json.dumps(document | {"schema_version": 2, "writer_epoch": 7}, indent=2))

    with omnigraph.open(root.uri) as successor:
        assert "dee" in people(successor)
        assert len(successor.recoveries()) == 1
    assert adapter.list_dir(RECOVERY_DIR) == []


@pytest.mark.case("engine", 462)
def test_a_healer_that_is_not_the_first_to_claim_a_sidecar_leaves_it(graph: Graph, root: GraphRoot) -> None:
    with failpoint("write.pre_table_commit_at_once", "raise:once"), pytest.raises(RecoveryRequired):
        graph.mutate(ADD_DEE)
    adapter = open_adapter(root, Durability.FULL)
    (name,) = adapter.list_dir(RECOVERY_DIR)
    path = f"{RECOVERY_DIR}/{name}"
    other = WriterRecord(new_ulid(), "elsewhere", "another boot", 1, LEASE_LIFETIME)
    adapter.write_text(other.file, other.to_json())

    def be_faster() -> None:
        sidecar = read_sidecar(path, adapter.read_text(path))
        adapter.write_text(path, sidecar.owned_by(other.writer_id).to_text())

    with failpoint("recovery.before_claim", call=be_faster):
        graph.refresh()

    assert read_sidecar(path, adapter.read_text(path)).owner == other.writer_id
    assert graph.recoveries() == []


@pytest.mark.case("engine", 462)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_sidecar_whose_answer_was_lost_is_looked_for(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    store = internals(graph).parts.adapter
    create = store.write_text_if_absent
    lost: list[str] = []

    def lose_the_answer(name: str, text: str) -> bool:
        if name.startswith(RECOVERY_DIR) and not lost:
            lost.append(name)
            if is_there:
                create(name, text)
            raise StorageError("no answer", kind="transient")
        return create(name, text)

    monkeypatch.setattr(store, "write_text_if_absent", lose_the_answer)

    if is_there:
        graph.mutate(ADD_DEE)
    else:
        with pytest.raises(StorageError, match="no answer"):
            graph.mutate(ADD_DEE)

    assert store.list_dir(RECOVERY_DIR) == []
    assert ("dee" in people(graph)) is is_there
    assert graph.recoveries() == []


@pytest.mark.case("engine", 421)
def test_a_writer_that_was_taken_for_dead_behind_its_look_deletes_no_branch(
    graph: Graph, root: GraphRoot
) -> None:
    graph.create_branch("side")

    with (
        failpoint("branch_delete.post_look_pre_control", call=lambda: take_for_dead(graph, root)),
        pytest.raises(WriterEnded),
    ):
        graph.delete_branch("side")

    assert graph.branches() == ["main", "side"]


def test_a_writer_that_is_taken_for_dead_while_it_deletes_a_branch_drops_no_storage(
    graph: Graph, root: GraphRoot
) -> None:
    graph.create_branch("side")
    graph.mutate(ADD_DEE, branch="side")
    entry, parts = graph.snapshot("side").entry("node:Person"), internals(graph).parts

    with failpoint("branch_delete.post_control_pre_refs", call=lambda: take_for_dead(graph, root)):
        graph.delete_branch("side")

    assert entry.owner in {ref.name for ref in parts.store.list_refs(parts.address(entry))}
    assert graph.branches() == ["main"]


def test_a_sidecar_that_comes_back_after_its_recovery_is_removed(graph: Graph, root: GraphRoot) -> None:
    with failpoint("write.post_sidecar_pre_commit", "raise:once"), pytest.raises(RecoveryRequired):
        graph.mutate(ADD_DEE)
    adapter = open_adapter(root, Durability.FULL)
    (name,) = adapter.list_dir(RECOVERY_DIR)
    text = adapter.read_text(f"{RECOVERY_DIR}/{name}")
    graph.refresh()
    adapter.write_text(f"{RECOVERY_DIR}/{name}", text)  # as a repeated request does

    graph.refresh()

    assert adapter.list_dir(RECOVERY_DIR) == []
    assert [record.recovery_kind for record in graph.recoveries()] == [RecoveryKind.ROLLED_BACK]


@pytest.mark.case("engine", 467)
def test_a_restore_that_comes_too_late_is_taken_back(graph: Graph) -> None:
    """Of a healer that was stopped right before it: nothing refuses a restore."""
    parts, entry = internals(graph).parts, graph.snapshot().entry("node:Person")
    old = parts.open(entry)
    graph.mutate(ADD_DEE)
    operation = LanceOperation.Restore(old.version)
    head = parts.open(graph.snapshot().entry("node:Person"))
    staged = staged_on(head, "rollback", operation, ())
    parts.stager.commit_staged(staged, operation_id="x", writer_kind="Mutation")

    graph.mutate('query add() { insert Person { name: "eve" } }')

    assert people(graph) == ["ann", "bob", "cid", "dee", "eve"]
    entry = graph.snapshot().entry("node:Person")
    assert parts.store.latest_version(parts.address(entry)) == entry.version
    assert MAINTENANCE_ACTOR in {commit.actor_id for commit in graph.commits(limit=3)}


def test_rows_that_nobody_explains_are_never_published(graph: Graph) -> None:
    parts, entry = internals(graph).parts, graph.snapshot().entry("node:Person")
    handle = parts.open(entry)
    TableUndo(parts.store).commit_fence(handle, operation_id="x", healer="1")
    fenced = parts.store.open_head(handle.address)
    staged = parts.stager.stage_delete(fenced, ["ann"])
    assert staged is not None
    parts.stager.commit_staged(staged, operation_id="x", writer_kind="Mutation")

    with pytest.raises(DriftNeedsRepair):
        graph.mutate(ADD_DEE)

    assert people(graph) == ["ann", "bob", "cid"]
