"""What one version of a Lance dataset consists of, read from its version file without the library.

The library fails in several ways on a damaged newest version, and opens one full of zeros as an empty table.
Here a version is read as the bytes it is: transaction and index sections, the manifest message after its
length, and a footer of 16 bytes (position of the manifest, format numbers, `LANC`).
Protocol buffers are read only as far as the library's files need: numbered values, each a number or bytes.

Names that were read from a file and become part of a path are checked by their form before any use:

L1  A name that passes is below the folder it is joined to, whatever the file that it came from says.
L2  Any other is an `InvariantViolation`: no writer of ours wrote it, so nothing goes on from there.
"""

import re
import struct
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from omnigraph.core.errors import InvariantViolation
from omnigraph.core.regular_file import special_kind
from omnigraph.storage.files.roaring import bitmap_values

_REF = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*)*")
_REF_BYTES_MAX = 200
_OF_LANCE = frozenset({"_versions", "_transactions", "_deletions", "_indices", "_refs", "data", "tree"})

VERSIONS_DIR, TRANSACTIONS_DIR = "_versions", "_transactions"
MAGIC = b"LANC"
ARROW_MAGIC = b"ARROW1"
FOOTER = struct.Struct("<QHH4s")
LENGTH = struct.Struct("<I")
_VERSION = 3  # the number, in the message of a version
_REF_NAME = 20  # the name of the ref that it belongs to, likewise
_INLINE_TRANSACTION = 23  # where the transaction is, likewise


def check_ref(ref: str, where: str) -> str:
    """Return the name of a Lance ref: letters, digits, `.`, `-` and `_`.

    Those that this build makes are one segment. In earlier formats refs had the names of branches, which may
    have several; none after the first is a folder of Lance's own, which lies inside another ref.

    Raises:
        InvariantViolation: it is not one (L2).
    """
    is_inside = not _OF_LANCE.isdisjoint(ref.split("/")[1:])
    if _REF.fullmatch(ref) is None or ".." in ref or is_inside or len(ref) > _REF_BYTES_MAX:
        raise InvariantViolation(f"{where} names {ref[:120]!r}, which is not a ref: it leads elsewhere")
    return ref


def check_relative_path(path: str, where: str) -> str:
    """Return a path below the graph root.

    Raises:
        InvariantViolation: it is absolute, leads upwards, or has an empty part or a NUL (L2).
    """
    is_plain = "\0" not in path and "\\" not in path and "://" not in path
    if not is_plain or any(part in {"", ".", ".."} for part in path.split("/")):
        raise InvariantViolation(f"{where} names {path[:120]!r}, which is not a path inside the graph")
    return path


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the number and value of each field of a message, in the order they are written.

    Raises:
        ValueError: these are not the bytes of a whole message.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        match key & 7:
            case 0:
                value, at = _varint(message, at)
                yield key >> 3, value
            case 2:
                length, at = _varint(message, at)
                if at + length > len(message):
                    raise ValueError("the message is cut off")
                yield key >> 3, message[at : at + length]
                at += length
            case 1:  # fixed width; none of the fields that are read here
                at += 8
            case 5:
                at += 4
            case other:
                raise ValueError(f"wire type {other}")


def submessage(outer: memoryview, number: int) -> memoryview:
    """Return a message that is a field of another one, as it was written last.

    Raises:
        LookupError: there is no such field.
        ValueError: the field is a number, or the outer message is cut off.
    """
    inner = dict(fields(outer))[number]
    if not isinstance(inner, memoryview):
        raise ValueError("a number where a message was expected")
    return inner


def text(value: int | memoryview) -> str:
    """Return a value that is a text.

    Raises:
        ValueError: it is a number, or not UTF-8.
    """
    if not isinstance(value, memoryview):
        raise ValueError("a number where a text was expected")
    return bytes(value).decode()


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("the message is cut off")


def encode(values: Iterable[tuple[int, int | bytes | memoryview]]) -> bytes:
    """Return a message of numbered values, in the order they are given."""
    out = bytearray()
    for number, value in values:
        if isinstance(value, int):
            out += _encoded(number << 3) + _encoded(value)
        else:
            out += _encoded(number << 3 | 2) + _encoded(len(value)) + value
    return bytes(out)


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class HollowContent(Exception):
    """A file that was never written to its end, or not at all."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A data, deletion or index file of a version; `size` is `None` where the version does not record it."""

    path: str
    size: int | None


