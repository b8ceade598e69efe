"""Recovery that dies, meets a rival, or has several sidecars to go through."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.commit.changes import Expectation, LineageIntent, ManifestChange, UpdateTable
from omnigraph.commit.recovery.audit import record
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.commit.sidecar import Outcome, Sidecar
from omnigraph.commit.sidecar_reader import read_sidecar
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS, InjectedFault, failpoint
from omnigraph.core.ids import new_ulid
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import RECOVERY_ACTOR
from omnigraph.history.identity import MAIN, MAIN_BRANCH
from omnigraph.history.manifest_rows import PublishedPin
from tests.support.books import assert_reopening_changes_nothing, assert_settled, books
from tests.support.forked import Forked
from tests.support.protocol import BEFORE, WRITERS, give_up, killed, sidecars, with_extra, write_everywhere
from tests.support.seam import internals

OPEN = "import sys, omnigraph; omnigraph.open(sys.argv[1])"
STEPS_BACK = (
    "recovery.post_plan_pre_undo",
    "recovery.post_table_undo_pre_publish",
    "recovery.post_rollback_publish_pre_audit",
    "recovery.record_audit",
    "recovery.post_audit_pre_delete",
)
STEPS_FORWARD = (
    "recovery.before_roll_forward_publish",
    "recovery.record_audit",
    "recovery.post_audit_pre_delete",
)
AFTER_INSERT = WRITERS["insert"].after


# Recovery that dies


@pytest.mark.case("engine", 183)
@pytest.mark.parametrize("step", STEPS_BACK)
@pytest.mark.parametrize("writer", ["delete", "overwrite"])
def test_a_rollback_that_is_killed_is_taken_up_by_the_next_open(writer: str, step: str, root: Path) -> None:
    give_up(root, writer, "P2")
    _open_killed_at(root, step)

    with omnigraph.open(root) as graph:
        found = assert_settled(root, BEFORE, recoveries=1)
        (first,) = WRITERS[writer].tables[:1]
        assert found.recoveries[0].kind == "RolledBack"
        assert found.recoveries[0].outcomes == ((first, 3, 2),)  # the plan of the first pass
        write_everywhere(graph)

    assert_settled(root, with_extra(BEFORE), recoveries=1)
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 183)
@pytest.mark.parametrize("step", STEPS_FORWARD)
def test_a_roll_forward_that_is_killed_is_taken_up_by_the_next_open(step: str, root: Path) -> None:
    give_up(root, "insert", "P3")
    _open_killed_at(root, step)

    with omnigraph.open(root) as graph:
        found = assert_settled(root, AFTER_INSERT, recoveries=1)
        assert found.recoveries[0].kind == "RolledForward"
        assert found.recoveries[0].outcomes == (("edge:Knows", 2, 3), ("node:Person", 2, 3))
        write_everywhere(graph)

    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 183)
@pytest.mark.parametrize(("writer", "steps"), [("delete", STEPS_BACK), ("insert", STEPS_FORWARD)])
def test_a_recovery_that_fails_at_every_step_in_turn_converges(
    writer: str, steps: tuple[str, ...], root: Path
) -> None:
    give_up(root, writer, "P2" if writer == "delete" else "P3")
    graph = omnigraph.open(root, mode="ro")
    for step in steps:
        with failpoint(step, "raise"), pytest.raises(InjectedFault):
            omnigraph.open(root)
        assert graph.recoveries() == [] or step == "recovery.post_audit_pre_delete"

    omnigraph.open(root).close()

    assert_settled(root, BEFORE if writer == "delete" else AFTER_INSERT, recoveries=1)
    assert_reopening_changes_nothing(root)


# Several sidecars


@pytest.mark.case("engine", 184)
def test_two_sidecars_of_one_table_are_processed_in_time_order(root: Path) -> None:
    """The second moved the table on top of what the first had published: only a fresh snapshot shows that."""
    killed(root, "insert", WRITERS["insert"].points["P5"])
    with omnigraph.open(root, mode="ro") as reader:
        assert reader.snapshot().entry("node:Person").version == 3
    _build_indices_killed(root)
    first, second = sidecars(root)

    with omnigraph.open(root) as graph:
        write_everywhere(graph)
        rows = graph.recoveries()

    found = assert_settled(root, with_extra(AFTER_INSERT), recoveries=2)
    assert [row.operation_id for row in reversed(rows)] == [first.stem, second.stem]
    assert [row.writer_kind for row in found.recoveries] == ["Mutation", "EnsureIndices"]
    assert [row.kind for row in found.recoveries] == ["RolledForward", "RolledForward"]
    assert ("node:Person", 2, 3) in found.recoveries[0].outcomes
    assert ("node:Person", 3, 4) in found.recoveries[1].outcomes
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 184)
def test_an_unmoved_sidecar_before_one_that_moved_its_table_does_not_lose_rows(root: Path) -> None:
    give_up(root, "insert", "P1")
    _build_indices_killed(root)

    with omnigraph.open(root) as graph:
        write_everywhere(graph)

    found = assert_settled(root, with_extra(BEFORE), recoveries=2)
    assert [row.writer_kind for row in found.recoveries] == ["Mutation", "EnsureIndices"]
    assert_reopening_changes_nothing(root)


# Rivals


@pytest.mark.case("engine", 202)
@pytest.mark.parametrize("is_audited", [True, False], ids=["rival finished", "rival published"])
def test_a_roll_forward_that_a_rival_has_done_is_counted_once(is_audited: bool, root: Path) -> None:
    give_up(root, "insert", "P3")
    (path,) = sidecars(root)
    sidecar = _read(path)
    rival = omnigraph.open(root, mode="ro")
    published: list[str] = []

    def win() -> None:
        published.append(_publish_heads(rival, sidecar))
        if is_audited:
            outcomes = [Outcome(table.table_key, 2, 3) for table in sidecar.tables]
            record(internals(rival).parts, sidecar, RecoveryKind.ROLLED_FORWARD, published[0], outcomes)
            path.unlink()

    with failpoint("recovery.before_roll_forward_publish", "call", win):
        omnigraph.open(root).close()

    found = assert_settled(root, AFTER_INSERT, recoveries=1)
    assert found.recoveries[0].commit_id == published[0]
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 203)
def test_a_roll_forward_that_a_rival_has_half_done_is_left_for_the_next_open(root: Path) -> None:
    give_up(root, "ensure_indices", "P3")
    (path,) = sidecars(root)
    sidecar = _read(path)
    rival = omnigraph.open(root, mode="ro")

    def win_one() -> None:
        _publish_heads(rival, sidecar, only="node:Company", actor="rival")

    with failpoint("recovery.before_roll_forward_publish", "call", win_one):
        omnigraph.open(root).close()
    found = books(root)
    assert (found.recoveries, found.recovery_commits) == ((), ())
    assert sidecars(root) == (path,)

    with omnigraph.open(root) as graph:
        found = assert_settled(root, BEFORE, recoveries=1)
        assert found.recoveries[0].kind == "RolledForward"
        write_everywhere(graph)
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 204)
def test_the_audit_names_the_recovery_and_not_the_commit_that_followed_it(root: Path) -> None:
    writer = omnigraph.open(root)
    give_up(root, "insert", "P3")
    (path,) = sidecars(root)
    sidecar = _read(path)
    published: list[str] = []

    def win_and_go_on() -> None:
        published.append(_publish_heads(writer, sidecar))
        writer.mutate('query touch() { update Company set { city: "Graz" } where name = "acme" }')

    with failpoint("recovery.before_roll_forward_publish", "call", win_and_go_on):
        omnigraph.open(root).close()

    changed = {**AFTER_INSERT, "Company": frozenset({("acme", "Graz"), ("ibex", None)})}
    found = assert_settled(root, changed, recoveries=1)
    assert found.recoveries[0].commit_id == published[0]
    with omnigraph.open(root, mode="ro") as reader:
        assert reader.commits(limit=1)[0].graph_commit_id != published[0]


def _open_killed_at(root: Path, step: str) -> None:
    with Forked(OPEN, root, **{ENVIRONMENT: f"{step}=exit"}) as script:
        assert script.wait() == EXIT_STATUS


def _build_indices_killed(root: Path) -> None:
    """Build an index in a process that dies before it publishes; a read-only open has healed nothing."""
    program = """
