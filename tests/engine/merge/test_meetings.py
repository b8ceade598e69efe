"""Histories that meet in other places than where two branches parted: hotfixes, criss-crosses, chains."""

from pathlib import Path

import pytest

from omnigraph.core.errors import AmbiguousMergeBase, MergeConflicts, RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import RECOVERY_ACTOR
from omnigraph.operations.merge.merge import MergeOutcome
from tests.engine.merge.world import ages, edge, kinds, node, put, remove, rows, set_age
from tests.support.seam import internals

EVE = node("Person", name="eve", age=1)
START = {"ann": 30, "bob": 30, "cid": 30, "dan": 30}


def merge_all(graph: Graph, *pairs: tuple[str, str]) -> None:
    """Merge each source into its target."""
    for source, target in pairs:
        graph.merge(source, target)


@pytest.fixture
def hotfix(world: Graph) -> Graph:
    """A hotfix that inserts eve, merged into main and into june."""
    world.create_branch("hotfix")
    put(world, "hotfix", EVE)
    set_age(world, "june", "ann", 31)
    set_age(world, None, "bob", 41)
    merge_all(world, ("hotfix", "main"), ("hotfix", "june"))
    return world


# A hotfix that both sides took


@pytest.mark.case("engine", 373)
@pytest.mark.parametrize("gone_from", ["main", "june"])
@pytest.mark.parametrize("is_deleted", [False, True], ids=["live", "deleted"])
def test_what_one_side_deleted_of_a_hotfix_stays_deleted(
    hotfix: Graph, gone_from: str, is_deleted: bool
) -> None:
    if is_deleted:
        hotfix.delete_branch("hotfix")
    remove(hotfix, gone_from, "Person", "eve")

    result = hotfix.merge("june")

    assert result.outcome is MergeOutcome.MERGED
    assert ages(hotfix) == {**START, "ann": 31, "bob": 41}


@pytest.mark.case("engine", 373)
def test_what_one_side_changed_of_a_hotfix_is_no_conflict(hotfix: Graph) -> None:
    set_age(hotfix, "june", "eve", 2)

    assert hotfix.merge("june", dry_run=True).conflicts == ()
    hotfix.merge("june")

    assert ages(hotfix)["eve"] == 2


@pytest.mark.case("engine", 373)
def test_hotfixes_one_after_the_other(hotfix: Graph) -> None:
    set_age(hotfix, "hotfix", "eve", 2)
    put(hotfix, "hotfix", node("Person", name="fay", age=2))
    merge_all(hotfix, ("hotfix", "june"), ("hotfix", "main"))
    remove(hotfix, "june", "Person", "eve")
    set_age(hotfix, None, "fay", 3)

    hotfix.merge("june")

    assert ages(hotfix) == {**START, "ann": 31, "bob": 41, "fay": 3}
    assert hotfix.merge("main", into="june").outcome is MergeOutcome.FAST_FORWARD


@pytest.mark.case("engine", 373)
def test_sides_that_took_a_hotfix_at_different_commits_meet_in_the_earlier_one(hotfix: Graph) -> None:
    remove(hotfix, "hotfix", "Person", "eve")
    merge_all(hotfix, ("hotfix", "main"))
    assert "eve" not in ages(hotfix)

    hotfix.merge("june")

    assert "eve" not in ages(hotfix)


def test_a_hotfix_that_came_by_way_of_a_deleted_branch(world: Graph) -> None:
    """The way from june to a commit of main leads through a branch that is gone."""
    put(world, None, EVE)
    world.create_branch("hotfix")
    set_age(world, "hotfix", "cid", 33)
    world.merge("hotfix", into="june", delete_branch=True)
    assert "hotfix" not in world.branches()
    remove(world, None, "Person", "eve")

    world.merge("june")

    assert ages(world) == {**START, "cid": 33}


def test_what_came_of_a_deleted_branch_that_had_merged_another(world: Graph) -> None:
    world.create_branch("inner")
    world.create_branch("outer")
    put(world, "inner", EVE)
    world.merge("inner", into="outer")
    set_age(world, "outer", "cid", 33)
    world.merge("outer", into="june", delete_branch=True)
    world.merge("inner", into="main")
    remove(world, None, "Person", "eve")

    world.merge("june")

    assert ages(world) == {**START, "cid": 33}


@pytest.mark.case("engine", 373)
def test_a_merge_that_recovery_finished_tells_as_much(world: Graph) -> None:
    world.create_branch("hotfix")
    put(world, "hotfix", EVE)
    world.merge("hotfix", into="june")
    with failpoint("branch_merge.post_phase_b_pre_manifest_commit", "raise"), pytest.raises(RecoveryRequired):
        world.merge("hotfix")
    remove(world, None, "Person", "eve")  # heals first
    assert RECOVERY_ACTOR in {commit.actor_id for commit in world.commits()}
    world.delete_branch("hotfix")
    set_age(world, "june", "ann", 31)

    world.merge("june")

    assert ages(world) == {**START, "ann": 31}


