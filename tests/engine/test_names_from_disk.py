"""Names read from files that become part of a path: one that leads elsewhere is refused before any use."""

import json
from pathlib import Path

import pytest

from omnigraph.commit.sidecar_reader import read_sidecar
from omnigraph.core.errors import InvariantViolation, SidecarCorrupt
from omnigraph.graph.graph import Graph
from omnigraph.history.branches import control_file
from omnigraph.history.manifest_rows import rows_table
from omnigraph.operations.engine import discard_task_files
from omnigraph.storage.control.graph_files import graph_files
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.files.version_file import check_ref, check_relative_path
from omnigraph.storage.tables.task_notes import TaskNotes
from tests.support.engine import contents, new_graph, reopen, table_path
from tests.support.seam import internals
from tests.support.tables import put_rows

INSERT = "query m($n: String) { insert Person { name: $n } }"
ELSEWHERE = [
    "..",
    "../x",
    "a/../../b",
    "/etc",
    "a/",
    "a/data",
    "a/b/_versions",
    "a//b",
    "",
    ".",
    "a\0b",
    "a\\b",
    ".hidden",
    "x" * 300,
]


def craft_branch(graph: Graph, name: str, **members: object) -> None:
    """Change members of the control object of a branch."""
    path = Path(graph.uri, control_file(name))
    path.write_text(json.dumps(json.loads(path.read_text()) | members))


@pytest.mark.case("engine", 397)
def test_a_branch_whose_ref_is_the_manifest_of_another_graph_does_not_write_there(
    tmp_path: Path,
) -> None:
    with new_graph(tmp_path / "victim") as victim:
        before = victim.snapshot().manifest_version
    with new_graph(tmp_path / "graph") as graph:
        graph.create_branch("review")
        craft_branch(graph, "review", ref="../../../victim/__manifest")

        with pytest.raises(InvariantViolation, match="not a ref"):
            graph.mutate(INSERT, params={"n": "mallory"}, branch="review")

    with reopen(tmp_path / "victim") as victim:
        assert victim.snapshot().manifest_version == before
        assert contents(victim)["Person"] == {}


@pytest.mark.case("engine", 397)
@pytest.mark.parametrize("ref", ELSEWHERE)
def test_a_ref_that_leads_elsewhere_is_refused(ref: str) -> None:
    with pytest.raises(InvariantViolation):
        check_ref(ref, "a test")


@pytest.mark.parametrize(
    "ref",
    [
        "review-01M7HCZF7GEWGZM5NK5VK6DBCG",
        "-mlaut-01M7HCZF7GEWGZM5NK5VK6DBCG",
        *("review", "review/june", "prüfung", "__run__x", "data"),  # of graphs that were migrated
    ],
)
def test_refs_that_we_mint_and_that_earlier_builds_made_are_taken(ref: str) -> None:
    assert check_ref(ref, "a test") == ref


@pytest.mark.parametrize(
    "path", ["..", "../x", "a/../b", "/etc", "a//b", "", ".", "a/.", "a\0b", "a\\b", "s3://b/c"]
)
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(InvariantViolation):
        check_relative_path(path, "a test")


def test_a_version_that_names_a_file_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of somebody else")
    files = graph_files(GraphRoot.parse(str(tmp_path / "graph")))

    for look in (files.length, files.read, files.checksum):
        with pytest.raises(InvariantViolation, match="not a path inside the graph"):
            look("nodes/../../secret")


@pytest.mark.case("engine", 397)
def test_a_file_among_the_branches_that_names_none_is_said(graph: Graph) -> None:
    graph.create_branch("review")
    folder = Path(graph.uri, "__branches")
    (folder / "..%2F..%2Fevil.json").write_text((folder / "review.json").read_text())

    with pytest.raises(InvariantViolation, match="evil"):
        graph.branches()


@pytest.mark.case("engine", 398)
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("branch_ref",), "../../../victim/__manifest"),
        (("tables", 0, "table_branch"), "../../../../victim/nodes/x"),
        (("tables", 0, "table_branch"), "a/_versions"),
        (("pointer_updates", 0, "table_branch"), "/etc"),
    ],
)
def test_a_sidecar_that_names_a_ref_elsewhere_is_refused_and_stays(
    place: tuple[str | int, ...], value: str
) -> None:
    document = sidecar_document()
    target: object = document
    for step in place[:-1]:
        target = target[step]  # type: ignore[index]  # a path into JSON
    target[place[-1]] = value  # type: ignore[index]

    with pytest.raises(SidecarCorrupt, match="ref"):
        read_sidecar(f"__recovery/{document['operation_id']}.json", json.dumps(document))


