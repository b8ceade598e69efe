"""`omnigraph clone` and `check-copy`: what they print, and their exit codes."""

import json
from pathlib import Path

import pytest

import omnigraph
from omnigraph.bulk.connect.progress import ProgressEvent
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS
from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import omnigraph as program
from tests.support.in_process import document, invoke


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a graph that has a branch."""
    with omnigraph.open(place_atlas(tmp_path)) as graph:
        graph.create_branch("review")
        graph.mutate('query q() { insert Craft { code: "XX", name: "Nowhere" } }', branch="review")
    return tmp_path


def commits(folder: Path, place: str = GRAPH) -> list[str]:
    """Return the commits of main, newest first."""
    with omnigraph.open(folder / place, mode="ro") as graph:
        return [commit.graph_commit_id for commit in graph.commits()]


@pytest.mark.case("surfaces", 265)
def test_a_copy_is_made_and_answers(folder: Path) -> None:
    outcome = invoke("clone", GRAPH, "copy", cwd=folder)

    assert outcome.code == 0
    assert outcome.stdout.startswith(f"cloned {folder / GRAPH} to {folder / 'copy'}: 2 branches, ")
    assert outcome.stdout.count("\n") == 1
    graphs = [document("snapshot", place, cwd=folder) for place in (GRAPH, "copy")]
    assert graphs[0] | {"uri": ""} == graphs[1] | {"uri": ""}


@pytest.mark.case("surfaces", 265)
def test_a_choice_is_told_by_the_document(folder: Path) -> None:
    newest, *older = commits(folder)

    one = document("clone", GRAPH, "one", "--branch", "review", "--depth", "1", cwd=folder)
    early = document("clone", GRAPH, "early", "--at", older[0], cwd=folder)
    shallow = invoke("clone", GRAPH, "shallow", "--depth", "1", cwd=folder)

    assert (one["branches"], one["head"]) == (["main", "review"], newest)
    assert one["unreadable"] == {"main": len(older), "review": len(older) + 1}
    assert (one["files"], one["bytes"]) == (one["files_copied"], one["bytes_copied"])
    assert (early["branches"], early["head"], early["unreadable"]) == (["main"], older[0], {})
    assert commits(folder, "early") == older
    assert f"{len(older)} older commit" in shallow.stdout
    assert "can be listed and not read" in shallow.stdout


@pytest.mark.case("surfaces", 266)
def test_what_cannot_be_copied_is_said(folder: Path) -> None:
    refused = {
        ("clone", GRAPH, GRAPH): "overlap",
        ("clone", "nothing", "copy"): "no graph at",
        ("clone", GRAPH, "copy", "--at", "01AAAAAAAAAAAAAAAAAAAAAAAA"): "not found",
        ("clone", GRAPH, "copy", "--branch", "gone"): "gone",
        ("clone", GRAPH, "copy", "--branch", "review", "--branch", "b", "--at", "x"): "give one of b, review",
        ("clone", GRAPH, "http://host/graph"): "behind a server",
    }
    for command, reason in refused.items():
        outcome = invoke(*command, cwd=folder)
        assert (outcome.code, reason in outcome.stderr) == (1, True), command
    assert not (folder / "copy").exists()
    assert invoke("clone", GRAPH, cwd=folder).code == 2
    assert invoke("clone", GRAPH, "copy", "--depth", "0", cwd=folder).code == 2
    (folder / "taken").mkdir()
    (folder / "taken" / "letter").touch()
    taken = invoke("clone", GRAPH, "taken", "--json", cwd=folder)
    assert (taken.code, json.loads(taken.stdout)["code"]) == (1, "conflict")


@pytest.fixture
def past(folder: Path) -> list[str]:
    """The commits that were made on the branch, newest first."""
    with omnigraph.open(folder / GRAPH) as graph:
        graph.mutate('query q() { insert Craft { code: "YY", name: "Later" } }', branch="review")
        return [commit.graph_commit_id for commit in graph.commits(branch="review")[:2]]


@pytest.mark.case("surfaces", 900)
def test_a_copy_ends_at_a_past_commit_of_a_branch(folder: Path, past: list[str]) -> None:
    choice = ("--branch", "review", "--at", past[1])

    told = document("clone", GRAPH, "copy", *choice, cwd=folder)

    assert (told["branches"], told["head"]) == (["main", "review"], past[1])
    with omnigraph.open(folder / "copy", mode="ro") as graph:
        assert graph.commits(branch="review")[0].graph_commit_id == past[1]
        query = 'query q() { match { $c: Craft { code: "XX" } } return { $c.name } }'
        assert [len(graph.query(query, branch=branch).to_pylist()) for branch in ("main", "review")] == [0, 1]
    assert invoke("check-copy", GRAPH, "copy", *choice, "--deep", cwd=folder).code == 0
    different = invoke("check-copy", GRAPH, "copy", cwd=folder)
    assert (different.code, "commits  review" in different.stdout) == (1, True)
    result = omnigraph.clone(folder / GRAPH, folder / "second", branches=["review"], at=past[1])
    assert result.head == past[1]
    assert omnigraph.check_copy(folder / GRAPH, folder / "second", branches=["review"], at=past[1]).is_same


@pytest.mark.case("surfaces", 901)
def test_a_past_that_cannot_be_copied_is_said(
    folder: Path, past: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    with omnigraph.open(folder / GRAPH) as graph:
        graph.cleanup(keep=1)
    refused = {
        ("--branch", "review", "--at", commits(folder)[0]): ("without a branch", "bad_request"),
        ("--branch", "review", "--at", "01AAAAAAAAAAAAAAAAAAAAAAAA"): ("not found", "not_found"),
        ("--branch", "review", "--at", past[1]): ("was cleaned up", None),
        ("--branch", "review", "--branch", "main", "--branch", "b", "--at", past[0]): (
            "give one of b, review",
            "bad_request",
        ),
    }
    for choice, (reason, code) in refused.items():
        for command in ("clone", "check-copy"):
            target = "copy" if command == "clone" else GRAPH
            outcome = invoke(command, GRAPH, target, *choice, cwd=folder)
            assert (outcome.code, reason in outcome.stderr) == (1, True), (command, choice)
            as_json = invoke(command, GRAPH, target, *choice, "--json", cwd=folder)
            assert (as_json.code, json.loads(as_json.stdout).get("code")) == (1, code), (command, choice)
    assert not (folder / "copy").exists()


@pytest.mark.case("surfaces", 901)
def test_a_copy_of_a_past_that_was_killed_is_finished(folder: Path, past: list[str]) -> None:
    command = ("clone", GRAPH, "copy", "--branch", "review", "--at", past[1])
    kill = {ENVIRONMENT: "clone.post_control_pre_manifest=exit"}
    assert program(*command, cwd=folder, **kill).code == EXIT_STATUS

    again = invoke(*command, cwd=folder)

    assert (again.code, " had been copied before\n" in again.stdout) == (0, True)
    assert invoke("check-copy", GRAPH, "copy", *command[3:], "--deep", cwd=folder).code == 0


@pytest.mark.case("surfaces", 266)
@pytest.mark.case("surfaces", 268)
def test_a_copy_that_was_killed_says_what_it_is_and_is_finished(folder: Path) -> None:
    kill = {ENVIRONMENT: "clone.before_file=skip:30,exit"}
    assert program("clone", GRAPH, "copy", cwd=folder, **kill).code == EXIT_STATUS

    for command in ("snapshot", "verify", "branch list", "check-copy copy"):
        outcome = invoke(*command.split(), "copy", cwd=folder)
        assert (outcome.code, "finish it with 'omnigraph clone'" in outcome.stderr) == (1, True), command
    again = invoke("clone", GRAPH, "copy", cwd=folder)

    assert again.code == 0
    assert " had been copied before\n" in again.stdout
    assert invoke("check-copy", GRAPH, "copy", "--deep", cwd=folder).code == 0


@pytest.mark.case("surfaces", 267)
def test_two_graphs_are_compared(folder: Path) -> None:
    invoke("clone", GRAPH, "copy", cwd=folder)
    same = invoke("check-copy", GRAPH, "copy", cwd=folder)
    invoke("branch", "create", "copy", "extra", cwd=folder)
    victim = next((folder / "copy").glob("nodes/*/data/*.lance"))
    victim.write_bytes(bytes(victim.stat().st_size))

    different = invoke("check-copy", GRAPH, "copy", cwd=folder)
    as_json = invoke("check-copy", GRAPH, "copy", "--json", cwd=folder)

    assert same.code == 0
    assert same.stdout.startswith("no difference: 2 branches, ")
    assert (different.code, as_json.code) == (1, 1)
    assert different.stdout.splitlines()[-1].startswith("2 differences in 3 branches, ")
    path = str(victim.relative_to(folder / "copy"))
    found = json.loads(as_json.stdout)
    assert not found["is_same"]
    assert [(one["kind"], one["what"]) for one in found["differences"]] == [
        ("branch", "extra"),
        ("content", path),
    ]
    chosen = invoke("check-copy", GRAPH, "copy", "--branch", "review", cwd=folder)
    assert chosen.stdout.splitlines()[-1].startswith("1 difference in 2 branches, ")


@pytest.mark.case("surfaces", 269)
def test_progress_is_told(folder: Path) -> None:
    lines = program("clone", GRAPH, "one", cwd=folder)
    quiet = program("clone", GRAPH, "two", "--quiet", cwd=folder)
    events = program("check-copy", GRAPH, "one", "--json", cwd=folder)
    heard: list[ProgressEvent] = []
    result = omnigraph.clone(folder / GRAPH, folder / "three", progress=heard.append)
    report = omnigraph.check_copy(folder / GRAPH, folder / "three", progress=heard.append)

    assert "omnigraph clone → " in lines.stderr
    assert "copy files" in lines.stderr
    assert quiet.stderr == ""
    told = [json.loads(line)["progress"] for line in events.stderr.splitlines() if line.startswith("{")]
    assert (told[-1]["stage"], told[-1]["done"], told[-1]["seconds_left"]) == ("compare files", True, 0.0)
    assert told[-1]["bytes"] == told[-1]["bytes_total"] == json.loads(events.stdout)["bytes"]
    done = [event for event in heard if event.is_done]
    assert [event.stage.value for event in done] == ["copy files", "compare files"]
    assert all(event.bytes_done == event.bytes_total for event in done)
    assert done[0].bytes_done <= result.bytes_copied
    assert done[1].bytes_done == report.bytes
