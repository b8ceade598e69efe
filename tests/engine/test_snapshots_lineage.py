"""Snapshots stay what they were; commits form one chain; the past folds to what it was."""

import json
from collections.abc import Callable
from functools import partial

import pytest

from omnigraph.commit.changes import (
    ManifestChange,
    RegisterTable,
    RenameTable,
    TombstoneTable,
    UpdateTable,
)
from omnigraph.core.errors import BadRequest, CommitNotFound, VersionNotFound
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import MAINTENANCE_ACTOR
from omnigraph.history.identity import TableIdentity
from omnigraph.history.state import ManifestState
from tests.support.engine import (
    LIBRARY_COMMITS,
    Publisher,
    chain,
    cold_state,
    edge,
    head,
    manifest_rows,
    ndjson,
    node,
    pin,
    reopen,
    rows_at,
    view,
)
from tests.support.queries import mutation
from tests.support.seam import internals

ANN = mutation('insert Person { name: "ann" }')
NEW = TableIdentity(77, 1)


# Snapshots


@pytest.mark.case("engine", 50)
def test_a_snapshot_shows_what_it_showed(library: Graph) -> None:
    snapshot = library.snapshot()
    tables = list(snapshot.entries)
    before = {key: rows_at(library, snapshot, key) for key in tables}

    reopen(library).mutate(mutation('delete Author where handle = "ada"'))
    library.mutate(mutation('update Book set { price: 1.0 } where format = "paper"'))
    library.load(ndjson([node("Note", id="n1", body="other")]), "merge")

    assert {key: rows_at(library, snapshot, key) for key in tables} == before
    assert {key: rows_at(reopen(library), snapshot, key) for key in tables} == before
    assert "ada" not in rows_at(library, library.snapshot(), "node:Author")


@pytest.mark.case("engine", 51)
def test_each_write_adds_one_commit_and_index_builds_are_the_engines(library: Graph) -> None:
    assert [commit.actor_id for commit in chain(library)] == [None, None, MAINTENANCE_ACTOR]

    library.mutate(mutation('insert Author { handle: "eve", name: "Eve" }'), actor="eve")
    library.mutate(mutation('update Author set { name: "x" } where handle = "nobody"'))
    library.load(ndjson([node("Note", id="n2", body="b")]), "append", actor="bot")

    assert [commit.actor_id for commit in chain(library)[LIBRARY_COMMITS:]] == ["eve", "bot"]


@pytest.mark.case("engine", 52)
def test_rows_and_commits_of_one_publish_stand_side_by_side(library: Graph) -> None:
    library.mutate(mutation('insert Author { handle: "eve", name: "E" } insert Note { body: "b" }'))
    library.mutate(mutation('delete Author where handle = "cy"'))
    library.load(ndjson([edge("Wrote", "ben", "BB-1", id="w9")]), "merge")

    rows = manifest_rows(library)

    commits = {row["table_version"] for row in rows if row["object_type"] == "graph_commit"}
    published = {row["published_at"] for row in rows if row["object_type"].startswith("table")}
    assert published == commits
    assert len(commits) == LIBRARY_COMMITS + 3
    assert all(row["published_at"] for row in rows if row["object_type"] != "graph_head")


# The past


@pytest.mark.case("engine", 54)
def test_a_manifest_version_folds_to_the_commit_that_it_shows(graph: Graph) -> None:
    recorded = {}
    for number in range(5):
        commit = graph.mutate(mutation(f'insert Person {{ name: "p{number}" }}')).commit
        assert commit is not None
        recorded[commit.manifest_version] = graph.snapshot().entries
    coordinator = internals(graph).parts.coordinator
    compacted = coordinator.manifest.compact(coordinator.address())
    graph.mutate(mutation('insert Company { name: "late" }'))

    state = internals(graph).state()
    for version, entries in recorded.items():
        assert state.snapshot_at(version).entries == entries
    newest = max(recorded)
    for version in range(newest, compacted + 1):
        assert state.snapshot_at(version).entries == recorded[newest]
        assert state.snapshot_at(version).head.manifest_version == newest
    for version in (0, -1, state.version + 1):
        with pytest.raises(VersionNotFound):
            state.snapshot_at(version)


@pytest.mark.case("engine", 57)
@pytest.mark.parametrize("what", ["metadata", "compaction"])
def test_a_foreign_manifest_version_between_load_and_publish_does_not_shift_the_past(
    graph: Graph, what: str
) -> None:
    states = {}

    def insert(name: str) -> int:
        commit = graph.mutate(mutation(f'insert Person {{ name: "{name}" }}')).commit
        assert commit is not None
        states[commit.graph_commit_id] = graph.snapshot().entries
        return commit.manifest_version

    insert("before")
    coordinator = internals(graph).parts.coordinator
    manifest = coordinator.manifest
    done: list[int] = []

    def interfere() -> None:
        if done:
            return
        handle = manifest.open_fresh(coordinator.address())
        if what == "metadata":
            done.append(manifest.stamp(handle, {"note": "somebody was here"}))
        else:
            done.append(manifest.compact(coordinator.address()))

    with failpoint("publish.before_update", call=interfere):
        recorded = insert("between")
    real = manifest.latest_version(coordinator.address())
    insert("after")

    assert done
    if what == "metadata":
        assert real > recorded
    state = cold_state(graph)
    for commit in state.commits.newest_first():
        if commit.graph_commit_id in states:
            assert state.snapshot_at(commit.manifest_version).entries == states[commit.graph_commit_id]
    assert len(chain(graph)) == 4


