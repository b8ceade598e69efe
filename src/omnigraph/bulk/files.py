"""The files of users, which a load reads and an export writes: on a disk, or in an S3-compatible store.

I1  An address `s3://bucket/key` is an object; every other name is a path. What looks like another address is
    refused: a folder of that name on the disk is not what was meant.
I2  A store's settings come from the environment of the process that opens the file, as for graphs: a
    description of a file holds no secret.
I3  A file that is written appears under its name when it is complete and durable, and not at all otherwise.
"""

import errno
import logging
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import pyarrow as pa

from omnigraph.core.errors import BadRequest
from omnigraph.core.regular_file import (
    GRAPH_MARK,
    NO_NAME,
    refuse_inside_graph,
    require_regular,
    require_replaceable,
)
from omnigraph.core.values import named, shown
from omnigraph.storage.control.durability import sync_path
from omnigraph.storage.control.uri import GraphRoot

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, S3FileSystem

SCHEME = "s3://"
_log = logging.getLogger("omnigraph")
_MAGIC = "*?["
_ADDRESS = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]+://|(?i:s3|gs|az|file|https?):/"
)  # a `Path` has one slash less
# What the client library says, and what to do about it.
_REFUSALS = {
    "ACCESS_DENIED": "access was refused: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they allow",
    "NO_SUCH_BUCKET": "the bucket does not exist: create it, or correct the address",
    "NETWORK_CONNECTION": "the store does not answer: check AWS_ENDPOINT_URL_S3",
}


def is_object(name: str) -> bool:
    """Return whether a name is the address of an object (I1)."""
    return name.startswith(SCHEME)


def refuse_other_stores(name: str) -> None:
    """Refuse the address of a store whose files are neither read nor written (I1).

    Raises:
        BadRequest: it is one.
    """
    if _ADDRESS.match(name) and not is_object(name):
        raise BadRequest(f"cannot use {name}: data files are paths, or s3://bucket/key")


def file_size(name: str) -> int:
    """Return the bytes of a file.

    Raises:
        OSError: it is not there, or is not a plain file; `strerror` says what is wrong.
    """
    if not is_object(name):
        return require_regular(name)
    info = _info(name)
    if not info.is_file:
        raise FileNotFoundError(errno.ENOENT, "no such object", name)
    return int(info.size or 0)


def open_input(name: str) -> pa.NativeFile:
    """Open a file for reading anywhere in it.

    Raises:
        OSError: it cannot be opened.
    """
    if not is_object(name):
        require_regular(name)
        return pa.OSFile(os.fsencode(name), "rb")  # type: ignore[arg-type] # a name need not be UTF-8
    with _translated(name):
        return _store(name).open_input_file(_key(name))


def open_output(name: str) -> pa.NativeFile:
    """Open a file for writing that nothing refers to before it is closed; its folder is made.

    Raises:
        OSError: it cannot be opened.
    """
    if is_object(name):
        with _translated(name):
            return _object_stream(name)
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    return pa.OSFile(name, "wb")


def remove_folder(name: str) -> None:
    """Remove a folder of files that are no longer needed; what cannot be removed is left, with a warning."""
    try:
        if is_object(name):
            with _translated(name):
                _store(name).delete_dir(_key(name))
        else:
            shutil.rmtree(name)
    except FileNotFoundError:
        return  # nothing was written
    except OSError as error:
        _log.warning("%s was left behind: %s", name, error.strerror or error)


def file_exists(name: str) -> bool:
    """Return whether there is a file of this name.

    Raises:
        OSError: that cannot be determined.
    """
    return _info(name).is_file if is_object(name) else Path(name).is_file()


def is_folder(name: str) -> bool:
    """Return whether a name is a folder, or a prefix with objects below it.

    Raises:
        OSError: that cannot be determined.
    """
    if not is_object(name):
        return Path(name).is_dir()
    from pyarrow.fs import FileType

    return _info(name).type == FileType.Directory


def objects_below(prefix: str) -> list[str]:
    """Return the addresses of all objects below a prefix, sorted.

    Raises:
        OSError: they cannot be listed.
    """
    from pyarrow.fs import FileSelector

    with _translated(prefix):
        selector = FileSelector(_key(prefix), allow_not_found=True, recursive=True)
        found = _store(prefix).get_file_info(selector)
    return sorted(SCHEME + info.path for info in found if info.is_file)


