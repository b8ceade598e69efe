"""Control files: what the engine asks of a store, how an S3-compatible one does it, and whether it does.

O1  Creating and replacing under a condition is decided by the store in one request.
O2  *Missing* is said only when the store says so of this object; every other failure is raised with its
    kind. In a bucket that does not exist, no object is called missing.

A store is probed before anything is written to it: some S3-compatible servers accept a condition and ignore
it; some network file systems do so with locks.
"""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from omnigraph.core.errors import BadRequest, StorageError
from omnigraph.core.ids import new_ulid
from omnigraph.core.together import each
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.locks import probe_flock
from omnigraph.storage.control.s3_errors import is_missing_bucket, read_answer
from omnigraph.storage.control.uri import GraphRoot, name_parts

if TYPE_CHECKING:
    from obstore.store import MemoryStore, RetryConfig, S3Config, S3Store

RETRIES_MAX = 4  # of one request, by the client library, with growing pauses
RETRY_TIMEOUT_S = 30  # a store that does not answer for this long is reported, not waited for

_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}


class StorageAdapter(Protocol):
    """Texts under names relative to the graph root; the same promises on a disk and in an object store.

    Every method may raise `StorageError`, and `BadRequest` for an invalid name.
    """

    def read_text(self, name: str) -> str:
        """Return a text; a missing one is an error of kind `not_found`."""

    def read_text_if_exists(self, name: str) -> str | None:
        """Return a text, or `None` only where the store says that it does not exist."""

    def read_texts(self, names: Sequence[str]) -> dict[str, str | None]:
        """Return several texts by name, asked for together; `None` as `read_text_if_exists` does."""

    def write_text(self, name: str, text: str) -> None:
        """Replace or create; a reader sees the old or the new text, never a part."""

    def write_text_if_absent(self, name: str, text: str) -> bool:
        """Create; false if it existed, and it is then untouched."""

    def exists(self, name: str) -> bool:
        """Say whether there is such an object, or any object below this prefix."""

    def rename_text(self, source: str, target: str) -> None:
        """Replace the target by the source; where this is not atomic, both may exist for a while."""

    def delete(self, name: str) -> None:
        """Remove for good; success when absent."""

    def discard(self, name: str) -> None:
        """Remove what does no harm if a power cut brings it back; cheaper than `delete` on a disk."""

    def list_dir(self, name: str) -> list[str]:
        """Return the base names of the objects right below a prefix, unordered; none when it is missing."""

    def list_lengths(self, name: str) -> dict[str, int]:
        """Return the objects right below a prefix by their base names, each with its length in bytes."""

    def delete_prefix(self, name: str) -> None:
        """Remove everything below a prefix; not atomic, and safe to repeat."""

    def read_text_versioned(self, name: str) -> tuple[str, str] | None:
        """Return a text with the token of this version of it, or `None`."""

    def write_text_if_match(self, name: str, text: str, token: str) -> bool:
        """Replace the version that the token stands for; false if it has been replaced since, or is gone."""


def open_adapter(root: GraphRoot, durability: Durability) -> StorageAdapter:
    """Return the adapter for a graph's place; nothing is read or written.

    Raises:
        StorageError: settings of an object store are missing.
    """
    if not root.is_local:
        return ObjectStore(root)
    from omnigraph.storage.control.local_files import LocalFiles

    return LocalFiles(Path(root.uri), durability)


