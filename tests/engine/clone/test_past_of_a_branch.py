"""A copy may end at a past commit of a branch: what travels with it, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.core.errors import (
    BadRequest,
    BranchNotFound,
    CloneUnfinished,
    CommitNotFound,
    HistoricalVersionReclaimed,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.operations.clone.check_copy import check_copy
from omnigraph.operations.clone.clone import clone
from omnigraph.operations.verify.verify import verify_place
from tests.engine.clone.steps import (
    DELETE,
    INSERT,
    PERSONS,
    SCHEMA,
    UPDATE,
    history,
    persons,
    shown_at,
)
from tests.support.engine import assert_settled, copy_of, files, new_graph, reopen


def own_commits(place: Path, branch: str, parent: str) -> list[str]:
    """Return the commits that were made on a branch, newest first."""
    with reopen(place, mode="ro") as graph:
        inherited = {commit.graph_commit_id for commit in graph.commits(branch=parent)}
        every = [commit.graph_commit_id for commit in graph.commits(branch=branch)]
    return [commit for commit in every if commit not in inherited]


def past_of(place: Path, branch: str, commit: str) -> list[tuple[str, list[str]]]:
    """Return the history of a branch from a commit back."""
    with reopen(place, mode="ro") as graph:
        every = history(graph, branch)
    return every[[each for each, _ in every].index(commit) :]


@pytest.mark.case("engine", 880)
@pytest.mark.parametrize(("branch", "parent"), [("review", "main"), ("nested", "review")])
def test_a_copy_may_end_at_each_commit_of_a_branch(
    source: Path, tmp_path: Path, branch: str, parent: str
) -> None:
    before = files(source)
    for number, commit in enumerate(own_commits(source, branch, parent)):
        target, expected = tmp_path / f"copy-{number}", past_of(source, branch, commit)

        result = clone(str(source), str(target), branches=[branch], at=commit)

        assert files(source) == before
        assert (result.head, result.branches) == (commit, ("main", branch))
        assert (result.files_copied, result.bytes_copied) == (result.files, result.bytes)
        assert verify_place(str(target), deep=True).is_whole
        assert check_copy(str(source), str(target), branches=[branch], at=commit, deep=True).is_same
        assert not check_copy(str(source), str(target), branches=[branch]).is_same
        with reopen(target) as graph:
            assert graph.branches() == sorted(["main", branch])
            assert history(graph, branch) == expected
            assert "late:1" not in persons(graph, graph.commits()[0].graph_commit_id), "main went on later"
            write_further(graph, branch, expected)
        assert verify_place(str(target), deep=True).is_whole


def write_further(graph: Graph, branch: str, past: list[tuple[str, list[str]]]) -> None:
    """Write to a branch and to main, make a branch, merge in both directions; then make the branch anew."""
    graph.mutate(INSERT, params={"n": "next"}, branch=branch)
    graph.mutate(UPDATE, params={"n": "p7", "a": 77}, branch=branch)
    graph.mutate(INSERT, params={"n": "of main"})
    graph.create_branch("further", from_=branch)
    graph.mutate(DELETE, params={"n": "p8"}, branch="further")
    graph.merge("main", branch)
    graph.merge("further", branch)
    graph.merge(branch, "main")
    names = {row["name"]: row["age"] for row in graph.table("Person").to_pylist()}
    assert {"next", "of main"} <= names.keys()
    assert ("p8" in names, names["p7"]) == (False, 77)
    assert graph.table("Person").num_rows == graph.table("Person", branch=branch).num_rows
    graph.optimize()
    graph.optimize(branch=branch)
    assert history(graph, branch)[-len(past) :] == past
    assert_settled(graph)
    graph.delete_branch("further")
    graph.delete_branch(branch)
    graph.create_branch(branch)
    graph.mutate(INSERT, params={"n": "anew"}, branch=branch)
    assert_settled(graph)


@pytest.mark.case("engine", 881)
def test_main_travels_as_far_as_the_history_of_the_commit_has_it(source: Path, tmp_path: Path) -> None:
    """Main has merged what the branch did later: nothing in the copy may know numbers it will use again."""
    with reopen(source) as graph:
        early = graph.mutate(INSERT, params={"n": "early"}, branch="review").commit
        met = graph.commits()[0].graph_commit_id
        graph.merge("main", "review")
        joined = graph.mutate(INSERT, params={"n": "joined"}, branch="review").commit
        graph.mutate(INSERT, params={"n": "after"}, branch="review")
        graph.merge("review", "main")
    assert early is not None
    assert joined is not None
    one, other = tmp_path / "one", tmp_path / "other"

    clone(str(source), str(one), branches=["review"], at=early.graph_commit_id)
    clone(str(source), str(other), branches=["review"], at=joined.graph_commit_id)

    with reopen(one, mode="ro") as graph:
        assert "late:1" not in persons(graph, graph.commits()[0].graph_commit_id)
    with reopen(other) as graph:
        assert graph.commits()[0].graph_commit_id == met
        graph.mutate(INSERT, params={"n": "another after"}, branch="review")
        graph.mutate(INSERT, params={"n": "and another"}, branch="review")
        graph.merge("review", "main")
        names = set(graph.table("Person")["name"].to_pylist())
        assert {"early", "late", "joined", "another after", "and another"} <= names
        assert "after" not in names
        assert_settled(graph)
    assert verify_place(str(other), deep=True).is_whole


@pytest.mark.case("engine", 882)
def test_what_is_no_past_of_the_branch_is_refused(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    with reopen(source, mode="ro") as graph:
        of_main = graph.commits()[-1].graph_commit_id
        late = graph.commits()[0].graph_commit_id
    of_review = own_commits(source, "review", "main")[0]
    of_nested = own_commits(source, "nested", "review")[0]
    refused: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"branches": ["review"], "at": late}, CommitNotFound, late),
        ({"branches": ["review"], "at": of_nested}, CommitNotFound, of_nested),
        ({"branches": ["review"], "at": "x"}, CommitNotFound, "x"),
        ({"branches": ["review"], "at": of_main}, BadRequest, "made on 'main'.*without a branch"),
        ({"branches": ["nested"], "at": of_review}, BadRequest, "made on 'review'.*with branch 'review'"),
        ({"branches": ["nested", "review"], "at": of_nested}, BadRequest, "nested, review"),
        ({"branches": ["gone"], "at": of_nested}, BranchNotFound, "gone"),
        ({"at": of_review}, CommitNotFound, of_review),
    ]
    for choice, error, said in refused:
        with pytest.raises(error, match=said):
            clone(str(source), str(target), **choice)
        with pytest.raises(error, match=said):
            check_copy(str(source), str(source), **choice)
    assert not target.exists()

    result = clone(str(source), str(target), branches=["main"], at=of_main)

    assert (result.branches, result.head) == (("main",), of_main)


@pytest.mark.case("engine", 883)
@pytest.mark.parametrize("branch", [None, "review"])
def test_a_commit_whose_versions_were_reclaimed_is_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, branch: str | None
) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    target = tmp_path / "copy"
    with reopen(source) as graph:
        graph.delete_branch("nested")
        for number in range(3):
            graph.mutate(UPDATE, params={"n": "p5", "a": number}, branch=branch)
        commits = [commit.graph_commit_id for commit in graph.commits(branch=branch)]
        expected = history(graph, branch or "main")[0]
        graph.cleanup(keep=1)
    choice: Any = {} if branch is None else {"branches": [branch]}

    with pytest.raises(HistoricalVersionReclaimed, match="was cleaned up") as raised:
        clone(str(source), str(target), **choice, at=commits[1])

    assert raised.value.commit_id == commits[1]
    assert not target.exists()
    clone(str(source), str(target), **choice, at=commits[0])
    with reopen(target) as graph:
        assert history_head(graph, branch or "main") == expected
        assert_settled(graph)
    assert verify_place(str(target)).is_whole


def history_head(graph: Graph, branch: str) -> tuple[str, list[str]]:
    """Return the newest commit of a branch with the persons that it shows."""
    head = graph.commits(branch=branch)[0].graph_commit_id
    return head, persons(graph, head)


@pytest.mark.case("engine", 883)
@pytest.mark.parametrize(("depth", "is_readable"), [(1, [True, False]), (3, [True, True, True, False])])
def test_a_copy_of_a_shallow_copy_ends_where_that_can_be_read(
    source: Path, tmp_path: Path, depth: int, is_readable: list[bool]
) -> None:
    shallow, commits = tmp_path / "shallow", own_commits(source, "review", "main")
    clone(str(source), str(shallow), depth=depth)
    for commit, is_there in zip(commits, is_readable, strict=False):
        target = tmp_path / f"copy-{commit}"
        if not is_there:
            with pytest.raises(HistoricalVersionReclaimed, match="when this graph was copied"):
                clone(str(shallow), str(target), branches=["review"], at=commit)
            assert not target.exists()
            continue

        clone(str(shallow), str(target), branches=["review"], at=commit)

        assert verify_place(str(target)).is_whole
        with reopen(target) as graph:
            assert history_head(graph, "review") == past_of(source, "review", commit)[0]


@pytest.mark.case("engine", 883)
def test_a_copy_may_end_below_what_the_source_has_left_behind(tmp_path: Path) -> None:
    """A commit that no table has changed since is whole in a copy that lists it as not to be read."""
    source, shallow, target = tmp_path / "source", tmp_path / "shallow", tmp_path / "copy"
    with new_graph(source, SCHEMA, *PERSONS) as graph:
        graph.create_branch("june")
        graph.mutate(INSERT, params={"n": "june"}, branch="june")
        commit = graph.commits(branch="june")[0].graph_commit_id
        graph.apply_schema(f"{SCHEMA}\nnode Town {{ name: String @key }}\n")
        graph.upgrade_branch("june")
        behind = [each.graph_commit_id for each in graph.commits(branch="june")].index(commit)
    clone(str(source), str(shallow), depth=behind)

    clone(str(shallow), str(target), branches=["june"], at=commit)

    assert verify_place(str(target), deep=True).is_whole
    with reopen(target) as graph:
        assert history_head(graph, "june")[0] == commit
        assert "Town" not in graph.schema(branch="june")
        assert "Town" not in graph.schema()
        graph.apply_schema(f"{SCHEMA}\nnode Town {{ name: String @key }}\n")
        graph.upgrade_branch("june")
        graph.merge("june")
        assert graph.table("Person").num_rows == len(PERSONS) + 1
        assert_settled(graph)


@pytest.mark.case("engine", 881)
def test_main_counts_on_from_where_the_branch_was_made(source: Path, tmp_path: Path) -> None:
    """The manifest of main had a version without a commit by then; the branch says that it started there."""
    target = tmp_path / "copy"
    with reopen(source) as graph:
        graph.optimize()  # folds the manifest
        made_at = graph.create_branch("later").parent_manifest_version
        commit = graph.mutate(INSERT, params={"n": "x"}, branch="later").commit
        assert made_at > graph.commits()[0].manifest_version
    assert commit is not None

    clone(str(source), str(target), branches=["later"], at=commit.graph_commit_id)

    with reopen(target) as graph:
        assert graph.mutate(INSERT, params={"n": "y"}).commit
        assert graph.commits()[0].manifest_version > made_at
        graph.merge("later")
        assert_settled(graph)
    assert verify_place(str(target)).is_whole


@pytest.mark.case("engine", 884)
@pytest.mark.parametrize(
    "point", ["clone.post_files_pre_control", "clone.post_control_pre_manifest", "clone.before_file"]
)
def test_an_unfinished_copy_of_a_past_is_finished_by_the_same_command(
    source: Path, tmp_path: Path, point: str
) -> None:
    target, first = tmp_path / "copy", own_commits(source, "review", "main")[-1]
    with failpoint(point, "raise"), pytest.raises(InjectedFault):
        clone(str(source), str(target), branches=["review"], at=first)
    before, others = files(target), own_commits(source, "review", "main")
    choices: list[Any] = [{"at": others[0], "branches": ["review"]}, {"branches": ["review"]}, {}]
    for choice in choices:
        with pytest.raises(CloneUnfinished, match="other options"):
            clone(str(source), str(target), **choice)
    assert files(target) == before
    with reopen(source) as graph:  # goes on before the copy does
        graph.mutate(INSERT, params={"n": "meanwhile"}, branch="review")
        graph.mutate(INSERT, params={"n": "meanwhile"})

    clone(str(source), str(target), branches=["review"], at=first)

    assert check_copy(str(source), str(target), branches=["review"], at=first, deep=True).is_same
    assert verify_place(str(target), deep=True).is_whole
    with reopen(target) as graph:
        write_further(graph, "review", past_of(source, "review", first))


@pytest.mark.case("engine", 880)
def test_a_copy_of_such_a_copy_is_the_same(source: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    commit = own_commits(source, "nested", "review")[-1]
    omnigraph.clone(source, one, branches=["nested"], at=commit)

    omnigraph.clone(one, other)

    assert omnigraph.check_copy(one, other, deep=True).is_same
    assert omnigraph.check_copy(source, other, branches=["nested"], at=commit, deep=True).is_same
    assert shown_at(other) == shown_at(one)


@pytest.mark.case("engine", 885)
def test_a_copy_of_a_past_looks_again_when_the_source_is_cleaned_up(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the commit shows is removed while it is copied: the copy is refused as if it had begun now."""
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    target, apart = tmp_path / "copy", copy_of(source, tmp_path / "apart")
    commit = own_commits(apart, "review", "main")[-1]

    def cleaned() -> None:
        with reopen(apart) as graph:
            graph.delete_branch("nested")
            graph.cleanup(keep=1)

    with failpoint("clone.post_journal_pre_copy", call=cleaned), pytest.raises(HistoricalVersionReclaimed):
        clone(str(apart), str(target), branches=["review"], at=commit)
