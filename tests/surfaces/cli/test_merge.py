"""`omnigraph branch merge`: what it prints, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph.core.failpoint import failpoint
from tests.support.atlas import GRAPH, craft, lines, place_atlas
from tests.support.commands import Outcome, write
from tests.support.in_process import document, invoke


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the graph, and a branch `june` of it."""
    place_atlas(tmp_path)
    assert invoke("branch", "create", "june", "--store", GRAPH, cwd=tmp_path).code == 0
    return tmp_path


def change(folder: Path, query: str, branch: str, **params: str) -> None:
    words = ["mutate", query, "--query", "atlas.gq", "--params", json.dumps(params), "--branch", branch]
    assert invoke(*words, "--store", GRAPH, cwd=folder).code == 0


def merge(folder: Path, *words: str) -> Outcome:
    return invoke("branch", "merge", *words, "--store", GRAPH, "--quiet", cwd=folder)


def names(folder: Path, branch: str = "main") -> dict[str, str]:
    text = "query all() { match { $c: Craft } return { $c.code, $c.name } }"
    found = document("query", "-e", text, "--branch", branch, "--store", GRAPH, cwd=folder)
    return {row["c.code"]: row["c.name"] for row in found["rows"]}


@pytest.mark.case("surfaces", 57)
@pytest.mark.case("surfaces", 58)
def test_a_branch_is_invisible_until_it_is_merged_and_merging_again_is_fine(folder: Path) -> None:
    change(folder, "rename", "june", code="VGR-1", name="Wanderer")
    assert names(folder)["VGR-1"] != "Wanderer"

    first, second = merge(folder, "june"), merge(folder, "june")

    line, commit = first.stdout.splitlines()
    assert line == "merged june into main: fast_forward"
    assert commit.startswith("commit ")
    assert (second.code, second.stdout) == (0, "merged june into main: already_up_to_date\n")
    assert names(folder)["VGR-1"] == "Wanderer"


@pytest.mark.case("surfaces", 59)
def test_a_divergence_lists_table_id_and_kind_and_leaves_main_alone(folder: Path) -> None:
    change(folder, "rename", "june", code="VGR-1", name="Wanderer")
    change(folder, "rename", "main", code="VGR-1", name="Voyager")

    outcome = merge(folder, "june")

    assert (outcome.code, outcome.stdout) == (1, "")
    assert outcome.stderr == (
        "error: merge conflicts: node:Craft 'VGR-1' (divergent_update)\n"
        "  node:Craft 'VGR-1' divergent_update: both sides changed it, to different values\n"
    )
    assert names(folder)["VGR-1"] == "Voyager"


@pytest.mark.case("surfaces", 60)
def test_deletions_meet_changes_and_new_edges(folder: Path) -> None:
    change(folder, "retire", "june", code="VGR-1")
    change(folder, "rename", "main", code="VGR-1", name="Voyager")
    change(folder, "launch", "june", code="NEW-1", title="First")
    change(folder, "launch", "main", code="NEW-2", title="Second")
    assert "delete_vs_update" in merge(folder, "june").stderr
    change(folder, "retire", "main", code="VGR-1")
    assert merge(folder, "june").code == 0

    assert merge(folder, "main", "--into", "june").code == 0
    change(folder, "retire", "june", code="NEW-2")
    text = 'query add() { insert Flew { from: "NEW-2", to: "First" } }'
    assert invoke("mutate", "-e", text, "--store", GRAPH, cwd=folder).code == 0

    outcome = merge(folder, "june")

    assert outcome.code == 1
    assert "orphan_edge: src 'NEW-2' not found in Craft" in outcome.stderr


@pytest.mark.case("surfaces", 61)
def test_the_source_goes_with_the_merge_or_stays_with_a_warning(folder: Path) -> None:
    change(folder, "rename", "june", code="VGR-1", name="Wanderer")
    assert invoke("branch", "create", "july", "--from", "june", "--store", GRAPH, cwd=folder).code == 0

    kept = merge(folder, "june", "--delete-branch")
    assert invoke("branch", "delete", "july", "--store", GRAPH, cwd=folder).code == 0
    gone = merge(folder, "june", "--delete-branch")

    assert kept.code == gone.code == 0
    assert kept.stdout.startswith("merged june into main: fast_forward\n")
    assert kept.stderr == (
        "warning: june was merged but not deleted: branch 'june' cannot be deleted: "
        "branch 'july' was created from it\n"
    )
    assert gone.stdout == "merged june into main: already_up_to_date\ndeleted branch june\n"
    assert document("branch", "list", GRAPH, cwd=folder) == {"branches": ["main"]}


@pytest.mark.case("surfaces", 61)
def test_a_source_that_moved_on_stays_with_a_warning(folder: Path) -> None:
    change(folder, "rename", "june", code="VGR-1", name="Wanderer")

    def move_on() -> None:
        change(folder, "rename", "june", code="VGR-2", name="Late")

    with failpoint("branch_merge.post_capture", call=move_on):
        kept = merge(folder, "june", "--delete-branch", "--json")

    assert kept.code == 0
    assert "warning: june was merged but not deleted: branch 'june' has moved on to commit" in kept.stderr
    said = json.loads(kept.stdout)
    assert (said["branch_deleted"], said["branch_delete_refusal"]) == (False, "moved")
    assert document("branch", "list", GRAPH, cwd=folder) == {"branches": ["june", "main"]}


