"""`omnigraph optimize`: the best layout of a graph, as people and programs see it."""

import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS
from omnigraph.graph.opening import open as open_graph
from tests.support.atlas import GRAPH, commits, craft, lines, place_atlas
from tests.support.commands import omnigraph
from tests.support.foreign import foreign as another_program
from tests.support.in_process import document, invoke

SEARCH = 'query q() { match { $c: Craft search($c.name, "later") } return { $c.code } order { $c.code } }'


def write_in_pieces(folder: Path, branch: str = "main") -> None:
    """Load some crafts one by one, without their indexes."""
    for number in range(4):
        words = ["load", GRAPH, "--branch", branch, "--mode", "append", "--no-index", "--data", "-"]
        assert (
            invoke(*words, cwd=folder, stdin=lines(craft(f"NEW-{number}", name=f"later {number}"))).code == 0
        )


def exported(folder: Path) -> list[str]:
    """Return all rows, in an order of their own."""
    return sorted(invoke("export", GRAPH, cwd=folder).stdout.splitlines())


def found(folder: Path) -> object:
    """Return what a search finds among rows that came after the indexes."""
    return document("query", "--store", GRAPH, "-e", SEARCH, cwd=folder)["rows"]


@pytest.mark.case("surfaces", 99)
@pytest.mark.case("surfaces", 252)
def test_it_makes_one_commit_of_the_engine_and_a_second_run_none(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write_in_pieces(tmp_path)
    rows, hits, before = exported(tmp_path), found(tmp_path), len(commits(tmp_path))

    first = invoke("optimize", GRAPH, cwd=tmp_path)
    again: dict[str, Any] = document("optimize", GRAPH, cwd=tmp_path)

    assert first.code == 0
    made, *_ = commits(tmp_path)
    assert made["actor_id"] == "omnigraph:maintenance"
    assert f"commit {made['graph_commit_id']}\n" in first.stdout
    assert "node:Craft" in first.stdout
    assert len(commits(tmp_path)) == before + 1
    assert exported(tmp_path) == rows
    assert found(tmp_path) == hits
    assert again["commit"] is None
    assert again.keys() == {"uri", "branch", "tables", "commit"}
    assert again["branch"] == "main"
    assert [table["table_key"] for table in again["tables"]] == [
        "edge:Flew",
        "node:Craft",
        "node:Mission",
        "__manifest",
    ]
    for table in again["tables"]:
        assert table.keys() == {
            "table_key",
            "fragments_removed",
            "fragments_added",
            "committed",
            "skipped",
            "manifest_version",
            "lance_head_version",
            "pending_indexes",
        }
        assert (table["committed"], table["skipped"], table["pending_indexes"]) == (False, None, [])
    assert invoke("optimize", GRAPH, cwd=tmp_path).stdout == "nothing to do in the tables: no commit\n"


@pytest.mark.case("surfaces", 252)
def test_progress_is_told_on_standard_error(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write_in_pieces(tmp_path)

    outcome = invoke("optimize", GRAPH, "--json", cwd=tmp_path)

    announced, *events = outcome.stderr.splitlines()
    assert announced == f"omnigraph optimize → {GRAPH} (direct, local)"
    told = [json.loads(line)["progress"] for line in events]
    assert [(event["table_key"], event["done"]) for event in told] == [
        ("node:Craft", False),
        ("node:Craft", True),
    ]
    assert (told[0]["seconds_left"], told[-1]["seconds_left"]) == (None, 0.0)
    assert json.loads(outcome.stdout)["tables"][1]["committed"]


@pytest.mark.case("surfaces", 720)
@pytest.mark.parametrize(
    ("words", "operation", "tables"),
    [
        (["index", "ensure", GRAPH], "index", 3),
        (["index", "rebuild", GRAPH, "Craft", "code"], "index", 1),
        (["repair", GRAPH], "repair", 3),
        (["repair", GRAPH, "--confirm"], "repair", 3),
    ],
)
def test_other_maintenance_tells_its_progress_alike(
    tmp_path: Path, words: list[str], operation: str, tables: int
) -> None:
    place_atlas(tmp_path)

    as_json = invoke(*words, "--json", cwd=tmp_path)
    piped = invoke(*words, cwd=tmp_path)
    quiet = invoke(*words, "--quiet", cwd=tmp_path)

    assert (as_json.code, piped.code, quiet.code, quiet.stderr) == (0, 0, 0, "")
    told = [json.loads(line)["progress"] for line in as_json.stderr.splitlines()[1:]]
    assert {event["operation"] for event in told} == {operation}
    assert [event["done"] for event in told] == [False, True] * tables
    assert (told[-1]["tables_done"], told[-1]["tables_total"], told[-1]["seconds_left"]) == (
        tables,
        tables,
        0.0,
    )
    lines = piped.stderr.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [event["table_key"] for event in told if event["done"]]
    assert lines[-1].endswith(f"{tables} of {tables} table{'s' if tables > 1 else ''}")


def test_quiet_means_quiet(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    write_in_pieces(tmp_path)

    assert invoke("optimize", GRAPH, "--quiet", cwd=tmp_path).stderr == ""


@pytest.mark.case("surfaces", 490)
def test_a_branch_is_laid_out_by_name(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    assert invoke("branch", "create", GRAPH, "june", cwd=tmp_path).code == 0
    write_in_pieces(tmp_path, "june")
    before, planned = commits(tmp_path), works_on(tmp_path)
    rows = invoke("export", GRAPH, "--branch", "june", cwd=tmp_path).stdout

    first = invoke("optimize", GRAPH, "--branch", "june", cwd=tmp_path)
    again: dict[str, Any] = document("optimize", GRAPH, "--branch", "june", cwd=tmp_path)

    (made,) = commits(tmp_path, "--branch", "june", "--limit", "1")
    assert (first.code, made["actor_id"], made["manifest_branch"]) == (0, "omnigraph:maintenance", "june")
    assert f"commit {made['graph_commit_id']}\n" in first.stdout
    assert (again["branch"], again["commit"]) == ("june", None)
    assert [table["table_key"] for table in again["tables"]] == ["node:Craft", "__manifest"]
    assert (planned, works_on(tmp_path)) == (["node:Craft"], [])
    assert commits(tmp_path) == before
    assert invoke("export", GRAPH, "--branch", "june", cwd=tmp_path).stdout == rows
    unknown = invoke("optimize", GRAPH, "--branch", "july", cwd=tmp_path)
    assert (unknown.code, "branch 'july' not found" in unknown.stderr) == (1, True), unknown
    with open_graph(graph) as opened:
        another_program(opened, "node:Craft", "june").delete("code = 'NEW-1'")
    skipped = invoke("optimize", GRAPH, "--branch", "june", cwd=tmp_path)
    assert "run omnigraph repair --branch june" in skipped.stdout


def works_on(folder: Path) -> list[str]:
    """Return the tables that `status` says there is something to do for on the branch."""
    found = document("status", GRAPH, "--branch", "june", cwd=folder)
    return [work["table_key"] for work in found["maintenance"]["optimize"]]


@pytest.mark.case("surfaces", 88)
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--server", "x"], "works on the storage of a graph"),
        (["http://host/graphs/atlas"], "storage"),
        (["--as", "act-mira"], "does not apply to maintenance"),
    ],
)
def test_it_works_on_storage_and_is_recorded_as_the_engine(
    words: list[str], reason: str, tmp_path: Path
) -> None:
    place_atlas(tmp_path)
    place = [] if words[0].startswith("http") else [GRAPH]

    outcome = invoke("optimize", *place, *words, cwd=tmp_path)

    assert outcome.code != 0
    assert reason in outcome.stderr


@pytest.mark.case("surfaces", 105)
def test_an_open_recovers_what_a_dead_writer_left_and_then_it_runs(tmp_path: Path) -> None:
    """The program opens read-write first; a handle that is open already tells to do so."""
    place_atlas(tmp_path)
    write_in_pieces(tmp_path)
    rows = exported(tmp_path)
    died = omnigraph("optimize", GRAPH, cwd=tmp_path, **{ENVIRONMENT: "optimize.post_table=exit"})
    assert died.code == EXIT_STATUS

    assert invoke("optimize", GRAPH, cwd=tmp_path).code == 0

    assert exported(tmp_path) == rows
    recovered = document("recovery", "list", GRAPH, cwd=tmp_path)["recoveries"]
    assert [(item["recovery_kind"], item["writer_kind"]) for item in recovered] == [
        ("rolled_forward", "optimize")
    ]
