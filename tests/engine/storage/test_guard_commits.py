"""What Lance does with commits on one base: the strict shapes and the check behind them rest on it."""

import threading
from collections.abc import Callable
from itertools import product
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.commit import CommitConflictError
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.core.errors import CommitConflict
from omnigraph.storage.files.version_file import (
    decode_version,
    fields,
    transaction_message,
    version_file_name,
)
from tests.support.raw_lance import anchored, append, fragments_of, ids_of, new_dataset, publish, reopened
from tests.support.shapes import SHAPES
from tests.support.tables import PRIMARY_KEY, SCHEMA, Workbench, names, rows

pytestmark = pytest.mark.case("engine", 78)


def plain_update(dataset: LanceDataset) -> LanceOperation.BaseOperation:
    return LanceOperation.Update([], [], fragments_of(dataset, rows(["u"])), update_mode="rewrite_rows")


def plain_delete(dataset: LanceDataset) -> LanceOperation.BaseOperation:
    changed = dataset.get_fragments()[0].delete_rows([0])
    assert changed is not None
    return LanceOperation.Delete([changed], [], "by address")


REBASED: dict[str, Callable[[LanceDataset], LanceOperation.BaseOperation]] = {
    "append": lambda dataset: LanceOperation.Append(fragments_of(dataset, rows(["p"]))),
    "update": plain_update,
    "delete": plain_delete,
    "restore": lambda dataset: LanceOperation.Restore(1),
}


@pytest.mark.parametrize("shape", REBASED)
def test_no_retries_does_not_refuse_a_rebase(tmp_path: Path, shape: str) -> None:
    dataset = new_dataset(tmp_path)
    stale = REBASED[shape](dataset)
    append(reopened(dataset), ["other"])

    landed = LanceDataset.commit(dataset, stale, read_version=1, max_retries=0)

    assert landed.version == 3