def sidecar_document() -> dict[str, object]:
    """Return a sidecar of a merge on a branch, as a writer leaves it."""
    ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    table = {
        "table_key": "node:Person",
        "stable_table_id": 1,
        "table_incarnation_id": 9,
        "table_path": "nodes/0000000000000001-0000000000000009",
        "table_branch": f"review-{ulid}",
        "expected_version": 3,
        "post_commit_pin": 4,
        "transaction_uuid": None,
        "confirmed_version": None,
    }
    pointer = {
        "table_key": "node:Company",
        "stable_table_id": 2,
        "table_incarnation_id": 10,
        "version": 2,
        "table_branch": None,
        "row_count": 0,
    }
    return {
        "schema_version": 2,
        "operation_id": ulid,
        "writer_kind": "BranchMerge",
        "started_at": 1,
        "branch": "review",
        "branch_ref": f"review-{ulid}",
        "actor_id": None,
        "graph_commit_id": ulid,
        "recovery_commit_id": ulid,
        "tables": [table],
        "host": "h",
        "boot_id": "b",
        "pid": 1,
        "read_set": [],
        "writer_epoch": None,
        "recovery_plan": None,
        "pointer_updates": [pointer],
        "merge_source_commit_id": ulid,
        "additional_registrations": [],
        "renames": [],
        "tombstones": [],
        "target_schema_ir_hash": None,
    }


def test_the_sidecar_that_these_tests_start_from_is_one() -> None:
    document = sidecar_document()

    sidecar = read_sidecar(f"__recovery/{document['operation_id']}.json", json.dumps(document))

    assert sidecar.branch.name == "review"


@pytest.mark.case("engine", 399)
def test_a_pin_on_a_ref_elsewhere_is_refused(graph: Graph) -> None:
    coordinator = internals(graph).parts.coordinator
    handle = coordinator.manifest.open_fresh(coordinator.address())
    rows = coordinator.manifest.read(handle).to_pylist()
    pin = next(row for row in rows if row["object_type"] == "table_version")
    pin |= {"table_branch": "../../../../victim/nodes/x"}
    put_rows(coordinator.manifest, handle, rows_table([pin]))

    with pytest.raises(InvariantViolation, match="not a ref"):
        reopen(Path(graph.uri), mode="ro")


@pytest.mark.case("engine", 400)
@pytest.mark.parametrize(
    "note",
    [
        '["/etc/passwd"]',
        '["{root}/nodes/../../victim/data/x.lance"]',
        '["{root}/__manifest/_versions/18446744073709551614.manifest"]',
        '["{root}/nodes/1-9/data/a/../../../_schema.pg"]',
        '["{root}/_schema.pg"]',
        '{"a": 1}',
        "[1]",
        "no json",
    ],
)
def test_a_note_of_a_task_that_names_what_no_task_writes_is_refused(tmp_path: Path, note: str) -> None:
    notes = TaskNotes(str(tmp_path), "__tasks_x")
    notes.begin()
    (tmp_path / "__tasks_x" / "1.json").write_text(note.replace("{root}", str(tmp_path)))

    with pytest.raises(InvariantViolation, match=r"__tasks_x/1\.json"):
        notes.files()


@pytest.mark.case("engine", 400)
def test_nothing_that_such_a_note_names_is_removed_and_what_the_driver_knows_is(tmp_path: Path) -> None:
    with new_graph(tmp_path / "graph") as graph:
        parts, data = internals(graph).parts, table_path(graph, "node:Person") / "data"
        data.mkdir(exist_ok=True)
        known, noted = (data / f"{name}.lance" for name in ("known", "noted"))
        for file in (known, noted):
            file.write_bytes(b"rows")
        notes = TaskNotes(parts.root.uri, "__tasks_x")
        notes.begin()
        notes.note([str(noted), f"{graph.uri}/_schema.pg"])

        discard_task_files(parts, notes, known=[str(known)], handed=[])

        assert (known.exists(), noted.exists(), Path(graph.uri, "_schema.pg").exists()) == (False, True, True)
        assert contents(graph)["Person"] == {}
