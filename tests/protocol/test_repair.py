"""Going back on purpose, what it gives up, and putting it back."""

import shutil
from pathlib import Path

import pytest

import omnigraph as og
import omnigraph.graph.graph as graphs
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import (
    AlreadyExistsError,
    BadRequest,
    ConflictError,
    NotFoundError,
    VersionNotFound,
)
from omnigraph.history.manifest_rows import MANIFEST_DIR
from tests.branches.steps import insert, names
from tests.protocol.test_damaged_manifest import SCHEMA, data_path, manifest
from tests.support.books import fingerprint
from tests.support.hollow import empty
from tests.support.in_process import invoke

GOOD = 4  # genesis and three writes


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repair") / "graph"
    with graphs.init(root, SCHEMA) as graph:
        for number in range(6):
            insert(graph, f"p{number}")
    return root


@pytest.fixture
def root(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "graph"))


def damage(root: Path) -> Path:
    """Empty the data file of the first version that is given up; return a copy of it."""
    path = data_path(root, GOOD)
    kept = Path(shutil.copy2(path, root.parent / "kept"))
    empty(path)
    return kept


@pytest.mark.case("engine", 411)
def test_a_repair_says_what_it_gives_up_and_the_graph_goes_on(root: Path) -> None:
    with graphs.open(root, mode="ro") as graph:
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
    with graphs.open(root) as graph:
        assert names(graph) == ["p0", "p1", "p2"]
        insert(graph, "next")
        assert names(graph) == ["next", "p0", "p1", "p2"]
        rows = [row for row in graph.recoveries() if row.operation_id == result.quarantine_id]
        tables = {outcome.table_key: outcome for row in rows for outcome in row.outcomes}
        assert {row.recovery_for_actor for row in rows} == {"act-mira"}
        assert set(tables) == {MANIFEST_DIR, "node:Person"}
        assert (tables[MANIFEST_DIR].from_version, tables[MANIFEST_DIR].to_version) == (7, GOOD)


@pytest.mark.case("engine", 412)
def test_what_was_given_up_can_be_put_back(root: Path) -> None:
    kept = damage(root)
    path = data_path(root, GOOD)
    result = og.repair(root, GOOD)
    (found,) = og.quarantined(root)
    assert (found.quarantine_id, found.is_repair) == (result.quarantine_id, True)
    assert found.obstacle is not None  # the file is still empty
    assert result.quarantine_id is not None
    with pytest.raises(GraphDamaged):
        og.restore_quarantined(root, result.quarantine_id)

    shutil.copy2(kept, path)
    assert og.quarantined(root)[0].obstacle is None
    og.restore_quarantined(root, result.quarantine_id)

    assert og.quarantined(root) == ()
    with graphs.open(root) as graph:
        assert names(graph) == [f"p{number}" for number in range(6)]
        insert(graph, "next")


@pytest.mark.case("engine", 412)
def test_what_something_was_published_over_stays_in_quarantine(root: Path) -> None:
    result = og.repair(root, GOOD)
    with graphs.open(root) as graph:
        insert(graph, "over it")
    before = fingerprint(root)
    assert result.quarantine_id is not None

    with pytest.raises(AlreadyExistsError, match="cannot be put back"):
        og.restore_quarantined(root, result.quarantine_id)
    assert fingerprint(root) == before
    with pytest.raises(NotFoundError):
        og.restore_quarantined(root, "../graph")


@pytest.mark.case("engine", 411)
def test_a_repair_needs_a_version_that_is_there_whole_and_older(root: Path) -> None:
    newest = manifest(root).version
    with pytest.raises(VersionNotFound):
        og.repair(root, newest + 1)
    with pytest.raises(BadRequest):
        og.repair(root, newest)
    path = data_path(root, 1)
    empty(path)
    with pytest.raises(GraphDamaged):
        og.repair(root, GOOD)


@pytest.mark.case("engine", 411)
def test_what_another_branch_needs_is_not_given_up(root: Path) -> None:
    with graphs.open(root) as graph:
        graph.create_branch("june")

    with pytest.raises(ConflictError, match="june"):
        og.repair(root, GOOD)


@pytest.mark.case("engine", 411)
def test_a_branch_goes_back_alone(root: Path) -> None:
    with graphs.open(root) as graph:
        graph.create_branch("june")
        insert(graph, "j1", "june")
        version = graph.commits(branch="june")[0].manifest_version
        insert(graph, "j2", "june")

    result = og.repair(root, version, branch="june")

    assert [commit.manifest_branch for commit in result.loss.commits] == ["june"]
    with graphs.open(root) as graph:
        assert "j1" in names(graph, "june")
        assert "j2" not in names(graph, "june")
        assert len(names(graph)) == 6
        insert(graph, "j3", "june")


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
    listed = invoke("quarantine", "list", root, cwd=root.parent)
    assert "can be put back" in listed.stdout
    quarantine_id = og.quarantined(root)[0].quarantine_id
    assert invoke("quarantine", "restore", root, quarantine_id, cwd=root.parent).code == 0
    assert invoke("quarantine", "list", root, cwd=root.parent).stdout.strip() == "nothing is in quarantine"
    with graphs.open(root) as graph:
        assert len(names(graph)) == 6
