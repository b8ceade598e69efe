"""What nobody names goes when it is old enough, and not before."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import pytest
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from omnigraph.bulk.connect.leftovers import SPOOL, TOKEN
from omnigraph.bulk.load.spool import NOTES
from omnigraph.commit.reclaim import ORPHAN_GRACE_S
from omnigraph.core.errors import HistoricalVersionReclaimed, InvariantViolation
from omnigraph.core.failpoint import EXIT_STATUS, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.branches import mint_ref
from omnigraph.history.identity import MAIN
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.operations.verify.report import FileStatus
from omnigraph.storage.control.locks import wait_for_lock
from omnigraph.storage.tables.handle import ref_file
from omnigraph.storage.tables.task_notes import TaskNotes
from tests.engine.branches.steps import insert, manifest_refs, names, refs
from tests.engine.branches.test_forks import FIRST_WRITE
from tests.engine.cleanup.steps import DAY_S, PERSON, later, row, shown, update, versions
from tests.support.engine import files, pins, reopen, table_path
from tests.support.forked import Forked
from tests.support.seam import internals

GRACE_S = ORPHAN_GRACE_S + 60.0


def an_orphan(graph: Graph) -> Path:
    """Write rows that no version names, as a writer does that is killed before its commit."""
    table = lance.dataset(str(table_path(graph, PERSON)))
    (part,) = write_fragments(table.to_table(), table)
    return table_path(graph, PERSON) / "data" / part.files[0].path


def an_index(graph: Graph) -> Path:
    folder = table_path(graph, PERSON) / "_indices" / "11111111-2222-3333-4444-555555555555"
    folder.mkdir(parents=True)
    (folder / "page_data.lance").write_bytes(b"x")
    return folder / "page_data.lance"


def a_deletion(graph: Graph) -> Path:
    folder = table_path(graph, PERSON) / "_deletions"
    folder.mkdir(exist_ok=True)
    (folder / "0-1-99.arrow").write_bytes(b"x")
    return folder / "0-1-99.arrow"


def a_preview(graph: Graph) -> Path:
    """Make a detached version, which never becomes the newest."""
    table = lance.dataset(str(table_path(graph, PERSON)))
    operation = LanceOperation.Append(write_fragments(table.to_table(), table))
    made = LanceDataset.commit(table, operation, read_version=table.version, detached=True)
    return table_path(graph, PERSON) / "_versions" / f"d{made.version}.manifest"


def an_unfinished_file(graph: Graph) -> Path:
    path = table_path(graph, PERSON) / "data" / "half.lance#1"
    path.write_bytes(b"x")
    return path


def an_unfinished_version(graph: Graph) -> Path:
    path = table_path(graph, PERSON) / "_versions" / ".tmpSJKz8f"  # as the library names it until it is whole
    path.write_bytes(b"x")
    return path


def an_unfinished_control_file(graph: Graph) -> Path:
    path = Path(graph.uri) / "_schema.pg#77"
    path.write_bytes(b"x")
    return path


def an_unknown_table(graph: Graph) -> Path:
    folder = Path(graph.uri) / "nodes" / "00000000000000ff-00000000000000ff"
    shutil.copytree(table_path(graph, PERSON), folder)
    return next((folder / "data").iterdir())


def a_row_of_the_manifest(graph: Graph) -> Path:
    manifest = lance.dataset(f"{graph.uri}/__manifest")
    (part,) = write_fragments(manifest.to_table().slice(0, 1), manifest)
    return Path(graph.uri) / "__manifest" / "data" / part.files[0].path


LITTER: dict[str, Callable[[Graph], Path]] = {
    "data": an_orphan,
    "index": an_index,
    "deletion": a_deletion,
    "preview": a_preview,
    "unfinished": an_unfinished_file,
    "unfinished version": an_unfinished_version,
    "unfinished control file": an_unfinished_control_file,
    "unknown table": an_unknown_table,
    "row of the manifest": a_row_of_the_manifest,
}


@pytest.mark.case("engine", 272)
@pytest.mark.parametrize("kind", LITTER)
def test_litter_goes_after_the_grace_period_and_never_before(graph: Graph, kind: str) -> None:
    update(graph, 2)
    litter = LITTER[kind](graph)
    before = shown(graph)

    later(graph, ORPHAN_GRACE_S - 3600.0)
    graph.cleanup(100)
    assert litter.exists()

    later(graph, 2 * 3600.0)
    foreseen = graph.cleanup(100, dry_run=True)
    assert litter.exists()
    done = graph.cleanup(100)

    assert not litter.exists()
    assert done.failed == ()
    assert foreseen.tables == done.tables
    assert foreseen.leftovers == done.leftovers
    assert shown(graph) == before
    with reopen(graph) as other:
        assert shown(other) == before


@pytest.mark.case("engine", 272)
def test_an_old_version_that_was_begun_is_known(graph: Graph) -> None:
    update(graph, 2)
    litter = an_unfinished_version(graph)
    os.utime(litter, (0, 0))  # older than every version: now the library tells of it, too

    done = graph.cleanup(1)

    assert done.failed == ()
    assert not litter.exists()


@pytest.mark.case("engine", 123)
def test_a_folder_that_an_index_had_to_itself_goes_with_it(graph: Graph) -> None:
    litter = an_index(graph)
    later(graph, GRACE_S)

    graph.cleanup(100)

    assert not litter.parent.exists()


def test_files_of_others_are_nobodys_litter(graph: Graph) -> None:
    kept = [Path(graph.uri) / "notes.txt", table_path(graph, PERSON) / "data" / "README"]
    for path in kept:
        path.write_text("mine")
    later(graph, GRACE_S)

    graph.cleanup(1)

    assert all(path.read_text() == "mine" for path in kept)


def test_what_a_load_has_noted_stays(graph: Graph) -> None:
    """Its notes are there while it lives; here a free token would show that it is dead."""
    noted, other = an_orphan(graph), an_orphan(graph)
    folder = f"{SPOOL}{internals(graph).parts.new_id()}"
    notes = TaskNotes(graph.uri, f"{folder}/{NOTES}")
    notes.begin()
    notes.note([str(noted)])
    token = Path(graph.uri) / folder.replace(SPOOL, TOKEN)
    lock = wait_for_lock(token, 1)
    assert lock is not None
    older = internals(graph).parts.clock() / 1e6 - GRACE_S
    for path in (noted, other):
        os.utime(path, (older, older))

    graph.cleanup(100)
    assert (noted.exists(), other.exists()) == (True, False)

    lock.release()
    graph.cleanup(100)
    assert not noted.exists()
    assert not token.exists()


def test_nothing_loose_goes_while_a_load_lives_that_is_itself_old(graph: Graph) -> None:
    litter = an_orphan(graph)
    token = Path(graph.uri) / f"{TOKEN}{internals(graph).parts.new_id()}"
    lock = wait_for_lock(token, 1)
    assert lock is not None
    later(graph, GRACE_S)

    graph.cleanup(100)
    assert litter.exists()

    lock.release(remove=True)
    graph.cleanup(100)
    assert not litter.exists()


def test_a_note_that_names_what_no_task_writes_stops_everything(graph: Graph) -> None:
    update(graph, 3)
    notes = TaskNotes(graph.uri, f"{SPOOL}{internals(graph).parts.new_id()}/{NOTES}")
    notes.begin()
    notes.note([f"{graph.uri}/_schema.pg"])
    before = files(Path(graph.uri))

    with pytest.raises(InvariantViolation, match="names what no task writes"):
        graph.cleanup(1)

    assert files(Path(graph.uri)) == before


@pytest.mark.case("engine", 270)
@pytest.mark.case("engine", 300)
def test_leftover_forks_of_a_live_branch_go_when_they_are_old(graph: Graph) -> None:
    graph.create_branch("june")
    with Forked(
        FIRST_WRITE, graph.uri, "killed", OMNIGRAPH_FAILPOINTS="fork.post_create_pre_stage=exit"
    ) as script:
        assert script.wait() == EXIT_STATUS
    (leftover,) = refs(graph, PERSON)
    insert(graph, "new", "june")
    (shown_ref,) = refs(graph, PERSON) - {leftover}

    graph.cleanup(100)
    assert refs(graph, PERSON) == {leftover, shown_ref}

    later(graph, GRACE_S)
    result = graph.cleanup(100)
    assert refs(graph, PERSON) == {shown_ref}
    assert row(result).bytes_removed > 0
    assert names(graph, "june") == ["ann", "bob", "eve", "new"]


@pytest.mark.case("engine", 270)
@pytest.mark.case("engine", 224)
def test_refs_of_a_deleted_branch_go_children_before_parents(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "new", "june")
    graph.create_branch("july", "june")
    insert(graph, "newer", "july")
    with failpoint("branch_delete.post_control_pre_refs", "raise"):
        for name in ("july", "june"):
            with pytest.raises(Exception, match="fault injected"):
                graph.delete_branch(name)
    assert len(manifest_refs(graph)) == 2
    left = refs(graph, PERSON)
    assert len(left) == 2

    graph.cleanup(100)
    assert refs(graph, PERSON) == left

    later(graph, GRACE_S)
    assert graph.cleanup(100).failed == ()
    assert (manifest_refs(graph), refs(graph, PERSON)) == (set(), set())
    graph.create_branch("june")
    insert(graph, "again", "june")
    assert names(graph, "june") == ["again", "ann", "bob", "eve"]


@pytest.mark.case("engine", 270)
def test_a_leftover_that_a_live_branch_starts_from_stays(graph: Graph) -> None:
    """The library would refuse to drop it; that is no failure."""
    parts = internals(graph).parts
    parent, child = (mint_ref(name, parts.new_id()) for name in ("parent", "child"))
    entry = graph.snapshot().entry(PERSON)
    parts.refs.create(parts.address(entry), entry.version, parent)
    parts.refs.create(parts.address_of(entry.location, parent), entry.version, child)
    later(graph, GRACE_S)
    kept = mint_ref("kept", "01ARZ3NDEKTSV4RRFFQ69G5FAV".replace("01", "7Z", 1))
    parts.refs.create(parts.address_of(entry.location, child), entry.version, kept)

    result = graph.cleanup(100)

    assert result.failed == ()
    assert refs(graph, PERSON) == {parent, child, kept}


@pytest.mark.case("engine", 270)
def test_a_fork_that_cannot_be_looked_at_is_its_tables_own_failure(graph: Graph) -> None:
    update(graph, 2)
    with failpoint("cleanup.reconcile_fork", "raise:once"):
        result = graph.cleanup(1)

    assert len(result.failed) == 1
    assert graph.cleanup(1).failed == ()


def test_a_folder_of_a_ref_that_is_not_there_goes(graph: Graph) -> None:
    parts = internals(graph).parts
    ref = mint_ref("june", parts.new_id())
    entry = graph.snapshot().entry(PERSON)
    parts.refs.create(parts.address(entry), entry.version, ref)
    (table_path(graph, PERSON) / "_refs" / "branches" / f"{ref}.json").unlink()
    folder = table_path(graph, PERSON) / "tree" / ref

    graph.cleanup(100)
    assert folder.exists()

    later(graph, GRACE_S)
    graph.cleanup(100)
    assert not folder.exists()


@pytest.mark.case("engine", 374)
def test_a_deleted_branch_in_which_others_meet_stays(graph: Graph) -> None:
    graph.create_branch("hotfix")
    insert(graph, "fix", "hotfix")
    graph.create_branch("other")
    graph.merge("hotfix", "main")
    graph.merge("hotfix", "other")
    insert(graph, "mine", "other")
    graph.delete_branch("hotfix")
    left = manifest_refs(graph)
    later(graph, GRACE_S)

    result = graph.cleanup(1)

    assert (result.failed, manifest_refs(graph)) == ((), left)
    graph.mutate('query q() { delete Person where name = "fix" }')
    assert graph.merge("other").conflicts == ()
    assert names(graph) == ["ann", "bob", "eve", "mine"]


def test_inert_datasets_of_old_builds_go(graph: Graph) -> None:
    legacy = [Path(graph.uri) / name for name in ("_graph_runs.lance", "_graph_run_actors.lance")]
    for folder in legacy:
        shutil.copytree(table_path(graph, PERSON), folder)

    foreseen = graph.cleanup(100, dry_run=True)
    assert all(folder.exists() for folder in legacy)
    assert (
        graph.cleanup(100).leftovers == foreseen.leftovers == ("_graph_runs.lance", "_graph_run_actors.lance")
    )

    assert not any(folder.exists() for folder in legacy)


def test_old_quarantine_goes_and_new_quarantine_stays(graph: Graph) -> None:
    parts = internals(graph).parts
    folder = Path(graph.uri) / "__quarantine" / parts.new_id()
    folder.mkdir(parents=True)
    (folder / "hollow.manifest").write_bytes(b"")

    graph.cleanup(100)
    assert folder.exists()

    later(graph, GRACE_S)
    graph.cleanup(100)
    assert not folder.exists()


def test_lock_files_without_a_sidecar_go(graph: Graph) -> None:
    folder = Path(graph.uri) / "__recovery"
    folder.mkdir(exist_ok=True)
    (folder / "01ARZ3NDEKTSV4RRFFQ69G5FAV.lock").write_bytes(b"")

    graph.cleanup(100)

    assert list(folder.iterdir()) == []


def drop(graph: Graph, branch: str = MAIN) -> None:
    """Drop the type of persons from a branch, with the edges between them."""
    lines = graph.schema(branch=branch).splitlines()
    graph.apply_schema("\n".join(line for line in lines if "Person" not in line), branch=branch, index=False)


@pytest.mark.case("engine", 507)
@pytest.mark.parametrize(("keep", "older_than"), [(1, None), (None, DAY_S)])
def test_a_dropped_table_goes_with_its_last_version(
    graph: Graph, keep: int | None, older_than: float | None
) -> None:
    update(graph, 3)
    commit = graph.commits(limit=1)[0]
    folder = table_path(graph, PERSON)
    drop(graph)
    parts, past = internals(graph).parts, internals(graph).state().snapshot_at(commit.manifest_version)

    graph.cleanup(keep=5, older_than=DAY_S)
    assert parts.open(past.entry(PERSON)).row_count == 3

    later(graph, 2 * DAY_S)
    graph.cleanup(keep, older_than)
    assert not folder.exists()
    with pytest.raises(HistoricalVersionReclaimed):
        parts.open(past.entry(PERSON))
    assert graph.verify().is_whole


@pytest.mark.case("engine", 507)
def test_a_dropped_table_that_a_branch_still_has_stays(graph: Graph) -> None:
    graph.create_branch("june")
    folder = table_path(graph, PERSON)
    drop(graph)
    later(graph, 30 * DAY_S)

    graph.cleanup(1)

    assert folder.exists()
    assert names(graph, "june") == ["ann", "bob", "eve"]


@pytest.mark.case("engine", 507)
def test_a_dropped_table_keeps_as_many_versions_as_asked_for(graph: Graph) -> None:
    update(graph, 5)
    everyone, folder = versions(graph), table_path(graph, PERSON)
    assert everyone[-1] == pins(graph)[PERSON]
    drop(graph)

    graph.cleanup(3)

    assert sorted(int(path.stem) for path in (folder / "_versions").glob("[0-9]*.manifest")) == sorted(
        2**64 - 1 - version for version in everyone[-2:]
    )


@pytest.mark.case("engine", 654)
@pytest.mark.parametrize("content", [None, b'{"parent_'], ids=["gone", "cut"])
def test_nothing_goes_from_a_table_that_has_lost_the_listing_of_a_fork(
    graph: Graph, content: bytes | None
) -> None:
    graph.create_branch("june")
    insert(graph, "jon", "june")
    update(graph, 4)
    entry = graph.snapshot("june").entry(PERSON)
    assert entry.owner is not None
    listing = Path(graph.uri) / ref_file(entry.location, entry.owner)
    whole, expected, before = listing.read_bytes(), shown(graph), versions(graph)
    listing.unlink() if content is None else listing.write_bytes(content)

    with reopen(graph, upkeep=False) as opened:
        found = [finding.where for finding in opened.verify().findings]
        result = opened.cleanup(keep=1)
        assert shown(opened) == expected

    assert found == [ref_file(entry.location, entry.owner)]
    assert [failed.table_key for failed in result.failed] == [PERSON]
    assert versions(graph) == before
    listing.write_bytes(whole)
    with reopen(graph, upkeep=False) as opened:
        assert opened.cleanup(keep=1).failed == ()
        assert shown(opened) == expected
        assert opened.verify(deep=True).is_whole


@pytest.mark.case("engine", 654)
def test_a_cut_listing_that_no_commit_recorded_is_found(graph: Graph) -> None:
    graph.create_branch("june")
    (ref,) = manifest_refs(graph)
    listing = Path(graph.uri) / ref_file(MANIFEST_DIR, ref)
    listing.write_bytes(listing.read_bytes()[:8])

    (found,) = graph.verify().damaged

    assert (found.path, found.status) == (ref_file(MANIFEST_DIR, ref), FileStatus.CHECKSUM)


@pytest.mark.case("engine", 655)
def test_verify_does_not_miss_the_listing_of_a_fork_that_went(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "jon", "june")
    entry = graph.snapshot("june").entry(PERSON)
    assert entry.owner is not None
    graph.merge("june", "main")
    graph.delete_branch("june")
    later(graph, GRACE_S)
    graph.cleanup(keep=1)

    assert not (Path(graph.uri) / ref_file(entry.location, entry.owner)).exists()
    assert graph.verify(deep=True).findings == ()


@pytest.mark.case("engine", 655)
def test_verify_does_not_miss_the_listing_of_a_fork_that_went_with_its_type(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "jon", "june")  # june's commit records the listing, and june lives on
    entry = graph.snapshot("june").entry(PERSON)
    assert entry.owner is not None
    drop(graph, "june")
    graph.merge("june", "main")
    graph.cleanup(keep=1)

    assert not (Path(graph.uri) / ref_file(entry.location, entry.owner)).exists()
    assert graph.verify(deep=True).findings == ()
