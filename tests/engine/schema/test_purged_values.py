"""Hard drops of properties: no file that the graph refers to holds a value that was dropped for good."""

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.graph.graph import Graph
from omnigraph.operations.progress import TableProgress
from omnigraph.storage.tables.reshape import columns_in_files
from tests.engine.schema.world import coverage, data_files, row_marks
from tests.support.engine import ndjson, new_graph, node
from tests.support.seam import internals

MARKER = "7f3d-secret"
SECRETS = """\
node Person {
    name: String @key
    nick: String? @index
    score: F64? @index
    secret: String?
    tags: [String]?
    picture: Blob?
    eye: Vector(2)? @index
}
"""
AFTER = SECRETS.replace("    secret: String?\n", "")
PEOPLE = "query people() { match { $p: Person } return { $p } order { $p.name } }"


def person(number: int, **secret: str) -> dict[str, object]:
    """Return a person."""
    return node(
        "Person",
        name=f"p{number}",
        nick=f"nick{number}",
        score=number / 2,
        **secret,
        tags=["a", f"t{number}"],
        eye=[float(number), 1.0],
        picture="base64:AAEC",
    )


def secretive(root: Path, schema: str = SECRETS) -> Graph:
    """Return a graph of several fragments with updated and deleted rows, and with all indexes."""
    secret = "secret:" in schema
    people = [person(n, **({"secret": f"{MARKER}-{n}"} if secret else {})) for n in range(12)]
    graph = new_graph(root, schema, *people[:8])
    graph.load(ndjson(people[8:]), "append", index=False)
    graph.mutate('query no() { delete Person where name = "p3" }')
    graph.mutate('query no() { delete Person where name = "p7" }')
    graph.mutate('query no() { delete Person where name = "p8" }')
    graph.mutate('query up() { update Person set { score: 99.0 } where name = "p1" }')
    graph.ensure_indices()
    return graph


def holding(graph: Graph, marker: str = MARKER) -> list[str]:
    """Return the files of tables that hold a text."""
    return [name for name, content in data_files(graph).items() if marker.encode() in content]


def shown_files(graph: Graph, branch: str | None = None) -> set[str]:
    """Return the names of the data files that a branch shows of the table."""
    handle = internals(graph).parts.open(graph.snapshot(branch).entry("node:Person"))
    return {file.path for part in handle._dataset.get_fragments() for file in part.metadata.files}


def holding_shown(graph: Graph, branch: str | None = None) -> list[str]:
    """Return those of them that hold the marker."""
    shown = shown_files(graph, branch)
    return [name for name in holding(graph) if name.rpartition("/")[2] in shown]


def without_secret(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"p": {name: value for name, value in row["p"].items() if name != "secret"}} for row in rows]


@pytest.mark.case("engine", 740)
def test_a_hard_drop_leaves_no_value_in_any_file(tmp_path: Path) -> None:
    graph = secretive(tmp_path / "graph")
    before, marks = graph.query(PEOPLE).rows, row_marks(graph, "node:Person")
    assert holding_shown(graph)

    planned = graph.plan_schema(AFTER, allow_data_loss=True)
    result = graph.apply_schema(AFTER, allow_data_loss=True)

    assert (planned.rows, result.warnings) == ((9,), ())
    assert holding(graph) == []
    assert graph.query(PEOPLE).rows == without_secret(before)
    after = row_marks(graph, "node:Person")
    stays = ("_rowid", "_row_created_at_version")
    assert {key: [mark[name] for name in stays] for key, mark in after.items()} == {
        key: [mark[name] for name in stays] for key, mark in marks.items()
    }
    assert coverage(graph, "node:Person") == {
        "id:btree": "indexed",
        "name:fulltext": "indexed",
        "nick:fulltext": "indexed",
        "score:btree": "indexed",
        "eye:vector": "indexed",
    }
    assert graph.verify(deep=True).is_whole
    search = 'query q() { match { $p: Person search($p.nick, "nick5") } return { $p.name } }'
    assert graph.query(search).rows == [{"p.name": "p5"}]
    graph.mutate('query up() { update Person set { score: 1.0 } where name = "p5" }')
    graph.optimize()
    assert graph.verify(deep=True).is_whole
    assert omnigraph.open(graph.uri, mode="ro").query(PEOPLE).rows == graph.query(PEOPLE).rows


