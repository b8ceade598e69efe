"""Optimize on a branch that is killed: nothing is lost on it or beside it, and the next runs do the rest."""

import shutil
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS
from omnigraph.graph.graph import Graph
from tests.support.books import assert_reopening_changes_nothing, recovery_files
from tests.support.protocol import BEFORE, records
from tests.support.seam import internals
from tests.support.system import Script

OWN = ("edge:Knows", "node:Company", "node:Person")
PROGRAM = """
import sys
import omnigraph
with omnigraph.open(sys.argv[1]) as graph:
    graph.optimize(branch="june")
"""
TOUCH = 'query touch() { update Person set { age: 31 } where name = "ann" }'
RECOVERED: dict[str, tuple[str, ...] | None] = {  # where it is killed, and which tables go forward then
    "optimize.post_recovery_check_pre_gates": None,
    "optimize.post_sidecar_pre_compact": (),
    "optimize.post_compact_pre_reindex": OWN[:1],
    "optimize.post_table": OWN[:1],
    "optimize.post_phase_b_pre_manifest_commit": OWN,
    "optimize.post_publish_pre_sidecar_delete": OWN,
    "recovery.sidecar_delete": OWN,
    "lock.post_sidecar_delete_pre_unlink": None,
    "optimize.before_manifest_compaction": None,
}


@pytest.fixture(scope="module")
def untidy_branch(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with a branch `june` that has written all rows of three tables again, in pieces."""
    root = Path(shutil.copytree(template, tmp_path_factory.mktemp("untidy_branch") / "graph"))
    with omnigraph.open(root) as graph:
        graph.create_branch("june")
        for line in records(BEFORE).splitlines(keepends=True):
            if b'"WorksAt"' not in line:
                graph.load(line, "merge", index=False, branch="june")
        graph.mutate('query more() { insert Person { name: "june" } }', branch="june")
    return root


def shown(graph: Graph) -> dict[str, dict[str, list[str]]]:
    """Return every row of every branch."""
    return {
        branch: {
            type_.name: sorted(str(row) for row in graph.table(type_.name, branch=branch).to_pylist())
            for type_ in graph.catalog.types
        }
        for branch in graph.branches()
    }


def stands(graph: Graph) -> dict[str, tuple[int, str | None]]:
    """Return where each table of main and each inherited one of the branch stands."""
    june = {f"june {key}": entry for key, entry in graph.snapshot("june").entries.items() if key not in OWN}
    return {
        key: (entry.version, entry.pin.ref) for key, entry in {**graph.snapshot().entries, **june}.items()
    }


@pytest.mark.case("engine", 782)
@pytest.mark.parametrize(
    ("point", "healer"),
    [
        pytest.param(
            point,
            "open" if number % 2 else "write",
            id=point,
            marks=[] if point == "optimize.post_table" else [pytest.mark.slow],
        )
        for number, point in enumerate(RECOVERED)
    ],
)
def test_a_killed_run_on_a_branch_loses_nothing(
    point: str, healer: str, untidy_branch: Path, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(untidy_branch, tmp_path / "graph"))
    known = omnigraph.open(root)
    rows, places, commits = shown(known), stands(known), len(known.commits())
    with Script(PROGRAM, root, **{ENVIRONMENT: f"{point}=exit"}) as script:
        assert script.wait() == EXIT_STATUS, f"it did not come to {point}"

    graph = known if healer == "write" else omnigraph.open(root)
    assert shown(graph) == rows
    graph.mutate(TOUCH, branch="june")

    rows["june"]["Person"] = sorted(row.replace("'age': 30", "'age': 31") for row in rows["june"]["Person"])
    assert shown(graph) == rows
    assert recovery_files(root) == ()
    found = [
        (recovery.writer_kind, tuple(outcome.table_key for outcome in recovery.outcomes))
        for recovery in graph.recoveries()
    ]
    tables = RECOVERED[point]
    assert found == ([] if tables is None else [("Optimize", tables)])
    graph.optimize(branch="june")
    assert graph.optimize(branch="june").commit is None
    assert shown(graph) == rows
    assert stands(graph) == places
    assert len(graph.commits()) == commits
    parts = internals(graph).parts
    for key in OWN:
        entry = graph.snapshot("june").entry(key)
        assert parts.open(entry).fragment_count == 1
        assert parts.store.latest_version(parts.address(entry)) == entry.version
    assert graph.verify().is_whole
    assert graph.verify(branch="june").is_whole
    assert_reopening_changes_nothing(root)