def objects_like(pattern: str) -> list[str]:
    """Return the addresses that a pattern matches, as for paths: `*`, `?`, `[...]`, and `**`.

    Raises:
        OSError: they cannot be listed.
    """
    parts = pattern.split("/")
    fixed = next(place for place, part in enumerate(parts) if any(sign in part for sign in _MAGIC))
    return [name for name in objects_below("/".join(parts[:fixed])) if _matches(name.split("/"), parts)]


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name when the block succeeds, and not at all otherwise (I3).

    Raises:
        BadRequest: it cannot be written, what is there is not a plain file, or this is no path of one.
    """
    name = name_of_file(path)
    refuse_other_stores(name)
    try:
        if is_object(name):
            require_outside_graphs(name)
        else:
            require_replaceable(name)
        with _whole_object(name) if is_object(name) else _whole_path(Path(name)) as file:
            yield file
    except OSError as error:
        raise BadRequest(f"cannot write {name}: {error.strerror or error}") from error


def name_of_file(path: object) -> str:
    """Return the path or address of a file that is to be written.

    Raises:
        BadRequest: no file can be there: it is something else, or none has such a name.
    """
    if not isinstance(path, str | Path):
        raise BadRequest(f"the path of a file must be a text or a path, not {named(path)}")
    name = str(path)
    if not Path(name).name:
        raise BadRequest(f"cannot write {shown(name)}: it is no path of a file")
    try:
        can_be = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        can_be = False
    if not can_be:
        raise BadRequest(f"cannot write {shown(name)}: {NO_NAME}")
    return name


def require_outside_graphs(name: str) -> None:
    """Make sure that what is written to a place is not part of a graph.

    Raises:
        OSError: it is inside one; `strerror` names it.
    """
    if not is_object(name):
        refuse_inside_graph(name)
        return
    parts = _key(name).split("/")
    for count in range(1, len(parts) + 1):
        folder = SCHEME + "/".join(parts[:count])
        if is_folder(f"{folder}/{GRAPH_MARK}"):
            raise OSError(errno.EINVAL, f"it lies inside the graph {folder}: choose a place elsewhere")


@contextmanager
def _whole_path(path: Path) -> Iterator[IO[bytes]]:
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_path(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _whole_object(name: str) -> Iterator[IO[bytes]]:
    """Write to a file of this process first: closing the stream of an object makes it, complete or not."""
    with tempfile.TemporaryFile(prefix="omnigraph-") as file:
        yield cast("IO[bytes]", file)
        file.seek(0)
        with _translated(name), _object_stream(name) as stream:
            shutil.copyfileobj(file, stream, 8 * 1024 * 1024)


def _object_stream(name: str) -> pa.NativeFile:
    # By default the library compresses a file whose suffix says so.
    return _store(name).open_output_stream(_key(name), compression=None)


def _matches(name: list[str], pattern: list[str]) -> bool:
    if not pattern or not name:
        return not pattern and not name
    if pattern[0] == "**":
        is_hidden = name[0].startswith(".")
        return _matches(name, pattern[1:]) or (not is_hidden and _matches(name[1:], pattern))
    if name[0].startswith(".") and not pattern[0].startswith("."):
        return False
    return fnmatchcase(name[0], pattern[0]) and _matches(name[1:], pattern[1:])


def _info(name: str) -> "FileInfo":
    with _translated(name):
        return _store(name).get_file_info(_key(name))


def _key(name: str) -> str:
    return name.removeprefix(SCHEME).strip("/")


def _store(name: str) -> "S3FileSystem":
    """Return the store of an address, from the settings of this process (I2).

    Raises:
        StorageError: settings are missing; the message names them.
        BadRequest: the address has no bucket.
    """
    from pyarrow.fs import S3FileSystem

    bucket = _key(name).partition("/")[0]
    options = GraphRoot.parse(SCHEME + bucket).storage_options
    scheme, _, host = options.get("aws_endpoint", "").partition("://")
    is_virtual = "aws_virtual_hosted_style_request" in options
    return S3FileSystem(
        access_key=options.get("aws_access_key_id"),
        secret_key=options.get("aws_secret_access_key"),
        session_token=options.get("aws_session_token"),
        region=options.get("aws_region"),
        scheme="http" if scheme == "http" else "https",
        endpoint_override=(host.removeprefix(f"{bucket}.") if is_virtual else host) or None,
        force_virtual_addressing=is_virtual,
    )


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """Give the client library's errors a text for people; it never contains the endpoint."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise FileNotFoundError(errno.ENOENT, "no such object", name) from error
        text = error.strerror or str(error)
        known = [says for code, says in _REFUSALS.items() if code in text]
        raise OSError(error.errno or errno.EIO, known[0] if known else text.partition("\n")[0]) from error
