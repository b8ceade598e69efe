"""What Lance does with columns: other ones under the same fragments, and field ids that are given to it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError
from lance.fragment import FragmentMetadata
from lance.schema import LanceSchema

from omnigraph.storage.files.version_file import fields
from omnigraph.storage.tables.reshape import ISSUED_FROM, numbered_schema
from tests.support.raw_lance import anchored, fragments_of, new_dataset, reopened
from tests.support.tables import rows

pytestmark = pytest.mark.case("engine", 78)

HIGH = ISSUED_FROM + 10


def ids_of(dataset: LanceDataset) -> dict[str, int]:
    return {field.name(): field.id() for field in dataset.lance_schema.fields()}


def merge(dataset: LanceDataset, schema: pa.Schema, ids: dict[str, list[int]]) -> LanceOperation.Merge:
    """Return all fragments as they are, under another schema."""
    return LanceOperation.Merge([f.metadata for f in dataset.get_fragments()], numbered_schema(schema, ids))


def with_more(dataset: LanceDataset) -> LanceOperation.Merge:
    """Return a merge that adds a column."""
    ids = {name: [number] for name, number in ids_of(dataset).items()}
    return merge(dataset, dataset.schema.append(pa.field("more", pa.utf8())), {**ids, "more": [HIGH]})


def commit(dataset: LanceDataset, operation: object, version: int | None = None) -> LanceDataset:
    read = dataset.version if version is None else version
    return LanceDataset.commit(dataset, cast("Any", operation), read_version=read, max_retries=0)


def data_files(dataset: LanceDataset) -> set[str]:
    return {str(path) for path in Path(dataset.uri).glob("data/*")}


def test_a_schema_is_made_of_messages_with_the_numbers_of_fields() -> None:
    schema = pa.schema([pa.field("id", pa.utf8(), nullable=False), pa.field("tags", pa.list_(pa.int64()))])

    maker, (metadata, *messages) = cast("Any", LanceSchema.from_pyarrow(schema)).__reduce__()
    again = cast("Any", LanceSchema)._from_protos(metadata, *messages)

    assert maker is not None
    assert again.to_pyarrow() == schema
    found = [dict(fields(memoryview(message))) for message in messages]
    assert [bytes(cast("memoryview", each[2])).decode() for each in found] == ["id", "tags", "item"]
    assert [each.get(3, 0) for each in found] == [0, 1, 2]
    numbered = numbered_schema(schema, {"id": [7], "tags": [HIGH, HIGH + 1]})
    assert [field.id() for field in numbered.fields()] == [7, HIGH]
    assert [child.id() for child in numbered.fields()[1].children()] == [HIGH + 1]
    assert numbered.to_pyarrow() == schema


def test_a_merge_of_unchanged_fragments_writes_no_data_file(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    before = data_files(dataset)

    landed = commit(dataset, with_more(dataset))

    assert data_files(landed) == before
    assert ids_of(landed) == {**ids_of(dataset), "more": HIGH}
    assert landed.to_table(columns=["id", "more"]).to_pylist() == [
        {"id": "a", "more": None},
        {"id": "b", "more": None},
    ]
    assert reopened(dataset, 1).to_table().column_names == dataset.schema.names
    later = commit(landed, anchored(landed, ["c"]).operation)
    assert later.count_rows() == 3


RIVALS: dict[str, Callable[[LanceDataset], object]] = {
    "update": lambda dataset: anchored(dataset, ["c"]).operation,
    "delete": lambda dataset: LanceOperation.Delete(
        [cast("Any", dataset.get_fragments()[0].delete_rows([0]))], [], "by address"
    ),
    "merge": with_more,
    "append by merge": lambda dataset: LanceOperation.Merge(
        [*(f.metadata for f in dataset.get_fragments()), *fragments_of(dataset, rows(["d"]))],
        dataset.lance_schema,
    ),
}


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("is_first", [True, False], ids=["merge first", "merge second"])
def test_a_merge_of_columns_and_other_commits_exclude_each_other(
    tmp_path: Path, rival: str, is_first: bool
) -> None:
    dataset = new_dataset(tmp_path)
    ours, theirs = with_more(dataset), RIVALS[rival](dataset)
    first, second = (ours, theirs) if is_first else (theirs, ours)
    commit(reopened(dataset), first, 1)

    with pytest.raises((CommitConflictError, OSError)):
        commit(dataset, second, 1)

    assert reopened(dataset).version == 2


def test_a_merge_takes_no_column_that_data_files_have_and_the_schema_lacks(tmp_path: Path) -> None:
    """A dropped column does not come back under its old number with the old values by accident of ours."""
    dataset = new_dataset(tmp_path)
    ids = {name: [number] for name, number in ids_of(dataset).items()}
    last = dataset.schema.names[-1]
    dropped = commit(
        dataset, merge(dataset, dataset.schema.remove(dataset.schema.get_field_index(last)), ids)
    )
    assert last not in dropped.schema.names

    again = commit(dropped, merge(dropped, dataset.schema, {**ids, last: [HIGH]}))

    assert again.to_table()[last].null_count == 2
    assert ids_of(again)[last] == HIGH


def test_a_renamed_column_keeps_its_values_and_its_index(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    dataset.create_scalar_index("id", "BTREE")
    dataset = reopened(dataset)
    ids = {name: [number] for name, number in ids_of(dataset).items()}
    names = ["key" if name == "id" else name for name in dataset.schema.names]
    schema = pa.schema([field.with_name(name) for field, name in zip(dataset.schema, names, strict=True)])

    landed = commit(dataset, merge(dataset, schema, {**ids, "key": ids["id"]}))

    assert landed.to_table(filter="key = 'a'").num_rows == 1
    assert "ScalarIndexQuery" in landed.scanner(filter="key = 'a'").explain_plan()


def test_only_a_project_lets_a_column_take_nulls_and_it_passes_deletions(tmp_path: Path) -> None:
    dataset = lance.write_dataset(
        pa.table(
            {"id": ["a", "b"], "note": ["x", "y"]},
            schema=pa.schema([pa.field("id", pa.utf8()), pa.field("note", pa.utf8(), nullable=False)]),
        ),
        str(tmp_path / "strict"),
        enable_stable_row_ids=True,
    )
    ids = {name: [number] for name, number in ids_of(dataset).items()}
    relaxed = numbered_schema(pa.schema([pa.field("id", pa.utf8()), pa.field("note", pa.utf8())]), ids)
    delete = LanceOperation.Delete(
        [cast("Any", dataset.get_fragments()[0].delete_rows([0]))], [], "by address"
    )
    commit(reopened(dataset), LanceOperation.Project(relaxed), 1)

    landed = commit(dataset, delete, 1)

    assert landed.version == 3
    assert landed.schema.field("note").nullable
    assert landed.to_table()["id"].to_pylist() == ["b"]


def test_values_of_a_new_column_are_found_by_the_number_in_the_description(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    ids = {name: [number] for name, number in ids_of(dataset).items()}
    (fragment,) = dataset.get_fragments()

    metadata, schema = fragment.merge_columns(
        lambda batch: pa.RecordBatch.from_pydict({"extra": pa.array([5] * batch.num_rows, pa.int64())}),
        columns=["id"],
    )
    document = metadata.to_json()
    assert document["files"][-1]["fields"] == [cast("Any", schema.field("extra")).id()]
    document["files"][-1]["fields"] = [HIGH]
    target = numbered_schema(dataset.schema.append(pa.field("extra", pa.int64())), {**ids, "extra": [HIGH]})
    landed = commit(dataset, LanceOperation.Merge([FragmentMetadata.from_json(json.dumps(document))], target))

    assert landed.to_table()["extra"].to_pylist() == [5, 5]
    assert ids_of(landed)["extra"] == HIGH


def test_a_fork_takes_other_columns_and_its_source_keeps_its_own(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    dataset.create_branch("fork", 1)
    fork = dataset.checkout_version(("fork", None))

    landed = commit(fork, with_more(fork))

    assert "more" in landed.schema.names
    assert landed.count_rows() == 2
    assert "more" not in reopened(dataset).schema.names
