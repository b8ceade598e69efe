"""Hollow newest versions of every dataset of a graph, met by an open."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import lance
import pytest

import omnigraph
from omnigraph.commit.parts import RECOVERIES_DATASET
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import StorageError
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.storage.files.version_file import version_file_name
from tests.protocol.conftest import NewRoot
from tests.support.books import Recovery, assert_reopening_changes_nothing, books, contents_of, fingerprint
from tests.support.hollow import DAMAGES, empty, lose_notes
from tests.support.protocol import BEFORE, WRITERS, give_up, sidecars, write_everywhere
from tests.support.system import NOBODY, unprivileged

AFTER = WRITERS["insert"].after
each_damage = pytest.mark.parametrize("damage", DAMAGES)


def version_path(root: Path, dataset: str, version: int | None = None) -> Path:
    """Return the file of a version of a dataset: the newest, unless told otherwise."""
    path = root / dataset
    newest = lance.dataset(str(path)).version if version is None else version
    return path / version_file_name(newest)


def newest_data_file(root: Path, dataset: str) -> Path:
    """Return the data file that the newest version of a dataset has added."""
    path = root / dataset
    fragment = lance.dataset(str(path)).get_fragments()[-1]
    return path / "data" / fragment.metadata.files[0].path


def location(root: Path, table_key: str) -> str:
    """Return where a table lies inside of its graph."""
    with omnigraph.open(root, mode="ro") as graph:
        return graph.snapshot().entry(table_key).location


def quarantined(root: Path) -> list[Recovery]:
    """Return the audit rows of quarantined versions."""
    return [row for row in books(root).recoveries if row.kind == "VersionQuarantined"]


def moved_files(root: Path) -> list[str]:
    """Return what lies in quarantine, below the folder of each move."""
    folder = root / "__quarantine"
    return sorted(str(Path(*path.relative_to(folder).parts[1:])) for path in folder.rglob("*.manifest"))


def assert_goes_on(root: Path) -> None:
    """Check that the graph can be written, and that the next open has nothing to do."""
    with omnigraph.open(root) as graph:
        write_everywhere(graph)
    found = books(root)
    assert (found.heads, found.files) == (found.pins, ())
    assert_reopening_changes_nothing(root)


# Hollow version files


@pytest.mark.case("engine", 327)
@each_damage
def test_a_hollow_manifest_is_moved_and_the_version_before_is_served(damage: str, root: Path) -> None:
    """The publish landed, but its files never reached the disk; the sidecar that did finishes the write."""
    before = lance.dataset(str(root / MANIFEST_DIR)).version
    give_up(root, "insert", "P5")
    hollow = version_path(root, MANIFEST_DIR)
    lose_notes(root)
    DAMAGES[damage](hollow)

    with omnigraph.open(root) as graph:
        assert contents_of(graph) == AFTER
    (row,) = quarantined(root)
    assert row.outcomes == ((MANIFEST_DIR, before + 1, before),)
    assert moved_files(root) == [f"{MANIFEST_DIR}/{hollow.name}"]
    assert [recovery.kind for recovery in books(root).recoveries] == ["VersionQuarantined", "RolledForward"]
    assert_goes_on(root)


@pytest.mark.case("engine", 327)
@each_damage
def test_a_hollow_table_is_moved_and_the_version_before_is_served(damage: str, root: Path) -> None:
    knows = location(root, "edge:Knows")
    give_up(root, "insert", "P2")
    hollow = version_path(root, knows)
    DAMAGES[damage](hollow)

    with omnigraph.open(root) as graph:
        assert contents_of(graph) == BEFORE
    (row,) = quarantined(root)
    assert row.outcomes == (("edge:Knows", 3, 2),)
    assert moved_files(root) == [f"{knows}/{hollow.name}"]
    assert_goes_on(root)


@pytest.mark.case("engine", 327)
@pytest.mark.parametrize("rows_before", [0, 1])
@each_damage
def test_a_hollow_audit_is_moved_and_its_row_is_written_again(
    damage: str, rows_before: int, root: Path
) -> None:
    if rows_before:
        give_up(root, "update", "P1")
        omnigraph.open(root).close()
    give_up(root, "insert", "P3")
    with failpoint("recovery.post_audit_pre_delete", "raise"), pytest.raises(InjectedFault):
        omnigraph.open(root)
    lose_notes(root)
    DAMAGES[damage](version_path(root, RECOVERIES_DATASET))

    with omnigraph.open(root) as graph:
        assert contents_of(graph) == AFTER
    (row,) = quarantined(root)
    assert row.tables == (RECOVERIES_DATASET,)
    kinds = [recovery.kind for recovery in books(root).recoveries]
    assert sorted(kinds) == sorted(["RolledBack"] * rows_before + ["RolledForward", "VersionQuarantined"])
    assert sidecars(root) == ()
    assert_goes_on(root)


# Whole version files with hollow data


@pytest.mark.case("engine", 328)
@pytest.mark.parametrize("damage", ["empty", "zero-filled"])
def test_a_manifest_version_with_hollow_rows_is_moved(damage: str, root: Path) -> None:
    give_up(root, "insert", "P5")
    lose_notes(root)
    DAMAGES[damage](newest_data_file(root, MANIFEST_DIR))

    omnigraph.open(root).close()

    (row,) = quarantined(root)
    assert row.tables == (MANIFEST_DIR,)
    assert books(root).contents == AFTER
    assert_goes_on(root)


@pytest.mark.case("engine", 328)
@pytest.mark.parametrize("damage", ["empty", "zero-filled"])
def test_a_hollow_compaction_of_a_table_is_moved_and_no_row_is_lost(damage: str, root_for: NewRoot) -> None:
    root = root_for("upkeep")
    person = location(root, "node:Person")
    give_up(root, "upkeep", "P2")
    DAMAGES[damage](newest_data_file(root, person))

    omnigraph.open(root).close()

    (row,) = quarantined(root)
    assert row.tables == ("node:Person",)
    assert books(root).contents == WRITERS["upkeep"].after
    assert_goes_on(root)


# What is moved, and what stays


@pytest.mark.case("engine", 329)
def test_two_hollow_versions_are_both_moved(root_for: NewRoot) -> None:
    root = root_for("upkeep")
    person = location(root, "node:Person")
    give_up(root, "upkeep", "P2")
    newest = lance.dataset(str(root / person)).version
    for version in (newest - 1, newest):  # the reservation of fragment ids, and the compaction
        empty(version_path(root, person, version))

    omnigraph.open(root).close()

    (row,) = quarantined(root)
    assert row.outcomes == (("node:Person", newest, newest - 2),)
    assert len(moved_files(root)) == 2
    assert books(root).contents == WRITERS["upkeep"].after
    assert_goes_on(root)


@pytest.mark.case("engine", 329)
@pytest.mark.parametrize("below_head", [0, 1], ids=["the pin itself", "under a readable version"])
def test_a_hollow_version_that_was_published_stays_and_is_loud(below_head: int, root: Path) -> None:
    knows = location(root, "edge:Knows")
    give_up(root, "insert", "P2" if below_head else "P1")
    newest = lance.dataset(str(root / knows)).version
    empty(version_path(root, knows, newest - below_head))
    before = fingerprint(root)

    with pytest.raises(GraphDamaged, match="repair") as raised:
        omnigraph.open(root)

    assert raised.value.kind == "permanent"
    assert raised.value.commits
    assert fingerprint(root) == before


# Errors that are not hollow content


@pytest.fixture
def readable_root(root: Path) -> Iterator[Path]:
    """A copy where an ordinary user may write: permissions do not stop the superuser."""
    folder = Path(tempfile.mkdtemp())
    copy = Path(shutil.copytree(root, folder / "graph"))
    folder.chmod(0o755)
    if os.geteuid() == 0:
        for path in (copy, *copy.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    yield copy
    shutil.rmtree(folder)


@pytest.mark.case("engine", 330)
def test_a_version_that_may_not_be_read_is_loud_and_stays(readable_root: Path) -> None:
    newest = version_path(readable_root, MANIFEST_DIR)
    newest.chmod(0)

    with unprivileged(), pytest.raises(StorageError, match="Permission denied") as raised:
        omnigraph.open(readable_root)

    assert raised.value.kind == "permanent"
    assert newest.exists()
    assert not (readable_root / "__quarantine").exists()
    newest.chmod(0o644)
    with unprivileged():
        omnigraph.open(readable_root).close()


@pytest.mark.case("engine", 330)
@each_damage
@pytest.mark.parametrize("part", ["version", "rows"])
def test_a_reader_of_a_hollow_manifest_is_told_who_can_mend_it(part: str, damage: str, root: Path) -> None:
    give_up(root, "insert", "P5")
    hollow = version_path(root, MANIFEST_DIR) if part == "version" else newest_data_file(root, MANIFEST_DIR)
    lose_notes(root)
    DAMAGES[damage](hollow)
    before = fingerprint(root)

    with pytest.raises(StorageError, match="hollow: open the graph read-write") as raised:
        omnigraph.open(root, mode="ro")

    assert raised.value.kind == "permanent"
    assert fingerprint(root) == before
    omnigraph.open(root).close()
    assert books(root).contents == AFTER
