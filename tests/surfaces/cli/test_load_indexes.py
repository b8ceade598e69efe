"""The indexes that a load builds behind its own commit, and what searches answer with and without them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Outcome, omnigraph, write
from tests.support.in_process import document, invoke

GRAPH = "g.omni"
SCHEMA = """\
node Point {
    name: String @key
    note: String? @index
    spot: Vector(2)?
}
"""
POINTS = [
    {"name": "far", "note": "a distant light", "spot": [3, 4]},
    {"name": "home", "note": "the quiet harbour", "spot": [0, 0]},
    {"name": "nowhere"},
]
DATA = "".join(json.dumps({"type": "Point", "data": point}) + "\n" for point in POINTS)
SEARCH = 'query q() { match { $p: Point search($p.note, "harbour") } return { $p.name } }'
NEAREST = """\
query q($at: Vector(2)) {
    match { $p: Point }
    return { $p.name, nearest($p.spot, $at) as away }
    order { away }
    limit 2
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty graph and what is loaded into it."""
    write(tmp_path, "points.pg", SCHEMA)
    write(tmp_path, "points.jsonl", DATA)
    assert invoke("init", GRAPH, "--schema", "points.pg", cwd=tmp_path).code == 0
    return tmp_path


def load(folder: Path, *arguments: str) -> dict[str, Any]:
    arguments = ("load", GRAPH, "--data", "points.jsonl", "--mode", "append", *arguments)
    return document(*arguments, cwd=folder)


def actors(folder: Path) -> list[str | None]:
    """Return who made the commits since the graph was, newest first."""
    found = document("commit", "list", GRAPH, cwd=folder)["commits"]
    return [commit["actor_id"] for commit in found[:-1]]


def states(folder: Path) -> set[str]:
    tables = document("index", "status", GRAPH, cwd=folder)["tables"]
    return {index["coverage"] for table in tables for index in table["indexes"]}


def answer(folder: Path, query: str, **params: object) -> list[dict[str, Any]]:
    arguments = ["query", "-e", query, "--params", json.dumps(params), "--store", GRAPH]
    rows: list[dict[str, Any]] = document(*arguments, cwd=folder)["rows"]
    return rows


@pytest.mark.case("surfaces", 206)
def test_a_load_is_followed_by_a_commit_of_indexes_unless_it_is_told_not_to(folder: Path) -> None:
    bare = folder / "bare"
    write(bare, "points.jsonl", DATA)
    assert invoke("init", GRAPH, "--schema", folder / "points.pg", cwd=bare).code == 0

    with_indexes = load(folder, "--as", "ann")
    without = load(bare, "--as", "ann", "--no-index")

    assert actors(folder) == ["omnigraph:maintenance", "ann"]
    assert with_indexes["index_commit"] is not None
    assert states(folder) == {"indexed"}
    assert actors(bare) == ["ann"]
    assert without["index_commit"] is None
    assert states(bare) == {"missing"}
    for place in (folder, bare):
        assert [row["p.name"] for row in answer(place, SEARCH)] == ["home"]


@pytest.mark.case("surfaces", 206)
def test_a_build_that_fails_is_a_warning_and_the_load_has_succeeded(folder: Path) -> None:
    arguments = ("load", GRAPH, "--data", "points.jsonl", "--mode", "append", "--json", "--quiet")

    outcome: Outcome = omnigraph(
        *arguments, cwd=folder, OMNIGRAPH_FAILPOINTS="load.post_publish_pre_index=raise"
    )

    assert outcome.code == 0
    assert outcome.stderr.startswith("warning: ")
    pending = json.loads(outcome.stdout)["pending_indexes"]
    assert {item["property"] for item in pending} >= {"note"}
    assert [row["p.name"] for row in answer(folder, SEARCH)] == ["home"]


SEARCHES = {
    "search": ('search($p.note, "harbours")', "", ["bay", "home"]),
    "fuzzy": ('fuzzy($p.note, "distnat", 2)', "", ["far"]),
    "bm25": ("", 'order { bm25($p.note, "quiet") desc } limit 1', ["home"]),
    "nearest": ("", "order { nearest($p.spot, [3, 3]) } limit 2", ["far", "bay"]),
}


@pytest.mark.case("surfaces", 186)
@pytest.mark.parametrize("flags", [("--no-index",), ()], ids=["without indexes", "with indexes"])
def test_every_search_is_right_after_a_load_and_after_a_merge(folder: Path, flags: tuple[str, ...]) -> None:
    bay = {"type": "Point", "data": {"name": "bay", "note": "an old harbour", "spot": [0, 2]}}
    write(folder, "bay.jsonl", json.dumps(bay) + "\n")
    expected = "missing" if flags else "indexed"

    load(folder, *flags)
    before = {name: found(folder, *asked[:2]) for name, asked in SEARCHES.items()}
    assert states(folder) == {expected}
    assert invoke("branch", "create", GRAPH, "june", cwd=folder).code == 0
    words = ["load", GRAPH, "--data", "bay.jsonl", "--mode", "append", "--branch", "june", "--no-index"]
    assert invoke(*words, cwd=folder).code == 0
    assert invoke("branch", "merge", GRAPH, "june", cwd=folder).code == 0
    after = {name: found(folder, *asked[:2]) for name, asked in SEARCHES.items()}

    assert after == {name: asked[2] for name, asked in SEARCHES.items()}
    assert before == {**after, "search": ["home"], "nearest": ["far", "home"]}
    assert actors(folder).count("omnigraph:maintenance") == (0 if flags else 1)
    assert states(folder) <= ({"missing"} if flags else {"indexed", "degraded", "missing"})


def found(folder: Path, where: str, tail: str) -> list[str]:
    """Return the names that a search finds, in its order or in theirs."""
    query = f"query q() {{ match {{ $p: Point {where} }} return {{ $p.name }} {tail} }}"
    names = [str(row["p.name"]) for row in answer(folder, query)]
    return names if tail else sorted(names)


@pytest.mark.case("surfaces", 215)
def test_vectors_are_stored_as_given_and_compared_by_euclidean_distance(folder: Path) -> None:
    load(folder)

    exported = [json.loads(line)["data"] for line in invoke("export", GRAPH, cwd=folder).stdout.splitlines()]
    rows = answer(folder, NEAREST, at=[0, 0])

    assert {data["name"]: data["spot"] for data in exported} == {
        "far": [3.0, 4.0],
        "home": [0.0, 0.0],
        "nowhere": None,
    }
    assert [(row["p.name"], row["away"]) for row in rows] == [("home", 0.0), ("far", 5.0)]
