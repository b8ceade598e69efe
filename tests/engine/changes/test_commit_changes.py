"""What one commit changed, whole and page by page."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from omnigraph.catalog.build import ir_text, read_schema
from omnigraph.catalog.identity import inherit, resolve
from omnigraph.changes.model import EntityChange
from omnigraph.commit.changes import SetSchema, TombstoneTable
from omnigraph.core.errors import (
    BadRequest,
    ChangeCursorRejected,
    ChangeSchemaBoundary,
    CommitHasNoParent,
    CommitNotFound,
    ResourceLimit,
)
from omnigraph.core.span import Source
from omnigraph.graph.graph import Graph
from tests.engine.changes.reading import committed, ends, ordered, properties, short, update_age
from tests.support.engine import Publisher, edge, ndjson, new_graph, node
from tests.support.people_graph import SCHEMA, people_graph
from tests.support.seam import internals


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "graph")


def pages(
    graph: Graph, commit_id: str, *, limit: int = 1_000, page_bytes: int = 4_000_000
) -> Iterator[tuple[EntityChange, ...]]:
    """Yield the changes of each page."""
    token: str | None = None
    while True:
        page = graph.commit_changes_page(commit_id, page_token=token, limit=limit, page_bytes=page_bytes)
        assert page.cause.graph_commit_id == commit_id
        yield page.changes
        token = page.next_page_token
        if token is None:
            return


@pytest.mark.case("engine", 275)
def test_a_commit_has_its_cause_and_exact_images(graph: Graph) -> None:
    parent = graph.commits(limit=1)[0].graph_commit_id
    text = 'query q() { update Person set { age: 5, town: "q" } where name = "c" }'
    commit_id = committed(graph, text, actor="act-mira")

    found = graph.commit_changes(commit_id)
    (change,) = found

    commit = graph.commit(commit_id)
    assert (found.cause.graph_commit_id, found.cause.parent_commit_id) == (commit_id, parent)
    assert (found.cause.authored_branch, found.cause.actor_id) == ("main", "act-mira")
    assert (found.cause.authored_at, found.cause.merged_parent_commit_id) == (commit.created_at, None)
    assert properties(change.before) == {"name": "c", "age": 2, "share": None, "town": None}
    assert properties(change.after) == {"name": "c", "age": 5, "share": None, "town": "q"}


@pytest.mark.case("engine", 275)
def test_nodes_come_before_edges_then_types_by_their_id_then_entities(graph: Graph) -> None:
    load = graph.commits(limit=1)[0].graph_commit_id
    graph.load(ndjson([node("Empty", name="x"), edge("Holds", "a", "x", id="h")]), "append", index=False)
    second = graph.commits(limit=1)[0].graph_commit_id

    for commit_id in (load, second):
        changes = list(graph.commit_changes(commit_id))
        keys = [(change.kind == "edge", change.type.id, change.id) for change in changes]
        assert keys == sorted(keys)
        assert len(keys) == len(set(keys))
    assert len(list(graph.commit_changes(load))) == 11


@pytest.mark.case("engine", 275)
def test_values_of_every_type_are_those_of_an_export(tmp_path: Path) -> None:
    schema = """\
