"""A writer that dies in the middle of a commit, the next command that heals, and what the audit says."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from omnigraph.graph.opening import open as open_graph
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.storage.files.version_file import VERSIONS_DIR, version_file_name
from tests.support.atlas import (
    GRAPH,
    SEED_ROWS,
    commits,
    craft,
    digest,
    lines,
    place_atlas,
    row_counts,
    rows,
)
from tests.support.commands import Outcome, omnigraph
from tests.support.in_process import document, invoke
from tests.support.seam import internals

DIED = 86
FORWARD = "write.post_finalize_pre_publisher=exit"
BACK = "write.post_table_commit=exit"


def die(folder: Path, failpoints: str, code: str = "CAS-1", *flags: str) -> Outcome:
    """Start a writer of two tables and more, and let it end half-way."""
    params = json.dumps({"code": code, "title": "Saturn"})
    words = ["mutate", "launch", "--query", "atlas.gq", "--store", GRAPH, "--as", "act-tomas"]
    return omnigraph(*words, "--params", params, *flags, cwd=folder, OMNIGRAPH_FAILPOINTS=failpoints)


def heal(folder: Path) -> Outcome:
    """Make the next write, whatever it is."""
    words = ["rename", "--query", "atlas.gq", "--params", '{"code": "VGR-1", "name": "Voyager"}']
    return invoke("mutate", *words, "--store", GRAPH, "--as", "act-mira", cwd=folder)


def recoveries(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return what the audit says."""
    found: list[dict[str, Any]] = document("recovery", "list", GRAPH, *arguments, cwd=folder)["recoveries"]
    return found


def sidecars(graph: Path) -> list[str]:
    """Return the names of unfinished writes."""
    return [path.name for path in (graph / "__recovery").glob("*.json")]


@pytest.mark.case("surfaces", 66)
def test_a_write_that_died_before_its_publish_is_finished_by_the_next_one(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)

    died = die(tmp_path, FORWARD)
    left, seen = sidecars(graph), row_counts(tmp_path)
    healed = heal(tmp_path)

    assert (died.code, died.stdout) == (DIED, "")
    assert len(left) == 1
    assert seen == SEED_ROWS
    assert healed.code == 0
    assert row_counts(tmp_path) == {"node:Craft": 4, "node:Mission": 3, "edge:Flew": 4}
    assert "CAS-1" in {row["code"] for row in rows(graph, "Craft")}
    assert sidecars(graph) == []
    (commit,) = commits(tmp_path, "--filter", "actor=omnigraph:recovery")
    (recovery,) = recoveries(tmp_path)
    assert recovery["operation_id"] == left[0].removesuffix(".json")
    assert recovery["recovery_for_actor"] == "act-tomas"
    assert recovery["graph_commit_id"] == commit["graph_commit_id"]
    assert [found["actor_id"] for found in commits(tmp_path)[:2]] == ["act-mira", "omnigraph:recovery"]


