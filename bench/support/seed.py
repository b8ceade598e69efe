"""A manifest with many commits, made in one go instead of commit by commit."""

import struct
from pathlib import Path

from omnigraph.core.ids import new_ulid
from omnigraph.graph.graph import Graph
from omnigraph.history.manifest_rows import Pin, Row, commit_row, head_row, pin_row, rows_table

_FOOTER = struct.Struct("<QHH4s")
_LENGTH = struct.Struct("<I")
_VERSION_FIELD = 3


def seed_commits(graph: Graph, table_key: str, count: int) -> None:
    """Give a graph so many commits that each pinned one table, as if all but the newest version were trimmed.

    Pins and commits are rows with rising manifest versions. They are written by one merge and folded; then
    the number of the manifest's newest version is raised to the last of them. The graph must be opened again.
    """
    parts = graph._graph.parts
    coordinator = parts.coordinator
    handle = coordinator.manifest.open_fresh(coordinator.address())
    state = coordinator.advance(None, None, handle)
    entry = state.snapshot().entry(table_key)
    first = handle.version + 1
    parent = state.head.graph_commit_id
    rows: list[Row] = []
    for at in range(first, first + count):
        commit_id = new_ulid()
        pin = Pin(entry.version, entry.owner, entry.row_count, entry.pin.transaction_uuid, None)
        metadata = {"parent_commit_id": parent, "actor_id": "seed", "created_at": parts.clock()}
        rows += [pin_row(entry.identity, table_key, pin, at=at), commit_row(commit_id, None, metadata, at=at)]
        parent = commit_id
    rows.append(head_row(None, parent, str(rows[-1]["object_id"])))
    coordinator.manifest.merge(handle, rows_table(rows))
    folded = coordinator.manifest.compact(coordinator.address())
    _renumber(Path(graph.uri, "__manifest", "_versions"), folded, first + count - 1)
    graph.close()


def _renumber(folder: Path, old: int, new: int) -> None:
    """Make one version the only one, under another number."""
    path = folder / f"{2**64 - 1 - old:020d}.manifest"
    data = path.read_bytes()
    position, *formats = _FOOTER.unpack(data[-_FOOTER.size :])
    (length,) = _LENGTH.unpack_from(data, position)
    message = data[position + _LENGTH.size :][:length]
    renumbered = _with_number(message, _VERSION_FIELD, new)
    text = data[:position] + _LENGTH.pack(len(renumbered)) + renumbered + _FOOTER.pack(position, *formats)
    for other in folder.iterdir():
        other.unlink()
    (folder / f"{2**64 - 1 - new:020d}.manifest").write_bytes(text)


def _with_number(message: bytes, field: int, value: int) -> bytes:
    """Return a protobuf message with another value in a field of its top level that is a number."""
    place, out = 0, bytearray()
    while place < len(message):
        start = place
        tag, place = _varint(message, place)
        kind = tag & 7
        if kind == 0:
            _, place = _varint(message, place)
        elif kind == 2:
            size, place = _varint(message, place)
            place += size
        else:
            place += 8 if kind == 1 else 4
        if tag >> 3 != field:
            out += message[start:place]
    return bytes(out) + _encoded(field << 3) + _encoded(value)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
