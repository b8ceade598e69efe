"""Bringing a table back to an older version."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.core.errors import CommitConflict
from omnigraph.storage.tables.residual import InlineCommitResidual
from omnigraph.storage.tables.stage import IndexRequest
from omnigraph.storage.tables.undo import TableUndo
from tests.support.shapes import ALL_SHAPES
from tests.support.tables import SCHEMA, Workbench, names, rows


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    bench = Workbench(tmp_path)
    bench.append(rows(["a", "b", "c"], 1))
    bench.append(rows(["d"], 1))
    return bench


EXPECTED = {
    "append": "inverse",
    "upsert": "inverse",
    "insert": "inverse",
    "delete": "inverse",
    "large upsert": "inverse",
    "overwrite": "restore",
}


@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_one_commit_of_any_shape_is_undone(bench: Workbench, shape: str) -> None:
    pinned = bench.head()
    before = bench.content()
    bench.commit(ALL_SHAPES[shape](bench.stager, pinned, "1"))

    staged, form = TableUndo(bench.store).stage_rollback(bench.head(), pinned)
    committed = bench.commit(staged)

    assert form == EXPECTED[shape]
    assert committed.version == 5
    assert committed.row_count == 4
    assert bench.content() == before


def test_several_commits_are_undone_at_once(bench: Workbench) -> None:
    pinned = bench.head()
    before = bench.content()
    bench.upsert(rows(["a", "x"], 2))
    bench.delete(["b"])
    bench.append(rows(["y"]))

    staged, form = TableUndo(bench.store).stage_rollback(bench.head(), pinned)
    bench.commit(staged)

    assert form == "inverse"
    assert bench.content() == before


def test_an_inverse_keeps_what_the_index_covers_consistent(bench: Workbench) -> None:
    bench.index(IndexRequest("id", "btree"))
    pinned = bench.head()
    bench.upsert(rows(["a", "x"], 2))
    staged, form = TableUndo(bench.store).stage_rollback(bench.head(), pinned)

    bench.commit(staged)

    head = bench.head()
    assert form == "inverse"
    assert bench.store.existing_ids(head, ["a", "b", "x"]) == {"a", "b"}
    assert bench.store.index_coverage(head) == {"id__btree": "indexed"}


@pytest.mark.parametrize("between", ["index", "config", "fragment", "compaction", "schema"])
def test_where_there_is_no_inverse_a_restore_is_staged(bench: Workbench, between: str) -> None:
    pinned = bench.head()
    before = bench.content()
    match between:
        case "index":
            bench.index(IndexRequest("id", "btree"))
        case "config":
            lance.dataset(bench.address.uri).update_config({"some.key": "value"})
        case "fragment":
            bench.delete(["d"])
        case "compaction":
            InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=100)
        case _:
            lance.dataset(bench.address.uri).add_columns(pa.field("note", pa.utf8()))

    staged, form = TableUndo(bench.store).stage_rollback(bench.head(), pinned)
    bench.commit(staged)

    assert form == "restore"
    assert bench.content() == before
    assert bench.store.index_coverage(bench.head()) == {}
    assert bench.head().schema.equals(SCHEMA, check_metadata=True)


def test_a_table_that_was_empty_is_emptied_again(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    pinned = bench.head()
    bench.append(rows(["a"]))
    bench.append(rows(["b"]))

    staged, form = TableUndo(bench.store).stage_rollback(bench.head(), pinned)
    bench.commit(staged)

    assert form == "inverse"
    assert (bench.head().row_count, bench.head().fragment_count) == (0, 0)
    bench.append(rows(["c"]))
    assert bench.content()["c"]["_rowid"] == 2


@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_an_inverse_is_refused_after_any_other_commit(bench: Workbench, shape: str) -> None:
    pinned = bench.head()
    bench.append(rows(names(3)))
    head = bench.head()
    staged, form = TableUndo(bench.store).stage_rollback(head, pinned)
    bench.commit(ALL_SHAPES[shape](bench.stager, head, "1"))
    content = bench.content()

    with pytest.raises(CommitConflict):
        bench.commit(staged)

    assert form == "inverse"
    assert bench.content() == content


@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_a_write_staged_before_an_inverse_is_refused(bench: Workbench, shape: str) -> None:
    pinned = bench.head()
    bench.append(rows(names(3)))
    head = bench.head()
    write = ALL_SHAPES[shape](bench.stager, head, "1")
    staged, _ = TableUndo(bench.store).stage_rollback(head, pinned)
    bench.commit(staged)

    with pytest.raises(CommitConflict):
        bench.commit(write)

    assert bench.ids() == ["a", "b", "c", "d"]


@pytest.mark.case("engine", 79)
def test_a_restore_hides_a_concurrent_append_and_an_inverse_in_its_place_is_refused(
    bench: Workbench,
) -> None:
    pinned = bench.head()
    bench.delete(["d"])  # empties a fragment, so that only a restore brings it back
    head = bench.head()
    restore, form = TableUndo(bench.store).stage_rollback(head, pinned)
    concurrent = bench.stager.stage_append(head, rows(["concurrent"]))
    bench.commit(concurrent)
    with pytest.raises(Exception, match="landed after another") as landed:
        bench.commit(restore)

    assert form == "restore"
    assert type(landed.value).__name__ == "StaleCommit"
    assert sorted(bench.ids()) == ["a", "b", "c", "d"]  # the append is gone, and nobody was refused

    pinned = bench.head()
    bench.append(rows(["bad"]))
    head = bench.head()
    inverse, form = TableUndo(bench.store).stage_rollback(head, pinned)
    bench.commit(bench.stager.stage_append(head, rows(["concurrent"])))
    with pytest.raises(CommitConflict):
        bench.commit(inverse)
    assert form == "inverse"
    assert "concurrent" in bench.ids()
