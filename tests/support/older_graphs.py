"""Graphs as builds of earlier storage formats left them: stamps 1, 2 and 3, written with the library alone.

Run it to look at one: `python -m tests.support.older_graphs 2 /some/folder`. Every run writes the same graph:
the ids, times and rows are fixed, only the names of Lance's own files differ.

What it writes, and what those formats were (section 1 of the engine specification):

* `__manifest` with a row for each table and for each version of one, and no lineage. Rows were merged in by
  their key, which names the ref and the version; `published_at` is null, or there is no such column yet.
  Stamp 1 has no annotation of that key. A branch is a ref with the name of the branch.
* `_graph_commits.lance`, with a ref for each branch, and `_graph_commit_actors.lance`, without any.
* Up to stamp 2 staging refs `__run__*` on the manifest, and the datasets of runs, which nobody reads.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.build import read_schema
from omnigraph.catalog.identity import accept_first
from omnigraph.core.span import Source
from omnigraph.history.contract import Contract
from omnigraph.history.identity import identity_of
from omnigraph.history.legacy_lineage import LEGACY_ACTORS, LEGACY_COMMITS
from omnigraph.history.manifest_rows import MANIFEST_DIR, PRIMARY_KEY, SCHEMA_OF_MANIFEST, STAMP_KEY
from omnigraph.history.native_branches import RUN_PREFIX

SCHEMA = """\
node Person  { name: String @key  age: I32? }
node Company { name: String @key }
edge Knows:   Person -> Person
edge WorksAt: Person -> Company
"""
DOMAIN = "01BX5ZZKBKACTAV9WEVGEMMVRZ"
BEGAN_AT = 1_600_000_000_000_000  # microseconds
RUN_DATASETS = ("_graph_runs.lance", "_graph_run_actors.lance")
Rows = Mapping[str, tuple[tuple[object, ...], ...]]  # by type, in the order of its columns


def commit_id(number: int) -> str:
    """Return the id of a commit of these graphs."""
    return f"01ARZ3NDEKTSV4RRFFQ69G5{number:03d}"


@dataclass(frozen=True, slots=True)
class Expected:
    """What a commit says, and which persons its state has."""

    number: int
    version: int
    parent: int | None
    actor: str | None
    persons: tuple[str, ...]
    branch: str | None = None
    merged: int | None = None

    @property
    def commit_id(self) -> str:
        """Its id."""
        return commit_id(self.number)

    @property
    def created_at(self) -> int:
        """Its time."""
        return BEGAN_AT + self.number * 1_000_000


FIRST = (
    Expected(1, 1, None, None, ()),
    Expected(2, 2, 1, "ann", ("ann", "bob")),
    Expected(3, 3, 2, "bob", ("ann", "bob")),
)
MAIN_COMMITS = (
    *FIRST,
    Expected(5, 4, 3, None, ("ann", "bob", "dan")),
    Expected(6, 5, 5, "ann", ("ann", "bob", "cid", "dan"), merged=4),
)
FEATURE_COMMITS = (*FIRST, Expected(4, 4, 3, "cid", ("ann", "bob", "cid"), branch="feature"))

_MANIFEST = SCHEMA_OF_MANIFEST.set(0, pa.field("object_id", pa.utf8(), nullable=False))
_COMMIT_FIELDS: list["pa.Field[Any]"] = [
    pa.field("graph_commit_id", pa.utf8(), nullable=False),
    pa.field("manifest_branch", pa.utf8()),
    pa.field("manifest_version", pa.uint64(), nullable=False),
    pa.field("parent_commit_id", pa.utf8()),
    pa.field("merged_parent_commit_id", pa.utf8()),
    pa.field("created_at", pa.int64(), nullable=False),
]
_COMMITS = pa.schema(_COMMIT_FIELDS)
_ACTORS = pa.schema(
    [pa.field("graph_commit_id", pa.utf8(), nullable=False), pa.field("actor_id", pa.utf8(), nullable=False)]
)


@dataclass
class OlderGraph:
    """A graph of an earlier format while it is written, one call for each thing that a build of then did."""

    root: Path
    stamp: int
    has_column: bool = True  # whether the manifest has `published_at`, which is null then
    contract: Contract = field(init=False)

    def __post_init__(self) -> None:
        desired = read_schema(Source(SCHEMA, "_schema.pg"))
        self.contract = Contract.of(desired, accept_first(desired, make_domain=lambda: DOMAIN))
        self.types = {type_.table_key: type_ for type_ in self.contract.catalog.types}

    # Places

    def at(self, name: str, ref: str | None = None) -> str:
        """Return where a dataset, or a ref of it, lies."""
        return f"{self.root}/{name}" if ref is None else f"{self.root}/{name}/tree/{ref}"

    def location(self, table_key: str) -> str:
        """Return where a table lies in the graph."""
        return identity_of(self.types[table_key]).location(table_key)

    # Init

    def init(self) -> None:
        """Write the schema files, the empty tables, the manifest and the first commit."""
        self.root.mkdir(parents=True)
        for name, text in self.contract.texts.items():
            (self.root / name).write_text(text)
        rows = []
        for key, type_ in self.types.items():
            empty = arrow_schema(type_).empty_table()
            lance.write_dataset(
                empty, self.at(self.location(key)), enable_stable_row_ids=True, data_storage_version="2.2"
            )
            rows += [self._registration(key), self._pin(key, 1, None, 0)]
        self._create_manifest(rows)
        self._commit(MAIN_COMMITS[0])

    def _create_manifest(self, rows: list[dict[str, object]]) -> None:
        schema = self._manifest_schema()
        stamp = {} if self.stamp == 1 else {STAMP_KEY: str(self.stamp)}  # the first one was implicit
        table = pa.Table.from_pylist(rows, schema=schema.with_metadata(stamp))
        lance.write_dataset(
            table, self.at(MANIFEST_DIR), enable_stable_row_ids=True, data_storage_version="2.2"
        )

    def _manifest_schema(self) -> pa.Schema:
        schema = _MANIFEST if self.stamp == 1 else SCHEMA_OF_MANIFEST
        return (
            schema if self.has_column else pa.schema([item for item in schema if item.name != "published_at"])
        )

    # Writes

    def append(self, table_key: str, rows: Iterable[tuple[object, ...]], ref: str | None = None) -> None:
        """Add rows to a table, on the newest version of a ref; nothing is published."""
        schema = arrow_schema(self.types[table_key])
        table = pa.Table.from_pylist(
            [dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema
        )
        lance.write_dataset(table, self.at(self.location(table_key), ref), mode="append")

    def fork(self, table_key: str, ref: str) -> None:
        """Make a ref of a table at its newest version."""
        lance.dataset(self.at(self.location(table_key))).create_branch(ref)

    def publish(self, *pins: tuple[str, str | None], branch: str | None = None) -> int:
        """Pin tables to their newest versions, each on a ref; return the manifest's version."""
        rows = []
        for key, ref in pins:
            dataset = lance.dataset(self.at(self.location(key), ref))
            rows.append(self._pin(key, dataset.version, ref, dataset.count_rows()))
        manifest = lance.dataset(self.at(MANIFEST_DIR, branch))
        table = pa.Table.from_pylist(rows, schema=manifest.schema)
        merge = manifest.merge_insert("object_id").when_matched_update_all().when_not_matched_insert_all()
        merge.conflict_retries(0).execute(table)
        return manifest.version

    def record(self, commit: Expected) -> None:
        """Record a commit, after what it publishes: two writes, in two datasets."""
        self._commit(commit)

    def _commit(self, commit: Expected) -> None:
        row = {
            "graph_commit_id": commit.commit_id,
            "manifest_branch": commit.branch,
            "manifest_version": commit.version,
            "parent_commit_id": None if commit.parent is None else commit_id(commit.parent),
            "merged_parent_commit_id": None if commit.merged is None else commit_id(commit.merged),
            "created_at": commit.created_at,
        }
        self._append(LEGACY_COMMITS, commit.branch, row, _COMMITS)
        if commit.actor is not None:
            author = {"graph_commit_id": commit.commit_id, "actor_id": commit.actor}
            self._append(LEGACY_ACTORS, None, author, _ACTORS)

    def _append(self, dataset: str, ref: str | None, row: Mapping[str, object], schema: pa.Schema) -> None:
        place = self.at(dataset, ref)
        table = pa.Table.from_pylist([dict(row)], schema=schema)
        mode = "append" if Path(place).exists() else "create"
        lance.write_dataset(table, place, mode=mode, enable_stable_row_ids=True, data_storage_version="2.2")

    def branch(self, name: str, *, of: str | None = None) -> None:
        """Make a branch: a ref on the manifest, and one on the commits."""
        for dataset in (MANIFEST_DIR, LEGACY_COMMITS):
            lance.dataset(self.at(dataset, of)).create_branch(name)

    def run_refs(self, *names: str) -> None:
        """Leave staging refs of runs, and the datasets that knew of them."""
        for name in names:
            lance.dataset(self.at(MANIFEST_DIR)).create_branch(f"{RUN_PREFIX}{name}")
        for dataset in RUN_DATASETS:
            self._append(dataset, None, {"graph_commit_id": "run", "actor_id": "ann"}, _ACTORS)

    # Rows of the manifest

    def _registration(self, table_key: str) -> dict[str, object]:
        return self._row("table", table_key, None) | {"location": self.location(table_key)}

    def _pin(self, table_key: str, version: int, ref: str | None, rows: int) -> dict[str, object]:
        metadata = {"branch": ref, "manifest_path": None, "manifest_size": None, "naming_scheme": "V2"}
        return self._row("table_version", table_key, f"{ref or 'main'}:{version}") | {
            "table_version": version,
            "table_branch": ref,
            "row_count": rows,
            "metadata": json.dumps(metadata),
        }

    def _row(self, kind: str, table_key: str, rest: str | None) -> dict[str, object]:
        identity = identity_of(self.types[table_key])
        key = f"{kind}:{identity.object_part}"
        return dict.fromkeys(self._manifest_schema().names) | {
            "object_id": key if rest is None else f"{key}:{rest}",
            "object_type": kind,
            "table_key": table_key,
            "stable_table_id": identity.stable_table_id,
            "table_incarnation_id": identity.table_incarnation_id,
        }