@pytest.mark.case("engine", 374)
def test_the_storage_of_a_deleted_branch_stays_where_two_others_meet_in_it(hotfix: Graph) -> None:
    kept = set(manifest_trees(hotfix))

    hotfix.delete_branch("hotfix")

    assert manifest_trees(hotfix) == kept
    hotfix.merge("june", delete_branch=True)
    assert ages(hotfix)["eve"] == 1


@pytest.mark.case("engine", 374)
def test_a_meeting_that_cannot_be_read_any_more_is_refused(hotfix: Graph) -> None:
    head = hotfix.snapshot("hotfix").head.graph_commit_id
    ref = internals(hotfix).state("hotfix").ref
    hotfix.delete_branch("hotfix")
    parts = internals(hotfix).parts
    parts.refs.drop(parts.coordinator.address(ref))
    remove(hotfix, None, "Person", "eve")

    with pytest.raises(
        AmbiguousMergeBase, match=f"meet in commit {head} of a branch that was deleted"
    ) as refused:
        hotfix.merge("june")

    assert (refused.value.source, refused.value.target) == ("june", "main")
    assert refused.value.ancestors == (head,)
    assert "eve" not in ages(hotfix)


@pytest.mark.case("engine", 374)
def test_a_commit_that_was_merged_through_a_branch_made_from_its_own_is_found_again(world: Graph) -> None:
    """A merge of a branch that has not written yet takes commits of the branch it was made from."""
    world.create_branch("hotfix")
    put(world, "hotfix", EVE)
    world.create_branch("again", from_="hotfix")
    set_age(world, "june", "ann", 31)
    set_age(world, None, "bob", 41)
    merge_all(world, ("again", "main"), ("again", "june"))

    world.delete_branch("again")
    world.delete_branch("hotfix")
    remove(world, None, "Person", "eve")

    world.merge("june")
    assert ages(world) == {**START, "ann": 31, "bob": 41}


def manifest_trees(graph: Graph) -> set[str]:
    return {path.name for path in (Path(graph.uri) / "__manifest" / "tree").iterdir()}


# Criss-crosses: each side merges the other as it was


def criss_cross(graph: Graph) -> None:
    """Merge each side into the other, as both are now."""
    graph.create_branch("main0")
    graph.create_branch("june0", from_="june")
    merge_all(graph, ("june0", "main"), ("main0", "june"))


@pytest.mark.case("engine", 375)
def test_a_criss_cross_brings_nothing_back(world: Graph) -> None:
    put(world, None, EVE)
    remove(world, "june", "Person", "cid")
    criss_cross(world)
    remove(world, None, "Person", "eve")
    put(world, "june", node("Person", name="cid", age=50))
    assert "eve" in ages(world, "june")

    world.merge("june")

    assert ages(world) == {"ann": 30, "bob": 30, "cid": 50, "dan": 30}


@pytest.mark.case("engine", 375)
@pytest.mark.parametrize("side", ["main", "june"])
def test_a_criss_cross_makes_no_conflict_of_what_one_side_changed_again(world: Graph, side: str) -> None:
    set_age(world, None, "ann", 31)
    set_age(world, "june", "bob", 41)
    criss_cross(world)
    set_age(world, side, "ann", 32)
    set_age(world, side, "bob", 42)

    assert world.merge("june", dry_run=True).conflicts == ()
    world.merge("june")

    assert ages(world) == {**START, "ann": 32, "bob": 42}
    assert world.merge("main", into="june").commit is not None
    assert ages(world, "june") == ages(world)


@pytest.mark.case("engine", 375)
def test_going_back_to_what_one_of_the_meetings_has_is_a_change(world: Graph) -> None:
    set_age(world, None, "ann", 31)
    put(world, None, EVE)
    set_age(world, "june", "bob", 41)
    put(world, "june", node("Person", name="fay"))
    criss_cross(world)
    for name in ("ann", "bob"):
        set_age(world, "june", name, 30)
    for name in ("eve", "fay"):
        remove(world, "june", "Person", name)

    world.merge("june")

    assert ages(world) == START


@pytest.mark.case("engine", 375)
def test_a_criss_cross_finds_the_conflicts_that_there_are(world: Graph) -> None:
    set_age(world, None, "ann", 31)
    put(world, "june", EVE)
    criss_cross(world)
    for side, age in ((None, 32), ("june", 33)):
        set_age(world, side, "ann", age)
    set_age(world, None, "eve", 2)
    remove(world, "june", "Person", "eve")

    with pytest.raises(MergeConflicts) as refused:
        world.merge("june")

    assert kinds(refused.value.conflicts) == [
        ("node:Person", "ann", "divergent_update"),
        ("node:Person", "eve", "delete_vs_update"),
    ]


