"""A new newest version of a dataset with the content of an older one, made past damaged ones, on a disk.

The library's own restore reads the newest version first, which may be the one that is damaged. What is made
here is what it would have made: the old version's message under the next number, with a transaction that says
`restore`.

R1  No number is used twice: versions, fragments and row ids go on above all that was ever there, so that
    no reader of what is given up can mistake the new for it. A wide gap is left for what cannot be read.
R2  The version appears whole, under a name that is still free, or not at all.
"""

import json
import os
import struct
import uuid
from collections.abc import Mapping
from pathlib import Path

from omnigraph.core.errors import StorageError
from omnigraph.core.regular_file import write_new
from omnigraph.storage.control.durability import sync_path
from omnigraph.storage.damage.quarantine import translated
from omnigraph.storage.files.version_file import (
    FOOTER,
    LENGTH,
    MAGIC,
    HollowContent,
    encode,
    fields,
    manifest_message,
    version_file_name,
)
from omnigraph.storage.versions.newest import HINT

_VERSION, _INDEX_SECTION, _FRAGMENT_ID, _TRANSACTION, _ROW_ID, _INLINE_TRANSACTION = 3, 6, 11, 12, 14, 23
_READ_VERSION, _UUID, _RESTORE = 1, 2, 106  # of a transaction
_FRAGMENTS_UNSEEN = 100_000  # left for each version that cannot be read; fragment ids have 32 bits
_ROWS_UNSEEN = 1 << 22  # likewise, and not more: adjacency has a bit for every row id up to the greatest


def write_restored(folder: Path, version: int, newest: int) -> int:
    """Make a version with the content of an older one, above the newest there ever was; return its number.

    Raises:
        StorageError: the system failed, or the number was taken; nothing was made.
    """
    made = newest + 1
    transaction_id = str(uuid.uuid4())
    name = f"{newest}-{transaction_id}.txn"
    restore = encode([(1, version)])
    transaction = encode([(_READ_VERSION, newest), (_UUID, transaction_id.encode()), (_RESTORE, restore)])
    with translated(f"make version {made} of '{folder.name}'"):
        old = memoryview((folder / version_file_name(version)).read_bytes())
        fragment_id, row_id = _used(folder, version, newest)
        changed: dict[int, int | bytes] = {
            _VERSION: made,
            _FRAGMENT_ID: fragment_id,
            _TRANSACTION: name.encode(),
            _ROW_ID: row_id,
        }
        content = _content(old, transaction, changed)
        copy = folder / "_transactions" / name
        copy.parent.mkdir(exist_ok=True)
        write_new(copy, transaction)
        sync_path(copy)
        sync_path(copy.parent)
        _put(folder / version_file_name(made), content)
        # The library begins where its hint says, and would stop at a version that is damaged or gone.
        _replace(folder / HINT, json.dumps({"version": made}).encode())
    return made


def _content(old: memoryview, transaction: bytes, changed: Mapping[int, int | bytes]) -> bytes:
    """Return a version file: its transaction, the index section of the old one, and the message changed."""
    message = manifest_message(old)
    if encode(fields(message)) != message:
        raise StorageError("the version has parts that this build does not read", kind="permanent")
    head = LENGTH.pack(len(transaction)) + transaction
    index = dict(fields(message)).get(_INDEX_SECTION)
    section = bytes(old[index : index + _size(old, index)]) if isinstance(index, int) else b""
    values = {**changed, _INLINE_TRANSACTION: 0} | ({_INDEX_SECTION: len(head)} if section else {})
    kept = [(number, value) for number, value in fields(message) if number not in values]
    manifest = encode([*kept, *values.items()])
    formats = FOOTER.unpack(old[len(old) - FOOTER.size :])[1:3]
    footer = FOOTER.pack(len(head) + len(section), *formats, MAGIC)
    return head + section + LENGTH.pack(len(manifest)) + manifest + footer


def _used(folder: Path, version: int, newest: int) -> tuple[int, int]:
    """Return the greatest fragment id and the next row id that nothing has used (R1)."""
    fragment_id = row_id = 0
    for number in range(version, newest + 1):
        try:
            data = memoryview((folder / version_file_name(number)).read_bytes())
            values = dict(fields(manifest_message(data)))
        except (FileNotFoundError, HollowContent, LookupError, ValueError, struct.error):
            fragment_id, row_id = fragment_id + _FRAGMENTS_UNSEEN, row_id + _ROWS_UNSEEN
            continue
        fragment_id = max(fragment_id, _number(values, _FRAGMENT_ID))
        row_id = max(row_id, _number(values, _ROW_ID))
    return fragment_id, row_id


def _number(values: dict[int, int | memoryview], field: int) -> int:
    value = values.get(field, 0)
    return value if isinstance(value, int) else 0


def _size(data: memoryview, position: int) -> int:
    (length,) = LENGTH.unpack_from(data, position)
    return LENGTH.size + int(length)


def _replace(path: Path, content: bytes) -> None:
    temporary = _written(path, content)
    temporary.replace(path)
    sync_path(path.parent)


def _written(path: Path, content: bytes) -> Path:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    write_new(temporary, content)
    sync_path(temporary)
    return temporary


def _put(path: Path, content: bytes) -> None:
    """Write a version file that is not there yet (R2)."""
    temporary = _written(path, content)
    try:
        os.link(temporary, path)
    except FileExistsError as error:
        raise StorageError(f"'{path.parent.parent.name}' moved in the meantime", kind="transient") from error
    finally:
        temporary.unlink(missing_ok=True)
    sync_path(path.parent)
