"""What the library says could be cleaned up: the facts that `storage/tables/reclaim.py` builds on."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from omnigraph.storage.control.graph_files import graph_files
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.tables.reclaim import find_reclaimable, named_deletions
from omnigraph.storage.tables.table import TableAddress, TableStore


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    """Six versions: a write, an index, two appends, a delete, and an overwrite that replaces all of it."""
    path = str(tmp_path / "a # ü" / "nodes" / "x")
    rows = pa.table({"id": [str(number) for number in range(10)], "x": list(range(10))})
    made = lance.write_dataset(rows, path, enable_stable_row_ids=True)
    made.create_scalar_index("id", "BTREE")
    for _ in range(2):
        lance.write_dataset(rows, path, mode="append")
    lance.dataset(path).delete("x = 3")
    return lance.write_dataset(rows.slice(0, 1), path, mode="overwrite")


def test_guard_files_of_old_versions_are_told_with_their_kind(table: LanceDataset) -> None:
    found = find_reclaimable(TableStore(), TableAddress(table.uri), range(1, 6))

    folders = {path.partition("/")[0] for path in found.named}
    assert found.versions.keys() == {1, 2, 3, 4, 5}
    assert folders == {"data", "_deletions", "_indices", "_transactions"}
    assert all((Path(table.uri) / path).stat().st_size == size for path, size in found.named.items())
    assert found.loose == {}


def test_guard_files_that_no_version_names_are_told_apart(table: LanceDataset) -> None:
    (part,) = write_fragments(table.to_table(), table)
    stray = f"data/{part.files[0].path}"

    with_versions = find_reclaimable(TableStore(), TableAddress(table.uri), [1, 2])
    without = find_reclaimable(TableStore(), TableAddress(table.uri), [])

    assert [*with_versions.loose, *without.loose] == [stray, stray]
    assert stray not in with_versions.named
    assert not without.versions
    assert not without.named


def test_guard_what_a_ref_starts_from_and_what_has_a_tag_stays(table: LanceDataset) -> None:
    fork = table.create_branch("fork", 3)
    fork.delete("x = 1")
    fork.create_branch("nested", ("fork", 4))
    table.tags.create("kept", 2)
    store, address = TableStore(), TableAddress(table.uri)

    found = find_reclaimable(store, address, range(1, 6))
    on_fork = find_reclaimable(store, TableAddress(table.uri, "fork"), [3])

    assert found.versions.keys() == {1, 4, 5}
    shared = {file.path for part in fork.get_fragments() for file in part.data_files()}
    assert shared.isdisjoint(path.removeprefix("data/") for path in found.named)
    assert on_fork.versions.keys() == {3}
    assert find_reclaimable(store, TableAddress(table.uri, "fork"), [4]).versions == {}


def test_guard_the_newest_version_stays(table: LanceDataset) -> None:
    assert find_reclaimable(TableStore(), TableAddress(table.uri), [6]).versions == {}


def test_guard_deletion_files_are_read_from_versions(table: LanceDataset) -> None:
    """The library is silent about a stray one while a version is there that it may belong to."""
    root = GraphRoot.parse(str(Path(table.uri).parents[1]))
    fork = table.create_branch("fork", 5)
    own = {f"nodes/x/_deletions/{path.name}" for path in (Path(table.uri) / "_deletions").iterdir()}
    fork.get_fragments()[0].delete_rows([7])
    fork.delete("x = 8")

    named = named_deletions(graph_files(root), {"nodes/x": range(1, 7), "nodes/x/tree/fork": [5, 6]})

    on_fork = {path.name for path in (Path(table.uri) / "tree" / "fork" / "_deletions").iterdir()}
    assert own <= named
    assert len({path for path in named if path.startswith("nodes/x/tree/fork/_deletions/")}) < len(on_fork)


def test_guard_a_commit_on_a_dropped_file_is_never_made_by_asking(table: LanceDataset) -> None:
    before = sorted(path for path in Path(table.uri).rglob("*") if path.is_file())

    find_reclaimable(TableStore(), TableAddress(table.uri), range(1, 6))

    assert sorted(path for path in Path(table.uri).rglob("*") if path.is_file()) == before
    operation = LanceOperation.Append(write_fragments(table.to_table(), table))
    assert LanceDataset.commit(table, operation, read_version=table.version).version == 7
