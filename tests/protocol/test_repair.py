"""Going back on purpose, what it gives up, and going back to that again."""

import shutil
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.commit.sidecar import WriterKind
from omnigraph.core.damage import VERSIONS_MAX, GraphDamaged
from omnigraph.core.errors import (
    BadRequest,
    ConflictError,
    ExpectedVersionMismatch,
    SchemaContractConflict,
    StorageError,
    VersionNotFound,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.history.commits import RECOVERY_ACTOR
from omnigraph.history.contract import SCHEMA_FILES
from omnigraph.operations import repair as verbs
from omnigraph.operations.open import make_parts
from omnigraph.operations.verify.verify import verify_place
from omnigraph.storage.files.version_file import version_file_name
from omnigraph.storage.versions.newest import MARK, write_mark
from tests.engine.branches.steps import insert, names
from tests.protocol.test_damaged_manifest import SCHEMA, data_path, manifest
from tests.support.books import fingerprint
from tests.support.commands import omnigraph
from tests.support.hollow import empty
from tests.support.in_process import invoke
from tests.support.protocol import sidecars

GOOD = 4  # genesis and three writes
ALL = [f"p{number}" for number in range(6)]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repair") / "graph"
    with og.init(root, SCHEMA) as graph:
        for name in ALL:
            insert(graph, name)
    return root


@pytest.fixture
def root(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "graph"))


def damage(root: Path) -> tuple[Path, Path]:
    """Empty the data file of the first version that is given up; return it, and a copy of it."""
    path = data_path(root, GOOD)
    kept = Path(shutil.copy2(path, root.parent / "kept"))
    empty(path)
    return path, kept


def newest(root: Path) -> int:
    """Return the newest version of main."""
    return manifest(root).version


@pytest.mark.case("engine", 411)
def test_a_repair_says_what_it_gives_up_and_the_graph_goes_on(root: Path) -> None:
    with og.open(root, mode="ro") as graph:
        commits = [commit for commit in graph.commits() if commit.manifest_version > GOOD]
    damage(root)
    before = fingerprint(root)

    told = og.repair(root, GOOD, dry_run=True).loss
    assert fingerprint(root) == before
    assert [commit.graph_commit_id for commit in told.commits] == [c.graph_commit_id for c in commits[:-1]]
    assert told.untold == (GOOD + 1,)  # its commit is in the damaged file
    assert [(table.table_key, table.rows, table.rows_after) for table in told.tables] == [
        ("node:Person", 6, 3)
    ]

    result = og.repair(root, GOOD, actor="act-mira")

    assert result.loss == told
    assert not sidecars(root)
    with og.open(root) as graph:
        assert names(graph) == ALL[:3]
        insert(graph, "next")
        assert names(graph) == ["next", *ALL[:3]]
        (row,) = [row for row in graph.recoveries() if row.operation_id == result.operation_id]
        assert (row.recovery_kind, row.writer_kind, row.recovery_for_actor) == (
            "RolledBack",
            WriterKind.REPAIR,
            "act-mira",
        )
        assert [(outcome.table_key, outcome.to_version) for outcome in row.outcomes] == [("node:Person", 4)]


@pytest.mark.case("engine", 412)
def test_the_same_command_goes_back_to_what_was_given_up(root: Path) -> None:
    given_up = newest(root)
    path, kept = damage(root)
    og.repair(root, GOOD)
    with pytest.raises(GraphDamaged):  # the file is still empty
        og.repair(root, given_up)

    shutil.copy2(kept, path)
    with og.open(root) as graph:
        insert(graph, "meanwhile")
    loss = og.repair(root, given_up).loss

    assert [(table.rows, table.rows_after) for table in loss.tables] == [(4, 6)]
    with og.open(root) as graph:
        assert names(graph) == ALL
        insert(graph, "next")
        assert names(graph) == ["next", *ALL]


@pytest.mark.case("engine", 411)
@pytest.mark.parametrize("place", ["manifest", "table"])
@pytest.mark.parametrize("how", ["emptied", "missing"])
def test_a_damaged_newest_version_file_does_not_stand_in_the_way(root: Path, place: str, how: str) -> None:
    with og.open(root, mode="ro") as graph:
        entry = graph.snapshot().entry("node:Person")
    dataset, version = (
        ("__manifest", newest(root)) if place == "manifest" else (entry.location, entry.version)
    )
    folder = root / dataset
    path = folder / version_file_name(version)
    if how == "missing":
        path.unlink()
    else:
        empty(path)

    og.repair(root, GOOD)

    assert not sidecars(root)
    with og.open(root) as graph:
        assert names(graph) == ALL[:3]
        for name in ("n1", "n2"):
            insert(graph, name)
    with og.open(root) as graph:
        assert names(graph) == ["n1", "n2", *ALL[:3]]


