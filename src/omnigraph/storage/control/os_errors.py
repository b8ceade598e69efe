"""What an operating system error means for the caller, whether we or the library met it."""

import errno

from omnigraph.core.errors import StorageError

_KINDS = {
    errno.ENOENT: "not_found",
    # The machine must be changed before it can work.
    errno.EACCES: "permanent",
    errno.EPERM: "permanent",
    errno.EROFS: "permanent",
    errno.ENOSPC: "permanent",
    errno.ELOOP: "permanent",
    errno.EDQUOT: "permanent",
    # The file system cannot do what the engine needs of it.
    errno.ENOLCK: "configuration",
    errno.ENOTSUP: "configuration",
    errno.EOPNOTSUPP: "configuration",
    errno.ENOSYS: "configuration",
    # It may work later, without a change of ours.
    errno.EMFILE: "transient",
    errno.ENFILE: "transient",
    errno.EINTR: "transient",
    errno.EAGAIN: "transient",
    errno.ETIMEDOUT: "transient",
}


def storage_error(doing: str, error: OSError) -> StorageError:
    """Return the error to raise; `doing` names the file inside the graph; no path outside it is shown."""
    return StorageError(
        f"cannot {doing}: {error.strerror or type(error).__name__}", kind=kind_of(error.errno)
    )


def kind_of(number: int | None) -> str:
    """Return the kind of a storage error from the system's number for it."""
    return "unknown" if number is None else _KINDS.get(number, "unknown")
