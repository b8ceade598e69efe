"""Another user of the machine was there first: with folders, files and links where ours would go."""

import logging
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from omnigraph.bulk.connect import session
from omnigraph.bulk.connect.java import _shim
from omnigraph.core.errors import StorageError
from omnigraph.embedding.seed import EmbedSpec, TypeSpec
from omnigraph.exec.dense.disk import DiskCache
from omnigraph.operations.embed.file import EmbedFile, embed_file
from omnigraph.operations.load.rejects import write_rejects
from omnigraph.storage.control.locks import try_lock
from omnigraph.storage.control.private_folder import make_private, open_own, require_private

STRANGER = 65_534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can act as another user")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that other users can reach, unlike those that pytest makes."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which everybody may make files, as /tmp is; temporary files go there."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    session._scratch_of.cache_clear()
    yield folder
    session._scratch_of.cache_clear()


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file of ours that a stranger would like to see overwritten."""
    path = tmp_path / "precious"
    path.write_text("mine")
    return path


def as_stranger(script: str, *arguments: object) -> None:
    """Run commands of a shell as another user."""
    command = ["/bin/sh", "-ec", script, "sh", *map(str, arguments)]
    subprocess.run(command, user=STRANGER, group=STRANGER, extra_groups=[], check=True, umask=0)


@pytest.mark.case("engine", 389)
@needs_root
def test_the_log_of_spark_goes_to_a_folder_that_nobody_could_make_first(shared: Path, precious: Path) -> None:
    guessed = shared / f"omnigraph-spark-{os.getuid()}" / str(os.getpid())
    as_stranger('mkdir -p "$1"; ln -s "$2" "$1/spark.log"; ln -s / "$1/java"', guessed, precious)

    with session._output_to(session.log_path()):
        os.write(1, b"from a JVM\n")

    log = session.log_path()
    assert precious.read_text() == "mine"
    assert log.read_text() == "from a JVM\n"
    assert log.parent.stat().st_uid == os.geteuid()
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_the_folder_of_spark_goes_with_the_process_that_made_it_unless_an_error_named_its_log(
    shared: Path,
) -> None:
    folder = session._scratch()

    session._remove_scratch(folder, os.getpid() + 1)
    assert folder.exists(), "a forked child leaves its parent's folder alone"
    session._remove_scratch(folder, os.getpid())
    assert not folder.exists()

    told = "from omnigraph.bulk.connect import session; session._scratch(); {}"
    for act, left in (("session._scratch()", 0), ("session.log_path()", 1)):
        subprocess.run(
            [sys.executable, "-c", told.format(act)], env={**os.environ, "TMPDIR": str(shared)}, check=True
        )
        assert len(list(shared.iterdir())) == left


@pytest.mark.case("engine", 389)
def test_a_log_is_not_written_through_a_link(tmp_path: Path, precious: Path) -> None:
    (tmp_path / "spark.log").symlink_to(precious)

    with pytest.raises(OSError, match="symbolic links"), session._output_to(tmp_path / "spark.log"):
        os.write(1, b"never")

    assert precious.read_text() == "mine"


@pytest.mark.case("engine", 389)
@needs_root
def test_the_start_script_of_java_is_ours(shared: Path) -> None:
    scratch = shared / "scratch"

    as_stranger('mkdir -p "$1/java/bin"; echo "echo owned" > "$1/java/bin/java"', scratch)

    with pytest.raises(PermissionError, match="belongs to another user"):
        _shim(Path(sys.executable), scratch)
    mine = shared / "mine"
    make_private(mine)
    home = _shim(Path(sys.executable), mine)
    assert stat.S_IMODE((home / "bin" / "java").stat().st_mode) == 0o700
    assert _shim(Path(sys.executable), mine) == home


ARRAYS = {"a": np.arange(1_000, dtype=np.int64)}


def saved(cache: DiskCache, name: str) -> None:
    cache.save(name, {}, ARRAYS)
    cache.close()


@pytest.mark.case("engine", 390)
@needs_root
def test_a_cache_that_a_stranger_made_is_neither_read_nor_written(
    shared: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root, mine = shared / "cache", tmp_path / "mine"
    saved(DiskCache(mine, "g", 1 << 20), "x")
    for path in (mine, *mine.rglob("*")):
        path.chmod(0o755)
    as_stranger('cp -r "$1" "$2"', mine, root)
    cache = DiskCache(root, "g", 1 << 20)

    with caplog.at_level(logging.WARNING, "omnigraph"):
        saved(cache, "y")

    assert cache.load("x") is None
    assert cache.about("x") is None
    assert cache.load("y") is None
    assert len(list(root.glob("*/*"))) == 1
    assert "belongs to another user" in caplog.text


@pytest.mark.case("engine", 390)
@needs_root
def test_one_file_of_a_stranger_in_our_cache_is_not_read(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, "g", 1 << 20)
    saved(cache, "x")
    (file,) = tmp_path.glob("*/*")
    assert cache.load("x") is not None

    os.chown(file, STRANGER, STRANGER)
    assert cache.load("x") is None
    os.chown(file, 0, 0)
    file.parent.chmod(0o777)
    assert cache.load("x") is None
    file.parent.chmod(0o700)
    aside = tmp_path / "aside"
    file.rename(aside)
    file.symlink_to(aside)
    assert cache.load("x") is None


@pytest.mark.case("engine", 390)
def test_a_full_cache_removes_cache_files_only(tmp_path: Path) -> None:
    root, others = tmp_path / "cache", tmp_path / "others"
    (root / "photos").mkdir(parents=True)
    (root / "photos" / "one").write_bytes(bytes(100_000))
    others.mkdir()
    (others / "x-0123456789abcdef").write_bytes(bytes(100_000))
    (root / "g-0123456789abcdef").symlink_to(others)
    cache = DiskCache(root, "g", 10_000)

    saved(cache, "x")
    saved(cache, "y")

    assert (root / "photos" / "one").exists()
    assert (others / "x-0123456789abcdef").exists()
    assert cache.load("x") is None
    assert cache.load("y") is not None


@pytest.mark.case("engine", 389)
def test_files_that_are_written_aside_follow_no_link(tmp_path: Path, precious: Path) -> None:
    target = tmp_path / "rejects.jsonl"
    (tmp_path / f".{target.name}.{os.getpid()}").symlink_to(precious)
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"type": "A", "data": {"v": [1]}}\n')
    (tmp_path / "out.jsonl.tmp").symlink_to(precious)
    spec = EmbedSpec(dimension=1, types={"A": TypeSpec("v", ("t",))})

    write_rejects(target, ())
    embed_file(EmbedFile(source, output, spec, clean=True))

    assert output.read_text() == '{"type": "A", "data": {}}\n'
    assert precious.read_text() == "mine"


def test_a_lock_is_not_taken_through_a_link(tmp_path: Path, precious: Path) -> None:
    (tmp_path / "a.lock").symlink_to(precious)

    with pytest.raises((StorageError, OSError), match="symbolic links"):
        try_lock(tmp_path / "a.lock")


def test_a_private_folder_may_lie_behind_a_link_of_our_own(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "loop").symlink_to("loop")

    make_private(tmp_path / "link" / "a" / "b")
    require_private(tmp_path / "link" / ".." / "real" / "a")

    with pytest.raises(OSError, match="symbolic links"):
        require_private(tmp_path / "loop" / "a")
    with pytest.raises(PermissionError, match="is not a folder"):
        require_private(tmp_path / "link")
    (tmp_path / "real").chmod(0o777)
    with pytest.raises(PermissionError, match="is writable by all users"):
        require_private(tmp_path / "real" / "a")
    (tmp_path / "real").chmod(0o770)
    with pytest.raises(PermissionError, match="is writable by other users"):
        require_private(tmp_path / "real")


@needs_root
def test_what_belongs_to_a_stranger_is_refused_wherever_it_stands(shared: Path, tmp_path: Path) -> None:
    as_stranger('cd "$1"; mkdir folder; ln -s "$2" link; echo theirs > file', shared, tmp_path)

    for place in (shared / "folder", shared / "folder" / "below", shared / "link", shared / "link" / "below"):
        with pytest.raises(PermissionError, match="belongs to another user"):
            make_private(place)
    with pytest.raises(PermissionError, match="is not a file of this user"):
        open_own(shared / "file", os.O_RDONLY)
    assert not (tmp_path / "below").exists()
