"""What Lance does with two commits on one version of a manifest: the fence of publishes rests on it."""

import datetime as dt
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.commit import CommitConflictError

from omnigraph.storage.tables import shapes
from tests.support.raw_lance import ids_of, new_dataset, publish, reopened
from tests.support.tables import SCHEMA, names, rows

pytestmark = pytest.mark.case("engine", 78)


@pytest.mark.parametrize("key", ["a", "fresh"])
def test_the_second_of_two_merges_that_share_a_key_is_refused(tmp_path: Path, key: str) -> None:
    dataset = new_dataset(tmp_path)
    first, second = reopened(dataset), reopened(dataset)
    publish(first, rows([key], 1))

    with pytest.raises(OSError, match=r"^Too many concurrent writers"):
        publish(second, rows([key], 2))

    assert reopened(dataset).version == 2


def test_merges_of_disjoint_keys_both_land(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    first, second = reopened(dataset), reopened(dataset)

    publish(first, rows(["a", "x"], 1))
    publish(second, rows(["b", "y"], 2))

    assert ids_of(reopened(dataset)) == ["a", "b", "x", "y"]
    assert (first.version, second.version) == (2, 3)


def test_merges_of_many_disjoint_new_keys_are_refused_falsely(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    first, second = reopened(dataset), reopened(dataset)
    publish(first, rows(names(200, "left"), 1))

    with pytest.raises(OSError, match=r"^Too many concurrent writers"):
        publish(second, rows(names(200, "right"), 2))


def test_without_the_key_annotation_both_insert_the_key(tmp_path: Path) -> None:
    bare = pa.schema([pa.field("id", pa.utf8(), nullable=False), SCHEMA.field("rank")])
    dataset = lance.write_dataset(rows(["a"]).cast(bare), str(tmp_path / "bare"), enable_stable_row_ids=True)
    first, second = reopened(dataset), reopened(dataset)

    publish(first, rows(["n"], 1).cast(bare))
    publish(second, rows(["n"], 2).cast(bare))

    assert ids_of(reopened(dataset)) == ["a", "n", "n"]


def indexed_merge(dataset: LanceDataset, table: pa.Table) -> None:
    builder = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.conflict_retries(0).execute(table)


def test_with_a_btree_on_the_key_both_insert_it_unless_the_index_is_switched_off(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    dataset.create_scalar_index("id", "BTREE")
    first, second = reopened(dataset), reopened(dataset)

    indexed_merge(first, rows(["n"], 1))
    indexed_merge(second, rows(["n"], 2))

    assert ids_of(reopened(dataset)) == ["a", "b", "n", "n"]
    third, fourth = reopened(dataset), reopened(dataset)
    publish(third, rows(["m"], 1))
    with pytest.raises(OSError, match=r"^Too many concurrent writers"):
        publish(fourth, rows(["m"], 2))


def test_cleaning_up_the_version_in_between_lets_both_insert_the_key(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    stale = reopened(dataset, 1)
    for key in ["x", "n", "y", "z"]:
        publish(reopened(dataset), rows([key], 1))
    reopened(dataset).cleanup_old_versions(older_than=dt.timedelta(0), retain_versions=2)

    publish(stale, rows(["n"], 2))

    assert ids_of(reopened(dataset)).count("n") == 2


def test_a_staged_merge_loses_its_key_filter(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    staged = [
        dataset.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute_uncommitted(rows(["n"], rank))[0]
        for rank in (1, 2)
    ]

    for transaction in staged:
        LanceDataset.commit(dataset, transaction, max_retries=0)

    assert ids_of(reopened(dataset)) == ["a", "b", "n", "n"]


def test_duplicate_keys_of_a_source_are_inserted_twice_or_raise(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)

    publish(dataset, rows(["n", "n"], 1))

    assert ids_of(dataset) == ["a", "b", "n", "n"]
    with pytest.raises(OSError, match="Ambiguous merge inserts are prohibited"):
        publish(dataset, rows(["a", "a"], 1))


def test_a_merge_that_changes_nothing_still_makes_a_version(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)

    publish(dataset, rows([], 1))

    assert dataset.version == 2
    assert ids_of(dataset) == ["a", "b"]


@pytest.mark.parametrize("order", [("fold", "update"), ("update", "fold"), ("fold", "fold")])
def test_of_a_fold_and_an_update_on_one_version_the_later_is_refused(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    dataset = new_dataset(tmp_path)
    for key in ("c", "d"):
        added = shapes.addition(dataset, shapes.write_rows(dataset, rows([key])))
        dataset = LanceDataset.commit(dataset, Transaction(dataset.version, added), max_retries=0)
    parts = [part.fragment_id for part in dataset.get_fragments()]

    def staged(kind: str) -> LanceOperation.BaseOperation:
        if kind == "fold":
            new = shapes.write_rows(dataset, dataset.to_table())
            return shapes.replacement(dataset, removed=parts, updated=[], new=new)
        new = shapes.write_rows(dataset, rows(["e"]))
        return shapes.replacement(dataset, removed=[], updated=[], new=new)

    first, second = (Transaction(dataset.version, staged(kind)) for kind in order)
    made = LanceDataset.commit(dataset, first, max_retries=0)
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(dataset, second, max_retries=0)

    expected = ["a", "b", "c", "d", *(["e"] if order[0] == "update" else [])]
    assert ids_of(reopened(dataset)) == ids_of(made) == expected


def test_two_stamps_on_one_version_refuse_each_other(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    first, second = reopened(dataset), reopened(dataset)
    first.update_schema_metadata({"stamp": "4"})

    with pytest.raises(OSError, match="Incompatible transaction"):
        second.update_schema_metadata({"stamp": "5"})


def test_new_keys_land_higher_over_a_stamp_and_over_a_compaction(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    publish(dataset, rows(["c"], 1))
    over_stamp, over_compaction = reopened(dataset), reopened(dataset)

    reopened(dataset).update_schema_metadata({"stamp": "4"})
    publish(over_stamp, rows(["x"], 1))
    reopened(dataset).optimize.compact_files()
    publish(over_compaction, rows(["y"], 1))

    assert (over_stamp.version, over_compaction.version) == (4, 7)
    assert ids_of(reopened(dataset)) == ["a", "b", "c", "x", "y"]


def test_a_compaction_refuses_a_stale_merge_of_existing_keys(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    publish(dataset, rows(["c"], 1))
    stale = reopened(dataset)
    reopened(dataset).optimize.compact_files()

    with pytest.raises(OSError, match=r"^Too many concurrent writers"):
        publish(stale, rows(["a"], 2))


def created_at(dataset: LanceDataset) -> dict[object, object]:
    found = dataset.to_table(columns=["id", "_row_created_at_version"])
    return dict(zip(found["id"].to_pylist(), found["_row_created_at_version"].to_pylist(), strict=True))


def test_a_row_remembers_the_version_that_inserted_it(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    publish(dataset, rows(["c"], 1))
    publish(dataset, rows(["d", "a"], 1))
    expected = {"a": 1, "b": 1, "c": 2, "d": 3}
    assert created_at(dataset) == expected

    dataset.optimize.compact_files()
    branch = dataset.create_branch("fork")
    publish(branch, rows(["e"], 1))

    assert created_at(dataset) == expected
    assert created_at(branch) == expected | {"e": branch.version}
    branch.optimize.compact_files()
    assert created_at(branch) == expected | {"e": 6}
