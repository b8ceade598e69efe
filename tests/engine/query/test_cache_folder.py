"""The folder of what queries derive: whatever happens to it, answers and the graph stay the same."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest

from omnigraph.exec.dense.disk import DISK_ROWS_MIN
from tests.support.engine import new_graph, reopen
from tests.support.queries import read
from tests.support.system import unprivileged

NEIGHBOURS = read(
    '$a: Person { name: "p00007" } $a knows{1,3} $b', "return { $b.name as name } order { $b.name }"
)
VARIABLE = "OMNIGRAPH_CACHE_DIR"


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """Persons in a circle, as many as it takes for files; where everybody may look, cache beside it."""
    names = [f"p{number:05d}" for number in range(DISK_ROWS_MIN)]
    knows = pa.table({"from": names, "to": [*names[1:], names[0]]})
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with new_graph(Path(folder) / "graph") as graph:
            graph.load({"Person": pa.table({"name": names}), "Knows": knows}, "append", index=False)
        yield Path(folder) / "graph"


def answer(root: Path) -> list[object]:
    """Ask as a new process would, and wait until what it derived has been written."""
    with reopen(root, mode="ro") as graph:
        return [row["name"] for row in graph.query(NEIGHBOURS).rows]


def garbage(folder: Path) -> None:
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        path.write_bytes(os.urandom(200))
        (path.parent / f"{path.name}.more").write_bytes(b"nothing of ours")


def read_only(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def blocked(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir(mode=0o555)


HAPPENINGS: dict[str, Callable[[Path], None]] = {
    "deleted": shutil.rmtree,
    "made read-only": read_only,
    "filled with garbage": garbage,
    "read-only from the start": blocked,
}


@pytest.mark.case("surfaces", 227)
@pytest.mark.parametrize("happening", HAPPENINGS)
def test_what_happens_to_the_cache_changes_no_answer(
    root: Path, happening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = root.with_name(f"cache {happening}")
    monkeypatch.setenv(VARIABLE, str(cache))
    files = listing(root)
    assert answer(root) == ["p00008", "p00009", "p00010"]
    assert any(path.is_file() for path in cache.rglob("*"))

    HAPPENINGS[happening](cache)

    with unprivileged():
        for _ in range(2):
            assert answer(root) == ["p00008", "p00009", "p00010"]
    assert listing(root) == files


@pytest.mark.case("surfaces", 227)
def test_without_a_folder_nothing_is_written_anywhere(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    files = listing(root)

    assert answer(root) == ["p00008", "p00009", "p00010"]
    assert listing(root) == files
    assert list(tmp_path.iterdir()) == []


def listing(root: Path) -> dict[str, int]:
    """Return every file of the graph with its time of change."""
    return {str(path): path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}
