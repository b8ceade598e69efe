"""Looking at graphs of earlier storage formats, and at what migrations make of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from omnigraph.graph.graph import Graph
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.history.stamp import read_stamp
from tests.support.engine import rows_at
from tests.support.older_graphs import Expected
from tests.support.queries import mutation
from tests.support.seam import internals

EVE = mutation('insert Person { name: "eve" }')
LEGACY_OPEN, ACTOR_OPEN = "migration.v3_to_v4.legacy_open", "migration.v3_to_v4.legacy_actor_open"
PRE_STAMP = {
    1: "migration.v1_to_v2.pre_stamp",
    2: "migration.v2_to_v3.pre_stamp",
    3: "migration.v3_to_v4.post_merge_pre_stamp",
}


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
            commit.created_at_micros,
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


def merge(dataset: lance.LanceDataset, rows: pa.Table) -> None:
    """Publish as builds of stamps 2 and 3 did."""
    insert = dataset.merge_insert("object_id").when_matched_update_all().when_not_matched_insert_all()
    insert.conflict_retries(0).execute(rows)
