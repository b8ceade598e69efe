"""A copy of a graph holds what was published and chosen, and shares nothing with its source."""

from pathlib import Path
from typing import Any

import pytest

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import (
    AlreadyExistsError,
    AlreadyInitialized,
    BadRequest,
    BranchNotFound,
    CloneUnfinished,
    CommitNotFound,
    GraphNotFound,
    HistoricalVersionReclaimed,
    RecoveryRequired,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.graph.opening import open as open_graph
from omnigraph.operations.clone.clone import clone
from omnigraph.operations.clone.journal import JOURNAL
from omnigraph.operations.verify.verify import verify_place
from omnigraph.storage.control.probe import PROBE
from tests.engine.clone.steps import DELETE, INSERT, SCHEMA, UPDATE, history, persons, shown, shown_at
from tests.support.engine import assert_settled, files, new_graph, reopen
from tests.support.older_graphs import write_older_graph


@pytest.mark.case("engine", 521)
def test_a_copy_shows_all_that_its_source_shows(source: Path, tmp_path: Path) -> None:
    before, target = files(source), tmp_path / "copy"

    result = clone(str(source), str(target))

    assert files(source) == before
    assert shown_at(target) == shown_at(source)
    assert result.branches == ("main", "nested", "review")
    assert (result.files_copied, result.bytes_copied) == (result.files, result.bytes)
    copied = files(target)
    assert {path for path in copied if before.get(path) != copied[path]} <= {
        "__copied.json",
        "__manifest/_acknowledged",
        *(path for path in copied if path.endswith("/_acknowledged")),
    }
    report = verify_place(str(target))
    assert report.is_whole
    assert report.counts["ok"] == len(report.files)


@pytest.mark.case("engine", 521)
def test_a_copy_and_its_source_go_their_own_ways(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    clone(str(source), str(target))
    with reopen(source) as graph:
        expected = shown(graph)

    with reopen(target) as graph:
        for branch in graph.branches():
            graph.mutate(UPDATE, params={"n": "p5", "a": 55}, branch=branch)
            graph.mutate(DELETE, params={"n": "p6"}, branch=branch)
        graph.merge("nested", "review")
        graph.merge("review", "main")
        graph.delete_branch("nested")
        assert_settled(graph)
        assert shown_at(source) == expected
    with reopen(source) as graph:
        graph.mutate(INSERT, params={"n": "only here"}, branch="nested")

    assert verify_place(str(source)).is_whole
    assert verify_place(str(target)).is_whole
    again = tmp_path / "again"
    clone(str(target), str(again))
    assert shown_at(again) == shown_at(target)


@pytest.mark.case("engine", 521)
def test_what_a_writer_left_unfinished_does_not_travel(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    with reopen(source) as graph:
        expected = shown(graph)
        with failpoint("write.post_finalize_pre_publisher", "raise"), pytest.raises(RecoveryRequired):
            graph.mutate(INSERT, params={"n": "half"}, branch="review")
    assert list(source.glob("__recovery/*.json"))

    clone(str(source), str(target))

    assert not list(target.glob("__recovery/*"))
    assert shown_at(target) == expected
    with reopen(target) as graph:
        graph.mutate(INSERT, params={"n": "half"}, branch="review")
        assert_settled(graph)


@pytest.mark.case("engine", 521)
def test_branches_that_meet_in_a_deleted_one_still_do_in_a_copy(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "copy"
    with new_graph(source, SCHEMA) as graph:
        for name in ("middle", "one", "other"):
            graph.create_branch(name)
        graph.mutate(INSERT, params={"n": "common"}, branch="middle")
        graph.mutate(INSERT, params={"n": "1"}, branch="one")
        graph.mutate(INSERT, params={"n": "2"}, branch="other")
        graph.merge("middle", "one")
        graph.merge("middle", "other")
        graph.delete_branch("middle")

    clone(str(source), str(target))

    with reopen(target) as graph:
        graph.mutate(UPDATE, params={"n": "common", "a": 7}, branch="one")
        graph.merge("one", "other")
        ages = {row["name"]: row["age"] for row in graph.table("Person", branch="other").to_pylist()}
        assert ages == {"common": 7, "1": 1, "2": 1}
        assert graph.branches() == ["main", "one", "other"]
    assert verify_place(str(target)).is_whole


@pytest.mark.case("engine", 522)
def test_chosen_branches_travel_with_main_and_with_what_they_share(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    expected = shown_at(source)

    result = clone(str(source), str(target), branches=["nested"])

    assert result.branches == ("main", "nested")
    assert shown_at(target) == {name: expected[name] for name in ("main", "nested")}
    with reopen(target) as graph:
        graph.mutate(INSERT, params={"n": "more"}, branch="nested")
        graph.merge("nested", "main")
        assert_settled(graph)
    assert verify_place(str(target)).is_whole
    with pytest.raises(BranchNotFound):
        clone(str(source), str(tmp_path / "none"), branches=["gone"])
    assert not (tmp_path / "none").exists()


@pytest.mark.case("engine", 522)
def test_main_alone_is_less_to_copy(source: Path, tmp_path: Path) -> None:
    whole = clone(str(source), str(tmp_path / "whole"))

    result = clone(str(source), str(tmp_path / "copy"), branches=[])

    assert result.branches == ("main",)
    assert result.bytes < whole.bytes
    assert not list((tmp_path / "copy").glob("**/tree/*"))


@pytest.mark.case("engine", 522)
def test_a_copy_may_end_at_a_commit(source: Path, tmp_path: Path) -> None:
    with reopen(source) as graph:
        past = history(graph, "main")
    for number, (commit, _) in enumerate(past):
        target = tmp_path / f"copy-{number}"

        result = clone(str(source), str(target), at=commit)

        assert (result.head, result.branches) == (commit, ("main",))
        with reopen(target) as graph:
            assert history(graph, "main") == past[number:]
            for newer, _ in past[:number]:
                with pytest.raises(CommitNotFound):
                    persons(graph, newer)
            graph.mutate(INSERT, params={"n": "next"})
            graph.create_branch("further")
            graph.mutate(INSERT, params={"n": "next but one"}, branch="further")
            graph.merge("further", "main")
            assert history(graph, "main")[2:] == past[number:]
            assert_settled(graph)
        assert verify_place(str(target)).is_whole
    with pytest.raises(CommitNotFound):
        clone(str(source), str(tmp_path / "none"), at="01M7KV418F8X5EDM08WMEW37T2")


@pytest.mark.case("engine", 522)
@pytest.mark.parametrize("depth", [1, 2])
def test_a_shallow_copy_lists_every_commit_and_reads_the_newest(
    source: Path, tmp_path: Path, depth: int
) -> None:
    target, again = tmp_path / "copy", tmp_path / "again"
    expected = shown_at(source)
    whole = clone(str(source), str(tmp_path / "whole"))

    result = clone(str(source), str(target), depth=depth)
    clone(str(target), str(again))

    assert result.bytes < whole.bytes
    assert result.unreadable == {name: len(past) - depth for name, past in expected.items()}
    for place in (target, again):
        assert verify_place(str(place)).is_whole
        with reopen(place) as graph:
            for branch, past in expected.items():
                listed = [commit.graph_commit_id for commit in graph.commits(branch=branch)]
                assert listed == [commit for commit, _ in past]
                assert [(commit, persons(graph, commit)) for commit in listed[:depth]] == past[:depth]
            oldest = expected["nested"][-3][0]  # the first rows, which later commits have changed
            with pytest.raises(HistoricalVersionReclaimed):
                persons(graph, oldest)
            for branch in ("nested", "review"):
                graph.mutate(UPDATE, params={"n": "p7", "a": 77}, branch=branch)
            graph.merge("review", "main")
            assert_settled(graph)
        assert verify_place(str(place)).is_whole


@pytest.mark.case("engine", 522)
def test_a_shallow_copy_is_read_and_written_with_every_checksum_compared(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    target = tmp_path / "copy"
    expected = shown_at(source)
    clone(str(source), str(target), branches=["nested"], depth=1)
    monkeypatch.setenv("OMNIGRAPH_VERIFY", "checksums")

    with reopen(target) as graph:
        for branch in graph.branches():
            assert persons(graph, expected[branch][0][0]) == expected[branch][0][1]
            graph.mutate(INSERT, params={"n": "more"}, branch=branch)
        with pytest.raises(HistoricalVersionReclaimed):
            persons(graph, expected["nested"][-3][0])

    assert not caplog.records
    report = verify_place(str(target))
    assert report.is_whole
    unknown = {file.path for file in report.files if file.status.value == "not_recorded"}
    assert all("/tree/review-" in path for path in unknown), (
        "only what a branch that was left behind recorded"
    )


@pytest.mark.case("engine", 522)
def test_a_past_that_the_source_no_longer_has_is_listed(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    expected = shown_at(source)
    victim = max(
        source.glob("nodes/*/_versions/*.manifest"), key=lambda path: path.name
    )  # of the first commit
    victim.unlink()

    result = clone(str(source), str(target))

    assert result.unreadable == {"main": 1, "nested": 1, "review": 1}
    assert verify_place(str(target)).is_whole
    with reopen(target) as graph:
        assert history_without_oldest(graph) == {name: past[:-1] for name, past in expected.items()}
        assert len(graph.commits()) == len(expected["main"])


def history_without_oldest(graph: Graph) -> dict[str, list[tuple[str, list[str]]]]:
    """Return what every branch shows, now and at each of its commits but the first."""
    return {
        branch: [
            (commit.graph_commit_id, persons(graph, commit.graph_commit_id))
            for commit in graph.commits(branch=branch)[:-1]
        ]
        for branch in graph.branches()
    }


@pytest.mark.case("engine", 522)
def test_a_depth_beyond_the_history_is_all_of_it(source: Path, tmp_path: Path) -> None:
    clone(str(source), str(tmp_path / "copy"), depth=1_000)

    assert shown_at(tmp_path / "copy") == shown_at(source)


@pytest.mark.case("engine", 522)
def test_a_choice_that_makes_no_sense_is_refused(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    choices: list[Any] = [{"depth": 0}, {"depth": True}, {"branches": ["b", "review"], "at": "x"}]
    for choice in choices:
        with pytest.raises(BadRequest):
            clone(str(source), str(target), **choice)

    with pytest.raises(GraphNotFound):
        clone(str(tmp_path / "nothing"), str(target))
    assert not target.exists()


@pytest.mark.case("engine", 523)
def test_a_place_that_holds_anything_is_left_alone(source: Path, tmp_path: Path) -> None:
    graph, folder, file = tmp_path / "graph", tmp_path / "folder", tmp_path / "file"
    new_graph(graph, SCHEMA).close()
    folder.mkdir()
    (folder / "letter.txt").write_text("mine", encoding="utf-8")
    file.write_text("mine", encoding="utf-8")
    before = files(tmp_path)

    with pytest.raises(AlreadyInitialized):
        clone(str(source), str(graph))
    with pytest.raises(AlreadyExistsError, match="not empty"):
        clone(str(source), str(folder))
    with pytest.raises(BadRequest, match="is a file"):
        clone(str(source), str(file))
    for place in (source, source / "nodes" / "copy", source.parent):
        with pytest.raises(BadRequest, match="overlap"):
            clone(str(source), str(place))

    assert files(tmp_path) == before


@pytest.mark.case("engine", 523)
def test_an_unfinished_copy_is_no_graph_and_says_what_it_is(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    with failpoint("clone.post_control_pre_manifest", "raise"), pytest.raises(InjectedFault):
        clone(str(source), str(target))
    before = files(target)

    with pytest.raises(CloneUnfinished, match=f"a copy of {source}"):
        open_graph(target, mode="ro")
    with pytest.raises(CloneUnfinished, match=f"a copy of {source}"):
        open_graph(target)
    with pytest.raises(CloneUnfinished):
        init(target, SCHEMA)
    with pytest.raises(CloneUnfinished):
        verify_place(str(target))
    others: list[Any] = [{"branches": ["review"]}, {"depth": 1}]
    for other in others:
        with pytest.raises(CloneUnfinished, match="other options"):
            clone(str(source), str(target), **other)
    stranger = new_graph(tmp_path / "stranger", SCHEMA)
    with pytest.raises(CloneUnfinished):
        clone(stranger.uri, str(target))

    assert files(target) == before
    clone(str(source), str(target))
    assert shown_at(target) == shown_at(source)


def test_what_a_power_cut_left_of_the_probe_is_no_content(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    target.mkdir()
    (target / f"{PROBE}01JD0000000000000000000000").write_text("first")

    clone(str(source), str(target))

    assert shown_at(target) == shown_at(source)


@pytest.mark.case("engine", 523)
def test_a_journal_that_cannot_be_read_is_told(source: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / JOURNAL).write_text('{"format": 99}', encoding="utf-8")

    with pytest.raises(CloneUnfinished, match="cannot read"):
        clone(str(source), str(tmp_path / "copy"))
    with pytest.raises(CloneUnfinished, match="cannot read"):
        open_graph(tmp_path / "copy")


def a_data_file(root: Path) -> Path:
    """Return a file with rows that a branch shares with main."""
    return max(root.glob("nodes/*/data/*.lance"), key=lambda path: path.stat().st_size)


@pytest.mark.case("engine", 526)
@pytest.mark.parametrize("damage", ["flipped", "longer", "missing"])
def test_a_damaged_source_is_told_and_nothing_is_shown(source: Path, tmp_path: Path, damage: str) -> None:
    victim, target = a_data_file(source), tmp_path / "copy"
    content = victim.read_bytes()
    match damage:
        case "flipped":
            victim.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
        case "longer":
            victim.write_bytes(content + b"\0")
        case _:
            victim.unlink()

    with pytest.raises(GraphDamaged) as raised:
        clone(str(source), str(target))

    assert raised.value.file == str(victim.relative_to(source))
    assert not (target / raised.value.file).exists()
    with pytest.raises(CloneUnfinished):
        open_graph(target)
    victim.write_bytes(content)
    clone(str(source), str(target))
    assert shown_at(target) == shown_at(source)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[str, str]:
    """Two copies of a graph that were written apart, with files of equal lengths and without checksums."""
    monkeypatch.setenv("OMNIGRAPH_CHECKSUMS", "off")
    places = str(tmp_path / "one"), str(tmp_path / "other")
    with init(places[0], SCHEMA) as graph:
        graph.mutate('query q() { insert Person { name: "both" } }')
    clone(*places)
    for place, name in zip(places, ("one", "two"), strict=True):
        with open_graph(place) as graph:
            graph.mutate(f'query q() {{ insert Person {{ name: "{name}" }} }}')
    return places


@pytest.mark.case("engine", 653)
def test_a_copy_that_is_finished_from_another_copy_shows_what_that_shows(
    apart: tuple[str, str], tmp_path: Path
) -> None:
    one, other = apart
    target = str(tmp_path / "copy")
    with failpoint("clone.post_files_pre_control", "raise"), pytest.raises(InjectedFault):
        clone(one, target)

    clone(other, target)

    assert shown_at(Path(target)) == shown_at(Path(other))
    assert verify_place(target, deep=True).is_whole


@pytest.mark.case("engine", 653)
def test_a_finished_copy_of_another_copy_is_not_taken_for_ours(
    apart: tuple[str, str], tmp_path: Path
) -> None:
    one, other = apart
    target = str(tmp_path / "copy")
    with failpoint("clone.post_manifest_pre_journal_delete", "raise"), pytest.raises(InjectedFault):
        clone(one, target)

    with pytest.raises(AlreadyInitialized, match="written apart"):
        clone(other, target)

    clone(one, target)
    assert shown_at(Path(target)) == shown_at(Path(one))


@pytest.mark.case("engine", 526)
def test_what_an_earlier_run_left_is_compared_before_it_is_used(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    with failpoint("clone.post_files_pre_control", "raise"), pytest.raises(InjectedFault):
        clone(str(source), str(target))
    victim = a_data_file(target)
    content = victim.read_bytes()
    victim.write_bytes(bytes(len(content)))

    result = clone(str(source), str(target))

    assert victim.read_bytes() == content
    assert result.files_copied == 2  # it, and the last file
    assert verify_place(str(target)).is_whole


@pytest.mark.case("engine", 656)
def test_a_graph_is_copied_after_a_cleanup_that_took_the_start_of_a_fork(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    source, target = tmp_path / "source", tmp_path / "copy"
    with init(str(source), SCHEMA) as graph:
        graph.create_branch("june")
        added = f"{SCHEMA}\nnode Town {{\n    name: String @key\n}}\n"
        graph.apply_schema(added)
        graph.upgrade_branch("june")
        for number in range(3):
            for branch in ("june", "main"):
                graph.mutate(f'query q() {{ insert Town {{ name: "t{number}" }} }}', branch=branch)
        graph.cleanup(keep=1)
        towns = graph.table("Town", branch="june").sort_by("name").to_pylist()

    clone(str(source), str(target))

    assert verify_place(str(target), deep=True).is_whole
    with open_graph(str(target)) as copy:
        assert copy.table("Town", branch="june").sort_by("name").to_pylist() == towns
        copy.mutate('query q() { insert Town { name: "more" } }', branch="june")


@pytest.mark.case("engine", 889)
@pytest.mark.parametrize("choice", [{}, {"branches": ["a/b"]}])
def test_refs_with_the_names_of_older_branches_are_listed_in_a_copy(
    tmp_path: Path, choice: dict[str, Any]
) -> None:
    """Builds of earlier formats gave refs the names of their branches, which the library lists encoded."""
    older, target = write_older_graph(tmp_path / "source", 3), tmp_path / "copy"
    older.branch("a/b")
    with open_graph(older.root) as graph:
        for branch in ("feature", "a/b"):  # the first write brings a branch up
            graph.mutate('query q() { insert Person { name: "eve" } }', branch=branch)
        expected = graph.table("Person", branch="a/b").sort_by("name")

    clone(str(older.root), str(target), **choice)

    assert verify_place(str(target), deep=True).is_whole
    with open_graph(target) as graph:
        assert graph.table("Person", branch="a/b").sort_by("name") == expected
        graph.cleanup(keep=1)
        graph.delete_branch("a/b")
        assert not list(target.glob("__manifest/tree/a/b/_versions/*"))
        assert_settled(graph)