@pytest.mark.case("engine", 411)
def test_a_repair_needs_a_version_that_is_there_whole_and_older(root: Path) -> None:
    with pytest.raises(VersionNotFound):
        og.repair(root, newest(root) + 1)
    with pytest.raises(BadRequest):
        og.repair(root, newest(root))
    path = data_path(root, 1)
    empty(path)
    with pytest.raises(GraphDamaged):
        og.repair(root, GOOD)


@pytest.mark.case("engine", 411)
def test_nothing_is_given_up_but_what_was_told(root: Path) -> None:
    parts = make_parts(str(root))
    told = verbs.foresee(parts, GOOD, None)
    with og.open(root) as graph:
        insert(graph, "meanwhile")

    with pytest.raises(ConflictError, match="moved since the loss was reported"):
        verbs.repair(make_parts(str(root)), told)

    with og.open(root) as graph:
        assert names(graph) == ["meanwhile", *ALL]


def test_a_lost_newest_version_keeps_its_number(root: Path) -> None:
    """Somebody may have seen it: what is made now must not pass for it."""
    lost = newest(root)
    (root / "__manifest" / version_file_name(lost)).unlink()

    og.repair(root, GOOD)

    with og.open(root) as graph:
        versions = [commit.manifest_version for commit in graph.commits() if commit.manifest_version > GOOD]
    assert min(versions) > lost
    assert not (root / "__manifest" / version_file_name(lost)).exists()


def test_the_version_that_a_repair_made_is_never_lost_silently(root: Path) -> None:
    with failpoint("repair.post_manifest_pre_tables", "raise"), pytest.raises(InjectedFault):
        og.repair(root, GOOD)
    (root / "__manifest" / version_file_name(newest(root))).unlink()

    with pytest.raises(GraphDamaged, match="is missing"):
        og.open(root)


@pytest.mark.parametrize("claimed", [20_000, 2**62, 2**63 - 1])
def test_a_note_of_a_version_that_never_was_takes_no_memory(root: Path, claimed: int) -> None:
    write_mark(root / "__manifest", claimed, is_synced=False)

    with pytest.raises(GraphDamaged, match=f"versions 8 to {claimed}") as refused:
        og.open(root)
    assert len(refused.value.versions) == VERSIONS_MAX
    with pytest.raises(StorageError, match="remove the note if it is not its own"):
        og.repair(root, GOOD)
    assert not verify_place(str(root)).is_whole

    (root / "__manifest" / MARK).unlink()
    with og.open(root) as graph:
        assert names(graph) == ALL


def test_what_was_given_up_before_is_not_lost_again(root: Path) -> None:
    og.repair(root, GOOD)
    with og.open(root) as graph:
        insert(graph, "once more")

    loss = og.repair(root, GOOD, dry_run=True).loss

    assert [commit.actor_id for commit in loss.commits] == [None, RECOVERY_ACTOR]
    assert [(table.rows, table.rows_after) for table in loss.tables] == [(4, 3)]


def test_a_repair_is_nothing_to_put_back(root: Path) -> None:
    operation_id = og.repair(root, GOOD).operation_id
    assert operation_id is not None
    assert og.quarantined(root) == ()
    before = fingerprint(root)

    with pytest.raises(og.NotFoundError):
        og.restore_quarantined(root, operation_id)

    assert fingerprint(root) == before


@pytest.mark.case("engine", 411)
def test_a_version_whose_tables_are_damaged_is_none_to_go_back_to(root: Path) -> None:
    with og.open(root, mode="ro") as graph:
        entry = graph.snapshot().entry("node:Person")
    (root / entry.location / version_file_name(4)).unlink()
    before = fingerprint(root)

    with pytest.raises(GraphDamaged, match="is missing"):
        og.repair(root, GOOD)

    assert fingerprint(root) == before
    with og.open(root) as graph:
        insert(graph, "next")


def test_a_lost_version_of_a_table_keeps_its_number(root: Path) -> None:
    """A branch pins it, and the file may be put back."""
    with og.open(root) as graph:
        graph.create_branch("june")
        entry = graph.snapshot().entry("node:Person")
    path = root / entry.location / version_file_name(entry.version)
    kept = Path(shutil.copy2(path, root.parent / "kept"))
    path.unlink()

    og.repair(root, newest(root) - 1)
    with og.open(root) as graph:
        insert(graph, "next")
        assert graph.snapshot().entry("node:Person").version > entry.version
        assert not path.exists()
        shutil.copy2(kept, path)
    with og.open(root) as graph:
        assert names(graph, "june") == ALL
        assert names(graph) == ["next", *ALL[:5]]


