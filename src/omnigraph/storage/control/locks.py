"""Locks between the processes of one host.

K1  A taken lock means that its holder is alive: the system releases it when a process dies.
K2  A lock counts only while its path names the locked file: if that was removed, the taker starts over.
K3  A forked child keeps no lock of its parent's, which would outlive the parent.
K4  Every wait is bounded. A writer's lock is never waited for at all.
K5  An interrupt leaves no lock behind, whenever it comes: until a holder has the lock, whoever took it lets
    go of it, and one that was on its way between two of them is let go of with its last reference.

`flock` belongs to the open file, so all of this also holds between two handles of one process.
"""

import fcntl
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from omnigraph.core.errors import StorageError
from omnigraph.core.failpoint import hit
from omnigraph.core.ids import new_ulid
from omnigraph.storage.control.os_errors import storage_error

PUBLISH_LOCK_WAIT_S = 10.0  # for one holder: this long means a stopped process or a dying disk
TAKES_MAX = 100  # of a file that is removed each time; a sweep removes a given name once
PAUSE_FIRST_S = 0.000_2  # a publish holds its lock for milliseconds
PAUSE_GROWTH = 1.5
PAUSE_MAX_S = 0.005  # a process that has waited long must not lose to every newcomer
Lock = TypeVar("Lock", bound="FileLock")


class FileLock:
    """A lock that is held until `release`, or until this process ends (K1)."""

    def __init__(self, path: Path, descriptor: "_Descriptor") -> None:
        """Take a descriptor that has the lock already."""
        self.path = path
        self._descriptor = descriptor

    @property
    def is_held(self) -> bool:
        """Whether this process still has it; false in a forked child (K3)."""
        return self._descriptor.is_open

    def release(self, remove: bool = False) -> None:
        """Release the lock, after removing the file if asked to; a no-op if released, or in a forked child.

        Raises:
            StorageError: the file could not be removed; the lock is released anyway.
        """
        if not self.is_held:
            return
        try:
            if remove:
                self._unlink()
        finally:
            self._descriptor.close()

    def _unlink(self) -> None:
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(f"remove the lock file '{self.path.name}'", error) from error


class HeldLock(FileLock):
    """The lock of a writer that is dead or done, held by a healer."""


