"""What stands against a merge: every conflict, in order, and nothing written."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.commit.changes import LineageIntent, UpdateTable
from omnigraph.core.errors import MergeConflicts
from omnigraph.core.ids import new_ulid
from omnigraph.core.merge_conflict import MergeConflictKind
from omnigraph.graph.graph import Graph
from omnigraph.history.manifest_rows import PublishedPin
from tests.engine.merge.world import ages, edge, kinds, node, put, remove, rows, run, set_age
from tests.support.books import fingerprint
from tests.support.seam import internals


def refused(graph: Graph, source: str = "june", into: str = "main") -> MergeConflicts:
    with pytest.raises(MergeConflicts) as caught:
        graph.merge(source, into)
    return caught.value


@pytest.mark.case("engine", 234)
def test_all_conflicts_come_together_in_order_and_nothing_is_written(world: Graph) -> None:
    set_age(world, "june", "bob", 41)
    put(world, "june", node("Person", name="eve", age=1), node("Team", name="gold", city="Rom"))
    remove(world, "june", "Person", "cid")
    put(world, "june", edge("Knows", "ann", "dan", id="k7"))
    put(world, None, node("Person", name="eve", age=2), node("Team", name="gold", city="Ulm"))
    set_age(world, None, "bob", 42)
    set_age(world, None, "cid", 43)
    remove(world, None, "Person", "ann")
    before = fingerprint(Path(world.uri))

    error = refused(world)

    assert kinds(error.conflicts) == [
        ("edge:Knows", "k7", "orphan_edge"),
        ("node:Person", "bob", "divergent_update"),
        ("node:Person", "cid", "delete_vs_update"),
        ("node:Person", "eve", "divergent_insert"),
        ("node:Team", "gold", "divergent_insert"),
    ]
    assert str(error) == "merge conflicts: edge:Knows 'k7' (orphan_edge); and 4 more"
    assert [conflict.message for conflict in error.conflicts] == [
        "src 'ann' not found in Person",
        "both sides changed it, to different values",
        "the source deleted it, the target changed it",
        "both sides inserted it, with different values",
        "both sides inserted it, with different values",
    ]
    assert fingerprint(Path(world.uri)) == before
    assert ages(world) == {"bob": 42, "cid": 43, "dan": 30, "eve": 2}


def test_a_conflict_is_resolved_by_a_further_edit_on_one_side(world: Graph) -> None:
    set_age(world, "june", "bob", 41)
    set_age(world, None, "bob", 42)
    assert kinds(refused(world).conflicts) == [("node:Person", "bob", "divergent_update")]

    set_age(world, "june", "bob", 42)
    world.merge("june")

    assert ages(world)["bob"] == 42


@pytest.mark.case("engine", 235)
def test_an_edge_of_the_target_at_a_node_that_the_source_deleted_is_an_orphan(world: Graph) -> None:
    remove(world, "june", "Person", "bob")
    put(world, None, edge("Knows", "dan", "bob", id="k8"), edge("Knows", "bob", "dan", id="k9"))

    assert kinds(refused(world).conflicts) == [
        ("edge:Knows", "k8", "orphan_edge"),
        ("edge:Knows", "k9", "orphan_edge"),
    ]


@pytest.mark.case("engine", 235)
def test_an_edge_of_the_source_at_a_node_that_the_target_deleted_is_an_orphan(world: Graph) -> None:
    put(world, "june", edge("Knows", "dan", "bob", id="k8"), edge("Knows", "bob", "dan", id="k9"))
    remove(world, None, "Person", "bob")

    assert kinds(refused(world).conflicts) == [
        ("edge:Knows", "k8", "orphan_edge"),
        ("edge:Knows", "k9", "orphan_edge"),
    ]


@pytest.mark.case("engine", 235)
def test_an_orphan_is_found_where_the_table_of_nodes_would_only_be_repointed(world: Graph) -> None:
    remove(world, None, "Person", "bob")
    put(world, "june", edge("Knows", "dan", "bob", id="k8"))

    assert kinds(refused(world, "main", "june").conflicts) == [("edge:Knows", "k8", "orphan_edge")]


@pytest.mark.case("engine", 235)
def test_two_sides_that_take_one_unique_value(world: Graph) -> None:
    put(world, "june", node("Person", name="eve", email="e@x"))
    put(world, None, node("Person", name="fay", email="e@x"))

    (conflict,) = refused(world).conflicts

    assert (conflict.table_key, conflict.row_id) == ("node:Person", "eve")
    assert conflict.kind is MergeConflictKind.UNIQUE_VIOLATION
    assert conflict.message == "@unique violation on Person.email: 'e@x' is held by 'fay'"


@pytest.mark.case("engine", 235)
def test_two_sides_that_take_one_unique_pair(world: Graph) -> None:
    put(world, "june", node("Team", name="red", city="Rom", floor=7))
    put(world, None, node("Team", name="gold", city="Rom", floor=7))

    assert kinds(refused(world).conflicts) == [("node:Team", "red", "unique_violation")]


def test_a_unique_value_that_one_side_gives_up_can_be_taken(world: Graph) -> None:
    put(world, None, node("Person", name="ann", age=30, email="a@x"))
    world.merge("main", into="june")
    put(world, "june", node("Person", name="ann", age=30, email="b@x"))
    put(world, "june", node("Person", name="eve", email="a@x"))
    set_age(world, None, "dan", 31)

    world.merge("june")

    assert {name: row["email"] for name, row in rows(world, "Person").items() if row["email"]} == {
        "ann": "b@x",
        "eve": "a@x",
    }


@pytest.mark.case("engine", 235)
def test_two_sides_that_pass_a_maximum_together(world: Graph) -> None:
    put(world, "june", edge("Joined", "ann", "blue", id="j2"))
    put(world, None, node("Team", name="gold"), edge("Joined", "ann", "gold", id="j3"))

    (conflict,) = refused(world).conflicts

    assert kinds([conflict]) == [("edge:Joined", "j2", "cardinality_violation")]
    assert conflict.message == "@card violation on edge Joined: 'ann' has 3 edges, at most 2 allowed"


@pytest.mark.case("engine", 235)
def test_two_sides_that_fall_below_a_minimum_together(world: Graph) -> None:
    put(world, None, edge("Leads", "dan", "blue", id="l2"))
    world.merge("main", into="june")
    run(world, "june", 'delete Leads where to = "blue"')
    run(world, None, 'delete Leads where to = "red"')

    (conflict,) = refused(world).conflicts

    assert kinds([conflict]) == [("edge:Leads", "dan", "cardinality_violation")]
    assert conflict.message == "@card violation on edge Leads: 'dan' has 0 edges, at least 1 required"


@pytest.mark.case("engine", 235)
def test_rows_that_no_writer_would_have_let_through(world: Graph) -> None:
    """Nobody changes a schema while there are branches, so such rows come from elsewhere."""
    set_age(world, None, "dan", 31)
    smuggle(
        world,
        "june",
        lambda table: table.set_column(
            table.column_names.index("age"),
            table.schema.field("age"),
            pa.array([201, 30, 30, 30], pa.int64()),
        ).set_column(
            table.column_names.index("mood"), table.schema.field("mood"), pa.array([None, "wild", None, None])
        ),
    )

    error = refused(world)

    assert kinds(error.conflicts) == [
        ("node:Person", "ann", "value_constraint_violation"),
        ("node:Person", "bob", "value_constraint_violation"),
    ]
    assert [conflict.message for conflict in error.conflicts] == [
        "@range violation on Person.age: 201 is not in 0..200",
        "invalid enum value 'wild' for Person.mood: expected one of calm, cross",
    ]


def smuggle(graph: Graph, branch: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Replace the people of a branch by rows that nobody has checked."""
    set_age(graph, branch, "cid", 30)  # the branch has a fork of its own now
    opened = internals(graph)
    parts, state = opened.parts, opened.state(branch)
    entry = state.snapshot().entry("node:Person")
    handle = parts.open(entry)
    staged = parts.stager.stage_upsert(handle, change(parts.store.scan(handle).sort_by("id")))
    done = parts.stager.commit_staged(staged, operation_id=new_ulid(), writer_kind="Load")
    pin = PublishedPin(done.version, entry.owner, done.row_count, done.transaction_uuid, branch)
    opened.publisher.publish(
        state.branch,
        [UpdateTable(entry.identity, entry.table_key, pin)],
        {},
        LineageIntent(new_ulid(), None, parts.clock()),
    )


def test_a_row_in_conflict_takes_no_part_in_the_checks(world: Graph) -> None:
    """The target keeps its bob, so its new edge to him is no orphan."""
    remove(world, "june", "Person", "bob")
    set_age(world, None, "bob", 42)
    put(world, None, edge("Knows", "dan", "bob", id="k8"))

    assert kinds(refused(world).conflicts) == [("node:Person", "bob", "delete_vs_update")]


def test_two_new_edges_with_equal_ends_are_two_edges(world: Graph) -> None:
    run(world, "june", 'insert Knows { from: "ann", to: "dan", since: 2003 }')
    run(world, None, 'insert Knows { from: "ann", to: "dan", since: 2003 }')

    world.merge("june")

    found = [row for row in rows(world, "Knows").values() if (row["src"], row["dst"]) == ("ann", "dan")]
    assert len(found) == 2
