"""Migrations that die, stop and race: every open converges on the same graph."""

import json
import shutil
from pathlib import Path

import lance
import pytest

import omnigraph
from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import SidecarCorrupt, StorageError
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS, failpoint
from omnigraph.history.identity import identity_of
from omnigraph.history.legacy_lineage import LEGACY_COMMITS
from omnigraph.history.manifest_rows import MANIFEST_DIR
from tests.support.engine import copy_of
from tests.support.forked import Forked
from tests.support.older_graphs import FEATURE_COMMITS, MAIN_COMMITS, OlderGraph, write_older_graph
from tests.support.protocol import sidecars

OPEN = "import sys, omnigraph; omnigraph.open(sys.argv[1]).close(); print('done')"
OPEN_AND_WAIT = """
import sys, omnigraph
from tests.support.protocol import paused_at, say, tell_and_wait
with paused_at(sys.argv[2], "call", tell_and_wait):
    omnigraph.open(sys.argv[1]).close()
say("done")
"""
# Reads of the branch pass some of the places as well: the program dies at one behind its commits of tables.
WRITE_AND_DIE = """
import sys, omnigraph
from contextlib import ExitStack
from omnigraph.core.failpoint import failpoint
with ExitStack() as stack, omnigraph.open(sys.argv[1]) as graph:
    arm = lambda: stack.enter_context(failpoint(sys.argv[2], "exit"))
    with failpoint("write.post_finalize_pre_publisher", "call", arm):
        graph.mutate('query q() { insert Person { name: "eve" } }', branch="feature", actor="eve")
"""
THIRD_STEP = (
    "migration.v3_to_v4.post_control",
    "migration.v3_to_v4.legacy_open",
    "migration.v3_to_v4.legacy_actor_open",
    "migration.v3_to_v4.post_merge_pre_stamp",
    "migration.v4_stamp.force_incompatible",
)
SECOND_STEP = ("migration.v2_to_v3.post_ref_drop", "migration.v2_to_v3.pre_stamp")
PLACES = {
    1: ("migration.v1_to_v2.pre_stamp", *SECOND_STEP, *THIRD_STEP),
    2: (*SECOND_STEP, *THIRD_STEP),
    3: THIRD_STEP,
}
Output = tuple[list[dict[str, object]], dict[str, str], dict[bytes, bytes] | None]


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """A graph of each earlier stamp; tests copy it."""
    folder = tmp_path_factory.mktemp("older")
    return {stamp: write_older_graph(folder / str(stamp), stamp).root for stamp in (1, 2, 3)}


