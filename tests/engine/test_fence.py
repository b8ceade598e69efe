"""The fence of the manifest: of two publishes on one version, one lands.

It is the shape of the commit that holds it up: every publish touches the newest fragment of its version. What
it leans on is shown here on real graphs, and what would bring it down.
"""

import datetime as dt
import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing import Queue
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph import open as open_graph
from omnigraph.commit.publish import FRAGMENTS_MAX, ManifestPublisher, PublishUnknown
from omnigraph.core.errors import PublishRetriesExhausted, RowLevelCasContention, StaleCommit
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.core.ids import new_ulid
from omnigraph.graph.graph import Graph
from omnigraph.history.identity import MAIN_BRANCH, BranchIdentity
from omnigraph.history.manifest_rows import HEAD, commit_row, head_row, rows_table
from omnigraph.history.recorded_sums import recorded_sums
from omnigraph.history.state import ManifestState
from omnigraph.operations.verify.verify import verify_place
from omnigraph.storage.files.added_files import manifest_files
from omnigraph.storage.tables.manifest_table import ManifestHandle, ManifestTable
from omnigraph.storage.tables.table import TableStore
from tests.support.engine import chain, cold_state, intent, manifest_path, reopen, view
from tests.support.queries import mutation
from tests.support.seam import internals

pytestmark = [pytest.mark.case("engine", 288), pytest.mark.case("engine", 430)]


def publish(graph: Graph, count: int, branch: str = "main") -> None:
    """Publish a number of commits, each with a fragment of its own."""
    for number in range(count):
        graph.mutate(mutation(f'insert Person {{ name: "{branch}{number}" }}'), branch=branch)


class Rival:
    """A process that has looked at a branch, and publishes on what it saw."""

    def __init__(self, graph: Graph, branch: BranchIdentity = MAIN_BRANCH) -> None:
        self.table = ManifestTable(TableStore())
        coordinator = internals(graph).parts.coordinator
        self.handle: ManifestHandle = self.table.open_fresh(coordinator.address(branch.ref))
        self.state: ManifestState = internals(graph).parts.coordinator.read_apart(branch)

    def publish(self) -> int:
        """Publish a commit, as the engine would."""
        commit_id, rows = self.rows()
        replaced = self.state.replaced_places(rows.to_pylist())
        return self.table.publish(self.handle, rows, commit_id=commit_id, replaced=replaced).version

    def rows(self) -> tuple[str, pa.Table]:
        """Return the id of a new commit, and its rows."""
        commit_id, at = new_ulid(), self.handle.version + 1
        parent = self.state.head.graph_commit_id
        rows = [
            head_row(self.state.branch.name, commit_id, parent),
            commit_row(
                commit_id, self.state.branch.name, {"parent_commit_id": parent, "created_at": 1}, at=at
            ),
        ]
        return commit_id, rows_table(rows)


def keys(path: Path) -> list[str]:
    """Return all keys of a manifest: one of them twice, and the fence was down."""
    found: Sequence[object] = (
        lance.dataset(str(path)).to_table(columns=["object_id"])["object_id"].to_pylist()
    )
    return sorted(map(str, found))


def heads(path: Path) -> list[str]:
    return [key for key in keys(path) if key.startswith(HEAD)]


def assert_one_wins(graph: Graph, branch: BranchIdentity = MAIN_BRANCH) -> None:
    """Let two rivals publish that have looked at the same version."""
    first, second = Rival(graph, branch), Rival(graph, branch)
    path = Path(first.handle.address.open_uri)

    assert first.publish() == first.handle.version + 1
    with pytest.raises(RowLevelCasContention):
        second.publish()

    assert len(set(keys(path))) == len(keys(path))


def test_of_two_publishes_on_a_fresh_graph_one_wins(graph: Graph) -> None:
    assert_one_wins(graph)