import sys
from omnigraph.operations.ensure_indices import ensure_indices
from omnigraph.operations.open import open_graph
graph = open_graph(sys.argv[1], is_writable=False)
graph.is_writable = True
ensure_indices(graph, tables=["node:Person"])
"""
    place = "ensure_indices.post_phase_b_pre_manifest_commit=exit"
    with Forked(program, root, **{ENVIRONMENT: place}) as script:
        assert script.wait() == EXIT_STATUS


def _read(path: Path) -> Sidecar:
    return read_sidecar(f"{path.parent.name}/{path.name}", path.read_text())


def _publish_heads(
    graph: Graph, sidecar: Sidecar, *, only: str | None = None, actor: str = RECOVERY_ACTOR
) -> str:
    """Publish the tables of a sidecar where they are, as a rival would, and return the commit's id."""
    parts = internals(graph).parts
    changes: list[ManifestChange] = []
    expected = {}
    for table in sidecar.tables:
        if only in {None, table.table_key}:
            handle = parts.store.open_head(parts.address_of(table.table_path, table.ref))
            pin = PublishedPin(handle.version, None, handle.row_count, handle.transaction_uuid, MAIN)
            changes.append(UpdateTable(table.identity, table.table_key, pin))
            expected[table.identity] = Expectation(table.table_key, table.expected_version)
    lineage = LineageIntent(new_ulid(), actor, parts.clock())
    internals(graph).publisher.publish(MAIN_BRANCH, changes, expected, lineage)
    return lineage.graph_commit_id
