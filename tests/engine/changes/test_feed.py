"""The change feed: where it begins, where it ends, how it is resumed, and what it refuses."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.changes.model import ChangeFilter
from omnigraph.changes.pages import PageSize
from omnigraph.core.errors import (
    BadRequest,
    BranchNotFound,
    ChangeCursorRejected,
    ChangeFeedGap,
    CommitNotFound,
    ResourceLimit,
)
from omnigraph.graph.graph import Graph
from omnigraph.operations.changes.feed import ChangeFeed, ChangeFeedPage, FeedPosition
from tests.engine.changes.reading import committed, ordered, properties, short, update_age
from tests.support.commands import python
from tests.support.engine import ndjson, new_graph, node, reopen
from tests.support.people_graph import people_graph
from tests.support.protocol import WRITERS, give_up
from tests.support.protocol import new_graph as new_protocol_graph
from tests.support.seam import internals

RESUME = """
import sys
import omnigraph

graph = omnigraph.open(sys.argv[1], mode="ro")
rest = graph.poll_changes(page_token=sys.argv[2])
print(sum(len(block.changes) for block in rest.blocks), "changes")
for block in graph.poll_changes(cursor=rest.cursor).blocks:
    print(*(f"{change.op.value} {change.type.name} {change.id}" for change in block.changes))
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "graph")


def commits_of(page: ChangeFeedPage) -> list[str]:
    """Return the commits of a page's blocks."""
    return [block.cause.graph_commit_id for block in page.blocks]


def all_pages(graph: Graph, *, limit: int, start: str, branch: str | None = None) -> list[ChangeFeedPage]:
    """Return every page of one poll."""
    found = [graph.poll_changes(start=start, limit=limit, branch=branch)]
    while found[-1].next_page_token is not None:
        token = found[-1].next_page_token
        found.append(graph.poll_changes(page_token=token, limit=limit, branch=branch))
    return found


def oldest_first(graph: Graph, branch: str | None = None) -> list[str]:
    """Return the commits of a branch but the first one."""
    return [commit.graph_commit_id for commit in reversed(graph.commits(branch=branch))][1:]


@pytest.mark.case("engine", 277)
def test_a_feed_from_the_beginning_has_every_commit_in_order(graph: Graph) -> None:
    update_age(graph, "a", 5)
    graph.ensure_indices()
    update_age(graph, "b", 6)

    page = graph.poll_changes(start="beginning")

    assert commits_of(page) == oldest_first(graph)
    assert [len(block.changes) for block in page.blocks] == [11, 1, 0, 1]
    assert (page.next_page_token, page.caught_up) == (None, True)


@pytest.mark.case("engine", 277)
def test_a_feed_from_now_begins_with_the_next_commit(graph: Graph) -> None:
    page = graph.poll_changes()

    assert (page.blocks, page.caught_up) == ((), True)
    commit_id = update_age(graph, "a", 5)
    following = graph.poll_changes(cursor=page.cursor)
    assert commits_of(following) == [commit_id]
    assert short(following.blocks[0].changes) == ["~Person a"]
    again = graph.poll_changes(cursor=following.cursor)
    assert (again.blocks, again.caught_up, again.cursor) == ((), True, following.cursor)


@pytest.mark.case("engine", 277)
def test_a_feed_after_a_commit_begins_behind_it(graph: Graph) -> None:
    first, second = update_age(graph, "a", 5), update_age(graph, "b", 6)

    page = graph.poll_changes(start=f"after:{first}")

    assert commits_of(page) == [second]
    with pytest.raises(CommitNotFound):
        graph.poll_changes(start="after:01NOSUCHCOMMIT")


@pytest.mark.case("engine", 277)
def test_a_cursor_comes_only_between_commits_and_with_the_last_page(graph: Graph) -> None:
    update_age(graph, "a", 5)

    found = all_pages(graph, limit=4, start="beginning")

    assert [page.cursor is None for page in found] == [True, True, False]
    assert [page.caught_up for page in found] == [None, None, True]
    assert [len(block.changes) for page in found for block in page.blocks] == [4, 4, 3, 1]
    whole = [change for page in found for block in page.blocks for change in block.changes]
    assert whole == [change for block in graph.changes(start="beginning") for change in block.changes]


@pytest.mark.case("engine", 277)
@pytest.mark.parametrize("limit", [1, 3, 11, 12, 100])
def test_pages_of_any_size_together_are_the_feed(graph: Graph, limit: int) -> None:
    for age in range(3):
        update_age(graph, "a", age)
    graph.ensure_indices()

    found = all_pages(graph, limit=limit, start="beginning")

    blocks = [block for page in found for block in page.blocks]
    assert list(dict.fromkeys(block.cause.graph_commit_id for block in blocks)) == oldest_first(graph)
    assert sum(len(block.changes) for block in blocks) == 14
    assert all(sum(len(block.changes) for block in page.blocks) <= limit for page in found)


