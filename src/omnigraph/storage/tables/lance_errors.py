"""What the library's errors mean: the only place that reads their texts.

Lance raises one typed error, and only from one call; everything else is a builtin exception with a text that
ends in a location in its source. The texts are pinned by `tests/engine/storage/test_guard_error_texts.py`.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from lance.commit import CommitConflictError

from omnigraph.core.errors import OmnigraphError, StorageError
from omnigraph.storage.control.os_errors import kind_of
from omnigraph.storage.control.s3_errors import read_answer

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

_KINDS: tuple[tuple[str, str], ...] = (
    ("Generic S3 error", "transient"),
    ("timed out", "transient"),
    ("Connection", "transient"),
    ("Unable to parse", "configuration"),
    ("sufficient data", "permanent"),
    ("Invalid user input", "permanent"),
    ("LanceError(", "permanent"),
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
    """Return the storage error to raise from a library error; `what` says what was being done."""
    text = str(error)
    if _ANSWER in text:
        answer = read_answer(text)
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
