"""Commits and authors of graphs below stamp 4, which lie in two datasets of their own.

L1  They count for a branch only while its manifest is below stamp 4. Nothing writes them, or forks them.
L2  A dataset that is not there means no commits, or no authors. That it is not there is known only if the
    library says so and the control files show nothing below its `_versions`. Whatever else fails is loud: a
    history that was taken for empty would be lost for good.
L3  Commits lie on the ref of their branch; a ref that is missing there is no empty history. Authors were
    never branched.
"""

from collections.abc import Callable

import pyarrow as pa

from omnigraph.core.errors import InvariantViolation, StorageError
from omnigraph.core.failpoint import hit
from omnigraph.history.commits import GraphCommit
from omnigraph.history.identity import branch_name, stored_name
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.files.version_file import VERSIONS_DIR
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.table import TableStore

LEGACY_COMMITS, LEGACY_ACTORS = "_graph_commits.lance", "_graph_commit_actors.lance"
COMMIT_COLUMNS = (
    "graph_commit_id",
    "manifest_branch",
    "manifest_version",
    "parent_commit_id",
    "merged_parent_commit_id",
    "created_at",
)
ACTOR_COLUMNS = ("graph_commit_id", "actor_id")


class LegacyLineage:
    """Reads the lineage datasets of one graph."""

    def __init__(self, root: GraphRoot, store: TableStore, adapter: StorageAdapter) -> None:
        """Take the graph, the store that opens its datasets, and its control files."""
        self._root, self._store, self._adapter = root, store, adapter

    def commits(self, ref: str | None) -> tuple[GraphCommit, ...]:
        """Return the commits of a branch with their authors, by id; `None` is main.

        Raises:
            StorageError: a dataset cannot be read, and is not proven absent (L2, L3).
            InvariantViolation: two rows contradict each other.
        """
        rows = self._read(LEGACY_COMMITS, ref, COMMIT_COLUMNS, lambda: hit("migration.v3_to_v4.legacy_open"))
        if rows is None:
            return ()
        found = self._read(
            LEGACY_ACTORS, None, ACTOR_COLUMNS, lambda: hit("migration.v3_to_v4.legacy_actor_open")
        )
        actors = {} if found is None else _actors(found)
        commits: dict[str, GraphCommit] = {}
        for row in rows.to_pylist():
            commit_id = row["graph_commit_id"]
            commit = GraphCommit(
                graph_commit_id=commit_id,
                manifest_branch=stored_name(branch_name(row["manifest_branch"])),
                manifest_version=row["manifest_version"],
                parent_commit_id=row["parent_commit_id"],
                merged_parent_commit_id=row["merged_parent_commit_id"],
                actor_id=actors.get(commit_id),
                created_at_micros=row["created_at"],
                message=None,
            )
            if commits.setdefault(commit_id, commit) != commit:
                raise InvariantViolation(f"{LEGACY_COMMITS}: two rows of commit {commit_id} differ")
        return tuple(commits[commit_id] for commit_id in sorted(commits))

    def _read(
        self, dataset: str, ref: str | None, columns: tuple[str, ...], begin: Callable[[], None]
    ) -> pa.Table | None:
        """Return the rows of a dataset, or `None` if it is proven that there is none (L2)."""
        try:
            begin()
            handle = self._store.open_head(TableAddress(self._root.child(dataset), ref))
        except StorageError as error:
            if error.kind != "not_found" or self._adapter.list_dir(f"{dataset}/{VERSIONS_DIR}"):
                raise
            return None
        return self._store.scan(handle, columns=columns)


def _actors(rows: pa.Table) -> dict[str, str]:
    actors: dict[str, str] = {}
    for row in rows.to_pylist():
        commit_id, actor_id = row["graph_commit_id"], row["actor_id"]
        if actor_id is not None and actors.setdefault(commit_id, actor_id) != actor_id:
            raise InvariantViolation(f"{LEGACY_ACTORS}: commit {commit_id} has two authors")
    return actors
