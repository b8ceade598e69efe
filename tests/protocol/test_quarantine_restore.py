"""Putting back what an open moved to quarantine: only what fits, is whole, and is named."""

import shutil
from pathlib import Path

import pytest

import omnigraph
import omnigraph as og
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import AlreadyExistsError, ConflictError, NotFoundError
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.storage.files.version_file import version_file_name
from tests.engine.branches.steps import insert, names
from tests.engine.counting import renames
from tests.protocol.test_damaged_manifest import SCHEMA, manifest
from tests.protocol.test_quarantine import location, version_path
from tests.support.books import contents_of, fingerprint
from tests.support.hollow import empty, lose_notes
from tests.support.in_process import invoke
from tests.support.protocol import BEFORE, give_up, new_graph, write_everywhere

ALL = [f"p{number}" for number in range(4)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A graph whose two newest versions were moved to quarantine; what they held is kept beside it."""
    root = tmp_path / "graph"
    with omnigraph.init(root, SCHEMA) as graph:
        for name in ALL:
            insert(graph, name)
    version = manifest(root).version
    for number in (version - 1, version):
        path = root / MANIFEST_DIR / version_file_name(number)
        shutil.copy2(path, tmp_path / path.name)
        empty(path)
    lose_notes(root)
    omnigraph.open(root).close()
    return root


def in_quarantine(root: Path) -> list[Path]:
    """Return the version files that lie in quarantine, the newest first."""
    return sorted((root / "__quarantine").rglob("*.manifest"))


def mend(root: Path) -> str:
    """Give the files in quarantine their bytes back; return their id."""
    for path in in_quarantine(root):
        shutil.copy2(root.parent / path.name, path)
    (found,) = og.quarantined(root)
    return found.quarantine_id


@pytest.mark.case("engine", 420)
def test_what_is_whole_again_goes_back(root: Path) -> None:
    quarantine_id = mend(root)
    listed = invoke("quarantine", "list", root, cwd=root.parent)
    assert "can be put back" in listed.stdout

    with renames() as renamed:
        og.restore_quarantined(root, quarantine_id)

    moved = [Path(target).name for target in renamed if target.endswith(".manifest")]
    assert moved == sorted(moved, reverse=True), "the oldest version goes first"
    assert og.quarantined(root) == ()
    newest = manifest(root).version
    with omnigraph.open(root) as graph:
        assert names(graph) == ALL
        insert(graph, "next")
    assert manifest(root).version == newest + 1


@pytest.mark.case("engine", 420)
def test_what_is_damaged_stays(root: Path) -> None:
    (found,) = og.quarantined(root)
    assert found.obstacle is not None
    before = fingerprint(root)

    with pytest.raises(GraphDamaged):
        og.restore_quarantined(root, found.quarantine_id)

    assert fingerprint(root) == before


@pytest.mark.case("engine", 420)
def test_what_something_was_published_over_stays(root: Path) -> None:
    quarantine_id = mend(root)
    version = manifest(root).version
    (root / MANIFEST_DIR / version_file_name(version + 1)).write_bytes(in_quarantine(root)[-1].read_bytes())
    before = fingerprint(root)

    with pytest.raises(AlreadyExistsError, match="cannot be put back"):
        og.restore_quarantined(root, quarantine_id)

    assert fingerprint(root) == before


@pytest.mark.case("engine", 420)
@pytest.mark.parametrize("name", ["..", "", ".", "../graph", "no such"])
def test_only_a_folder_of_the_quarantine_is_one(root: Path, name: str) -> None:
    with pytest.raises(NotFoundError):
        og.restore_quarantined(root, name)


def test_versions_that_were_put_back_are_never_lost_silently(root: Path) -> None:
    og.restore_quarantined(root, mend(root))
    (root / MANIFEST_DIR / version_file_name(manifest(root).version)).unlink()

    with pytest.raises(GraphDamaged, match="is missing"):
        omnigraph.open(root)


@pytest.mark.case("engine", 420)
def test_a_version_of_a_table_that_no_manifest_names_stays(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    new_graph(root).close()
    knows = location(root, "edge:Knows")
    give_up(root, "insert", "P2")
    path = version_path(root, knows)
    kept = Path(shutil.copy2(path, tmp_path / "kept"))
    empty(path)
    omnigraph.open(root).close()
    (moved,) = in_quarantine(root)
    shutil.copy2(kept, moved)

    (found,) = og.quarantined(root)
    assert found.obstacle is not None
    with pytest.raises(ConflictError, match="no published version names"):
        og.restore_quarantined(root, found.quarantine_id)

    with omnigraph.open(root) as graph:
        assert contents_of(graph) == BEFORE
        write_everywhere(graph)
