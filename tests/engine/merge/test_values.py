"""Which values are equal, and which rows a merge writes again."""

import json
from typing import Any

import pytest

from omnigraph.core.errors import MergeConflicts
from omnigraph.graph.graph import Graph
from omnigraph.storage.tables.rows import UPDATED_AT, read_rows
from tests.engine.merge.world import ages, edge, kinds, node, put, rows, run, set_age
from tests.support.seam import internals

DIFFERENT: list[tuple[str, Any, Any]] = [
    ("email", None, ""),
    ("tags", None, []),
    ("tags", [], [""]),
    ("tags", ["a", "b"], ["b", "a"]),
    ("tags", ["a", "b"], ["ab"]),
    ("tags", ["a"], ["a", "a"]),
    ("face", [0.5, 0.25], [0.5, 0.250001]),
    ("face", None, [0.0, 0.0]),
    ("photo", None, "base64:"),
    ("photo", "base64:AAE=", "base64:AAI="),
]


@pytest.mark.case("engine", 236)
@pytest.mark.parametrize(("name", "ours", "theirs"), DIFFERENT, ids=json.dumps)
def test_different_values_are_a_conflict(name: str, ours: object, theirs: object, world: Graph) -> None:
    put(world, "june", node("Person", name="eve", **{name: ours}))
    put(world, None, node("Person", name="eve", **{name: theirs}))

    with pytest.raises(MergeConflicts) as refused:
        world.merge("june")

    assert kinds(refused.value.conflicts) == [("node:Person", "eve", "divergent_insert")]


@pytest.mark.case("engine", 236)
@pytest.mark.parametrize(("name", "value"), [(name, value) for name, _, value in DIFFERENT], ids=json.dumps)
def test_equal_values_are_none(name: str, value: object, world: Graph) -> None:
    for branch in ("june", None):
        put(world, branch, node("Person", name="eve", **{name: value}))

    assert world.merge("june").commit is not None


@pytest.mark.case("engine", 236)
@pytest.mark.parametrize(("name", "ours", "theirs"), DIFFERENT[:2], ids=["text", "list"])
def test_null_and_empty_are_a_change(name: str, ours: object, theirs: object, world: Graph) -> None:
    put(world, None, node("Person", name="eve", **{name: ours}))
    world.merge("main", into="june")
    put(world, "june", node("Person", name="eve", **{name: theirs}))
    set_age(world, None, "dan", 31)

    world.merge("june")

    assert rows(world, "Person")["eve"][name] == theirs


def row_versions(graph: Graph, type_name: str = "Person") -> dict[str, int]:
    """Return the version that wrote each row last."""
    parts = internals(graph).parts
    table_key = f"{'edge' if type_name == 'Knows' else 'node'}:{type_name}"
    entry = graph.snapshot().entry(table_key)
    found = read_rows(parts.open(entry), ["id", UPDATED_AT])
    return {str(row["id"]): row[UPDATED_AT] for row in found.to_pylist()}


@pytest.mark.case("engine", 237)
def test_identical_changes_are_not_written_again(world: Graph) -> None:
    for branch in ("june", None):
        set_age(world, branch, "ann", 31)
        put(world, branch, node("Person", name="eve", age=1), edge("Knows", "ann", "cid", id="k5"))
        run(world, branch, 'delete Person where name = "dan"')
    before = row_versions(world), row_versions(world, "Knows"), world.snapshot().entries

    result = world.merge("june")

    assert result.commit is not None
    assert (row_versions(world), row_versions(world, "Knows"), world.snapshot().entries) == before


@pytest.mark.case("engine", 238)
def test_only_changed_rows_are_written(world: Graph) -> None:
    set_age(world, "june", "ann", 31)
    set_age(world, "june", "bob", 41)
    set_age(world, "june", "bob", 30)  # written, and as it was
    put(world, "june", node("Person", name="eve"), node("Person", name="cid", age=30))
    set_age(world, None, "dan", 61)
    before = row_versions(world)

    world.merge("june")

    after = row_versions(world)
    assert {name for name in after if after[name] != before.get(name)} == {"ann", "eve"}
    assert ages(world) == {"ann": 31, "bob": 30, "cid": 30, "dan": 61, "eve": None}


def test_a_row_that_was_deleted_and_made_again_is_compared_by_its_values(world: Graph) -> None:
    run(world, "june", 'delete Person where name = "bob"')
    put(world, "june", node("Person", name="bob", age=30))
    set_age(world, None, "bob", 42)

    result = world.merge("june")

    assert result.commit is not None
    assert ages(world)["bob"] == 42
