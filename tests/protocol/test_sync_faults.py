"""Syncs that fail, versions that a power cut hollowed out, and opens that fail late."""

from pathlib import Path

import pytest

import omnigraph.graph.graph as graphs
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS, InjectedFault, failpoint
from omnigraph.storage.transactions import version_file
from tests.support.books import assert_reopening_changes_nothing, assert_settled, books, contents_of
from tests.support.protocol import BEFORE, WRITERS, Contents, give_up, sidecars, with_extra, write_everywhere
from tests.support.system import Script

AFTER = WRITERS["insert"].after
OPEN = "import sys, omnigraph.graph.graph as graphs; graphs.open(sys.argv[1])"


# Syncs


@pytest.mark.parametrize(
    ("place", "error", "visible", "recovered"),
    [
        ("durability.pre_staged_sync", InjectedFault, BEFORE, BEFORE),
        ("durability.pre_table_sync", RecoveryRequired, BEFORE, AFTER),
        ("durability.pre_manifest_sync", RecoveryRequired, AFTER, AFTER),
    ],
)
def test_a_sync_that_fails_is_the_error_of_the_write(
    place: str, error: type[Exception], visible: Contents, recovered: Contents, root: Path
) -> None:
    with graphs.open(root) as graph:
        with failpoint(place, "raise"), pytest.raises(error):
            WRITERS["insert"].run(graph)
        assert books(root).contents == visible
        assert len(sidecars(root)) == (0 if error is InjectedFault else 1)

        write_everywhere(graph)

    found = assert_settled(root, with_extra(recovered), recoveries=0 if error is InjectedFault else 1)
    assert {recovery.kind for recovery in found.recoveries} <= {"RolledForward"}
    assert_reopening_changes_nothing(root)


def test_process_durability_syncs_nothing(root: Path) -> None:
    places = ("durability.pre_staged_sync", "durability.pre_table_sync", "durability.pre_manifest_sync")
    with graphs.open(root, durability="process") as graph:
        for place in places:
            with failpoint(place, "raise"):
                write_everywhere(graph) if place == places[0] else graph.refresh()

    assert_settled(root, with_extra(BEFORE), recoveries=0)


# The handle that publishes


@pytest.mark.case("engine", 341)
def test_a_publish_takes_a_fresh_handle_when_its_own_grew_too_old(root: Path) -> None:
    """The clock goes on while the machine sleeps between the look at the manifest and the merge."""
    with graphs.open(root) as graph:
        publisher = graph._graph.publisher
        now = [0.0]
        sleeps = [publisher._horizon_s]
        publisher._boot_clock = lambda: now[0]

        def sleep() -> None:
            now[0] += sleeps.pop() if sleeps else 0

        attempts: list[float] = []
        with (
            failpoint("publish.post_open_pre_merge", "call", sleep),
            failpoint("publish.load_state_retryable_contention", "call", lambda: attempts.append(now[0])),
        ):
            WRITERS["insert"].run(graph)

    assert attempts == [0.0, publisher._horizon_s]
    assert_settled(root, AFTER, recoveries=0)


# Hollow versions


def hollow(root: Path, table_key: str) -> None:
    """Empty the newest version of a table, as a power cut leaves a file that was never synced."""
    found = books(root)
    with graphs.open(root, mode="ro") as graph:
        location = graph.snapshot().entry(table_key).location
    path = root / location / version_file(found.heads[table_key])
    assert found.heads[table_key] > found.pins[table_key], "an acknowledged version is synced"
    path.write_bytes(b"")


@pytest.mark.case("engine", 331)
@pytest.mark.parametrize("place", ["quarantine.pre_move", "quarantine.post_move_pre_audit"])
def test_a_quarantine_that_is_killed_is_taken_up_by_the_next_open(place: str, root: Path) -> None:
    give_up(root, "insert", "P2")
    hollow(root, "edge:Knows")
    with Script(OPEN, root, **{ENVIRONMENT: f"{place}=exit"}) as script:
        assert script.wait() == EXIT_STATUS

    with graphs.open(root) as graph:
        kinds = [recovery.kind for recovery in books(root).recoveries]
        assert sorted(kinds) == ["RolledBack", "VersionQuarantined"]
        assert contents_of(graph) == BEFORE
        write_everywhere(graph)

    assert len(books(root).recoveries) == 2
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 332)
@pytest.mark.parametrize(("point", "undone"), [("P2", ()), ("P3", ("node:Person",))])
def test_a_commit_that_was_quarantined_never_happened(
    point: str, undone: tuple[str, ...], root: Path
) -> None:
    give_up(root, "insert", point)
    hollow(root, "edge:Knows")

    with graphs.open(root) as graph:
        found = books(root)
        quarantined = next(row for row in found.recoveries if row.kind == "VersionQuarantined")
        rolled_back = next(row for row in found.recoveries if row.kind == "RolledBack")
        assert quarantined.outcomes == (("edge:Knows", 3, 2),)
        assert rolled_back.tables == undone
        assert (found.contents, found.heads) == (BEFORE, found.pins)
        write_everywhere(graph)

    assert books(root).contents == with_extra(BEFORE)
    assert_reopening_changes_nothing(root)


# Late failures of an open and a refresh


def test_an_open_that_fails_after_its_sweep_has_recovered_all_the_same(root: Path) -> None:
    give_up(root, "insert", "P3")
    with failpoint("open.before_schema_contract_read", "raise"), pytest.raises(InjectedFault):
        graphs.open(root)

    assert_settled(root, AFTER, recoveries=1)
    assert_reopening_changes_nothing(root)


def test_a_refresh_that_fails_leaves_the_handle_as_it_was(root: Path) -> None:
    with graphs.open(root) as graph:
        catalog = graph._graph.catalog
        with failpoint("refresh.before_schema_reload", "raise"), pytest.raises(InjectedFault):
            graph.refresh()

        assert graph._graph.catalog is catalog
        write_everywhere(graph)
    assert_settled(root, with_extra(BEFORE), recoveries=0)
