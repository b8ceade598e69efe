"""Control files on a disk, beyond what every adapter promises."""

import os
import threading
from pathlib import Path

import pytest

from omnigraph.core.errors import BadRequest, StorageError
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.local_files import LocalFiles
from tests.support.system import Script, unprivileged

RACE = """
import sys
from pathlib import Path
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.local_files import LocalFiles
files = LocalFiles(Path(sys.argv[1]), Durability.PROCESS)
print("ready", flush=True)
input()
wins = sum(files.write_text_if_absent(f"claims/{number}", sys.argv[2]) for number in range(50))
for _ in range(25):
    while True:
        text, token = files.read_text_versioned("counter")
        if files.write_text_if_match("counter", str(int(text) + 1), token):
            break
print(wins, flush=True)
"""


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(tmp_path, Durability.PROCESS)


def test_a_folder_that_goes_while_its_parent_is_looked_through_hides_no_other(
    tmp_path: Path, files: LocalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {tmp_path / "tables" / name for name in ("one", "other")}
    for folder in folders:
        folder.mkdir(parents=True)
    looked: list[Path] = []
    look = os.scandir

    def looking(path: Path) -> object:
        if path in folders and not looked:  # whichever comes first goes, and the other one has a file
            path.rmdir()
            (next(iter(folders - {path})) / "file.json").write_text("{}")
        looked.extend({path} & folders)
        return look(path)

    monkeypatch.setattr(os, "scandir", looking)

    assert files.exists("tables")
    assert set(looked) == folders


@pytest.mark.case("engine", 20)
def test_what_a_crash_leaves_of_a_write_is_invisible_and_not_addressable(
    tmp_path: Path, files: LocalFiles
) -> None:
    files.write_text("__recovery/01.json", "x")
    (tmp_path / "__recovery" / "01.json#123").write_text("cut")
    (tmp_path / "only" / "residue").mkdir(parents=True)
    (tmp_path / "only" / "residue" / "02.json#9").write_text("cut")

    assert files.list_dir("__recovery") == ["01.json"]
    assert files.list_dir("only/residue") == []
    assert not files.exists("only")
    for attempt in (
        files.read_text,
        files.read_text_if_exists,
        files.read_text_versioned,
        files.exists,
        files.delete,
        files.discard,
        files.list_dir,
        files.delete_prefix,
    ):
        with pytest.raises(BadRequest, match=r"01\.json#123"):
            attempt("__recovery/01.json#123")
    for write in (files.write_text, files.write_text_if_absent, files.rename_text):
        with pytest.raises(BadRequest, match=r"01\.json#123"):
            write("__recovery/01.json#123", "text")
    with pytest.raises(BadRequest, match=r"01\.json#123"):
        files.rename_text("__recovery/01.json", "__recovery/01.json#123")
    with pytest.raises(BadRequest, match=r"01\.json#123"):
        files.write_text_if_match("__recovery/01.json#123", "text", "token")
    with pytest.raises(BadRequest, match=r"01\.json#123"):
        files.delete_if_match("__recovery/01.json#123", "token")
    assert (tmp_path / "__recovery" / "01.json#123").read_text() == "cut"


def test_a_file_is_removed_under_the_condition_that_nobody_has_replaced_it(
    tmp_path: Path, files: LocalFiles
) -> None:
    files.write_text("dir/lock", "dead")
    _, token = files.read_text_versioned("dir/lock") or ("", "")
    assert files.write_text_if_match("dir/lock", "alive", token)

    assert not files.delete_if_match("dir/lock", token)

    assert files.read_text("dir/lock") == "alive"
    _, token = files.read_text_versioned("dir/lock") or ("", "")
    assert files.delete_if_match("dir/lock", token)
    assert not files.delete_if_match("dir/lock", token)
    assert list((tmp_path / "dir").iterdir()) == []
    assert not files.delete_if_match("nowhere/lock", token)


def test_a_number_sign_alone_makes_no_temporary_file(files: LocalFiles) -> None:
    for name in ("a#", "#1", "a#1b", "a#b", "a#1.json"):
        files.write_text(f"dir/{name}", "x")

    assert sorted(files.list_dir("dir")) == ["#1", "a#", "a#1.json", "a#1b", "a#b"]


def test_the_residue_of_a_crash_goes_with_its_folder(tmp_path: Path, files: LocalFiles) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "01.json#123").write_text("cut")

    files.delete_prefix("dir")

    assert not (tmp_path / "dir").exists()