def write_older_graph(root: Path, stamp: int, *, has_column: bool = True) -> OlderGraph:
    """Write a graph of a stamp with two branches, five commits on main, a merge among them, and authors."""
    graph = OlderGraph(root, stamp, has_column)
    graph.init()
    _, second, third, fifth, sixth = MAIN_COMMITS
    graph.append("node:Person", [("ann", 30, "ann"), ("bob", None, "bob")])
    assert graph.publish(("node:Person", None)) == second.version
    graph.record(second)
    graph.append("node:Company", [("acme", "acme")])
    graph.append("edge:Knows", [("k1", "ann", "bob")])
    assert graph.publish(("node:Company", None), ("edge:Knows", None)) == third.version
    graph.record(third)
    graph.branch("feature")
    graph.fork("node:Person", "feature")
    graph.append("node:Person", [("cid", 50, "cid")], "feature")
    fourth = FEATURE_COMMITS[-1]
    assert graph.publish(("node:Person", "feature"), branch="feature") == fourth.version
    graph.record(fourth)
    graph.append("node:Person", [("dan", 60, "dan")])
    assert graph.publish(("node:Person", None)) == fifth.version
    graph.record(fifth)
    graph.append("node:Person", [("cid", 50, "cid")])
    assert graph.publish(("node:Person", None)) == sixth.version
    graph.record(sixth)
    if stamp <= 2:
        graph.run_refs("a", "b")
    return graph


def annotation_of(root: Path, ref: str | None = None) -> bool:
    """Return whether the key of a manifest is annotated."""
    place = root / MANIFEST_DIR if ref is None else root / MANIFEST_DIR / "tree" / ref
    metadata = lance.dataset(str(place)).schema.field("object_id").metadata or {}
    return PRIMARY_KEY.items() <= metadata.items()


if __name__ == "__main__":
    write_older_graph(Path(sys.argv[2]), int(sys.argv[1]))