@pytest.mark.case("engine", 887)
@pytest.mark.parametrize("branch", [None, "june"])
def test_a_hard_drop_of_a_table_that_was_folded_after_many_commits(
    tmp_path: Path, branch: str | None
) -> None:
    """Each row has versions of its own: a fold keeps them in hidden columns beside the values."""
    schema = "node T {\n    name: String @key\n    n: I32?\n    secret: String?\n}\n"
    after = schema.replace("    secret: String?\n", "")
    graph = new_graph(tmp_path / "graph", schema, node("T", name="first", n=0, secret=MARKER))
    for number in range(70):
        graph.mutate(f'query q() {{ insert T {{ name: "t{number}", n: {number}, secret: "{MARKER}" }} }}')
    graph.optimize()
    if branch is not None:
        graph.create_branch(branch)
    handle = internals(graph).parts.open(graph.snapshot(branch).entry("node:T"))
    hidden = {number for part in handle.fragments.values() for number in part.files[0].fields if number < 0}
    assert hidden == {-4, -5}
    before, marks = graph.table("T", branch=branch).sort_by("name"), row_marks(graph, "node:T", branch)

    graph.apply_schema(after, branch=branch, allow_data_loss=True)

    assert graph.table("T", branch=branch).sort_by("name") == before.drop_columns(["secret"])
    stays = ("_rowid", "_row_created_at_version")
    kept = row_marks(graph, "node:T", branch)
    assert all(kept[key][name] == marks[key][name] for key in marks for name in stays)
    assert branch is not None or holding(graph) == []
    graph.mutate('query up() { update T set { n: 7 } where name = "t5" }', branch=branch)
    graph.optimize(branch=branch)
    assert graph.verify(deep=True).is_whole
    if branch is not None:
        graph.merge(branch)
        assert graph.table("T").num_rows == before.num_rows


@pytest.mark.case("engine", 741)
def test_a_soft_drop_writes_no_row_and_a_later_hard_one_leaves_nothing_either(tmp_path: Path) -> None:
    graph = secretive(tmp_path / "graph")
    files = shown_files(graph)

    graph.apply_schema(AFTER, index=False)
    assert shown_files(graph) == files
    graph.apply_schema(AFTER.replace("    tags: [String]?\n", ""), allow_data_loss=True, index=False)

    assert holding(graph) == []
    assert graph.verify().is_whole


@pytest.mark.case("engine", 741)
def test_values_of_an_older_type_go_as_well(tmp_path: Path) -> None:
    graph = new_graph(
        tmp_path / "graph", "node T { name: String @key  n: I32? }\n", node("T", name="a", n=77)
    )
    graph.apply_schema("node T { name: String @key  n: I64? }\n", index=False)

    graph.apply_schema("node T { name: String @key }\n", allow_data_loss=True, index=False)

    handle = internals(graph).parts.open(graph.snapshot().entry("node:T"))
    assert columns_in_files(handle) == {field.id() for field in handle._dataset.lance_schema.fields()}


@pytest.mark.case("engine", 742)
def test_a_column_with_files_of_its_own_takes_only_these_with_it(tmp_path: Path) -> None:
    graph = secretive(tmp_path / "graph", AFTER)
    files = shown_files(graph)
    graph.apply_schema(
        AFTER.replace("    tags:", f'    secret: String @default("{MARKER}")\n    tags:'), index=False
    )
    assert holding_shown(graph)

    assert graph.plan_schema(AFTER, allow_data_loss=True).rows == (0,)
    graph.apply_schema(AFTER, allow_data_loss=True, index=False)

    assert shown_files(graph) == files
    assert holding(graph) == []
    assert set(coverage(graph, "node:Person").values()) == {"indexed"}


@pytest.mark.case("engine", 743)
def test_a_branch_keeps_its_values_and_main_shows_no_file_with_them(tmp_path: Path) -> None:
    graph = secretive(tmp_path / "graph")
    graph.create_branch("june")
    graph.mutate('query up() { update Person set { score: 7.0 } where name = "p2" }', branch="june")
    before = graph.query(PEOPLE, branch="june").rows

    [warning] = graph.apply_schema(AFTER, allow_data_loss=True).warnings

    assert "'june'" in warning
    assert holding_shown(graph) == []
    assert graph.query(PEOPLE, branch="june").rows == before
    assert graph.merge("june").outcome == "merged"
    assert graph.query('query q() { match { $p: Person { name: "p2" } } return { $p.score } }').rows == [
        {"p.score": 7.0}
    ]
    assert holding_shown(graph) == []
    assert graph.verify(deep=True).is_whole


