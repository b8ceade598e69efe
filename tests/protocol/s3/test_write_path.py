"""The write path on an S3-compatible server: one writer process, the same commits, the same recovery."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count

import pytest

import omnigraph
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.commit.sidecar_reader import read_sidecar
from omnigraph.core.clock import now_micros
from omnigraph.core.errors import (
    ConflictError,
    DriftNeedsRepair,
    RecoveryRequired,
    StorageError,
    WriterLeaseHeld,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import MAINTENANCE_ACTOR, RECOVERY_ACTOR
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.lease import LEASE_LIFETIME, WRITER_LEASE, LeaseRecord, WriterLease
from omnigraph.storage.control.object_store import ObjectStore, open_adapter
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.tables.undo import TableUndo
from tests.support.protocol import BEFORE, SCHEMA, records
from tests.support.seam import internals, patched
from tests.support.system import Script

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
def graph(root: GraphRoot) -> Graph:
    graph = omnigraph.init(root.uri, SCHEMA)
    graph.load(records(BEFORE), "append")
    return graph


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
        ("write.post_table_commit", RecoveryKind.ROLLED_BACK, False),
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
def test_a_second_writer_is_refused_and_a_reader_is_not(graph: Graph, root: GraphRoot) -> None:
    with pytest.raises(WriterLeaseHeld):
        omnigraph.open(root.uri)

    with omnigraph.open(root.uri, mode="ro") as reader:
        assert len(people(reader)) == 3
    graph.close()
    with omnigraph.open(root.uri) as successor:
        assert len(people(successor)) == 3


@pytest.mark.case("engine", 324)
def test_a_killed_writer_is_recovered_by_the_next_holder_of_the_lease(graph: Graph, root: GraphRoot) -> None:
    graph.close()
    with Script(
        DIE, root.uri, ADD_DEE, OMNIGRAPH_FAILPOINTS="write.post_finalize_pre_publisher=exit"
    ) as writer:
        assert writer.wait() == 86

    with omnigraph.open(root.uri) as successor:
        lease = internals(successor).parts.lease
        assert lease is not None
        assert lease.epoch == 3  # the fixture's, the killed writer's, ours
        assert "dee" in people(successor)
        assert [record.recovery_kind for record in successor.recoveries()] == [RecoveryKind.ROLLED_FORWARD]


def lose_the_lease(graph: Graph, root: GraphRoot) -> None:
    """Let somebody take over who saw nothing of the holder for a whole lifetime, and let the holder wake."""
    lease, far = internals(graph).parts.lease, 10 * LEASE_LIFETIME
    assert lease is not None
    ticks = count(0, far)
    taker = WriterLease.take(
        open_adapter(root, Durability.FULL),
        host="elsewhere",
        boot_id="another boot",
        pid=1,
        clock=lambda: now_micros() + int(far * 1_000_000),
        boot_clock=lambda: float(next(ticks)),
        wait=lambda _seconds: None,
    )
    assert taker.epoch == lease.epoch + 1
    taker.close()
    awake = lease._boot_clock
    lease._boot_clock = lambda: awake() + far


@pytest.mark.case("engine", 325)
def test_a_holder_that_wakes_after_a_takeover_is_refused_before_any_effect(
    graph: Graph, root: GraphRoot
) -> None:
    before = graph.snapshot()
    lose_the_lease(graph, root)

    with pytest.raises(WriterLeaseHeld) as caught:
        graph.mutate(ADD_DEE)

    assert caught.value.recovery_operation_id is None
    assert open_adapter(root, Durability.FULL).list_dir(RECOVERY_DIR) == []
    with omnigraph.open(root.uri) as successor:
        assert successor.snapshot() == before
        assert successor.recoveries() == []


@pytest.mark.case("engine", 325)
@pytest.mark.parametrize(
    ("point", "kind", "is_visible"),
    [
        ("write.post_table_commit", RecoveryKind.ROLLED_BACK, False),  # noticed before the second table
        ("write.post_finalize_pre_publisher", RecoveryKind.ROLLED_FORWARD, True),
    ],
)
def test_a_holder_that_loses_its_lease_in_phase_b_publishes_nothing(
    graph: Graph, root: GraphRoot, point: str, kind: RecoveryKind, *, is_visible: bool
) -> None:
    lost: list[bool] = []

    def lose() -> None:
        if not lost:
            lost.append(True)
            lose_the_lease(graph, root)

    commits = len(graph.commits())
    with failpoint(point, call=lose), pytest.raises(WriterLeaseHeld) as caught:
        graph.mutate(ADD_DEE)

    assert len(graph.commits()) == commits
    adapter = open_adapter(root, Durability.FULL)
    name = f"{RECOVERY_DIR}/{caught.value.recovery_operation_id}.json"
    sidecar = read_sidecar(name, adapter.read_text(name))
    with omnigraph.open(root.uri) as successor:
        lease = internals(successor).parts.lease
        assert lease is not None
        assert sidecar.writer_epoch is not None
        assert sidecar.writer_epoch < lease.epoch
        assert ("dee" in people(successor)) is is_visible
        assert [record.recovery_kind for record in successor.recoveries()] == [kind]
    with omnigraph.open(root.uri) as third:
        assert len(third.recoveries()) == 1


@pytest.mark.case("engine", 383)
@pytest.mark.parametrize(
    ("point", "is_swept"),
    [("open.before_schema_contract_read", False), ("recovery.before_fence", True)],
)
def test_an_open_that_fails_gives_its_lease_back(
    graph: Graph, root: GraphRoot, point: str, *, is_swept: bool
) -> None:
    if is_swept:
        with failpoint("write.post_table_commit", "raise:once"), pytest.raises(RecoveryRequired):
            graph.mutate(ADD_DEE)
    graph.close()
    with failpoint(point, "raise:once"), pytest.raises(InjectedFault):
        omnigraph.open(root.uri)
    record = LeaseRecord.from_json(open_adapter(root, Durability.FULL).read_text(WRITER_LEASE))
    assert record.is_free

    with omnigraph.open(root.uri) as successor:
        assert "dee" not in people(successor)
        successor.mutate(ADD_DEE)
        assert "dee" in people(successor)


def test_a_sidecar_that_its_writer_takes_back_while_it_is_recovered_fails_no_open(
    graph: Graph, root: GraphRoot
) -> None:
    """A writer whose first commit the fence refuses may not know yet that its lease is gone."""
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


def test_a_sidecar_of_a_later_writer_is_left_alone(graph: Graph, root: GraphRoot) -> None:
    with failpoint("write.post_table_commit", "raise:once"), pytest.raises(RecoveryRequired):
        graph.mutate(ADD_DEE)
    adapter = open_adapter(root, Durability.FULL)
    (name,) = adapter.list_dir(RECOVERY_DIR)
    path = f"{RECOVERY_DIR}/{name}"
    sidecar = read_sidecar(path, adapter.read_text(path))
    later = replace(sidecar, writer_epoch=(sidecar.writer_epoch or 0) + 1).to_text()
    adapter.write_text(path, later)

    graph.refresh()

    assert adapter.read_text(path) == later
    assert graph.recoveries() == []


def test_a_holder_that_loses_its_lease_while_it_deletes_a_branch_drops_no_storage(
    graph: Graph, root: GraphRoot
) -> None:
    graph.create_branch("side")
    graph.mutate(ADD_DEE, branch="side")
    entry, parts = graph.snapshot("side").entry("node:Person"), internals(graph).parts

    with failpoint("branch_delete.post_control_pre_refs", call=lambda: lose_the_lease(graph, root)):
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


def test_rows_that_nobody_explains_are_never_published(graph: Graph) -> None:
    parts, entry = internals(graph).parts, graph.snapshot().entry("node:Person")
    handle = parts.open(entry)
    TableUndo(parts.store).commit_fence(handle, operation_id="x", epoch=1)
    fenced = parts.store.open_head(handle.address)
    staged = parts.stager.stage_delete(fenced, ["ann"])
    assert staged is not None
    parts.stager.commit_staged(staged, operation_id="x", writer_kind="Mutation")

    with pytest.raises(DriftNeedsRepair):
        graph.mutate(ADD_DEE)

    assert people(graph) == ["ann", "bob", "cid"]