@pytest.mark.case("engine", 65)
def test_a_published_state_equals_a_cold_and_an_advanced_one(graph: Graph) -> None:
    publisher, other = Publisher(graph), reopen(graph)
    person = graph.snapshot().entry("node:Person")
    company = graph.snapshot().entry("node:Company")

    def move(version: int, ref: str | None = None) -> UpdateTable:
        return UpdateTable(person.identity, "node:Person", pin(version, ref=ref))

    batches: list[list[ManifestChange]] = [
        [move(2)],
        [RegisterTable(NEW, "node:New", pin(1))],
        [RenameTable(NEW, "node:New", "node:Newer")],
        [move(9, ref="fork"), UpdateTable(NEW, "node:Newer", pin(4))],
        [TombstoneTable(company.identity, "node:Company", company.version + 1)],
        [RenameTable(NEW, "node:Newer", "node:Company"), move(5, ref="other")],
        [move(2)],  # repointed to a smaller version
    ]

    def published(batch: list[ManifestChange]) -> ManifestState:
        return publisher.publish(*batch).state

    steps: list[Callable[[], ManifestState]] = [partial(published, batch) for batch in batches]
    steps.insert(4, lambda: _compacted(graph))
    steps.append(lambda: _compacted(graph))

    for step in steps:
        state = step()
        advanced = internals(other).state()
        assert view(state) == view(cold_state(graph)) == view(advanced)


def _compacted(graph: Graph) -> ManifestState:
    coordinator = internals(graph).parts.coordinator
    coordinator.manifest.compact(coordinator.address())
    return internals(graph).state()


# Commits


@pytest.mark.case("engine", 62)
def test_actors_are_recorded_and_the_engines_are_not_for_callers(graph: Graph) -> None:
    graph.mutate(ANN, actor="ann@example.org")
    assert head(graph).actor_id == "ann@example.org"

    before = len(graph.commits())
    reserved = ["recovery", "maintenance", "repair", "repair:force", "anything"]
    for actor in [*(f"omnigraph:{name}" for name in reserved), "", "  "]:
        for write in (
            lambda actor=actor: graph.mutate(ANN, actor=actor),
            lambda actor=actor: graph.load(ndjson([node("Person", name="x")]), "merge", actor=actor),
            lambda actor=actor: graph.ensure_indices(actor=actor),
        ):
            with pytest.raises(BadRequest):
                write()
    assert len(graph.commits()) == before
    by_ann = graph.commits(where=lambda commit: commit.actor_id == "ann@example.org")
    assert by_ann == graph.commits(limit=1)


def test_commits_are_listed_newest_first_and_found_by_id(graph: Graph) -> None:
    made = [graph.mutate(mutation(f'insert Person {{ name: "p{n}" }}')).commit for n in range(4)]

    listed = graph.commits()

    assert listed[:4] == list(reversed(made))
    assert graph.commits(limit=2) == listed[:2]
    assert all(graph.commit(commit.graph_commit_id) == commit for commit in listed)
    with pytest.raises(CommitNotFound):
        graph.commit("01ARZ3NDEKTSV4RRFFQ69G5FAV")


@pytest.mark.case("engine", 345)
def test_a_message_is_part_of_the_commit(graph: Graph) -> None:
    graph.mutate(ANN, message="first ✓")
    assert head(graph).message == "first ✓"
    graph.load(ndjson([node("Person", name="bob")]), "append", message="loaded", index=False)
    assert head(graph).message == "loaded"
    graph.mutate(mutation('insert Person { name: "cid" }'))
    assert head(graph).message is None
    row = next(row for row in manifest_rows(graph) if row["object_id"] == head(graph).graph_commit_id)
    assert "message" not in json.loads(row["metadata"])

    longest = "é" * 2_048
    graph.mutate(mutation('insert Person { name: "dan" }'), message=longest)
    assert reopen(graph).commits(limit=1)[0].message == longest
    before = len(graph.commits())
    for write in (
        lambda: graph.mutate(ANN, message=longest + "x"),
        lambda: graph.load(ndjson([node("Person", name="x")]), "merge", message=longest + "x"),
    ):
        with pytest.raises(BadRequest, match="4096"):
            write()
    assert len(graph.commits()) == before
