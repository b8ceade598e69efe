"""Graphs of earlier storage formats: a writer brings them up to this one, a reader serves them unchanged."""

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import (
    BranchNotFound,
    InvariantViolation,
    RowLevelCasContention,
    StorageError,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.legacy_lineage import LEGACY_ACTORS, LEGACY_COMMITS
from omnigraph.history.manifest_rows import MANIFEST_DIR, STAMP_KEY, TABLE_KINDS
from omnigraph.history.migrations import MIGRATION_MERGE_RETRY_BUDGET
from omnigraph.history.stamp import read_stamp
from tests.support.engine import copy_of, files, reopen, rows_at, together
from tests.support.older_graphs import (
    FEATURE_COMMITS,
    FIRST,
    MAIN_COMMITS,
    RUN_DATASETS,
    Expected,
    OlderGraph,
    annotation_of,
    write_older_graph,
)
from tests.support.queries import mutation
from tests.support.seam import internals

EVE = mutation('insert Person { name: "eve" }')
LEGACY_OPEN, ACTOR_OPEN = "migration.v3_to_v4.legacy_open", "migration.v3_to_v4.legacy_actor_open"
PRE_STAMP = {
    1: "migration.v1_to_v2.pre_stamp",
    2: "migration.v2_to_v3.pre_stamp",
    3: "migration.v3_to_v4.post_merge_pre_stamp",
}


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """A graph of each earlier stamp; tests copy it."""
    folder = tmp_path_factory.mktemp("older")
    return {stamp: write_older_graph(folder / str(stamp), stamp).root for stamp in (1, 2, 3)}


@pytest.fixture
def third(templates: dict[int, Path], tmp_path: Path) -> Path:
    """A graph of stamp 3."""
    return copy_of(templates[3], tmp_path / "graph")


# Looking


def manifest(root: Path, ref: str | None = None) -> lance.LanceDataset:
    """Return the manifest of a branch as it lies on the disk."""
    place = root / MANIFEST_DIR
    return lance.dataset(str(place if ref is None else place / "tree" / ref))


def stamp_of(root: Path, ref: str | None = None) -> int:
    """Return the stamp of a branch."""
    metadata = manifest(root, ref).schema.metadata or {}
    return read_stamp({key.decode(): value.decode() for key, value in metadata.items()})


def stamp_at(root: Path, version: int) -> int:
    """Return the stamp that main had at a version of its manifest."""
    metadata = lance.dataset(str(root / MANIFEST_DIR), version=version).schema.metadata or {}
    return read_stamp({key.decode(): value.decode() for key, value in metadata.items()})


def manifest_rows(root: Path, ref: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of a manifest in the order in which they lie."""
    return manifest(root, ref).to_table().to_pylist()


def of_kind(root: Path, kind: str, ref: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of one kind."""
    return [row for row in manifest_rows(root, ref) if row["object_type"] == kind]


def controls(root: Path) -> dict[str, dict[str, Any]]:
    """Return the control objects by file name."""
    return {path.name: json.loads(path.read_text()) for path in sorted((root / "__branches").glob("*"))}


def assert_history(graph: Graph, expected: Sequence[Expected], branch: str | None = None) -> None:
    """Check every commit of a branch, newest first, and the state that each shows."""
    commits = graph.commits(branch=branch)
    assert [
        (
            commit.graph_commit_id,
            commit.manifest_branch,
            commit.manifest_version,
            commit.parent_commit_id,
            commit.merged_parent_commit_id,
            commit.actor_id,
            commit.created_at,
        )
        for commit in commits
    ] == [
        (
            item.commit_id,
            item.branch,
            item.version,
            None if item.parent is None else Expected(item.parent, 0, None, None, ()).commit_id,
            None if item.merged is None else Expected(item.merged, 0, None, None, ()).commit_id,
            item.actor,
            item.created_at,
        )
        for item in reversed(expected)
    ]
    state = internals(graph).state(branch or "main")
    for item in expected:
        snapshot = state.snapshot_at(item.version)
        assert snapshot.head.graph_commit_id == item.commit_id
        assert tuple(rows_at(graph, snapshot, "node:Person")) == item.persons
        found = graph.at(item.commit_id).query("query q() { match { $p: Person } return { $p.name } }")
        assert sorted(str(row["p.name"]) for row in found.to_pylist()) == list(item.persons)


# The way up


@pytest.mark.case("engine", 31)
@pytest.mark.case("engine", 43)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_a_writer_migrates_a_graph_and_its_history_is_whole(
    stamp: int, templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")

    with reopen(root) as graph:
        assert_history(graph, MAIN_COMMITS)
        assert_history(graph, FEATURE_COMMITS, "feature")

    assert stamp_of(root) == INTERNAL_SCHEMA_VERSION
    assert len(of_kind(root, "graph_commit")) == len(MAIN_COMMITS)
    assert [row["object_id"] for row in of_kind(root, "graph_head")] == ["graph_head:main"]
    numbered = [row for row in manifest_rows(root) if row["object_type"] in TABLE_KINDS]
    assert numbered
    assert all(1 <= row["published_at"] <= MAIN_COMMITS[-1].version for row in numbered)


@pytest.mark.case("engine", 360)
def test_a_migrated_graph_has_one_schema_row_equal_to_its_file(third: Path) -> None:
    reopen(third).close()

    (row,) = of_kind(third, "schema")
    assert row["metadata"] == (third / "_schema.ir.json").read_text()
    assert row["published_at"] == MAIN_COMMITS[-1].version


@pytest.mark.case("engine", 32)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_a_migrated_graph_is_not_migrated_again(
    stamp: int, templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")
    reopen(root).close()
    before = manifest(root).version, manifest_rows(root), controls(root)

    reopen(root).close()

    assert (manifest(root).version, manifest_rows(root), controls(root)) == before


@pytest.mark.case("engine", 29)
def test_the_first_step_annotates_the_key_before_it_stamps(
    templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[1], tmp_path / "graph")
    assert not annotation_of(root)
    with failpoint(PRE_STAMP[1], "raise"), pytest.raises(InjectedFault):
        reopen(root)
    assert (annotation_of(root), stamp_of(root)) == (True, 1)

    reopen(root).close()

    assert (annotation_of(root), stamp_of(root)) == (True, INTERNAL_SCHEMA_VERSION)
    version = manifest(root).version
    reopen(root).close()
    assert manifest(root).version == version
    one, other = manifest(root), manifest(root)
    row = one.to_table().slice(0, 1).set_column(0, one.schema.field(0), pa.array(["unknown:1"]))
    merge(one, row)
    with pytest.raises(OSError, match="concurrent writers"):
        merge(other, row)


def merge(dataset: lance.LanceDataset, rows: pa.Table) -> None:
    """Publish as builds of stamps 2 and 3 did."""
    insert = dataset.merge_insert("object_id").when_matched_update_all().when_not_matched_insert_all()
    insert.conflict_retries(0).execute(rows)


@pytest.mark.case("engine", 30)
def test_the_second_step_removes_the_refs_of_runs_and_keeps_branches(
    templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[2], tmp_path / "graph")
    assert sorted(manifest(root).branches.list()) == ["__run__a", "__run__b", "feature"]

    with reopen(root) as graph:
        assert graph.branches() == ["feature", "main"]
        assert sorted(manifest(root).branches.list()) == ["feature"]
        assert [control["ref"] for control in controls(root).values()] == ["feature"]
        assert stamp_of(root) == INTERNAL_SCHEMA_VERSION
        graph.create_branch("__run__x")
        graph.mutate(EVE, branch="__run__x")

    with reopen(root) as graph:
        assert graph.branches() == ["__run__x", "feature", "main"]
        assert "eve" in graph.table("Person", branch="__run__x")["name"].to_pylist()
    assert all((root / name).exists() for name in RUN_DATASETS)  # inert, and left to cleanup


@pytest.mark.case("engine", 307)
@pytest.mark.parametrize("stamp", [2, 3])
def test_refs_inside_one_another_become_branches_of_their_own(stamp: int, tmp_path: Path) -> None:
    older = write_older_graph(tmp_path / "graph", stamp)
    for name in ("a", "a/b"):
        older.branch(name)
        older.fork("node:Person", name)
        older.append("node:Person", [(name, 1, name)], name)
        version = older.publish(("node:Person", name), branch=name)
        number = 7 + len(name)
        older.record(Expected(number, version, 6, name, (), branch=name))

    with reopen(older.root) as graph:
        assert graph.branches() == ["a", "a/b", "feature", "main"]
        assert graph.commits(branch="a/b")[0].actor_id == "a/b"
        graph.mutate(EVE, branch="a")
        graph.mutate(EVE, branch="a/b")
        graph.delete_branch("a")
    assert {"a", "a/b"} <= manifest(older.root).branches.list().keys()  # the inner one first

    with reopen(older.root) as graph:
        assert graph.branches() == ["a/b", "feature", "main"]
        assert {"a/b", "eve"} <= set(graph.table("Person", branch="a/b")["name"].to_pylist())
        assert "a" not in graph.table("Person", branch="a/b")["name"].to_pylist()
        graph.mutate(mutation('insert Person { name: "fay" }'), branch="a/b")
        graph.create_branch("a")
        assert "eve" not in graph.table("Person", branch="a")["name"].to_pylist()
        graph.delete_branch("a/b")
        assert graph.branches() == ["a", "feature", "main"]


def test_a_lost_control_object_of_a_branch_inside_another_is_noticed(tmp_path: Path) -> None:
    older = write_older_graph(tmp_path / "graph", 3)
    older.branch("a/b")
    with reopen(older.root) as graph:
        graph.mutate(EVE, branch="a/b")
        (older.root / "__branches" / "a%2Fb.json").unlink()

        with pytest.raises(StorageError, match=r"a%2Fb\.json"):
            graph.branches()


@pytest.mark.case("engine", 344)
@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("has_column", [False, True])
def test_rows_are_numbered_by_the_version_they_came_with(
    *, is_compacted: bool, has_column: bool, tmp_path: Path
) -> None:
    root = write_older_graph(tmp_path / "graph", 3, has_column=has_column).root
    if is_compacted:
        manifest(root).optimize.compact_files()
        assert len(manifest(root).get_fragments()) == 1

    with reopen(root, mode="ro") as graph:
        assert_history(graph, MAIN_COMMITS)
    with reopen(root) as graph:
        assert_history(graph, MAIN_COMMITS)
        assert_history(graph, FEATURE_COMMITS, "feature")
        graph.mutate(EVE, branch="feature")
        graph.mutate(EVE)

    published = {row["object_id"]: row["published_at"] for row in of_kind(root, "table_version")}
    assert sorted(published.values()) == [1, 1, 1, 1, 2, 3, 3, 4, 5, manifest(root).version]


# A step that ends half-way


@pytest.mark.case("engine", 33)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_a_step_that_ended_before_its_stamp_is_only_stamped(
    stamp: int, templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")
    with failpoint(PRE_STAMP[stamp], "raise"), pytest.raises(InjectedFault):
        reopen(root)
    assert stamp_of(root) == stamp
    before, rows = manifest(root).version, manifest_rows(root)

    with failpoint(PRE_STAMP.get(stamp + 1, "publish.before_update"), "raise"), suppress(InjectedFault):
        reopen(root)

    if stamp == 3:
        assert (manifest(root).version, manifest_rows(root)) == (before + 1, rows)
    assert stamp_of(root) > stamp
    with reopen(root) as graph:
        assert_history(graph, MAIN_COMMITS)


@pytest.mark.case("engine", 34)
@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_without_its_lineage_a_graph_begins_a_new_history(third: Path, mode: str) -> None:
    shutil.rmtree(third / LEGACY_COMMITS)

    if mode == "ro":
        with reopen(third, mode="ro") as graph:
            assert graph.commits() == []
            assert len(graph.table("Person")) == 4
        assert stamp_of(third) == 3
    with reopen(third) as graph:
        assert stamp_of(third) == INTERNAL_SCHEMA_VERSION
        assert graph.commits() == []
        assert of_kind(third, "graph_head") == []
        assert len(graph.query("query q() { match { $p: Person } return { $p.name } }").to_pylist()) == 4
        graph.create_branch("early")
        assert graph.commits(branch="early") == []
        made = graph.mutate(EVE).commit
        assert made is not None
        assert made.parent_commit_id is None
    with reopen(third) as graph:
        assert [commit.graph_commit_id for commit in graph.commits()] == [made.graph_commit_id]
        assert len(graph.table("Person")) == 5
        graph.mutate(EVE, branch="early")
        assert len(graph.commits(branch="early")) == 1
        graph.mutate(mutation('insert Person { name: "fay" }'))
        assert graph.commits()[0].parent_commit_id == made.graph_commit_id


def failing(kind: str) -> Callable[[], None]:
    """Return what fails like a store."""

    def fail() -> None:
        raise StorageError("the store failed: it was not found, perhaps", kind=kind)

    return fail


@pytest.mark.case("engine", 35)
@pytest.mark.case("engine", 36)
@pytest.mark.case("engine", 37)
@pytest.mark.parametrize("kind", ["transient", "not_found"])
@pytest.mark.parametrize("place", [LEGACY_OPEN, ACTOR_OPEN])
@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_a_lineage_that_cannot_be_read_is_never_taken_for_empty(
    third: Path, kind: str, place: str, mode: str
) -> None:
    with failpoint(place, "call", failing(kind)), pytest.raises(StorageError, match="the store failed"):
        reopen(third, mode="rw" if mode == "rw" else "ro")
    assert stamp_of(third) == 3
    assert of_kind(third, "graph_commit") == []

    with reopen(third) as graph:
        assert_history(graph, MAIN_COMMITS)


@pytest.mark.case("engine", 36)
def test_without_authors_the_commits_have_none(third: Path) -> None:
    shutil.rmtree(third / LEGACY_ACTORS)

    with reopen(third) as graph:
        assert [commit.graph_commit_id for commit in graph.commits()] == [
            item.commit_id for item in reversed(MAIN_COMMITS)
        ]
        assert {commit.actor_id for commit in graph.commits()} == {None}


@pytest.mark.parametrize("place", [LEGACY_OPEN, ACTOR_OPEN])
def test_a_fault_that_nobody_expects_leaves_the_stamp(third: Path, place: str) -> None:
    with failpoint(place, "raise"), pytest.raises(InjectedFault):
        reopen(third)

    assert stamp_of(third) == 3
    with reopen(third) as graph:
        assert_history(graph, MAIN_COMMITS)


@pytest.mark.case("engine", 486)
def test_a_branch_without_its_part_of_the_lineage_is_refused_and_main_is_not(third: Path) -> None:
    lance.dataset(str(third / LEGACY_COMMITS)).branches.delete("feature")

    with reopen(third) as graph:
        assert_history(graph, MAIN_COMMITS)
        graph.mutate(EVE)
        for call in (graph.commits, lambda branch: graph.mutate(EVE, branch=branch)):
            with pytest.raises(StorageError, match="feature"):
                call(branch="feature")
    assert stamp_of(third, "feature") == 3


def test_rows_of_one_commit_that_contradict_each_other_are_loud(third: Path) -> None:
    older = OlderGraph(third, 3)
    older.record(Expected(6, 5, 5, None, ()))  # without the merge

    with pytest.raises(InvariantViolation, match="two rows of commit"):
        reopen(third)

    assert stamp_of(third) == 3


def test_a_ref_that_can_be_no_branch_is_loud(third: Path) -> None:
    manifest(third).create_branch("A" * 80)  # capitals take three bytes in the name of a control object

    with pytest.raises(InvariantViolation, match="cannot be a branch"):
        reopen(third)

    assert stamp_of(third) == 3


def test_the_lock_of_a_schema_change_is_no_branch(third: Path) -> None:
    manifest(third).create_branch("__schema_apply_lock__")

    with reopen(third, mode="ro") as graph:
        assert graph.branches() == ["feature", "main"]
    with reopen(third) as graph:
        assert graph.branches() == ["feature", "main"]
        graph.create_branch("other")


# Several at once


@pytest.mark.case("engine", 38)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_two_handles_migrate_at_once(stamp: int, templates: dict[int, Path], tmp_path: Path) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")

    opened = together(*[lambda: reopen(root)] * 3)

    for graph in opened:
        assert isinstance(graph, Graph), graph
        assert_history(graph, MAIN_COMMITS)
        graph.close()
    assert len(of_kind(root, "graph_commit")) == len(MAIN_COMMITS)
    assert len(manifest_rows(root)) == len({row["object_id"] for row in manifest_rows(root)})
    assert stamp_of(root) == INTERNAL_SCHEMA_VERSION


def without_lock(root: Path) -> None:
    """Migrate main as a process on another host does, which shares no lock with this one."""
    from omnigraph.history.identity import MAIN_BRANCH
    from omnigraph.operations.context import make_publisher
    from omnigraph.operations.open import make_parts
    from omnigraph.storage.control.durability import Durability

    make_publisher(make_parts(str(root), durability=Durability.PROCESS)).bring_up(MAIN_BRANCH)


@pytest.mark.case("engine", 38)
@pytest.mark.parametrize(
    ("stamp", "place"),
    [
        (1, PRE_STAMP[1]),
        (2, "migration.v2_to_v3.post_ref_drop"),
        (2, PRE_STAMP[2]),
        (3, "migration.v3_to_v4.post_control"),
        (3, LEGACY_OPEN),
        (3, ACTOR_OPEN),
        (3, PRE_STAMP[3]),
        (3, "migration.v4_stamp.force_incompatible"),
    ],
)
def test_a_migration_that_another_one_overtakes_converges(
    stamp: int, place: str, templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")
    done: list[bool] = []

    def overtake() -> None:
        if not done:
            done.append(True)
            without_lock(root)

    with failpoint(place, "call", overtake), reopen(root) as graph:
        assert_history(graph, MAIN_COMMITS)
        assert graph.branches() == ["feature", "main"]

    assert done
    assert len(manifest_rows(root)) == len({row["object_id"] for row in manifest_rows(root)})
    assert (stamp_of(root), annotation_of(root)) == (INTERNAL_SCHEMA_VERSION, True)
    stamps = [stamp_at(root, version) for version in range(1, manifest(root).version + 1)]
    assert stamps == sorted(stamps)


@pytest.mark.case("engine", 40)
@pytest.mark.parametrize("stamp", [1, 3])
def test_a_stamp_that_loses_every_round_is_contention(
    stamp: int, templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")

    with (
        failpoint("migration.v4_stamp.force_incompatible", "contention"),
        pytest.raises(RowLevelCasContention, match="stamp 4"),
    ):
        reopen(root)

    assert stamp_of(root) == 3
    with reopen(root) as graph:
        assert_history(graph, MAIN_COMMITS)


class Rival:
    """A build of an earlier format that rewrites a row of a manifest, some times."""

    def __init__(self, root: Path, ref: str | None, rounds: int) -> None:
        self.root, self.ref, self.rounds = root, ref, rounds

    def __call__(self) -> None:
        if self.rounds:
            self.rounds -= 1
            dataset = manifest(self.root, self.ref)
            merge(dataset, dataset.to_table().slice(0, 1))


@pytest.mark.case("engine", 41)
def test_rows_that_lose_every_round_are_contention(third: Path) -> None:
    rival = Rival(third, None, MIGRATION_MERGE_RETRY_BUDGET)

    with failpoint(LEGACY_OPEN, "call", rival), pytest.raises(RowLevelCasContention, match="lineage"):
        without_lock(third)

    assert (stamp_of(third), rival.rounds) == (3, 0)
    assert of_kind(third, "graph_commit") == []


@pytest.mark.case("engine", 41)
def test_a_publish_tries_again_when_a_migration_lost_every_round(third: Path) -> None:
    with reopen(third) as graph:
        graph.snapshot("feature")
        rival = Rival(third, "feature", MIGRATION_MERGE_RETRY_BUDGET)
        rival.rounds += 10  # reads of the state pass the place as well

        def only_in_publishes() -> None:
            if of_kind(third, "graph_commit", "feature") == []:
                rival()

        with failpoint(LEGACY_OPEN, "call", only_in_publishes):
            made = graph.mutate(EVE, branch="feature").commit

        assert rival.rounds == 0
        assert made is not None
        assert made.parent_commit_id == FEATURE_COMMITS[-1].commit_id


@pytest.mark.case("engine", 485)
def test_what_an_earlier_build_publishes_beside_the_migration_is_brought_up_too(third: Path) -> None:
    older = OlderGraph(third, 3)
    done: list[bool] = []
    late = Expected(7, 6, 6, "eli", ("ann", "bob", "cid", "dan", "eli"))

    def publish() -> None:
        if not done:
            done.append(True)
            older.append("node:Person", [("eli", 1, "eli")])
            assert older.publish(("node:Person", None)) == late.version
            older.record(late)

    with failpoint(ACTOR_OPEN, "call", publish), reopen(third) as graph:
        assert_history(graph, (*MAIN_COMMITS, late))
        graph.mutate(EVE)

    assert of_kind(third, "graph_head")[0]["published_at"] is None
    assert len(manifest_rows(third)) == len({row["object_id"] for row in manifest_rows(third)})


# Branch by branch


@pytest.mark.case("engine", 42)
def test_a_branch_is_migrated_by_its_first_write(third: Path) -> None:
    before = files(third / MANIFEST_DIR / "tree" / "feature")
    with reopen(third) as graph:
        assert files(third / MANIFEST_DIR / "tree" / "feature") == before
        assert controls(third)["feature.json"]["ref"] == "feature"
        assert_history(graph, FEATURE_COMMITS, "feature")
        assert stamp_of(third, "feature") == 3
        main = manifest_rows(third)

        made = graph.mutate(EVE, branch="feature", actor="eve").commit

        assert manifest_rows(third) == main
        assert stamp_of(third, "feature") == INTERNAL_SCHEMA_VERSION
        assert made is not None
        assert made.parent_commit_id == FEATURE_COMMITS[-1].commit_id
        (head,) = of_kind(third, "graph_head", "feature")
        assert head["object_id"] == "graph_head:feature"
        assert json.loads(head["metadata"])["head_commit_id"] == made.graph_commit_id
        assert [commit.actor_id for commit in graph.commits(branch="feature")] == [
            *("eve", "cid", "bob", "ann", None)
        ]
        assert_history(graph, MAIN_COMMITS)


@pytest.mark.case("engine", 480)
def test_a_branch_made_from_one_that_was_not_migrated_has_its_commits(third: Path) -> None:
    with reopen(third) as graph:
        graph.create_branch("next", "feature")

        assert stamp_of(third, "feature") == INTERNAL_SCHEMA_VERSION
        assert_history(graph, FEATURE_COMMITS, "feature")
        assert_history(graph, FEATURE_COMMITS, "next")
        graph.mutate(EVE, branch="next")
        assert graph.commits(branch="next")[0].parent_commit_id == FEATURE_COMMITS[-1].commit_id


def test_a_branch_that_was_not_migrated_is_merged_and_deleted(third: Path) -> None:
    with reopen(third) as graph:
        graph.mutate(mutation('delete Person where name = "cid"'))
        merged = graph.merge("feature")
        assert merged.commit is None or merged.commit.merged_parent_commit_id == FEATURE_COMMITS[-1].commit_id
        graph.delete_branch("feature")

        assert graph.branches() == ["main"]
        with pytest.raises(BranchNotFound):
            graph.commits(branch="feature")
    with reopen(third) as graph:
        assert graph.branches() == ["main"]


@pytest.mark.case("engine", 47)
def test_a_legacy_commit_added_after_the_migration_is_ignored(third: Path) -> None:
    reopen(third).close()
    OlderGraph(third, 3).record(Expected(9, 9, 6, "late", ()))

    for mode in ("rw", "ro"):
        with reopen(third, mode="rw" if mode == "rw" else "ro") as graph:
            assert_history(graph, MAIN_COMMITS)


@pytest.mark.case("engine", 48)
@pytest.mark.parametrize("lost", ["datasets", "ref"])
def test_after_the_migration_nobody_needs_the_legacy_datasets(third: Path, lost: str) -> None:
    with reopen(third) as graph:
        graph.mutate(EVE, branch="feature")
    if lost == "ref":
        lance.dataset(str(third / LEGACY_COMMITS)).branches.delete("feature")
    else:
        shutil.rmtree(third / LEGACY_COMMITS)
        shutil.rmtree(third / LEGACY_ACTORS)

    with reopen(third) as graph:
        assert_history(graph, MAIN_COMMITS)
        assert len(graph.commits(branch="feature")) == len(FEATURE_COMMITS) + 1
        assert "eve" in graph.table("Person", branch="feature")["name"].to_pylist()
        graph.create_branch("next", "feature")
        graph.mutate(mutation('insert Person { name: "fay" }'), branch="next")
        graph.mutate(mutation('insert Person { name: "gil" }'), branch="feature")
        merged = graph.merge("next", "feature").commit
        assert merged is not None
        assert merged.merged_parent_commit_id is not None
        assert graph.merge("feature").commit is not None


@pytest.mark.case("engine", 49)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_every_migration_of_one_graph_gives_the_same(
    stamp: int, templates: dict[int, Path], tmp_path: Path
) -> None:
    outputs = []
    for number in range(3):
        root = copy_of(templates[stamp], tmp_path / str(number))
        reopen(root).close()
        schema = manifest(root).schema
        outputs.append((manifest_rows(root), controls(root), schema, schema.metadata, manifest(root).version))

    assert outputs[0] == outputs[1] == outputs[2]
    assert [row["object_id"] for row in outputs[0][0] if row["object_type"] == "graph_commit"] == [
        item.commit_id for item in MAIN_COMMITS
    ]


# A stamp that was lost


@pytest.mark.case("engine", 27)
def test_a_graph_that_lost_its_stamp_gets_it_back_and_nothing_else(third: Path) -> None:
    with reopen(third) as graph:
        graph.create_branch("june")
        graph.mutate(EVE, branch="june")
        graph.mutate(EVE)
    dataset = manifest(third)
    dataset.create_branch("left-over")
    rows, known, commits = manifest_rows(third), controls(third), graph_commits(third)
    OlderGraph(third, 3).record(Expected(9, 9, 6, "late", ()))  # nobody asks those datasets any more
    manifest(third).update_schema_metadata({STAMP_KEY: None})
    assert stamp_of(third) == 1

    with reopen(third, mode="ro") as graph:
        assert graph.snapshot().stamp == 1
        assert [commit.graph_commit_id for commit in graph.commits()] == commits
    with reopen(third) as graph:
        assert graph.branches() == ["feature", "june", "main"]
        assert [commit.graph_commit_id for commit in graph.commits()] == commits

    assert stamp_of(third) == INTERNAL_SCHEMA_VERSION
    assert (manifest_rows(third), controls(third)) == (rows, known)


def graph_commits(root: Path) -> list[str]:
    """Return the ids of main's commits, newest first."""
    with reopen(root) as graph:
        return [commit.graph_commit_id for commit in graph.commits()]


def test_a_manifest_that_was_put_back_is_migrated_again_without_new_branches(third: Path) -> None:
    before = manifest(third).version
    with reopen(third) as graph:
        graph.create_branch("june")
        graph.mutate(EVE, branch="june")
    lance.LanceDataset.commit(str(third / MANIFEST_DIR), lance.LanceOperation.Restore(before))
    assert stamp_of(third) == 3

    with reopen(third) as graph:
        assert graph.branches() == ["feature", "june", "main"]
        assert_history(graph, MAIN_COMMITS)
        assert "eve" in graph.table("Person", branch="june")["name"].to_pylist()


def test_rows_that_nothing_numbers_are_loud(third: Path) -> None:
    rows = manifest(third).to_table()
    shutil.rmtree(third / MANIFEST_DIR)
    lance.write_dataset(rows, str(third / MANIFEST_DIR))  # without stable row ids

    for mode in ("ro", "rw"):
        with pytest.raises(InvariantViolation, match="stable row ids"):
            reopen(third, mode="rw" if mode == "rw" else "ro")


@pytest.mark.case("engine", 484)
def test_a_branch_called_like_a_run_survives_a_lost_stamp(tmp_path: Path) -> None:
    older = write_older_graph(tmp_path / "graph", 3)
    older.branch("__run__mine")
    with reopen(older.root) as graph:
        assert graph.branches() == ["__run__mine", "feature", "main"]
    manifest(older.root).update_schema_metadata({STAMP_KEY: "2"})

    with reopen(older.root) as graph:
        assert graph.branches() == ["__run__mine", "feature", "main"]
        assert_history(graph, MAIN_COMMITS, "__run__mine")


# Reading below stamp 4


@pytest.mark.case("engine", 45)
@pytest.mark.case("engine", 46)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_a_reader_serves_an_older_graph_and_changes_nothing(
    stamp: int, templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")
    before = files(root)

    with reopen(root, mode="ro") as graph:
        assert graph.branches() == ["feature", "main"]
        assert_history(graph, MAIN_COMMITS)
        assert_history(graph, FEATURE_COMMITS, "feature")
        assert graph.snapshot().stamp == stamp
        assert graph.verify().is_whole
        with pytest.raises(BranchNotFound):
            graph.commits(branch="__run__a")
        assert list(graph.diff(FIRST[1].commit_id, MAIN_COMMITS[-1].commit_id))

    assert files(root) == before


@pytest.mark.case("engine", 487)
def test_a_reader_of_an_older_graph_follows_its_migration(third: Path) -> None:
    with reopen(third, mode="ro") as reader:
        assert_history(reader, MAIN_COMMITS)
        with reopen(third) as writer:
            writer.create_branch("june")
            writer.mutate(EVE, branch="june")
            writer.mutate(EVE)

        assert reader.branches() == ["feature", "june", "main"]
        assert reader.snapshot().stamp == INTERNAL_SCHEMA_VERSION
        assert "eve" in reader.table("Person", branch="june")["name"].to_pylist()
        assert len(reader.commits()) == len(MAIN_COMMITS) + 1
        assert_history(reader, FEATURE_COMMITS, "feature")


def test_a_reader_sees_what_an_earlier_build_still_publishes(third: Path) -> None:
    older = OlderGraph(third, 3)
    with reopen(third, mode="ro") as graph:
        assert len(graph.commits()) == len(MAIN_COMMITS)
        older.append("node:Person", [("eli", 1, "eli")])
        version = older.publish(("node:Person", None))
        assert "eli" in graph.table("Person")["name"].to_pylist()

        older.record(Expected(7, version, 6, "eli", ()))

        assert graph.commits()[0].actor_id == "eli"
