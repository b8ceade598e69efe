"""Two sides that are at odds about the schema, or about rows of what one of them dropped."""

from pathlib import Path

import pytest

from omnigraph.core.errors import MergeConflicts
from omnigraph.core.merge_conflict import MergeConflictKind as Kind
from omnigraph.graph.graph import Graph
from tests.engine.schema.world import TEAM, replaced, team
from tests.support.engine import files, ndjson, node, rows
from tests.support.queries import mutation

NO_WORK = replaced("edge WorksAt: Person -> Company\n", "")
NO_SCORE = replaced("    score: F32?\n", "")
Found = list[tuple[str, str | None, Kind]]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = team(tmp_path / "graph")
    graph.create_branch("june")
    return graph


def refused(graph: Graph, source: str, into: str) -> list[tuple[str, str | None, Kind, str]]:
    """Merge in vain: the dry run says the same, and nothing has changed."""
    graph.refresh()
    before = files(Path(graph.uri))
    foreseen = graph.merge(source, into=into, dry_run=True).conflicts
    with pytest.raises(MergeConflicts) as caught:
        graph.merge(source, into=into)
    after = files(Path(graph.uri))
    assert {name for name in after if "__locks" not in name} == {
        name for name in before if "__locks" not in name
    }
    assert {name: text for name, text in after.items() if "__locks" not in name} == {
        name: text for name, text in before.items() if "__locks" not in name
    }
    assert list(foreseen) == list(caught.value.conflicts)
    return [(found.table_key, found.row_id, found.kind, found.message) for found in foreseen]


def kinds(found: list[tuple[str, str | None, Kind, str]]) -> Found:
    return [(table_key, row_id, kind) for table_key, row_id, kind, _ in found]


@pytest.mark.case("engine", 540)
@pytest.mark.parametrize(("dropping", "writing"), [("main", "june"), ("june", "main")])
def test_rows_of_a_type_that_the_other_side_dropped_are_conflicts(
    graph: Graph, dropping: str, writing: str
) -> None:
    graph.mutate(mutation('insert WorksAt { from: "bob", to: "acme" }'), branch=writing)
    graph.apply_schema(NO_WORK, branch=dropping, index=False)
    (added,) = [
        row["id"] for row in graph.table("WorksAt", branch=writing).to_pylist() if row["src"] == "bob"
    ]

    assert kinds(refused(graph, "june", "main")) == [("edge:WorksAt", added, Kind.DROPPED_TYPE)]
    assert kinds(refused(graph, "main", "june")) == [("edge:WorksAt", added, Kind.DROPPED_TYPE)]
    if dropping == "main":
        with pytest.raises(MergeConflicts) as caught:
            graph.upgrade_branch("june")
        assert [found.row_id for found in caught.value.conflicts] == [added]
        assert graph.schema(branch="june") == TEAM


@pytest.mark.case("engine", 541)
@pytest.mark.parametrize(("dropping", "writing"), [("main", "june"), ("june", "main")])
def test_values_of_a_property_that_the_other_side_dropped_are_conflicts(
    graph: Graph, dropping: str, writing: str
) -> None:
    graph.mutate(mutation('update Person set { score: 9.5 } where name = "bob"'), branch=writing)
    graph.mutate(mutation('update Person set { age: 41 } where name = "ann"'), branch=writing)
    graph.load(
        ndjson([node("Person", name="cid", note="n", score=1.0), node("Person", name="dan", note="n")]),
        "append",
        branch=writing,
        index=False,
    )
    graph.apply_schema(NO_SCORE, branch=dropping, index=False)

    for source, into in (("june", "main"), ("main", "june")):
        assert kinds(refused(graph, source, into)) == [
            ("node:Person", "bob", Kind.DROPPED_PROPERTY),
            ("node:Person", "cid", Kind.DROPPED_PROPERTY),
        ]


@pytest.mark.case("engine", 540)
@pytest.mark.case("engine", 541)
@pytest.mark.parametrize("schema", [NO_WORK, NO_SCORE])
def test_what_nobody_wrote_to_is_dropped_without_a_word(graph: Graph, schema: str) -> None:
    graph.mutate(mutation('update Person set { age: 41 } where name = "ann"'), branch="june")
    graph.apply_schema(schema, index=False)

    graph.merge("june")

    assert graph.schema() == schema
    assert rows(graph, "Person")["ann"]["age"] == 41
    assert graph.upgrade_branch("june").applied
    assert graph.schema(branch="june") == schema


