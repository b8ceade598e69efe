"""What a dead writer was validated against still counts when recovery publishes for it, or does not."""

from dataclasses import replace
from pathlib import Path

import lance
import pytest

import omnigraph
from omnigraph.commit.write import refuse_drift
from omnigraph.core.errors import InvariantViolation, ReadSetChanged, RecoveryRequired
from omnigraph.core.failpoint import InjectedFault
from omnigraph.history.identity import MAIN_BRANCH
from tests.support.books import assert_reopening_changes_nothing, assert_settled
from tests.support.engine import foreign
from tests.support.protocol import (
    BEFORE,
    TABLE_KEYS,
    give_up,
    paused_at,
    sidecars,
    with_extra,
    write_everywhere,
)
from tests.support.seam import internals

HIRE = 'query hire() { insert WorksAt { from: "cid", to: "ibex" } }'
CLOSE = 'query close() { delete Company where name = "ibex" }'
WITHOUT_IBEX = {**BEFORE, "Company": frozenset({("acme", "Bonn")})}
COMMITTED = "write.post_finalize_pre_publisher"


def test_an_edge_does_not_come_back_to_a_node_that_was_deleted_meanwhile(root: Path) -> None:
    """The writer of the edge dies before it publishes; the company it read is gone when recovery comes."""
    writer, rival = omnigraph.open(root), foreign(omnigraph.open(root))

    def close_and_die() -> None:
        rival.mutate(CLOSE)
        raise InjectedFault(COMMITTED)

    with paused_at(COMMITTED, "call", close_and_die), pytest.raises(RecoveryRequired):
        writer.mutate(HIRE)
    assert len(sidecars(root)) == 1

    omnigraph.open(root).close()

    found = assert_settled(root, WITHOUT_IBEX, recoveries=1)
    assert (found.recoveries[0].kind, found.recoveries[0].tables) == ("RolledBack", ("edge:WorksAt",))
    write_everywhere(rival)
    assert_settled(root, with_extra(WITHOUT_IBEX), recoveries=1)
    omnigraph.open(root).close()  # notes that the newest version is synced, which the rival could not
    assert_reopening_changes_nothing(root)


def test_a_table_behind_its_published_version_is_a_loud_error(root: Path) -> None:
    with omnigraph.open(root) as graph:
        entry = graph.snapshot().entry("node:Person")
        ahead = replace(entry, pin=replace(entry.pin, version=entry.version + 1))
        parts = internals(graph).parts
        head = parts.store.latest_version(parts.address(entry))

        refuse_drift(parts, entry, head, MAIN_BRANCH)
        with pytest.raises(InvariantViolation, match="behind its published version"):
            refuse_drift(parts, ahead, head, MAIN_BRANCH)


def test_a_table_that_was_only_read_and_moved_ends_the_write_before_any_effect(root: Path) -> None:
    """Found at the publish instead, the edge would be committed and would have to be undone."""
    writer, rival = omnigraph.open(root), omnigraph.open(root)

    def close() -> None:
        rival.mutate(CLOSE)

    with (
        paused_at("write.post_stage_pre_gate", "call", close),
        pytest.raises(ReadSetChanged) as caught,
    ):
        writer.mutate(HIRE, retry=0)

    assert caught.value.recovery_operation_id is None
    assert_settled(root, WITHOUT_IBEX, recoveries=0)


def test_a_write_holds_the_queues_of_the_tables_that_it_reads(root: Path) -> None:
    free: dict[str, bool] = {}

    with omnigraph.open(root) as graph:

        def look() -> None:
            for table_key in TABLE_KEYS:
                with internals(graph).parts.queues.try_one((table_key, "main")) as is_held:
                    free[table_key] = is_held

        with paused_at("write.post_gate_pre_sidecar", "call", look):
            graph.mutate(HIRE)

    assert free == {"edge:Knows": True, "edge:WorksAt": False, "node:Company": False, "node:Person": False}


@pytest.mark.parametrize("writer", ["insert", "ensure_indices"])
def test_commits_of_somebody_else_are_not_published_for_a_dead_writer(writer: str, root: Path) -> None:
    """Each table is where the writer would have put it, and by its number alone nobody could tell."""
    give_up(root, writer, "P1")
    with omnigraph.open(root, mode="ro") as graph:
        locations = [graph.snapshot().entry(key).location for key in ("edge:Knows", "node:Person")]
    for location in locations:
        lance.dataset(str(root / location)).delete("id IS NOT NULL")

    omnigraph.open(root).close()

    found = assert_settled(root, BEFORE, recoveries=1)
    assert found.recoveries[0].kind == "RolledBack"
