"""Index builds and upkeep of another process, before, during and after the commit of a write."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import ExpectedVersionMismatch
from omnigraph.core.failpoint import failpoint
from omnigraph.history.commits import MAINTENANCE_ACTOR
from tests.protocol.conftest import NewRoot
from tests.support.books import assert_settled, books, contents_of
from tests.support.forked import Forked
from tests.support.protocol import (
    BEFORE,
    WRITERS,
    go_on,
    paused_at,
    sidecars,
    stopped,
    with_extra,
    write_everywhere,
)

pytestmark = pytest.mark.usefixtures("no_syncs")

AGE_ANN = 'query touch() { update Person set { age: 31 } where name = "ann" }'
AGED = frozenset({("ann", 31), ("bob", 40), ("cid", None)})
AFTER_UPKEEP = {**BEFORE, "Person": AGED | {("dan", 50)}}
BUILD = """
import sys
import omnigraph
with omnigraph.open(sys.argv[1]) as graph:
    graph.ensure_indices()
    for text in sys.argv[2:]:
        graph.mutate(text)
"""
BUILD_OVER = """
import sys
import omnigraph
from omnigraph.core.errors import ExpectedVersionMismatch
from tests.support.protocol import paused_at, say, tell_and_wait
place = "ensure_indices.post_sidecar_pre_commit"
with omnigraph.open(sys.argv[1]) as graph, paused_at(place, "call", tell_and_wait):
    try:
        graph.ensure_indices()
    except ExpectedVersionMismatch as conflict:
        say(f"{conflict.table_key} {conflict.recovery_operation_id}")
"""

UPKEEP_IN_STEPS = """
import sys
from omnigraph.core.failpoint import failpoint
from tests.support.protocol import WRITERS, tell_and_wait
import omnigraph
with (
    omnigraph.open(sys.argv[1]) as graph,
    failpoint("upkeep.post_sidecar_pre_compact", "call", tell_and_wait),
    failpoint(sys.argv[2], "call", tell_and_wait),
):
    WRITERS["upkeep"].run(graph)
"""


def elsewhere(program: str, *arguments: object) -> None:
    """Run a program in a process of its own, to its end."""
    with Forked(program, *arguments) as script:
        assert script.wait() == 0


class Attempts:
    """Counts the attempts of a write, and does something while the first one is staged."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.made = 0
        self._meanwhile = meanwhile

    def __call__(self) -> None:
        self.made += 1
        if self.made == 1:
            self._meanwhile()


# After: what the write was prepared on is gone, and the rows are the same


@pytest.mark.case("engine", 351)
def test_an_update_over_a_finished_index_build_is_prepared_again(root: Path) -> None:
    attempts = Attempts(lambda: elsewhere(BUILD, root))

    with omnigraph.open(root) as graph, failpoint("write.post_stage_pre_gate", "call", attempts):
        result = graph.mutate(AGE_ANN)

    assert (attempts.made, result.affected_nodes) == (2, 1)
    found = assert_settled(root, {**BEFORE, "Person": AGED}, recoveries=0)
    assert found.commits == 4


@pytest.mark.case("engine", 351)
def test_an_update_over_finished_upkeep_is_prepared_again(root_for: NewRoot) -> None:
    root = root_for("upkeep")
    with stopped(root, "upkeep", "upkeep.post_write_pre_plan=") as script, omnigraph.open(root) as graph:
        attempts = Attempts(lambda: go_on(script))

        with failpoint("write.post_stage_pre_gate", "call", attempts):
            graph.mutate(AGE_ANN)

        authors = [commit.actor_id for commit in graph.commits(limit=3)]
    assert attempts.made == 2
    assert authors == [None, MAINTENANCE_ACTOR, "writer"]
    assert_settled(root, AFTER_UPKEEP, recoveries=0)


@pytest.mark.case("engine", 351)
def test_a_real_commit_among_the_maintenance_is_a_conflict(root: Path) -> None:
    real = 'query touch() { update Person set { age: 99 } where name = "bob" }'
    attempts = Attempts(lambda: elsewhere(BUILD, root, real))

    with (
        omnigraph.open(root) as graph,
        failpoint("write.post_stage_pre_gate", "call", attempts),
        pytest.raises(ExpectedVersionMismatch) as caught,
    ):
        graph.mutate(AGE_ANN, retry=0)

    assert (attempts.made, caught.value.table_key) == (1, "node:Person")
    assert caught.value.recovery_operation_id is None
    aged_bob = frozenset({("ann", 30), ("bob", 99), ("cid", None)})
    assert_settled(root, {**BEFORE, "Person": aged_bob}, recoveries=0)


# During: HEAD has moved, the publish has not come


