"""`export`: the rows of a branch, in the form a load takes.

H1  One export reads one snapshot, whatever is committed meanwhile.
H2  Nodes come before edges, types are in order of name, rows of id. On Spark this holds for each file.
H3  Loading an export in mode overwrite gives an equal graph.

Files and folders are paths, or addresses `s3://bucket/key` in a store.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from omnigraph.bulk.export.export import ExportTask, run_export
from omnigraph.bulk.export.files import ExportFormat, write_rows
from omnigraph.bulk.export.sort import sorted_by_id
from omnigraph.bulk.export.values import json_lines, python_records
from omnigraph.bulk.files import (
    is_object,
    objects_below,
    refuse_other_stores,
    require_outside_graphs,
    whole_file,
)
from omnigraph.catalog.arrow_schema import arrow_schema, shown_rows
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.core.nearest import hinting
from omnigraph.core.runs import runs
from omnigraph.history.state import Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.engine import start_spark
from omnigraph.operations.progress import Advance, TableProgressCallback, Tables, unmoved, unseen
from omnigraph.operations.reclaimed import reading_of
from omnigraph.policy.request import Action
from omnigraph.storage.tables.pinned import pieces

AHEAD_BYTES = 8 * 1024 * 1024  # of the table in memory that are not being sorted
TASK_ROWS = 4 * MAX_FRAGMENT_ROWS  # of one file that a Spark task writes; small fragments share one


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """One file of an export."""

    table_key: str
    path: str
    rows: int


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Export:
    """What to export: some types at one snapshot (H1). Iterating gives the records as dicts (H2).

    Each time that is done, `progress` is told of every table; rows are read first and given then, so
    that each counts half for being read.
    """

    graph: OpenGraph
    snapshot: Snapshot
    types: tuple[NodeType | EdgeType, ...]
    progress: TableProgressCallback = unseen

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Yield the records in the form a load takes: JSON values, but for `date` and aware `datetime`."""
        for type_, batches in self._tables():
            for batch in batches:
                yield from python_records(batch, type_)

    def batches(self, type_: NodeType | EdgeType) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one type by id, with times as timestamps; memory does not grow with the table."""
        return self._rows(type_, unmoved)

    def _rows(self, type_: NodeType | EdgeType, advance: Advance) -> Iterator[pa.RecordBatch]:
        self.graph.require_open()
        parts, schema, halves = self.graph.parts, arrow_schema(type_), _Halves(advance)
        with reading_of(self.graph, self.snapshot):
            handle = parts.open(self.snapshot.entry(type_.table_key))
            rows = parts.store.scan_batches(handle, columns=schema.names, ahead_bytes=AHEAD_BYTES)
            for batch in sorted_by_id(halves.counted(rows), schema):
                yield shown_rows(batch, type_)
                halves.count(batch)

    def _tables(self) -> Iterator[tuple[NodeType | EdgeType, Iterator[pa.RecordBatch]]]:
        """Yield each type with its rows; it is done when the next one is asked for."""
        rows = {type_.table_key: self.snapshot.entry(type_.table_key).row_count for type_ in self.types}
        tables = Tables("export", rows, self.progress)
        for type_ in self.types:
            with tables.at(type_.table_key) as advance:
                yield type_, self._rows(type_, advance)

    def lines(self) -> Iterator[bytes]:
        """Yield NDJSON, some records at a time."""
        for type_, batches in self._tables():
            for batch in batches:
                yield json_lines(batch, type_)

    def to_file(self, path: str | Path) -> None:
        """Write one file of NDJSON; it appears when it is complete.

        Raises:
            BadRequest: it cannot be written.
        """
        with whole_file(path) as file:
            file.writelines(self.lines())

    def to_folder(self, folder: str | Path, format_: ExportFormat) -> tuple[ExportedFile, ...]:
        """Write one file for each type, named after it, into an empty or new folder.

        Raises:
            BadRequest: the folder holds something, or cannot be written.
        """
        place = _empty_folder(folder, self.types)
        written = []
        for type_, batches in self._tables():
            path = f"{place}/{type_.name}{format_.suffix}"
            with whole_file(path) as file:
                rows = write_rows(batches, type_, format_, file)
            written.append(ExportedFile(type_.table_key, path, rows))
        return tuple(written)

    def to_folder_on_spark(
        self, folder: str | Path, format_: ExportFormat, *, master: str | None = None
    ) -> tuple[ExportedFile, ...]:
        """Write, for each type, a folder of files from Spark tasks, into an empty or new folder.

        Raises:
            BadRequest: the folder holds something, or cannot be written.
            SparkUnavailable: there is no Java, or Spark did not start.
        """
        place = _empty_folder(folder, self.types)
        tasks = [task for type_ in self.types for task in self._tasks(type_, place, format_)]
        with reading_of(self.graph, self.snapshot):
            rows = run_export(start_spark(self.graph, master), tasks)
        return tuple(
            ExportedFile(task.type.table_key, task.path, count)
            for task, count in zip(tasks, rows, strict=True)
        )

    def _tasks(self, type_: NodeType | EdgeType, folder: str, format_: ExportFormat) -> Iterator[ExportTask]:
        """Yield tasks of whole fragments; a type without rows has one, for its empty file."""
        self.graph.require_open()
        parts = self.graph.parts
        pinned = parts.pinned(self.snapshot.entry(type_.table_key))
        with reading_of(self.graph, self.snapshot):
            found = pieces(pinned.open(parts.store))
        shares = list(runs(found, (lambda piece: piece.rows, TASK_ROWS))) or [[]]
        for number, share in enumerate(shares):
            path = f"{folder}/{type_.name}/part-{number:05d}{format_.suffix}"
            yield ExportTask(pinned, type_, tuple(piece.number for piece in share), format_, path)


@dataclass(slots=True)
class _Halves:
    """Counts rows that are met twice, and tells how many whole ones that makes."""

    advance: Advance
    halves: int = 0

    def count(self, batch: pa.RecordBatch) -> None:
        before, self.halves = self.halves, self.halves + batch.num_rows
        self.advance(self.halves // 2 - before // 2)

    def counted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            self.count(batch)


def export(
    graph: OpenGraph,
    *,
    branch: str | None = None,
    types: Sequence[str] | None = None,
    actor: str | None = None,
    progress: TableProgressCallback = unseen,
) -> Export:
    """Pin the newest view of a branch and say what to export from it; no types means all of them.

    Raises:
        BadRequest: there is no such type.
        BranchNotFound: there is no such branch.
        PolicyDenied: the actor may not export.
    """
    branch = graph.enter(actor, Action.EXPORT, branch)
    snapshot = graph.newest(branch).snapshot()
    return pinned_export(graph, snapshot, chosen_types(graph.catalog_of(snapshot), types), progress)


def pinned_export(
    graph: OpenGraph,
    snapshot: Snapshot,
    types: tuple[NodeType | EdgeType, ...],
    progress: TableProgressCallback = unseen,
) -> Export:
    """Return an export of a snapshot, which cleanup keeps readable while anybody holds the export."""
    made = Export(graph, snapshot, types, progress)
    graph.parts.readers.keep(made, snapshot)
    return made


def chosen_types(catalog: Catalog, names: Iterable[str] | None) -> tuple[NodeType | EdgeType, ...]:
    """Return the types of names or table keys, nodes first (H2)."""
    if names is None:
        return catalog.types
    chosen: set[str] = set()
    for name in names:
        kind, _, word = name.rpartition(":")
        node = catalog.nodes.get(word) if kind in {"", "node"} else None
        edge = catalog.edge(word) if kind in {"", "edge"} else None
        if node is None and edge is None:
            hint = hinting(word, [*catalog.nodes, *catalog.edges])
            raise BadRequest(f"unknown type '{name}'{hint}")
        chosen.update(found.table_key for found in (node, edge) if found is not None)
    return tuple(type_ for type_ in catalog.types if type_.table_key in chosen)


def _empty_folder(folder: str | Path, types: Sequence[NodeType | EdgeType]) -> str:
    """Create a folder, or take an empty one: what is already in it would be loaded too."""
    names = [type_.name for type_ in types]
    for name in names:
        if names.count(name) > 1:
            raise BadRequest(f"a node and an edge are called '{name}': export them one by one, or as NDJSON")
    refuse_other_stores(str(folder))
    place = str(folder).rstrip("/") if is_object(str(folder)) else str(Path(folder).absolute())
    try:
        require_outside_graphs(place)
        if _has_content(place):
            raise BadRequest(f"{folder} is not empty: an export needs an empty folder")
    except OSError as error:
        raise BadRequest(f"cannot write {folder}: {error.strerror or error}") from error
    return place


def _has_content(folder: str) -> bool:
    """Return whether a folder has content, creating it first; a prefix in a store has no folder to create."""
    if is_object(folder):
        return bool(objects_below(folder))
    Path(folder).mkdir(parents=True, exist_ok=True)
    return any(Path(folder).iterdir())
