"""The commands that print changes."""

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.graph.graph import Graph
from tests.engine.changes.reading import committed
from tests.support.commands import SCHEMA
from tests.support.engine import edge, ndjson, new_graph, node
from tests.support.in_process import document, invoke


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    records = [
        node("Craft", code="VGR-1", name="Voyager", mass_kg=721.9),
        node("Mission", title="M-77"),
        edge("Flew", "VGR-1", "M-77", id="f1"),
    ]
    return new_graph(tmp_path / "g", SCHEMA, *records)


@pytest.fixture
def june(graph: Graph) -> str:
    """Return the commit of a branch that inserts one craft and renames another."""
    graph.create_branch("june")
    records = [node("Craft", code="CAS", name="Cassini"), node("Craft", code="VGR-1", name="Pathlight")]
    commit = graph.load(ndjson(records), "merge", branch="june", index=False).commit
    assert commit is not None
    return commit.graph_commit_id


def documents(text: str) -> list[dict[str, Any]]:
    """Return the documents that were printed one behind the other."""
    decoder, found = json.JSONDecoder(), []
    while text := text.lstrip():
        read, end = decoder.raw_decode(text)
        found.append(read)
        text = text[end:]
    return found


@pytest.mark.case("surfaces", 85)
@pytest.mark.parametrize("command", [["diff"], ["branch", "diff"]])
def test_a_diff_shows_the_inserted_row_with_its_image(tmp_path: Path, june: str, command: list[str]) -> None:
    printed = document(*command, "g", "june", cwd=tmp_path)

    assert printed["from"]["branch"] == "main"
    assert (printed["to"]["branch"], printed["to"]["snapshot"]) == ("june", june)
    inserted = next(change for change in printed["changes"] if change["op"] == "insert")
    assert inserted["after"] == {"properties": {"code": "CAS", "mass_kg": None, "name": "Cassini"}}
    assert (inserted["kind"], inserted["type"]["name"], inserted["id"]) == ("node", "Craft", "CAS")
    assert "before" not in inserted
    assert printed["stats"] == {"node:Craft": {"inserted": 1, "updated": 1, "deleted": 0}}


@pytest.mark.case("surfaces", 85)
def test_a_diff_counts_the_changes_of_each_table(tmp_path: Path, june: str) -> None:
    lines = invoke("diff", "june", "--uri", "g", "--stat", cwd=tmp_path).stdout.splitlines()

    assert [line.split() for line in lines] == [
        ["table", "inserted", "updated", "deleted"],
        ["node:Craft", "1", "1", "0"],
    ]
    counted = document("diff", june, "main", "--uri", "g", "--stat", cwd=tmp_path)
    assert counted["stats"] == {"node:Craft": {"inserted": 1, "updated": 1, "deleted": 0}}
    assert "changes" not in counted
    assert invoke("diff", "g", "main", "--stat", cwd=tmp_path).stdout == "no changes\n"


def test_a_diff_is_one_line_for_each_change(tmp_path: Path, graph: Graph, june: str) -> None:
    committed(graph, 'query q() { delete Craft where code = "VGR-1" }', branch="june")

    shown = invoke("diff", "g", "june", cwd=tmp_path).stdout.splitlines()

    assert shown == [
        '+ Craft "CAS"  code: "CAS", name: "Cassini"',
        '- Craft "VGR-1"  code: "VGR-1", mass_kg: 721.9, name: "Voyager"',
        '- Flew "f1"  "VGR-1" -> "M-77"',
    ]
    updated = invoke("diff", "g", june, "--op", "update", cwd=tmp_path).stdout
    assert updated == '~ Craft "VGR-1"  mass_kg: 721.9 => null, name: "Voyager" => "Pathlight"\n'


def test_a_diff_needs_a_target(tmp_path: Path, graph: Graph) -> None:
    assert invoke("diff", "g", cwd=tmp_path).code == 1  # a branch, and no graph
    assert invoke("diff", cwd=tmp_path).code == 2
    assert invoke("diff", "g", "a", "b", "c", cwd=tmp_path).code == 2
    missing = invoke("diff", "g", "nope", cwd=tmp_path)
    assert (missing.code, "neither a branch nor a commit 'nope'" in missing.stderr) == (1, True)
    assert invoke("diff", "g", "main", "--kind", "nodes", cwd=tmp_path).code == 2


