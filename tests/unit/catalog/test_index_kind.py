"""Which indexes a table has (languages 1.10)."""

import pytest

from omnigraph.catalog.index_kind import IndexKind, IndexSpec, index_specs
from tests.support.library import compile_text


def node_indexes(body: str) -> list[tuple[str, str]]:
    """Return column and kind of every index of a node but that of its id, which is always there."""
    first, *rest = index_specs(compile_text(f"node M {{ {body} }}").nodes["M"])
    assert first == IndexSpec("id", IndexKind.BTREE)
    return [(spec.column, str(spec.kind)) for spec in rest]


def edge_indexes(body: str) -> list[tuple[str, str]]:
    specs = index_specs(compile_text(f"node N {{}} edge E: N -> N {{ {body} }}").edges["E"])
    return [(spec.column, str(spec.kind)) for spec in specs]


PHYSICAL = [("id", "btree"), ("src", "btree"), ("dst", "btree")]


@pytest.mark.parametrize(
    "type_", ["enum(a)", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime", "I32?"]
)
def test_an_index_on_a_value_is_a_b_tree(type_: str) -> None:
    assert node_indexes(f"x: {type_} @index") == [("x", "btree")]


@pytest.mark.parametrize("annotation", ["@index", "@key", "@index @key"])
def test_an_index_on_a_text_is_full_text(annotation: str) -> None:
    assert node_indexes(f"x: String {annotation}") == [("x", "fulltext")]


def test_an_index_on_a_vector_is_a_vector_index() -> None:
    assert node_indexes("x: Vector(3)? @index") == [("x", "vector")]


def test_a_unique_column_has_a_b_tree_besides_what_its_index_asks_for() -> None:
    assert node_indexes("x: String @unique") == [("x", "btree")]
    assert node_indexes("x: String @unique @index") == [("x", "btree"), ("x", "fulltext")]
    assert node_indexes("x: I32 @unique @index") == [("x", "btree")]


def test_every_column_of_a_unique_tuple_has_a_b_tree() -> None:
    assert node_indexes("b: String  a: I32  c: I32  @unique(b, a)") == [("a", "btree"), ("b", "btree")]


def test_an_index_of_several_columns_builds_nothing() -> None:
    assert node_indexes("a: I32  b: I32  @index(a, b)") == []
    assert node_indexes("a: I32  b: String  @key(a, b)") == []


def test_the_body_spelling_of_an_index_is_the_same_index() -> None:
    assert node_indexes("a: String  @index(a)") == [("a", "fulltext")]


def test_an_unindexed_property_has_no_index() -> None:
    assert node_indexes("a: String  b: [I32]  c: Blob  v: Vector(2)") == []


def test_an_edge_has_its_physical_columns_indexed_and_unique_properties() -> None:
    assert edge_indexes("") == PHYSICAL
    assert edge_indexes("w: I32 @index  t: String @index  @index(src)") == PHYSICAL
    assert edge_indexes("w: I32 @unique") == [*PHYSICAL, ("w", "btree")]
    assert edge_indexes("w: String  @unique(src, dst, w)") == [*PHYSICAL, ("w", "btree")]