@pytest.mark.case("engine", 21)
def test_an_empty_folder_does_not_exist_and_a_closed_one_is_an_error(
    tmp_path: Path, files: LocalFiles
) -> None:
    (tmp_path / "empty" / "nested").mkdir(parents=True)
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "file.json").write_text("x")
    closed.chmod(0)

    assert not files.exists("empty")
    assert not files.exists("empty/nested")
    try:
        with unprivileged():
            for name in ("closed", "closed/file.json"):
                with pytest.raises(StorageError, match=name) as raised:
                    files.exists(name)
                assert raised.value.kind == "permanent"
    finally:
        closed.chmod(0o700)
    assert files.exists("closed")


@pytest.mark.case("engine", 22)
def test_missing_is_none_and_forbidden_is_an_error(tmp_path: Path, files: LocalFiles) -> None:
    (tmp_path / "there.json").write_text("x")
    (tmp_path / "there.json").chmod(0)

    assert files.read_text_if_exists("missing.json") is None
    with unprivileged(), pytest.raises(StorageError, match=r"there\.json") as raised:
        files.read_text_if_exists("there.json")

    assert raised.value.kind == "permanent"
    assert str(tmp_path) not in str(raised.value)


def test_a_folder_that_may_not_be_read_is_not_an_empty_one(tmp_path: Path, files: LocalFiles) -> None:
    (tmp_path / "closed").mkdir(mode=0)

    with unprivileged(), pytest.raises(StorageError, match="closed"):
        files.list_dir("closed")


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path, files: LocalFiles) -> None:
    (tmp_path / "__recovery").write_text("not a folder")

    with pytest.raises(StorageError):
        files.list_dir("__recovery")
    with pytest.raises(StorageError):
        files.read_text_if_exists("__recovery/01.json")


def test_a_write_that_fails_leaves_no_temporary_file(tmp_path: Path, files: LocalFiles) -> None:
    (tmp_path / "taken").mkdir()

    with pytest.raises(StorageError, match="taken"):
        files.write_text("taken", "x")

    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_nothing_but_the_text_is_left_in_the_folder(tmp_path: Path, files: LocalFiles) -> None:
    files.write_text_if_absent("a.json", "1")
    files.write_text_if_absent("a.json", "2")
    files.write_text("a.json", "3")
    found = files.read_text_versioned("a.json")
    assert found is not None
    files.write_text_if_match("a.json", "4", found[1])
    files.write_text_if_match("a.json", "5", found[1])

    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert files.read_text("a.json") == "4"


def test_bytes_that_are_no_text_are_an_error_that_names_the_file(tmp_path: Path, files: LocalFiles) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff\xfe")

    with pytest.raises(StorageError, match=r"a\.json") as raised:
        files.read_text("a.json")

    assert raised.value.kind == "permanent"


def test_a_reader_sees_the_old_text_or_the_new_one(files: LocalFiles) -> None:
    texts = {"a" * 10, "b" * 100_000, "c" * 3_000}
    files.write_text("state", "a" * 10)
    done = threading.Event()

    def write() -> None:
        for _ in range(100):
            for text in texts:
                files.write_text("state", text)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not done.is_set():
        seen.add(files.read_text("state"))
    writer.join()

    assert seen <= texts


def test_processes_agree_on_one_creator_and_lose_no_swap(tmp_path: Path, files: LocalFiles) -> None:
    files.write_text("counter", "0")

    with (
        Script(RACE, tmp_path, "one") as one,
        Script(RACE, tmp_path, "two") as two,
        Script(RACE, tmp_path, "three") as three,
    ):
        scripts = (one, two, three)
        assert [script.read_line() for script in scripts] == ["ready"] * 3
        for script in scripts:
            script.write_line()
        wins = [int(script.read_line()) for script in scripts]

    assert sum(wins) == 50
    assert files.read_text("counter") == "75"
    assert len(files.list_dir("claims")) == 50


def test_full_durability_syncs_the_text_and_its_folder(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "graph", Durability.FULL)
    files.write_text("dir/first.json", "x")  # with the way from above the root down to the folder
    before = files.fsyncs

    files.write_text("dir/a.json", "x")
    after_write = files.fsyncs
    files.write_text_if_absent("dir/b.json", "x")
    after_create = files.fsyncs
    files.delete("dir/a.json")
    after_delete = files.fsyncs
    files.discard("dir/b.json")

    assert before == 1 + 3  # the file; its folder, the root, and the folder that holds the root
    assert (after_write - before, after_create - after_write, after_delete - after_create) == (2, 2, 1)
    assert files.fsyncs == after_delete


def test_process_durability_syncs_nothing(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path, Durability.PROCESS)

    files.write_text("dir/a.json", "x")
    files.write_text_if_absent("dir/b.json", "x")
    files.delete("dir/a.json")

    assert files.fsyncs == 0
