"""Hollow versions, made by hand from real datasets."""

import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import StorageError
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.storage.damage.quarantine import find_hollow, find_unpublished, move_to_quarantine
from omnigraph.storage.files.version_file import HollowContent, decode_version, version_file_name
from tests.protocol.powercut.disk import Disk
from tests.support.hollow import cut_in_half, empty, fill_with_zeros
from tests.support.system import unprivileged

DATASET = "nodes/1-2"
ROWS_OF_BITMAP = 40_000  # so many deletions are kept as a bitmap and not as a list


def zero_up_to_the_magic(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size - 4) + b"LANC")


def lose_the_middle(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 4] + data[-len(data) // 4 :])


def zero_the_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-16] + bytes(16))


def swap_for_an_older_version(path: Path) -> None:
    shutil.copy(path.with_name(Path(version_file_name(1)).name), path)


def remove(path: Path) -> None:
    path.unlink()


def rows(*ids: str) -> pa.Table:
    return pa.table({"id": list(ids)})


def make_dataset(root: Path, versions: int) -> Path:
    """Write one row in each version: a, b, c, ..."""
    path = root / DATASET
    lance.write_dataset(rows("a"), str(path), enable_stable_row_ids=True, data_storage_version="2.2")
    for number in range(1, versions):
        lance.write_dataset(rows(chr(ord("a") + number)), str(path), mode="append")
    return path


def newest_data_file(path: Path) -> Path:
    fragment = lance.dataset(str(path)).get_fragments()[-1]
    return path / "data" / fragment.metadata.files[0].path


def ids_in(path: Path) -> list[str]:
    return sorted(str(value) for value in lance.dataset(str(path)).to_table().column("id").to_pylist())


def hollow_versions(path: Path, *, durable: int) -> list[int]:
    root = path.parents[1]
    return [hollow.version for hollow in find_hollow(str(root), DATASET, durable=durable)]


def unpublished(path: Path, *, pin: int) -> list[int]:
    root = path.parents[1]
    return [hollow.version for hollow in find_unpublished(str(root), DATASET, pin=pin)]


def test_a_version_file_names_what_the_library_names(tmp_path: Path) -> None:
    path = make_dataset(tmp_path, 2)
    lance.write_dataset(rows(*(f"x{n}" for n in range(ROWS_OF_BITMAP))), str(path), mode="append")
    lance.dataset(str(path)).delete("id = 'x1'")
    lance.dataset(str(path)).delete("id > 'x2'")
    lance.dataset(str(path)).create_scalar_index("id", "BTREE")
    dataset = lance.dataset(str(path))

    decoded = decode_version((path / version_file_name(dataset.version)).read_bytes())

    by_folder = {
        folder: {file.path: file.size for file in decoded.files if file.path.startswith(folder)}
        for folder in ("data", "_deletions", "_indices")
    }
    assert decoded.version == dataset.version == 6
    assert by_folder["data"] == {
        f"data/{file.path}": file.file_size_bytes
        for fragment in dataset.get_fragments()
        for file in fragment.metadata.files
    }
    assert len(by_folder["_deletions"]) == 1
    assert next(iter(by_folder["_deletions"])).endswith(".bin")
    on_disk = {file.name: file.stat().st_size for file in (path / "_indices").glob("*/*")}
    assert {Path(name).name: size for name, size in by_folder["_indices"].items()} == on_disk
    assert all((path / file.path).is_file() for file in decoded.files)


@pytest.fixture(scope="module")
def version_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = make_dataset(tmp_path_factory.mktemp("graph"), 2)
    lance.dataset(str(path)).delete("id = 'a'")
    lance.dataset(str(path)).create_scalar_index("id", "BTREE")
    return (path / version_file_name(4)).read_bytes()


@given(at=st.integers(0, 2_000), replacement=st.binary(max_size=8), cut=st.booleans())
def test_a_damaged_version_file_is_hollow_or_decodes(
    version_bytes: bytes, at: int, replacement: bytes, cut: bool
) -> None:
    at %= len(version_bytes)
    rest = b"" if cut else version_bytes[at + len(replacement) :]

    try:
        decoded = decode_version(version_bytes[:at] + replacement + rest)
    except HollowContent:
        return

    assert isinstance(decoded.version, int)
    assert not cut or len(replacement) > 0


