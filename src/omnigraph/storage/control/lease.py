"""The one writer process of a graph in an object store.

W1  The lease's holder wrote it last, by create-if-absent or compare-and-swap: of two takers, one wins.
W2  A lease is taken from another holder only when that holder is proven dead on this host, or when the lease
    was unchanged for a whole lifetime on the taker's own clock. Two hosts' clocks are never compared for it.
W3  Every holder's epoch is greater than all earlier ones, even after a holder that closed cleanly: `close`
    leaves the object with its epoch, marked as free, and does so by compare-and-swap, never over another's.
W4  A holder that lost its lease is told so by `check`, and never gets it back.

The compare-and-swap of the publish stays the authority; the lease keeps a second writer out before it begins.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from omnigraph.core.errors import OmnigraphError, StorageError, WriterLeaseHeld
from omnigraph.core.failpoint import hit
from omnigraph.core.ids import new_ulid
from omnigraph.core.values import read_json
from omnigraph.storage.control.object_store import StorageAdapter

WRITER_LEASE = "__writer_lease.json"
LEASE_LIFETIME = 30.0  # seconds; renewed every third of it, so that two renewals may fail
LIFETIME_MAX_S = 86_400  # a day: whoever waits for the end of a writer waits no longer
COUNT_MAX = 2**63 - 1  # of epochs and beats
PID_MAX = 2**31 - 1  # what a system call takes
TAKES_MAX = 10  # attempts, while others keep taking and releasing the lease
LOOKS_PER_LIFETIME = 10
_log = logging.getLogger("omnigraph")


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What the lease object says; an empty expiry marks it as free."""

    lease_id: str
    host: str
    boot_id: str
    pid: int
    epoch: int
    expires_at: str

    @property
    def is_free(self) -> bool:
        """Whether its holder closed cleanly."""
        return not self.expires_at

    def is_of(self, other: "LeaseRecord") -> bool:
        """Whether both belong to one holder: the id alone could be drawn twice, an epoch never is."""
        return (self.lease_id, self.epoch) == (other.lease_id, other.epoch)

    def to_json(self) -> str:
        """Return the text of the object."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "LeaseRecord":
        """Read the text of the object.

        Raises:
            StorageError: the text is not a lease that we wrote.
        """
        try:
            record = LeaseRecord(**read_members(text))
            texts = (record.lease_id, record.host, record.boot_id, record.expires_at)
            if not all(isinstance(value, str) for value in texts):
                raise ValueError("lease_id, host, boot_id and expires_at are texts")
            check_number("pid", record.pid, least=1, most=PID_MAX)
            check_number("epoch", record.epoch, least=0, most=COUNT_MAX)
            if record.expires_at and datetime.fromisoformat(record.expires_at).tzinfo is None:
                raise ValueError("expires_at has no time zone")
        except (ValueError, TypeError) as error:
            raise StorageError(
                f"'{WRITER_LEASE}' is not a writer lease: {error}", kind="permanent"
            ) from error
        return record


def read_members(text: str) -> dict[str, Any]:
    """Return the members of a JSON object.

    Raises:
        ValueError: the text is something else.
    """
    members = read_json(text)
    if not isinstance(members, dict):
        raise ValueError("it is no JSON object")
    return members


def check_number(name: str, value: object, *, least: int, most: int) -> None:
    """Refuse what is no whole number, or one that no process of ours has written.

    Raises:
        ValueError: it is that.
    """
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} is a whole number from {least} to {most}")


class WriterLease:
    """A lease that this process holds, renewed by its own thread until `close`."""

    def __init__(
        self,
        adapter: StorageAdapter,
        record: LeaseRecord,
        *,
        clock: Callable[[], int],
        boot_clock: Callable[[], float],
        taken_at: float,
        lifetime_s: float,
        rest: Callable[[threading.Event, float], bool],
    ) -> None:
        """Take a record that is in the store already; callers use `take`."""
        self._adapter, self._record = adapter, record
        self._clock, self._boot_clock, self._lifetime_s = clock, boot_clock, lifetime_s
        self._renewed_at = taken_at
        self._rest = rest
        self._is_lost = False
        self._lost_to: LeaseRecord | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._heartbeat = threading.Thread(target=self._beat, name="omnigraph-lease", daemon=True)
        self._heartbeat.start()

    @staticmethod
    def take(
        adapter: StorageAdapter,
        *,
        host: str,
        boot_id: str,
        pid: int,
        clock: Callable[[], int],
        boot_clock: Callable[[], float],
        wait: Callable[[float], None] = time.sleep,
        rest: Callable[[threading.Event, float], bool] = threading.Event.wait,
        lifetime_s: float = LEASE_LIFETIME,
    ) -> "WriterLease":
        """Become the writer (W1, W2).

        `clock` gives microseconds since the epoch, for people to read; `boot_clock` gives seconds that go on
        while the machine sleeps. A lease that another process keeps alive is refused at once; one that looks
        abandoned is watched for a lifetime first. `rest` is how the heart waits between two beats: until the
        event is set, or for some seconds; it returns whether the event is set.

        Raises:
            WriterLeaseHeld: another process is the writer.
            StorageError: the store failed, or holds something else in the lease's place.
        """
        wanted = LeaseRecord(new_ulid(), host, boot_id, pid, 1, "")
        for _ in range(TAKES_MAX):
            found = adapter.read_text_versioned(WRITER_LEASE)
            holder = None if found is None else LeaseRecord.from_json(found[0])
            if found is not None and holder is not None and holder.lease_id != wanted.lease_id:
                if not holder.is_free and not _is_proven_dead(holder, wanted):
                    if _is_fresh(holder, clock, lifetime_s):
                        raise _held(holder)
                    if not _is_unchanged(adapter, found[1], boot_clock, wait, lifetime_s):
                        continue
                hit("lease.takeover")
                wanted = replace(wanted, epoch=holder.epoch + 1)
            taken_at = boot_clock()
            wanted = replace(wanted, expires_at=_expiry(clock, lifetime_s))
            if found is None:
                is_taken = adapter.write_text_if_absent(WRITER_LEASE, wanted.to_json())
            else:
                is_taken = adapter.write_text_if_match(WRITER_LEASE, wanted.to_json(), found[1])
            if is_taken:
                return WriterLease(
                    adapter,
                    wanted,
                    clock=clock,
                    boot_clock=boot_clock,
                    taken_at=taken_at,
                    lifetime_s=lifetime_s,
                    rest=rest,
                )
        raise StorageError("the writer lease changes too often to be taken", kind="transient")

    @property
    def epoch(self) -> int:
        """The number that sidecars of this holder carry (W3)."""
        return self._record.epoch

    def check(self) -> None:
        """Make sure that the lease is ours for at least another third of its lifetime, renewing it if not.

        Raises:
            WriterLeaseHeld: another process has it (W4).
            StorageError: it was removed, or the store failed and the holder is unknown.
        """
        with self._lock:
            left_s = self._renewed_at + self._lifetime_s - self._boot_clock()
            if not self._is_lost and left_s <= self._lifetime_s / 3:
                self._renew()
            if self._lost_to is not None:
                raise _held(self._lost_to, was_ours=True)
            if self._is_lost:
                raise StorageError(f"'{WRITER_LEASE}' was removed: open the graph again", kind="precondition")

    def close(self) -> None:
        """Stop renewing and free the lease at once (W3); a second call does nothing.

        Raises:
            StorageError: the store failed; the lease then expires by itself.
        """
        if self._closed.is_set():
            return
        self._closed.set()
        self._heartbeat.join()
        with self._lock:
            if not self._is_lost:
                self._write(expires_at="")

    def _beat(self) -> None:
        while not self._rest(self._closed, self._lifetime_s / 3):
            with self._lock:
                attempt(self._renew)
                if self._is_lost:
                    return

    def _renew(self) -> None:
        hit("lease.renew")
        asked_at = (
            self._boot_clock()
        )  # before the request: the lifetime begins when it is sent, at the latest
        self._write(expires_at=_expiry(self._clock, self._lifetime_s))
        if not self._is_lost:
            self._renewed_at = asked_at

    def _write(self, *, expires_at: str) -> None:
        """Replace our own record, or find out that it is not ours any more."""
        record = replace(self._record, expires_at=expires_at)
        for _ in range(TAKES_MAX):
            found = self._adapter.read_text_versioned(WRITER_LEASE)
            holder = None if found is None else LeaseRecord.from_json(found[0])
            if found is None or holder is None or not holder.is_of(record):
                self._is_lost, self._lost_to = True, holder
                return
            if self._adapter.write_text_if_match(WRITER_LEASE, record.to_json(), found[1]):
                return
        raise StorageError("the writer lease changes too often to be renewed", kind="transient")


def attempt(step: Callable[[], None]) -> bool:
    """Do a step of a heart, and return whether it was done; nothing that it raises stops the heart."""
    try:
        step()
    except OmnigraphError:
        return False  # the next beat tries again, and `check` raises its own errors
    except BaseException as error:  # noqa: BLE001 - a library may panic, and others must not take us for dead
        _log.warning("a step that keeps this writer alive failed: %s: %s", type(error).__name__, error)
        return False
    return True


@cache
def boot_identity() -> str:
    """Identify this boot of this machine and its pid namespace; empty where that is unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