# Those who saw what was given up


def test_a_warm_handle_notices(root: Path) -> None:
    warm, reader = og.open(root), og.open(root, mode="ro")
    assert names(warm) == names(reader) == ALL

    og.repair(root, GOOD)
    with og.open(root) as graph:
        for name in ("b1", "b2", "b3"):  # as many as were given up: every number would be there again
            insert(graph, name)

    expected = ["b1", "b2", "b3", *ALL[:3]]
    assert names(reader) == names(warm) == expected
    with og.open(root, mode="ro") as fresh:
        assert reader.commits() == warm.commits() == fresh.commits()
    insert(warm, "c1")
    assert names(reader) == names(warm) == sorted([*expected, "c1"])
    with og.open(root) as graph:
        assert names(graph) == sorted([*expected, "c1"])
        assert graph.verify().is_whole


@pytest.mark.parametrize(
    "place", ["write.post_stage_pre_gate", "write.post_gate_pre_sidecar", "durability.pre_staged_sync"]
)
def test_a_writer_that_was_about_to_write_brings_nothing_back(root: Path, place: str) -> None:
    with og.open(root) as writer:
        times = iter([True])

        def give_up_once() -> None:
            if next(times, False):
                done = omnigraph("repair", root, "--to", str(GOOD), "--yes", cwd=root.parent)
                assert done.code == 0, done.stderr

        with failpoint(place, "call", give_up_once), pytest.raises(ExpectedVersionMismatch):
            insert(writer, "late", retry=0)

        assert names(writer) == ALL[:3]
        insert(writer, "late")
    with og.open(root) as graph:
        assert names(graph) == ["late", *ALL[:3]]
        assert not sidecars(root)


@pytest.mark.case("engine", 411)
def test_a_writer_at_work_is_waited_for(root: Path) -> None:
    with og.open(root) as writer:

        def refused() -> None:
            with pytest.raises(ConflictError, match="is active"):
                og.repair(root, GOOD)

        with failpoint("write.post_finalize_pre_publisher", "call", refused):
            insert(writer, "late")
        assert names(writer) == sorted([*ALL, "late"])


@pytest.mark.case("engine", 411)
def test_a_branch_keeps_what_it_has_of_what_was_given_up(root: Path) -> None:
    with og.open(root) as graph:
        graph.create_branch("june")
        insert(graph, "j1", "june")

    og.repair(root, GOOD)

    with og.open(root) as graph:
        assert names(graph) == ALL[:3]
        assert names(graph, "june") == ["j1", *ALL]
        insert(graph, "j2", "june")
        assert names(graph, "june") == ["j1", "j2", *ALL]


@pytest.mark.case("engine", 411)
def test_a_branch_goes_back_alone(root: Path) -> None:
    with og.open(root) as graph:
        graph.create_branch("june")
        insert(graph, "j1", "june")
        version = graph.commits(branch="june")[0].manifest_version
        insert(graph, "j2", "june")

    result = og.repair(root, version, branch="june")

    assert [commit.manifest_branch for commit in result.loss.commits] == ["june"]
    with og.open(root) as graph:
        assert "j1" in names(graph, "june")
        assert "j2" not in names(graph, "june")
        assert len(names(graph)) == 6
        insert(graph, "j3", "june")


# Across a change of the schema

WIDER = "node Person { name: String @key\n age: I32?\n city: String? }\nnode Town { name: String @key }"
NARROWER = "node Other { name: String @key }"


def schema_files(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text() for name in SCHEMA_FILES}


@pytest.mark.case("engine", 620)
@pytest.mark.parametrize("schema", [WIDER, NARROWER])
def test_a_repair_across_a_change_of_the_schema_writes_the_schema_files_again(
    root: Path, schema: str
) -> None:
    before = schema_files(root)
    last = newest(root)
    with og.open(root) as graph:
        graph.apply_schema(schema, index=False)
    changed = schema_files(root)
    given_up = newest(root)

    og.repair(root, last)

    assert schema_files(root) == before
    with og.open(root, mode="ro") as graph:
        assert names(graph) == ALL
    assert verify_place(str(root)).is_whole

    og.repair(root, given_up)

    assert schema_files(root) == changed
    with og.open(root) as graph:
        assert graph.schema() == schema
    assert verify_place(str(root)).is_whole


