"""The writing processes of a graph in an object store: each keeps an object alive there.

H1  A writer replaces its object again and again, each time by compare-and-swap and with another text, so that
    two looks which find the same text know that it was silent in between.
H2  A writer is dead when it was silent for its whole lifetime on the observer's own clock, or is proven dead
    on this host. Clocks of two hosts are never compared.
H3  Whoever finds a writer dead ends its object by compare-and-swap first, and then touches what it left: a
    writer that renews in time wins, and one that wakes too late finds its end. No object is the same as an
    ended one.
H4  `check` says whether this process still is a writer, without a request while its object is young. A writer
    that was ended never is one again.

This tells the dead from the living. It is no fence: a process may stop behind its last look for any time.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from omnigraph.core.errors import StorageError, WriterEnded, WriterLeaseHeld
from omnigraph.core.failpoint import hit
from omnigraph.core.ids import new_ulid
from omnigraph.storage.control.lease import (
    COUNT_MAX,
    LEASE_LIFETIME,
    LIFETIME_MAX_S,
    PID_MAX,
    WriterLease,
    attempt,
    check_number,
    is_dead_process,
    read_members,
)
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.control.probe import prove_conditions
from omnigraph.storage.control.uri import GraphRoot

WRITERS_DIR = "__writers"
BEATS_PER_LIFETIME = 3  # so that two renewals may fail
LOOKS_PER_LIFETIME = 20  # of somebody who waits for a sign of life
ROUNDS_PER_TIDYING = 30  # beats between two looks for objects of writers that died with nothing to recover
TRIES_MAX = 10  # of a renewal that meets repeated requests of our own


@dataclass(frozen=True, slots=True)
class WriterRecord:
    """What the object of a writer says; `beat` grows with every renewal."""

    writer_id: str
    host: str
    boot_id: str
    pid: int
    lifetime_s: float
    beat: int = 0
    ended_by: str | None = None

    @property
    def file(self) -> str:
        """The graph-relative name of the object."""
        return writer_file(self.writer_id)

    def to_json(self) -> str:
        """Return the text of the object."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(name: str, text: str) -> "WriterRecord":
        """Read the text of an object.

        Raises:
            StorageError: the text is not that of a writer of this name.
        """
        try:
            record = WriterRecord(**read_members(text))
            texts = (record.writer_id, record.host, record.boot_id, record.ended_by or "")
            if not all(isinstance(value, str) for value in texts):
                raise ValueError("writer_id, host, boot_id and ended_by are texts")
            check_number("pid", record.pid, least=1, most=PID_MAX)
            check_number("beat", record.beat, least=0, most=COUNT_MAX)
            is_number = type(record.lifetime_s) in {int, float}
            if not is_number or not 0 < record.lifetime_s <= LIFETIME_MAX_S:
                raise ValueError(f"lifetime_s is a number of seconds, {LIFETIME_MAX_S} at most")
            if record.file != name:
                raise ValueError(f"it is that of {record.writer_id}")
        except (ValueError, TypeError) as error:
            raise StorageError(f"'{name}' is not that of a writer: {error}", kind="permanent") from error
        return record


def writer_file(writer_id: str) -> str:
    """Return the graph-relative name of a writer's object."""
    return f"{WRITERS_DIR}/{writer_id}.json"


