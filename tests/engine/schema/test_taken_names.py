"""Columns over rows that were deleted, and columns that take the name of another one."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.graph.graph import Graph

ROWS = 'query q() { insert A { code: "a", w: 1 } insert A { code: "b", w: 2 } insert A { code: "c" } }'
REMOVALS = {"update": 'update A set { w: 5 } where code = "a"', "delete": 'delete A where code = "a"'}


def schema(*properties: str) -> str:
    """Return a type with a key and these properties."""
    return f"node A {{ code: String @key  {'  '.join(properties)} }}"


def rows(graph: Graph, branch: str | None = None) -> dict[str, dict[str, object]]:
    """Return the properties of all rows by key."""
    table = graph.table("A", branch=branch).drop_columns(["id"])
    return {str(row.pop("code")): row for row in table.to_pylist()}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Three rows."""
    made = omnigraph.init(tmp_path / "graph", schema("w: I32?"))
    made.mutate(ROWS)
    return made


@pytest.mark.case("engine", 695)
@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize(("type_", "default"), [("String", '"x"'), ("enum(u, v)", "u"), ("[I32]", "[1]")])
def test_a_required_column_is_relaxed_beside_a_new_one_where_rows_were_deleted(
    graph: Graph, removal: str, type_: str, default: str
) -> None:
    graph.mutate(f"query q() {{ {REMOVALS[removal]} }}")
    graph.apply_schema(schema("w: I32?", f"p: {type_} @default({default})"))
    before = rows(graph)

    graph.apply_schema(schema("w: I32?", f"p: {type_}? @default({default})", "k: U32? @default(3)"))

    assert rows(graph) == {key: {**row, "k": 3} for key, row in before.items()}
    assert graph.verify(deep=True).is_whole


@pytest.mark.case("engine", 696)
@pytest.mark.parametrize("beside", [(), ("k: U32? @default(3)",)], ids=["alone", "beside written values"])
def test_a_property_dropped_and_added_again_comes_by_a_merge_as_a_new_one(
    graph: Graph, beside: tuple[str, ...]
) -> None:
    graph.create_branch("june")
    graph.apply_schema(schema(), branch="june")
    graph.apply_schema(schema("w: I32?", *beside), branch="june")
    graph.mutate('query q() { update A set { w: 9 } where code = "c" }', branch="june")

    graph.merge("june")

    assert {key: row["w"] for key, row in rows(graph).items()} == {"a": None, "b": None, "c": 9}
    assert rows(graph) == rows(graph, "june")
    assert graph.verify(deep=True).is_whole


@pytest.mark.case("engine", 696)
@pytest.mark.parametrize("beside", [(), ("k: U32? @default(3)",)], ids=["alone", "beside written values"])
def test_a_column_that_no_file_holds_takes_the_name_of_a_dropped_one(
    graph: Graph, beside: tuple[str, ...]
) -> None:
    graph.apply_schema(schema("w: I32?", "late: I32?"))  # older rows have no file for it
    graph.mutate('query q() { insert A { code: "d", w: 4, late: 7 } }')
    graph.create_branch("june")
    graph.apply_schema(schema("late: I32?"), branch="june")
    graph.apply_schema(schema('w: I32? @rename_from("late")', *beside), branch="june")

    graph.merge("june")

    assert {key: row["w"] for key, row in rows(graph).items()} == {"a": None, "b": None, "c": None, "d": 7}
    assert graph.verify(deep=True).is_whole
