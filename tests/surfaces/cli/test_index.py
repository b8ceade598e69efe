"""`omnigraph index`: building what is missing, and saying what there is."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.atlas import ATLAS, GRAPH, SEED, commits, craft, head, lines, place_atlas
from tests.support.commands import write
from tests.support.in_process import document, invoke

VECTORS = ATLAS.replace("    launched: Date?", "    launched: Date?\n    shape: Vector(4)? @index")


def coverage(folder: Path, *, coverage_of: str = GRAPH) -> dict[str, dict[str, str]]:
    """Return, per table and property, what each index covers."""
    status = document("index", "status", coverage_of, cwd=folder)
    return {
        table["table_key"]: {index["property"]: index["coverage"] for index in table["indexes"]}
        for table in status["tables"]
    }


def make(folder: Path, schema: str = ATLAS, *arguments: str) -> None:
    """Make a graph and load the seed."""
    write(folder, "atlas.pg", schema)
    write(folder, "seed.jsonl", lines(*SEED))
    assert invoke("init", GRAPH, "--schema", "atlas.pg", cwd=folder).code == 0
    loaded = invoke("load", GRAPH, "--data", "seed.jsonl", "--mode", "append", *arguments, cwd=folder)
    assert loaded.code == 0, loaded


def test_a_load_is_followed_by_a_commit_that_builds_its_indexes(tmp_path: Path) -> None:
    make(tmp_path)

    built, loaded, genesis = commits(tmp_path)

    assert built["actor_id"] == "omnigraph:maintenance"
    assert (built["parent_commit_id"], loaded["parent_commit_id"]) == (
        loaded["graph_commit_id"],
        genesis["graph_commit_id"],
    )
    assert coverage(tmp_path) == {
        "edge:Flew": {"id": "indexed", "src": "indexed", "dst": "indexed"},
        "node:Craft": {"id": "indexed", "code": "indexed", "name": "indexed"},
        "node:Mission": {"id": "indexed", "title": "indexed"},
    }


def test_without_indexes_a_load_is_one_commit_and_they_can_be_built_later(tmp_path: Path) -> None:
    make(tmp_path, ATLAS, "--no-index")
    before = coverage(tmp_path)

    built = document("index", "ensure", GRAPH, cwd=tmp_path)

    assert {state for table in before.values() for state in table.values()} == {"missing"}
    assert len(commits(tmp_path)) == 3
    assert built == {"uri": GRAPH, "branch": "main", "pending": [], "commit": commits(tmp_path)[0]}
    assert {state for table in coverage(tmp_path).values() for state in table.values()} == {"indexed"}


def test_where_nothing_is_missing_nothing_is_built(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    before = head(tmp_path)

    outcome = invoke("index", "ensure", GRAPH, cwd=tmp_path)
    built = document("index", "ensure", GRAPH, cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (0, "nothing to build\n")
    assert (built["commit"], head(tmp_path)) == (None, before)


def test_an_index_that_cannot_be_built_yet_is_pending_and_no_failure(tmp_path: Path) -> None:
    make(tmp_path, VECTORS)

    status = document("index", "status", GRAPH, cwd=tmp_path)
    ensured = invoke("index", "ensure", GRAPH, "--quiet", cwd=tmp_path)

    (table,) = [table for table in status["tables"] if table["table_key"] == "node:Craft"]
    assert {
        "property": "shape",
        "kind": "vector",
        "coverage": "pending",
        "reason": "no vector to train on",
    } in table["indexes"]
    assert (ensured.code, ensured.stdout) == (0, "nothing to build\n")
    assert ensured.stderr == "warning: 1 index pending\n  node:Craft shape: no vector to train on\n"


def test_a_load_names_what_is_pending_and_a_vector_ends_that(tmp_path: Path) -> None:
    make(tmp_path, VECTORS)
    words = ["load", GRAPH, "--mode", "merge", "--data", "-"]

    waiting = document(*words, cwd=tmp_path, stdin=lines(craft("NEW-1")))
    trained = document(*words, cwd=tmp_path, stdin=lines(craft("NEW-2", shape=[1, 0, 0, 0])))

    pending = {"table_key": "node:Craft", "property": "shape", "reason": "no vector to train on"}
    assert waiting["pending_indexes"] == [pending]
    assert trained["pending_indexes"] == []
    assert coverage(tmp_path)["node:Craft"]["shape"] == "indexed"


def test_rows_that_came_later_are_not_covered_yet(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    words = ["load", GRAPH, "--mode", "append", "--no-index", "--data", "-"]
    invoke(*words, cwd=tmp_path, stdin=lines(craft("NEW-1")))

    assert set(coverage(tmp_path)["node:Craft"].values()) == {"degraded"}


def test_the_indexes_of_an_empty_table_are_pending(tmp_path: Path) -> None:
    write(tmp_path, "atlas.pg", ATLAS)
    invoke("init", GRAPH, "--schema", "atlas.pg", cwd=tmp_path)

    status: dict[str, Any] = document("index", "status", GRAPH, cwd=tmp_path)

    assert status.keys() == {"uri", "branch", "tables"}
    for table in status["tables"]:
        assert {index["reason"] for index in table["indexes"]} == {"no row to index"}


def test_the_status_for_people_is_a_table(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = invoke("index", "status", GRAPH, cwd=tmp_path)

    title, *lines_ = outcome.stdout.splitlines()
    assert title.split() == ["table", "property", "kind", "coverage", "reason"]
    assert ["node:Craft", "name", "fulltext", "indexed"] in [line.split() for line in lines_]
    assert outcome.stderr == f"omnigraph index status → {GRAPH} (direct, local)\n"


@pytest.mark.parametrize(
    ("verb", "reason"), [("ensure", "does not apply to maintenance"), ("status", "applies to writes")]
)
def test_index_builds_have_no_author_but_the_engine(verb: str, reason: str, tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = invoke("index", verb, GRAPH, "--as", "act-mira", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert f"--as {reason}" in outcome.stderr


@pytest.mark.case("surfaces", 253)
def test_an_update_leaves_indexes_that_lack_a_row_and_say_so(tmp_path: Path) -> None:
    write(tmp_path, "pair.pg", "node Pair { code: String @key  size: I32? @index }\n")
    invoke("init", GRAPH, "--schema", "pair.pg", cwd=tmp_path)
    pair = [{"type": "Pair", "data": {"code": code, "size": 1}} for code in ("a", "b")]
    invoke("load", GRAPH, "--mode", "append", "--data", "-", cwd=tmp_path, stdin=lines(*pair))
    write(tmp_path, "grow.gq", 'query grow() { update Pair set { size: 2 } where code = "a" }')
    assert invoke("mutate", "grow", "--query", "grow.gq", "--store", GRAPH, cwd=tmp_path).code == 0

    status: dict[str, Any] = document("index", "status", GRAPH, cwd=tmp_path)

    (table,) = status["tables"]
    assert {index["coverage"] for index in table["indexes"]} == {"degraded"}
    assert {(index["reason"], index["rows_uncovered"]) for index in table["indexes"]} == {
        ("1 of 2 rows not covered: written since it was built", 1)
    }


@pytest.mark.case("surfaces", 460)
@pytest.mark.case("surfaces", 461)
def test_one_index_is_built_anew(tmp_path: Path) -> None:
    place_atlas(tmp_path)
    update = 'query q() { update Craft set { name: "Xena" } where code = "L5" }'
    invoke("mutate", "--store", GRAPH, "-e", update, cwd=tmp_path)
    before = index_files(tmp_path)
    head_before = head(tmp_path)

    wrong = [
        invoke("index", "rebuild", GRAPH, *words, cwd=tmp_path)
        for words in (("Raft", "name"), ("Craft", "launched"), (), ("a", "b", "c"))
    ]
    assert [outcome.code for outcome in wrong] == [1, 1, 2, 2]
    assert "has no index of 'launched', only of id, code, name" in wrong[1].stderr
    turned = invoke("index", "rebuild", "Craft", "name", GRAPH, cwd=tmp_path)
    assert "the graph is the first word of 'index rebuild URI TYPE PROPERTY'" in turned.stderr
    assert head(tmp_path) == head_before

    built = document("index", "rebuild", GRAPH, "Craft", "name", cwd=tmp_path)

    assert built == {"uri": GRAPH, "branch": "main", "pending": [], "commit": commits(tmp_path)[0]}
    assert built["commit"]["actor_id"] == "omnigraph:maintenance"
    assert before < index_files(tmp_path)
    assert coverage(tmp_path)["node:Craft"]["name"] == "indexed"
    plain = invoke("index", "rebuild", GRAPH, "node:Craft", "name", cwd=tmp_path)
    assert plain.stdout.startswith("indexes built")


def index_files(folder: Path) -> set[str]:
    """Return the folders of index segments that are on the disk."""
    return {path.name for path in (folder / GRAPH).glob("nodes/*/_indices/*")}
