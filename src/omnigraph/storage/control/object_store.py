"""Control files: what the engine asks of a store, and how S3-compatible ones, Azure and Google do it.

O1  Creating and replacing under a condition is decided by the store in one request.
O2  *Missing* is said only when the store says so of this object; every other failure is raised with its
    kind. In a bucket that does not exist, no object is called missing.
O3  An object above the limit of control files is refused before its content is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast

from omnigraph.core.errors import StorageError
from omnigraph.core.limits import CONTROL_BYTES_MAX
from omnigraph.core.together import each
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.s3_errors import is_missing_bucket, read_answer
from omnigraph.storage.control.uri import GraphRoot, name_parts

if TYPE_CHECKING:
    from obstore._put import UpdateVersion
    from obstore.store import (
        AzureConfig,
        AzureStore,
        ClientConfig,
        GCSConfig,
        GCSStore,
        MemoryStore,
        RetryConfig,
        S3Config,
        S3Store,
    )

    Store: TypeAlias = S3Store | AzureStore | GCSStore | MemoryStore

RETRIES_MAX = 4  # of one request, by the client library, with growing pauses
RETRY_TIMEOUT_S = 30  # a store that does not answer for this long is reported, not waited for


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
    """The storage adapter of graphs in a store."""

    def __init__(self, root: GraphRoot, store: "Store | None" = None) -> None:
        """Take a root in a store; tests pass a store in memory.

        Raises:
            StorageError: settings are missing from the environment.
        """
        self._scheme, self._bucket, self._prefix = root.scheme, root.bucket, root.prefix
        self._store = make_store(root.scheme, root.bucket, root.storage_options) if store is None else store
        # Google replaces by the number of a version, and does not look at tags there.
        self._condition: Literal["e_tag", "version"] = "version" if root.scheme == "gs" else "e_tag"

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
            token = answer.meta[self._condition]
            if answer.meta["size"] > CONTROL_BYTES_MAX:  # O3
                raise StorageError(
                    f"cannot read '{name}': it has more than {CONTROL_BYTES_MAX} bytes", kind="permanent"
                )
            data = bytes(answer.bytes())
        if token is None:
            raise StorageError(
                "the store does not tell versions apart: use another one", kind="configuration"
            )
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
                expected = cast("UpdateVersion", {self._condition: token})
                obstore.put(self._store, self._key(name), text.encode(), mode=expected)
            except (PreconditionError, FileNotFoundError) as error:
                _refuse_missing_bucket(error)
                return False
            return True

    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Return the bytes of an object from one position to another, or those that it has of them."""
        import obstore

        with self._translated("read", name):
            return bytes(obstore.get_range(self._store, self._key(name), start=start, end=end))

    def length(self, name: str) -> int:
        """Return how many bytes an object has; a missing one is an error of kind `not_found`."""
        import obstore

        with self._translated("look for", name):
            return int(obstore.head(self._store, self._key(name))["size"])

    def read_pieces(self, name: str, piece_bytes: int) -> Iterator[bytes]:
        """Yield the content of an object of any size; a missing one is an error of kind `not_found`."""
        import obstore

        with self._translated("read", name):
            answer = obstore.get(self._store, self._key(name))
            for piece in answer.stream(min_chunk_size=piece_bytes):
                yield bytes(piece)

    def write_pieces(
        self, name: str, content: bytes | Iterator[bytes], *, piece_bytes: int, pieces_at_once: int
    ) -> None:
        """Create or replace an object by bytes, or by what is yielded; an error of it leaves no object."""
        import obstore

        with self._translated("write", name):
            obstore.put(
                self._store,
                self._key(name),
                content,
                chunk_size=piece_bytes,
                max_concurrency=pieces_at_once,
            )

    @contextmanager
    def _translated(self, verb: str, name: str) -> Iterator[None]:
        from obstore import exceptions

        try:
            yield
        except (exceptions.BaseError, OSError) as error:
            text = str(error)
            if isinstance(error, FileNotFoundError) and not is_missing_bucket(text):
                raise StorageError(f"cannot {verb} '{name}': no such object", kind="not_found") from error
            answer = read_answer(text, self._scheme, self._bucket)
            kind = answer.kind or _kind(error)
            raise StorageError(f"cannot {verb} '{name}': {answer.says}", kind=kind) from error

    def _key(self, name: str) -> str:
        return "/".join([self._prefix, *name_parts(name)] if self._prefix else name_parts(name))


def list_sizes(root: GraphRoot) -> dict[str, int]:
    """Return the length of every object below an S3 root, by its path below it.

    Raises:
        StorageError: the store failed.
    """
    return {path: size for path, (size, _) in list_objects(root).items()}


def list_objects(root: GraphRoot, below: str = "") -> dict[str, tuple[int, datetime]]:
    """Return length and time of every object below a folder of a root in a store, by path below the root.

    Raises:
        StorageError: the store failed.
    """
    import obstore

    adapter = ObjectStore(root)
    start = len(root.prefix) + 1 if root.prefix else 0
    prefix = f"{adapter._key(below)}/" if below else root.prefix
    with adapter._translated("list", below or root.prefix or root.bucket):
        batches = obstore.list(adapter._store, prefix=prefix or None)
        return {
            entry["path"][start:]: (entry["size"], entry["last_modified"])
            for batch in batches
            for entry in batch
        }


def remove_objects(root: GraphRoot, names: Sequence[str]) -> None:
    """Remove objects below a root in a store, as many in one request as the store takes.

    Raises:
        StorageError: the store failed; some may be gone.
    """
    import obstore

    adapter = ObjectStore(root)
    with adapter._translated("delete", names[0] if names else ""):
        obstore.delete(adapter._store, [adapter._key(name) for name in names])


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


def make_store(scheme: str, bucket: str, options: Mapping[str, str]) -> "S3Store | AzureStore | GCSStore":
    """Return the client of a store for the options that Lance takes as well.

    Raises:
        StorageError: the options contradict each other.
    """
    from obstore.exceptions import BaseError
    from obstore.store import AzureStore, GCSStore, S3Store

    retries: RetryConfig = {
        "max_retries": RETRIES_MAX,
        "retry_timeout": timedelta(seconds=RETRY_TIMEOUT_S),
    }
    client: ClientConfig = {"allow_http": options.get("allow_http") == "true"}
    config = {name: value for name, value in options.items() if name != "allow_http"}
    try:
        match scheme:
            case "az":
                azure = cast("AzureConfig", config)
                return AzureStore(bucket, config=azure, client_options=client, retry_config=retries)
            case "gs":
                google = cast("GCSConfig", config)
                return GCSStore(bucket, config=google, client_options=client, retry_config=retries)
            case _:
                if "aws_endpoint" in config:  # the name that goes before what the environment says
                    config["aws_endpoint_url_s3"] = config.pop("aws_endpoint")
                amazon = cast("S3Config", config)
                return S3Store(bucket, config=amazon, client_options=client, retry_config=retries)
    except BaseError as error:
        says = read_answer(str(error), scheme, bucket).says
        raise StorageError(f"cannot use {scheme}://{bucket}: {says}", kind="configuration") from error


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
