"""Copies whose runs die, race each other, and stand beside a writer."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.core.errors import CloneUnfinished, ConflictError
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.operations.clone.check_copy import check_copy
from omnigraph.operations.clone.clone import clone
from omnigraph.operations.clone.journal import JOURNAL
from omnigraph.operations.verify.verify import verify_place
from tests.protocol.clone_beside_writer import INSERT, SCHEMA, one_round
from tests.support.engine import assert_settled, chain, files, new_graph, reopen
from tests.support.forked import Forked
from tests.support.seeds import fixed_seed

BEFORE_THE_LAST = (
    "clone.post_journal_pre_copy=exit",
    "clone.before_file=exit",
    "clone.before_file=skip:9,exit",
    "clone.before_file=skip:30,exit",
    "clone.post_files_pre_control=exit",
    "clone.post_control_pre_manifest=exit",
)
BEHIND_THE_LAST = "clone.post_manifest_pre_journal_delete=exit"
WRITE = """
import sys
from pathlib import Path
from tests.protocol.clone_beside_writer import write_forever
write_forever(Path(sys.argv[1]))
"""
RUN = """
import sys
from omnigraph.operations.clone.clone import clone
branch, at = sys.argv[3:] or (None, None)
clone(sys.argv[1], sys.argv[2], branches=branch and [branch], at=at)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with branches; nothing here writes to it."""
    return new_source(tmp_path_factory.mktemp("clone") / "graph")


def new_source(root: Path) -> Path:
    """Make a graph with branches, some of them deleted, and return its place."""
    with new_graph(root, SCHEMA) as graph:
        graph.mutate(INSERT, params={"n": "first"})
        for number in (1, 2, 3):
            one_round(graph, number)
    return root


def shown(graph: Graph) -> dict[str, tuple[list[str], list[str]]]:
    """Return the commits and the persons of every branch."""
    return {
        branch: (
            [commit.graph_commit_id for commit in graph.commits(branch=branch)],
            sorted(map(str, graph.table("Person", branch=branch)["name"].to_pylist())),
        )
        for branch in graph.branches()
    }


def killed(source: Path, target: Path, point: str, *choice: str) -> None:
    """Copy in a process that ends at a place, at once; all, or a branch up to a commit."""
    with Forked(RUN, source, target, *choice, **{ENVIRONMENT: point}) as script:
        assert script.wait() == EXIT_STATUS, f"it did not come to {point}"


@pytest.mark.case("engine", 524)
@pytest.mark.parametrize("point", BEFORE_THE_LAST)
def test_a_run_that_was_killed_is_finished_by_the_next(source: Path, tmp_path: Path, point: str) -> None:
    target = tmp_path / "copy"

    killed(source, target, point)

    with pytest.raises(CloneUnfinished):
        open_graph(target)
    left = {path: content for path, content in files(target).items() if "#" not in path}
    result = clone(str(source), str(target))
    assert result.files - result.files_copied == len(left.keys() & files(source).keys() - control(left))
    assert_whole(source, target)


@pytest.mark.case("engine", 884)
@pytest.mark.parametrize("point", [*BEFORE_THE_LAST, BEHIND_THE_LAST])
def test_a_copy_of_a_past_that_was_killed_is_finished_by_the_next(
    source: Path, tmp_path: Path, point: str
) -> None:
    target = tmp_path / "copy"
    with reopen(source, mode="ro") as graph:
        own = [commit for commit in graph.commits(branch="from-3") if commit.manifest_branch == "from-3"]
        past = {name: rows for name, rows in shown(graph).items() if name == "from-3"}
    commit = own[-1].graph_commit_id

    killed(source, target, point, "from-3", commit)

    if point != BEHIND_THE_LAST:
        with pytest.raises(CloneUnfinished):
            open_graph(target)
    clone(str(source), str(target), branches=["from-3"], at=commit)
    assert not (target / JOURNAL).exists()
    assert check_copy(str(source), str(target), branches=["from-3"], at=commit, deep=True).is_same
    assert verify_place(str(target), deep=True).is_whole
    with reopen(target) as graph:
        commits, _ = shown(graph)["from-3"]
        assert commits == past["from-3"][0][-len(commits) :]
        assert commits[0] == commit
        graph.mutate(INSERT, params={"n": "written to the copy"}, branch="from-3")
        graph.merge("from-3", "main")
        assert_settled(graph)


def control(paths: dict[str, bytes]) -> set[str]:
    """Return the files that are written anew by every run."""
    return {path for path in paths if not path.startswith(("nodes/", "edges/", "__manifest/"))} | {
        path for path in paths if path.endswith(("/_branch", "/_branch_ended"))
    }


def assert_whole(source: Path, target: Path) -> None:
    """Check that a copy is all that it should be, and that it can be written."""
    assert not (target / JOURNAL).exists()
    assert verify_place(str(target)).is_whole
    with reopen(source, mode="ro") as original, reopen(target) as graph:
        assert shown(graph) == shown(original)
        graph.mutate(INSERT, params={"n": "written to the copy"})
        assert_settled(graph)
        chain(graph)


@pytest.mark.case("engine", 524)
def test_a_run_that_was_killed_behind_its_last_file_has_left_a_graph(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    killed(source, target, BEHIND_THE_LAST)
    with reopen(target) as graph:
        graph.mutate(INSERT, params={"n": "already written"})
        expected = shown(graph)
    before = files(target)

    result = clone(str(source), str(target))

    assert result.files_copied == 0
    assert before.keys() - files(target).keys() == {JOURNAL}
    with reopen(target, mode="ro") as graph:
        assert shown(graph) == expected


def killed_anywhere(source: Path, folder: Path, rounds: int, seed: int) -> int:
    """Kill several runs in turn behind any number of files, then finish; return how many were killed."""
    draw, killed = random.Random(seed), 0
    for number in range(rounds):
        target = folder / f"copy-{number}"
        for _ in range(draw.randrange(1, 4)):
            point = f"clone.before_file=skip:{draw.randrange(40)},exit"
            with Forked(RUN, source, target, **{ENVIRONMENT: point}) as script:
                if script.wait() != EXIT_STATUS:
                    break  # fewer files were left than that
            killed += 1
        if (target / JOURNAL).exists() or not target.exists():
            clone(str(source), str(target))
        assert_whole(source, target)
        shutil.rmtree(target)
    return killed


@pytest.mark.case("engine", 524)
def test_runs_killed_behind_any_number_of_files(source: Path, tmp_path: Path) -> None:
    assert killed_anywhere(source, tmp_path, 2, fixed_seed("CLONE_SEED")) >= 2


@pytest.mark.case("engine", 529)
@pytest.mark.parametrize("point", ["clone.post_files_pre_control", "clone.post_control_pre_manifest"])
def test_of_two_runs_the_later_one_goes_on_and_the_earlier_one_shows_nothing(
    source: Path, tmp_path: Path, point: str
) -> None:
    target, later = tmp_path / "copy", list[dict[str, bytes]]()

    def overtake() -> None:
        if not later:
            later.append({})
            clone(str(source), str(target))
            with reopen(target) as graph:
                graph.delete_branch("from-3")
            later[0] = files(target)

    with failpoint(point, "call", overtake), pytest.raises(ConflictError, match="taken over"):
        clone(str(source), str(target))

    assert files(target) == later[0]
    assert verify_place(str(target)).is_whole


@pytest.mark.case("engine", 886)
@pytest.mark.parametrize("ends_at", [None, "main", "from-3"])
def test_a_run_that_was_overtaken_removes_nothing_of_a_finished_copy(
    source: Path, tmp_path: Path, ends_at: str | None
) -> None:
    """It was slow among its files; meanwhile a later run has finished the copy, and somebody writes to it."""
    target, later = tmp_path / "copy", list[dict[str, bytes]]()
    choice = {} if ends_at is None else chosen(source, ends_at)

    def overtake() -> None:
        if not later:
            later.append({})
            clone(str(source), str(target), **choice)
            with reopen(target) as graph:
                for branch in graph.branches():
                    graph.mutate(INSERT, params={"n": "already written"}, branch=branch)
            later[0] = files(target)

    with failpoint("clone.before_file", "call", overtake), pytest.raises(ConflictError, match="taken over"):
        clone(str(source), str(target), **choice)

    assert files(target) == later[0]
    assert verify_place(str(target)).is_whole


def chosen(source: Path, branch: str) -> dict[str, Any]:
    """Return the choice of a copy that ends at the newest commit of a branch."""
    with reopen(source, mode="ro") as graph:
        commit = graph.commits(branch=branch)[0].graph_commit_id
    return {"at": commit} if branch == "main" else {"branches": [branch], "at": commit}


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[tuple[Path, Forked]]:
    """A graph that another process writes to all the time."""
    root = tmp_path / "graph"
    with new_graph(root, SCHEMA) as graph:
        graph.mutate(INSERT, params={"n": "first"})
    with Forked(WRITE, root) as writer:
        for _ in range(3):
            assert writer.read_line()
        yield root, writer
        (tmp_path / "stop").touch()
        while writer.read_line():
            pass
        assert writer.wait() == 0


@pytest.mark.slow
@pytest.mark.case("engine", 525)
def test_copies_beside_a_writer_show_one_moment_of_every_branch(
    busy: tuple[Path, Forked], tmp_path: Path
) -> None:
    root, writer = busy
    for number in range(10):
        target = tmp_path / f"copy-{number}"

        clone(str(root), str(target))

        assert verify_place(str(target)).is_whole
        with reopen(target) as graph:
            assert_one_moment(graph)
            graph.mutate(INSERT, params={"n": "written to the copy"})
            assert_settled(graph)
        assert writer.read_line()  # it goes on all the while


def assert_one_moment(graph: Graph) -> None:
    """Check that what a branch has of another live one, that one has too, and that no commit is halved."""
    commits = {branch: graph.commits(branch=branch) for branch in graph.branches()}
    own = {branch: {commit.graph_commit_id for commit in found} for branch, found in commits.items()}
    names = {
        branch: set(map(str, graph.table("Person", branch=branch)["name"].to_pylist())) for branch in own
    }
    for branch, found in commits.items():
        for commit in found:
            assert commit.graph_commit_id in own.get(commit.manifest_branch or "main", own[branch])
        for name in names[branch] - {"first"}:
            made_on = "main" if name.endswith(" on main") else name.partition(" ")[0]
            assert name in names.get(made_on, names[branch]), f"{branch} has '{name}', {made_on} has not"
        pairs = [name for name in names[branch] if name.endswith((" on main", " on its own"))]
        assert graph.table("Knows", branch=branch).num_rows == len(pairs)
