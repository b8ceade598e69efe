"""Old versions of the manifests go; no commit does, and no publish is endangered."""

from pathlib import Path

import pytest

from omnigraph.commit.publish import HORIZON_S, HORIZON_S_MIN, publish_lock_file
from omnigraph.commit.trim import VERSIONS_KEPT, TrimmedManifest, manifest_horizon_s, trim_manifests
from omnigraph.core.errors import StorageError
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.identity import MAIN, MAIN_BRANCH
from omnigraph.storage.control.locks import PublishLock
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.manifest_table import ManifestHandle
from tests.engine.branches.steps import ages, insert, names, set_age
from tests.engine.cleanup.steps import ages_at, later, on_disk, shown, update
from tests.support.engine import chain, foreign, manifest_path, reopen
from tests.support.seam import internals, patched


def trim(graph: Graph) -> dict[str, int]:
    """Trim every manifest; return how many versions went, by branch."""
    verbs = internals(graph)
    found = trim_manifests(verbs.parts, verbs.publisher)
    assert [one.error for one in found if one.error is not None] == []
    return {one.branch: one.versions for one in found}


def manifest_versions(graph: Graph, branch: str = MAIN) -> list[int]:
    ref = internals(graph).require_branch(branch).ref
    return on_disk(manifest_path(graph) if ref is None else manifest_path(graph) / "tree" / ref)


@pytest.mark.case("engine", 335)
def test_every_commit_folds_to_its_state_after_a_trim(graph: Graph) -> None:
    commits = update(graph, 20)
    state = internals(graph).state()
    before = {commit.graph_commit_id: state.snapshot_at(commit.manifest_version) for commit in chain(graph)}
    later(graph, HORIZON_S + 60)

    assert trim(graph) == {MAIN: 22 - VERSIONS_KEPT}

    assert manifest_versions(graph) == list(range(13, 23))
    with reopen(graph) as other:
        found = internals(other).state()
        after = {
            commit.graph_commit_id: found.snapshot_at(commit.manifest_version) for commit in chain(other)
        }
        assert after == before
        for number, commit in enumerate(commits):
            assert ages_at(other, commit)["ann"] == 100 + number
        insert(other, "new")
        assert other.verify().is_whole
    assert "new" in names(graph)
    assert trim(graph) == {MAIN: 1}


def test_what_was_replaced_within_the_horizon_stays(graph: Graph) -> None:
    update(graph, 15)
    later(graph, HORIZON_S - 60)

    assert trim(graph) == {MAIN: 0}
    assert len(manifest_versions(graph)) == 17


def test_the_horizon_is_a_setting_with_a_floor(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_MANIFEST_HORIZON", "7200")
    assert manifest_horizon_s() == 7200
    monkeypatch.setenv("OMNIGRAPH_MANIFEST_HORIZON", "10")
    assert manifest_horizon_s() == HORIZON_S

    update(graph, 15)
    verbs = internals(graph)
    (found,) = trim_manifests(verbs.parts, verbs.publisher, horizon_s=1)
    assert found.versions == 0
    later(graph, HORIZON_S_MIN + 60)
    (found,) = trim_manifests(verbs.parts, verbs.publisher, horizon_s=1)
    assert found.versions == 7


@pytest.mark.case("engine", 339)
def test_where_a_branch_begins_stays_on_both_sides(graph: Graph) -> None:
    update(graph, 3)
    graph.create_branch("june")
    begun = manifest_versions(graph)[-1]
    update(graph, 15)
    update(graph, 15, "june")
    before, histories = shown(graph), {name: graph.commits(branch=name) for name in graph.branches()}
    later(graph, HORIZON_S + 60)

    trimmed = trim(graph)

    assert all(trimmed.values())
    assert manifest_versions(graph) == [begun, *manifest_versions(graph)[-VERSIONS_KEPT:]]
    assert len(manifest_versions(graph, "june")) == VERSIONS_KEPT
    with reopen(graph) as other:
        assert shown(other) == before
        assert {name: other.commits(branch=name) for name in other.branches()} == histories
        set_age(other, "bob", 5, "june")
        assert other.merge("june", "main").conflicts == ()
        assert ages(other)["bob"] == 5


@pytest.mark.case("engine", 342)
def test_a_trim_beside_a_publish_is_skipped_and_reported(graph: Graph) -> None:
    update(graph, 15)
    trimmer = foreign(graph)
    later(trimmer, HORIZON_S + 60)
    found: list[TrimmedManifest] = []

    def try_to_trim() -> None:
        verbs = internals(trimmer)
        found.extend(trim_manifests(verbs.parts, verbs.publisher))

    with failpoint("publish.post_open_pre_update", "call", try_to_trim):
        insert(graph, "new")

    assert (found[0].is_busy, found[0].versions) == (True, 0)
    assert len(manifest_versions(graph)) == 18
    with PublishLock(Path(graph.uri) / publish_lock_file(MAIN)):
        result = trimmer.cleanup(100)
    assert result.warnings == ("a writer is publishing on 'main': its manifest waits",)
    assert (result.failed, len(manifest_versions(graph))) == ((), 18)
    assert trim(trimmer) == {MAIN: 8}


@pytest.mark.case("engine", 342)
def test_a_reader_whose_version_was_trimmed_opens_again(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had opened the newest version, slept for more than a day, and reads its rows now."""
    update(graph, 3)
    reader = foreign(graph)
    coordinator = internals(reader).parts.coordinator
    coordinator.forget()
    stale = coordinator.manifest.open_fresh(coordinator.address())
    update(graph, 15)
    coordinator.manifest.compact(coordinator.address())
    update(graph, 12)
    later(graph, HORIZON_S + 60)
    assert trim(graph)[MAIN] > 10
    handles = iter([stale])
    open_fresh = coordinator.manifest.open_fresh

    def slept(_: object, address: TableAddress) -> ManifestHandle:
        return next(handles, None) or open_fresh(address)

    patched(monkeypatch, "omnigraph.storage.tables.manifest_table.ManifestTable.open_fresh", slept)

    assert len(coordinator.state(MAIN_BRANCH).commits) == len(graph.commits())
    assert ages(reader) == ages(graph)


def test_a_trim_that_fails_is_one_branchs_own(graph: Graph) -> None:
    graph.create_branch("june")
    update(graph, 15)
    update(graph, 15, "june")
    later(graph, HORIZON_S + 60)
    before = shown(graph)
    verbs = internals(graph)

    def fail() -> None:
        raise StorageError("the disk is gone", kind="transient")

    with failpoint("trim.pre_remove", "call", fail):
        found = trim_manifests(verbs.parts, verbs.publisher)
    assert [one.error for one in found] == ["the disk is gone"] * 2

    assert all(trim(graph).values())
    assert shown(graph) == before


def test_a_note_about_the_newest_version_is_respected(graph: Graph) -> None:
    """What is noted as acknowledged proves what lies below it: it stays, whatever the clock says."""
    update(graph, 15)
    later(graph, HORIZON_S + 60)
    address = internals(graph).parts.coordinator.address()
    assert address.local_path is not None
    internals(graph).parts.coordinator.manifest.note(address, 5, is_synced=True)

    assert trim(graph) == {MAIN: 4}
    assert manifest_versions(graph)[0] == 5


def test_a_long_manifest_stays_small(graph: Graph) -> None:
    update(graph, 100)
    later(graph, HORIZON_S + 60)
    path = Path(graph.uri) / "__manifest"
    before = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())

    trim(graph)

    after = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    assert after < before / 4
    assert len(graph.commits()) == 102
