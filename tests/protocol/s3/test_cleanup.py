"""Cleanup of a graph in an object store: the same as on a disk, beside a second writer."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import lance
import pytest
from lance.fragment import write_fragments

import omnigraph
from omnigraph.commit.publish import HORIZON_S
from omnigraph.commit.reclaim import ORPHAN_GRACE_S
from omnigraph.core.errors import HistoricalVersionReclaimed
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.storage.control.stored_files import stored_files
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.tables.handle import ref_file
from omnigraph.storage.versions.newest import TRUSTED_S
from tests.engine.cleanup.steps import later, row
from tests.support.in_process import invoke
from tests.support.s3 import build_people, place
from tests.support.seam import internals

pytestmark = [pytest.mark.slow, pytest.mark.case("engine", 508)]

PERSON = "node:Person"


@pytest.fixture
def graph(root: GraphRoot, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")
    with omnigraph.open(place(build_people, root)) as made:
        yield made


def update(graph: Graph, times: int, branch: str | None = None) -> None:
    for number in range(times):
        source = f'query q() {{ update Person set {{ age: {100 + number} }} where name = "ann" }}'
        graph.mutate(source, branch=branch)


def versions(graph: Graph, folder: str | None = None) -> int:
    """Return how many versions of the persons, or of another dataset, are in the store."""
    folder = graph.snapshot().entry(PERSON).location if folder is None else folder
    found = stored_files(internals(graph).parts.root, f"{folder}/_versions")
    return sum(path.endswith(".manifest") for path in found)


def everything(graph: Graph) -> dict[str, list[dict[str, object]]]:
    return {branch: graph.table("Person", branch=branch).to_pylist() for branch in graph.branches()}


def test_old_versions_go_beside_another_writer(graph: Graph, root: GraphRoot) -> None:
    graph.create_branch("june")
    update(graph, 4, "june")
    with omnigraph.open(root.uri, upkeep=False) as other:
        update(other, 6)
        past = other.commits()[3].graph_commit_id
        before = everything(other)
        later(graph, TRUSTED_S + 60)

        foreseen = graph.cleanup(2, dry_run=True)
        done = graph.cleanup(2)

        assert (done.failed, done.tables) == ((), foreseen.tables)
        assert row(done).old_versions_removed > 4
        assert everything(other) == everything(graph) == before
        update(other, 1)
        update(graph, 1, "june")
        assert len(other.commits()) == len(graph.commits())
    with omnigraph.open(root.uri, mode="ro") as reader, pytest.raises(HistoricalVersionReclaimed):
        reader.query("query q() { match { $p: Person } return { $p.name } }", snapshot=past)


def test_what_was_replaced_within_half_an_hour_stays(graph: Graph) -> None:
    """A handle elsewhere may ask for the version after the one it saw last by its name."""
    update(graph, 3)
    before = versions(graph)

    later(graph, TRUSTED_S - 60)
    graph.cleanup(1)
    assert versions(graph) == before

    later(graph, 120)
    graph.cleanup(1)
    assert versions(graph) == 1


def test_manifests_are_trimmed_and_history_stays(graph: Graph, root: GraphRoot) -> None:
    update(graph, 15)
    commits = graph.commits()
    later(graph, HORIZON_S + 60)

    assert graph.cleanup(100).failed == ()

    assert versions(graph, "__manifest") == 10
    with omnigraph.open(root.uri) as other:
        assert other.commits() == commits
        update(other, 2)
        assert other.verify().is_whole
    assert len(graph.commits()) == len(commits) + 2


def test_orphans_and_leftover_refs_go_when_they_are_old(graph: Graph) -> None:
    graph.create_branch("june")
    update(graph, 1, "june")
    with (
        failpoint("branch_delete.post_control_pre_refs", "raise"),
        pytest.raises(Exception, match="injected"),
    ):
        graph.delete_branch("june")
    parts = internals(graph).parts
    entry = graph.snapshot().entry(PERSON)
    options = parts.root.storage_options
    table = lance.dataset(f"{graph.uri}/{entry.location}", storage_options=options)
    (part,) = write_fragments(table.to_table(), table)
    stray = f"{entry.location}/data/{part.files[0].path}"
    before = everything(graph)

    graph.cleanup(100)
    assert stray in stored_files(parts.root)
    assert parts.store.list_refs(parts.address(entry))

    later(graph, ORPHAN_GRACE_S + 60)
    assert graph.cleanup(100).failed == ()
    assert stray not in stored_files(parts.root)
    assert parts.store.list_refs(parts.address(entry)) == ()
    assert parts.store.list_refs(parts.coordinator.address()) == ()
    assert everything(graph) == before


@pytest.mark.parametrize("place", ["cleanup.table_gc", "cleanup.post_versions_pre_files", "trim.pre_remove"])
def test_what_was_stopped_goes_on(graph: Graph, place: str) -> None:
    update(graph, 12)
    before = everything(graph)
    later(graph, HORIZON_S + 60)

    with failpoint(place, "raise"), suppress(InjectedFault):
        assert graph.cleanup(1).failed
    assert everything(graph) == before

    assert graph.cleanup(1).failed == ()
    assert (versions(graph), everything(graph)) == (1, before)


@pytest.mark.case("surfaces", 257)
def test_the_command_asks_before_it_removes_elsewhere(graph: Graph, root: GraphRoot) -> None:
    update(graph, 3)
    before = stored_files(internals(graph).parts.root)
    arguments = ("cleanup", root.uri, "--keep", "1")

    preview = invoke(*arguments, cwd=Path())
    refused = invoke(*arguments, "--confirm", cwd=Path())

    assert (preview.code, refused.code) == (0, 1)
    assert "confirm with --yes" in refused.stderr
    assert before.keys() <= stored_files(internals(graph).parts.root).keys()
    assert invoke(*arguments, "--confirm", "--yes", cwd=Path()).code == 0


@pytest.mark.case("engine", 654)
def test_nothing_goes_from_a_table_that_has_lost_the_listing_of_a_fork(graph: Graph) -> None:
    graph.create_branch("june")
    update(graph, 1, "june")
    update(graph, 4)
    entry, expected, before = graph.snapshot("june").entry(PERSON), everything(graph), versions(graph)
    assert entry.owner is not None
    listing = ref_file(entry.location, entry.owner)
    internals(graph).parts.adapter.delete(listing)

    with omnigraph.open(graph.uri, upkeep=False) as opened:
        found = [finding.where for finding in opened.verify().findings]
        later(opened, TRUSTED_S + 3600)
        result = opened.cleanup(keep=1)
        assert everything(opened) == expected

    assert found == [listing]
    assert [failed.table_key for failed in result.failed] == [PERSON]
    assert versions(graph) == before
