"""Which versions of a table go, and which stay."""

import os
import time
from datetime import timedelta
from pathlib import Path

import lance
import pytest

from omnigraph.commit.schema_lock import schema_lock
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import (
    BadRequest,
    ChangeFeedGap,
    DriftNeedsRepair,
    HistoricalVersionReclaimed,
    OmnigraphError,
    SchemaApplyInProgress,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.operations.progress import TableProgress
from omnigraph.storage.files.version_file import version_file_name
from tests.engine.branches.steps import ages, insert, refs, set_age
from tests.engine.cleanup.steps import DAY_S, PERSON, ages_at, later, on_disk, row, shown, update, versions
from tests.support.engine import chain, files, pins, reopen, table_path
from tests.support.seam import internals


@pytest.mark.case("engine", 266)
def test_cleanup_needs_to_know_what_to_keep(graph: Graph) -> None:
    before = files(Path(graph.uri))

    with pytest.raises(BadRequest, match="give keep, older_than, or both"):
        graph.cleanup()

    assert files(Path(graph.uri)) == before


@pytest.mark.parametrize("keep", [0, -1, 1.5, True, "3"])
def test_keep_is_a_number_of_versions(graph: Graph, keep: int) -> None:
    with pytest.raises(BadRequest, match="keep must be a whole number"):
        graph.cleanup(keep)


@pytest.mark.parametrize("age", [-1, float("nan"), float("inf"), True, "7d", timedelta(seconds=-1)])
def test_an_age_is_a_length_of_time(graph: Graph, age: float) -> None:
    with pytest.raises(BadRequest, match="older_than must be a timedelta or a number of seconds"):
        graph.cleanup(older_than=age)


@pytest.mark.case("engine", 266)
def test_keep_one_leaves_the_newest_version_alone(graph: Graph) -> None:
    commits = update(graph, 5)
    before = shown(graph)

    result = graph.cleanup(1)

    assert versions(graph) == [pins(graph)[PERSON]]
    assert row(result).old_versions_removed == 6
    assert shown(graph) == before
    with pytest.raises(HistoricalVersionReclaimed, match="was cleaned up"):
        ages_at(graph, commits[0])
    assert ages_at(graph, commits[-1])["ann"] == 104
    assert graph.verify().is_whole


@pytest.mark.case("engine", 266)
def test_keep_more_than_there_are_leaves_all(graph: Graph) -> None:
    update(graph, 3)
    before = versions(graph)

    result = graph.cleanup(100)

    assert versions(graph) == before
    assert (result.old_versions_removed, result.bytes_removed) == (0, 0)


@pytest.mark.case("engine", 266)
@pytest.mark.parametrize("age", [0, timedelta(0)])
def test_older_than_nothing_leaves_head(graph: Graph, age: float) -> None:
    update(graph, 3)

    graph.cleanup(older_than=age)

    assert versions(graph) == [pins(graph)[PERSON]]


@pytest.mark.case("engine", 500)
def test_a_version_ages_from_the_moment_it_was_replaced(graph: Graph) -> None:
    """It was made long ago; until a moment ago it was what everybody read."""
    first = versions(graph)
    long_ago = time.time() - 30 * DAY_S
    for path in (table_path(graph, PERSON) / "_versions").glob("*.manifest"):
        os.utime(path, (long_ago, long_ago))
    before = graph.commits(limit=1)[0].graph_commit_id
    (commit,) = update(graph, 1)

    graph.cleanup(older_than=timedelta(days=7))
    assert versions(graph) == [first[-1], first[-1] + 1]
    assert ages_at(graph, before)["ann"] == 30

    later(graph, 8 * DAY_S)
    graph.cleanup(older_than=timedelta(days=7))
    assert versions(graph) == [first[-1] + 1]
    assert ages_at(graph, commit)["ann"] == 100


@pytest.mark.case("engine", 500)
def test_a_version_must_be_beyond_both_limits(graph: Graph) -> None:
    update(graph, 4)
    everyone = versions(graph)

    graph.cleanup(2, timedelta(days=1))
    assert versions(graph) == everyone

    later(graph, 2 * DAY_S)
    graph.cleanup(2, timedelta(days=1))
    assert versions(graph) == everyone[-2:]


@pytest.mark.case("engine", 501)
def test_what_was_just_replaced_stays_for_readers_elsewhere(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "600")
    update(graph, 3)
    everyone = versions(graph)

    graph.cleanup(1)
    assert versions(graph) == everyone

    later(graph, 601)
    graph.cleanup(1)
    assert versions(graph) == everyone[-1:]


@pytest.mark.case("engine", 267)
def test_what_a_lazy_branch_inherits_stays_with_all_that_is_newer(graph: Graph) -> None:
    first = pins(graph)[PERSON]
    graph.create_branch("june")
    update(graph, 2)
    graph.create_branch("july")
    update(graph, 2)
    before, everyone = shown(graph), versions(graph)

    graph.cleanup(1)
    assert versions(graph) == [version for version in everyone if version >= first]
    assert shown(graph) == before

    graph.delete_branch("june")
    graph.cleanup(1)
    assert versions(graph) == [first + 2, first + 3, first + 4]
    assert shown(graph) == {name: rows for name, rows in before.items() if name != "june"}


def test_the_start_of_a_fork_stays(graph: Graph) -> None:
    start = pins(graph)[PERSON]
    graph.create_branch("june")
    insert(graph, "new", "june")
    update(graph, 3)
    before = shown(graph)

    graph.cleanup(1)

    assert versions(graph) == [start, start + 3]
    assert shown(graph) == before


def test_a_branch_has_its_own_versions_cleaned(graph: Graph) -> None:
    graph.create_branch("june")
    update(graph, 4, "june")
    before = shown(graph)

    result = graph.cleanup(1)

    assert len(versions(graph, branch="june")) == 1
    assert row(result).old_versions_removed > 0
    assert shown(graph) == before
    set_age(graph, "bob", 7, "june")
    assert ages(graph, "june")["bob"] == 7


@pytest.mark.case("engine", 502)
def test_where_two_branches_will_meet_stays(graph: Graph) -> None:
    """The last merge is where the next one begins; that is a past version of the branch."""
    graph.create_branch("june")
    insert(graph, "first", "june")
    graph.merge("june")
    insert(graph, "second", "june")
    set_age(graph, "ann", 7, "june")
    set_age(graph, "bob", 8)

    graph.cleanup(1)
    merged = graph.merge("june")

    assert (merged.conflicts, ages(graph)["ann"], ages(graph)["bob"]) == ((), 7, 8)
    assert {"first", "second"} <= ages(graph).keys()


def test_a_version_with_a_tag_stays_whoever_made_it(graph: Graph) -> None:
    table = lance.dataset(str(table_path(graph, PERSON)))
    table.tags.create("audit", table.version)
    update(graph, 3)

    graph.cleanup(1)

    assert versions(graph) == [table.version, pins(graph)[PERSON]]
    tagged = lance.dataset(str(table_path(graph, PERSON)), version="audit")
    assert tagged.count_rows() == 3


@pytest.mark.case("engine", 268)
@pytest.mark.parametrize("place", ["manifest", "table"])
def test_a_branch_that_cannot_be_read_stops_everything(graph: Graph, place: str) -> None:
    graph.create_branch("june")
    insert(graph, "new", "june")
    update(graph, 3)
    ref = internals(graph).parts.branches.require("june").ref
    entry = graph.snapshot("june").entry(PERSON)
    lost = (
        Path(graph.uri) / "__manifest" / "tree" / ref / "_versions"
        if place == "manifest"
        else Path(graph.uri) / entry.location / "tree" / str(entry.owner) / version_file_name(entry.version)
    )
    lost.rename(lost.with_name("lost"))
    before = files(Path(graph.uri))

    with reopen(graph, upkeep=False) as other, pytest.raises((OmnigraphError, GraphDamaged)):
        other.cleanup(1)

    changed = {path for path, text in files(Path(graph.uri)).items() if before.get(path) != text}
    assert before.keys() <= files(Path(graph.uri)).keys()
    assert {path for path in changed if "_acknowledged" not in path} == set()


@pytest.mark.case("engine", 268)
def test_a_failing_look_at_a_branch_stops_everything(graph: Graph) -> None:
    graph.create_branch("june")
    update(graph, 3)
    before = files(Path(graph.uri))

    with failpoint("cleanup.resolve_branch_snapshot", "skip:1,raise"), pytest.raises(InjectedFault):
        graph.cleanup(1)

    assert files(Path(graph.uri)) == before


@pytest.mark.case("engine", 269)
def test_drift_on_main_is_refused(graph: Graph) -> None:
    update(graph, 3)
    table = lance.dataset(str(table_path(graph, PERSON)))
    table.update_config({"foreign": "yes"})
    before = files(Path(graph.uri))

    with pytest.raises(DriftNeedsRepair, match="run omnigraph repair"):
        graph.cleanup(1)

    assert files(Path(graph.uri)) == before


def test_a_schema_change_is_not_disturbed(graph: Graph) -> None:
    update(graph, 3)
    with schema_lock(internals(graph).parts, exclusive=False):
        before = files(Path(graph.uri))

        with pytest.raises(SchemaApplyInProgress, match="cleanup is unavailable"):
            graph.cleanup(1)

        assert files(Path(graph.uri)) == before


@pytest.mark.case("engine", 271)
def test_one_table_that_fails_is_its_own_row(graph: Graph) -> None:
    update(graph, 3)
    for number in range(3):
        graph.mutate(f'query q() {{ insert Company {{ name: "c{number}" }} }}')
    before = shown(graph)
    whole = {key: versions(graph, key) for key in pins(graph)}

    with failpoint("cleanup.table_gc", "raise:once"):
        result = graph.cleanup(1)

    (failed,) = result.failed
    assert "fault injected" in str(failed.error)
    assert versions(graph, failed.table_key) == whole[failed.table_key]
    assert all(len(versions(graph, key)) == 1 for key in whole.keys() - {failed.table_key})
    assert shown(graph) == before

    again = graph.cleanup(1)
    assert again.failed == ()
    assert all(len(versions(graph, key)) == 1 for key in whole)
    assert shown(graph) == before


@pytest.mark.case("engine", 503)
def test_every_commit_stays_in_the_history_with_its_actor(graph: Graph) -> None:
    for number in range(5):
        source = f'query q() {{ insert Person {{ name: "n{number}" }} }}'
        graph.mutate(source, actor=f"a{number}", message=f"m{number}")
    before = chain(graph)
    later(graph, 2 * DAY_S)

    graph.cleanup(1)

    with reopen(graph, upkeep=False) as other:
        assert chain(other) == chain(graph) == before
        states = internals(other).state()
        for commit in before:
            assert states.snapshot_at(commit.manifest_version).entries.keys() == pins(graph).keys()


def test_a_dry_run_counts_what_goes_and_removes_nothing(graph: Graph) -> None:
    update(graph, 5)
    later(graph, 2 * DAY_S)
    before = files(Path(graph.uri))

    with reopen(graph, mode="ro") as reader:
        object.__setattr__(internals(reader).parts, "clock", internals(graph).parts.clock)
        foreseen = reader.cleanup(1, dry_run=True)
    foreseen_here = graph.cleanup(1, dry_run=True)

    assert foreseen == foreseen_here
    assert files(Path(graph.uri)) == before
    done = graph.cleanup(1)
    gone = before.keys() - files(Path(graph.uri)).keys()
    assert foreseen.is_dry_run
    assert done.tables == foreseen.tables
    assert sum(len(before[path]) for path in gone) == done.bytes_removed
    assert len(gone) == sum(found.files_removed for found in done.tables)


def test_few_versions_are_warned_of(graph: Graph) -> None:
    assert "keep=2 leaves fewer versions" in graph.cleanup(2).warnings[0]
    assert graph.cleanup(3).warnings == ()


@pytest.mark.case("surfaces", 674)
def test_progress_names_every_table(graph: Graph) -> None:
    update(graph, 3)
    seen: list[TableProgress] = []

    graph.cleanup(1, progress=seen.append)

    assert {found.table_key for found in seen} == pins(graph).keys()
    done = [found for found in seen if found.is_done]
    assert [(found.tables_done, found.tables_total) for found in done] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    begun = [found.table_key for found in seen if not found.is_done]
    assert set(begun) == pins(graph).keys()
    assert len(begun) > 4, "parts of a table are told, too"
    assert {(found.operation, found.unit) for found in seen} == {("cleanup", "files")}
    assert (done[-1].remaining_s, done[-1].units_done) == (0.0, done[-1].units_total)
    assert seen[0].remaining_s is None


@pytest.mark.case("engine", 280)
def test_an_old_cursor_meets_a_gap_after_a_cleanup(graph: Graph) -> None:
    cursor = graph.poll_changes().cursor
    first, second = update(graph, 2)

    graph.cleanup(1)

    with pytest.raises(ChangeFeedGap) as raised:
        graph.poll_changes(cursor=cursor)
    assert raised.value.first_unreadable_commit_id == first
    with pytest.raises(HistoricalVersionReclaimed):
        list(graph.commit_changes(second))
    baseline = graph.baseline()
    assert len(list(baseline)) == 6
    assert graph.poll_changes(cursor=baseline.resume_cursor).caught_up


def test_what_a_cleanup_did_not_remove_is_still_missed(graph: Graph) -> None:
    """A version that was lost, above those that a cleanup removed, is damage as before."""
    commits = update(graph, 5)
    graph.cleanup(3)
    state = internals(graph).state()
    found = state.commits.find(commits[-2])
    assert found is not None
    entry = state.snapshot_at(found.manifest_version).entry(PERSON)
    (table_path(graph, PERSON) / version_file_name(entry.version)).unlink()

    report = graph.verify()

    assert [file.path for file in report.damaged] == [f"{entry.location}/{version_file_name(entry.version)}"]


def test_a_stale_hint_keeps_what_follows_it(graph: Graph) -> None:
    """Whoever looks for the newest version goes on from the hint, one number after the other."""
    update(graph, 5)
    newest = pins(graph)[PERSON]
    hint = table_path(graph, PERSON) / "_versions" / "latest_version_hint.json"
    hint.write_text(hint.read_text().replace(str(newest), str(newest - 2)))

    graph.cleanup(1)

    assert versions(graph) == [newest - 2, newest - 1, newest]


def test_versions_go_before_the_files_that_only_they_name(graph: Graph) -> None:
    update(graph, 5)
    before = shown(graph)

    with failpoint("cleanup.post_versions_pre_files", "raise"):
        result = graph.cleanup(1)

    assert row(result).error is not None
    assert versions(graph) == [pins(graph)[PERSON]]
    assert shown(graph) == before
    assert graph.verify().is_whole
    left = len(list(table_path(graph, PERSON).rglob("*.lance")))
    later(graph, 8 * DAY_S)
    assert graph.cleanup(1).failed == ()
    assert len(list(table_path(graph, PERSON).rglob("*.lance"))) < left
    assert shown(graph) == before


def test_a_fork_of_a_live_branch_that_it_no_longer_shows_keeps_its_newest_version(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "new", "june")
    (ref,) = refs(graph, PERSON)
    later(graph, 8 * DAY_S)

    graph.cleanup(1)

    assert refs(graph, PERSON) == {ref}
    assert len(on_disk(table_path(graph, PERSON) / "tree" / ref)) == 1
