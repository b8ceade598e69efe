"""Syncs beside the commit itself: what recovery undoes, and what the fold of the manifest writes."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import failpoint
from tests.protocol.powercut.disk import Disk
from tests.protocol.powercut.test_order import files_of, is_version
from tests.protocol.test_clone_crash import BEHIND_THE_LAST, killed, new_source
from tests.support.protocol import WRITERS, give_up, new_branched_graph, new_graph
from tests.support.seam import patched

TOUCH = 'query touch() { update Person set { age: 31 } where name = "ann" }'


def test_what_recovery_undoes_is_on_the_disk_before_it_is_published(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    new_graph(root).close()
    give_up(root, "delete", "P2")
    disk = Disk(root, tmp_path / "shadow")
    disk.start()
    before = files_of(root)
    seen: list[int] = []

    def look() -> None:
        """No sync of a table follows the publish, so what is safe here was so when the version appeared."""
        new = files_of(root) - before
        if any(is_version(path, of_manifest=True) for path in new):
            tables = {path for path in new if path.relative_to(root).parts[0] in {"nodes", "edges"}}
            assert all(disk.is_safe(path) for path in tables)
            seen.append(sum(is_version(path, of_manifest=False) for path in tables))

    with disk.watching(look):
        omnigraph.open(root).close()

    new = files_of(root) - before
    assert set(seen) == {1}
    assert all(disk.is_safe(path) for path in new)


def test_what_recovery_takes_over_is_on_the_disk_before_it_is_published(tmp_path: Path) -> None:
    """The writer dies after its second commit, before it syncs the versions of its tables."""
    root = tmp_path / "graph"
    new_graph(root).close()
    before = files_of(root)
    disk = Disk(root, tmp_path / "shadow")
    disk.start()
    seen: list[int] = []

    def look() -> None:
        new = files_of(root) - before
        if any(is_version(path, of_manifest=True) for path in new):
            tables = {path for path in new if path.relative_to(root).parts[0] in {"nodes", "edges"}}
            assert all(disk.is_safe(path) for path in tables)
            seen.append(sum(is_version(path, of_manifest=False) for path in tables))

    with disk.watching(look):
        with (
            omnigraph.open(root) as graph,
            failpoint("write.post_table_commit", "skip:1,raise"),
            pytest.raises(RecoveryRequired),
        ):
            WRITERS["insert"].run(graph)
        assert not seen
        omnigraph.open(root).close()

    assert set(seen) == {2}
    assert all(disk.is_safe(path) for path in files_of(root) - before)


def test_a_folded_manifest_is_on_the_disk_when_the_publish_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "graph"
    new_graph(root).close()
    patched(monkeypatch, "omnigraph.commit.publish.FRAGMENTS_MAX", 2)
    with omnigraph.open(root) as graph:
        disk = Disk(root, tmp_path / "shadow")
        disk.start()
        before = files_of(root)

        with disk.watching(lambda: None):
            graph.mutate(TOUCH)

    new = files_of(root) - before
    assert sum(is_version(path, of_manifest=True) for path in new) >= 2  # the publish, then the fold
    assert all(disk.is_safe(path) for path in new)


def test_what_others_published_without_a_sync_is_on_the_disk_before_it_is_built_on(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    new_graph(root).close()
    with omnigraph.open(root) as graph:
        graph.mutate(TOUCH)
        disk = Disk(root, tmp_path / "shadow")
        disk.start()
        before = files_of(root)
        with disk.watching(lambda: None):
            with omnigraph.open(root, durability="process") as other:
                other.mutate(TOUCH)
                other.mutate(TOUCH)
            others = {path for path in files_of(root) - before if "__manifest" in path.parts}
            assert not any(disk.is_safe(path) for path in others)

            graph.mutate(TOUCH)

    assert sum(is_version(path, of_manifest=True) for path in others) == 2
    assert all(disk.is_safe(path) for path in others)


@pytest.mark.case("engine", 871)
@pytest.mark.parametrize("source", ["june", "july"])
def test_all_files_of_a_merge_are_on_the_disk_when_it_is_published(tmp_path: Path, source: str) -> None:
    """Each step of a merge is staged after the one before it is committed, and synced on its own.

    What july did is one commit of each table, which is staged and synced before the sidecar.
    """
    root = tmp_path / "graph"
    new_branched_graph(root)
    seen: list[int] = []
    with omnigraph.open(root) as graph:
        graph.create_branch("july")
        for type_, name, change in (("Person", "bob", "age: 41"), ("Company", "acme", 'city: "Graz"')):
            text = f'query m() {{ update {type_} set {{ {change} }} where name = "{name}" }}'
            graph.mutate(text, branch="july")
        disk = Disk(root, tmp_path / "shadow")
        disk.start()
        before = files_of(root)

        def look() -> None:
            new = files_of(root) - before
            if any(is_version(path, of_manifest=True) for path in new):
                tables = {path for path in new if path.relative_to(root).parts[0] in {"nodes", "edges"}}
                assert all(disk.is_safe(path) for path in tables)
                seen.append(sum(path.suffix == ".lance" for path in tables))

        with disk.watching(look):
            graph.merge(source)

    assert seen
    assert min(seen) >= 2
    assert all(disk.is_safe(path) for path in files_of(root) - before)


@pytest.mark.case("engine", 846)
@pytest.mark.parametrize("place", ["clone.before_file=skip:30,exit", BEHIND_THE_LAST])
def test_a_copy_that_is_continued_is_on_the_disk_when_it_returns(tmp_path: Path, place: str) -> None:
    """What the run that died has written may have its names in no folder on the disk yet."""
    source, target = new_source(tmp_path / "source"), tmp_path / "disk" / "target"
    target.mkdir(parents=True)
    disk = Disk(target, tmp_path / "shadow")
    disk.start()
    killed(source, target, place)
    left = files_of(target)
    assert not any(disk.is_safe(path) for path in left)

    with disk.watching(lambda: None):
        result = omnigraph.clone(str(source), str(target))

    assert result.files_copied < result.files or not result.files
    assert all(disk.is_safe(path) for path in files_of(target) if not path.name.endswith(".lock"))
