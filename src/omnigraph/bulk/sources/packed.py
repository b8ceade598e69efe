"""How much an Arrow file holds unpacked, from what it says about its buffers, without unpacking anything.

Arrow unpacks all buffers of a batch at once and offers no bound for it. Each packed buffer begins with the
number of its bytes, and the head of its batch says where it is: this module reads those heads (FlatBuffers
tables, `format/Message.fbs` and `format/File.fbs` of Arrow) and nothing else. What is malformed counts as
nothing: Arrow will refuse it.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

IPC_FILE_MAGIC = b"ARROW1"
_CONTINUES = 0xFFFF_FFFF
_DICTIONARY, _BATCH = 2, 3  # kinds of messages; a schema has no buffers
_HEAD_BYTES_MAX = 256 * 1024 * 1024  # of one head: a hundred thousand columns take ten
_TAIL = struct.Struct("<i6s")
_BLOCK = struct.Struct("<qi4xq")
_BUFFER = struct.Struct("<qq")


def unpacked_size(file: IO[bytes], size: int) -> int:
    """Return how many bytes the packed buffers of an Arrow file or stream say they hold."""
    total = 0
    try:
        for head, body in _heads(file, size):
            for start in _packed_buffers(head):
                total += max(0, _number(_read(file, body + start, 8), 0, "<q"))
    except (ValueError, struct.error):
        return total
    return total


def _heads(file: IO[bytes], size: int) -> Iterator[tuple[bytes, int]]:
    """Yield the head of each message with buffers, and where its body begins."""
    is_file = _read(file, 0, len(IPC_FILE_MAGIC)) == IPC_FILE_MAGIC
    starts = _listed(file, size) if is_file else None
    if starts is not None:
        for start in starts:
            head, body = _message(file, start)
            yield head, body
        return
    place = 0
    while True:
        head, body = _message(file, place)
        if not head:
            return
        yield head, body
        place = body + _Table(head, _number(head, 0, "<I")).number(3, "<q")


def _listed(file: IO[bytes], size: int) -> list[int]:
    """Return where the messages are that the footer of a file names: dictionaries and batches."""
    length, magic = _TAIL.unpack(_read(file, size - _TAIL.size, _TAIL.size))
    if magic != IPC_FILE_MAGIC:
        raise ValueError("no foot")
    foot = _read(file, size - _TAIL.size - length, length)
    table = _Table(foot, _number(foot, 0, "<I"))
    return [
        _BLOCK.unpack_from(foot, place)[0] for field in (2, 3) for place in table.items(field, _BLOCK.size)
    ]


def _message(file: IO[bytes], place: int) -> tuple[bytes, int]:
    """Return the head of the message at a place, and the place after it; the end of a stream has no head."""
    start = place + 8
    word, length = struct.unpack("<Ii", _read(file, place, 8))
    if word != _CONTINUES:  # the form that was written before there was a mark
        start, length = place + 4, word
    return _read(file, start, length), start + length


def _packed_buffers(head: bytes) -> Iterator[int]:
    """Yield where the packed buffers of a message begin in its body."""
    message = _Table(head, _number(head, 0, "<I"))
    kind = message.number(1, "<B")
    if kind not in {_DICTIONARY, _BATCH}:
        return
    batch = message.table(2)
    batch = batch.table(1) if kind == _DICTIONARY else batch
    if batch.place_of(3) is None:
        return  # nothing is packed
    for place in batch.items(2, _BUFFER.size):
        start, length = _BUFFER.unpack_from(head, place)
        if length > 0:
            yield start


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of FlatBuffers: its fields by their number."""

    data: bytes
    place: int

    def place_of(self, field: int) -> int | None:
        fields = self.place - _number(self.data, self.place, "<i")
        slot = 4 + 2 * field
        if slot + 2 > _number(self.data, fields, "<H"):
            return None
        offset = _number(self.data, fields + slot, "<H")
        return self.place + offset if offset else None

    def number(self, field: int, form: str) -> int:
        place = self.place_of(field)
        return 0 if place is None else _number(self.data, place, form)

    def table(self, field: int) -> "_Table":
        place = self.place_of(field)
        if place is None:
            raise ValueError("a table is missing")
        return _Table(self.data, place + _number(self.data, place, "<I"))

    def items(self, field: int, size: int) -> range:
        """Return the places of the items of a list."""
        place = self.place_of(field)
        if place is None:
            return range(0)
        first = place + _number(self.data, place, "<I")
        count = _number(self.data, first, "<I")
        if first + 4 + count * size > len(self.data):
            raise ValueError("a list is cut short")
        return range(first + 4, first + 4 + count * size, size)


def _number(data: bytes, place: int, form: str) -> int:
    if place < 0:  # would count from the end
        raise ValueError("outside the data")
    return int(struct.unpack_from(form, data, place)[0])


def _read(file: IO[bytes], place: int, count: int) -> bytes:
    if place < 0 or not 0 <= count <= _HEAD_BYTES_MAX:
        raise ValueError("outside the file")
    file.seek(place)
    return file.read(count)
