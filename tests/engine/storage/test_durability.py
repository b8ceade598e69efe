"""What is synced, counted call by call."""

import logging
import shutil
from pathlib import Path

import pytest

from omnigraph.core.errors import StorageError
from omnigraph.core.failpoint import failpoint
from omnigraph.storage.control.durability import (
    ENVIRONMENT,
    FILES_SYNCED_ONE_BY_ONE_MAX,
    Durability,
    Syncer,
    SyncFailed,
    SyncStage,
    setting_from_environment,
)
from tests.support.system import unprivileged


def make_files(folder: Path, number: int) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{index}.lance" for index in range(number)]
    for path in paths:
        path.write_bytes(b"LANC")
    return [str(path) for path in paths]


def test_files_and_their_folders_are_synced(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    files = make_files(root / "nodes" / "1" / "data", 3)
    syncer = Syncer(Durability.FULL, is_local=True, root=str(root))

    syncer.sync(files, stage="staged")

    folders = 5  # data, 1, nodes, the root, and what holds the root
    assert (syncer.fsyncs, syncer.syncfs) == (3 + folders, 0)


def test_a_file_named_twice_is_synced_once(tmp_path: Path) -> None:
    files = make_files(tmp_path / "data", 1)
    syncer = Syncer(Durability.FULL, is_local=True)

    syncer.sync([*files, *files], stage="table")

    assert syncer.fsyncs == 2


def test_only_the_first_sight_of_a_folder_leads_up_to_the_root(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    syncer = Syncer(Durability.FULL, is_local=True, root=str(root))
    syncer.sync(make_files(root / "nodes" / "1" / "data", 1), stage="staged")
    before = syncer.fsyncs

    syncer.sync(make_files(root / "nodes" / "1" / "data", 1), stage="staged")
    known_folder = syncer.fsyncs - before
    syncer.sync(make_files(root / "nodes" / "1" / "_indices" / "u", 1), stage="staged")
    new_folder = syncer.fsyncs - before - known_folder

    assert known_folder == 2  # the file and its folder
    assert new_folder == 4  # the file, u, _indices, and 1, which is known but has a new entry


def test_a_folder_that_was_made_again_is_new(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    syncer = Syncer(Durability.FULL, is_local=True, root=str(root))
    syncer.sync(make_files(root / "tree" / "data", 1), stage="staged")
    before = syncer.fsyncs
    kept = (root / "tree" / "data").rename(root / "elsewhere")  # so that its inode is not used again

    syncer.sync(make_files(root / "tree" / "data", 1), stage="staged")

    assert syncer.fsyncs - before == 3  # the file, its folder, and tree, which holds the new folder
    shutil.rmtree(kept)


def test_without_a_root_nothing_above_a_folder_is_synced(tmp_path: Path) -> None:
    syncer = Syncer(Durability.FULL, is_local=True)

    syncer.sync(make_files(tmp_path / "a" / "b", 1), stage="manifest")

    assert syncer.fsyncs == 2


def test_many_files_cost_one_sync_of_their_file_system(tmp_path: Path) -> None:
    files = make_files(tmp_path / "a", FILES_SYNCED_ONE_BY_ONE_MAX) + make_files(tmp_path / "b", 1)
    few, many = (Syncer(Durability.FULL, is_local=True) for _ in range(2))

    few.sync(files[:-1], stage="staged")
    many.sync(files, stage="staged")

    assert (few.fsyncs, few.syncfs) == (FILES_SYNCED_ONE_BY_ONE_MAX + 1, 0)
    assert (many.fsyncs, many.syncfs) == (0, 1)


@pytest.mark.parametrize(("durability", "is_local"), [(Durability.PROCESS, True), (Durability.FULL, False)])
def test_without_full_durability_on_a_disk_nothing_is_synced(
    tmp_path: Path, durability: Durability, is_local: bool
) -> None:
    syncer = Syncer(durability, is_local)

    syncer.sync(make_files(tmp_path, 70), stage="staged")

    assert (syncer.fsyncs, syncer.syncfs) == (0, 0)


def test_a_file_of_a_manifest_that_is_gone_is_left_out(tmp_path: Path) -> None:
    files = make_files(tmp_path / "data", 2)
    Path(files[0]).unlink()
    syncer = Syncer(Durability.FULL, is_local=True)

    syncer.sync([*files, str(tmp_path / "no folder" / "file")], stage="manifest")

    assert syncer.fsyncs == 2


@pytest.mark.case("engine", 650)
@pytest.mark.parametrize("durability", Durability)
@pytest.mark.parametrize(("stage", "expected"), [("staged", StorageError), ("table", SyncFailed)])
@pytest.mark.parametrize(("content", "told"), [(None, "is missing"), (b"LAN", "was not written to its end")])
def test_a_file_that_is_gone_or_cut_off_is_an_error(
    tmp_path: Path,
    durability: Durability,
    stage: SyncStage,
    expected: type[StorageError],
    content: bytes | None,
    told: str,
) -> None:
    (file,) = make_files(tmp_path / "data", 1)
    Path(file).unlink() if content is None else Path(file).write_bytes(content)
    syncer = Syncer(durability, is_local=True)

    with pytest.raises(expected, match=told) as raised:
        syncer.sync([file], stage=stage)

    assert type(raised.value) is expected
    assert str(tmp_path) not in str(raised.value)
    assert syncer.fsyncs == 0


@pytest.mark.parametrize("stage", ["staged", "table", "manifest"])
def test_a_fault_comes_before_anything_is_synced(tmp_path: Path, stage: SyncStage) -> None:
    syncer = Syncer(Durability.FULL, is_local=True)

    with failpoint(f"durability.pre_{stage}_sync", "raise"), pytest.raises(SyncFailed):
        syncer.sync(make_files(tmp_path, 1), stage=stage)

    assert syncer.fsyncs == 0


def test_a_failing_sync_is_a_storage_error_without_a_path(tmp_path: Path) -> None:
    files = make_files(tmp_path / "data", 1)
    Path(files[0]).chmod(0)

    with unprivileged(), pytest.raises(StorageError) as raised:
        Syncer(Durability.FULL, is_local=True).sync(files, stage="table")

    assert raised.value.kind == "permanent"
    assert str(tmp_path) not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, Durability.FULL),
        ("", Durability.FULL),
        ("full", Durability.FULL),
        ("process", Durability.PROCESS),
        (" PROCESS ", Durability.PROCESS),
    ],
)
def test_the_environment_chooses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, text: str | None, expected: Durability
) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    if text is not None:
        monkeypatch.setenv(ENVIRONMENT, text)

    assert setting_from_environment() is expected
    assert caplog.records == []


def test_a_malformed_choice_is_full_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")
    monkeypatch.setenv(ENVIRONMENT, "none")

    assert setting_from_environment() is Durability.FULL
    assert [(record.levelno, "none" in record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, True)
    ]