def test_of_two_publishes_after_others_and_after_a_fold_one_wins(graph: Graph) -> None:
    publish(graph, 70)
    path = manifest_path(graph)
    assert len(lance.dataset(str(path)).get_fragments()) < 70

    assert_one_wins(graph)
    internals(graph).parts.coordinator.manifest.compact(internals(graph).parts.coordinator.address())
    assert len(lance.dataset(str(path)).get_fragments()) == 1
    assert_one_wins(graph)
    assert len(chain(reopen(graph))) > 70


def test_the_first_publish_of_a_branch_has_an_anchor(graph: Graph) -> None:
    publish(graph, 2)
    graph.create_branch("june")
    june = internals(graph).parts.branches.resolve("june")
    assert "june" not in internals(graph).parts.coordinator.state(june).heads

    assert_one_wins(graph, june)
    assert_one_wins(graph, june)

    publish(graph, 2, "june")
    path = Path(internals(graph).parts.coordinator.address(june.ref).open_uri)
    assert heads(path) == ["graph_head:june", "graph_head:main"]  # main's as of the fork


def test_the_first_publish_of_a_branch_learns_where_its_head_row_lies(graph: Graph) -> None:
    publish(graph, 2)
    graph.create_branch("june")
    coordinator = internals(graph).parts.coordinator
    june = internals(graph).parts.branches.resolve("june")

    for name in ("ann", "ben"):
        graph.mutate(mutation(f'insert Person {{ name: "{name}" }}'), branch="june")
        assert view(coordinator.state(june)) == view(coordinator.read_apart(june))


@pytest.mark.case("engine", 431)
def test_a_fold_in_between_refuses_a_publish_and_its_place_is_found_again(graph: Graph) -> None:
    publish(graph, 5)
    warm, rival = reopen(graph), Rival(graph)
    warm_before = internals(warm).state().head_places
    coordinator = internals(graph).parts.coordinator
    coordinator.manifest.compact(coordinator.address())

    with pytest.raises(RowLevelCasContention):
        rival.publish()

    state = internals(warm).state()
    assert state.head_places != warm_before
    assert view(state) == view(cold_state(graph))
    publish(warm, 2, "main")
    assert heads(manifest_path(graph)) == ["graph_head:main"]
    assert view(internals(warm).state()) == view(cold_state(graph))


@pytest.mark.case("engine", 431)
def test_the_fold_of_a_fork_keeps_places_findable(graph: Graph) -> None:
    graph.create_branch("june")
    publish(graph, 40, "june")
    coordinator = internals(graph).parts.coordinator
    june = internals(graph).parts.branches.resolve("june")
    coordinator.manifest.compact(coordinator.address(june.ref))

    publish(graph, 2, "june")

    path = Path(coordinator.address(june.ref).open_uri)
    assert len(set(keys(path))) == len(keys(path))
    assert view(coordinator.state(june)) == view(coordinator.read_apart(june))


def stamp(graph: Graph) -> None:
    """Make a version without rows, which no update collides with: a trim below it hides the others."""
    coordinator = internals(graph).parts.coordinator
    handle = coordinator.manifest.open_fresh(coordinator.address())
    coordinator.manifest.stamp(handle, handle.schema_metadata)


@pytest.mark.case("engine", 341)
def test_with_a_version_trimmed_between_handle_and_head_the_fence_is_open(graph: Graph) -> None:
    publish(graph, 3)
    stale = Rival(graph)
    publish(graph, 2)
    path = manifest_path(graph)
    stamp(graph)
    lance.dataset(str(path)).cleanup_old_versions(older_than=dt.timedelta(0), retain_versions=1)

    with pytest.raises(StaleCommit):
        stale.publish()

    assert heads(path) == ["graph_head:main", "graph_head:main"]