@pytest.mark.case("engine", 351)
@pytest.mark.parametrize(
    ("writer", "point"),
    [
        ("ensure_indices", "ensure_indices.post_phase_b_pre_manifest_commit="),
        ("upkeep", "upkeep.post_phase_b_pre_manifest_commit="),
    ],
)
def test_an_update_waits_for_maintenance_that_is_at_work(writer: str, point: str, root_for: NewRoot) -> None:
    root = root_for(writer)
    staged = threading.Event()
    attempts = Attempts(staged.set)
    with stopped(root, writer, point) as script, omnigraph.open(root) as graph:

        def let_it_finish() -> None:
            assert staged.wait(60)
            go_on(script)

        helper = threading.Thread(target=let_it_finish)
        helper.start()
        with failpoint("write.post_stage_pre_gate", "call", attempts):
            graph.mutate(AGE_ANN)
        helper.join()

    assert attempts.made == 2
    assert_settled(root, AFTER_UPKEEP if writer == "upkeep" else {**BEFORE, "Person": AGED}, recoveries=0)


# Over: an index lands on rows that nobody has published


@pytest.mark.case("engine", 362)
def test_an_index_that_lands_over_unpublished_rows_does_not_publish_them(root: Path) -> None:
    writer, reader = omnigraph.open(root), omnigraph.open(root)
    seen: list[str] = []
    with Forked(BUILD_OVER, root) as build:
        assert build.read_line() == "paused"

        def let_the_index_land() -> None:
            build.write_line()
            seen.append(build.read_line())
            assert build.wait() == 0
            assert contents_of(reader) == BEFORE
            reader.refresh()  # an entry heals what it can, and still shows nothing of the writer
            assert contents_of(reader) == BEFORE

        with paused_at("write.post_finalize_pre_publisher", "call", let_the_index_land):
            WRITERS["insert"].run(writer)

    assert contents_of(reader) == WRITERS["insert"].after
    (sidecar,) = sidecars(root)
    assert seen == [f"edge:Knows {sidecar.stem}"]
    assert books(root).recoveries == ()

    writer.mutate('query touch() { update Company set { city: "Graz" } where name = "acme" }')

    companies = frozenset({("acme", "Graz"), ("ibex", None)})
    found = assert_settled(root, {**WRITERS["insert"].after, "Company": companies}, recoveries=1)
    (recovery,) = found.recoveries
    assert (recovery.kind, recovery.writer_kind) == ("RolledForward", "EnsureIndices")
    assert recovery.tables == ("edge:Knows",)
    indexes = {table.table_key: table.indexes for table in writer.index_status()}
    assert {index.coverage for index in indexes["edge:Knows"]} <= {"indexed", "degraded"}


@pytest.mark.case("engine", 321)
def test_a_compaction_over_unpublished_rows_of_the_dead_is_undone_with_them(root_for: NewRoot) -> None:
    root = root_for("upkeep")
    with Forked(UPKEEP_IN_STEPS, root, "upkeep.post_compact_pre_index") as upkeep:
        assert upkeep.read_line() == "paused"  # its sidecar is written, nothing has moved
        with stopped(root, "update", "write.post_finalize_pre_publisher=") as writer:
            upkeep.write_line()
            assert upkeep.read_line() == "paused"  # its compaction lies over the writer's commit
            writer.kill()
        upkeep.kill()
    assert len(sidecars(root)) == 2
    before = books(root)
    assert before.contents == WRITERS["upkeep"].after
    assert before.heads["node:Person"] > before.pins["node:Person"] + 1

    omnigraph.open(root).close()

    found = assert_settled(root, WRITERS["upkeep"].after, recoveries=2)
    assert {recovery.kind for recovery in found.recoveries} == {"RolledBack"}
    undone = [table for recovery in found.recoveries for table in recovery.tables]
    assert undone.count("node:Person") == 1
    with omnigraph.open(root) as graph:
        write_everywhere(graph)
    assert_settled(root, with_extra(WRITERS["upkeep"].after), recoveries=2)


# A writer of rows that commits between upkeep's last look and its compaction

_UPDATED = {
    "Person": frozenset({("ann", 31), ("bob", 40), ("cid", None), ("dan", 50)}),
    "Company": frozenset({("acme", "Graz"), ("ibex", None)}),
}


@pytest.mark.case("engine", 367)
@pytest.mark.parametrize("finishes", [True, False], ids=["finishes", "dies"])
def test_upkeep_never_publishes_what_another_writer_has_not(finishes: bool, root_for: NewRoot) -> None:
    root = root_for("upkeep")
    before = {**BEFORE, "Person": BEFORE["Person"] | {("dan", 50)}}
    with Forked(UPKEEP_IN_STEPS, root, "upkeep.post_phase_b_pre_manifest_commit") as upkeep:
        assert upkeep.read_line() == "paused"
        with stopped(root, "update", "write.post_finalize_pre_publisher=") as writer:
            upkeep.write_line()
            assert upkeep.wait() == 0, "upkeep that cannot publish fails no write"

            assert books(root).contents == before, "half of a write that is not done is visible"

            if finishes:
                go_on(writer)
            else:
                writer.kill()

    after = {**before, **_UPDATED} if finishes else before
    with omnigraph.open(root) as graph:
        assert contents_of(graph) == after
        write_everywhere(graph)
        assert contents_of(graph) == with_extra(after)
    assert not sidecars(root)
