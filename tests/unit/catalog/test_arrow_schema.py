"""Physical columns: their order, types and metadata (languages 1.8)."""

import pyarrow as pa
import pytest

from omnigraph.catalog.arrow_schema import PROPERTY_ID_KEY, arrow_schema, arrow_type
from omnigraph.core.values import SCALAR_WORDS, Scalar, ValueType
from tests.support.library import catalog, compile_text, evolved_catalog


def test_a_node_table_is_its_id_and_its_properties_by_name() -> None:
    schema = arrow_schema(compile_text("node N { b: I32  a: String?  c: [F64]?  k: Blob }").nodes["N"])

    assert list(schema) == [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("a", pa.utf8(), nullable=True),
        pa.field("b", pa.int32(), nullable=False),
        pa.field("c", pa.list_(pa.field("item", pa.float64(), nullable=True)), nullable=True),
        pa.field("k", pa.large_binary(), nullable=False),
    ]


def test_an_edge_table_is_its_id_its_endpoints_and_its_properties_by_name() -> None:
    schema = arrow_schema(catalog().edges["Wrote"])

    assert list(schema) == [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("src", pa.utf8(), nullable=False),
        pa.field("dst", pa.utf8(), nullable=False),
        pa.field("role", pa.utf8(), nullable=True),
        pa.field("share", pa.float64(), nullable=True),
    ]


def test_a_vector_is_a_list_of_fixed_size() -> None:
    assert arrow_type(ValueType(Scalar.VECTOR, dimension=2147483647)) == pa.list_(
        pa.field("item", pa.float32(), nullable=True), 2147483647
    )


@pytest.mark.parametrize("word", sorted(SCALAR_WORDS.keys() - {"Blob"}))
def test_a_list_holds_items_of_the_type_of_its_scalar(word: str) -> None:
    scalar = SCALAR_WORDS[word]

    listed = arrow_type(ValueType(scalar, is_list=True))

    assert listed == pa.list_(pa.field("item", arrow_type(ValueType(scalar)), nullable=True))


def test_a_column_carries_the_id_of_its_property_across_a_rename() -> None:
    first, second = "node N { a: I32?  b: I32? }", 'node N { z: I32? @rename_from("a")  b: I32? }'

    before = arrow_schema(evolved_catalog(first).nodes["N"]).field("a").metadata
    after = arrow_schema(evolved_catalog(first, second).nodes["N"]).field("z").metadata

    assert before == after
    assert before == {PROPERTY_ID_KEY: b"2"}  # the type has 1, its properties follow by name