@pytest.mark.case("engine", 432)
def test_a_publish_that_landed_behind_others_is_not_acknowledged(graph: Graph) -> None:
    publish(graph, 3)
    other = reopen(graph)
    path = manifest_path(graph)

    def trim() -> None:
        for number in range(2):
            rival = Rival(other)
            assert rival.publish() == rival.handle.version + 1, number
        stamp(other)
        lance.dataset(str(path)).cleanup_old_versions(older_than=dt.timedelta(0), retain_versions=1)

    with failpoint("publish.before_update", call=trim), pytest.raises(PublishUnknown, match="after another"):
        internals(graph).publisher.publish(MAIN_BRANCH, [], {}, intent())

    report = verify_place(graph.uri)
    assert not report.is_whole
    assert report.repeated == ("main: 'graph_head:main' is in the manifest 2 times",)


@pytest.mark.case("engine", 430)
def test_a_state_of_a_later_version_is_not_published_on(graph: Graph) -> None:
    publish(graph, 2)
    rivals: list[int] = []

    def read_on() -> None:
        if not rivals:  # between the publisher's look and its read: another thread has seen what came since
            rivals.append(Rival(graph).publish())
            assert internals(graph).state().version == rivals[0]

    with failpoint("publish.load_state_retryable_contention", call=read_on):
        outcome = internals(graph).publisher.publish(MAIN_BRANCH, [], {}, intent())

    assert (outcome.attempts, outcome.commit.manifest_version) == (2, rivals[0] + 1)
    assert view(outcome.state) == view(cold_state(graph))


@pytest.mark.case("engine", 430)
def test_a_lost_answer_gives_what_others_published_since(graph: Graph) -> None:
    publish(graph, 2)

    def lose() -> None:
        Rival(graph).publish()
        raise InjectedFault("publish.after_update_ack_lost")

    with failpoint("publish.after_update_ack_lost", call=lose):
        outcome = internals(graph).publisher.publish(MAIN_BRANCH, [], {}, intent())

    assert outcome.commit.graph_commit_id == outcome.state.head.parent_commit_id
    assert view(outcome.state) == view(cold_state(graph)) == view(internals(graph).state())


# What was written by builds that merged by key


@pytest.mark.case("engine", 437)
def test_a_publish_loses_to_a_build_that_merges_and_tries_again(graph: Graph) -> None:
    publish(graph, 2)
    landed: list[str] = []

    def merge_first() -> None:
        if landed:
            return
        rival = Rival(graph)
        commit_id, table = rival.rows()
        landed.append(commit_id)
        builder = rival.handle._dataset.merge_insert("object_id")
        builder.when_matched_update_all().when_not_matched_insert_all().use_index(False).execute(table)

    with failpoint("publish.before_update", call=merge_first):
        outcome = internals(graph).publisher.publish(MAIN_BRANCH, [], {}, intent())

    assert (outcome.attempts, outcome.commit.parent_commit_id) == (2, landed[0])
    assert len(set(keys(manifest_path(graph)))) == len(keys(manifest_path(graph)))
    assert len(chain(reopen(graph))) == 5


@pytest.mark.case("engine", 437)
def test_without_the_annotation_of_the_key_the_fence_holds(graph: Graph) -> None:
    publish(graph, 2)
    path = manifest_path(graph)
    rows = lance.dataset(str(path)).to_table()
    bare = pa.schema([field.remove_metadata() for field in rows.schema])
    lance.write_dataset(rows.cast(bare.with_metadata(rows.schema.metadata)), str(path), mode="overwrite")
    opened = reopen(graph)

    publish(opened, 1, "main")
    assert_one_wins(opened)

    assert heads(path) == ["graph_head:main"]


# What a publish leaves behind


