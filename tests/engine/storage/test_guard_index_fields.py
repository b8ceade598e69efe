"""An index names the field of its column: nested fields, which only lists have, are never asked about."""

from pathlib import Path

import lance
import pyarrow as pa


def test_guard_an_index_names_the_field_of_its_column(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "tags": pa.array([["a"], ["b", "c"]], pa.list_(pa.utf8())),
            "id": ["x", "y"],
            "vector": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        }
    )
    dataset = lance.write_dataset(rows, str(tmp_path / "rows"), enable_stable_row_ids=True)
    fields = {field.name(): field for field in dataset.lance_schema.fields()}

    indexes = {
        "tags": dataset.create_index_uncommitted("tags", "LABEL_LIST", name="t", fragment_ids=[0]),
        "id": dataset.create_index_uncommitted("id", "BTREE", name="i", fragment_ids=[0]),
        "vector": dataset.create_index_uncommitted(
            "vector", "IVF_FLAT", name="v", fragment_ids=[0], metric="L2", num_partitions=1
        ),
    }

    assert {name: index.fields for name, index in indexes.items()} == {
        name: [fields[name].id()] for name in indexes
    }
    assert {name for name, field in fields.items() if field.children()} == {"tags"}