class Watch:
    """What one process has seen of the other writers (H2)."""

    def __init__(
        self,
        adapter: StorageAdapter,
        observer: WriterRecord,
        *,
        boot_clock: Callable[[], float],
        wait: Callable[[float], None],
    ) -> None:
        """Take who watches; the clock must count sleep."""
        self._adapter, self._observer = adapter, observer
        self._boot_clock, self._wait = boot_clock, wait
        self._seen: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def has_ended(self, writer_id: str) -> bool:
        """Look at a writer once, and end it if it is dead (H2, H3).

        Raises:
            StorageError: the store failed, or holds something else in its place.
        """
        looked_at = self._boot_clock()  # before the request: its answer may be older than its end
        found = self._adapter.read_text_versioned(writer_file(writer_id))
        if found is None:
            return True
        record = WriterRecord.from_json(writer_file(writer_id), found[0])
        if record.ended_by is not None:
            return True
        if not self._is_dead(record, found[0], looked_at):
            return False
        hit("writers.before_end")
        ended = replace(record, ended_by=self._observer.writer_id)
        is_ended = self._adapter.write_text_if_match(record.file, ended.to_json(), found[1])
        return is_ended or self._is_over(record)

    def await_sign(self, writer_id: str, is_over: Callable[[], bool]) -> bool:
        """Look until a writer has ended, shows that it lives, or what it was asked about is over.

        Returns whether it has ended. A living one shows itself within a third of its lifetime.

        Raises:
            StorageError: the store failed.
        """
        first = self._adapter.read_text_if_exists(writer_file(writer_id))
        while not self.has_ended(writer_id):
            text = self._adapter.read_text_if_exists(writer_file(writer_id))
            if text != first or text is None or is_over():
                return False
            lifetime_s = WriterRecord.from_json(writer_file(writer_id), text).lifetime_s
            self._wait(lifetime_s / LOOKS_PER_LIFETIME)
        return True

    def tidy(self) -> None:
        """Remove the objects of writers that have ended; what is unchanged at the next call has, too.

        What is not the object of a writer stays where it is.

        Raises:
            StorageError: the store failed.
        """
        for name in self._adapter.list_dir(WRITERS_DIR):
            writer_id = name.removesuffix(".json")
            try:
                if writer_id != self._observer.writer_id and self.has_ended(writer_id):
                    self._adapter.delete(writer_file(writer_id))
            except StorageError as error:
                if error.kind != "permanent":  # that of the store, which asks for a pause
                    raise

    def others(self) -> list[str]:
        """Return the ids of all other writers that have an object."""
        ids = (name.removesuffix(".json") for name in self._adapter.list_dir(WRITERS_DIR))
        return sorted(writer_id for writer_id in ids if writer_id != self._observer.writer_id)

    def describe(self, writer_id: str) -> WriterRecord | None:
        """Return what a writer says of itself, if its object is there."""
        text = self._adapter.read_text_if_exists(writer_file(writer_id))
        return None if text is None else WriterRecord.from_json(writer_file(writer_id), text)

    def _is_dead(self, record: WriterRecord, text: str, looked_at: float) -> bool:
        with self._lock:
            before = self._seen.get(record.writer_id)
            if before is None or before[0] != text:
                self._seen[record.writer_id] = (text, self._boot_clock())
                silent_s = 0.0
            else:
                silent_s = looked_at - before[1]
        ours = self._observer
        return silent_s > record.lifetime_s or is_dead_process(
            (record.host, record.boot_id, record.pid), (ours.host, ours.boot_id)
        )

    def _is_over(self, record: WriterRecord) -> bool:
        """Return whether somebody else, or a repeated request, has ended a writer."""
        now = self.describe(record.writer_id)
        return now is None or now.ended_by is not None


