"""Warm handles across histories that are not plain: rows that went and came back, and evicted views."""

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.graph.opening import open as open_graph
from tests.engine.dense.graphs import derived_of, pinned
from tests.support.queries import mutation, read

SCHEMA = "node Doc { name: String @key  text: String? @index }"
ALL = read("$d: Doc", "return { $d.name, $d.text } order { $d.name asc }")
FIND = read('$d: Doc search($d.text, "apple")', "return { $d.name } order { $d.name asc }")
STEPS = (
    mutation('update Doc set { text: "pear" } where name = "d19"'),
    mutation('delete Doc where name = "d1"'),
    1,  # back to what there was after so many steps
    mutation('update Doc set { text: "plum" } where name = "d16"'),
    mutation('delete Doc where name = "d4"'),
    mutation('update Doc set { text: "fig" } where name = "d18"'),
    2,
    mutation('delete Doc where name = "d7"'),
    mutation('update Doc set { text: "kiwi" } where name = "d15"'),
    5,
)


def docs(root: Path) -> Path:
    """Make a graph of thirty texts without an index."""
    lines = [{"type": "Doc", "data": {"name": f"d{n}", "text": "apple"}} for n in range(30)]
    with init(root, SCHEMA, durability="process") as graph:
        graph.load("".join(json.dumps(line) + "\n" for line in lines).encode(), "append", index=False)
    return root


def shown(graph: Graph) -> list[object]:
    """Return what a handle shows now, and at its newest commits."""
    commits = [commit.graph_commit_id for commit in graph.commits()[:6]]
    then = [graph.query(ALL, snapshot=commit).rows for commit in commits]
    return [graph.query(ALL).rows, graph.query(FIND).rows, commits, then]


@pytest.mark.case("engine", 412)
def test_a_warm_handle_shows_what_a_cold_one_shows_through_repairs(tmp_path: Path) -> None:
    root = docs(tmp_path / "graph")
    with open_graph(root, durability="process") as warm:
        versions = [warm.snapshot().manifest_version]
        shown(warm)
        for step in STEPS:
            if isinstance(step, int):
                og.repair(root, versions[step])
            else:
                warm.mutate(step)
            versions.append(warm.snapshot().manifest_version)
            with open_graph(root, mode="ro") as cold:
                assert shown(warm) == shown(cold), step


COUNT = read("$d: Doc", "return { count($d) as n }")


def test_rows_that_went_and_came_back_are_numbered_anew(tmp_path: Path) -> None:
    """Versions before and behind are equal; what is kept of the one in between must not pass for theirs."""
    root = docs(tmp_path / "graph")
    with open_graph(root, durability="process") as graph:
        derived, before = derived_of(graph), pinned(graph, "node:Doc")
        slots = derived.slots(before)
        version = graph.snapshot().manifest_version
        graph.mutate(mutation('update Doc set { text: "pear" } where name = "d3"'))
        og.repair(root, version)

        after = derived.slots(pinned(graph, "node:Doc"))

        assert after.layout == slots.layout
        assert after.generation != slots.generation


def test_a_snapshot_reads_with_the_slots_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_GRAPH_CACHE", "1")  # every other version puts its view out
    root = docs(tmp_path / "graph")
    with open_graph(root, durability="process") as graph:
        graph.query(COUNT)
        graph.mutate(mutation('delete Doc where name = "d0"'))
        early = graph.commits()[0].graph_commit_id
        first = graph.query(ALL, snapshot=early).rows
        graph.mutate(mutation('delete Doc where name = "d5"'))
        graph.query(COUNT)

        assert graph.query(ALL, snapshot=early).rows == first
        assert [row["d.name"] for row in first] == sorted(f"d{n}" for n in range(1, 30))


@pytest.mark.case("engine", 144)
def test_a_search_on_one_branch_says_nothing_about_another(tmp_path: Path) -> None:
    """Each branch hides one row of the same file: the counts are equal, the rows are not."""
    root = docs(tmp_path / "graph")
    with open_graph(root, durability="process") as graph:
        graph.create_branch("june")
        graph.mutate(mutation('delete Doc where name = "d1"'))
        graph.mutate(mutation('delete Doc where name = "d2"'), branch="june")

        on_main = {row["d.name"] for row in graph.query(FIND).rows}
        on_june = {row["d.name"] for row in graph.query(FIND, branch="june").rows}

    everything = {f"d{n}" for n in range(30)}
    assert (on_main, on_june) == (everything - {"d1"}, everything - {"d2"})
