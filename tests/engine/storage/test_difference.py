"""One comparison of two versions by their files, and rows of whole fragments that are read once."""

from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.core.errors import InvariantViolation
from omnigraph.storage.tables.rows import UPDATED_AT, read_rows
from omnigraph.storage.tables.table import SnapshotHandle
from omnigraph.storage.versions.difference import (
    FragmentRows,
    FragmentState,
    VersionDelta,
    difference,
    layout_of,
)
from tests.support.tables import Workbench, rows

STATE = FragmentState(("a.lance", "b.lance"), "", 10, 0, ((0, 1), (2,)))


def three_versions(folder: Path) -> tuple[Workbench, SnapshotHandle, SnapshotHandle, SnapshotHandle]:
    """Return a table with two fragments; then a row of the first replaced; then the last row deleted."""
    bench = Workbench(folder)
    bench.append(rows(["a", "b"]))
    bench.append(rows(["c"]))
    first = bench.head()
    bench.upsert(rows(["a"], 7))
    second = bench.head()
    bench.delete(["c"])
    return bench, first, second, bench.head()


def test_a_fragment_is_shared_if_nothing_can_have_changed_a_value() -> None:
    assert STATE.is_shared(replace(STATE, deletion="3-7", deleted=2))
    assert not STATE.is_shared(None)
    assert not STATE.is_shared(replace(STATE, files=("a.lance", "c.lance")))
    assert not STATE.is_shared(replace(STATE, fields=((0, 1), (3,))))
    kept = replace(STATE, fields=None)  # what a file of the cache tells
    assert STATE.is_shared(kept)
    assert kept.is_shared(STATE)


def test_a_fragment_with_overlays_is_like_no_other(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(["a"]))
    (fragment,) = bench.head()._dataset.get_fragments()
    metadata = fragment.metadata
    plain = FragmentState.of(metadata)

    metadata.overlays = [object()]  # type: ignore[list-item]  # what is in it does not matter
    laid_over = FragmentState.of(metadata)

    assert plain.is_shared(plain)
    assert not plain.is_shared(laid_over)
    assert not laid_over.is_shared(plain)
    assert not laid_over.is_shared(laid_over)


def test_two_layouts_tell_where_versions_differ(tmp_path: Path) -> None:
    _, first, second, third = three_versions(tmp_path)
    layouts = [layout_of(handle) for handle in (first, second, third)]

    replaced, deleted = difference(layouts[0], layouts[1]), difference(layouts[1], layouts[2])
    back = difference(layouts[2], layouts[0])

    assert replaced == ([], [2], [0, 1], [0])
    assert deleted == ([1], [], [0, 2], [])
    assert back == ([2], [1], [0], [0])
    assert difference(layouts[0], layouts[0]) == ([], [], [0, 1], [])


def test_sums_that_do_not_come_out_even_are_told(tmp_path: Path) -> None:
    _, first, second, _ = three_versions(tmp_path)
    before, after = layout_of(first), layout_of(second)

    forth = VersionDelta(since=first.version, before=before, handle=second)
    back = VersionDelta(since=first.version, before=after, handle=first)
    other = {**after, 0: replace(after[0], deletion="9-9")}
    as_many = VersionDelta(since=first.version, before=other, handle=second)
    miscounted = {**after, 0: replace(after[0], deleted=0)}
    unnamed = VersionDelta(since=first.version, before=miscounted, handle=second)

    assert (forth.is_consistent, forth.vacated, forth.rows_before, forth.rows_after) == (True, 1, 3, 3)
    assert forth.changed(["id"])[1]["id"].to_pylist() == ["a"]
    assert not back.is_consistent  # rows come back
    assert not as_many.is_consistent  # some come back and as many go
    assert not unnamed.is_consistent  # one deletion file counts two numbers of rows


def test_rows_of_fragments_are_read_once_and_in_one_order(tmp_path: Path) -> None:
    bench, first, second, _ = three_versions(tmp_path)
    row_ids = read_rows(second, [])["_rowid"].to_pylist()
    found = FragmentRows(second, [0, 1, 2], told=(UPDATED_AT,), along=["rank"])

    assert found.read(["id"])["id"].to_pylist() == ["b", "c", "a"]
    reads = bench.store.io_stats().reads
    assert found.read(["rank", "id"])["rank"].to_pylist() == [0, 0, 7]
    assert found.numbers_of(UPDATED_AT).tolist() == [2, 3, 4]
    assert found.row_ids.tolist() == row_ids
    assert bench.store.io_stats().reads == reads

    found.forget(["id"])
    found.handle = first
    with pytest.raises(InvariantViolation, match="two scans differ in their order"):
        found.read(["id"])


def test_no_fragments_are_no_read(tmp_path: Path) -> None:
    bench, first, _, _ = three_versions(tmp_path)
    reads = bench.store.io_stats().reads

    found = FragmentRows(first, [], told=(UPDATED_AT,))

    assert found.read(["id", "rank"]).num_rows == len(found) == len(found.numbers_of(UPDATED_AT)) == 0
    assert bench.store.io_stats().reads == reads