class Writer:
    """This process as a writer: its object is renewed by a thread of its own until `close`.

    `lease` is that of a process that wants to be the only one.
    """

    def __init__(
        self,
        adapter: StorageAdapter,
        record: WriterRecord,
        *,
        boot_clock: Callable[[], float],
        made_at: float,
        wait: Callable[[float], None],
        rest: Callable[[threading.Event, float], bool],
    ) -> None:
        """Take a record that is in the store already; callers use `begin`."""
        self._adapter, self._record = adapter, record
        self._boot_clock, self._rest = boot_clock, rest
        self._renewed_at = made_at
        self._ended_by: str | None = None
        self._is_ended = False
        self._owed: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self.lease: WriterLease | None = None
        self.watch = Watch(adapter, record, boot_clock=boot_clock, wait=wait)
        self._heartbeat = threading.Thread(target=self._beat, name="omnigraph-writer", daemon=True)
        self._heartbeat.start()

    @staticmethod
    def begin(
        adapter: StorageAdapter,
        *,
        host: str,
        boot_id: str,
        pid: int,
        boot_clock: Callable[[], float],
        wait: Callable[[float], None] = time.sleep,
        rest: Callable[[threading.Event, float], bool] = threading.Event.wait,
        lifetime_s: float = LEASE_LIFETIME,
        unproven: GraphRoot | None = None,
    ) -> "Writer":
        """Become one of the writers.

        `rest` is how the heart waits between two beats: until the event is set, or for some seconds; it
        returns whether the event is set. `unproven` is the root of a graph whose store is to be proven (H5).

        Raises:
            StorageError: the store failed, or does not keep its promises (kind `configuration`).
            WriterEnded: the store took longer than a lifetime to answer.
        """
        record = WriterRecord(new_ulid(), host, boot_id, pid, lifetime_s)
        made_at = boot_clock()
        if unproven is None:
            _make(adapter, record)
        else:
            record = _make_on_probation(adapter, record, unproven, boot_clock)
        return Writer(adapter, record, boot_clock=boot_clock, made_at=made_at, wait=wait, rest=rest)

    @property
    def writer_id(self) -> str:
        """The id that sidecars of this process carry."""
        return self._record.writer_id

    @property
    def lifetime_s(self) -> float:
        """For how long others wait in silence before they take this process for dead."""
        return self._record.lifetime_s

    @property
    def is_alone(self) -> bool:
        """Whether nobody else writes while `check` says that this process does."""
        return self.lease is not None

    def check(self) -> None:
        """Make sure that this process is a writer for at least another third of its lifetime (H4).

        Raises:
            WriterEnded: it was taken for dead, or is closed.
            WriterLeaseHeld: it was to be the only one, and another one has taken its place.
            StorageError: the store failed, so that it is unknown.
        """
        if self.lease is not None:
            self.lease.check()
        lifetime_s = self._record.lifetime_s
        with self._lock:
            left_s = self._renewed_at + lifetime_s - self._boot_clock()
            if not self._is_ended and left_s <= lifetime_s / BEATS_PER_LIFETIME:
                self._renew()
            if self._is_ended:
                by = self._ended_by or "others"
                raise WriterEnded(f"this writer was taken for dead by {by}: open the graph again")

    def owe(self, debt: Callable[[], None]) -> None:
        """Have something done with the next beats that the store has just failed to do."""
        with self._lock:
            self._owed.append(debt)

    def close(self) -> None:
        """Stop being a writer; a second call does nothing.

        Raises:
            StorageError: the store failed; the others find out by themselves.
        """
        if self._closed.is_set():
            return
        self._closed.set()
        self._heartbeat.join()
        with self._lock:
            self._is_ended = True
        try:
            self._adapter.delete(self._record.file)  # ours alone, or the mark that we have ended
        finally:
            if self.lease is not None:
                self.lease.close()

    def _beat(self) -> None:
        beats = 0
        while not self._rest(self._closed, self._record.lifetime_s / BEATS_PER_LIFETIME):
            beats += 1
            if not attempt(self._keep_alive):
                continue
            if self._is_ended:
                return
            attempt(self._pay)
            if beats % ROUNDS_PER_TIDYING == 0:
                attempt(self.watch.tidy)

    def _keep_alive(self) -> None:
        if self._has_lost_lease():
            self._adapter.delete(self._record.file)
            return
        with self._lock:
            if not self._is_ended:
                self._renew()

    def _has_lost_lease(self) -> bool:
        """Return whether this was to be the only writer and is none any more: it must not keep others out."""
        try:
            if self.lease is not None:
                self.lease.check()
        except WriterLeaseHeld:
            with self._lock:
                self._is_ended = True
            return True
        return False

    def _pay(self) -> None:
        while self._owed:
            debt = self._owed.pop(0)
            try:
                debt()
            except BaseException:
                self._owed.append(debt)  # behind the others: one that always fails holds none of them up
                raise

    def _renew(self) -> None:
        """Replace our own record, or find out that it is not ours any more (H1)."""
        hit("writers.renew")
        asked_at = self._boot_clock()  # before the request: the lifetime begins when it is sent
        for _ in range(TRIES_MAX):
            found = self._adapter.read_text_versioned(self._record.file)
            now = None if found is None else WriterRecord.from_json(self._record.file, found[0])
            if found is None or now is None or now.ended_by is not None:
                self._is_ended, self._ended_by = True, None if now is None else now.ended_by
                return
            # A request of ours whose answer was lost may have landed: it counts from where it stands.
            self._record = replace(self._record, beat=now.beat + 1)
            if self._adapter.write_text_if_match(self._record.file, self._record.to_json(), found[1]):
                self._renewed_at = asked_at
                return
        raise StorageError(f"'{self._record.file}' changes too often to be renewed", kind="transient")


def _make(adapter: StorageAdapter, record: WriterRecord) -> None:
    try:
        adapter.write_text_if_absent(record.file, record.to_json())
    except StorageError:
        if adapter.read_text_if_exists(record.file) is None:
            raise
        # The id is ours alone: only the answer was lost.


def _make_on_probation(
    adapter: StorageAdapter, record: WriterRecord, root: GraphRoot, boot_clock: Callable[[], float]
) -> WriterRecord:
    """Make the object of a writer and prove the store with it; return what it says then (H5)."""
    made_at = boot_clock()
    first, second, third, fourth = (replace(record, beat=beat) for beat in range(4))
    texts = (first.to_json(), second.to_json(), third.to_json(), fourth.to_json())
    try:
        prove_conditions(adapter, root, record.file, texts)
    except StorageError as error:
        adapter.discard(record.file)
        if error.kind == "configuration" and boot_clock() - made_at > record.lifetime_s:
            # Others may have ended the object meanwhile, which looks as if the store had.
            raise WriterEnded("the store took too long to answer: open the graph again") from error
        raise
    return second
