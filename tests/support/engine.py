"""Graphs on a disk, and the steps that tests of the engine take on them.

The library graph holds LIB and the data set of the languages specification (section 7). It is loaded once in
a run; each test gets a copy of its own.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from omnigraph.commit.changes import Expectation, LineageIntent, ManifestChange
from omnigraph.commit.parts import WriteQueueManager
from omnigraph.commit.publish import ManifestPublisher, PublishOutcome
from omnigraph.core.errors import ValidationError
from omnigraph.core.ids import new_ulid
from omnigraph.exec.mutation import CommittedTables
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.graph.opening import open as open_graph
from omnigraph.history.commits import GraphCommit
from omnigraph.history.coordinator import Coordinator
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import MAIN, MAIN_BRANCH, TableIdentity
from omnigraph.history.manifest_rows import COMMIT, HEAD, MANIFEST_DIR, PublishedPin
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.storage.tables.manifest_table import ManifestTable
from omnigraph.storage.tables.table import TableStore
from omnigraph.validate.violations import Violation
from tests.support.library import LIB
from tests.support.seam import internals

LIBRARY_COMMITS = 3  # genesis, the load, its index build

# Two-table fixtures of the conformance list.
PEOPLE = """\
node Person  { name: String @key  age: I32?  nickName: String? }
node Company { name: String @key }
edge Knows:   Person -> Person
edge WorksAt: Person -> Company @card(0..1)
"""


def node(type_name: str, **data: object) -> dict[str, object]:
    """Return the record of a node."""
    return {"type": type_name, "data": data}


def edge(edge_name: str, source: str, target: str, **data: object) -> dict[str, object]:
    """Return the record of an edge."""
    return {"edge": edge_name, "from": source, "to": target, "data": data}


def ndjson(records: Iterable[Mapping[str, object]]) -> bytes:
    """Return records as the text of a load."""
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


_AA1: dict[str, object] = {
    "code": "AA-1",
    "title": "Glass Rivers",
    "pages": 300,
    "price": 12.5,
    "weight": 0.1,
}
_AA2: dict[str, object] = {"code": "AA-2", "title": "Quiet Machines", "pages": 120, "price": 8.0}
_BB1: dict[str, object] = {"code": "BB-1", "title": "River Songs", "price": 8.0, "format": "audio"}
_BB2: dict[str, object] = {
    "code": "BB-2",
    "title": "Machine Songs",
    "pages": 120,
    "price": 20.0,
    "weight": 0.5,
}

LIBRARY = (
    node("Author", handle="ada", name="Ada Quill", born="1950-01-05", email="ada@x.org"),
    node("Author", handle="ben", name="Ben Ode"),
    node("Author", handle="cy", name="Cy Verse", born="1990-12-31", email="cy@x.org"),
    node("Author", handle="dot", name="Dot Stanza"),
    node(
        "Book",
        **_AA1,
        format="paper",
        tags=["river", "glass"],
        published="2020-05-01",
        added="2021-01-01T00:00:00Z",
        blurb="A survey of rivers and glass making",
        embedding=[1, 0, 0, 0],
    ),
    node(
        "Book",
        **_AA2,
        format="ebook",
        tags=["machine"],
        published="2018-01-01",
        added="2021-01-02T00:00:00Z",
        blurb="Notes on silent machines",
        embedding=[0, 1, 0, 0],
    ),
    node("Book", **_BB1, added="2021-01-03T00:00:00Z"),
    node(
        "Book",
        **_BB2,
        format="paper",
        tags=[],
        published="2022-07-07",
        added="2021-01-04T00:00:00Z",
        blurb="Songs for machines and rivers",
        embedding=[0.9, 0.1, 0, 0],
    ),
    node("Shelf", room="north", slot=1, label="A"),
    node("Shelf", room="north", slot=2),
    node("Note", id="n1", body="check"),
    edge("Wrote", "ada", "AA-1", id="w1", role="main", share=1.0),
    edge("Wrote", "ada", "BB-1", id="w2", role="editor"),
    edge("Wrote", "ben", "AA-2", id="w3", role="main"),
    edge("Wrote", "cy", "BB-2", id="w4", role="main", share=0.6),
    edge("Wrote", "cy", "BB-2", id="w5", role="translator", share=0.4),
    edge("Cites", "AA-1", "AA-2", id="c1", page=10),
    edge("Cites", "AA-2", "BB-2", id="c2"),
    edge("Cites", "BB-2", "AA-1", id="c3"),
    edge("Cites", "BB-1", "BB-1", id="c4"),
    edge("StoredOn", "AA-1", '["north","1"]', id="s1"),
    edge("Mentors", "ada", "ben", id="m1", since="2001-01-01"),
    edge("Mentors", "ben", "cy", id="m2"),
    edge("About", "n1", "AA-1", id="a1"),
)


# Making and opening


def new_graph(root: Path, schema: str = PEOPLE, *records: Mapping[str, object]) -> Graph:
    """Return a new graph, with records if some are given."""
    graph = init(root, schema, durability="process")
    if records:
        graph.load(ndjson(records), "append", index=False)
    return graph


def library_template(root: Path) -> Path:
    """Make the library graph and return its place."""
    init(root, LIB, durability="process").load(ndjson(LIBRARY), "append")
    return root


def copy_of(template: Path, root: Path) -> Path:
    """Copy a graph; what lies on the disk is the graph, wherever it lies."""
    shutil.copytree(template, root)
    return root


def reopen(graph: Graph | Path, *, upkeep: bool = True, mode: Literal["rw", "ro"] = "rw") -> Graph:
    """Return another handle on a graph, with nothing cached."""
    uri = graph if isinstance(graph, Path) else graph.uri
    return open_graph(uri, durability="process", upkeep=upkeep, mode=mode)


def foreign(graph: Graph) -> Graph:
    """Return a handle like one of another process: it shares no queue with this one."""
    other = reopen(graph)
    object.__setattr__(internals(other).parts, "queues", WriteQueueManager())
    return other


# Reading


def rows(graph: Graph, type_name: str) -> dict[str, dict[str, Any]]:
    """Return the rows of a type by id."""
    return {row["id"]: row for row in graph.table(type_name).to_pylist()}


def ids(graph: Graph, type_name: str) -> list[str]:
    """Return the ids of a type, sorted."""
    return list(rows(graph, type_name))


def rows_at(graph: Graph, snapshot: Snapshot, table_key: str) -> dict[str, dict[str, Any]]:
    """Return the rows of a table as a snapshot shows them, by id."""
    parts = internals(graph).parts
    table = CommittedTables(snapshot, parts.store, parts.pinned).scan(table_key)
    return {row["id"]: row for row in table.sort_by("id").to_pylist()}


def contents(graph: Graph) -> dict[str, dict[str, dict[str, Any]]]:
    """Return every row of the graph, by type and id."""
    return {type_.name: rows(graph, type_.name) for type_ in internals(graph).catalog.types}


def head(graph: Graph) -> GraphCommit:
    """Return the newest commit."""
    return graph.commits(limit=1)[0]


def chain(graph: Graph) -> list[GraphCommit]:
    """Return the commits from genesis on, having checked that they are one chain."""
    commits = list(reversed(graph.commits()))
    assert commits[0].parent_commit_id is None
    for parent, child in pairwise(commits):
        assert child.parent_commit_id == parent.graph_commit_id
        assert child.manifest_version > parent.manifest_version
    return commits


def pins(graph: Graph) -> dict[str, int]:
    """Return the published version of every table."""
    return {key: entry.version for key, entry in graph.snapshot().entries.items()}


def heads(graph: Graph) -> dict[str, int]:
    """Return the newest version of every table, looked up on the disk."""
    store, parts = TableStore(), internals(graph).parts
    return {
        key: store.open_head(parts.address(entry)).version for key, entry in graph.snapshot().entries.items()
    }


def assert_settled(graph: Graph) -> None:
    """Check that every table is at its pin and that no sidecar or lock file is left."""
    assert heads(graph) == pins(graph)
    assert recovery_files(graph) == []


def recovery_files(graph: Graph) -> list[str]:
    """Return the names in the recovery folder."""
    return sorted(path.name for path in (Path(graph.uri) / "__recovery").glob("*"))


def table_path(graph: Graph, table_key: str) -> Path:
    """Return where a table lies."""
    return Path(graph.uri) / graph.snapshot().entry(table_key).location


def files(root: Path) -> dict[str, bytes]:
    """Return every file below a folder with its bytes."""
    return {
        str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }


# The manifest


def manifest_rows(graph: Graph) -> list[dict[str, Any]]:
    """Return the rows of the manifest as they lie on the disk."""
    coordinator = Coordinator(internals(graph).parts.root, ManifestTable(TableStore()))
    handle = coordinator.manifest.open_fresh(coordinator.address())
    return coordinator.manifest.read(handle).sort_by("object_id").to_pylist()


def unchanging_rows(graph: Graph) -> dict[str, dict[str, Any]]:
    """Return all rows but the heads, by object id."""
    return {row["object_id"]: row for row in manifest_rows(graph) if row["object_type"] != HEAD}


def commit_rows(graph: Graph) -> list[dict[str, Any]]:
    """Return the lineage rows."""
    return [row for row in manifest_rows(graph) if row["object_type"] == COMMIT]


def cold_state(graph: Graph) -> ManifestState:
    """Return the state as somebody reads it who has seen nothing yet."""
    coordinator = Coordinator(internals(graph).parts.root, ManifestTable(TableStore()))
    return coordinator.state()


def view(state: ManifestState) -> tuple[object, ...]:
    """Return all that a state says, past included."""
    commits = list(state.commits.newest_first())
    past = {commit.manifest_version: state.snapshot_at(commit.manifest_version) for commit in commits}
    return state.version, state.tables.entries(), commits, _heads(state), past, state.fragments


def _heads(state: ManifestState) -> dict[str, tuple[str, int | None]]:
    """Return the head of each branch, and where its row lies."""
    return {branch: (commit, state.head_places.get(branch)) for branch, commit in state.heads.items()}


def manifest_path(graph: Graph) -> Path:
    """Return where the manifest lies."""
    return Path(graph.uri) / MANIFEST_DIR


class Publisher:
    """Publishes changes of our own making on main, and expectations with them."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._publisher = internals(graph).publisher

    @property
    def raw(self) -> ManifestPublisher:
        """The publisher itself."""
        return self._publisher

    def publish(
        self,
        *changes: ManifestChange,
        expected: Mapping[TableIdentity, Expectation] | None = None,
        lineage: LineageIntent | None = None,
    ) -> PublishOutcome:
        """Publish; without a lineage of the caller's a new one is made."""
        return self._publisher.publish(MAIN_BRANCH, changes, expected or {}, lineage or intent())


