"""Places of the failpoint catalogue whose meaning the crash matrix does not show."""

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.commit.publish import FRAGMENTS_MAX
from omnigraph.core.errors import RecoveryRequired, StorageError
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS, InjectedFault, failpoint
from tests.protocol.conftest import NewRoot
from tests.support.books import (
    assert_reopening_changes_nothing,
    assert_settled,
    books,
    contents_of,
    fingerprint,
)
from tests.support.forked import Forked
from tests.support.protocol import BEFORE, WRITERS, paused_at, sidecars, stopped, with_extra, write_everywhere
from tests.support.seam import internals

pytestmark = pytest.mark.usefixtures("no_syncs")

AFTER_INSERT = WRITERS["insert"].after
LOAD = """
import sys
import omnigraph
omnigraph.open(sys.argv[1]).load(b'{"type": "Person", "data": {"name": "dan", "age": 50}}\\n', "append")
"""
TOUCH = """
import sys
import omnigraph
graph = omnigraph.open(sys.argv[1], upkeep=False)
graph.mutate('query t() { update Company set { city: "Graz" } where name = "acme" }')
"""


def test_a_cascade_that_fails_half_way_moves_no_table(root: Path) -> None:
    with omnigraph.open(root) as graph:
        before = books(root).heads
        with failpoint("mutation.delete_node_pre_primary_delete", "raise"), pytest.raises(InjectedFault):
            WRITERS["delete"].run(graph)

        assert books(root).heads == before
        assert_settled(root, BEFORE, recoveries=0)
        WRITERS["delete"].run(graph)
    assert_settled(root, WRITERS["delete"].after, recoveries=0)


def test_a_load_that_is_killed_before_its_indexes_has_landed(root: Path) -> None:
    with Forked(LOAD, root, **{ENVIRONMENT: "load.post_publish_pre_index=exit"}) as script:
        assert script.wait() == EXIT_STATUS
    loaded = {**BEFORE, "Person": BEFORE["Person"] | {("dan", 50)}}
    assert_settled(root, loaded, recoveries=0)

    with omnigraph.open(root) as graph:
        assert {index.coverage for table in graph.index_status() for index in table.indexes} == {"missing"}
        assert graph.ensure_indices().commit is not None
    assert_settled(root, loaded, recoveries=0)


def test_a_kill_before_the_manifest_is_folded_leaves_that_to_the_next_publish(root: Path) -> None:
    with omnigraph.open(root, upkeep=False) as graph:
        fragments = len(internals(graph).state().fragments)
        with failpoint("publish.before_auto_compaction", "raise"):
            for age in range(FRAGMENTS_MAX - fragments - 1):
                graph.mutate(f'query t() {{ update Person set {{ age: {age} }} where name = "ann" }}')
        commits = len(graph.commits())
        assert len(internals(graph).state().fragments) == FRAGMENTS_MAX - 1

        with Forked(TOUCH, root, **{ENVIRONMENT: "publish.before_auto_compaction=exit"}) as script:
            assert script.wait() == EXIT_STATUS

        assert len(graph.commits()) == commits + 1
        assert contents_of(graph)["Company"] == frozenset({("acme", "Graz"), ("ibex", None)})
        assert len(internals(graph).state().fragments) == FRAGMENTS_MAX
        graph.mutate('query t() { update Person set { age: 30 } where name = "ann" }')
        # The killed writer was finished by a commit, which folded all; the write after it added one fragment.
        assert len(internals(graph).state().fragments) == 2
    assert len(books(root).recoveries) == 1


CONFIRMING = "branch_merge.post_phase_b_pre_confirm"
CONFIRMED = "branch_merge.post_phase_b_pre_manifest_commit"