# Neither changes while a process lives, and every commit asks; a child may be in another pid namespace.
os.register_at_fork(after_in_child=boot_identity.cache_clear)


def _is_proven_dead(holder: LeaseRecord, taker: LeaseRecord) -> bool:
    return is_dead_process((holder.host, holder.boot_id, holder.pid), (taker.host, taker.boot_id))


def is_dead_process(process: tuple[str, str, int], here: tuple[str, str]) -> bool:
    """Return whether a process, by its host, boot and pid, is proven dead; always false on another host."""
    host, boot, pid = process
    if not boot or (host, boot) != here or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False  # it lives, under another user
    return False


def _is_fresh(holder: LeaseRecord, clock: Callable[[], int], lifetime_s: float) -> bool:
    """Say whether the lease was renewed recently, if both clocks are right; if not, watching finds out."""
    left = datetime.fromisoformat(holder.expires_at) - _time(clock)
    return timedelta(0) < left <= timedelta(seconds=lifetime_s)


def _is_unchanged(
    adapter: StorageAdapter,
    token: str,
    boot_clock: Callable[[], float],
    wait: Callable[[float], None],
    lifetime_s: float,
) -> bool:
    """Watch the lease for a whole lifetime.

    Raises:
        WriterLeaseHeld: it was renewed, or taken by another process.
    """
    begun_at = boot_clock()
    while boot_clock() - begun_at <= lifetime_s:
        wait(lifetime_s / LOOKS_PER_LIFETIME)
        found = adapter.read_text_versioned(WRITER_LEASE)
        if found is None:
            return False
        if found[1] != token:
            holder = LeaseRecord.from_json(found[0])
            if holder.is_free:
                return False
            raise _held(holder)
    return True


def _held(holder: LeaseRecord, *, was_ours: bool = False) -> WriterLeaseHeld:
    return WriterLeaseHeld(host=holder.host, pid=holder.pid, expires_at=holder.expires_at, was_ours=was_ours)


def _expiry(clock: Callable[[], int], lifetime_s: float) -> str:
    return (_time(clock) + timedelta(seconds=lifetime_s)).isoformat()


def _time(clock: Callable[[], int]) -> datetime:
    return datetime.fromtimestamp(clock() / 1_000_000, UTC)