class WriterLock(FileLock):
    """A writer's sign of life, beside its sidecar, from before Phase A until after Phase D."""

    def __init__(self, path: Path, descriptor: "_Descriptor", operation_id: str) -> None:
        """Take the id that the lock file is named after."""
        super().__init__(path, descriptor)
        self.operation_id = operation_id

    @staticmethod
    def acquire(folder: Path, make_id: Callable[[], str]) -> "WriterLock":
        """Make a lock file under a new id and take it; where a sweep was faster, under another id (K2).

        Raises:
            StorageError: no lock could be made or taken; no file of ours is left.
        """
        for _ in range(TAKES_MAX):
            operation_id = make_id()
            path = folder / f"{operation_id}.lock"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                descriptor = _Descriptor(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            except OSError as error:
                raise storage_error(f"create the lock file '{path.name}'", error) from error
            lock = WriterLock(path, descriptor, operation_id)
            try:
                hit("lock.post_create_pre_flock")
                is_ours = descriptor.take() and descriptor.is_named_by(path)
                if is_ours:
                    hit("lock.post_flock_pre_sidecar")
                    return lock
            except OSError as error:
                lock._discard()
                raise storage_error(f"lock '{path.name}'", error) from error
            except BaseException:
                lock._discard()
                raise
            lock._discard()
        raise StorageError(f"{TAKES_MAX} lock files in a row were removed by others", kind="transient")

    def release(self, remove: bool = False) -> None:
        """Release the lock as usual; `remove` says that the sidecar is gone."""
        try:
            if remove and self.is_held:
                hit("lock.post_sidecar_delete_pre_unlink")
        except BaseException:
            super().release()
            raise
        super().release(remove)

    def _discard(self) -> None:
        # The id was never given out, so the file may go, whatever process is looking at it now.
        with suppress(OSError):
            self.path.unlink()
        self._descriptor.close()


class PublishLock:
    """Takes turns on one branch: `with PublishLock(path) as is_obtained`.

    The file is removed with its branch (K2). A caller that gets false does nothing that others must not see.
    """

    def __init__(
        self,
        path: Path,
        timeout_s: float = PUBLISH_LOCK_WAIT_S,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take the lock file's path; its folder is made if it is missing."""
        self._path, self._timeout_s = path, timeout_s
        self._clock, self._pause = clock, pause
        self._lock: FileLock | None = None

    def __enter__(self) -> bool:
        hit("publish.before_lock")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._wait()
            if self._lock is not None:
                os.utime(self._path)  # tells the waiters that it has changed hands
            return self._lock is not None
        except OSError as error:
            self._release()
            raise storage_error(f"lock '{self._path.name}'", error) from error
        except BaseException:
            self._release()  # K5
            raise

    def _wait(self) -> None:
        """Wait while the lock goes from hand to hand, and no longer than the timeout for one holder."""
        taken_at = _changed_at(self._path)
        while True:
            self._lock = wait_for_lock(self._path, self._timeout_s, clock=self._clock, pause=self._pause)
            before, taken_at = taken_at, _changed_at(self._path)
            if self._lock is not None or taken_at == before or not self._timeout_s:
                return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def try_lock(path: Path) -> HeldLock | None:
    """Take a writer's lock without waiting, making the file if it is missing; `None` means alive (K1).

    Raises:
        StorageError: whether it is taken is unknown.
    """
    try:
        return _take_as(HeldLock, path)
    except OSError as error:
        raise storage_error(f"lock '{path.name}'", error) from error


def try_sole(path: Path) -> FileLock | None:
    """Take a lock without waiting, making its file and folder if they are missing; `None` if it is taken.

    Raises:
        StorageError: the file cannot be made or locked.
    """
    return _try(path, fcntl.LOCK_EX)


def try_shared(path: Path) -> FileLock | None:
    """Take a lock together with others who share it, otherwise as `try_sole`.

    Raises:
        StorageError: the file cannot be made or locked.
    """
    return _try(path, fcntl.LOCK_SH)


def _try(path: Path, how: int) -> FileLock | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _take_as(FileLock, path, how)
    except OSError as error:
        raise storage_error(f"lock '{path.name}'", error) from error


def is_taken(path: Path) -> bool:
    """Say whether the lock is held; nothing is created, and many may ask at once.

    Raises:
        StorageError: whether it is taken is unknown.
    """
    try:
        descriptor = _Descriptor(path, os.O_RDONLY)
        try:
            return not descriptor.take(fcntl.LOCK_SH)
        finally:
            descriptor.close()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(f"look at the lock '{path.name}'", error) from error


def wait_for_lock(
    path: Path,
    timeout_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> FileLock | None:
    """Take a lock, making its file if it is missing; `None` when time runs out (K4).

    Raises:
        OSError: the file cannot be made or locked.
    """
    lock = None
    try:
        for _ in looks(timeout_s, clock, pause):
            lock = _take_as(FileLock, path)
            if lock is not None:
                return lock
    except BaseException:
        if lock is not None:
            lock.release()  # K5
        raise
    return None


def wait_until_free(
    path: Path,
    timeout_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> bool:
    """Wait until a lock is free; nothing is taken and no file is made. False when time runs out (K4).

    Raises:
        StorageError: whether it is taken is unknown.
    """
    return any(not is_taken(path) for _ in looks(timeout_s, clock, pause))


def looks(
    timeout_s: float,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Yield for every look at something, with growing pauses in between, until time runs out."""
    deadline = clock() + timeout_s
    next_pause_s = PAUSE_FIRST_S
    while True:
        yield
        left_s = deadline - clock()
        if left_s <= 0:
            return
        pause(min(next_pause_s, left_s))
        next_pause_s = min(next_pause_s * PAUSE_GROWTH, PAUSE_MAX_S)


def probe_flock(folder: Path) -> None:
    """Make sure that a lock keeps a second descriptor out.

    Raises:
        StorageError: it does not, or the folder cannot be written.
    """
    path = folder / f"__create_if_absent_probe_{new_ulid()}"
    try:
        first = _Descriptor(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            second = _Descriptor(path, os.O_RDWR)
            try:
                holds = first.take() and not second.take()
            finally:
                second.close()
        finally:
            first.close()
            path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error("try flock in the graph's folder", error) from error
    if not holds:
        raise StorageError(
            "the graph's file system does not honour flock: use another one", kind="configuration"
        )


class _Descriptor:
    """An open lock file that is closed on exec, and in a forked child (K3)."""

    _number = -1

    def __init__(self, path: Path, flags: int) -> None:
        with _fork_guard:  # a fork between the two lines would leave the child with an unknown lock
            self._number = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            _open_descriptors.add(self)

    @property
    def is_open(self) -> bool:
        return self._number >= 0

    def take(self, how: int = fcntl.LOCK_EX) -> bool:
        """Take the lock without waiting; false when another holder has it."""
        try:
            fcntl.flock(self._number, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def is_named_by(self, path: Path) -> bool:
        """Say whether the path still leads to this very file (K2)."""
        try:
            return os.path.samestat(os.fstat(self._number), path.stat())
        except FileNotFoundError:
            return False

    def __del__(self) -> None:
        """Let go of what an interrupt has lost (K5)."""
        if self._number >= 0:
            self.close()

    def close(self) -> None:
        # Closing releases our own share of the lock; an explicit unlock in a child would free the parent's.
        with _fork_guard:
            _open_descriptors.discard(self)
            number, self._number = self._number, -1  # no call in between, at which an interrupt could come
            if number >= 0:
                os.close(number)


def _take_as(kind: type[Lock], path: Path, how: int = fcntl.LOCK_EX) -> Lock | None:
    """Take a lock without waiting; an interrupt lets go of it (K5)."""
    descriptor = None
    try:
        descriptor = _take_verified(path, how)
        return None if descriptor is None else kind(path, descriptor)
    except BaseException:
        if descriptor is not None:
            descriptor.close()
        raise


def _take_verified(path: Path, how: int = fcntl.LOCK_EX) -> _Descriptor | None:
    for _ in range(TAKES_MAX):
        descriptor = _Descriptor(path, os.O_RDWR | os.O_CREAT)
        try:
            if not descriptor.take(how):
                descriptor.close()
                return None
            if descriptor.is_named_by(path):
                return descriptor
        except BaseException:
            descriptor.close()
            raise
        descriptor.close()
    raise StorageError(f"'{path.name}' was removed {TAKES_MAX} times while it was locked", kind="transient")


# Process-wide, as descriptors are: the fork hooks below must find every lock of the process.
_fork_guard = threading.RLock()
_open_descriptors: weakref.WeakSet[_Descriptor] = weakref.WeakSet()


def _close_all_in_child() -> None:
    for descriptor in tuple(_open_descriptors):
        descriptor.close()
    _fork_guard.release()  # the one thread of the child is the one that took it before the fork


os.register_at_fork(
    before=_fork_guard.acquire,
    after_in_parent=_fork_guard.release,
    after_in_child=_close_all_in_child,
)
