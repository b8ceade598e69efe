"""Bases come and go with the schema: what rows have stays, what a write or a merge brings is checked."""

import pytest

from omnigraph.core.errors import MergeConflicts, SchemaError, ValidationError
from omnigraph.graph.graph import Graph
from tests.engine.references.steps import COVERS, OTHER, S3, SCHEMA, WITHOUT_S3, covers
from tests.support.engine import pins, rows
from tests.support.queries import mutation

NEW_S3 = mutation('insert Book { code: "n", cover: "s3://assets/atlas/new" }')
NOTE = mutation('update Book set { note: "seen" } where code = "a"')


@pytest.mark.case("surfaces", 734)
def test_references_below_a_removed_base_stay(graph: Graph) -> None:
    before = pins(graph)

    applied = graph.apply_schema(WITHOUT_S3, index=False)

    assert [type(step).__name__ for step in applied.steps] == ["ChangeExternal"]
    assert ["s3://assets/atlas/ stay" in note.text for note in applied.diagnostics] == [True]
    assert pins(graph) == before
    graph.mutate(NOTE)
    assert (rows(graph, "Book")["a"]["note"], covers(graph)) == ("seen", COVERS)
    assert graph.blob("node", "Book", "a", "cover").uri == S3
    assert graph.verify(deep=True).is_whole
    for again in (NEW_S3, mutation(f'update Book set {{ cover: "{S3}" }} where code = "a"')):
        with pytest.raises(ValidationError, match=r"it is not below https://cdn\.example/$"):
            graph.mutate(again)
    assert graph.apply_schema(SCHEMA).diagnostics == ()
    graph.mutate(NEW_S3)
    assert pins(graph).keys() == before.keys()


@pytest.mark.case("surfaces", 734)
def test_bytes_and_references_never_share_a_property(graph: Graph) -> None:
    with pytest.raises(SchemaError, match=r"taking @external from 'Book\.cover' is not supported"):
        graph.apply_schema(SCHEMA.replace(' @external("s3://assets/atlas/", "https://cdn.example/")', ""))

    assert covers(graph) == COVERS
    assert '"s3://assets/atlas/", "https://cdn.example/"' in graph.schema()
    (cover,) = (item for item in graph.describe("Book").properties if item.name == "cover")
    assert cover.annotations == ('@external("https://cdn.example/", "s3://assets/atlas/")',)


@pytest.mark.case("surfaces", 735)
def test_a_branch_does_not_bring_a_removed_base_back(graph: Graph) -> None:
    graph.create_branch("left")
    graph.mutate(NEW_S3, branch="left")
    graph.mutate(mutation(f'insert Book {{ code: "o", cover: "{OTHER}" }}'), branch="left")
    graph.apply_schema(WITHOUT_S3)

    with pytest.raises(MergeConflicts) as caught:
        graph.merge("left")

    (conflict,) = caught.value.conflicts
    assert (conflict.table_key, conflict.row_id) == ("node:Book", "n")
    assert conflict.kind.value == "value_constraint_violation"
    assert "Book.cover: not a reference that @external allows: it is not below" in conflict.message
    assert covers(graph) == COVERS
    graph.mutate(mutation(f'update Book set {{ cover: "{OTHER}" }} where code = "n"'), branch="left")
    graph.merge("left")
    assert covers(graph) == {**COVERS, "n": OTHER, "o": OTHER}


@pytest.mark.case("surfaces", 735)
def test_what_the_target_has_already_merges(graph: Graph) -> None:
    graph.create_branch("left")
    graph.mutate(NOTE, branch="left")
    graph.apply_schema(WITHOUT_S3)
    graph.mutate(mutation('update Book set { note: "main" } where code = "b"'))

    merged = graph.merge("left")

    assert merged.outcome.value == "merged"
    assert (rows(graph, "Book")["a"]["note"], covers(graph)) == ("seen", COVERS)


@pytest.mark.case("surfaces", 735)
def test_a_row_cannot_take_the_reference_of_another(graph: Graph) -> None:
    graph.create_branch("left")
    graph.mutate(mutation(f'update Book set {{ cover: "{S3}" }} where code = "b"'), branch="left")
    graph.apply_schema(WITHOUT_S3)

    with pytest.raises(MergeConflicts) as caught:
        graph.merge("left")

    assert [conflict.row_id for conflict in caught.value.conflicts] == ["b"]


@pytest.mark.case("surfaces", 735)
def test_bases_are_merged_like_the_rest_of_a_schema(graph: Graph) -> None:
    graph.create_branch("left")
    graph.create_branch("right")
    graph.apply_schema(WITHOUT_S3, branch="left")
    graph.mutate(NOTE)
    graph.merge("left")
    with pytest.raises(ValidationError, match="it is not below"):
        graph.mutate(NEW_S3)

    graph.apply_schema(SCHEMA.replace('"s3://assets/atlas/"', '"s3://other/"'), branch="right")
    with pytest.raises(MergeConflicts) as caught:
        graph.merge("right")
    assert [conflict.message for conflict in caught.value.conflicts] == [
        "both sides changed its external, in different ways: cover"
    ]
