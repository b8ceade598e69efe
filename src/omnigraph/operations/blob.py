"""`blob`: the bytes of one Blob property of one node or edge, as a branch or a commit shows it.

B1  Nothing of a value is read before it is asked for, and never more of it at a time than a piece.
B2  A blob reads the snapshot it was found in, whatever is committed since: cleanup keeps that while anybody
    holds the blob.
B3  A reference to bytes elsewhere is shown and never followed: nothing is asked for at its URI.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from omnigraph.bulk.files import whole_file
from omnigraph.catalog.model import EdgeType, NodeType, Property
from omnigraph.core.blob_errors import NOT_FOLLOWED, BlobRangeError, ExternalBlobError
from omnigraph.core.errors import BadRequest, EntityNotFound, NotFoundError
from omnigraph.core.limits import DIAGNOSTIC_EXCERPT_MAX, EXTERNAL_URI_BYTES_MAX
from omnigraph.core.names import refuse_both
from omnigraph.core.nearest import hinting
from omnigraph.core.values import is_count, is_text, named, shown
from omnigraph.history.identity import MAIN
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.pin import SnapshotLike, pin_table, read_snapshot
from omnigraph.operations.reclaimed import at_head, reading_of
from omnigraph.policy.request import Action
from omnigraph.storage.tables.cell import Cell, FoundCell, find_cell
from omnigraph.validate.references import stored_fault

PIECE_BYTES = 4 * 1024 * 1024  # of a value in memory at a time; more at once is no faster
ENTITIES = ("node", "edge")


@dataclass(frozen=True, slots=True)
class BlobCell:
    """Which value is meant: a property of a node or an edge."""

    entity: str
    type_name: str
    id: str
    property: str


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Blob:
    """The bytes of a property: how many, under which strong ETag, and parts of them on demand.

    Of kind `external` it is a reference to bytes elsewhere: `uri` says where, nobody knows the size, and
    reading raises, as a graph never follows a reference.
    """

    kind: Literal["managed", "external"]
    size: int | None
    etag: str
    uri: str | None
    commit_id: str = field(compare=False)
    _graph: OpenGraph = field(repr=False, compare=False)
    _snapshot: Snapshot = field(repr=False, compare=False)
    _cell: Cell = field(repr=False, compare=False)

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes from one position to another, or to the end of the value.

        An end behind that of the value stands for it. All bytes are held at once: `stream` holds a piece.

        Raises:
            BadRequest: a position is not a whole number from 0 on, or the end comes before the start.
            BlobRangeError: the value ends before the start.
            ExternalBlobError: the value is a reference.
        """
        return b"".join(self.stream(start, end))

    def stream(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Return the bytes in pieces of at most 4 MiB, each read when it is asked for.

        Raises:
            BadRequest, BlobRangeError, ExternalBlobError: as `read`, before the first piece.
        """
        if self.uri is not None:
            raise ExternalBlobError(uri=self.uri, reason=NOT_FOLLOWED)
        assert self.size is not None, "of bytes it is known how many they are"
        first, last = byte_span(start, end, self.size)
        return self._pieces(first, last)

    def save(self, path: str | Path) -> None:
        """Write all bytes to a file, which appears when it is complete.

        Raises:
            BadRequest: it cannot be written.
            ExternalBlobError: the value is a reference.
        """
        pieces = self.stream()
        with whole_file(path) as file:
            file.writelines(pieces)

    def _pieces(self, start: int, end: int) -> Iterator[bytes]:
        for at in range(start, end, PIECE_BYTES):
            self._graph.require_open()
            with reading_of(self._graph, self._snapshot):
                piece = self._cell.read(at, min(at + PIECE_BYTES, end))
            yield piece


def byte_span(start: int, end: int | None, length: int) -> tuple[int, int]:
    """Return the first and the last position of a range in a value of some length.

    Raises:
        BadRequest: a position is not a whole number from 0 on, or the end comes before the start.
        BlobRangeError: the value ends before the start.
    """
    if not is_count(start) or not (end is None or is_count(end)):
        given = start if not is_count(start) else end
        raise BadRequest(f"a position in a value is a whole number from 0 on, not {shown(given)}")
    if end is not None and end < start:
        raise BadRequest(f"a range of bytes cannot end at {end} before it starts at {start}")
    if start >= max(length, 1):
        raise BlobRangeError(start=start, end=end, length=length)
    return start, length if end is None else min(end, length)


def blob(
    graph: OpenGraph,
    wanted: BlobCell,
    *,
    branch: str | None = None,
    snapshot: SnapshotLike | None = None,
    actor: str | None = None,
) -> Blob:
    """Find the value of a Blob property on a branch now, or in a past snapshot; none of its bytes is read.

    Raises:
        BadRequest: there is no such type or property, it is not a Blob, or both a branch and a snapshot
            are named.
        EntityNotFound: there is no such node or edge.
        NotFoundError: its value is null, or there is no such branch or snapshot.
        HistoricalVersionReclaimed: the table's version was cleaned up.
        PolicyDenied: the actor may not read the branch, or that of the snapshot.
        ExternalBlobError: the property is for references, and the value is none.
    """
    check_cell(wanted)
    refuse_both(branch, snapshot)
    if snapshot is None:
        name = graph.enter(actor, Action.READ, branch)

        def read(state: ManifestState) -> Blob:
            return _found(graph, state.snapshot(), wanted)

        return at_head(graph, lambda: graph.newest(name), read)
    seen = read_snapshot(graph, actor, MAIN, snapshot)
    with reading_of(graph, seen):
        return _found(graph, seen, wanted)


def check_cell(wanted: BlobCell) -> None:
    """Refuse what names no value, whatever the graph holds.

    Raises:
        BadRequest: a word is not a text, or the entity is neither a node nor an edge.
    """
    given = (wanted.entity, wanted.type_name, wanted.id, wanted.property)
    for word in given:
        if not isinstance(word, str):
            raise BadRequest(f"a value is named by four texts: entity, type, id, property; not {named(word)}")
    if wanted.entity not in ENTITIES:
        raise BadRequest(f"the entity of a value is 'node' or 'edge', not {shown(wanted.entity)}")


def _found(graph: OpenGraph, seen: Snapshot, wanted: BlobCell) -> Blob:
    handle = pin_table(graph, seen, f"{wanted.entity}:{wanted.type_name}").open(graph.parts.store)
    item = _blob_property(graph.catalog_of(seen).type_of(f"{wanted.entity}:{wanted.type_name}"), wanted)
    cell = find_cell(handle, wanted.id, item.name) if is_text(wanted.id) else None
    if cell is None:
        raise EntityNotFound(wanted.type_name, wanted.id)
    return _blob(graph, seen, wanted, cell, is_external=item.is_external)


def _blob_property(type_: NodeType | EdgeType, wanted: BlobCell) -> Property:
    item = type_.properties.get(wanted.property)
    if item is None:
        known = [name for name, item in type_.properties.items() if item.is_blob]
        hint = hinting(wanted.property, known)
        raise BadRequest(f"{type_.name} has no property {shown(wanted.property)}{hint}")
    if not item.is_blob:
        raise BadRequest(f"{type_.name}.{item.name} is {item.type}, not a Blob")
    return item


def _blob(graph: OpenGraph, seen: Snapshot, wanted: BlobCell, found: FoundCell, *, is_external: bool) -> Blob:
    if found.cell is None:
        raise NotFoundError(f"{wanted.type_name} '{wanted.id}' has no {wanted.property}: it is null")
    uri = _reference(found.cell) if is_external else None
    made = Blob(
        "managed" if uri is None else "external",
        found.cell.length if uri is None else None,
        f'"{found.name}"',
        uri,
        seen.head.graph_commit_id,
        graph,
        seen,
        found.cell,
    )
    graph.parts.readers.keep(made, seen)
    return made


def _reference(cell: Cell) -> str:
    """Return the URI that a value is (B3).

    Raises:
        ExternalBlobError: it is none: another program wrote it, and nobody should be sent there.
    """
    if cell.length > EXTERNAL_URI_BYTES_MAX:
        raise _foreign(cell.read(0, DIAGNOSTIC_EXCERPT_MAX), f"it has {cell.length} bytes")
    value = cell.read(0, cell.length)
    fault = stored_fault(value)
    if fault is not None:
        raise _foreign(value, fault)
    return value.decode()


def _foreign(value: bytes, fault: str) -> ExternalBlobError:
    start = repr(value[:DIAGNOSTIC_EXCERPT_MAX])[2:-1]  # a line of a log, whatever the bytes are
    return ExternalBlobError(uri=start, reason=f"is not a reference: {fault}")
