"""What others do to the source and to the target while a copy is made."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from omnigraph.core.errors import (
    AlreadyExistsError,
    BranchNotFound,
    CloneUnfinished,
    ConflictError,
    HistoricalVersionReclaimed,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.opening import init
from omnigraph.operations.clone.clone import clone
from omnigraph.operations.clone.journal import JOURNAL
from omnigraph.operations.init import INIT_CLAIM
from omnigraph.operations.verify.verify import verify_place
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.table import TableStore
from tests.engine.clone.steps import INSERT, SCHEMA, persons, shown, shown_at
from tests.support.engine import files, reopen
from tests.support.seam import patched


def once(call: Callable[[], None]) -> Callable[[], None]:
    """Return a call that does something the first time alone."""
    calls = iter([call])

    def first() -> None:
        next(calls, lambda: None)()

    return first


@pytest.mark.case("engine", 525)
def test_branches_are_captured_at_one_moment(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the looks at two branches, main gets a commit, and the other one takes it."""
    target, look = tmp_path / "copy", TableStore.latest_versions

    def go_on() -> None:
        with reopen(source) as graph:
            graph.mutate(INSERT, params={"n": "in between"})
            graph.merge("main", "nested")

    write = once(go_on)

    def disturbed(store: TableStore, addresses: Sequence[TableAddress]) -> list[int]:
        main = look(store, addresses[:1])
        write()
        return main + look(store, addresses[1:])

    patched(monkeypatch, "omnigraph.storage.tables.table.TableStore.latest_versions", disturbed)
    clone(str(source), str(target))

    monkeypatch.undo()
    found = shown_at(target)
    assert found == shown_at(source)
    assert "in between:1" in found["main"][0][1]
    assert "in between:1" in found["nested"][0][1]


