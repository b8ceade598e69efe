"""What becomes of an entity that either side may have changed: the table, row by row."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from omnigraph.core.errors import MergeConflicts
from omnigraph.core.merge_conflict import MergeConflictKind
from omnigraph.graph.graph import Graph
from omnigraph.merge.truth_table import SideChange, Verdict, change_of, judge
from tests.engine.merge.world import edge, kinds, node, put, rows, run

KEEP, TAKE, DELETE = Verdict.KEEP, Verdict.TAKE_SOURCE, Verdict.DELETE

# source, target, whether both end equal, what happens
TABLE = [
    ("none", "none", True, KEEP),
    ("inserted", "none", False, TAKE),
    ("none", "inserted", False, KEEP),
    ("inserted", "inserted", True, KEEP),
    ("inserted", "inserted", False, MergeConflictKind.DIVERGENT_INSERT),
    ("changed", "none", False, TAKE),
    ("none", "changed", False, KEEP),
    ("changed", "changed", True, KEEP),
    ("changed", "changed", False, MergeConflictKind.DIVERGENT_UPDATE),
    ("deleted", "none", False, DELETE),
    ("none", "deleted", False, KEEP),
    ("deleted", "deleted", False, KEEP),
    ("deleted", "changed", False, MergeConflictKind.DELETE_VS_UPDATE),
    ("changed", "deleted", False, MergeConflictKind.DELETE_VS_UPDATE),
]


@pytest.mark.parametrize(("source", "target", "is_equal", "expected"), TABLE)
def test_a_pair_of_changes(source: str, target: str, is_equal: bool, expected: object) -> None:
    assert judge(SideChange(source), SideChange(target), is_equal=is_equal) == expected


def test_the_table_has_a_row_for_every_pair_that_can_be() -> None:
    present = {"none", "changed", "deleted"}
    possible = set(itertools.product(present, present)) | set(
        itertools.product({"none", "inserted"}, repeat=2)
    )

    assert {(source, target) for source, target, _, _ in TABLE} == possible


@pytest.mark.parametrize("there", ["changed", "deleted"])
def test_a_base_that_is_absent_and_present_is_a_mistake(there: str) -> None:
    for pair in [(SideChange.INSERTED, SideChange(there)), (SideChange(there), SideChange.INSERTED)]:
        with pytest.raises(AssertionError, match="absent and present"):
            judge(*pair, is_equal=False)


@pytest.mark.parametrize(
    ("in_base", "in_side", "is_equal", "expected"),
    [
        (False, False, False, SideChange.NONE),
        (False, True, False, SideChange.INSERTED),
        (True, False, False, SideChange.DELETED),
        (True, True, True, SideChange.NONE),
        (True, True, False, SideChange.CHANGED),
    ],
)
def test_what_a_side_did(in_base: bool, in_side: bool, is_equal: bool, expected: SideChange) -> None:
    assert change_of(in_base=in_base, in_side=in_side, is_equal=is_equal) is expected


# The same rows, on a graph. Values are ages of people, or years of edges; none is absent.


@dataclass(frozen=True, slots=True)
class Kind:
    """How entities of one kind are written, removed and read."""

    table_key: str
    present: str
    absent: str
    write: Callable[[Graph, str | None, str, int], None]
    remove: Callable[[Graph, str | None, str], None]
    read: Callable[[Graph, str], object]


def _write_node(graph: Graph, branch: str | None, row_id: str, value: int) -> None:
    put(graph, branch, node("Person", name=row_id, age=value))


def _write_edge(graph: Graph, branch: str | None, row_id: str, value: int) -> None:
    put(graph, branch, edge("Knows", "ann", "bob", id=row_id, since=value))


NODES = Kind(
    "node:Person",
    "bob",
    "eve",
    _write_node,
    lambda graph, branch, row_id: run(graph, branch, f'delete Person where name = "{row_id}"'),
    lambda graph, row_id: rows(graph, "Person").get(row_id, {}).get("age"),
)
EDGES = Kind(
    "edge:Knows",
    "k1",
    "k9",
    _write_edge,
    lambda graph, branch, _: run(graph, branch, 'delete Knows where from = "ann"'),
    lambda graph, row_id: rows(graph, "Knows").get(row_id, {}).get("since"),
)
BASE = {NODES.table_key: 30, EDGES.table_key: 2001}
SAME, OURS, THEIRS = 41, 42, 43

ROWS = {
    "absent, absent, absent": (None, None, "keep"),
    "absent, inserted, absent": (OURS, None, "take"),
    "absent, absent, inserted": (None, THEIRS, "keep"),
    "absent, inserted, inserted equal": (SAME, SAME, "keep"),
    "absent, inserted, inserted different": (OURS, THEIRS, "divergent_insert"),
    "present, unchanged, unchanged": ("base", "base", "keep"),
    "present, changed, unchanged": (OURS, "base", "take"),
    "present, unchanged, changed": ("base", THEIRS, "keep"),
    "present, changed, changed equal": (SAME, SAME, "keep"),
    "present, changed, changed different": (OURS, THEIRS, "divergent_update"),
    "present, deleted, unchanged": (None, "base", "take"),
    "present, unchanged, deleted": ("base", None, "keep"),
    "present, deleted, deleted": (None, None, "keep"),
    "present, deleted, changed": (None, THEIRS, "delete_vs_update"),
    "present, changed, deleted": (OURS, None, "delete_vs_update"),
}


@pytest.mark.case("engine", 231)
@pytest.mark.parametrize("kind", [NODES, EDGES], ids=["nodes", "edges"])
@pytest.mark.parametrize("row", ROWS)
def test_an_entity_of_a_graph(row: str, kind: Kind, world: Graph) -> None:
    is_present = row.startswith("present")
    row_id = kind.present if is_present else kind.absent
    ours, theirs, result = ROWS[row]
    for branch, value in (("june", ours), (None, theirs)):
        put(world, branch, node("Team", name=f"only {branch}"))  # both sides did something
        if value is None and is_present:
            kind.remove(world, branch, row_id)
        elif isinstance(value, int):
            kind.write(world, branch, row_id, value)
    before = kind.read(world, row_id)

    if result in {"keep", "take"}:
        world.merge("june")

        base = BASE[kind.table_key] if is_present else None
        expected = before if result == "keep" else base if ours == "base" else ours
        assert kind.read(world, row_id) == expected
        assert {"only june", "only None"} <= rows(world, "Team").keys()
    else:
        with pytest.raises(MergeConflicts) as refused:
            world.merge("june")

        assert (kind.table_key, row_id, result) in kinds(refused.value.conflicts)
        assert {found[1:] for found in kinds(refused.value.conflicts)} == {(row_id, result)}
        assert kind.read(world, row_id) == before
        assert "only june" not in rows(world, "Team")
