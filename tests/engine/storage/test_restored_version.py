"""A version that is made by hand past damaged ones is what the library's own restore would have made."""

import os
import shutil
from pathlib import Path

import lance
import pytest

from omnigraph.core.errors import StorageError
from omnigraph.storage.damage.quarantine import list_versions
from omnigraph.storage.damage.restored_version import write_restored
from omnigraph.storage.files.transactions import read_transaction
from omnigraph.storage.files.version_file import fields, manifest_message, version_file_name
from omnigraph.storage.versions.newest import HINT
from tests.support.hollow import empty
from tests.support.tables import Workbench, names, rows

GOOD = 3


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """A table of five versions: created, three appends, a delete."""
    bench = Workbench(tmp_path)
    for part in (names(20)[:5], names(20)[5:10], names(20)[10:15]):
        bench.append(rows(part))
    bench.delete(names(20)[:2])
    return bench


def folder_of(bench: Workbench) -> Path:
    """Return where a table lies."""
    folder = bench.address.local_path
    assert folder is not None
    return folder


def restored(bench: Workbench, version: int = GOOD) -> int:
    """Make the version by hand."""
    folder = folder_of(bench)
    return write_restored(folder, version, list_versions(folder)[0])


def message(folder: Path, version: int) -> dict[int, object]:
    """Return the values of a version file; texts as bytes."""
    data = memoryview((folder / version_file_name(version)).read_bytes())
    return {
        number: bytes(value) if isinstance(value, memoryview) else value
        for number, value in fields(manifest_message(data))
    }


def test_it_is_what_the_library_makes(bench: Workbench, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder_of(bench), tmp_path / "copy"))
    lance.dataset(str(copy)).checkout_version(GOOD).restore()  # type: ignore[no-untyped-call]

    made = restored(bench)

    ours, theirs = message(folder_of(bench), made), message(copy, made)
    for of_the_moment in (7, 12):  # its time, and the name of its transaction
        ours.pop(of_the_moment)
        theirs.pop(of_the_moment)
    assert ours == theirs
    found = read_transaction(lance.dataset(bench.address.uri), bench.address, made)
    assert (found.operation, found.read_version) == ("restore", made - 1)


def test_it_shows_the_old_rows_and_the_table_goes_on(bench: Workbench) -> None:
    before = bench.store.open_at(bench.address, GOOD)

    made = restored(bench)

    after = Workbench(folder_of(bench).parent)
    assert (after.head().version, after.head().row_count) == (made, before.row_count)
    after.append(rows(names(30)[20:]))
    dataset = lance.dataset(bench.address.uri)
    assert dataset.version == made + 1
    shown = dataset.to_table(["id"])["id"].to_pylist()
    assert set(shown) == {*names(20)[:10], *names(30)[20:]}


def test_an_index_is_there_again(bench: Workbench) -> None:
    dataset = lance.dataset(bench.address.uri)
    dataset.create_scalar_index("id", "BTREE")
    good = dataset.version
    bench.append(rows(["later"]))

    restored(bench, good)

    dataset = lance.dataset(bench.address.uri)
    assert [index.name for index in dataset.describe_indices()] == ["id_idx"]
    assert dataset.to_table(filter=f"id = '{names(20)[7]}'").num_rows == 1


@pytest.mark.parametrize("loss", ["emptied", "missing"])
def test_a_damaged_newest_version_does_not_stand_in_its_way(bench: Workbench, loss: str) -> None:
    folder, newest = folder_of(bench), bench.head().version
    path = folder / version_file_name(newest - 1)
    if loss == "missing":
        path.unlink()
    else:
        empty(path)
    empty(folder / version_file_name(newest))
    used = message(folder, GOOD)

    made = restored(bench)

    assert made == newest + 1
    dataset = lance.dataset(bench.address.uri)
    assert dataset.count_rows() == 10
    now = message(folder, made)
    # Whatever the two unreadable versions used, nobody uses it again.
    assert now[11] == int(str(used[11])) + 200_000
    assert now[14] == int(str(used[14])) + (2 << 22)


def test_a_number_that_was_taken_meanwhile_is_not_taken_twice(bench: Workbench) -> None:
    newest = bench.head().version
    bench.append(rows(["faster"]))
    before = sorted(folder_of(bench).rglob("*.manifest"))

    with pytest.raises(StorageError, match="moved in the meantime"):
        write_restored(folder_of(bench), GOOD, newest)

    assert sorted(folder_of(bench).rglob("*.manifest")) == before
    assert not list((folder_of(bench) / "_versions").glob(".*"))


def test_a_link_under_a_name_to_come_is_not_followed(bench: Workbench, tmp_path: Path) -> None:
    mine = tmp_path / "diary"
    mine.write_text("of the user")
    hint = folder_of(bench) / HINT
    hint.with_name(f".{hint.name}.{os.getpid()}").symlink_to(mine)

    restored(bench)

    assert mine.read_text() == "of the user"
