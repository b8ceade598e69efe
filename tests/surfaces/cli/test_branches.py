"""`omnigraph branch create`, `list` and `delete`: what they print, and how they end."""

from pathlib import Path

import pytest

from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import Outcome
from tests.support.in_process import document, invoke


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the graph."""
    place_atlas(tmp_path)
    return tmp_path


def branch(folder: Path, *words: str) -> Outcome:
    return invoke("branch", *words, "--store", GRAPH, "--quiet", cwd=folder)


def count(folder: Path, name: str) -> int:
    text = "query all() { match { $c: Craft } return { count($c) as n } }"
    found = document("query", "-e", text, "--branch", name, "--store", GRAPH, cwd=folder)
    return int(found["rows"][0]["n"])


def insert(folder: Path, name: str, code: str) -> None:
    text = f'query q() {{ insert Craft {{ code: "{code}", name: "{code}" }} }}'
    outcome = invoke("mutate", "-e", text, "--branch", name, "--store", GRAPH, "--quiet", cwd=folder)
    assert outcome.code == 0, outcome.stderr


@pytest.mark.case("surfaces", 55)
def test_a_branch_is_made_once(folder: Path) -> None:
    made = branch(folder, "create", "june")
    assert (made.code, made.stdout) == (0, "created branch june from main\n")
    assert branch(folder, "list").stdout == "june\nmain\n"

    again = branch(folder, "create", "june")
    assert (again.code, again.stderr) == (1, "error: branch 'june' already exists\n")
    taken = branch(folder, "create", "main")
    assert (taken.code, "reserved" in taken.stderr) == (1, True)
    assert document("branch", "list", "--store", GRAPH, cwd=folder) == {"branches": ["june", "main"]}


@pytest.mark.case("surfaces", 56)
def test_a_branch_above_another_by_name_is_independent_of_it(folder: Path) -> None:
    for name in ("review/june", "review"):
        assert branch(folder, "create", name).code == 0
        insert(folder, name, name.replace("/", "-"))
    assert branch(folder, "list").stdout == "main\nreview\nreview/june\n"
    before = count(folder, "main")
    assert count(folder, "review") == count(folder, "review/june") == before + 1

    assert branch(folder, "merge", "review").code == 0
    assert branch(folder, "delete", "review").stdout == "deleted branch review\n"
    assert count(folder, "review/june") == before + 1
    assert branch(folder, "merge", "review/june").stdout.startswith("merged review/june into main: merged")
    assert branch(folder, "delete", "review/june").code == 0
    assert (branch(folder, "list").stdout, count(folder, "main")) == ("main\n", before + 2)


@pytest.mark.case("surfaces", 62)
def test_main_and_branches_in_use_are_not_deleted(folder: Path) -> None:
    assert branch(folder, "delete", "main").code == 1
    assert branch(folder, "create", "june").code == 0
    child = branch(folder, "create", "july", "--from", "june")
    assert child.stdout == "created branch july from june\n"

    refused = branch(folder, "delete", "june")
    assert (refused.code, "'july' was created from it" in refused.stderr) == (1, True)
    missing = branch(folder, "delete", "august")
    assert (missing.code, missing.stderr) == (1, "error: branch 'august' not found\n")


def test_the_graph_may_come_first_by_position(folder: Path) -> None:
    made = invoke("branch", "create", GRAPH, "june", "--quiet", cwd=folder)
    assert (made.code, made.stdout) == (0, "created branch june from main\n")
    assert invoke("branch", "list", GRAPH, cwd=folder).stdout == "june\nmain\n"
    found = document("branch", "delete", GRAPH, "june", "--quiet", cwd=folder)
    assert found["name"] == "june"
    assert invoke("branch", "create", cwd=folder).code == 2


@pytest.mark.case("surfaces", 68)
def test_history_is_listed_by_branch(folder: Path) -> None:
    assert branch(folder, "create", "june").code == 0
    insert(folder, "june", "X")
    insert(folder, "main", "Y")
    assert branch(folder, "merge", "june").code == 0

    commits = document("commit", "list", "--store", GRAPH, cwd=folder)["commits"]
    assert commits[0]["merged_parent_commit_id"] is not None
    assert commits[0]["parent_commit_id"] == commits[1]["graph_commit_id"]
    of_june = document("commit", "list", "--branch", "june", "--store", GRAPH, cwd=folder)["commits"]
    assert of_june[0]["manifest_branch"] == "june"
    assert of_june[0]["graph_commit_id"] == commits[0]["merged_parent_commit_id"]
    snapshot = document("snapshot", "--branch", "june", "--store", GRAPH, cwd=folder)
    owners = {table["table_key"]: table.get("table_branch") for table in snapshot["tables"]}
    assert owners["node:Craft"] == "june"
    assert set(owners.values()) == {"june", None}


@pytest.mark.case("surfaces", 63)
def test_the_lock_of_a_schema_change_is_no_branch(folder: Path) -> None:
    for name in ("zeta", "alpha"):
        assert branch(folder, "create", name).code == 0
    lock = folder / GRAPH / "__branches" / "__schema_apply_lock__.json"
    lock.write_text("{}")

    assert branch(folder, "list").stdout == "alpha\nmain\nzeta\n"
    assert document("branch", "list", "--store", GRAPH, cwd=folder)["branches"] == ["alpha", "main", "zeta"]
    refused = branch(folder, "create", "beta")
    assert (refused.code, "schema change" in refused.stderr) == (1, True)
