"""What somebody reads stays until they are done with it."""

import gc
from collections.abc import Callable

import pytest

from omnigraph.core.errors import HistoricalVersionReclaimed
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from tests.engine.branches.steps import ages, insert, names
from tests.engine.cleanup.steps import PERSON, ages_at, update, versions
from tests.support.engine import foreign, ndjson, pins, reopen
from tests.support.protocol import paused_at
from tests.support.seam import internals

HOLD: dict[str, Callable[[Graph, str], object]] = {
    "view": lambda graph, commit: graph.at(commit),
    "diff": lambda graph, commit: graph.diff(commit),
}
AGES = "query q() { match { $p: Person } return { $p.name as name, $p.age as age } }"


@pytest.mark.case("engine", 501)
@pytest.mark.parametrize("kind", HOLD)
def test_what_is_held_stays_with_all_that_is_newer(graph: Graph, kind: str) -> None:
    first, *_ = update(graph, 4)
    held = HOLD[kind](graph, first)

    graph.cleanup(1)
    assert len(versions(graph)) == 4
    assert ages_at(graph, first)["ann"] == 100

    del held
    gc.collect()
    graph.cleanup(1)
    assert versions(graph) == [pins(graph)[PERSON]]
    with pytest.raises(HistoricalVersionReclaimed):
        ages_at(graph, first)


@pytest.mark.case("engine", 501)
def test_a_view_reads_on_after_a_cleanup_by_another_handle(graph: Graph) -> None:
    first, *_ = update(graph, 3)
    with reopen(graph) as other:
        view = graph.at(first)
        other.cleanup(1)

        found = {row["name"]: row["age"] for row in view.query(AGES).rows}

    assert found["ann"] == 100


@pytest.mark.case("engine", 501)
@pytest.mark.parametrize("kind", ["export", "baseline"])
def test_an_export_reads_on_what_it_has_pinned(graph: Graph, kind: str) -> None:
    export = graph.export() if kind == "export" else graph.baseline()
    update(graph, 3)

    graph.cleanup(1)

    people = [record["data"] for record in export if record.get("type") == "Person"]
    assert {"id": "ann", "name": "ann", "age": 30, "nickName": None} in people


@pytest.mark.case("engine", 501)
def test_a_feed_reads_on_to_its_end(graph: Graph) -> None:
    cursor = graph.poll_changes().cursor
    commits = update(graph, 5)
    feed = iter(graph.changes(cursor))
    seen = [next(feed).cause.graph_commit_id]

    graph.cleanup(1)

    seen += [block.cause.graph_commit_id for block in feed]
    assert seen == commits


@pytest.mark.case("engine", 501)
def test_the_changes_of_a_commit_are_read_to_their_end(graph: Graph) -> None:
    graph.mutate('query q() { update Person set { age: 9 } where name != "x" }')
    commit = graph.commits(limit=1)[0].graph_commit_id
    update(graph, 3)
    changes = iter(graph.commit_changes(commit))
    first = next(changes)

    graph.cleanup(1)

    assert len([first, *changes]) == 3


@pytest.mark.case("engine", 501)
def test_a_running_query_is_not_disturbed(graph: Graph) -> None:
    """The cleanup runs between the query's snapshot and its first look at a table."""
    first, *_ = update(graph, 4)
    with reopen(graph) as other:
        seen = []

        def clean() -> None:
            other.cleanup(1)
            seen.append(len(versions(graph)))

        with failpoint("query.post_pin_pre_read", "call", clean):
            found = ages_at(graph, first)

    assert (found["ann"], seen) == (100, [4])


def test_a_handle_that_slept_through_cleanups_goes_on(graph: Graph) -> None:
    """It has tables and what is derived from them in memory, of versions that are gone since."""
    sleeper = foreign(graph)
    assert names(sleeper) == ["ann", "bob", "eve"]
    assert ages(sleeper)["ann"] == 30
    past = graph.commits(limit=1)[0].graph_commit_id
    assert ages_at(sleeper, past)["ann"] == 30
    for number in range(3):
        update(graph, 3)
        insert(graph, f"n{number}")
        graph.cleanup(1)

    assert names(sleeper) == ["ann", "bob", "eve", "n0", "n1", "n2"]
    insert(sleeper, "mine")
    assert "mine" in names(graph)
    assert ages_at(sleeper, past)["ann"] == 30  # from memory
    with reopen(graph) as other, pytest.raises(HistoricalVersionReclaimed):
        ages_at(other, past)


def test_a_past_version_that_was_cleaned_up_under_a_handle_is_said_to_be_that(graph: Graph) -> None:
    update(graph, 1)
    reader = foreign(graph)
    store, entry = internals(reader).parts.store, reader.snapshot().entry(PERSON)
    handle = internals(reader).parts.open(entry)
    graph.load(ndjson(graph.export()), "overwrite", index=False)

    graph.cleanup(1)

    with pytest.raises(HistoricalVersionReclaimed, match=f"version {entry.version} was cleaned up"):
        store.scan(handle)


@pytest.mark.case("engine", 504)
def test_a_branch_that_is_being_created_stays_readable(graph: Graph) -> None:
    """Its source moves on, and a cleanup runs, between its ref and its control object."""
    writer, cleaner = foreign(graph), foreign(graph)

    def move_and_clean() -> None:
        update(writer, 3)
        cleaner.cleanup(1)

    with paused_at("branch_create.post_ref_pre_control", "call", move_and_clean):
        graph.create_branch("june")

    assert ages(graph, "june")["ann"] == 30
    insert(graph, "new", "june")
    assert "new" in names(graph, "june")
