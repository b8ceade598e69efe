"""A past with gaps, as cleanup and hard drops leave it beside branches: copied and compared as it is."""

import shutil
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import HistoricalVersionReclaimed
from omnigraph.operations.clone.check_copy import DifferenceKind
from tests.support.engine import new_graph

SCHEMA = "node Part { code: String @key  weight: I32?  secret: String? }\n"
WRITE = 'query q($n: I32) { insert Part { code: "a", weight: $n } }'
READ = "query q() { match { $p: Part } return { $p.code, $p.weight } }"


@pytest.fixture(params=["cleanup", "hard drop"])
def source(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A graph with two branches, each of which keeps a version of main's past."""
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    with new_graph(tmp_path / "graph", SCHEMA) as graph:
        for number in range(12):
            graph.mutate(WRITE, params={"n": number})
            if number in {3, 7}:
                graph.create_branch(f"b{number}")
                graph.mutate(WRITE, params={"n": 100}, branch=f"b{number}")
        if request.param == "cleanup":
            graph.cleanup(keep=3)
        else:
            graph.apply_schema(SCHEMA.replace("  secret: String?", ""), allow_data_loss=True)
    return tmp_path / "graph"


def readable(place: Path) -> dict[tuple[str, str], bool]:
    """Return for every commit of every branch whether it can be read."""
    found = {}
    with omnigraph.open(place, mode="ro") as graph:
        for branch in ("main", "b3", "b7"):
            for commit in graph.commits(branch=branch):
                try:
                    graph.query(READ, snapshot=commit.graph_commit_id)
                    found[branch, commit.graph_commit_id] = True
                except HistoricalVersionReclaimed:
                    found[branch, commit.graph_commit_id] = False
    return found


@pytest.mark.case("engine", 687)
def test_what_neither_graph_has_is_no_difference(source: Path, tmp_path: Path) -> None:
    shutil.copytree(source, tmp_path / "folder")
    omnigraph.clone(source, tmp_path / "clone")

    for place in (source, tmp_path / "folder", tmp_path / "clone"):
        assert omnigraph.check_copy(source, place, deep=True).differences == ()
        assert omnigraph.check_copy(place, source, deep=True).differences == ()
    lost = min((tmp_path / "folder" / "nodes").rglob("_versions/*.manifest"), key=lambda path: path.name)
    lost.unlink()
    [found] = omnigraph.check_copy(source, tmp_path / "folder").differences
    assert (found.kind, found.source, found.target) == (DifferenceKind.MISSING, "there", None)
    assert found.what == str(lost.relative_to(tmp_path / "folder"))


@pytest.mark.case("engine", 688)
def test_a_copy_reads_all_that_its_source_reads(source: Path, tmp_path: Path) -> None:
    before = readable(source)

    result = omnigraph.clone(source, tmp_path / "clone")

    assert readable(tmp_path / "clone") == before
    main = [is_read for (branch, _), is_read in before.items() if branch == "main"]
    gap = main.index(False)
    assert True in main[gap:]
    assert result.unreadable["main"] == main.count(False)
    for place in (source, tmp_path / "clone"):
        with omnigraph.open(place, mode="ro") as graph:
            assert graph.verify(deep=True).is_whole


@pytest.mark.case("engine", 720)
def test_a_commit_in_which_branches_meet_is_copied_from_between_the_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Main's version of the meeting is neither the start of a branch nor of a fork: only its pin names it."""
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    with new_graph(tmp_path / "graph", SCHEMA) as graph:
        graph.mutate(WRITE, params={"n": 0})
        graph.create_branch("b")
        graph.mutate(WRITE.replace('"a"', '"b"'), params={"n": 1}, branch="b")
        graph.mutate(WRITE, params={"n": 2})
        graph.merge("main", "b")
        meeting = graph.commits(limit=1)[0].graph_commit_id
        graph.mutate(WRITE.replace('"a"', '"c"'), params={"n": 3})
        graph.mutate(WRITE.replace('"a"', '"d"'), params={"n": 4})
        graph.mutate(WRITE, params={"n": 5}, branch="b")
        graph.cleanup(keep=1)

    omnigraph.clone(tmp_path / "graph", tmp_path / "clone")

    with omnigraph.open(tmp_path / "clone") as copy:
        assert copy.query(READ, snapshot=meeting).rows == [{"p.code": "a", "p.weight": 2}]
        assert copy.merge("b", "main").outcome == "merged"
        shown = {row["p.code"]: row["p.weight"] for row in copy.query(READ).rows}
        assert shown == {"a": 5, "b": 1, "c": 3, "d": 4}
