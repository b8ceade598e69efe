"""What a version says of its rows without a scan, beside a scan of them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.storage.tables.rows import ROW_ADDRESS, ROW_ID, UPDATED_AT, read_rows, row_ids_of
from omnigraph.storage.versions.told_rows import told_rows
from tests.engine.changes.points import History, ranked

NAMES = (UPDATED_AT, ROW_ADDRESS)


@pytest.fixture
def history(tmp_path: Path) -> History:
    """A table whose fragments were updated, thinned and folded, and a fork of it that went on."""
    history = History.begin(tmp_path, 30)
    main = history.bench
    main.upsert(ranked(["n0003", "n0017", "n0004", "new"], 1))
    main.delete(["n0017", "n0021"])
    history.mark(main.address)
    history.compact(main.address)
    forked = history.fork(history.mark(main.address), "side-1")
    side = history.on(forked)
    side.upsert(ranked(["n0005", "n0001"], 2))
    side.delete(["n0005", "new"])
    history.mark(forked)
    return history


def told(history: History, point: PinnedTable, names: Sequence[str]) -> dict[str, list[int]] | None:
    """Return what a version says of all its rows."""
    store = history.bench.store
    handle = point.open(store)
    fragments = [item.metadata for item in handle._dataset.get_fragments()]
    found = told_rows(handle, fragments, names, store.row_sequences)
    return None if found is None else {name: numbers.tolist() for name, numbers in found.items()}


def scanned(history: History, point: PinnedTable, names: Sequence[str]) -> dict[str, list[int]]:
    """Return the same as a scan returns it."""
    rows = read_rows(point.open(history.bench.store), names)
    return {name: row_ids_of(rows, name).tolist() for name in (ROW_ID, *names)}


@pytest.mark.case("engine", 762)
def test_it_is_what_a_scan_returns(history: History) -> None:
    for point in history.points:
        assert told(history, point, [ROW_ADDRESS]) == scanned(history, point, [ROW_ADDRESS])
    for point in history.points[:2]:
        assert told(history, point, NAMES) == scanned(history, point, NAMES)


@pytest.mark.case("engine", 762)
def test_versions_of_rows_that_a_fold_left_with_gaps_are_left_to_a_scan(history: History) -> None:
    assert told(history, history.points[2], NAMES) is None


@pytest.mark.case("engine", 762)
def test_nothing_is_told_where_a_fragment_does_not_say_it(history: History) -> None:
    store = history.bench.store
    handle = history.points[0].open(store)
    whole, silent = (item.metadata for item in handle._dataset.get_fragments()[:2])
    silent.last_updated_at_version_meta = None

    assert told_rows(handle, [whole, silent], NAMES, store.row_sequences) is None
    assert told_rows(handle, [whole, silent], (ROW_ADDRESS,), store.row_sequences) is not None
    assert told_rows(handle, [], NAMES, store.row_sequences) is not None
