"""One index built anew: the commit that brings the new segment takes the old ones away."""

from pathlib import Path

import pytest

from omnigraph.core.errors import BadRequest
from omnigraph.graph.graph import Graph
from omnigraph.storage.tables.index import name_of
from tests.support.engine import ndjson, new_graph, node
from tests.support.seam import internals

SCHEMA = """\
node Person {
    name: String @key
    nick: String? @index
    score: F64? @index
    eye: Vector(2)? @index
}
"""
SEARCH = 'query q() { match { $p: Person search($p.nick, "later") } return { $p.name } order { $p.name } }'


def people(first: int, last: int, word: str, **more: object) -> bytes:
    return ndjson(
        node("Person", name=f"p{n}", nick=f"{word} n{n}", score=n / 2, **more) for n in range(first, last)
    )


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Return a graph whose indexes lack the rows that were written last."""
    made = new_graph(tmp_path / "graph", SCHEMA)
    made.load(people(0, 8, "early", eye=[1.0, 0.0]), "append")
    made.load(people(4, 12, "later"), "merge", index=False)
    return made


def segments(graph: Graph, branch: str | None = None) -> dict[str, list[tuple[str, int]]]:
    """Return the segments of each index: their uuids, and how many fragments they cover."""
    handle = internals(graph).parts.open(graph.snapshot(branch).entry("node:Person"))
    return {
        name_of(item): [(segment.uuid, len(segment.fragment_ids)) for segment in item.segments]
        for item in handle._dataset.describe_indices()
    }


@pytest.mark.case("engine", 748)
@pytest.mark.parametrize("name", ["nick", "score", "eye", "id"])
def test_an_index_is_replaced_by_one_over_all_rows(graph: Graph, name: str) -> None:
    before, found = segments(graph), graph.query(SEARCH).rows

    result = graph.rebuild_index("Person", name)

    assert result.commit is not None
    assert (result.commit.actor_id, result.pending) == ("omnigraph:maintenance", ())
    (changed,) = [key for key in before if key.startswith(f"{name}__")]
    after = segments(graph)
    assert {key: after[key] for key in after if key != changed} == {
        key: before[key] for key in before if key != changed
    }
    ((uuid, covered),) = after[changed]
    assert uuid not in {old for old, _ in before[changed]}
    assert covered == internals(graph).parts.open(graph.snapshot().entry("node:Person")).fragment_count
    assert graph.query(SEARCH).rows == found
    assert [row["p.name"] for row in found] == sorted(f"p{n}" for n in range(4, 12))
    assert graph.query("query q() { match { $p: Person { score: 2.5 } } return { $p.name } }").rows == [
        {"p.name": "p5"}
    ]
    assert graph.verify(deep=True).is_whole


@pytest.mark.case("engine", 748)
def test_a_branch_builds_on_its_own_fork(graph: Graph) -> None:
    graph.create_branch("june")
    before = segments(graph)

    graph.rebuild_index("node:Person", "nick", branch="june")

    assert segments(graph) == before
    assert segments(graph, "june")["nick__fts"] != before["nick__fts"]
    assert segments(graph, "june")["score__btree"] == before["score__btree"]
    assert graph.query(SEARCH, branch="june").rows == graph.query(SEARCH).rows
    assert graph.verify(deep=True).is_whole


@pytest.mark.case("engine", 748)
def test_an_index_that_cannot_be_built_stays(graph: Graph) -> None:
    graph.load(ndjson(node("Person", name=f"p{n}") for n in range(12)), "merge", index=False)
    before, commits = segments(graph), len(graph.commits())

    result = graph.rebuild_index("Person", "eye")

    assert result.commit is None
    assert [(item.property, item.reason) for item in result.pending] == [("eye", "no vector to train on")]
    assert (segments(graph), len(graph.commits())) == (before, commits)


@pytest.mark.case("engine", 748)
@pytest.mark.parametrize(("type_name", "property_name"), [("Raft", "name"), ("Person", "size"), (3, "name")])
def test_what_has_no_index_is_refused(graph: Graph, type_name: str, property_name: str) -> None:
    commits = len(graph.commits())

    with pytest.raises(BadRequest):
        graph.rebuild_index(type_name, property_name)

    assert len(graph.commits()) == commits