@pytest.mark.case("engine", 277)
def test_later_pages_keep_to_the_head_that_the_poll_found(graph: Graph) -> None:
    first = graph.poll_changes(start="beginning", limit=5)
    later = update_age(graph, "a", 5)

    second = graph.poll_changes(page_token=first.next_page_token, limit=8_000)

    assert later not in commits_of(second)
    assert second.caught_up is True  # it was, when the poll began
    assert commits_of(graph.poll_changes(cursor=second.cursor)) == [later]


@pytest.mark.case("engine", 277)
def test_a_poll_goes_over_so_many_commits_and_says_that_there_are_more(graph: Graph) -> None:
    for age in range(5):
        update_age(graph, "a", 10 + age)
    expected = oldest_first(graph)

    first = graph.poll_changes(start="beginning", commits=4)
    second = graph.poll_changes(cursor=first.cursor, commits=4)

    assert (commits_of(first), first.caught_up) == (expected[:4], False)
    assert (commits_of(second), second.caught_up) == (expected[4:], True)


@pytest.mark.case("engine", 277)
def test_empty_blocks_advance_also_when_a_filter_empties_them(graph: Graph) -> None:
    update_age(graph, "a", 5)
    update_age(graph, "b", 6)

    page = graph.poll_changes(start="beginning", kinds=["edge"])

    assert [len(block.changes) for block in page.blocks] == [6, 0, 0]
    assert graph.poll_changes(cursor=page.cursor, kinds=["edge"]).blocks == ()


@pytest.mark.case("engine", 277)
def test_another_process_goes_on_where_one_stopped(graph: Graph, tmp_path: Path) -> None:
    page = graph.poll_changes(start="beginning", limit=5)
    update_age(graph, "a", 5)

    copy = shutil.copytree(graph.uri, tmp_path / "moved")  # a graph is known by what it is, not by its place
    outcome = python("-c", RESUME, copy, str(page.next_page_token), cwd=tmp_path)

    assert outcome.stdout.splitlines() == ["6 changes", "update Person a"], outcome


@pytest.mark.case("engine", 277)
def test_the_feed_of_a_branch_has_what_it_inherited_and_its_own(graph: Graph) -> None:
    graph.create_branch("june")
    own = update_age(graph, "a", 5, branch="june")
    update_age(graph, "b", 6)

    feed = graph.changes(start="beginning", branch="june")
    blocks = list(feed)

    assert [block.cause.graph_commit_id for block in blocks] == oldest_first(graph, "june")
    assert blocks[-1].cause.graph_commit_id == own
    assert [block.cause.authored_branch for block in blocks] == ["main", "june"]


@pytest.mark.case("engine", 277)
def test_the_cursor_of_a_feed_is_known_when_all_of_it_was_taken(graph: Graph) -> None:
    for age in range(5):
        update_age(graph, "a", 100 + age)
    several_polls = PageSize(changes=4, commits=2)
    position = FeedPosition(start="beginning")
    feed = ChangeFeed(internals(graph), position, ChangeFilter(), size=several_polls)
    blocks = iter(feed)

    first = next(blocks)
    with pytest.raises(BadRequest, match="once all of its blocks have been taken"):
        _ = feed.cursor
    found = [first, *blocks]

    assert list(dict.fromkeys(block.cause.graph_commit_id for block in found)) == oldest_first(graph)
    assert sum(len(block.changes) for block in found) == 16
    assert graph.poll_changes(cursor=feed.cursor).blocks == ()


@pytest.mark.case("engine", 278)
def test_cursors_of_other_graphs_branches_and_filters_are_rejected(graph: Graph, tmp_path: Path) -> None:
    cursor = graph.poll_changes(start="beginning").cursor
    page_token = graph.poll_changes(start="beginning", limit=2).next_page_token
    graph.create_branch("june")
    of_june = graph.poll_changes(start="beginning", branch="june").cursor
    graph.delete_branch("june")
    graph.create_branch("june")
    other = people_graph(tmp_path / "other")

    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: other.poll_changes(cursor=cursor), "another graph"),
        (lambda: graph.poll_changes(cursor=cursor, branch="june"), "another branch"),
        (lambda: graph.poll_changes(cursor=of_june, branch="june"), "deleted since"),
        (lambda: graph.poll_changes(cursor=cursor, types=["Person"]), "another filter"),
        (lambda: graph.poll_changes(cursor=page_token), "expected a cursor"),
        (lambda: graph.poll_changes(page_token=cursor), "expected a page token of a feed"),
        (lambda: graph.poll_changes(cursor=f"{cursor}AAAA"), "damaged"),
        (lambda: graph.poll_changes(cursor="A" * 4_100), "more than 4096"),
    ]
    for rejected, reason in cases:
        with pytest.raises(ChangeCursorRejected, match=reason) as raised:
            rejected()
        assert str(raised.value).startswith("change cursor rejected:")
        assert (raised.value.code, raised.value.status) == ("bad_request", 400)