@pytest.mark.case("engine", 525)
def test_a_branch_that_is_deleted_meanwhile_is_left_out(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"

    def delete() -> None:
        with reopen(source) as graph:
            graph.delete_branch("nested")

    with failpoint("clone.post_journal_pre_copy", "call", once(delete)):
        result = clone(str(source), str(target))

    assert result.branches == ("main", "review")
    assert shown_at(target) == shown_at(source)
    assert verify_place(str(target)).is_whole


@pytest.mark.case("engine", 525)
def test_a_branch_that_is_made_behind_the_look_brings_nothing_of_its_own(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts from a version of main that is newer than the one captured."""
    target, look, looks = tmp_path / "copy", TableStore.latest_versions, list[list[int]]()
    expected = shown_at(source)

    def disturbed(store: TableStore, addresses: Sequence[TableAddress]) -> list[int]:
        looks.append(seen := look(store, addresses))
        if len(looks) == 2:
            with reopen(source) as graph:
                graph.mutate(INSERT, params={"n": "too late"})
                graph.create_branch("late")
                graph.mutate(INSERT, params={"n": "later still"}, branch="late")
        return seen

    patched(monkeypatch, "omnigraph.storage.tables.table.TableStore.latest_versions", disturbed)
    clone(str(source), str(target))

    monkeypatch.undo()
    assert len(looks) >= 2
    assert shown_at(target) == expected
    assert verify_place(str(target)).is_whole


@pytest.mark.case("engine", 525)
def test_a_branch_that_moves_and_is_deleted_brings_what_it_was_when_captured(
    source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "copy"
    expected = shown_at(source)

    def move_and_delete() -> None:
        with reopen(source) as graph:
            graph.mutate(INSERT, params={"n": "too late"})
            graph.merge("main", "nested")
            graph.delete_branch("nested")

    with failpoint("clone.post_journal_pre_copy", "call", once(move_and_delete)):
        clone(str(source), str(target))

    assert shown_at(target) == {name: rows for name, rows in expected.items() if name != "nested"}
    assert verify_place(str(target)).is_whole


@pytest.mark.case("engine", 525)
def test_a_branch_that_was_asked_for_and_is_deleted_meanwhile_is_told(source: Path, tmp_path: Path) -> None:
    def delete() -> None:
        with reopen(source) as graph:
            graph.delete_branch("nested")

    with (
        failpoint("clone.post_journal_pre_copy", "call", once(delete)),
        pytest.raises(BranchNotFound, match="nested"),
    ):
        clone(str(source), str(tmp_path / "copy"), branches=["nested"])


@pytest.mark.case("engine", 525)
def test_commits_that_come_meanwhile_are_not_in_the_copy(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    expected = shown_at(source)

    def write() -> None:
        with reopen(source) as graph:
            for branch in graph.branches():
                graph.mutate(INSERT, params={"n": "too late"}, branch=branch)

    with failpoint("clone.before_file", "call", once(write)):
        clone(str(source), str(target))

    assert shown_at(target) == expected
    assert verify_place(str(target)).is_whole


@pytest.mark.case("engine", 524)
def test_a_later_run_shows_the_branches_of_its_own_moment(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    with failpoint("clone.post_control_pre_manifest", "raise"), pytest.raises(InjectedFault):
        clone(str(source), str(target))
    with reopen(source) as graph:
        graph.delete_branch("nested")
        graph.mutate(INSERT, params={"n": "since"}, branch="review")
        expected = shown(graph)

    clone(str(source), str(target))

    assert shown_at(target) == expected
    assert verify_place(str(target)).is_whole


@pytest.mark.case("engine", 529)
def test_an_init_that_began_at_the_same_place_keeps_it(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"

    def claim() -> None:
        (target / INIT_CLAIM).write_text("{}", encoding="utf-8")

    with (
        failpoint("clone.post_journal_pre_copy", "call", claim),
        pytest.raises(AlreadyExistsError, match=INIT_CLAIM),
    ):
        clone(str(source), str(target))

    assert files(target).keys() == {INIT_CLAIM}


@pytest.mark.case("engine", 529)
def test_an_init_finds_that_a_copy_has_begun(source: Path, tmp_path: Path) -> None:
    target, refused = tmp_path / "copy", list[bool]()

    def begin() -> None:
        with pytest.raises(CloneUnfinished):
            init(target, SCHEMA)
        refused.append(True)

    with failpoint("clone.post_files_pre_control", "call", begin):
        clone(str(source), str(target))

    assert refused == [True]
    assert not (target / JOURNAL).exists()
    assert shown_at(target) == shown_at(source)


def cleaned(source: Path, *, with_write: bool) -> Callable[[], None]:
    """Return a call that cleans the source up the first time; who comes meanwhile waits for it."""
    lock, is_due = threading.Lock(), [True]

    def clean() -> None:
        with lock:
            if is_due.pop() if is_due else False:
                with reopen(source) as graph:
                    if with_write:
                        graph.mutate(INSERT, params={"n": "n0"})
                    assert graph.cleanup(1).old_versions_removed

    return clean


@pytest.mark.case("engine", 727)
@pytest.mark.parametrize("place", ["clone.before_file", "clone.post_journal_pre_copy"])
@pytest.mark.parametrize("with_write", [False, True], ids=["cleanup", "write and cleanup"])
def test_a_cleanup_beside_a_copy(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, with_write: bool
) -> None:
    """A cleanup alone moves no branch: what it took is left out of the copy, as in the source."""
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    target = tmp_path / "copy"

    with failpoint(place, "call", cleaned(source, with_write=with_write)):
        clone(str(source), str(target))

    with reopen(source) as graph, reopen(target) as copy:
        for branch in graph.branches():
            tables = [each.table("Person", branch=branch).to_pylist() for each in (graph, copy)]
            expected, found = ([row for row in rows if row["name"] != "n0"] for rows in tables)
            assert found == expected, branch  # the write may have come after the capture
        assert copy.verify(deep=True).is_whole
        copy.mutate(INSERT, params={"n": "mine"})
        for commit in copy.commits():
            with suppress(HistoricalVersionReclaimed):
                persons(copy, commit.graph_commit_id)


@pytest.mark.case("engine", 727)
def test_a_copy_beside_cleanups_without_end_says_so_and_goes_on(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    patched(monkeypatch, "omnigraph.operations.clone.clone.ATTEMPTS_MAX", 1)
    target = tmp_path / "copy"

    with (
        failpoint("clone.before_file", "call", cleaned(source, with_write=False)),
        pytest.raises(ConflictError, match="run the same copy again"),
    ):
        clone(str(source), str(target))
    with pytest.raises(CloneUnfinished):
        reopen(target, mode="ro")

    clone(str(source), str(target))
    with reopen(source) as graph, reopen(target) as copy:
        assert copy.table("Person").equals(graph.table("Person"))
    assert verify_place(str(target)).is_whole
