"""Row ids of places, from the version or from memory."""

from pathlib import Path

import numpy as np

from omnigraph.storage.versions.newest import RowSequences
from tests.support.tables import Workbench, names, rows


def scanned(bench: Workbench, number: int) -> list[int]:
    dataset = bench.store.open_unshared(bench.address)
    fragment = dataset.get_fragment(number)
    assert fragment is not None
    found = dataset.scanner(columns=[], fragments=[fragment], with_row_id=True).to_table()
    return [int(str(row_id)) for row_id in found["_rowid"].to_pylist()]


def test_rows_that_were_loaded_together_are_told_by_the_first(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(names(20)))
    bench.append(rows(names(20, "m")))
    sequences = RowSequences()
    places = np.array([0, 7, 19])

    for number, fragment in enumerate(bench.store.open_unshared(bench.address).get_fragments()):
        expected = np.array(scanned(bench, number))[places].tolist()
        for _ in range(2):  # written out, then remembered
            found = sequences.row_ids_at(fragment.metadata, places)
            assert found is not None
            assert found.tolist() == expected

    assert list(sequences._first.values()) == [0, 20]


def test_other_sequences_are_written_out_each_time(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(names(20)))
    bench.upsert(rows(["n000011", "n000003", "n000017"], 1))
    *_, newest = bench.store.open_unshared(bench.address).get_fragments()
    sequences = RowSequences()

    for _ in range(2):
        found = sequences.row_ids_at(newest.metadata, np.arange(3))
        assert found is not None
        assert found.tolist() == scanned(bench, newest.fragment_id) == [3, 11, 17]

    assert not sequences._first


def test_a_fragment_that_does_not_tell_is_left_to_a_scan(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(names(5)))
    (fragment,) = bench.store.open_unshared(bench.address).get_fragments()
    metadata = fragment.metadata
    metadata.row_id_meta = None

    assert RowSequences().row_ids_at(metadata, np.arange(5)) is None