@pytest.mark.case("engine", 208)
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_merge_that_confirms_between_the_listing_and_the_lock(root_for: NewRoot, is_killed: bool) -> None:
    """The healer reads the sidecar under the lock: what it listed had confirmed nothing yet."""
    root = root_for("branch_merge")
    environment = {ENVIRONMENT: f"{CONFIRMED}=exit"} if is_killed else {}
    with (
        stopped(root, "branch_merge", f"{CONFIRMING}=", **environment) as script,
        omnigraph.open(root) as graph,
    ):
        (sidecar,) = sidecars(root)
        assert {table["confirmed_version"] for table in tables_of(sidecar)} == {None}
        confirmed: list[list[dict[str, Any]]] = []

        def confirm() -> None:
            script.write_line()
            if not is_killed:
                assert script.read_line() == "done"
            assert script.wait() == (EXIT_STATUS if is_killed else 0)
            confirmed.extend(tables_of(path) for path in sidecars(root))

        with paused_at("recovery.post_list_pre_lock", "call", confirm):
            graph.refresh()

        assert contents_of(graph) == WRITERS["branch_merge"].after
    found = assert_settled(root, WRITERS["branch_merge"].after, recoveries=int(is_killed))
    if is_killed:
        (tables,) = confirmed
        assert found.recoveries[0].kind == "RolledForward"
        published = {table["table_key"]: table["confirmed_version"] for table in tables}
        assert {key: found.pins[key] for key in published} == published
    assert_reopening_changes_nothing(root)


def tables_of(sidecar: Path) -> list[dict[str, Any]]:
    """Return the tables that a sidecar names."""
    tables: list[dict[str, Any]] = json.loads(sidecar.read_text())["tables"]
    return tables


@pytest.mark.case("engine", 208)
def test_a_writer_that_finishes_between_the_listing_and_the_lock_is_not_recovered(root: Path) -> None:
    with (
        stopped(root, "insert", "write.post_finalize_pre_publisher=") as script,
        omnigraph.open(root) as graph,
    ):

        def finish() -> None:
            script.write_line()
            assert script.read_line() == "done"
            assert script.wait() == 0

        with paused_at("recovery.post_list_pre_lock", "call", finish):
            graph.refresh()

        assert contents_of(graph) == AFTER_INSERT
        assert books(root).files == ()
        write_everywhere(graph)
    assert_settled(root, with_extra(AFTER_INSERT), recoveries=0)
    assert_reopening_changes_nothing(root)


def test_a_first_commit_that_fails_in_doubt_keeps_its_sidecar(root: Path) -> None:
    """Only a conflict proves that nothing landed: whatever else goes wrong is recovery's to judge."""
    with omnigraph.open(root) as graph:
        before = fingerprint(root / "__manifest")
        stager = internals(graph).parts.stager
        commit_staged = stager.commit_staged

        def fail(*_arguments: object, **_named: object) -> None:
            raise StorageError("no answer", kind="unknown")

        stager.commit_staged = fail  # type: ignore[method-assign, assignment]
        with pytest.raises(RecoveryRequired, match="no answer") as caught:
            WRITERS["insert"].run(graph)
        stager.commit_staged = commit_staged  # type: ignore[method-assign]

        (sidecar,) = sidecars(root)
        assert sidecar.stem == caught.value.operation_id
        assert fingerprint(root / "__manifest") == before
        write_everywhere(graph)
    found = assert_settled(root, with_extra(BEFORE), recoveries=1)
    assert (found.recoveries[0].kind, found.recoveries[0].outcomes) == ("RolledBack", ())


@pytest.mark.case("engine", 906)
def test_a_write_in_doubt_stays_in_doubt_when_nobody_can_look_at_what_it_left(root: Path) -> None:
    """The store that did not answer the commit answers no question about it either."""

    def unanswered() -> None:
        raise StorageError("no answer to that either", kind="transient")

    with omnigraph.open(root) as graph:
        stager = internals(graph).parts.stager

        def fail(*_arguments: object, **_named: object) -> None:
            raise StorageError("no answer", kind="unknown")

        commit_staged, stager.commit_staged = stager.commit_staged, fail  # type: ignore[method-assign, assignment]
        with (
            failpoint("recovery.sidecar_read", call=unanswered),
            pytest.raises(RecoveryRequired, match="no answer") as caught,
        ):
            WRITERS["insert"].run(graph)
        stager.commit_staged = commit_staged  # type: ignore[method-assign]

        (sidecar,) = sidecars(root)
        assert sidecar.stem == caught.value.operation_id
        assert caught.value.__notes__ == [
            "what is left of it could not be looked at: no answer to that either"
        ]