node All {
    name: String @key
    whole: I64?
    large: U64?
    part: F32?
    day: Date?
    at: DateTime?
    tags: [String]?
    place: Vector(2)?
    file: Blob?
}
"""
    graph = new_graph(tmp_path / "graph", schema)
    given = {
        "name": "x",
        "whole": "-9007199254740993",
        "large": "18446744073709551615",
        "part": 0.1,
        "day": "2026-01-31",
        "at": "2026-01-31T12:34:56.789Z",
        "tags": ["a", ""],
        "place": [1.5, -2],
        "file": "base64:AAEC",
    }
    graph.load(ndjson([node("All", **given), node("All", name="y")]), "append", index=False)

    full, empty = graph.commit_changes(graph.commits(limit=1)[0].graph_commit_id)

    times = {"day": date(2026, 1, 31), "at": datetime(2026, 1, 31, 12, 34, 56, 789_000, tzinfo=UTC)}
    assert properties(full.after) == given | times | {"place": [1.5, -2.0]}
    assert properties(empty.after) == dict.fromkeys(given) | {"name": "y"}


@pytest.mark.case("engine", 275)
def test_a_blob_that_changed_is_a_change_and_an_equal_one_is_none(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph", "node File { name: String @key  data: Blob? }")
    graph.load(ndjson([node("File", name="a", data="base64:AAEC"), node("File", name="b")]), "append")
    again = ndjson([node("File", name="a", data="base64:AAED"), node("File", name="b")])
    graph.load(again, "merge", index=False)
    commit_id = graph.commits(limit=1)[0].graph_commit_id

    (change,) = graph.commit_changes(commit_id)

    assert properties(change.before) == {"name": "a", "data": "base64:AAEC"}
    assert properties(change.after) == {"name": "a", "data": "base64:AAED"}


@pytest.mark.case("engine", 275)
def test_an_edge_carries_its_ends_in_each_image(graph: Graph) -> None:
    graph.load(ndjson([edge("Knows", "d", "b", id="k6", since=9)]), "merge", index=False)
    commit_id = graph.commits(limit=1)[0].graph_commit_id

    (change,) = graph.commit_changes(commit_id)

    assert (ends(change.before), ends(change.after)) == (("d", "a"), ("d", "b"))
    assert (properties(change.before), properties(change.after)) == ({"since": 6}, {"since": 9})


@pytest.mark.case("engine", 275)
def test_a_commit_that_moved_no_row_is_an_empty_block(graph: Graph) -> None:
    built = graph.ensure_indices().commit
    assert built is not None

    page = graph.commit_changes_page(built.graph_commit_id)

    assert (page.changes, page.next_page_token) == ((), None)
    assert page.cause.actor_id == "omnigraph:maintenance"


@pytest.mark.case("engine", 275)
def test_a_merge_is_told_against_its_first_parent(graph: Graph) -> None:
    graph.create_branch("june")
    update_age(graph, "a", 6, branch="june")
    update_age(graph, "b", 7)
    merged = graph.merge("june").commit
    assert merged is not None

    found = graph.commit_changes(merged.graph_commit_id)

    assert short(found) == ["~Person a"]
    assert found.cause.merged_parent_commit_id is not None


@pytest.mark.case("engine", 276)
def test_the_first_commit_has_nothing_to_be_told_against(graph: Graph) -> None:
    genesis = graph.commits()[-1].graph_commit_id

    with pytest.raises(CommitHasNoParent) as raised:
        graph.commit_changes(genesis)

    assert (raised.value.graph_commit_id, raised.value.reason) == (genesis, "parentless_commit")
    assert (raised.value.status, raised.value.detail) == (409, "change_diff_refusal")
    with pytest.raises(CommitNotFound):
        graph.commit_changes("01NOSUCHCOMMIT")


@pytest.mark.case("engine", 276)
@pytest.mark.parametrize(
    ("schema", "refused"),
    [
        (SCHEMA.replace("age: I64?", ""), "Person"),
        (SCHEMA.replace("age: I64?", "age: I64?  more: String?"), "Person"),
        (SCHEMA.replace("share: F64?", 'part: F64? @rename_from("share")'), None),
        (
            SCHEMA.replace("node Person", 'node Human @rename_from("Person")')
            .replace("Person ->", "Human ->")
            .replace("-> Person", "-> Human"),
            None,
        ),
    ],
)
def test_a_commit_that_changed_properties_is_refused_and_a_rename_is_not(
    graph: Graph, schema: str, refused: str | None
) -> None:
    accepted = internals(graph).contract.accepted
    desired = read_schema(Source(schema))
    text = ir_text(inherit(accepted, desired, resolve(accepted, desired)))
    outcome = Publisher(graph).publish(SetSchema(text, schema, 1))
    commit_id = outcome.commit.graph_commit_id

    if refused is None:
        assert list(graph.commit_changes(commit_id)) == []
        return
    with pytest.raises(ChangeSchemaBoundary) as raised:
        list(graph.commit_changes(commit_id))

    assert (raised.value.type_name, raised.value.graph_commit_id) == (refused, commit_id)
    assert list(graph.commit_changes(commit_id, types=["Empty"])) == []


@pytest.mark.case("engine", 275)
@pytest.mark.parametrize("limit", [1, 2, 4, 11, 8_192])
def test_pages_together_are_the_whole(graph: Graph, limit: int) -> None:
    commit_id = graph.commits(limit=1)[0].graph_commit_id
    whole = list(graph.commit_changes(commit_id))

    found = list(pages(graph, commit_id, limit=limit))

    assert [change for page in found for change in page] == whole
    assert all(len(page) == limit for page in found[:-1])
    assert 0 < len(found[-1]) <= limit


@pytest.mark.case("engine", 275)
def test_a_page_token_belongs_to_its_commit_and_filter(graph: Graph) -> None:
    first = graph.commits(limit=1)[0].graph_commit_id
    graph.load(ndjson([node("Empty", name=name) for name in "xyz"]), "append", index=False)
    second = graph.commits(limit=1)[0].graph_commit_id
    token = graph.commit_changes_page(first, limit=2).next_page_token
    assert token is not None

    with pytest.raises(ChangeCursorRejected, match="another commit"):
        graph.commit_changes_page(second, page_token=token)
    with pytest.raises(ChangeCursorRejected, match="another filter"):
        graph.commit_changes_page(first, kinds=["node"], page_token=token)
    with pytest.raises(ChangeCursorRejected, match="expected a cursor"):
        graph.poll_changes(cursor=token)


@pytest.mark.case("engine", 279)
def test_a_change_that_is_larger_than_a_page_travels_alone(graph: Graph) -> None:
    texts = {"p1": 10, "p2": 5_000, "p3": 10, "p4": 10}
    people = [node("Person", name=name, town="x" * length) for name, length in texts.items()]
    graph.load(ndjson(people), "append", index=False)
    commit_id = graph.commits(limit=1)[0].graph_commit_id

    found = [[change.id for change in page] for page in pages(graph, commit_id, page_bytes=600)]

    assert found == [["p1"], ["p2"], ["p3", "p4"]]


@pytest.mark.case("engine", 279)
def test_long_ids_resume_exactly(graph: Graph) -> None:
    stem = "ü" * 200
    names = sorted([f"{stem}{number:02d}" for number in range(7)] + [stem, stem[:-1], "short"])
    graph.load(ndjson(node("Person", name=name) for name in names), "append", index=False)
    commit_id = graph.commits(limit=1)[0].graph_commit_id

    found = list(pages(graph, commit_id, limit=1))

    assert [[change.id for change in page] for page in found] == [[name] for name in names]


def test_pages_are_neither_empty_nor_larger_than_their_ceiling(graph: Graph) -> None:
    commit_id = graph.commits(limit=1)[0].graph_commit_id

    with pytest.raises(BadRequest, match="number of changes of a page must be at least 1"):
        graph.commit_changes_page(commit_id, limit=0)
    with pytest.raises(ResourceLimit) as raised:
        graph.commit_changes_page(commit_id, limit=8_193)
    assert (raised.value.limit, raised.value.actual, raised.value.status) == (8_192, 8_193, 413)
    with pytest.raises(ResourceLimit):
        graph.commit_changes_page(commit_id, page_bytes=33 * 1024 * 1024)


def test_all_commits_of_a_history_together_are_the_difference_of_its_ends(graph: Graph) -> None:
    start = graph.commits(limit=1)[0].graph_commit_id
    for number in range(6):
        update_age(graph, "abcdea"[number], 50 + number)
    committed(graph, 'query q() { delete Person where name = "c" }')
    state: dict[str, object] = {}
    order = [commit.graph_commit_id for commit in reversed(graph.commits())]

    for _, commit_id in pairwise(order[order.index(start) :]):
        for change in graph.commit_changes(commit_id):
            state[f"{change.type.name} {change.id}"] = properties(change.after)

    assert state == {
        f"{change.type.name} {change.id}": properties(change.after) for change in graph.diff("main", start)
    }
    assert ordered(graph.diff("main", start)) == [
        "-Knows k4",
        "-Knows k5",
        "~Person a",
        "~Person b",
        "-Person c",
        "~Person d",
        "~Person e",
    ]


def test_a_commit_that_dropped_a_populated_type_is_refused(graph: Graph) -> None:
    accepted = internals(graph).contract.accepted
    kept = [line for line in SCHEMA.splitlines() if not line.startswith("edge Knows")]
    desired = read_schema(Source("\n".join(kept)))
    text = ir_text(inherit(accepted, desired, resolve(accepted, desired)))
    knows = graph.snapshot().entry("edge:Knows")
    assert knows.row_count

    dropped = TombstoneTable(knows.identity, "edge:Knows", knows.version + 1)
    commit_id = Publisher(graph).publish(SetSchema(text, "\n".join(kept), 1), dropped).commit.graph_commit_id

    with pytest.raises(ChangeSchemaBoundary) as raised:
        list(graph.commit_changes(commit_id))
    assert (raised.value.type_name, raised.value.graph_commit_id) == ("Knows", commit_id)