def test_the_document_of_a_write_that_was_finished(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    die(tmp_path, FORWARD)
    heal(tmp_path)

    (recovery,) = recoveries(tmp_path)

    commit = commits(tmp_path)[1]
    assert recovery == {
        "operation_id": recovery["operation_id"],
        "recovery_kind": "rolled_forward",
        "graph_commit_id": commit["graph_commit_id"],
        "recovery_for_actor": "act-tomas",
        "writer_kind": "mutation",
        "created_at": recovery["created_at"],
        "tables": [
            {"table_key": key, "from_version": 3, "to_version": 4}
            for key in ("edge:Flew", "node:Craft", "node:Mission")
        ],
    }
    assert abs(recovery["created_at"] - commit["created_at"]) < 60_000_000


def test_a_write_that_died_between_its_tables_is_undone(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    died = die(tmp_path, BACK)
    healed = heal(tmp_path)

    assert died.code == DIED
    assert healed.code == 0
    assert row_counts(tmp_path) == SEED_ROWS
    (recovery,) = recoveries(tmp_path)
    assert (recovery["recovery_kind"], recovery["writer_kind"]) == ("rolled_back", "mutation")
    assert [table["table_key"] for table in recovery["tables"]]


@pytest.mark.case("surfaces", 208)
def test_the_audit_knows_four_kinds(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    die(tmp_path, BACK)
    heal(tmp_path)
    die(tmp_path, FORWARD)
    heal(tmp_path)
    assert invoke("branch", "create", GRAPH, "june", cwd=tmp_path).code == 0
    assert die(tmp_path, FORWARD, "CAS-2", "--branch", "june").code == DIED
    with open_graph(graph, mode="ro") as opened:  # as if it had been deleted on a host that died
        branches = internals(opened).parts.branches
        branches.delete(branches.require("june"))
    heal(tmp_path)
    newest = max((graph / MANIFEST_DIR / VERSIONS_DIR).glob("*.manifest"), key=version_of)
    (graph / MANIFEST_DIR / version_file_name(version_of(newest) + 1)).write_bytes(b"")
    heal(tmp_path)

    found = recoveries(tmp_path)

    assert [recovery["recovery_kind"] for recovery in found] == [
        "version_quarantined",
        "orphaned_branch_discarded",
        "rolled_forward",
        "rolled_back",
    ]
    assert [recovery.get("writer_kind") for recovery in found] == [None, "mutation", "mutation", "mutation"]
    assert "writer_kind" not in found[0]
    now = time.time() * 1e6
    assert all(now - 3_600e6 < recovery["created_at"] <= now + 1e6 for recovery in found)
    assert [len(recovery["tables"]) for recovery in found] == [1, 0, 3, 1]
    for recovery in found:
        for table in recovery["tables"]:
            assert table.keys() == {"table_key", "from_version", "to_version"}
            assert {type(table[key]) for key in ("from_version", "to_version")} == {int}
    assert found[0]["tables"][0]["table_key"] == MANIFEST_DIR


def version_of(path: Path) -> int:
    """Return the version that a file of versions is named for."""
    return 2**64 - 1 - int(path.stem)


def test_recoveries_are_listed_newest_first_and_as_many_as_asked_for(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    die(tmp_path, BACK)
    heal(tmp_path)
    die(tmp_path, FORWARD)
    heal(tmp_path)

    assert [found["recovery_kind"] for found in recoveries(tmp_path)] == ["rolled_forward", "rolled_back"]
    assert recoveries(tmp_path, "--limit", "1") == recoveries(tmp_path)[:1]
    assert recoveries(tmp_path, "--limit", "0") == []


def test_recoveries_for_people(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = invoke("recovery", "list", GRAPH, cwd=tmp_path)
    die(tmp_path, FORWARD)
    heal(tmp_path)

    listed = invoke("recovery", "list", GRAPH, cwd=tmp_path)

    (recovery,) = recoveries(tmp_path)
    assert before.stdout == "no recoveries\n"
    first, second, *tables = listed.stdout.splitlines()
    assert first.endswith("  rolled_forward of a mutation by act-tomas, 3 tables")
    assert second == f"  operation {recovery['operation_id']}, commit {recovery['graph_commit_id']}"
    assert tables == [f"  {key}: version 3 to 4" for key in ("edge:Flew", "node:Craft", "node:Mission")]


def test_a_look_at_the_graph_leaves_the_unfinished_write_alone(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    die(tmp_path, FORWARD)
    before = digest(graph)

    looks = [invoke(*words, GRAPH, cwd=tmp_path) for words in (["snapshot"], ["commit", "list"])]

    assert [look.code for look in looks] == [0, 0]
    assert digest(graph) == before


@pytest.mark.parametrize(
    "arguments",
    [["load", "--data", "-", "--mode", "append", "--quiet"], ["index", "ensure", "--quiet"]],
    ids=["load", "index ensure"],
)
def test_every_command_that_writes_heals(arguments: list[str], tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    die(tmp_path, FORWARD)

    outcome = invoke(*arguments, "--store", GRAPH, cwd=tmp_path, stdin=lines(craft("NEW-1")))

    assert outcome.code == 0
    assert sidecars(graph) == []
    assert row_counts(tmp_path)["node:Mission"] == 3


def test_a_load_that_died_is_a_load_in_the_audit(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    words = ["load", GRAPH, "--data", "-", "--mode", "append", "--as", "act-tomas"]

    died = omnigraph(*words, cwd=tmp_path, stdin=lines(craft("NEW-1")), OMNIGRAPH_FAILPOINTS=FORWARD)
    heal(tmp_path)

    assert died.code == DIED
    assert [found["writer_kind"] for found in recoveries(tmp_path)] == ["load"]
    assert row_counts(tmp_path)["node:Craft"] == 4