def intent(actor: str | None = None, message: str | None = None, created_at: int = 1) -> LineageIntent:
    """Return a new commit's id and time."""
    return LineageIntent(new_ulid(), actor, created_at, message=message)


def pin(version: int, row_count: int = 0, *, ref: str | None = None, uuid: str | None = None) -> PublishedPin:
    """Return a pin that names no real version: manifests do not look."""
    return PublishedPin(version, ref, row_count, uuid or f"uuid-{ref}-{version}", MAIN)


def expecting(*entries: TableEntry, version: int | None = None) -> dict[TableIdentity, Expectation]:
    """Return expectations: of the entries' own versions, or of another one."""
    return {
        entry.identity: Expectation(entry.table_key, entry.version if version is None else version)
        for entry in entries
    }


def listed(error: ValidationError) -> list[Violation]:
    """Return the violations that an error lists."""
    assert all(isinstance(found, Violation) for found in error.violations)
    return [found for found in error.violations if isinstance(found, Violation)]


# Counting


@dataclass(frozen=True, slots=True)
class Counts:
    """What a handle has read, written and synced so far."""

    reads: int
    writes: int
    fsyncs: int

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(self.reads - other.reads, self.writes - other.writes, self.fsyncs - other.fsyncs)


def counts(graph: Graph) -> Counts:
    """Return the counters of a handle."""
    parts = internals(graph).parts
    stats = parts.store.io_stats()
    return Counts(stats.reads, stats.writes, parts.syncer.fsyncs)


# Several at once


def together(*calls: Callable[[], object]) -> list[object]:
    """Run calls in threads of their own and return what each gave or raised, in order."""

    def run(call: Callable[[], object]) -> object:
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - the outcome is what the test looks at
            return error

    with ThreadPoolExecutor(max_workers=len(calls)) as pool:
        return list(pool.map(run, calls))


def people(*names: str) -> pa.Table:
    """Return persons as a table."""
    return pa.table({"name": pa.array(names, pa.utf8())})