@pytest.fixture(scope="session")
def migrated(templates: dict[int, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[int, Output]:
    """What each of them becomes if nothing gets in the way."""
    found = {}
    for stamp, template in templates.items():
        root = copy_of(template, tmp_path_factory.mktemp("migrated") / "graph")
        omnigraph.open(root).close()
        found[stamp] = output(root)
    return found


def manifest(root: Path, ref: str | None = None) -> lance.LanceDataset:
    """Return the manifest of a branch as it lies on the disk."""
    place = root / MANIFEST_DIR
    return lance.dataset(str(place if ref is None else place / "tree" / ref))


def output(root: Path) -> Output:
    """Return all that the migration of main leaves: rows, control objects, the stamp."""
    dataset = manifest(root)
    texts = {path.name: path.read_text() for path in sorted((root / "__branches").glob("*"))}
    return dataset.to_table().to_pylist(), texts, dataset.schema.metadata


def assert_whole(root: Path) -> None:
    """Check the history of both branches."""
    with omnigraph.open(root) as graph:
        for branch, expected in (("main", MAIN_COMMITS), ("feature", FEATURE_COMMITS)):
            found = [
                (commit.graph_commit_id, commit.actor_id) for commit in reversed(graph.commits(branch=branch))
            ]
            assert found[: len(expected)] == [(item.commit_id, item.actor) for item in expected]
            persons = graph.table("Person", branch=branch)["name"].to_pylist()
            assert set(expected[-1].persons) <= set(persons)
        assert graph.branches() == ["feature", "main"]
        assert graph.verify().is_whole


def killed(program: str, root: Path, place: str) -> None:
    """Run a program that dies at a place, as `kill -9` would end it."""
    with Forked(program, root, **{ENVIRONMENT: f"{place}=exit"}) as script:
        assert script.wait() == EXIT_STATUS, f"nobody came to {place}"


# Killed


@pytest.mark.case("engine", 481)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_a_migration_killed_at_every_step_in_turn_converges(
    stamp: int, templates: dict[int, Path], migrated: dict[int, Output], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")

    for place in PLACES[stamp]:
        killed(OPEN, root, place)

    omnigraph.open(root).close()
    assert output(root) == migrated[stamp]
    assert_whole(root)


@pytest.mark.slow
@pytest.mark.case("engine", 481)
@pytest.mark.parametrize(("stamp", "place"), [(stamp, place) for stamp in PLACES for place in PLACES[stamp]])
def test_a_migration_killed_once_converges(
    stamp: int, place: str, templates: dict[int, Path], migrated: dict[int, Output], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")

    killed(OPEN, root, place)

    with omnigraph.open(root, mode="ro") as reader:
        assert len(reader.commits()) == len(MAIN_COMMITS)
        assert reader.branches() == ["feature", "main"]
    omnigraph.open(root).close()
    assert output(root) == migrated[stamp]
    assert_whole(root)


@pytest.mark.case("engine", 483)
@pytest.mark.parametrize("place", THIRD_STEP[1:])
def test_a_write_killed_in_the_migration_of_its_branch_is_settled(
    place: str, templates: dict[int, Path], migrated: dict[int, Output], tmp_path: Path
) -> None:
    root = copy_of(templates[3], tmp_path / "graph")
    omnigraph.open(root).close()
    with Forked(WRITE_AND_DIE, root, place) as script:
        assert script.wait() == EXIT_STATUS
    assert len(sidecars(root)) == 1

    assert_whole(root)

    assert sidecars(root) == ()
    assert output(root) == migrated[3]
    assert (manifest(root, "feature").schema.metadata or {})[b"omnigraph:internal_schema_version"] == b"4"
    rows = manifest(root, "feature").to_table().to_pylist()
    assert len(rows) == len({row["object_id"] for row in rows})


# Stopped, and beside one another


@pytest.mark.case("engine", 39)
@pytest.mark.case("engine", 482)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_two_processes_open_an_older_graph_at_once(
    stamp: int, templates: dict[int, Path], migrated: dict[int, Output], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")

    with Forked(OPEN, root) as one, Forked(OPEN, root) as other:
        assert (one.read_line(), other.read_line()) == ("done", "done")
        assert (one.wait(), other.wait()) == (0, 0)

    assert output(root) == migrated[stamp]
    assert_whole(root)


@pytest.mark.case("engine", 482)
@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize(
    ("stamp", "place"), [(1, PLACES[1][0]), (2, SECOND_STEP[0]), (3, THIRD_STEP[0]), (3, THIRD_STEP[3])]
)
def test_one_that_stops_in_a_step_is_waited_for_and_one_that_dies_is_not(
    stamp: int,
    place: str,
    templates: dict[int, Path],
    migrated: dict[int, Output],
    tmp_path: Path,
    *,
    is_killed: bool,
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")
    with Forked(OPEN_AND_WAIT, root, place) as stopped:
        assert stopped.read_line() == "paused"
        with Forked(OPEN, root) as other:
            if is_killed:
                stopped.end()
            else:
                stopped.write_line()
                assert stopped.read_line() == "done"

            assert other.read_line() == "done"
            assert other.wait() == 0

    assert output(root) == migrated[stamp]
    assert_whole(root)


# Files that cannot be synced


@pytest.fixture
def third(templates: dict[int, Path], tmp_path: Path) -> Path:
    """A graph of stamp 3."""
    return copy_of(templates[3], tmp_path / "graph")


@pytest.mark.case("engine", 488)
@pytest.mark.parametrize("passed", [0, 1, 2])
def test_what_cannot_be_synced_is_taken_back(third: Path, migrated: dict[int, Output], passed: int) -> None:
    before = manifest(third).to_table().to_pylist()

    with failpoint("durability.pre_manifest_sync", f"skip:{passed},raise"), pytest.raises(StorageError):
        omnigraph.open(third)

    if passed < 2:  # the base, then the rows
        assert manifest(third).to_table().to_pylist() == before
    assert (manifest(third).schema.metadata or {})[b"omnigraph:internal_schema_version"] == b"3"
    omnigraph.open(third).close()
    assert output(third) == migrated[3]
    assert_whole(third)


# Sidecars of those builds


def legacy_sidecar(root: Path, kind: str, *table_keys: str) -> Path:
    """Leave the sidecar of a writer of stamp 3 that moved tables of main."""
    older = OlderGraph(root, 3)
    operation_id = "01BX5ZZKBKACTAV9WEVGEMMVS0"
    tables = []
    for key in table_keys:
        head = lance.dataset(older.at(older.location(key))).version
        identity = identity_of(older.types[key])
        tables.append(
            {
                "table_key": key,
                "stable_table_id": identity.stable_table_id,
                "table_incarnation_id": identity.table_incarnation_id,
                "table_path": older.location(key),
                "table_branch": None,
                "expected_version": head,
                "post_commit_pin": head + 1,
            }
        )
    document = {
        "schema_version": 1,
        "operation_id": operation_id,
        "writer_kind": kind,
        "started_at": 1_600_000_000_000_000,
        "branch": None,
        "actor_id": "ann",
        "tables": tables,
        "merge_source_commit_id": FEATURE_COMMITS[-1].commit_id if kind == "BranchMerge" else None,
        "additional_registrations": [],
        "renames": [],
        "tombstones": [],
        "target_schema_ir_hash": None,
    }
    path = root / "__recovery" / f"{operation_id}.json"
    path.parent.mkdir()
    path.write_text(json.dumps(document))
    return path


@pytest.mark.case("engine", 154)
@pytest.mark.parametrize("is_migrated_before", [False, True])
@pytest.mark.parametrize("steps", [1, 2])
def test_a_merge_of_an_earlier_build_goes_forward(
    third: Path, *, is_migrated_before: bool, steps: int
) -> None:
    older = OlderGraph(third, 3)
    if is_migrated_before:
        omnigraph.open(third).close()
    legacy_sidecar(third, "BranchMerge", "node:Person", "node:Company")
    for number in range(steps):
        older.append("node:Person", [(f"p{number}", 1, f"p{number}")])
        older.append("node:Company", [(f"c{number}", f"c{number}")])

    with omnigraph.open(third) as graph:
        assert "p0" in graph.table("Person")["name"].to_pylist()
        assert "c0" in graph.table("Company")["name"].to_pylist()
        recovered = graph.commits()[0]
        (record,) = graph.recoveries()

    assert recovered.actor_id == "omnigraph:recovery"
    assert recovered.merged_parent_commit_id == FEATURE_COMMITS[-1].commit_id
    assert recovered.parent_commit_id == MAIN_COMMITS[-1].commit_id
    assert record.recovery_kind == "RolledForward"
    assert sidecars(third) == ()


@pytest.mark.parametrize(
    ("kind", "steps", "is_forward"),
    [("Mutation", 1, True), ("Mutation", 2, False), ("BranchMerge", 1, False)],
)
def test_other_sidecars_of_an_earlier_build_are_judged_by_numbers(
    third: Path, kind: str, steps: int, *, is_forward: bool
) -> None:
    older = OlderGraph(third, 3)
    keys = ("node:Person", "node:Company") if kind == "BranchMerge" else ("node:Person",)
    legacy_sidecar(third, kind, *keys)
    for number in range(steps):
        older.append("node:Person", [(f"p{number}", 1, f"p{number}")])

    with omnigraph.open(third) as graph:
        assert ("p0" in graph.table("Person")["name"].to_pylist()) == is_forward
        assert len(graph.recoveries()) == 1

    assert sidecars(third) == ()
    assert_whole(third)


@pytest.mark.parametrize("place", ["recovery.post_plan_pre_undo", "recovery.record_audit"])
def test_a_recovery_of_such_a_sidecar_that_dies_says_the_same_again(third: Path, place: str) -> None:
    path = legacy_sidecar(third, "BranchMerge", "node:Person", "node:Company")
    OlderGraph(third, 3).append("node:Person", [("p0", 1, "p0")])

    killed(OPEN, third, place)

    assert json.loads(path.read_text())["schema_version"] == 1
    with omnigraph.open(third) as graph:
        assert "p0" not in graph.table("Person")["name"].to_pylist()
        assert len(graph.recoveries()) == 1
        assert [commit.actor_id for commit in graph.commits()].count("omnigraph:recovery") == 1


@pytest.mark.parametrize("edit", ["unknown", "missing", "confirmed", "tables"])
def test_a_sidecar_of_version_1_with_other_members_is_corrupt(third: Path, edit: str) -> None:
    path = legacy_sidecar(third, "BranchMerge", "node:Person")
    document = json.loads(path.read_text())
    match edit:
        case "unknown":
            document["graph_commit_id"] = FEATURE_COMMITS[-1].commit_id
        case "missing":
            del document["actor_id"]
        case "confirmed":
            document["tables"][0]["confirmed_version"] = 5
        case _:
            document["tables"] = "none"
    path.write_text(json.dumps(document))

    with pytest.raises(SidecarCorrupt):
        omnigraph.open(third)

    assert path.exists()


@pytest.mark.case("engine", 401)
def test_a_sidecar_of_version_1_is_corrupt_where_no_build_wrote_it(third: Path) -> None:
    path = legacy_sidecar(third, "Mutation", "node:Person")
    omnigraph.open(third).close()
    path.write_text(json.dumps({"schema_version": 1}))
    with pytest.raises(SidecarCorrupt, match="members"):
        omnigraph.open(third)
    shutil.rmtree(third / LEGACY_COMMITS)  # as if it had never been of an earlier format
    text = path.read_text()

    with pytest.raises(SidecarCorrupt, match="the oldest supported one is 2"):
        omnigraph.open(third)

    assert path.read_text() == text


def test_the_stamp_of_this_build_is_the_last_one() -> None:
    assert max(PLACES) + 1 == INTERNAL_SCHEMA_VERSION
