"""Pipes, sockets and devices in the place of a graph's files: named, and not waited for."""

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import GraphDamaged
from omnigraph.core.errors import StorageError
from omnigraph.storage.damage.quarantine import read_version
from omnigraph.storage.files.version_file import HollowContent, NamedFile, check_file
from omnigraph.storage.files.whole import check_whole

SCHEMA = "node P { name: String @key @index }\nedge K: P -> P"
TOO_LONG_S = 20  # for what ends at once; without the guard it never ends
PLACES = [
    "__manifest/_versions/*.manifest",
    "__manifest/_deletions/*",
    "__manifest/data/*",
    "nodes/*/_versions/*.manifest",
    "nodes/*/data/*",
    "nodes/*/_transactions/*",
    "nodes/*/_indices/*/*.*",
    "nodes/*/tree/*/data/*",
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("special") / "graph"
    with og.init(root, SCHEMA, durability="process") as graph:
        for number in range(3):
            graph.mutate(f'query q() {{ insert P {{ name: "p{number}" }} }}')
        graph.ensure_indices()
        graph.create_branch("side")
        graph.mutate('query q() { insert P { name: "s" } }', branch="side")
    return root


@pytest.fixture
def root(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "graph"))


@pytest.fixture(autouse=True)
def ends() -> Iterator[None]:
    """End the process of a test that waits for the other end of a pipe: nothing else reaches it there."""
    signal.alarm(TOO_LONG_S)
    yield
    signal.alarm(0)


def as_pipe(place: Path) -> None:
    os.mkfifo(place)


def as_socket(place: Path) -> None:
    folder = Path.cwd()
    os.chdir(place.parent)  # the address of a socket is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(place.name)
    os.chdir(folder)


def as_device(place: Path) -> None:
    place.symlink_to("/dev/zero")


def read(root: Path) -> None:
    with og.open(root, mode="ro") as graph:
        for branch in ("main", "side"):
            graph.query("query q() { match { $p: P } return { $p.name } }", branch=branch)
        graph.verify()


def write(root: Path) -> None:
    with og.open(root, durability="process") as graph:
        for branch in ("side", "main"):
            graph.mutate('query q() { insert P { name: "new" } }', branch=branch)


def clean(root: Path) -> None:
    with og.open(root, durability="process") as graph:
        graph.cleanup(keep=1)


def copy(root: Path) -> None:
    og.clone(root, root.parent / "copy")


@pytest.mark.case("engine", 833)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("replace", "kind"),
    [
        (as_pipe, "a pipe, not a file"),
        (as_socket, "a socket, not a file"),
        (as_device, "a device, not a file"),
    ],
)
def test_what_is_no_file_is_named_and_not_waited_for(
    root: Path, place: str, replace: Callable[[Path], None], kind: str
) -> None:
    replaced = sorted(root.glob(place))
    assert replaced
    for path in replaced:
        path.unlink()
        replace(path)
    before = _listing(root)

    for verb in (read, write, clean, copy):
        with pytest.raises(GraphDamaged, match=kind) as caught:
            verb(root)
        assert caught.value.file in {str(path.relative_to(root)) for path in replaced}

    assert _listing(root) == before


def test_a_pipe_is_no_whole_file(tmp_path: Path) -> None:
    (tmp_path / "_versions").mkdir()
    for name in ("a.lance", "a.json", "_versions/18446744073709551614.manifest"):
        as_pipe(tmp_path / name)

    with pytest.raises(HollowContent, match="is a pipe"):
        check_file(tmp_path, NamedFile("a.lance", None))
    with pytest.raises(HollowContent, match="is a pipe"):
        read_version(tmp_path, 1)
    for name in ("a.lance", "a.json"):
        with pytest.raises(StorageError, match="is a pipe, not a file"):
            check_whole([str(tmp_path / name)])


def test_files_that_are_links_to_files_are_read(root: Path, tmp_path: Path) -> None:
    for path in root.glob("nodes/*/data"):
        path.rename(tmp_path / "data")
        path.symlink_to(tmp_path / "data")
    (tmp_path / "data" / "around").symlink_to(tmp_path / "data")

    read(root)


def _listing(root: Path) -> list[str]:
    return sorted(str(path) for path in root.rglob("*") if "__locks" not in path.parts)
