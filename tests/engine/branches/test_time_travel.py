"""The past, addressed by commit, version, moment and branch."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pytest

from omnigraph.core.errors import (
    CommitNotFound,
    EntityNotFound,
    HistoricalVersionReclaimed,
    NotFoundError,
    VersionNotFound,
)
from omnigraph.graph.graph import Graph
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.storage.files.version_file import version_file_name
from tests.engine.branches.steps import ages, insert, names, set_age
from tests.support.engine import head, reopen
from tests.support.seam import internals

AGES = "query q() { match { $p: Person } return { $p.name as name, $p.age as age } order { $p.name } }"


def ages_at(graph: Graph, snapshot: str | int | datetime) -> dict[str, int]:
    """Return the ages of a past state, read by a query."""
    return {str(row["name"]): int(str(row["age"])) for row in graph.query(AGES, snapshot=snapshot).rows}


def moment(micros: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)


@pytest.mark.case("engine", 53)
def test_a_commit_is_read_from_wherever_it_is_shown(graph: Graph) -> None:
    shared = head(graph)
    graph.create_branch("june")
    set_age(graph, "ann", 31, "june")
    own = graph.commits(branch="june")[0]
    set_age(graph, "ann", 32, "june")
    set_age(graph, "ann", 99)

    assert ages_at(graph, own.graph_commit_id)["ann"] == 31  # from a handle on main
    with graph.branch("june") as june:
        assert {str(r["name"]): r["age"] for r in june.at(shared.graph_commit_id).query(AGES).rows}[
            "ann"
        ] == 30
        assert june.commit(head(graph).graph_commit_id).manifest_branch is None
    assert ages_at(graph, shared.graph_commit_id)["ann"] == 30
    graph.create_branch("heir", "june")
    assert graph.commit(own.graph_commit_id, branch="heir") == own


@pytest.mark.case("engine", 55)
def test_a_moment_is_the_newest_commit_not_after_it(graph: Graph) -> None:
    first = head(graph)
    set_age(graph, "ann", 31)
    second = head(graph)
    assert first.created_at_micros + 1 < second.created_at_micros

    assert ages_at(graph, moment(second.created_at_micros - 1))["ann"] == 30
    assert ages_at(graph, moment(second.created_at_micros))["ann"] == 31
    assert ages_at(graph, moment(second.created_at_micros + 1).replace(tzinfo=None))["ann"] == 31
    genesis = graph.commits()[-1]
    with pytest.raises(NotFoundError, match="no commit that old"):
        ages_at(graph, moment(genesis.created_at_micros - 1))


def test_a_moment_of_a_branch_follows_its_first_parents(graph: Graph) -> None:
    graph.create_branch("june")
    set_age(graph, "ann", 31)
    set_age(graph, "ann", 32, "june")
    own = graph.commits(branch="june")[0]

    with graph.branch("june") as june:
        past = june.at(moment(own.created_at_micros - 1))
        assert {str(row["name"]): row["age"] for row in past.query(AGES).rows}["ann"] == 30


@pytest.mark.case("engine", 56)
def test_a_version_that_was_cleaned_up_is_told(graph: Graph) -> None:
    past = head(graph)
    set_age(graph, "ann", 31)
    entry = graph.at(past.graph_commit_id).snapshot.entry("node:Person")
    folder = Path(graph.uri) / entry.location / "_versions"
    (folder / f"{2**64 - 1 - entry.version:020d}.manifest").unlink()

    with reopen(graph, mode="ro") as fresh:
        with pytest.raises(HistoricalVersionReclaimed) as reclaimed:
            ages_at(fresh, past.graph_commit_id)
        assert (reclaimed.value.table_key, reclaimed.value.version) == ("node:Person", entry.version)
        with pytest.raises(HistoricalVersionReclaimed):
            fresh.entity_at("Person", "ann", past.graph_commit_id)
        assert ages(fresh)["ann"] == 31


ZOE = b'{"type":"Person","data":{"name":"zoe","age":1}}'
READS: dict[str, Callable[[Graph], object]] = {
    "a query": lambda graph: names(graph, "old"),
    "a table": lambda graph: graph.table("Person", branch="old"),
    "an export": lambda graph: list(graph.export(branch="old")),
    "one entity": lambda graph: graph.entity_at("Person", "ann", "old"),
    "the state of indexes": lambda graph: graph.index_status(branch="old"),
    "a mutation": lambda graph: set_age(graph, "ann", 31, "old"),
    "a load": lambda graph: graph.load(ZOE, mode="append", branch="old"),
    "an overwrite": lambda graph: graph.load(ZOE, mode="overwrite", branch="old"),
    "a build of indexes": lambda graph: graph.ensure_indices(branch="old"),
}


@pytest.mark.case("engine", 56)
def test_every_reader_of_a_pinned_version_says_that_it_was_cleaned_up(graph: Graph) -> None:
    graph.create_branch("old")
    set_age(graph, "ann", 31)
    entry = graph.snapshot("old").entry("node:Person")
    (Path(graph.uri) / entry.location / version_file_name(entry.version)).unlink()

    for name, read in READS.items():
        with reopen(graph) as fresh, pytest.raises(HistoricalVersionReclaimed) as reclaimed:
            read(fresh)
        told = reclaimed.value.table_key, reclaimed.value.version
        assert told == ("node:Person", entry.version), name


@pytest.mark.case("engine", 58)
def test_commits_of_a_deleted_branch_are_gone(graph: Graph) -> None:
    graph.create_branch("june")
    set_age(graph, "ann", 31, "june")
    gone = graph.commits(branch="june")[0].graph_commit_id
    graph.delete_branch("june")

    for _ in range(2):
        with pytest.raises(CommitNotFound):
            graph.commit(gone)
        with pytest.raises(CommitNotFound):
            ages_at(graph, gone)
        graph.create_branch("june") if "june" not in graph.branches() else None
        with pytest.raises(CommitNotFound):
            graph.commit(gone, branch="june")
    assert 31 not in ages(graph, "june").values()


@pytest.mark.case("engine", 59)
def test_the_first_commit_of_a_branch_continues_its_source(graph: Graph) -> None:
    fork_point = head(graph)
    graph.create_branch("june")
    state = internals(graph).state("june")
    assert set(state.heads) == {"main"}
    set_age(graph, "ann", 99)

    set_age(graph, "ann", 31, "june")

    first = graph.commits(branch="june")[0]
    assert first.parent_commit_id == fork_point.graph_commit_id
    assert first.manifest_branch == "june"
    state = internals(graph).state("june")
    assert state.heads["june"] == first.graph_commit_id
    assert [c.graph_commit_id for c in graph.commits(branch="june")][1] == fork_point.graph_commit_id


@pytest.mark.case("engine", 64)
def test_one_entity_opens_one_table(graph: Graph) -> None:
    past = head(graph).graph_commit_id
    set_age(graph, "ann", 31)
    with reopen(graph, mode="ro") as fresh:
        fresh.commits()
        store = internals(fresh).parts.store
        opened: list[str] = []
        open_at = store.open_at

        def noted(address: object, version: int) -> object:
            opened.append(f"{address}")
            return open_at(address, version)  # type: ignore[arg-type]

        object.__setattr__(store, "open_at", noted)
        assert fresh.entity_at("Person", "ann", past)["age"] == 30
        assert fresh.entity_at("Person", "ann")["age"] == 31

    assert len(set(opened)) == 1
    assert len(opened) == 2


def test_an_entity_that_is_not_there(graph: Graph) -> None:
    with pytest.raises(EntityNotFound, match="Person 'nobody' not found"):
        graph.entity_at("Person", "nobody")
    with pytest.raises(NotFoundError, match="neither a branch nor a commit 'nowhere'"):
        graph.entity_at("Person", "ann", "nowhere")
    assert graph.entity_at("Knows", "k1")["src"] == "ann"


def test_versions_are_those_of_the_branch(graph: Graph) -> None:
    graph.create_branch("june")
    for age in (31, 32):
        set_age(graph, "ann", age, "june")
    newest = graph.commits(branch="june")[0].manifest_version

    with graph.branch("june") as june:
        assert june.at(newest).snapshot.branch == "june"
        assert june.at(newest - 1).snapshot.head.manifest_version == newest - 1
        with pytest.raises(VersionNotFound):
            june.at(newest + 1)
    with pytest.raises(VersionNotFound):
        graph.at(newest)


@pytest.mark.case("engine", 339)
def test_inherited_commits_are_the_same_from_either_side(graph: Graph) -> None:
    """The trim is the library's own, without an age: `cleanup`, which keeps a horizon, is still to come."""
    insert(graph, "one")
    shared = [c.graph_commit_id for c in graph.commits()][:-1]
    before = {commit: ages_at(graph, commit) for commit in shared}
    graph.create_branch("june")
    fork_version = internals(graph).state().version
    for number in range(3):
        insert(graph, f"main {number}")
        insert(graph, f"june {number}", "june")
    own = {branch: [c.graph_commit_id for c in graph.commits(branch=branch)[:3]] for branch in (None, "june")}
    parts = internals(graph).parts
    for ref in (None, internals(graph).state("june").ref):
        address = parts.coordinator.address(ref)
        parts.coordinator.manifest.compact(address)
        lance.dataset(address.open_uri).cleanup_old_versions(timedelta(0))
    manifest = Path(graph.uri, MANIFEST_DIR)
    assert not (manifest / version_file_name(1)).exists()
    assert (manifest / version_file_name(fork_version)).exists()

    with reopen(graph) as fresh, fresh.branch("june") as june:
        for commit in shared:
            assert ages_at(fresh, commit) == before[commit]
            rows = june.at(commit).query(AGES).rows
            assert {str(row["name"]): int(str(row["age"])) for row in rows} == before[commit]
        assert len(fresh.commits(branch="june")) == len(shared) + 1 + 3
        for handle, branch, other in ((fresh, None, "june"), (june, "june", None)):
            for number, commit in enumerate(reversed(own[branch])):
                rows = handle.at(commit).query(AGES).rows
                added = [f"{branch or 'main'} {done}" for done in range(number + 1)]
                assert sorted({str(row["name"]) for row in rows} - set(before[shared[0]])) == added
            assert not set(own[other]) & {c.graph_commit_id for c in handle.commits()}