def test_the_changes_of_a_commit_have_before_and_after(tmp_path: Path, graph: Graph, june: str) -> None:
    printed = document("commit", "changes", "g", june, "--op", "update", cwd=tmp_path)

    (change,) = printed["changes"]
    assert change["before"]["properties"]["name"] == "Voyager"
    assert change["after"]["properties"]["name"] == "Pathlight"
    assert (printed["cause"]["graph_commit_id"], printed["cause"]["authored_branch"]) == (june, "june")
    genesis = graph.commits()[-1].graph_commit_id
    refused = invoke("commit", "changes", "g", genesis, "--json", cwd=tmp_path)
    assert refused.code == 1
    detail = json.loads(refused.stdout)["change_diff_refusal"]
    assert detail == {
        "reason": "parentless_commit",
        "graph_commit_id": genesis,
        "before_commit_id": None,
        "type_name": None,
    }


def test_pages_of_a_commit_are_printed_until_the_last_unless_a_token_is_given(
    tmp_path: Path, june: str
) -> None:
    printed = documents(
        invoke("commit", "changes", june, "--uri", "g", "--limit", "1", "--json", cwd=tmp_path).stdout
    )

    assert [change["id"] for page in printed for change in page["changes"]] == ["CAS", "VGR-1"]
    assert "next_page_token" not in printed[-1]
    token = printed[0]["next_page_token"]
    one = document("commit", "changes", "g", june, "--page-token", token, "--limit", "1", cwd=tmp_path)
    assert one == printed[1]
    lines = invoke("commit", "changes", "g", june, "--limit", "1", cwd=tmp_path).stdout.splitlines()
    assert [line[:7] for line in lines] == ["+ Craft", "~ Craft"]


def test_a_poll_goes_to_the_end_and_then_has_a_cursor(tmp_path: Path, graph: Graph) -> None:
    arguments = ("changes", "poll", "g", "--json")
    printed = documents(invoke(*arguments, "--start", "beginning", "--limit", "2", cwd=tmp_path).stdout)

    assert ["cursor" in page for page in printed] == [False, True]
    assert sum(len(block["changes"]) for page in printed for block in page["blocks"]) == 3
    cursor = printed[-1]["cursor"]
    empty = document("changes", "poll", "g", "--cursor", cursor, cwd=tmp_path)
    assert (empty["blocks"], empty["caught_up"]) == ([], True)
    commit_id = committed(graph, 'query q() { insert Mission { title: "M-78" } }')
    after = document("changes", "poll", "g", "--cursor", empty["cursor"], cwd=tmp_path)
    (block,) = after["blocks"]
    assert block["cause"]["graph_commit_id"] == commit_id
    assert [change["id"] for change in block["changes"]] == ["M-78"]


def test_a_poll_prints_its_commits_and_the_cursor_for_people(tmp_path: Path, graph: Graph) -> None:
    head = graph.commits(limit=1)[0].graph_commit_id

    lines = invoke("changes", "poll", "g", "--start", "beginning", cwd=tmp_path).stdout.splitlines()

    assert lines[0].startswith(f"commit {head}  ")
    assert lines[0].endswith(", 3 changes")
    assert sorted(line[:10] for line in lines[1:4]) == ["  + Craft ", '  + Flew "', "  + Missio"]
    assert lines[-2].startswith("cursor ")
    assert lines[-1] == "caught up"


def test_what_is_no_poll_is_refused(tmp_path: Path, graph: Graph) -> None:
    cursor = str(graph.poll_changes().cursor)

    assert invoke("changes", "poll", "g", "--bogus", cwd=tmp_path).code == 2
    assert invoke("changes", "poll", "g", "--limit", "0", cwd=tmp_path).code == 2
    both = invoke("changes", "poll", "g", "--cursor", cursor, "--start", "now", cwd=tmp_path)
    assert (both.code, "cannot be combined" in both.stderr) == (1, True)
    damaged = invoke("changes", "poll", "g", "--cursor", f"x{cursor[1:]}", "--json", cwd=tmp_path)
    assert damaged.code == 1
    printed = json.loads(damaged.stdout)
    assert printed["error"].startswith("change cursor rejected:")
    assert printed["code"] == "bad_request"
    assert invoke("changes", "poll", "g", "--limit", "9000", cwd=tmp_path).code == 1


def test_a_baseline_is_a_file_that_a_load_takes_and_a_cursor(tmp_path: Path, graph: Graph) -> None:
    printed = document("changes", "baseline", "g", "--out", "base.jsonl", cwd=tmp_path)

    *records, last = (tmp_path / "base.jsonl").read_text().splitlines()
    assert json.loads(last) == {"baseline": printed}
    assert printed["snapshot_commit_id"] == graph.commits(limit=1)[0].graph_commit_id
    again = omnigraph.init(tmp_path / "again", SCHEMA)
    again.load("\n".join(records).encode(), "overwrite")
    assert list(again.export()) == list(graph.export())
    polled = document("changes", "poll", "g", "--cursor", printed["resume_cursor"], cwd=tmp_path)
    assert polled["blocks"] == []
    lines = invoke("changes", "baseline", "g", "--out", "base.jsonl", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["snapshot_commit_id", "resume_cursor"]