@pytest.mark.case("engine", 847)
@pytest.mark.parametrize("score", [None, 9.5])
def test_a_row_that_the_bases_disagree_about_counts_as_new(graph: Graph, score: float | None) -> None:
    """Each side resolves one conflict in the other's favour, then both agree, and one drops a property."""
    for side, age in (("main", 31), ("june", 32)):
        graph.load(ndjson([node("Person", name="cid", note="n", age=age, score=score)]), "merge", branch=side)
    graph.create_branch("main0")
    graph.create_branch("june0", from_="june")
    for side, age in (("main", 32), ("june", 31)):
        set_age(graph, side, age)
    graph.merge("june0")
    graph.merge("main0", into="june")
    set_age(graph, "june", 32)
    graph.apply_schema(NO_SCORE, branch="main", index=False)

    told = graph.merge("june", dry_run=True).conflicts

    expected = [] if score is None else [("node:Person", "cid", Kind.DROPPED_PROPERTY)]
    assert [(each.table_key, each.row_id, each.kind) for each in told] == expected


def set_age(graph: Graph, branch: str, age: int) -> None:
    graph.mutate(mutation(f'update Person set {{ age: {age} }} where name = "cid"'), branch=branch)


DISAGREEMENTS = {
    "renamed differently": (
        replaced("nick: String?", 'alias: String? @rename_from("nick")'),
        replaced("nick: String?", 'handle: String? @rename_from("nick")'),
        [("node:Person", "alias")],
    ),
    "changed and dropped": (
        replaced("score: F32?", "score: F64?"),
        NO_SCORE,
        [("node:Person", "score")],
    ),
    "other defaults": (
        replaced("age: I32?", "age: I32? @default(1)"),
        replaced("age: I32?", "age: I32? @default(2)"),
        [("node:Person", "age")],
    ),
    "a property of one name": (
        replaced("note: String", "note: String\n email: String?"),
        replaced("note: String", "note: String\n email: I32?"),
        [("node:Person", "email")],
    ),
    "the same property twice": (
        replaced("note: String", "note: String\n email: String?"),
        replaced("note: String", "note: String\n email: String?"),
        [("node:Person", "email")],
    ),
    "a type of one name": (
        TEAM + "node City { name: String @key }\n",
        TEAM + "node City { name: String @key  size: I32? }\n",
        [("schema", "City")],
    ),
    "a type renamed and dropped": (
        replaced("edge WorksAt:", 'edge PaidBy @rename_from("WorksAt"):').replace(
            'PaidBy @rename_from("WorksAt"): Person -> Company',
            'PaidBy: Person -> Company @rename_from("WorksAt")',
        ),
        NO_WORK,
        [("edge:PaidBy", None)],
    ),
    "several at once": (
        replaced("age: I32?", "age: I32? @default(1)").replace("score: F32?", "score: F64?"),
        replaced("age: I32?", "age: I32? @default(2)").replace("    score: F32?\n", ""),
        [("node:Person", "age"), ("node:Person", "score")],
    ),
}


@pytest.mark.case("engine", 542)
@pytest.mark.parametrize(("ours", "theirs", "named"), DISAGREEMENTS.values(), ids=DISAGREEMENTS)
def test_schemas_that_disagree_are_conflicts_that_name_what_it_is_about(
    graph: Graph, ours: str, theirs: str, named: list[tuple[str, str | None]]
) -> None:
    graph.apply_schema(ours, index=False)
    graph.apply_schema(theirs, branch="june", index=False)
    counter = (Path(graph.uri) / "__numbers.json").read_text()

    for source, into in (("june", "main"), ("main", "june")):
        found = refused(graph, source, into)

        assert {kind for _, _, kind, _ in found} == {Kind.SCHEMA_CONFLICT}
        assert {row_id for _, row_id, _, _ in found} == {None}
        assert len(found) == len(named)
        for (table_key, _, _, message), (wanted_key, word) in zip(found, named, strict=True):
            assert table_key == wanted_key
            assert word is None or word in message or "handle" in message
    with pytest.raises(MergeConflicts):
        graph.upgrade_branch("june")
    assert (graph.schema(), graph.schema(branch="june")) == (ours, theirs)
    assert (Path(graph.uri) / "__numbers.json").read_text() == counter