@dataclass(frozen=True, slots=True)
class VersionFile:
    """One decoded version: its number, and the files inside the dataset's own folder that it names.

    `shared` are the files that a fork shares with its source, by their paths relative to its own folder.
    `transaction_file` names the copy of the transaction that made the version; the file itself holds it too.
    """

    version: int
    files: tuple[NamedFile, ...]
    shared: tuple[NamedFile, ...] = ()
    transaction_file: str | None = None


def version_file_name(version: int) -> str:
    """Return the path of a version's file inside its dataset."""
    return f"{VERSIONS_DIR}/{2**64 - 1 - version:020}.manifest"


def version_of_file_name(name: str) -> int | None:
    """Return the version that a file in `_versions` holds; none for hints, temporary and detached ones."""
    stem, _, suffix = name.partition(".")
    if suffix != "manifest" or len(stem) != 20 or not stem.isdecimal():
        return None
    return 2**64 - 1 - int(stem)


def decode_version(data: bytes, *, fragments_max: int | None = None) -> VersionFile:
    """Read a version file; with `fragments_max` only the newest fragments are looked into.

    Raises:
        HollowContent: these are not the bytes of a whole version file.
    """
    try:
        return _decode(memoryview(data), fragments_max)
    except (LookupError, ArithmeticError, struct.error, ValueError, TypeError) as error:
        raise HollowContent("does not decode") from error


def refuse_special(path: Path) -> None:
    """Make sure that opening a file would not wait for the other end of a pipe, or read a device.

    Raises:
        HollowContent: it is one.
        OSError: it cannot be looked at.
    """
    kind = special_kind(path.stat())
    if kind is not None:
        raise HollowContent(f"is {kind}")


def check_file(folder: Path, file: NamedFile) -> None:
    """Make sure that a named file was written to its end.

    Raises:
        HollowContent: it is missing, shorter than recorded, or without its closing magic.
        OSError: it cannot be read, which says nothing about its content.
    """
    try:
        path = folder / file.path
        refuse_special(path)
        with path.open("rb") as opened:
            size = opened.seek(0, 2)
            if file.size is not None and size != file.size:
                raise HollowContent(f"has {size} of {file.size} bytes")
            if file.path.endswith(".bin"):
                opened.seek(0)
                is_whole = _is_whole_bitmap(opened.read())
            else:
                magic = ARROW_MAGIC if file.path.endswith(".arrow") else MAGIC
                opened.seek(max(0, size - len(magic)))
                is_whole = opened.read() == magic
    except FileNotFoundError:
        raise HollowContent("is missing") from None
    if not is_whole:
        raise HollowContent("was not written to its end")


def manifest_message(data: memoryview) -> memoryview:
    """Return the message that a version file holds after its sections.

    Raises:
        HollowContent: these are not the bytes of a whole version file.
        ValueError, struct.error: likewise.
    """
    if len(data) < FOOTER.size:
        raise HollowContent(f"has {len(data)} bytes")
    end = len(data) - FOOTER.size
    position, _, _, magic = FOOTER.unpack(data[end:])
    if magic != MAGIC:
        raise HollowContent("does not end in its magic")
    manifest = _sized(data, position)
    if position + LENGTH.size + len(manifest) != end:
        raise HollowContent("does not decode")
    return manifest


def renumbered(data: bytes, version: int, ref: str | None = None) -> bytes:
    """Return a version file of a dataset with another number and the same content, as one of a ref of it.

    Raises:
        HollowContent: these are not the bytes of a whole version file, or have parts that are not read here.
    """
    message = manifest_message(memoryview(data))
    if encode(fields(message)) != message:
        raise HollowContent("has parts that this build does not read")
    kept = [(number, value) for number, value in fields(message) if number not in {_VERSION, _REF_NAME}]
    named = [] if ref is None else [(_REF_NAME, ref.encode())]
    changed = encode(sorted([*kept, (_VERSION, version), *named], key=itemgetter(0)))
    position, *formats, magic = FOOTER.unpack(data[-FOOTER.size :])
    return data[:position] + LENGTH.pack(len(changed)) + changed + FOOTER.pack(position, *formats, magic)


