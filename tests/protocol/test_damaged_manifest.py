"""Files of `__manifest` that rot after they were synced: what was acknowledged is never rolled back."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import lance
import pytest

import omnigraph
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.failpoint import failpoint
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.storage.files.version_file import version_file_name
from tests.engine.branches.steps import insert, names
from tests.support.books import fingerprint
from tests.support.hollow import cut_in_half, empty, fill_with_zeros, lose_notes
from tests.support.protocol import sidecars

SCHEMA = "node Person { name: String @key\n age: I32? }"
WRITES = 6
MODES: tuple[Literal["rw", "ro"], ...] = ("rw", "ro")
DAMAGES: dict[str, Callable[[Path], None]] = {
    "removed": Path.unlink,
    "empty": empty,
    "cut in half": cut_in_half,
    "zero-filled": fill_with_zeros,
}
each_damage = pytest.mark.parametrize("damage", DAMAGES)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of several commits, all of them acknowledged."""
    root = tmp_path_factory.mktemp("pristine") / "graph"
    with omnigraph.init(root, SCHEMA) as graph:
        for number in range(WRITES):
            insert(graph, f"p{number}")
    return root


@pytest.fixture
def root(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "graph"))


@contextmanager
def damaged(path: Path, damage: str, aside: Path) -> Iterator[None]:
    """Damage a file for a while, then put it back."""
    kept = Path(shutil.copy2(path, aside / "kept"))
    DAMAGES[damage](path)
    yield
    path.unlink(missing_ok=True)
    shutil.move(kept, path)


def manifest(root: Path) -> lance.LanceDataset:
    return lance.dataset(str(root / MANIFEST_DIR))


def version_path(root: Path, version: int) -> Path:
    return root / MANIFEST_DIR / version_file_name(version)


def data_path(root: Path, fragment: int) -> Path:
    file = manifest(root).get_fragments()[fragment].metadata.files[0].path
    return root / MANIFEST_DIR / "data" / file


def deletion_path(root: Path) -> Path:
    return sorted((root / MANIFEST_DIR / "_deletions").iterdir())[0]


def newest_version(root: Path) -> Path:
    return version_path(root, manifest(root).version)


FILES: dict[str, Callable[[Path], Path]] = {
    "the newest version": newest_version,
    "an old data file": lambda root: data_path(root, 1),
    "the newest data file": lambda root: data_path(root, -1),
    "an old deletion file": deletion_path,
}


def assert_whole(root: Path) -> None:
    with omnigraph.open(root) as graph:
        assert names(graph) == [f"p{number}" for number in range(WRITES)]
        assert len(graph.commits()) == WRITES + 1
        insert(graph, "next")
        assert len(graph.commits()) == WRITES + 2


@pytest.mark.case("engine", 406)
@each_damage
@pytest.mark.parametrize("file", FILES)
def test_damage_to_a_synced_manifest_moves_nothing_and_is_loud(
    file: str, damage: str, root: Path, tmp_path: Path
) -> None:
    path = FILES[file](root)
    with damaged(path, damage, tmp_path):
        before = fingerprint(root)

        for mode in MODES:
            with pytest.raises(GraphDamaged) as raised:
                omnigraph.open(root, mode=mode)
            assert raised.value.code == "graph_damaged"
            assert raised.value.file == str(path.relative_to(root))
            assert raised.value.file in str(raised.value)
            assert "repair" in str(raised.value)
            assert "read-write" not in str(raised.value)
        assert fingerprint(root) == before

    assert_whole(root)


@pytest.mark.case("engine", 406)
def test_the_error_names_the_commits_that_need_the_file(root: Path) -> None:
    with omnigraph.open(root, mode="ro") as graph:
        commits = {commit.manifest_version: commit.graph_commit_id for commit in graph.commits()}
    lost = 4  # the fragment of the third write, whose commit row is in the file
    data_path(root, lost - 1).unlink()

    with pytest.raises(GraphDamaged) as raised:
        omnigraph.open(root, mode="ro")

    assert raised.value.versions == tuple(range(lost, WRITES + 2))
    assert raised.value.readable == lost - 1
    assert f"--to {lost - 1}" in str(raised.value)
    assert set(raised.value.commits) == {commits[version] for version in range(lost + 1, WRITES + 2)}


@pytest.mark.case("engine", 407)
@each_damage
def test_damage_to_an_old_version_blocks_nothing(damage: str, root: Path, tmp_path: Path) -> None:
    with damaged(version_path(root, 3), damage, tmp_path), omnigraph.open(root) as graph:
        assert len(names(graph)) == WRITES
        insert(graph, "over it")
        assert len(graph.commits()) == WRITES + 2
        assert graph.at(graph.commits()[3].graph_commit_id) is not None

    assert not (root / "__quarantine").exists()


@pytest.mark.case("engine", 406)
def test_what_was_read_after_a_power_cut_is_proven_by_the_open(root: Path) -> None:
    lose_notes(root)
    omnigraph.open(root, durability="full").close()
    empty(newest_version(root))

    with pytest.raises(GraphDamaged):
        omnigraph.open(root)


def test_an_open_handle_that_loses_the_newest_version_says_so(root: Path) -> None:
    with omnigraph.open(root) as graph:
        names(graph)
        newest_version(root).unlink()

        with pytest.raises(OmnigraphError) as raised:
            insert(graph, "on a gap")

    assert isinstance(raised.value, GraphDamaged)


@pytest.mark.case("engine", 406)
def test_damage_beside_an_unfinished_write_is_still_loud(root: Path) -> None:
    """A sidecar says that something was at work, and not that the newest version was never synced."""
    with (
        omnigraph.open(root) as graph,
        failpoint("write.post_table_commit", "raise:once"),
        pytest.raises(OmnigraphError),
    ):
        insert(graph, "unfinished")
    assert sidecars(root)
    empty(newest_version(root))

    with pytest.raises(GraphDamaged):
        omnigraph.open(root)