@pytest.mark.parametrize("pin", [0, 1, 2, 3])
def test_a_whole_dataset_has_nothing_to_move(tmp_path: Path, pin: int) -> None:
    path = make_dataset(tmp_path, 3)

    assert hollow_versions(path, durable=pin) == []
    assert unpublished(path, pin=pin) == []


def test_a_dataset_that_is_not_there_has_nothing_to_move(tmp_path: Path) -> None:
    assert find_hollow(str(tmp_path), "missing", durable=0) == ()
    assert find_unpublished(str(tmp_path), "missing", pin=3) == ()


@pytest.mark.parametrize(
    "damage",
    [
        empty,
        cut_in_half,
        lose_the_middle,
        fill_with_zeros,
        zero_up_to_the_magic,
        zero_the_end,
        swap_for_an_older_version,
    ],
)
def test_a_hollow_newest_version_is_moved_and_the_one_before_is_served(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = make_dataset(tmp_path, 3)
    damage(path / version_file_name(3))
    damaged = (path / version_file_name(3)).read_bytes()

    hollow = find_hollow(str(tmp_path), DATASET, durable=2)
    moved = move_to_quarantine(str(tmp_path), DATASET, [found.version for found in hollow], "01QUARANTINE")

    assert [version.version for version in hollow] == [3]
    assert moved == (f"__quarantine/01QUARANTINE/{DATASET}/{Path(version_file_name(3)).name}",)
    assert (tmp_path / moved[0]).read_bytes() == damaged
    assert find_hollow(str(tmp_path), DATASET, durable=2) == ()
    assert ids_in(path) == ["a", "b"]
    assert lance.write_dataset(rows("z"), str(path), mode="append").version == 3
    assert ids_in(path) == ["a", "b", "z"]


@pytest.mark.case("engine", 328)
@pytest.mark.parametrize(
    "damage", [empty, cut_in_half, lose_the_middle, fill_with_zeros, zero_the_end, remove]
)
def test_a_whole_version_with_hollow_data_is_hollow(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = make_dataset(tmp_path, 3)
    damage(newest_data_file(path))

    hollow = find_hollow(str(tmp_path), DATASET, durable=2)
    move_to_quarantine(str(tmp_path), DATASET, [found.version for found in hollow], "01QUARANTINE")

    assert [version.version for version in hollow] == [3]
    assert hollow[0].culprit.startswith("data/")
    assert ids_in(path) == ["a", "b"]


@pytest.mark.parametrize("deleted", ["id = 'x1'", "id > 'x2'"])
@pytest.mark.parametrize("damage", [empty, cut_in_half, fill_with_zeros, remove])
def test_a_hollow_deletion_file_makes_its_version_hollow(
    tmp_path: Path, damage: Callable[[Path], None], deleted: str
) -> None:
    path = tmp_path / DATASET
    lance.write_dataset(
        rows(*(f"x{n}" for n in range(ROWS_OF_BITMAP))), str(path), enable_stable_row_ids=True
    )
    lance.dataset(str(path)).delete(deleted)
    (deletion_file,) = (path / "_deletions").iterdir()
    assert deletion_file.suffix == (".arrow" if "=" in deleted else ".bin")
    assert hollow_versions(path, durable=1) == []

    damage(deletion_file)

    assert hollow_versions(path, durable=1) == [2]


@pytest.mark.parametrize("damage", [empty, fill_with_zeros, remove])
def test_a_hollow_index_file_makes_its_version_hollow(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = make_dataset(tmp_path, 2)
    lance.dataset(str(path)).create_scalar_index("id", "BTREE")
    damage(next((path / "_indices").glob("*/page_data.lance")))

    assert hollow_versions(path, durable=2) == [3]


@pytest.mark.case("engine", 328)
def test_a_hollow_compaction_is_moved(tmp_path: Path) -> None:
    path = make_dataset(tmp_path, 4)
    lance.dataset(str(path)).optimize.compact_files()
    newest = lance.dataset(str(path)).version
    empty(newest_data_file(path))

    hollow = find_hollow(str(tmp_path), DATASET, durable=4)
    move_to_quarantine(str(tmp_path), DATASET, [found.version for found in hollow], "01QUARANTINE")

    assert [version.version for version in hollow] == [newest]
    assert ids_in(path) == ["a", "b", "c", "d"]


@pytest.mark.case("engine", 329)
def test_two_hollow_versions_are_both_moved(tmp_path: Path) -> None:
    path = make_dataset(tmp_path, 4)
    empty(path / version_file_name(4))
    fill_with_zeros(path / version_file_name(3))

    hollow = find_hollow(str(tmp_path), DATASET, durable=2)
    move_to_quarantine(str(tmp_path), DATASET, [found.version for found in hollow], "01QUARANTINE")

    assert [version.version for version in hollow] == [4, 3]
    assert ids_in(path) == ["a", "b"]


def test_a_whole_version_keeps_what_it_was_built_on(tmp_path: Path) -> None:
    """It proves that what it names was synced: the data rotted, and no manifest is rolled back for that."""
    path = make_dataset(tmp_path, 3)
    data_of_three = newest_data_file(path)
    lance.write_dataset(rows("d"), str(path), mode="append")
    empty(data_of_three)

    assert hollow_versions(path, durable=0) == []
    assert unpublished(path, pin=2) == [4, 3]  # no manifest names them: nobody was told of either
    with pytest.raises(GraphDamaged):
        find_unpublished(str(tmp_path), DATASET, pin=3)


@pytest.mark.case("engine", 328)
def test_files_of_older_versions_are_not_opened(tmp_path: Path) -> None:
    path = make_dataset(tmp_path, 1)
    data_of_one = newest_data_file(path)
    for row in ("b", "c"):
        lance.write_dataset(rows(row), str(path), mode="append")
    empty(data_of_one)

    assert hollow_versions(path, durable=2) == []


@pytest.mark.case("engine", 329)
@pytest.mark.parametrize("find", [find_hollow, find_unpublished])
@pytest.mark.parametrize(
    ("damaged", "proven"),
    [pytest.param(3, 3, id="the newest"), pytest.param(3, 5, id="the newest, with others missing above")],
)
def test_a_hollow_version_that_must_stay_is_loud(
    tmp_path: Path, damaged: int, proven: int, find: Callable[..., object]
) -> None:
    path = make_dataset(tmp_path, 3)
    empty(path / version_file_name(damaged))
    before = sorted(file.name for file in (path / "_versions").iterdir())
    word = "durable" if find is find_hollow else "pin"

    with pytest.raises(GraphDamaged) as raised:
        find(str(tmp_path), DATASET, **{word: proven})

    assert raised.value.kind == "permanent"
    assert raised.value.file == f"{DATASET}/{version_file_name(proven)}"
    assert raised.value.versions == ((3,) if proven == 3 else (4, 5))
    assert str(tmp_path) not in str(raised.value)
    assert sorted(file.name for file in (path / "_versions").iterdir()) == before


def test_where_what_is_durable_was_cleaned_up_nothing_but_hollow_versions_is_damage(tmp_path: Path) -> None:
    path = make_dataset(tmp_path, 4)
    for gone in (1, 2):
        (path / version_file_name(gone)).unlink()
    for damaged in (3, 4):
        empty(path / version_file_name(damaged))

    with pytest.raises(GraphDamaged):
        find_hollow(str(tmp_path), DATASET, durable=2)


@pytest.mark.case("engine", 329)
def test_what_is_moved_has_a_name_on_the_disk_at_every_moment(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    path = make_dataset(root, 3)
    source = path / version_file_name(3)
    inode = source.stat().st_ino
    disk = Disk(root, tmp_path / "shadow")
    disk.start()

    def look() -> None:
        names = [entry.inode for folder in disk.folders.values() for entry in folder.values()]
        assert inode in names

    with disk.watching(look):
        (moved,) = move_to_quarantine(str(root), DATASET, [3], "01QUARANTINE")

    look()
    assert disk.is_safe(root / moved)
    assert source.name not in disk.folders[source.parent.stat().st_ino]


@pytest.mark.case("engine", 329)
def test_a_hollow_version_under_a_whole_one_stays_and_blocks_nothing(tmp_path: Path) -> None:
    path = make_dataset(tmp_path, 3)
    empty(path / version_file_name(2))

    assert hollow_versions(path, durable=1) == []
    assert hollow_versions(path, durable=3) == []
    assert unpublished(path, pin=3) == []
    assert unpublished(path, pin=1) == [3, 2]


def test_hollow_data_of_the_pin_is_loud(tmp_path: Path) -> None:
    path = make_dataset(tmp_path, 3)
    empty(newest_data_file(path))

    with pytest.raises(GraphDamaged, match="data/"):
        find_unpublished(str(tmp_path), DATASET, pin=3)


def test_a_dataset_that_was_never_published_may_lose_every_version(tmp_path: Path) -> None:
    path = make_dataset(tmp_path, 1)
    empty(path / version_file_name(1))

    assert hollow_versions(path, durable=0) == [1]
    with pytest.raises(StorageError):
        find_hollow(str(tmp_path), DATASET, durable=1)


@pytest.mark.case("engine", 330)
def test_what_may_not_be_read_is_not_hollow(tmp_path: Path) -> None:
    path = make_dataset(tmp_path, 3)
    (path / version_file_name(3)).chmod(0)

    with unprivileged(), pytest.raises(StorageError) as raised:
        find_hollow(str(tmp_path), DATASET, durable=2)

    assert raised.value.kind == "permanent"
    assert "hollow" not in str(raised.value)
    assert (path / version_file_name(3)).exists()


def test_data_that_cannot_be_read_is_not_hollow(tmp_path: Path) -> None:
    path = make_dataset(tmp_path, 3)
    data_file = newest_data_file(path)
    data_file.unlink()
    data_file.mkdir()  # nobody, not even the superuser, reads a folder as a file

    with pytest.raises(StorageError) as raised:
        find_hollow(str(tmp_path), DATASET, durable=2)

    assert raised.value.kind == "unknown"
    assert "hollow" not in str(raised.value)


@pytest.mark.case("engine", 327)
def test_a_fork_is_checked_on_its_own(tmp_path: Path) -> None:
    path = make_dataset(tmp_path, 2)
    lance.dataset(str(path)).create_branch("review-01")
    fork = path / "tree" / "review-01"
    lance.write_dataset(rows("x"), str(fork), mode="append")
    lance.write_dataset(rows("y"), str(fork), mode="append")
    fill_with_zeros(fork / version_file_name(4))

    hollow = find_hollow(str(tmp_path), f"{DATASET}/tree/review-01", durable=3)
    move_to_quarantine(
        str(tmp_path), f"{DATASET}/tree/review-01", [found.version for found in hollow], "01QUARANTINE"
    )

    assert [version.version for version in hollow] == [4]
    assert find_hollow(str(tmp_path), DATASET, durable=2) == ()
    assert ids_in(fork) == ["a", "b", "x"]


def test_a_version_that_somebody_else_moved_is_not_ours(tmp_path: Path) -> None:
    path = make_dataset(tmp_path, 4)
    for version in (3, 4):
        empty(path / version_file_name(version))
    hollow = find_hollow(str(tmp_path), DATASET, durable=2)
    (path / version_file_name(4)).unlink()

    moved = move_to_quarantine(str(tmp_path), DATASET, [found.version for found in hollow], "01QUARANTINE")

    assert len(moved) == 1
    assert find_hollow(str(tmp_path), DATASET, durable=2) == ()


def test_a_fault_before_the_move_leaves_everything_for_the_next_open(tmp_path: Path) -> None:
    path = make_dataset(tmp_path, 3)
    empty(path / version_file_name(3))
    hollow = find_hollow(str(tmp_path), DATASET, durable=2)

    with failpoint("quarantine.pre_move", "raise"), pytest.raises(InjectedFault):
        move_to_quarantine(str(tmp_path), DATASET, [found.version for found in hollow], "01QUARANTINE")

    assert find_hollow(str(tmp_path), DATASET, durable=2) == hollow
    assert not (tmp_path / "__quarantine").exists()