class ObjectStore:
    """The storage adapter of graphs in an S3-compatible store."""

    def __init__(self, root: GraphRoot, store: "S3Store | MemoryStore | None" = None) -> None:
        """Take an S3 root; tests pass a store in memory.

        Raises:
            StorageError: settings are missing from the environment.
        """
        self._bucket, self._prefix = root.bucket, root.prefix
        self._store = _s3_store(root) if store is None else store

    def read_text(self, name: str) -> str:
        """Return a text; a missing one is an error of kind `not_found`."""
        found = self.read_text_versioned(name)
        if found is None:
            raise StorageError(f"cannot read '{name}': no such object", kind="not_found")
        return found[0]

    def read_text_if_exists(self, name: str) -> str | None:
        """Return a text, or `None` where the store says that it does not exist (O2)."""
        found = self.read_text_versioned(name)
        return None if found is None else found[0]

    def read_texts(self, names: Sequence[str]) -> dict[str, str | None]:
        """Return several texts in the time of one; `None` where the store says that one does not exist."""
        return dict(zip(names, each(self.read_text_if_exists, names, at_once=True), strict=True))

    def write_text(self, name: str, text: str) -> None:
        """Replace or create."""
        import obstore

        with self._translated("write", name):
            obstore.put(self._store, self._key(name), text.encode())

    def write_text_if_absent(self, name: str, text: str) -> bool:
        """Create; false where it existed (O1).

        False may also be the answer to a request that the client library repeated because the first answer
        was lost: a caller that must know reads the text.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError

        with self._translated("create", name):
            try:
                obstore.put(self._store, self._key(name), text.encode(), mode="create")
            except AlreadyExistsError:
                return False
            return True

    def exists(self, name: str) -> bool:
        """Say whether there is such an object, or any object below this prefix."""
        if self.has(name):
            return True
        import obstore

        with self._translated("look for", name):
            listed = obstore.list(self._store, prefix=self._key(name), chunk_size=1)
            return any(len(batch) > 0 for batch in listed)

    def has(self, name: str) -> bool:
        """Say whether there is such an object, in one request; prefixes do not count."""
        import obstore

        with self._translated("look for", name):
            try:
                obstore.head(self._store, self._key(name))
            except FileNotFoundError as error:
                _refuse_missing_bucket(error)
                return False
            return True

    def rename_text(self, source: str, target: str) -> None:
        """Copy, then delete the source: a process that finds both finishes the job."""
        import obstore

        with self._translated("rename", source):
            obstore.rename(self._store, self._key(source), self._key(target), overwrite=True)

    def delete(self, name: str) -> None:
        """Remove; success when absent."""
        import obstore

        with self._translated("delete", name):
            try:
                obstore.delete(self._store, self._key(name))
            except FileNotFoundError as error:
                _refuse_missing_bucket(error)

    def discard(self, name: str) -> None:
        """Remove, as `delete` does: a store has nothing to sync."""
        self.delete(name)

    def list_dir(self, name: str) -> list[str]:
        """Return the base names of the objects right below a prefix, unordered."""
        return list(self.list_lengths(name))

    def list_lengths(self, name: str) -> dict[str, int]:
        """Return the objects right below a prefix by their base names, each with its length in bytes."""
        import obstore

        with self._translated("list", name):
            listing = obstore.list_with_delimiter(self._store, prefix=self._key(name))
        return {entry["path"].rpartition("/")[2]: entry["size"] for entry in listing["objects"]}

    def delete_prefix(self, name: str) -> None:
        """Remove everything below a prefix."""
        import obstore

        with self._translated("delete", name):
            for batch in obstore.list(self._store, prefix=self._key(name)):
                obstore.delete(self._store, [entry["path"] for entry in batch])

    def read_text_versioned(self, name: str) -> tuple[str, str] | None:
        """Return a text with its entity tag, or `None` where the store says that it does not exist (O2)."""
        import obstore

        with self._translated("read", name):
            try:
                answer = obstore.get(self._store, self._key(name))
            except FileNotFoundError as error:
                _refuse_missing_bucket(error)
                return None
            token = answer.meta["e_tag"]
            data = bytes(answer.bytes())
        if token is None:
            raise StorageError("the store gives no entity tags: use another one", kind="configuration")
        try:
            return data.decode(), token
        except UnicodeDecodeError as error:
            raise StorageError(f"'{name}' is not UTF-8 text", kind="permanent") from error

    def write_text_if_match(self, name: str, text: str, token: str) -> bool:
        """Replace the version that the token stands for (O1); false where that is not the current one."""
        import obstore
        from obstore.exceptions import PreconditionError

        with self._translated("replace", name):
            try:
                obstore.put(self._store, self._key(name), text.encode(), mode={"e_tag": token})
            except (PreconditionError, FileNotFoundError) as error:
                _refuse_missing_bucket(error)
                return False
            return True

    @contextmanager
    def _translated(self, verb: str, name: str) -> Iterator[None]:
        from obstore import exceptions

        try:
            yield
        except (exceptions.BaseError, OSError) as error:
            text = str(error)
            if isinstance(error, FileNotFoundError) and not is_missing_bucket(text):
                raise StorageError(f"cannot {verb} '{name}': no such object", kind="not_found") from error
            answer = read_answer(text, self._bucket)
            kind = answer.kind or _kind(error)
            raise StorageError(f"cannot {verb} '{name}': {answer.says}", kind=kind) from error

    def _key(self, name: str) -> str:
        return "/".join([self._prefix, *name_parts(name)] if self._prefix else name_parts(name))


def list_sizes(root: GraphRoot) -> dict[str, int]:
    """Return the length of every object below an S3 root, by its path below it.

    Raises:
        StorageError: the store failed.
    """
    import obstore

    adapter = ObjectStore(root)
    start = len(root.prefix) + 1 if root.prefix else 0
    with adapter._translated("list", root.prefix or root.bucket):
        batches = obstore.list(adapter._store, prefix=root.prefix or None)
        return {entry["path"][start:]: entry["size"] for batch in batches for entry in batch}


def read_bytes(root: GraphRoot, name: str) -> bytes | None:
    """Return the content of an object below an S3 root; `None` where the store says that it does not exist.

    Raises:
        StorageError: the store failed.
    """
    import obstore

    adapter = ObjectStore(root)
    with adapter._translated("read", name):
        try:
            return bytes(obstore.get(adapter._store, adapter._key(name)).bytes())
        except FileNotFoundError as error:
            _refuse_missing_bucket(error)
            return None


def _s3_store(root: GraphRoot) -> "S3Store":
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    options = root.storage_options
    config: S3Config = {}
    if "aws_access_key_id" in options:
        config["access_key_id"] = options["aws_access_key_id"]
        config["secret_access_key"] = options["aws_secret_access_key"]
    if "aws_session_token" in options:
        config["session_token"] = options["aws_session_token"]
    if "aws_region" in options:
        config["region"] = options["aws_region"]
    if "aws_endpoint" in options:
        config["aws_endpoint_url_s3"] = options["aws_endpoint"]
    if "aws_virtual_hosted_style_request" in options:
        config["virtual_hosted_style_request"] = True
    retries: RetryConfig = {
        "max_retries": RETRIES_MAX,
        "retry_timeout": timedelta(seconds=RETRY_TIMEOUT_S),
    }
    try:
        return S3Store(
            root.bucket,
            config=config,
            client_options={"allow_http": "allow_http" in options},
            retry_config=retries,
        )
    except BaseError as error:
        text = str(error).partition("\n")[0]
        raise StorageError(f"cannot use {root.uri}: {text}", kind="configuration") from error


def _refuse_missing_bucket(error: Exception) -> None:
    """Raise the error again where it is not about the object (O2)."""
    if is_missing_bucket(str(error)):
        raise error


def _kind(error: Exception) -> str:
    from obstore import exceptions

    match error:
        case (
            exceptions.PermissionDeniedError()
            | exceptions.UnauthenticatedError()
            | exceptions.UnknownConfigurationKeyError()
            | exceptions.NotSupportedError()
            | NotImplementedError()
        ):
            return "configuration"
        case exceptions.PreconditionError() | exceptions.AlreadyExistsError():
            return "precondition"
        case exceptions.InvalidPathError():
            return "permanent"
        case exceptions.GenericError():
            return "transient"  # the server's or the network's, and already repeated by the library
        case _:
            return "unknown"


def probe_store(adapter: StorageAdapter, root: GraphRoot) -> None:
    """Try create-if-absent, and what locks the place has: `flock` on a disk, compare-and-swap in a store.

    The probe object is removed again; that of another process is left alone.

    Raises:
        StorageError: a promise does not hold (kind `configuration`), or the store failed.
    """
    name = f"__create_if_absent_probe_{new_ulid()}"
    refuse_file(root)
    try:
        token = _probe_create(adapter, root, name)
        if not root.is_local:
            _probe_swap(adapter, root, name, token)
    finally:
        adapter.discard(name)
    if root.is_local:
        probe_flock(Path(root.uri))


def refuse_file(root: GraphRoot) -> None:
    """Refuse a place on a disk that cannot be a folder.

    Raises:
        BadRequest: it is a file, or is below one.
    """
    if not root.is_local:
        return
    place = Path(root.uri)
    try:
        file = next((path for path in (place, *place.parents) if path.is_file()), None)
    except OSError:
        return  # the next step meets it too, and says what it is
    if file is not None:
        what = "is a file" if file == place else f"is below {file}, which is a file"
        raise BadRequest(f"{place} {what}: a graph is a folder")


def _probe_create(adapter: StorageAdapter, root: GraphRoot, name: str) -> str:
    """Create twice; return the token of what is there then."""
    try:
        is_made = adapter.write_text_if_absent(name, "first")
    except StorageError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in _NOT_ALLOWED:
            raise StorageError(
                f"{root.uri} cannot be written by this user ({cause.strerror}): choose a folder that can be, "
                f"or open the graph with mode 'ro' to read it",
                kind=error.kind,
            ) from error
        raise
    if not is_made:
        raise StorageError(
            f"{root.uri} refuses to create an object that does not exist", kind="configuration"
        )
    is_made_again = adapter.write_text_if_absent(name, "second")
    found = adapter.read_text_versioned(name)
    if is_made_again or found is None or found[0] != "first":
        raise StorageError(
            f"{root.uri} overwrites existing objects instead of refusing to create them", kind="configuration"
        )
    return found[1]


def _probe_swap(adapter: StorageAdapter, root: GraphRoot, name: str, token: str) -> None:
    if not adapter.write_text_if_match(name, "third", token):
        raise StorageError(f"{root.uri} refuses to replace an unchanged object", kind="configuration")
    if adapter.write_text_if_match(name, "fourth", token) or adapter.read_text(name) != "third":
        raise StorageError(f"{root.uri} replaces objects that have changed", kind="configuration")