@pytest.mark.case("surfaces", 222)
def test_a_message_is_shown_wherever_a_commit_is_and_absent_where_none_was_given(folder: Path) -> None:
    """Of the case, schema apply and the server are still to come."""
    write(folder, "one.jsonl", lines(craft("CAS-1")))
    rename = ["rename", "--query", "atlas.gq", "--params", '{"code": "VGR-1", "name": "Wanderer"}']
    writes = {
        "mutation": ["mutate", *rename, "--branch", "june", "--store", GRAPH],
        "load": ["load", GRAPH, "--data", "one.jsonl", "--mode", "merge", "--no-index"],
        "merge": ["branch", "merge", "june", "--store", GRAPH],
    }
    branches = {"mutation": "june", "load": "main", "merge": "main"}

    for name, words in writes.items():
        refused = invoke(*words, "--message", "ä" * 2_048 + "x", cwd=folder)
        assert (refused.code, "4096 bytes" in refused.stderr) == (1, True), name
        done = invoke(*words, "--message", f"fix {name}", cwd=folder)
        assert done.code == 0, done
        listed = ["commit", "list", GRAPH, "--branch", branches[name], "--limit", "1"]
        commit = document(*listed, cwd=folder)["commits"][0]
        assert commit["message"] == f"fix {name}"
        assert f"fix {name}" in invoke(*listed, cwd=folder).stdout
        shown = ["commit", "show", commit["graph_commit_id"], "--store", GRAPH]
        assert document(*shown, cwd=folder)["message"] == f"fix {name}"
        assert f"fix {name}" in invoke(*shown, cwd=folder).stdout

    plain = [
        name for name, words in writes.items() if name != "merge" and invoke(*words, cwd=folder).code == 0
    ]
    for name in plain:
        listed = ["commit", "list", GRAPH, "--branch", branches[name], "--limit", "1"]
        commit = document(*listed, cwd=folder)["commits"][0]
        assert "message" not in commit
        assert "message" not in document(
            "commit", "show", commit["graph_commit_id"], "--store", GRAPH, cwd=folder
        )
    assert plain == ["mutation", "load"]


@pytest.mark.case("surfaces", 68)
def test_a_merge_commit_has_two_parents_and_its_message(folder: Path) -> None:
    change(folder, "rename", "june", code="VGR-1", name="Wanderer")
    heads = [
        document("commit", "list", GRAPH, "--branch", branch, "--limit", "1", cwd=folder)["commits"][0]
        for branch in ("main", "june")
    ]

    done = document(
        "branch", "merge", "june", "--message", "summer", "--as", "mira", "--store", GRAPH, cwd=folder
    )

    commit = done["commit"]
    assert [commit["parent_commit_id"], commit["merged_parent_commit_id"]] == [
        head["graph_commit_id"] for head in heads
    ]
    assert (commit["message"], commit["actor_id"], commit["manifest_branch"]) == ("summer", "mira", None)
    assert {key: done[key] for key in done if key != "commit"} == {
        "source": "june",
        "target": "main",
        "outcome": "fast_forward",
        "actor_id": "mira",
    }
    listed = document("commit", "list", GRAPH, "--filter", "merge=true", cwd=folder)["commits"]
    assert listed == [commit]


@pytest.mark.case("surfaces", 209)
def test_a_dry_run_lists_the_conflicts_and_writes_nothing(folder: Path) -> None:
    change(folder, "rename", "june", code="VGR-1", name="Wanderer")
    clean = merge(folder, "june", "--dry-run")
    change(folder, "rename", "main", code="VGR-1", name="Voyager")
    commits = document("commit", "list", GRAPH, cwd=folder)

    text = merge(folder, "june", "--dry-run")
    told: dict[str, Any] = document("branch", "merge", "june", "--dry-run", "--store", GRAPH, cwd=folder)

    assert clean.stdout == "would merge june into main: fast_forward; nothing was written\n"
    assert (text.code, text.stderr) == (0, "")
    assert text.stdout == (
        "cannot merge june into main: 1 conflict; nothing was written\n"
        "  node:Craft 'VGR-1' divergent_update: both sides changed it, to different values\n"
    )
    assert told["conflicts"] == [
        {
            "table_key": "node:Craft",
            "row_id": "VGR-1",
            "kind": "divergent_update",
            "message": "both sides changed it, to different values",
        }
    ]
    assert (told["commit"], told["outcome"]) == (None, "merged")
    assert document("commit", "list", GRAPH, cwd=folder) == commits


def test_conflicts_are_an_error_document_too(folder: Path) -> None:
    change(folder, "rename", "june", code="VGR-1", name="Wanderer")
    change(folder, "rename", "main", code="VGR-1", name="Voyager")

    outcome = merge(folder, "june", "--json")

    printed = json.loads(outcome.stdout)
    assert outcome.code == 1
    assert (printed["code"], [found["kind"] for found in printed["merge_conflicts"]]) == (
        "conflict",
        ["divergent_update"],
    )


def test_a_merge_takes_one_branch(folder: Path) -> None:
    assert merge(folder).code == 2
    assert merge(folder, "a", "b", "c").code == 2
    assert "branch 'july' not found" in merge(folder, "july").stderr
    assert "cannot be merged into itself" in merge(folder, "june", "--into", "june").stderr