def test_an_overwrite_without_retries_is_strict(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    append(reopened(dataset), ["other"])

    with pytest.raises(CommitConflictError) as refused:
        LanceDataset.commit(
            dataset, LanceOperation.Overwrite(dataset.lance_schema, []), read_version=1, max_retries=0
        )

    assert refused.value.retryable
    assert ids_of(reopened(dataset)) == ["a", "b", "other"]


def test_two_anchored_updates_on_one_base_collide_and_a_plain_append_slips_through(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    first, second, third = (anchored(dataset, [key]) for key in ["x", "y", "z"])
    LanceDataset.commit(dataset, first, max_retries=0)

    with pytest.raises(CommitConflictError) as refused:
        LanceDataset.commit(dataset, second, max_retries=0)

    assert refused.value.retryable
    append(dataset, ["slipped"])
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(dataset, third, max_retries=0)
    assert ids_of(reopened(dataset)) == ["a", "b", "slipped", "x"]


def test_every_stale_pair_of_our_shapes_is_refused(tmp_path: Path) -> None:
    for number, (first, second) in enumerate(product(SHAPES, repeat=2)):
        bench = Workbench(tmp_path, name=f"table-{number}")
        bench.upsert(rows(["a", "b"]))
        base = bench.head()
        winner, loser = (SHAPES[name](bench.stager, base, name) for name in (first, second))
        bench.commit(winner)

        with pytest.raises(CommitConflict) as refused:
            bench.commit(loser)

        cause = refused.value.__cause__
        assert isinstance(cause, CommitConflictError)
        # An overwrite leaves nothing that another shape could be tried on again.
        assert cause.retryable == (first != "overwrite" or second == "overwrite"), (first, second)
        assert bench.head().version == base.version + 1


def merge_of(dataset: LanceDataset, key: str) -> LanceOperation.BaseOperation:
    return LanceOperation.Merge(fragments_of(dataset, rows([key])), dataset.lance_schema)


def test_two_merges_into_an_empty_table_collide(tmp_path: Path) -> None:
    empty = LanceDataset.commit(
        str(tmp_path / "empty"), LanceOperation.Overwrite(SCHEMA, []), enable_stable_row_ids=True
    )
    first, second = merge_of(empty, "x"), merge_of(empty, "y")
    LanceDataset.commit(empty, first, read_version=1, max_retries=0)

    with pytest.raises(CommitConflictError) as refused:
        LanceDataset.commit(empty, second, read_version=1, max_retries=0)

    assert refused.value.retryable


@pytest.mark.parametrize("between", ["index", "config"])
def test_data_commits_land_higher_over_an_index_or_config_commit(tmp_path: Path, between: str) -> None:
    dataset = new_dataset(tmp_path)
    staged = anchored(dataset, ["x"], uuid="00000000-0000-4000-8000-00000000000a")
    if between == "index":
        reopened(dataset).create_scalar_index("id", "BTREE")
    else:
        reopened(dataset).update_config({"some.key": "value"})

    landed = LanceDataset.commit(dataset, staged, max_retries=0)

    assert landed.version == 3
    recorded = landed.read_transaction(3)
    assert recorded is not None
    assert recorded.uuid == staged.uuid


@pytest.mark.parametrize("after", ["overwrite", "restore"])
def test_everything_staged_before_an_overwrite_or_a_restore_is_refused_for_good(
    tmp_path: Path, after: str
) -> None:
    dataset = append(new_dataset(tmp_path), ["c"])
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    segment = dataset.create_index_uncommitted("id", "BTREE", fragment_ids=fragments)
    staged = {
        "update": anchored(dataset, ["x"]).operation,
        "delete": plain_delete(dataset),
        "append": REBASED["append"](dataset),
        "index": LanceOperation.CreateIndex([segment], []),
    }
    undo = {
        "overwrite": LanceOperation.Overwrite(dataset.lance_schema, []),
        "restore": LanceOperation.Restore(1),
    }
    LanceDataset.commit(dataset, undo[after], read_version=2)

    for operation in staged.values():
        with pytest.raises(CommitConflictError, match="Incompatible transaction") as refused:
            LanceDataset.commit(dataset, operation, read_version=2, max_retries=0)
        assert not refused.value.retryable


def test_a_restore_never_conflicts_and_hides_what_others_committed(tmp_path: Path) -> None:
    dataset = append(new_dataset(tmp_path), ["c"])
    append(reopened(dataset), ["concurrent"])

    restored = LanceDataset.commit(dataset, LanceOperation.Restore(1), read_version=2, max_retries=0)

    assert restored.version == 4
    assert ids_of(restored) == ["a", "b"]


def test_one_append_committed_twice_is_applied_twice(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    staged = Transaction(1, LanceOperation.Append(fragments_of(dataset, rows(["twice"]))))

    LanceDataset.commit(dataset, staged, max_retries=0)
    LanceDataset.commit(dataset, staged, max_retries=0)

    assert ids_of(reopened(dataset)) == ["a", "b", "twice", "twice"]


def test_an_overwrite_drops_indexes_and_takes_the_schema_as_given(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    dataset.create_scalar_index("id", "BTREE")
    bare = pa.schema([pa.field("id", pa.utf8()), SCHEMA.field("rank")])

    replaced = LanceDataset.commit(reopened(dataset), LanceOperation.Overwrite(bare, []), read_version=2)

    assert replaced.describe_indices() == []
    assert replaced.schema.field("id").nullable
    assert not replaced.schema.field("id").metadata
    assert replaced.has_stable_row_ids


def test_the_key_column_must_be_non_null_and_its_annotation_stays(tmp_path: Path) -> None:
    nullable = pa.schema([pa.field("id", pa.utf8(), metadata=PRIMARY_KEY)])
    with pytest.raises(OSError, match="must not be nullable"):
        lance.write_dataset(pa.table({"id": ["a"]}, schema=nullable), str(tmp_path / "nullable"))
    dataset = new_dataset(tmp_path)

    with pytest.raises(OSError, match="primary key"):
        dataset.update_field_metadata({"id": {"lance-schema:unenforced-primary-key": "false"}})

    assert reopened(dataset).schema.field("id").metadata == {
        key.encode(): value.encode() for key, value in PRIMARY_KEY.items()
    }


def fragmented(tmp_path: Path) -> LanceDataset:
    dataset = new_dataset(tmp_path)
    dataset.create_scalar_index("id", "BTREE", name="id__btree")
    dataset = reopened(dataset)
    for key in ["x", "y", "z"]:
        dataset = append(dataset, [key])
    return dataset


def test_a_compaction_is_a_reserve_and_a_rewrite_without_properties(tmp_path: Path) -> None:
    dataset = fragmented(tmp_path)
    before = dataset.version

    dataset.optimize.compact_files()

    assert dataset.version == before + 2
    reserve, rewrite = dataset.read_transaction(before + 1), dataset.read_transaction(before + 2)
    assert reserve is not None
    assert rewrite is not None
    assert type(reserve.operation) is LanceOperation.BaseOperation
    assert isinstance(rewrite.operation, LanceOperation.Rewrite)
    assert not reserve.transaction_properties
    assert not rewrite.transaction_properties
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    fold = dataset.read_transaction(before + 3)
    assert fold is not None
    assert isinstance(fold.operation, LanceOperation.CreateIndex)
    assert not fold.transaction_properties


def test_a_compaction_that_conflicts_leaves_its_reserve_behind(tmp_path: Path) -> None:
    from lance.optimize import Compaction

    dataset = fragmented(tmp_path)
    before = dataset.version
    results = [task.execute(dataset) for task in Compaction.plan(dataset, {}).tasks]
    changed = dataset.get_fragments()[1].delete_rows([])
    assert changed is not None
    touching = LanceOperation.Delete([changed], [], "touch")
    LanceDataset.commit(reopened(dataset), touching, read_version=before)

    with pytest.raises(OSError, match="Retryable commit conflict"):
        Compaction.commit(dataset, results)

    assert reopened(dataset).version == before + 2
    assert ids_of(reopened(dataset)) == ["a", "b", "x", "y", "z"]


def test_a_compaction_lands_on_top_of_foreign_rows(tmp_path: Path) -> None:
    from lance.optimize import Compaction

    dataset = fragmented(tmp_path)
    before = dataset.version
    results = [task.execute(dataset) for task in Compaction.plan(dataset, {}).tasks]
    append(reopened(dataset), ["foreign"])

    Compaction.commit(dataset, results)

    assert reopened(dataset).version == before + 3
    assert ids_of(reopened(dataset)) == ["a", "b", "foreign", "x", "y", "z"]


def test_a_version_file_holds_its_transaction_which_tells_its_operation_by_a_number(tmp_path: Path) -> None:
    dataset = fragmented(tmp_path)
    dataset.optimize.compact_files()
    dataset.delete("id = 'a'")
    publish(dataset, rows(["b"], 1))
    kept = [fragment.metadata for fragment in dataset.get_fragments()]
    more = LanceOperation.Merge([*kept, *fragments_of(dataset, rows(["m"]))], dataset.lance_schema)
    LanceDataset.commit(dataset, more, read_version=dataset.version)
    dataset = reopened(dataset)
    dataset.update_config({"some.key": "value"})
    LanceDataset.commit(reopened(dataset), LanceOperation.Restore(1))
    dataset = lance.write_dataset(rows(["o"]), dataset.uri, mode="overwrite")

    tags = [operation_tag(dataset, version) for version in range(1, dataset.version + 1)]

    assert tags == [102, 103, 100, 100, 100, 107, 104, 101, 108, 105, 110, 106, 102]
    assert operation_tag(dataset.create_branch("fork"), dataset.version) == 113


def operation_tag(dataset: LanceDataset, version: int) -> int:
    """Return the number of the one field, in the transaction of a version, that is its operation."""
    content = (Path(dataset.uri) / version_file_name(version)).read_bytes()
    message, copy = transaction_message(memoryview(content)), decode_version(content).transaction_file
    assert message is not None
    assert copy is not None
    assert bytes(message) == (Path(dataset.uri) / copy).read_bytes()
    [tag] = [number for number, _ in fields(message) if number >= 100]
    return tag


def test_a_rewrite_that_remapped_an_index_cannot_be_read_back(tmp_path: Path) -> None:
    dataset = append(append(new_dataset(tmp_path), ["x"]), ["y"])
    dataset.create_scalar_index("id", "BTREE")
    dataset = reopened(dataset)

    dataset.optimize.compact_files()

    with pytest.raises(TypeError, match="RewrittenIndex"):
        dataset.read_transaction(dataset.version)


def test_a_compaction_with_a_small_target_leaves_larger_fragments_alone(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(names(20_000)), str(tmp_path / "large"), enable_stable_row_ids=True)
    large = dataset.get_fragments()[0].metadata.files[0].path
    for key in ["x", "y", "z"]:
        dataset = append(dataset, [key])
    changed = dataset.get_fragments()[0].delete_rows(list(range(9_000)))
    assert changed is not None
    dataset = LanceDataset.commit(dataset, LanceOperation.Delete([changed], [], "many"), read_version=4)

    dataset.optimize.compact_files(target_rows_per_fragment=16_384, materialize_deletions=False)

    assert [fragment.count_rows() for fragment in dataset.get_fragments()] == [11_000, 3]
    assert dataset.get_fragments()[0].metadata.files[0].path == large


def test_the_difference_of_versions_misses_rows_that_a_rollback_revived(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path, ["a", "b", "c"])
    deleted = LanceDataset.commit(dataset, plain_delete(dataset), read_version=1)
    restored = LanceDataset.commit(deleted, LanceOperation.Restore(1))
    assert ids_of(deleted) == ["b", "c"]
    assert ids_of(restored) == ["a", "b", "c"]

    difference = restored.delta(compared_against=2)

    assert difference.get_inserted_rows().read_all().num_rows == 0
    assert difference.get_updated_rows().read_all().num_rows == 0
    assert restored.count_rows(filter="_row_last_updated_at_version > 2") == 0


def test_carried_row_ids_keep_the_creation_version_and_nothing_checks_them(tmp_path: Path) -> None:
    from lance.fragment import RowIdSequence

    dataset = new_dataset(tmp_path)
    [fragment] = fragments_of(dataset, rows(["a", "n"], 5))
    fragment.row_id_meta = RowIdSequence([0]).to_inline_metadata()
    operation = LanceOperation.Update(
        [], [dataset.get_fragments()[0].metadata], [fragment], update_mode="rewrite_rows"
    )

    landed = LanceDataset.commit(dataset, operation, read_version=1, max_retries=0)

    found = landed.to_table(columns=["id", "_rowid", "_row_created_at_version"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [("a", 0, 1), ("b", 1, 1), ("a", 0, 1), ("n", 2, 2)]


def test_rows_are_taken_by_row_id_in_the_order_asked_for(tmp_path: Path) -> None:
    dataset = append(new_dataset(tmp_path), ["c"])

    taken = dataset._take_rows([2, 0], columns=["id"])

    assert taken["id"].to_pylist() == ["c", "a"]


def create_by_commit(uri: str, key: str) -> None:
    operation = LanceOperation.Overwrite(SCHEMA, fragments_of_new(uri, key))
    LanceDataset.commit(uri, Transaction(0, operation), max_retries=0, enable_stable_row_ids=True)


def fragments_of_new(uri: str, key: str) -> list[FragmentMetadata]:
    written = write_fragments(rows([key]), uri, schema=SCHEMA, mode="create", enable_stable_row_ids=True)
    assert isinstance(written, list)
    return written


def create_by_write(uri: str, key: str) -> None:
    lance.write_dataset(rows([key]), uri, mode="create", enable_stable_row_ids=True)


def winners(create: Callable[[str, str], None], uri: str) -> int:
    """Return how many of four creators at one moment are told that they created the dataset."""
    barrier = threading.Barrier(4)
    told: list[str] = []

    def run(key: str) -> None:
        barrier.wait()
        try:
            create(uri, key)
        except OSError:
            return
        told.append(key)

    threads = [threading.Thread(target=run, args=(key,)) for key in "wxyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(told)


def test_a_creation_by_commit_has_one_winner_in_each_round(tmp_path: Path) -> None:
    rounds = [winners(create_by_commit, str(tmp_path / f"created-{number}")) for number in range(30)]

    assert set(rounds) == {1}
    assert {lance.dataset(str(tmp_path / f"created-{n}")).version for n in range(30)} == {1}


def test_a_creation_by_write_has_winners_that_overwrite_each_other(tmp_path: Path) -> None:
    rounds = [winners(create_by_write, str(tmp_path / f"written-{number}")) for number in range(30)]

    assert max(rounds) > 1


# Rewrites


@pytest.mark.parametrize(("rows_each", "target"), [(1, 8), (3, 8), (7, 8), (5, 13)])
def test_a_compaction_makes_fragments_of_less_than_twice_its_target(
    tmp_path: Path, rows_each: int, target: int
) -> None:
    everyone = rows(names(95))
    dataset = lance.write_dataset(
        everyone, str(tmp_path / "t"), enable_stable_row_ids=True, max_rows_per_file=rows_each
    )

    dataset.optimize.compact_files(target_rows_per_fragment=target)

    sizes = [part.count_rows() for part in dataset.get_fragments()]
    assert sum(sizes) == 95
    assert max(sizes) < 2 * target
    assert len(sizes) <= 95 // target
