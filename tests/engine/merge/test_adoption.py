"""Where merged rows go: onto the target's own storage, or by pointing at main's."""

import pytest

from omnigraph.graph.graph import Graph
from omnigraph.operations.merge.merge import MergeOutcome
from omnigraph.operations.pin import SnapshotLike
from tests.engine.merge.world import ages, node, pins, put, rows, run, set_age
from tests.support.seam import internals

FAST_FORWARD, MERGED = MergeOutcome.FAST_FORWARD, MergeOutcome.MERGED
UP_TO_DATE = MergeOutcome.ALREADY_UP_TO_DATE


def age_of_ann(graph: Graph, snapshot: SnapshotLike) -> object:
    found = graph.at(snapshot).query('query age() { match { $p: Person { name: "ann" } } return { $p.age } }')
    (row,) = found
    return next(iter(row.values()))


@pytest.mark.case("engine", 239)
def test_a_target_branch_gets_forks_of_its_own(world: Graph) -> None:
    world.create_branch("july")
    set_age(world, "july", "dan", 50)  # owns people, not teams
    set_age(world, "june", "ann", 31)
    put(world, "june", node("Team", name="gold"))

    result = world.merge("june", into="july")

    assert result.outcome is MERGED
    assert ages(world, "july") == {"ann": 31, "bob": 30, "cid": 30, "dan": 50}
    assert "gold" in rows(world, "Team", "july")
    assert ages(world)["ann"] == 30
    store, parts = internals(world).parts.store, internals(world).parts
    for entry in world.snapshot("july").entries.values():
        if entry.owner is not None:
            parents = {ref.name: ref.parent for ref in store.list_refs(parts.address(entry))}
            assert parents[entry.owner] is None
    assert world.merge("june", delete_branch=True).branch_deleted
    assert ages(world, "july")["ann"] == 31


@pytest.mark.case("engine", 239)
@pytest.mark.case("engine", 240)
def test_main_into_a_branch_repoints_what_the_branch_left_alone(world: Graph) -> None:
    set_age(world, None, "ann", 31)
    put(world, "june", node("Team", name="gold"))
    past = world.snapshot("june")

    result = world.merge("main", into="june")

    assert result.outcome is MERGED
    assert pins(world, "june")["node:Person"] == pins(world)["node:Person"]
    assert pins(world, "june")["node:Team"][1] is not None
    assert ages(world, "june")["ann"] == 31
    assert age_of_ann(world, past) == 30
    set_age(world, "june", "bob", 41)
    assert pins(world, "june")["node:Person"][1] is not None
    assert (ages(world)["bob"], ages(world, "june")["bob"]) == (30, 41)


@pytest.mark.case("engine", 240)
def test_a_smaller_version_number_becomes_current(world: Graph) -> None:
    for age in range(31, 36):
        set_age(world, "june", "ann", age)
    owned = world.snapshot("june")
    world.merge("june")  # one commit on main, five on the fork
    set_age(world, None, "bob", 41)
    assert pins(world)["node:Person"][0] < pins(world, "june")["node:Person"][0]

    result = world.merge("main", into="june")

    assert result.outcome is FAST_FORWARD
    assert pins(world, "june") == pins(world)
    assert ages(world, "june") == ages(world)
    assert age_of_ann(world, owned) == 35
    earlier = world.commits(branch="june")[2]
    assert age_of_ann(world, earlier.graph_commit_id) == 34
    set_age(world, "june", "ann", 36)
    assert (ages(world)["ann"], ages(world, "june")["ann"]) == (35, 36)
    assert pins(world, "june")["node:Person"][1] is not None


def test_a_table_that_ends_as_it_was_is_not_written_but_the_merge_is_recorded(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    set_age(world, "june", "ann", 30)
    before = pins(world)

    result = world.merge("june")

    assert result.outcome is FAST_FORWARD
    assert result.commit is not None
    assert pins(world) == before
    assert world.merge("june").outcome is UP_TO_DATE


def test_a_merge_into_a_branch_and_back_again(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    set_age(world, None, "bob", 41)
    world.merge("main", into="june")
    set_age(world, "june", "cid", 51)
    set_age(world, None, "dan", 61)

    result = world.merge("june")

    assert result.outcome is MERGED
    assert ages(world) == {"ann": 31, "bob": 41, "cid": 51, "dan": 61}
    assert world.merge("main", into="june").outcome is FAST_FORWARD
    assert ages(world, "june") == ages(world)


def test_a_read_in_the_past_of_a_merge_shows_the_past(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    before = world.snapshot().head
    world.merge("june")

    then = before.created_at

    assert age_of_ann(world, before.graph_commit_id) == 30
    assert age_of_ann(world, then) == 30
    run(world, "june", 'delete Person where name = "ann"')
    world.merge("june")
    assert age_of_ann(world, before.graph_commit_id) == 30