@pytest.mark.case("engine", 438)
def test_every_file_of_a_publish_is_synced_and_recorded(graph: Graph) -> None:
    parts = internals(graph).parts
    address, folder = parts.coordinator.address(), manifest_path(graph)
    publish(graph, 1)
    before, present = internals(graph).state().version, {str(path) for path in folder.rglob("*")}

    internals(graph).publisher.publish(MAIN_BRANCH, [], {}, intent())

    added = {str(path) for path in folder.rglob("*") if path.suffix != ".txn"} - present
    assert {Path(path).parent.name for path in added} == {"data", "_deletions", "_versions"}
    assert set(manifest_files(parts.store, address, synced=before, newest=before + 1)) == added
    assert sorted(parts.coordinator.manifest.files_of(address, before + 1)) == sorted(added)
    internals(graph).publisher.publish(MAIN_BRANCH, [], {}, intent())
    recorded = recorded_sums(parts.coordinator.manifest, parts.coordinator.manifest.open_fresh(address))
    root = folder.parent
    assert {str(Path(path).relative_to(root)) for path in added} <= set(recorded)


@pytest.mark.case("engine", 439)
def test_what_a_publish_writes_does_not_grow_with_history(graph: Graph) -> None:
    publisher, folder = internals(graph).publisher, manifest_path(graph)
    sizes = []
    for _ in range(2 * FRAGMENTS_MAX + 10):
        publisher.publish(MAIN_BRANCH, [], {}, intent())
        newest = f"{internals(graph).state().version - 1}-*.txn"
        sizes += [path.stat().st_size for path in (folder / "_transactions").glob(newest)]

    typical = sorted(sizes)[len(sizes) // 2]
    assert sum(size > typical + 100 for size in sizes) <= 4  # the two folds, and the publish after each
    internals(graph).parts.coordinator.manifest.compact(internals(graph).parts.coordinator.address())
    (folded,) = lance.dataset(str(folder)).get_fragments()
    assert folded.metadata.row_id_meta is not None
    assert len(folded.metadata.row_id_meta.json()) < 200  # two or three ranges


# Processes


def publish_for(root: str, seconds: float, outcomes: "Queue[tuple[list[str], int]]") -> None:
    """Publish and fold as fast as one can, with nothing but the fence between this process and the others."""
    with open_graph(root, durability="process") as graph:
        parts = internals(graph).parts
        publisher = ManifestPublisher(
            parts.coordinator, parts.store, parts.syncer, local_root=None, warn=lambda _text: None
        )
        landed, lost = [], 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lineage = intent()
            try:
                publisher.publish(MAIN_BRANCH, [], {}, lineage)
            except PublishRetriesExhausted:
                lost += 1
            else:
                landed.append(lineage.graph_commit_id)
    outcomes.put((landed, lost))


def crowd(graph: Graph, processes: int, seconds: float) -> None:
    """Let processes publish at once, and look at what they left."""
    spawn = multiprocessing.get_context("spawn")
    outcomes: Queue[tuple[list[str], int]] = spawn.Queue()
    workers = [
        spawn.Process(target=publish_for, args=(graph.uri, seconds, outcomes), daemon=True)
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    found = [outcomes.get(timeout=seconds + 120) for _ in workers]
    for worker in workers:
        worker.join()

    landed = [commit_id for ids, _ in found for commit_id in ids]
    commits = chain(reopen(graph))
    assert sorted(landed) == sorted(commit.graph_commit_id for commit in commits if commit.parent_commit_id)
    assert len({commit.manifest_version for commit in commits}) == len(commits)
    path = manifest_path(graph)
    assert heads(path) == ["graph_head:main"]
    assert len(set(keys(path))) == len(keys(path))
    assert all(ids for ids, _ in found)
    assert len(landed) > FRAGMENTS_MAX, "the manifest was folded on the way"


@pytest.mark.slow
@pytest.mark.case("engine", 436)
@pytest.mark.parametrize("processes", [2, 8])
def test_processes_that_publish_at_once_make_one_chain(graph: Graph, processes: int) -> None:
    crowd(graph, processes, seconds=6)


@pytest.mark.fuzz
@pytest.mark.case("engine", 436)
@pytest.mark.parametrize("processes", [2, 8])
def test_processes_that_publish_for_a_minute_make_one_chain(graph: Graph, processes: int) -> None:
    crowd(graph, processes, seconds=60)
