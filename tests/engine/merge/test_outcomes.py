"""How a merge ends: what it commits, whom it names, what it does with the source."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.core.errors import BadRequest, BranchNotFound, MergeConflicts, PolicyDenied, ReadSetChanged
from omnigraph.core.failpoint import failpoint
from omnigraph.core.ids import new_ulid
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.history.branches import mint_ref
from omnigraph.history.commits import MAINTENANCE_ACTOR
from omnigraph.operations.merge.merge import DeleteRefusal, MergeOutcome, MergeResult
from omnigraph.policy.request import Action
from tests.engine.merge.world import ages, node, put, remove, set_age
from tests.support.books import fingerprint
from tests.support.engine import together
from tests.support.gates import NotingGate, install, note
from tests.support.seam import internals

FAST_FORWARD, MERGED = MergeOutcome.FAST_FORWARD, MergeOutcome.MERGED
UP_TO_DATE = MergeOutcome.ALREADY_UP_TO_DATE


def build_indices(graph: Graph, branch: str | None = None) -> None:
    graph.ensure_indices(branch=branch)


def heads(graph: Graph) -> tuple[str, str]:
    return graph.snapshot().head.graph_commit_id, graph.snapshot("june").head.graph_commit_id


@pytest.mark.case("engine", 233)
@pytest.mark.case("engine", 51)
def test_a_source_that_did_nothing_is_up_to_date_and_makes_no_commit(world: Graph) -> None:
    before = heads(world)

    assert world.merge("june").outcome is UP_TO_DATE
    set_age(world, None, "ann", 31)
    result = world.merge("june")

    assert (result.outcome, result.commit, result.rows_read) == (UP_TO_DATE, None, 0)
    assert heads(world)[1] == before[1]
    assert len(world.commits()) == len(world.commits(branch="june")) + 1


@pytest.mark.case("engine", 233)
@pytest.mark.case("engine", 60)
@pytest.mark.case("engine", 345)
def test_a_fast_forward_is_a_commit_with_two_parents_and_a_second_one_is_up_to_date(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    main, june = heads(world)

    result = world.merge("june", message="summer", actor="mira")

    assert (result.outcome, result.source, result.target) == (FAST_FORWARD, "june", "main")
    assert result.commit is not None
    assert (result.commit.parent_commit_id, result.commit.merged_parent_commit_id) == (main, june)
    assert (result.commit.actor_id, result.commit.message) == ("mira", "summer")
    assert world.commits()[0] == result.commit
    assert [commit.graph_commit_id for commit in world.commits()].count(result.commit.graph_commit_id) == 1
    assert ages(world)["ann"] == 31
    assert world.merge("june").outcome is UP_TO_DATE


@pytest.mark.case("engine", 233)
@pytest.mark.case("engine", 51)
def test_both_sides_are_brought_together(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    put(world, "june", node("Person", name="eve", age=1))
    set_age(world, None, "bob", 41)
    commits = len(world.commits())

    result = world.merge("june")

    assert result.outcome is MERGED
    assert ages(world) == {"ann": 31, "bob": 41, "cid": 30, "dan": 30, "eve": 1}
    assert len(world.commits()) == commits + 1
    assert ages(world, "june")["bob"] == 30
    assert world.merge("june").outcome is UP_TO_DATE
    assert world.merge("main", into="june").outcome is FAST_FORWARD
    assert ages(world, "june") == ages(world)


@pytest.mark.case("engine", 345)
def test_a_message_is_limited_and_left_out_when_not_given(world: Graph) -> None:
    set_age(world, "june", "ann", 31)

    with pytest.raises(BadRequest, match="more than 4096 bytes"):
        world.merge("june", message="x" * 4_097)
    result = world.merge("june")

    assert result.commit is not None
    assert result.commit.message is None


def test_a_branch_is_not_merged_into_itself_nor_from_nowhere(world: Graph) -> None:
    with pytest.raises(BadRequest, match="'june' cannot be merged into itself"):
        world.merge("june", into=" june ")
    with pytest.raises(BadRequest, match="'main' cannot be merged into itself"):
        world.merge("main")
    with pytest.raises(BranchNotFound, match="'july'"):
        world.merge("july")
    with pytest.raises(BranchNotFound, match="'july'"):
        world.merge("june", into="july")


@pytest.mark.case("engine", 241)
def test_what_the_source_does_meanwhile_is_not_merged(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    captured = heads(world)[1]

    with failpoint("branch_merge.post_capture", call=lambda: set_age(world, "june", "bob", 41)):
        result = world.merge("june")

    assert result.commit is not None
    assert result.commit.merged_parent_commit_id == captured
    assert ages(world) == {"ann": 31, "bob": 30, "cid": 30, "dan": 30}
    assert world.merge("june").commit is not None
    assert ages(world)["bob"] == 41


def test_a_target_that_moves_meanwhile_stops_the_merge(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    root = Path(world.uri)

    with (
        failpoint("branch_merge.post_capture", call=lambda: set_age(world, None, "bob", 41)),
        pytest.raises(ReadSetChanged, match="branch 'main' changed") as refused,
    ):
        world.merge("june")

    assert refused.value.recovery_operation_id is None
    assert ages(world) == {"ann": 30, "bob": 41, "cid": 30, "dan": 30}
    assert list((root / "__recovery").glob("*")) == []
    assert world.merge("june").outcome is MERGED


def test_a_source_that_another_process_deletes_meanwhile_is_not_found(world: Graph) -> None:
    put(world, "june", node("Person", name="eve"))
    set_age(world, "june", "ann", 31)

    def delete_elsewhere() -> None:
        """Do what a delete does in a process that does not share our gates."""
        branch = internals(world).parts.branches.require("june")
        entry = world.snapshot("june").entry("node:Person")
        internals(world).parts.branches.delete(branch)
        internals(world).parts.refs.drop(internals(world).parts.address(entry))

    with (
        failpoint("branch_merge.post_capture", call=delete_elsewhere),
        pytest.raises(BranchNotFound, match="'june'"),
    ):
        world.merge("june")

    assert ages(world)["ann"] == 30


@pytest.mark.case("engine", 352)
def test_maintenance_on_either_side_is_invisible(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    world.ensure_indices()
    assert world.commits()[0].actor_id == MAINTENANCE_ACTOR

    assert world.merge("june").outcome is FAST_FORWARD

    world.ensure_indices(branch="june")
    assert world.commits(branch="june")[0].actor_id == MAINTENANCE_ACTOR
    assert world.merge("june").outcome is UP_TO_DATE


@pytest.mark.case("engine", 352)
def test_maintenance_before_a_branch_was_made_is_invisible(world: Graph) -> None:
    set_age(world, None, "ann", 31)
    world.ensure_indices()
    assert world.commits()[0].actor_id == MAINTENANCE_ACTOR
    world.create_branch("july")
    set_age(world, "july", "bob", 41)

    assert world.merge("july").outcome is FAST_FORWARD
    assert world.merge("july").outcome is UP_TO_DATE


@pytest.mark.case("engine", 352)
def test_maintenance_of_the_target_during_the_merge_is_waited_out(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    set_age(world, None, "bob", 41)

    with failpoint("branch_merge.post_capture", call=lambda: build_indices(world)):
        result = world.merge("june")

    assert result.outcome is MERGED
    assert ages(world) == {"ann": 31, "bob": 41, "cid": 30, "dan": 30}


@pytest.mark.case("engine", 355)
def test_a_merge_builds_no_index(world: Graph) -> None:
    put(world, "june", node("Person", name="eve"))
    set_age(world, None, "bob", 41)

    world.merge("june")

    assert {commit.actor_id for commit in world.commits()} == {None}
    assert all(index.coverage == "missing" for table in world.index_status() for index in table.indexes)


@pytest.mark.case("engine", 234)
@pytest.mark.case("engine", 244)
def test_a_dry_run_tells_everything_and_writes_nothing(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    set_age(world, None, "bob", 41)
    root = Path(world.uri)
    before = fingerprint(root)

    clean = world.merge("june", dry_run=True, delete_branch=True)

    assert (clean.outcome, clean.commit, clean.conflicts, clean.branch_deleted) == (MERGED, None, (), False)
    assert fingerprint(root) == before
    set_age(world, None, "ann", 32)
    before = fingerprint(root)
    with open_graph(root, mode="ro") as reader:
        told = reader.merge("june", dry_run=True)
    with pytest.raises(MergeConflicts) as refused:
        world.merge("june")
    assert told.conflicts == refused.value.conflicts
    assert told.commit is None
    assert fingerprint(root) == before


def test_a_handle_for_reading_merges_nothing(world: Graph) -> None:
    set_age(world, "june", "ann", 31)

    with open_graph(world.uri, mode="ro") as reader, pytest.raises(BadRequest, match="read-only"):
        reader.merge("june")


@pytest.mark.case("engine", 359)
@pytest.mark.parametrize("is_dry", [False, True], ids=["merge", "dry run"])
def test_a_denied_merge_touches_nothing(world: Graph, is_dry: bool) -> None:
    set_age(world, "june", "ann", 31)
    before = fingerprint(Path(world.uri))
    note(world, is_open=False)

    with (
        failpoint("recovery.sidecar_list", "raise"),
        pytest.raises(PolicyDenied, match="'branch_merge' on branch 'main' for actor 'mira'"),
    ):
        world.merge("june", actor="mira", dry_run=is_dry)

    assert fingerprint(Path(world.uri)) == before


def test_two_merges_at_once_both_land(world: Graph) -> None:
    world.create_branch("july")
    set_age(world, "june", "ann", 31)
    set_age(world, "july", "bob", 41)

    results = together(lambda: world.merge("june"), lambda: world.merge("july"))

    outcomes = {result.outcome for result in results if isinstance(result, MergeResult)}
    assert outcomes == {FAST_FORWARD, MERGED}, results
    assert ages(world) == {"ann": 31, "bob": 41, "cid": 30, "dan": 30}
    first, second = world.commits(limit=2)
    assert first.parent_commit_id == second.graph_commit_id


# Deleting the source


@pytest.mark.case("engine", 243)
@pytest.mark.case("engine", 245)
def test_the_source_is_deleted_and_the_target_needs_nothing_of_it(world: Graph) -> None:
    put(world, "june", node("Person", name="eve", age=1))
    set_age(world, "june", "ann", 31)
    remove(world, "june", "Person", "cid")
    set_age(world, None, "bob", 41)

    result = world.merge("june", delete_branch=True)

    assert (result.branch_deleted, result.branch_delete_error) == (True, None)
    assert world.branches() == ["main"]
    assert not list(Path(world.uri).glob("*/*/tree/*"))
    with open_graph(world.uri) as again:
        assert ages(again) == {"ann": 31, "bob": 41, "dan": 30, "eve": 1}
        set_age(again, None, "eve", 2)


@pytest.mark.case("engine", 243)
def test_a_source_in_use_stays_and_the_merge_stands(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    world.create_branch("july", from_="june")

    result = world.merge("june", delete_branch=True)

    assert result.outcome is FAST_FORWARD
    assert not result.branch_deleted
    assert result.branch_delete_error is not None
    assert "'july' was created from it" in result.branch_delete_error
    assert ages(world)["ann"] == 31
    assert "june" in world.branches()


@pytest.mark.case("engine", 243)
def test_an_up_to_date_source_is_deleted_too_and_main_never_is(world: Graph) -> None:
    refused = world.merge("main", into="june", delete_branch=True)
    assert (refused.outcome, refused.branch_deleted) == (UP_TO_DATE, False)
    assert "main" in str(refused.branch_delete_error)

    result = world.merge("june", delete_branch=True)

    assert (result.outcome, result.branch_deleted) == (UP_TO_DATE, True)
    assert world.branches() == ["main"]


@pytest.mark.case("engine", 372)
@pytest.mark.case("engine", 243)
@pytest.mark.parametrize(
    "place", ["branch_merge.post_capture", "branch_merge.post_publish_pre_sidecar_delete"]
)
def test_a_source_with_commits_that_were_not_merged_stays(world: Graph, place: str) -> None:
    set_age(world, "june", "ann", 31)
    with open_graph(world.uri) as elsewhere:
        with failpoint(place, call=lambda: set_age(elsewhere, "june", "bob", 41)):
            result = world.merge("june", delete_branch=True)
        late = elsewhere.snapshot("june").head.graph_commit_id

    assert result.commit is not None
    assert (result.branch_deleted, result.branch_delete_refusal) == (False, DeleteRefusal.MOVED)
    assert f"'june' has moved on to commit {late}" in str(result.branch_delete_error)
    assert ages(world, "june")["bob"] == 41
    assert world.merge("june", delete_branch=True).branch_deleted
    assert ages(world) == {"ann": 31, "bob": 41, "cid": 30, "dan": 30}


@pytest.mark.case("engine", 372)
def test_a_source_that_has_only_been_kept_up_is_deleted(world: Graph) -> None:
    set_age(world, "june", "ann", 31)

    with failpoint("branch_merge.post_capture", call=lambda: build_indices(world, "june")):
        result = world.merge("june", delete_branch=True)

    assert result.branch_deleted


@pytest.mark.case("engine", 372)
@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_source_that_another_one_replaced_meanwhile_stays(world: Graph, is_made_again: bool) -> None:
    set_age(world, None, "ann", 31)

    def replace_it() -> None:
        """Do what processes do that do not share our gates."""
        parts = internals(world).parts
        gone = parts.branches.require("june")
        parts.branches.delete(gone)
        if is_made_again:
            made = replace(gone, ref=mint_ref("june", new_ulid()))
            parts.refs.create(parts.coordinator.address(), made.parent_manifest_version, made.ref)
            parts.branches.create(made)

    with failpoint("branch_merge.post_capture", call=replace_it):
        result = world.merge("june", delete_branch=True)

    assert (result.branch_deleted, result.branch_delete_refusal) == (False, DeleteRefusal.FAILED)
    assert "'june' not found" in str(result.branch_delete_error)
    assert ("june" in world.branches()) == is_made_again


@pytest.mark.case("engine", 372)
def test_nobody_publishes_between_the_last_look_and_the_deletion(world: Graph) -> None:
    obtained: list[bool] = []

    def try_to_publish() -> None:
        publisher = internals(world).publisher
        with publisher.publish_lock("june", wait_s=0) as is_held:
            obtained.append(is_held)

    with failpoint("branch_delete.post_look_pre_control", call=try_to_publish):
        result = world.merge("june", delete_branch=True)

    assert (result.branch_deleted, obtained) == (True, [False])


@pytest.mark.case("engine", 372)
def test_a_source_that_somebody_is_publishing_on_stays(world: Graph) -> None:
    internals(world).publisher._lock_wait_s = 0
    with open_graph(world.uri) as elsewhere, ExitStack() as held:
        publisher = internals(elsewhere).publisher

        def publish() -> None:
            assert held.enter_context(publisher.publish_lock("june"))

        with failpoint("branch_merge.post_capture", call=publish):
            result = world.merge("june", delete_branch=True)

    assert (result.branch_deleted, result.branch_delete_refusal) == (False, DeleteRefusal.IN_USE)
    assert "a writer is publishing on it" in str(result.branch_delete_error)


def test_whoever_may_merge_need_not_be_allowed_to_delete(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    install(world, NotingGate(lambda request: request.action is not Action.BRANCH_DELETE))

    result = world.merge("june", delete_branch=True, actor="mira")

    assert result.commit is not None
    assert "policy denied action 'branch_delete' on branch 'june'" in str(result.branch_delete_error)
    assert result.branch_delete_refusal is DeleteRefusal.FORBIDDEN
