"""What tests of cleanup do and look at."""

from pathlib import Path

from omnigraph.graph.graph import Graph
from omnigraph.operations.cleanup.model import CleanupResult, CleanupRow
from omnigraph.storage.files.version_file import version_of_file_name
from omnigraph.storage.tables.handle import ref_path
from tests.engine.branches.steps import everything, set_age
from tests.support.seam import internals

DAY_S = 24 * 3600.0
PERSON = "node:Person"


def later(graph: Graph, seconds: float) -> None:
    """Let the clock of a handle be ahead."""
    parts = internals(graph).parts
    now = parts.clock() + int(seconds * 1_000_000)
    object.__setattr__(parts, "clock", lambda: now)


def update(graph: Graph, times: int, branch: str | None = None, name: str = "ann") -> list[str]:
    """Write the persons of a branch some times; return the commits."""
    commits = []
    for number in range(times):
        set_age(graph, name, 100 + number, branch)
        commits.append(graph.commits(limit=1, branch=branch)[0].graph_commit_id)
    return commits


def versions(graph: Graph, table_key: str = PERSON, branch: str | None = None) -> list[int]:
    """Return the versions of a table, as a branch has it, that are on the disk, oldest first."""
    entry = graph.snapshot(branch).entry(table_key)
    return on_disk(Path(graph.uri) / ref_path(entry.location, entry.owner))


def on_disk(dataset: Path) -> list[int]:
    """Return the versions of a dataset that are on the disk, oldest first."""
    found = (version_of_file_name(path.name) for path in (dataset / "_versions").glob("*.manifest"))
    return sorted(version for version in found if version is not None)


def row(result: CleanupResult, table_key: str = PERSON) -> CleanupRow:
    """Return what was done to one table."""
    (found,) = (row for row in result.tables if row.table_key == table_key)
    return found


def shown(graph: Graph) -> dict[str, dict[str, list[dict[str, object]]]]:
    """Return every row of every branch."""
    return {branch: everything(graph, branch) for branch in graph.branches()}


def ages_at(graph: Graph, commit_id: str) -> dict[object, object]:
    """Return the ages of the persons at a commit."""
    source = "query q() { match { $p: Person } return { $p.name as name, $p.age as age } }"
    return {row["name"]: row["age"] for row in graph.query(source, snapshot=commit_id).rows}