@pytest.mark.case("engine", 375)
def test_where_the_meetings_disagree_only_the_sides_can_agree(world: Graph) -> None:
    """Both sides resolve one conflict, each in the other's favour: there is no common value to start from."""
    for side, age in ((None, 31), ("june", 32)):
        set_age(world, side, "ann", age)
        set_age(world, side, "bob", age)
    world.create_branch("main0")
    world.create_branch("june0", from_="june")
    for side, age in ((None, 32), ("june", 31)):
        set_age(world, side, "ann", age)
        set_age(world, side, "bob", age)
    merge_all(world, ("june0", "main"), ("main0", "june"))
    set_age(world, "june", "bob", 32)

    told = world.merge("june", dry_run=True).conflicts
    set_age(world, None, "ann", 31)
    again = world.merge("june", dry_run=True).conflicts

    assert kinds(told) == [("node:Person", "ann", "divergent_update")]
    assert again == ()


@pytest.mark.case("engine", 375)
def test_a_row_that_the_meetings_disagree_about_and_one_side_deleted_is_a_conflict(world: Graph) -> None:
    for side, age in ((None, 31), ("june", 32)):
        set_age(world, side, "ann", age)
    world.create_branch("main0")
    world.create_branch("june0", from_="june")
    for side, age in ((None, 32), ("june", 31)):
        set_age(world, side, "ann", age)
    merge_all(world, ("june0", "main"), ("main0", "june"))
    remove(world, "june", "Person", "ann")

    told = world.merge("june", dry_run=True).conflicts

    assert ("node:Person", "ann", "delete_vs_update") in kinds(told)


def test_a_criss_cross_of_edges(world: Graph) -> None:
    put(world, None, edge("Knows", "ann", "cid", id="k3", since=1))
    put(world, "june", edge("Knows", "bob", "dan", id="k4", since=1))
    criss_cross(world)
    put(world, None, edge("Knows", "bob", "dan", id="k4", since=2))
    world.mutate('query q() { delete Knows where from = "ann" }', branch="june")

    world.merge("june")

    assert {key: row["since"] for key, row in rows(world, "Knows").items()} == {"k2": 2002, "k4": 2}


@pytest.mark.case("engine", 375)
def test_a_criss_cross_over_a_criss_cross(world: Graph) -> None:
    set_age(world, None, "ann", 31)
    set_age(world, "june", "bob", 41)
    criss_cross(world)
    set_age(world, None, "bob", 42)
    set_age(world, "june", "ann", 32)
    world.create_branch("main1")
    world.create_branch("june1", from_="june")
    merge_all(world, ("june1", "main"), ("main1", "june"))
    set_age(world, None, "ann", 33)
    set_age(world, "june", "bob", 43)

    world.merge("june")

    assert ages(world) == {**START, "ann": 33, "bob": 43}


# Three branches among each other, and chains of merges


@pytest.mark.case("engine", 375)
def test_three_branches_merge_among_each_other(world: Graph) -> None:
    world.create_branch("july")
    set_age(world, "june", "ann", 31)
    put(world, "july", EVE)
    merge_all(world, ("june", "july"), ("july", "main"))
    remove(world, None, "Person", "eve")
    set_age(world, "june", "bob", 41)
    merge_all(world, ("july", "june"), ("june", "main"))

    assert ages(world) == {**START, "ann": 31, "bob": 41}
    merge_all(world, ("main", "july"), ("main", "june"))
    assert ages(world) == ages(world, "june") == ages(world, "july")


@pytest.mark.case("engine", 376)
def test_a_source_is_merged_again_and_again(world: Graph) -> None:
    results = []
    for age in range(31, 36):
        set_age(world, "june", "ann", age)
        set_age(world, None, "bob", age)
        results.append(world.merge("june"))

    assert {result.outcome for result in results} == {MergeOutcome.MERGED}
    assert max(result.rows_read for result in results[1:]) <= 2 * results[0].rows_read
    assert ages(world) == {**START, "ann": 35, "bob": 35}


@pytest.mark.case("engine", 376)
def test_branches_that_were_merged_and_deleted_stand_in_nobodys_way(world: Graph) -> None:
    for name, age in (("one", 31), ("two", 32), ("three", 33)):
        world.create_branch(name)
        set_age(world, name, "ann", age)
        assert world.merge(name, delete_branch=True).branch_deleted
    set_age(world, "june", "bob", 41)

    assert world.merge("june").outcome is MergeOutcome.MERGED
    assert world.merge("main", into="june").outcome is MergeOutcome.FAST_FORWARD
    assert ages(world, "june") == {**START, "ann": 33, "bob": 41}
    assert not list(Path(world.uri).glob("__manifest/tree/one-*"))