@pytest.mark.case("engine", 620)
@pytest.mark.parametrize("place", ["repair.post_sidecar_pre_manifest", "repair.post_manifest_pre_tables"])
def test_a_repair_that_died_leaves_schema_files_that_are_written_again(root: Path, place: str) -> None:
    before = schema_files(root)
    last = newest(root)
    with og.open(root) as graph:
        graph.apply_schema(WIDER, index=False)
    changed = schema_files(root)
    with failpoint(place, "raise"), pytest.raises(InjectedFault):
        og.repair(root, last)

    with og.open(root, mode="ro") as graph:
        assert len(names(graph)) == len(ALL)
    assert schema_files(root) == changed, "a read-only open writes nothing"
    og.open(root).close()

    assert schema_files(root) == (before if "post_manifest" in place else changed)


@pytest.mark.case("engine", 620)
def test_files_of_no_schema_that_the_graph_ever_had_are_refused_after_a_repair_too(root: Path) -> None:
    last = newest(root)
    with og.open(root) as graph:
        graph.apply_schema(WIDER, index=False)
    with failpoint("repair.post_manifest_pre_tables", "raise"), pytest.raises(InjectedFault):
        og.repair(root, last)
    (root / "_schema.pg").write_text("node Forged { name: String @key }")

    with pytest.raises(SchemaContractConflict):
        og.open(root)


# Those who die in between


def finish(root: Path, how: str) -> None:
    """Go on after a repair that died: by an open, or by the same command."""
    if how == "command":
        og.repair(root, GOOD)
    og.open(root).close()


def _repairs(root: Path) -> list[og.RecoveryRecord]:
    with og.open(root, mode="ro") as graph:
        return [row for row in graph.recoveries() if row.writer_kind == WriterKind.REPAIR]


@pytest.mark.case("engine", 412)
@pytest.mark.parametrize("how", ["open", "command"])
@pytest.mark.parametrize("place", ["repair.post_sidecar_pre_manifest", "repair.post_manifest_pre_tables"])
def test_a_repair_that_died_is_finished(root: Path, place: str, how: str) -> None:
    with failpoint(place, "raise"), pytest.raises(InjectedFault):
        og.repair(root, GOOD)

    finish(root, how)

    is_done = how == "command" or "post_manifest" in place
    if how == "open":
        (row,) = _repairs(root)
        assert bool(row.outcomes) == is_done, "the audit says what happened"
    expected = ALL[:3] if is_done else ALL
    assert not sidecars(root)
    with og.open(root) as graph:
        assert names(graph) == expected
        insert(graph, "next")
        assert names(graph) == ["next", *expected]


@pytest.mark.case("engine", 412)
def test_an_audit_that_comes_later_says_nothing_that_did_not_happen(root: Path) -> None:
    """The repair dies before its first effect, and its recovery before the audit."""
    with failpoint("repair.post_sidecar_pre_manifest", "raise"), pytest.raises(InjectedFault):
        og.repair(root, GOOD)
    with failpoint("recovery.record_audit", "raise"), pytest.raises(InjectedFault):
        og.open(root)

    og.open(root).close()

    (row,) = _repairs(root)
    assert row.outcomes == ()


@pytest.mark.case("engine", 412)
def test_what_a_dead_writer_had_published_does_not_come_back(root: Path) -> None:
    version = newest(root)
    with og.open(root) as graph:
        entry = graph.snapshot().entry("node:Person")
    with (
        og.open(root) as graph,
        failpoint("write.post_publish_pre_sidecar_delete", "raise"),
        pytest.raises(og.RecoveryRequired),
    ):
        insert(graph, "dead")
    assert len(sidecars(root)) == 1

    og.repair(root, version)

    assert not sidecars(root)
    with og.open(root) as graph:
        assert names(graph) == ALL
        assert graph.snapshot().entry("node:Person").version > entry.version + 1
        insert(graph, "next")


def test_the_command_tells_and_asks_before_it_repairs(root: Path) -> None:
    before = fingerprint(root)
    refused = invoke("repair", root, "--to", str(GOOD), cwd=root.parent)
    assert refused.code == 1
    assert "gives up 3 commits" in refused.stdout
    assert "node:Person" in refused.stdout
    assert "--yes" in refused.stderr
    assert fingerprint(root) == before

    done = invoke("repair", root, "--to", str(GOOD), "--yes", cwd=root.parent)
    assert done.code == 0
    assert "'repair --to 7' undoes that" in done.stdout
    assert invoke("repair", root, "--to", "7", "--yes", cwd=root.parent).code == 0
    with og.open(root) as graph:
        assert len(names(graph)) == 6
