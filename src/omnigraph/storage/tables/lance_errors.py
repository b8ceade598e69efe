"""What the library's errors mean, and which of them come from a file that is gone or hollow.

Nothing else reads the texts of these errors.

Lance raises one typed error, and only from one call; everything else is a builtin exception with a text that
ends in a location in its source. The texts are pinned by `tests/engine/storage/test_guard_error_texts.py`.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from lance.commit import CommitConflictError

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import OmnigraphError, StorageError
from omnigraph.storage.control.os_errors import kind_of
from omnigraph.storage.control.s3_errors import read_answer, scheme_of
from omnigraph.storage.damage.lost_object import lost_object
from omnigraph.storage.damage.quarantine import VersionGone, version_damage
from omnigraph.storage.tables.handle import TableAddress, ref_path

ErrorClass = Literal["conflict", "incompatible", "key_exists", "exists", "not_found", "other"]

LANCE_ERRORS = (OSError, ValueError, RuntimeError, TypeError)  # everything the library raises on its own

_CLASSES: tuple[tuple[str, ErrorClass], ...] = (
    ("Too many concurrent writers", "conflict"),
    ("Retryable commit conflict", "conflict"),
    ("Commit conflict for version", "conflict"),
    ("Incompatible transaction", "incompatible"),
    ("Merge insert failed: found matching row", "key_exists"),
    ("Dataset already exists", "exists"),
    ("was not found", "not_found"),
    ("Ref not found", "not_found"),
    ("Not found:", "not_found"),
)

_OS_ERROR = re.compile(r"\(os error (\d+)\)")
_ANSWER = "status code: "  # of a server
_INTERRUPTED = "External error: KeyboardInterrupt"  # a signal that came while rows were handed over

_KINDS: tuple[tuple[str, str], ...] = (
    ("Generic S3 error", "transient"),
    ("timed out", "transient"),
    ("Connection", "transient"),
    ("Unable to parse", "configuration"),
    ("sufficient data", "permanent"),
    ("Invalid user input", "permanent"),
    ("LanceError(", "permanent"),
)

_REMEDY_IN_STORE = "put the object back from a copy of the graph"
_REMEDY = (
    "put the file back from a copy; or go back to a version of the branch that does not need it with "
    "'omnigraph repair --to VERSION', which first says what would be lost"
)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn library errors of a block into ours; `what` says what was being done."""
    try:
        yield
    except LANCE_ERRORS as error:
        raise translate(error, what) from error
    except BaseException as error:
        if not is_panic(error):
            raise
        raise StorageError(f"{what}: the library cannot make sense of the data", kind="permanent") from error


def is_panic(error: BaseException) -> bool:
    """Return whether the library gave up in the middle of something, as it does on some damaged files.

    The class is made at run time and cannot be imported; it is not an `Exception`.
    """
    return type(error).__name__ == "PanicException"


def classify(error: BaseException) -> ErrorClass:
    """Say what a library error means for the caller; `other` where we do not know it."""
    if isinstance(error, CommitConflictError):
        return "conflict" if error.retryable else "incompatible"
    text = str(error)
    return next((found for part, found in _CLASSES if part in text), "other")


def translate(error: BaseException, what: str) -> OmnigraphError:
    """Return the storage error to raise from a library error; `what` says what was being done.

    Raises:
        KeyboardInterrupt: the library was interrupted, and reports that as an error of its own.
    """
    text = str(error)
    if _INTERRUPTED in text:
        raise KeyboardInterrupt from error
    if _ANSWER in text:
        answer = read_answer(text, scheme_of(f"{what} {text}"))
        return StorageError(f"{what}: {answer.says}", kind=answer.kind or _kind(error, text))
    return StorageError(f"{what}: {_without_source_location(text)}", kind=_kind(error, text))


def _kind(error: BaseException, text: str) -> str:
    if classify(error) == "not_found":
        return "not_found"
    system = _OS_ERROR.search(text)
    if system is not None:
        return kind_of(int(system[1]))
    return next((found for part, found in _KINDS if part in text), "unknown")


def _without_source_location(text: str) -> str:
    """Cut the locations in the library's own source, which name its build machine."""
    return text.split(", /", 1)[0]


@contextmanager
def damage_told(address: TableAddress, version: int) -> Iterator[None]:
    """Name the file if a version of a table cannot be read because one of its files is gone or hollow.

    Raises:
        GraphDamaged: a file of the version is gone or hollow.
        StorageError: whatever the block raised, where the files do not explain it.
    """
    try:
        yield
    except StorageError as error:
        folder = address.local_path
        is_explained = isinstance(error, GraphDamaged) or error.kind in {"transient", "configuration"}
        if is_explained:
            raise
        found = None
        with suppress(StorageError):  # what cannot be read is not hollow: the first error says more
            found = lost_object(address, version) if folder is None else _damage(folder, version)
        if found is None:
            raise
        dataset = _dataset(address)
        raise GraphDamaged(
            file=f"{dataset}/{found[0]}",
            reason=found[1],
            dataset=dataset,
            versions=[version],
            remedy=_REMEDY_IN_STORE if folder is None else _REMEDY,
        ) from error


def _damage(folder: Path, version: int) -> tuple[str, str] | None:
    try:
        return version_damage(folder, version)
    except VersionGone:
        return None  # there is no such version, or it was cleaned up: the error says so


def _dataset(address: TableAddress) -> str:
    """Return the path of a table or fork inside its graph, which is two folders above every table."""
    folder, table = address.local_path, TableAddress(address.uri).local_path
    if folder is None or table is None:
        return ref_path("/".join(address.uri.rsplit("/", 2)[-2:]), address.ref)
    return str(folder.relative_to(table.parents[1]))
