"""A merge looks at its tables like every other writer: before its first effect, and at its publish."""

import shutil
from pathlib import Path

import lance
import pytest

import omnigraph
from omnigraph.commit.schema_lock import schema_lock
from omnigraph.core.errors import ConflictError, DriftNeedsRepair, SchemaApplyInProgress
from omnigraph.core.failpoint import InjectedFault, failpoint
from tests.support.books import assert_reopening_changes_nothing, assert_settled, books
from tests.support.engine import foreign
from tests.support.protocol import BEFORE, give_up, paused_at
from tests.support.seam import internals

HIRE = 'query hire() { insert WorksAt { from: "cid", to: "ibex" } }'


@pytest.fixture
def branched(branched_template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(branched_template, tmp_path / "branched"))


def test_a_merge_over_drift_is_refused_before_any_effect(branched: Path) -> None:
    with omnigraph.open(branched) as graph:
        person = graph.snapshot().entry("node:Person")
        lance.dataset(str(branched / person.location)).delete("id = 'bob'")
        heads = books(branched).heads

        with pytest.raises(DriftNeedsRepair) as caught:
            graph.merge("june")

    assert caught.value.table_key == "node:Person"
    assert books(branched).heads == heads
    assert books(branched).files == ()


def test_a_merge_holds_the_queues_of_every_table_of_its_target(branched: Path) -> None:
    free: set[str] = set()

    with omnigraph.open(branched) as graph:
        keys = graph.snapshot().entries

        def look() -> None:
            for table_key in keys:
                with internals(graph).parts.queues.try_one((table_key, "main")) as is_held:
                    free.update({table_key} if is_held else ())

        with paused_at("branch_merge.post_sidecar_pre_commit", "call", look):
            graph.merge("june")

    assert len(keys) > 2
    assert free == set()


def test_a_merge_that_deletes_a_node_expects_the_edges_that_may_be_at_it(branched: Path) -> None:
    """The edge is published by another process while the merge, which removes its node, is committed."""
    with omnigraph.open(branched) as graph:
        rival = foreign(graph)

        def hire() -> None:
            rival.mutate(HIRE)

        with (
            paused_at("branch_merge.post_phase_b_pre_manifest_commit", "call", hire),
            pytest.raises(ConflictError) as caught,
        ):
            graph.merge("june")
    assert caught.value.recovery_operation_id is not None

    omnigraph.open(branched).close()

    hired = {**BEFORE, "WorksAt": BEFORE["WorksAt"] | {("cid", "ibex")}}
    assert_settled(branched, hired, recoveries=1)


def test_a_recovery_that_was_published_is_not_published_again(root: Path) -> None:
    """Its commit would be written over, with itself for a parent."""
    give_up(root, "delete", "P2")
    with failpoint("recovery.post_rollback_publish_pre_audit", "raise"), pytest.raises(InjectedFault):
        omnigraph.open(root)
    with omnigraph.open(root, mode="ro") as graph:
        (recovered, before), manifest = graph.commits(limit=2), graph.snapshot().manifest_version
    assert recovered.parent_commit_id == before.graph_commit_id

    omnigraph.open(root).close()

    with omnigraph.open(root, mode="ro") as graph:
        assert graph.commits(limit=1)[0] == recovered
        assert graph.snapshot().manifest_version == manifest
    found = assert_settled(root, BEFORE, recoveries=1)
    assert found.recoveries[0].tables, "the audit tells of the first pass, which undid something"
    assert_reopening_changes_nothing(root)


@pytest.mark.parametrize("verb", ["create", "delete"])
def test_branches_wait_for_a_schema_change_that_wants_to_be_alone(branched: Path, verb: str) -> None:
    with omnigraph.open(branched) as graph:
        with schema_lock(internals(graph).parts, exclusive=True), pytest.raises(SchemaApplyInProgress):
            graph.create_branch("july") if verb == "create" else graph.delete_branch("june")

        assert graph.branches() == ["june", "main"]
        graph.delete_branch("june")