@pytest.mark.case("engine", 744)
def test_a_hard_drop_on_a_branch_leaves_main_alone(tmp_path: Path) -> None:
    graph = secretive(tmp_path / "graph")
    graph.create_branch("june")
    before, files = graph.query(PEOPLE).rows, shown_files(graph)

    graph.apply_schema(AFTER, branch="june", allow_data_loss=True)

    assert holding_shown(graph, "june") == []
    assert (graph.query(PEOPLE).rows, shown_files(graph)) == (before, files)
    assert graph.query(PEOPLE, branch="june").rows == without_secret(before)
    assert graph.verify(deep=True).is_whole


@pytest.mark.case("engine", 745)
@pytest.mark.parametrize(
    "schema",
    [
        AFTER.replace("score: F64? @index", "score: F64? @index\n    level: I32 @default(3)"),
        AFTER.replace("    nick: String?", '    alias: String? @rename_from("nick")'),
        AFTER.replace("node Person", 'node Human @rename_from("Person")'),
        AFTER.replace("    tags: [String]?\n    picture: Blob?\n", ""),
    ],
    ids=["values", "renamed property", "renamed type", "several"],
)
def test_a_hard_drop_goes_with_other_steps(tmp_path: Path, schema: str) -> None:
    graph = secretive(tmp_path / "graph")
    before = graph.table("Person").to_pylist()

    graph.apply_schema(schema, allow_data_loss=True)

    assert holding(graph) == []
    assert graph.verify(deep=True).is_whole
    name = "Human" if "Human" in schema else "Person"
    kept = {"score", "name", "id"} if "tags" not in schema else {"score", "name", "id", "tags", "eye"}
    after = graph.table(name).to_pylist()
    assert [{key: row[key] for key in kept} for row in after] == [
        {key: row[key] for key in kept} for row in before
    ]
    if "alias" in schema:
        assert [row["alias"] for row in after] == [row["nick"] for row in before]
    if "level" in schema:
        assert {row["level"] for row in after} == {3}


@pytest.mark.case("engine", 745)
def test_a_required_property_becomes_nullable_beside_a_hard_drop(tmp_path: Path) -> None:
    schema = SECRETS.replace("nick: String? @index", "nick: String @index")
    graph = secretive(tmp_path / "graph", schema)
    before = [row["nick"] for row in graph.table("Person").to_pylist()]

    graph.apply_schema(AFTER, allow_data_loss=True)

    assert holding(graph) == []
    assert [row["nick"] for row in graph.table("Person").to_pylist()] == before
    graph.load(ndjson([node("Person", name="p5", nick=None)]), "merge", index=False)
    assert graph.verify(deep=True).is_whole


@pytest.mark.case("engine", 749)
@pytest.mark.parametrize("allowed", [True, False])
def test_an_upgrade_takes_the_values_from_the_files_of_a_branch_if_allowed(
    tmp_path: Path, allowed: bool
) -> None:
    graph = secretive(tmp_path / "graph")
    graph.create_branch("june")
    graph.mutate('query up() { update Person set { score: 7.0 } where name = "p2" }', branch="june")
    before = graph.query(PEOPLE, branch="june").rows
    graph.apply_schema(AFTER, allow_data_loss=True)

    result = graph.upgrade_branch("june", allow_data_loss=allowed)

    assert result.warnings == ()
    assert bool(holding_shown(graph, "june")) == (not allowed)
    assert graph.query(PEOPLE, branch="june").rows == without_secret(before)
    if allowed:
        assert set(coverage(graph, "node:Person", "june").values()) == {"indexed"}
        graph.delete_branch("june")
        graph.cleanup(keep=1)
    assert graph.verify(deep=True).is_whole


def test_progress_names_the_table_that_is_written(tmp_path: Path) -> None:
    graph = secretive(tmp_path / "graph")
    heard: list[TableProgress] = []

    graph.apply_schema(AFTER, allow_data_loss=True, index=False, progress=heard.append)

    assert [(event.operation, event.table_key, event.is_done, event.units_total) for event in heard] == [
        ("schema apply", "node:Person", False, 9),
        ("schema apply", "node:Person", True, 9),
    ]