def transaction_message(data: memoryview) -> memoryview | None:
    """Return the transaction that made a version, from its file; `None` if the file does not hold it.

    Raises:
        HollowContent: these are not the bytes of a whole version file.
        ValueError, struct.error: likewise.
    """
    place = dict(fields(manifest_message(data))).get(_INLINE_TRANSACTION)
    return _sized(data, place) if isinstance(place, int) else None


def _decode(data: memoryview, fragments_max: int | None) -> VersionFile:
    manifest = manifest_message(data)
    version, files, fragments, places = 0, list[_Named](), list[memoryview](), dict[int, str]()
    transaction = None
    for number, value in fields(manifest):
        match number, value:
            case 2, memoryview():
                fragments.append(value)
            case 3, int():
                version = value
            case 6, int():
                files += _index_files(_sized(data, value))
            case 12, memoryview():
                transaction = f"{TRANSACTIONS_DIR}/{text(value)}"
            case 18, memoryview():
                places.update(_base(value))
            case _:
                pass
    skipped = 0 if fragments_max is None else max(0, len(fragments) - fragments_max)
    files = [file for fragment in fragments[skipped:] for file in _fragment_files(fragment)] + files
    own = tuple(file.named for file in files if file.base is None)
    shared = tuple(
        NamedFile(f"{places[file.base]}/{file.named.path}", file.named.size)
        for file in files
        if file.base is not None
    )
    return VersionFile(version, own, shared, transaction)


@dataclass(frozen=True, slots=True)
class _Named:
    """A file, and the number of its base if that is another dataset."""

    named: NamedFile
    base: int | None


def _base(base: memoryview) -> Iterator[tuple[int, str]]:
    """Yield the number of a base and the path to it from a fork: another fork, or the dataset itself."""
    values = dict(fields(base))
    number, name = values.get(1, 0), values.get(2)
    if not isinstance(number, int):
        raise TypeError("not a number")
    yield number, "../.." if name is None else f"../{text(name)}"


def _base_of(value: int | memoryview | None) -> int | None:
    if isinstance(value, memoryview):
        raise TypeError("not a number")
    return value


def _fragment_files(fragment: memoryview) -> Iterator[_Named]:
    fragment_id = 0
    deletion: memoryview | None = None
    for number, value in fields(fragment):
        match number, value:
            case 1, int():
                fragment_id = value
            case 2, memoryview():
                yield from _data_file(value)
            case 3, memoryview():
                deletion = value
            case 11, memoryview():  # an overlay, whose values are a data file of their own
                yield from _data_file(submessage(value, 1))
            case _:
                pass
    if deletion is not None:
        yield from _deletion_file(deletion, fragment_id)


def _data_file(data_file: memoryview) -> Iterator[_Named]:
    values = dict(fields(data_file))
    size = values.get(6)
    named = NamedFile(f"data/{text(values[1])}", size if isinstance(size, int) and size else None)
    yield _Named(named, _base_of(values.get(7)))


def _deletion_file(deletion: memoryview, fragment_id: int) -> Iterator[_Named]:
    values = dict(fields(deletion))
    suffix = "bin" if values.get(1) == 1 else "arrow"
    name = f"_deletions/{fragment_id}-{values.get(2, 0)}-{values.get(3, 0)}.{suffix}"
    yield _Named(NamedFile(name, None), _base_of(values.get(7)))


def _index_files(section: memoryview) -> Iterator[_Named]:
    for number, index in fields(section):
        if number != 1 or not isinstance(index, memoryview):
            continue
        values = list(fields(index))
        base = next((_base_of(value) for part, value in values if part == 9), None)
        folder = uuid.UUID(bytes=bytes(submessage(submessage(index, 1), 1)))
        for part, file in values:
            if part == 10 and isinstance(file, memoryview):
                entry = dict(fields(file))
                size = entry.get(2)
                name = f"_indices/{folder}/{text(entry[1])}"
                yield _Named(NamedFile(name, size if isinstance(size, int) else None), base)


def _is_whole_bitmap(data: bytes) -> bool:
    """Read a bitmap to its end: the format has no closing magic."""
    try:
        return len(bitmap_values(data)) > 0
    except ValueError:
        return False


def _sized(data: memoryview, position: int) -> memoryview:
    (length,) = LENGTH.unpack_from(data, position)
    message = data[position + LENGTH.size : position + LENGTH.size + length]
    if len(message) != length:
        raise ValueError("the message is cut off")
    return message
