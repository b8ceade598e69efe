"""Branches that cannot be read: that is their own trouble, and nobody else's."""

import logging
import shutil
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import BranchInUse, BranchNotFound, InvariantViolation, StorageError
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.branches import control_file
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.storage.control.local_files import LocalFiles
from tests.engine.branches.steps import insert, manifest_refs, names, refs
from tests.protocol.powercut.disk import Disk
from tests.support.engine import reopen
from tests.support.hollow import empty
from tests.support.seam import internals, patched


def manifest_of(graph: Graph, branch: str) -> Path:
    return Path(graph.uri) / MANIFEST_DIR / "tree" / str(internals(graph).state(branch).ref)


def newest(folder: Path) -> Path:
    return min((folder / "_versions").glob("*.manifest"))


@pytest.mark.case("engine", 408)
def test_a_branch_begins_at_a_version_that_is_on_the_disk(graph: Graph, tmp_path: Path) -> None:
    """Somebody publishes and syncs nothing; the power fails right after the branch was made."""
    root = Path(graph.uri)
    graph.close()
    with omnigraph.open(root, durability="full") as before:
        before.create_branch("may")
        insert(before, "unsynced")
    disk = Disk(root, tmp_path / "shadow")
    disk.start()
    with disk.watching(lambda: None):
        with omnigraph.open(root, durability="process") as careless:
            careless.merge("main", into="may")
        with omnigraph.open(root, durability="full") as other:
            assert "unsynced" in names(other, "may")
            other.create_branch("june", "may")
    image = tmp_path / "image"
    disk.image(image, "empty", seed=0)
    shutil.rmtree(root)
    image.rename(root)  # a branch names the files of its source by their full paths

    with omnigraph.open(root) as after:
        assert names(after, "june") == names(after, "may") == ["ann", "bob", "eve", "unsynced"]
        insert(after, "next", "june")


@pytest.mark.case("engine", 409)
def test_an_unreadable_branch_is_in_nobody_elses_way(graph: Graph, caplog: pytest.LogCaptureFixture) -> None:
    for branch in ("june", "july"):
        graph.create_branch(branch)
        insert(graph, f"of {branch}", branch)
    forks = refs(graph, "node:Person")
    empty(newest(manifest_of(graph, "june")))

    with reopen(graph) as opened, caplog.at_level(logging.WARNING, logger="omnigraph"):
        with pytest.raises(GraphDamaged):
            names(opened, "june")
        insert(opened, "on main")
        opened.delete_branch("july")

        assert opened.branches() == ["june", "main"]
        assert "june" in caplog.text
        assert refs(opened, "node:Person") == forks, "doubt keeps everything"


@pytest.mark.case("engine", 409)
def test_an_unreadable_branch_can_be_deleted(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "of june", "june")
    empty(newest(manifest_of(graph, "june")))

    with reopen(graph) as opened:
        opened.delete_branch("june")

        assert opened.branches() == ["main"]
        with pytest.raises(BranchNotFound):
            names(opened, "june")
        opened.create_branch("june")
        assert names(opened, "june") == ["ann", "bob", "eve"]


@pytest.mark.case("engine", 409)
def test_a_branch_that_an_unreadable_one_was_made_from_stays(graph: Graph) -> None:
    graph.create_branch("june")
    graph.create_branch("july", "june")
    empty(newest(manifest_of(graph, "july")))

    with reopen(graph) as opened:
        with pytest.raises(BranchInUse, match="created from it"):
            opened.delete_branch("june")
        opened.delete_branch("july")
        opened.delete_branch("june")


@pytest.mark.case("engine", 409)
def test_a_branch_that_the_disk_does_not_give_may_have_been_made_from_the_one_to_go(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.create_branch("june")
    graph.create_branch("july", "june")
    read = LocalFiles.read_text_if_exists

    def failing(files: LocalFiles, name: str) -> str | None:
        if name == control_file("july"):
            raise StorageError(f"cannot read '{name}': Input/output error", kind="unknown")
        return read(files, name)

    with monkeypatch.context() as patch:
        patched(patch, "omnigraph.storage.control.local_files.LocalFiles.read_text_if_exists", failing)
        with pytest.raises(StorageError, match="july"):
            graph.delete_branch("june")

    assert graph.branches() == ["july", "june", "main"]


@pytest.mark.case("engine", 409)
@pytest.mark.parametrize("text", ["", "{}", "not JSON"])
def test_a_damaged_control_object_is_loud_for_its_branch_alone(graph: Graph, text: str) -> None:
    for branch in ("june", "july"):
        graph.create_branch(branch)
    kept = manifest_refs(graph)
    (Path(graph.uri) / control_file("june")).write_text(text)

    with reopen(graph) as opened:
        with pytest.raises(InvariantViolation):
            names(opened, "june")
        insert(opened, "on main")
        opened.delete_branch("july")
        opened.delete_branch("june")

        assert opened.branches() == ["main"]
        assert manifest_refs(opened) == kept, "what they named stays"


@pytest.mark.case("engine", 410)
def test_a_lost_control_object_is_loud_and_can_be_put_back(
    graph: Graph, caplog: pytest.LogCaptureFixture
) -> None:
    graph.create_branch("review/June")
    insert(graph, "of june", "review/June")
    control = Path(graph.uri) / control_file("review/June")
    text = control.read_text()
    control.unlink()

    with caplog.at_level(logging.WARNING, logger="omnigraph"), reopen(graph) as opened:
        assert "review/June" in caplog.text
        insert(opened, "on main")
        with pytest.raises(GraphDamaged, match="review/June") as raised:
            opened.branches()
        assert raised.value.file == control_file("review/June")

    copy = next(path for path in Path(graph.uri).rglob("_branch"))
    assert copy.read_text().partition("\n")[2] == text
    control.write_text(copy.read_text().partition("\n")[2])
    with reopen(graph) as opened:
        assert opened.branches() == ["main", "review/June"]
        assert "of june" in names(opened, "review/June")


def test_a_deleted_branch_is_not_a_lost_one(graph: Graph) -> None:
    graph.create_branch("june")

    with failpoint("branch_delete.post_control_pre_refs", "raise:once"), pytest.raises(InjectedFault):
        graph.delete_branch("june")

    assert graph.branches() == ["main"]


def test_a_branch_is_not_deleted_where_that_cannot_be_said(graph: Graph) -> None:
    graph.create_branch("june")
    folder = manifest_of(graph, "june")
    (folder / "_branch_ended").mkdir()
    (folder / "_branch_ended" / "in the way").touch()

    with pytest.raises(StorageError):
        graph.delete_branch("june")

    assert graph.branches() == ["june", "main"]
