"""Nobody builds on a branch without its publish lock: what is being synced may still be taken back."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import omnigraph
from omnigraph.client.error_body import error_of
from omnigraph.commit.publish import publish_lock_file
from omnigraph.commit.recovery.outcome import SweepResult
from omnigraph.commit.recovery.sweep import SweepMode, sweep
from omnigraph.core.errors import BranchNotFound, ConflictError, RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.wire.error_document import error_document
from tests.support.books import assert_reopening_changes_nothing
from tests.support.forked import Forked
from tests.support.protocol import sidecars, write_everywhere
from tests.support.seam import internals

ADD_DAN = 'query add() { insert Person { name: "dan" } }'
HELD = "another process holds the publish lock of branch 'main'"
HOLDER = """
import sys
from pathlib import Path
from omnigraph.storage.control.locks import PublishLock
with PublishLock(Path(sys.argv[1])) as is_obtained:
    print(is_obtained, flush=True)
    input()
"""
SYNC_THAT_FAILS_LATE = """
import sys
import omnigraph
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import InjectedFault
from tests.support.protocol import WRITERS, paused_at, say, tell_and_wait

def fail():
    tell_and_wait()
    raise InjectedFault("the sync failed")

with omnigraph.open(sys.argv[1]) as graph, paused_at("durability.pre_manifest_sync", "call", fail):
    try:
        WRITERS["insert"].run(graph)
    except RecoveryRequired:
        say("taken back")
"""


def add(graph: Graph, name: str, branch: str | None = None) -> None:
    graph.mutate(f'query add() {{ insert Company {{ name: "{name}" }} }}', branch=branch)


def names(graph: Graph, type_name: str, branch: str | None = None) -> set[object]:
    return set(graph.table(type_name, branch=branch).column("name").to_pylist())


@pytest.fixture
def graph(root: Path) -> Iterator[Graph]:
    """A handle that does not wait for a publish lock, on a graph with a branch."""
    with omnigraph.open(root) as graph:
        graph.create_branch("june")
        add(graph, "june", "june")
        internals(graph).publisher._lock_wait_s = 0
        yield graph


@pytest.fixture
def held(root: Path) -> Iterator[Forked]:
    """A stopped process that holds the publish lock of main."""
    with Forked(HOLDER, root / publish_lock_file("main")) as holder:
        assert holder.read_line() == "True"
        holder.stop()
        yield holder


@pytest.mark.case("engine", 425)
def test_a_publish_that_is_taken_back_is_on_no_other_branch(graph: Graph, root: Path) -> None:
    with Forked(SYNC_THAT_FAILS_LATE, root) as script:
        assert script.read_line() == "paused"
        assert "dan" in names(graph, "Person"), "a publish is visible before it is synced"
        for build in (lambda: graph.merge("main", into="june"), lambda: graph.create_branch("july")):
            with pytest.raises(ConflictError, match=HELD):
                build()
        script.write_line()
        assert script.read_line() == "taken back"
        assert script.wait() == 0

    add(graph, "main")
    graph.merge("main", into="june")
    graph.merge("june")

    assert graph.branches() == ["june", "main"]
    assert "dan" not in names(graph, "Person") | names(graph, "Person", "june")
    assert {"main", "june"} <= names(graph, "Company") == names(graph, "Company", "june")
    write_everywhere(graph)
    graph.close()
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 425)
def test_a_merge_syncs_what_it_takes(graph: Graph, root: Path) -> None:
    with omnigraph.open(root, durability="process") as unsynced:
        add(unsynced, "main")
    manifest = internals(graph).parts.coordinator.manifest
    address = internals(graph).parts.coordinator.address()
    assert manifest.synced_version(address) < manifest.latest_version(address)

    graph.merge("main", into="june", dry_run=True)
    assert manifest.synced_version(address) < manifest.latest_version(address), "a look writes nothing"
    graph.merge("main", into="june")

    assert manifest.synced_version(address) == manifest.latest_version(address)


@pytest.mark.case("engine", 425)
def test_a_merge_of_no_branch_makes_no_lock_file(graph: Graph, root: Path) -> None:
    with pytest.raises(BranchNotFound):
        graph.merge("nobody")

    assert not (root / publish_lock_file("nobody")).exists()


@pytest.mark.case("engine", 322)
@pytest.mark.case("engine", 426)
@pytest.mark.parametrize(
    "build",
    [lambda graph: graph.merge("main", into="june"), lambda graph: graph.create_branch("july")],
    ids=["merge", "create_branch"],
)
def test_nobody_builds_on_a_branch_whose_publish_lock_is_held(
    build: Callable[[Graph], object], graph: Graph, held: Forked, root: Path
) -> None:
    with pytest.raises(ConflictError, match=HELD) as caught:
        build(graph)

    assert caught.value.recovery_operation_id is None
    assert sidecars(root) == ()
    held.end()
    build(graph)


@pytest.mark.case("engine", 322)
@pytest.mark.case("engine", 426)
def test_a_write_that_gets_no_publish_lock_lands_when_it_is_free(
    graph: Graph, held: Forked, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConflictError, match=HELD) as caught:
        add(graph, "late")
    waiting = caught.value.recovery_operation_id
    assert waiting is not None
    document = error_document(caught.value)
    assert document["recovery_operation_id"] == waiting
    assert f"do not send it again before operation {waiting} is in" in str(document["error"])
    told = error_of(409, document, "ConflictError")
    assert isinstance(told, ConflictError)
    assert told.recovery_operation_id == waiting
    assert "late" not in names(graph, "Company")

    add(graph, "elsewhere", "june")
    assert f"sidecar {caught.value.recovery_operation_id} waits: {HELD}" in caplog.text
    inner = internals(graph)
    assert set(sweep(inner.parts, inner.publisher, SweepMode.FULL).values()) == {SweepResult.UNRESOLVED}
    with omnigraph.open(root, mode="ro") as reader:
        assert "elsewhere" in names(reader, "Company", "june")

    held.end()
    add(graph, "next")
    assert {"late", "next"} <= names(graph, "Company")
    assert sidecars(root) == ()


@pytest.mark.case("engine", 426)
def test_a_first_write_of_a_branch_that_gets_no_publish_lock_leaves_nothing(graph: Graph, root: Path) -> None:
    with omnigraph.open(root) as other, internals(other).publisher.publish_lock("june"):
        with pytest.raises(ConflictError, match="publish lock of branch 'june'") as caught:
            graph.mutate(ADD_DAN, branch="june")

        assert caught.value.recovery_operation_id is None
        assert sidecars(root) == ()
    graph.mutate(ADD_DAN, branch="june")


@pytest.mark.case("engine", 368)
@pytest.mark.case("engine", 426)
def test_a_publish_that_landed_is_never_told_as_a_conflict(graph: Graph, root: Path) -> None:
    """Its answer says contention, and then somebody else has the lock: forks and sidecar stay."""
    with omnigraph.open(root) as other, ExitStack() as held:
        locks: list[None] = []

        def be_second() -> None:
            locks.append(None)
            if len(locks) == 2:
                assert held.enter_context(internals(other).publisher.publish_lock("june"))

        with (
            failpoint("publish.after_update_ack_lost", "contention"),
            failpoint("publish.before_lock", "call", be_second),
            pytest.raises(RecoveryRequired, match="the publish landed"),
        ):
            graph.mutate(ADD_DAN, branch="june")
        assert len(sidecars(root)) == 1

    add(graph, "next")
    assert "dan" in names(graph, "Person", "june")
    assert sidecars(root) == ()