def test_a_poll_begins_at_one_place_and_has_a_size(graph: Graph) -> None:
    cursor = graph.poll_changes().cursor

    with pytest.raises(BadRequest, match="cannot be combined"):
        graph.poll_changes(cursor=cursor, start="now")
    with pytest.raises(BadRequest, match="start 'yesterday'"):
        graph.poll_changes(start="yesterday")
    with pytest.raises(BadRequest, match="number of changes of a page must be at least 1"):
        graph.poll_changes(limit=0)
    with pytest.raises(ResourceLimit):
        graph.poll_changes(commits=513)
    with pytest.raises(BranchNotFound):
        graph.poll_changes(branch="nope")


def reclaim(graph: Graph, commit_id: str) -> Graph:
    """Take away the versions that a commit pins, as a cleanup does, and return a handle without caches."""
    state = internals(graph).state()
    commit = state.commits.find(commit_id)
    assert commit is not None
    entry = state.snapshot_at(commit.manifest_version).entry("node:Person")
    folder = Path(graph.uri) / entry.location / "_versions"
    (folder / f"{2**64 - 1 - entry.version:020d}.manifest").unlink()
    return reopen(graph, mode="ro")


@pytest.mark.case("engine", 280)
def test_history_that_was_cleaned_up_is_a_gap_and_a_baseline_goes_on(graph: Graph) -> None:
    cursor = graph.poll_changes().cursor
    first, second = update_age(graph, "a", 5), update_age(graph, "b", 6)
    third = update_age(graph, "d", 7)
    late = reclaim(graph, second)

    page = late.poll_changes(cursor=cursor)
    with pytest.raises(ChangeFeedGap) as raised:
        late.poll_changes(cursor=page.cursor)

    assert (commits_of(page), page.caught_up) == ([first], False)
    assert raised.value.first_unreadable_commit_id == second
    assert (raised.value.cursor, raised.value.status) == (page.cursor, 410)
    baseline = late.baseline()
    records = list(baseline)
    assert len(records) == 11
    assert baseline.snapshot_commit_id == third
    fourth = update_age(graph, "e", 8)
    resumed = reopen(graph, mode="ro").poll_changes(cursor=baseline.resume_cursor)
    assert commits_of(resumed) == [fourth]


@pytest.mark.case("engine", 280)
def test_a_baseline_and_the_feed_behind_it_lose_and_repeat_nothing(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph")
    graph.load(ndjson(node("Person", name=f"p{number}") for number in range(5)), "append", index=False)
    baseline = graph.baseline(types=["Person"])
    records = iter(baseline)
    model: dict[str, object] = {}
    first = next(records)
    with pytest.raises(BadRequest, match="once all of its records have been taken"):
        _ = baseline.resume_cursor

    update_age(graph, "p1", 50)  # behind the capture
    committed(graph, 'query q() { delete Person where name = "p2" }')
    committed(graph, 'query q() { insert Company { name: "c" } }')
    for record in [first, *records]:
        data = record["data"]
        assert isinstance(data, dict)
        model[data.pop("id")] = data
    assert len(model) == 5
    assert model["p1"] == {"name": "p1", "age": None, "nickName": None}

    for block in graph.changes(baseline.resume_cursor, types=["Person"]):
        for change in block.changes:
            model.pop(change.id, None)
            if change.after is not None:
                model[change.id] = properties(change.after)

    rows = graph.table("Person").to_pylist()
    assert model == {row.pop("id"): row for row in rows}


def test_a_baseline_is_written_whole_and_ends_with_its_cursor(graph: Graph, tmp_path: Path) -> None:
    baseline = graph.baseline(kinds=["node"])

    baseline.to_file(tmp_path / "base.jsonl")

    lines = (tmp_path / "base.jsonl").read_text().splitlines()
    assert len(lines) == 6
    assert lines[-1].startswith('{"baseline":{"snapshot_commit_id"')
    assert baseline.resume_cursor in lines[-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base.jsonl", "graph"]
    with pytest.raises(BadRequest, match="cannot write"):
        baseline.to_file(tmp_path / "nowhere" / "base.jsonl")


@pytest.mark.case("engine", 281)
def test_a_write_that_recovery_finished_is_in_the_feed_once(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    with new_protocol_graph(root) as graph:
        cursor = graph.poll_changes().cursor
    give_up(root, "insert", "P3")

    with omnigraph.open(root) as graph:
        page = graph.poll_changes(cursor=cursor)
        (block,) = page.blocks

        assert block.cause.actor_id == "omnigraph:recovery"
        assert {change.type.name for change in block.changes} == {
            table_key.split(":")[1] for table_key in WRITERS["insert"].tables
        }
        assert graph.poll_changes(cursor=page.cursor).blocks == ()


@pytest.mark.case("engine", 281)
def test_a_write_that_recovery_undid_is_an_empty_block(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    with new_protocol_graph(root) as graph:
        cursor = graph.poll_changes().cursor
    give_up(root, "delete", "P2")

    with omnigraph.open(root) as graph:
        (block,) = graph.poll_changes(cursor=cursor).blocks
        assert (block.cause.actor_id, block.changes) == ("omnigraph:recovery", ())

        committed(graph, 'query q() { delete Person where name = "cid" }')

        second = graph.poll_changes(start=f"after:{block.cause.graph_commit_id}")
        assert "-Person cid" in ordered(second.blocks[0].changes)
