"""Turns: who of the threads of one handle writes next, and who is taken along.

T1  Writers of one handle that would meet on a table of a branch go one after the other, in the order in which
    they came; writers that would not meet do not wait for each other.
T2  A turn is taken before every other lock of a write, and only orders the threads of a handle. What a write
    may do is decided by the gates, the strict commits and the publish, as between processes.
T3  A thread that has a turn and writes once more, as a callback of a load may, goes on with the turn it has.
T4  Whoever has the turn may take along those who wait for it, in their order: nobody is taken along before
    somebody whom it would meet and who came earlier. Its place in the line stays until it has been served.
T5  An interrupted writer leaves the line, also if it was taken along, until the commit begins. From then on
    it waits for the outcome, and the interrupt is raised behind that; so it is with a call that is cancelled.
    One that comes while a writer leaves is raised when it has left.
T6  Numbers are given in the order of coming: whoever has one up to `came` came before that was read.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from omnigraph.core.cancellation import check_cancelled, woken
from omnigraph.core.shield import shielded


@dataclass(frozen=True, slots=True)
class Claim:
    """Which tables of a branch a writer moves, and which it only reads; None stands for all of them."""

    branch: str
    moved: frozenset[str] | None
    read: frozenset[str] = frozenset()

    def meets(self, other: "Claim") -> bool:
        """Return whether one of two writers moves what the other one touches."""
        if self.branch != other.branch:
            return False
        if self.moved is None or other.moved is None:
            return True
        return bool(self.moved & (other.moved | other.read)) or bool(other.moved & self.read)

    def touches(self, table_key: str) -> bool:
        """Return whether a table is among those of the claim."""
        return self.moved is None or table_key in self.moved or table_key in self.read


class Passenger(Protocol):
    """What another writer can carry out together with its own."""

    @property
    def fate(self) -> str:
        """What became of it, for a person who interrupted it too late."""
        ...


@dataclass(slots=True, eq=False)
class Ticket:
    """The place of one writer in the line.

    `come` is set when it is its turn, or when another one, its `leader`, has served it.
    """

    claim: Claim
    passenger: Passenger | None = None
    number: int = 0
    may_be_carried: bool = False
    leader: "Ticket | None" = None
    come: threading.Event = field(default_factory=threading.Event)
    is_served: bool = False
    is_sealed: bool = False
    is_withdrawn: bool = False
    wants_out: bool = False


class Turns:
    """The line of one handle."""

    def __init__(self) -> None:
        """Begin with nobody in line."""
        self._lock = threading.Lock()
        self._joined = threading.Condition(self._lock)
        self._came = 0
        self._line: list[Ticket] = []  # in the order of coming: those whose turn it is, and those who wait
        self._mine = threading.local()
        self._last: dict[str, tuple[int, float]] = {}

    @contextmanager
    def turn(
        self, claim: Claim, passenger: Passenger | None = None, *, may_be_carried: bool = False
    ) -> Iterator[Ticket]:
        """Wait until nobody who came earlier and would be met is left, and hold the turn (T1, T3).

        A passenger may have been served by then: the ticket says so.
        """
        ticket = Ticket(claim, passenger, may_be_carried=may_be_carried)
        if getattr(self._mine, "has_turn", False):
            yield ticket
            return
        try:
            self._join(ticket)
            self._wait(ticket)
            self._mine.has_turn = True
            yield ticket
        finally:
            # An interrupt may come before the shield is up, and nobody gets a turn behind one who never left.
            has_left, interrupt = False, None
            while not has_left:
                try:
                    with shielded():
                        self._mine.has_turn = False
                        self._leave(ticket)
                        has_left = True
                except BaseException as raised:  # noqa: BLE001 - raised below, when it has left
                    interrupt = raised
            if interrupt is not None:
                raise interrupt

    @property
    def came(self) -> int:
        """The number of the last one who came (T6)."""
        return self._came

    def take_along(self, leader: Ticket, accepts: Callable[[Claim], bool], wait_s: float) -> Ticket | None:
        """Return the next one who waits for the leader and is accepted (T4); wait a while for one to come."""
        with self._lock:
            found = self._next(leader, accepts)
            if found is None and wait_s > 0:
                self._joined.wait(wait_s)
                found = self._next(leader, accepts)
            if found is not None:
                found.leader = leader
            return found

    def seal(self, tickets: Iterable[Ticket]) -> bool:
        """Keep everybody from leaving who was taken along (T5); refused if somebody has left."""
        tickets = list(tickets)
        with self._lock:
            if any(ticket.is_withdrawn for ticket in tickets):
                return False
            for ticket in tickets:
                ticket.is_sealed = True
            return True

    def unseal(self, tickets: Iterable[Ticket]) -> None:
        """Let everybody leave again: there was no effect, and who was interrupted meanwhile leaves now."""
        with self._lock:
            for ticket in tickets:
                ticket.is_sealed = False
                if ticket.wants_out:
                    self._remove(ticket)
            self._call()

    def serve(self, tickets: Iterable[Ticket]) -> None:
        """Tell those who were taken along that it is done."""
        with self._lock:
            for ticket in tickets:
                ticket.is_served = True
                self._end(ticket)
            self._call()

    def release(self, ticket: Ticket) -> None:
        """Let somebody who was taken along wait for its own turn, in its old place."""
        with self._lock:
            self._free(ticket)
            self._call()

    def note(self, branch: str, size: int, took_s: float) -> None:
        """Note how many a turn on a branch carried out, and how long that took."""
        self._last[branch] = (size, took_s)

    def last(self, branch: str) -> tuple[int, float]:
        """Return how many the last turn on a branch carried out, and how long that took."""
        return self._last.get(branch, (0, 0.0))

    def _join(self, ticket: Ticket) -> None:
        with self._lock:
            self._came += 1
            ticket.number = self._came
            self._line.append(ticket)
            self._call()
            self._joined.notify_all()

    def _wait(self, ticket: Ticket) -> None:
        interrupt: BaseException | None = None
        while True:
            try:
                with woken(lambda: self._withdraw(ticket)):
                    ticket.come.wait()
                break
            except BaseException as raised:
                if self._withdraw(ticket):
                    raise
                interrupt = interrupt or raised
        if (
            ticket.is_withdrawn and interrupt is None
        ):  # by a cancellation, which withdraws from its own thread
            check_cancelled()
        if interrupt is not None:
            if ticket.is_served and ticket.passenger is not None:
                interrupt.add_note(ticket.passenger.fate)
            raise interrupt

    def _withdraw(self, ticket: Ticket) -> bool:
        with self._lock:
            if ticket.is_served or ticket.is_sealed:
                ticket.wants_out = True
                return False
            self._remove(ticket)
            self._call()
            return True

    def _leave(self, ticket: Ticket) -> None:
        with self._lock:
            self._remove(ticket)
            for other in list(self._line):
                if other.leader is ticket:
                    self._free(other)
            self._call()

    def _free(self, ticket: Ticket) -> None:
        ticket.leader, ticket.is_sealed = None, False
        if ticket.wants_out:
            self._remove(ticket)

    def _remove(self, ticket: Ticket) -> None:
        ticket.is_withdrawn = True
        self._end(ticket)

    def _end(self, ticket: Ticket) -> None:
        if ticket in self._line:  # an interrupt may come before it got in line
            self._line.remove(ticket)
        ticket.come.set()

    def _next(self, leader: Ticket, accepts: Callable[[Claim], bool]) -> Ticket | None:
        for position, ticket in enumerate(self._line):
            if not ticket.may_be_carried or ticket.leader is not None or ticket.come.is_set():
                continue
            met = [earlier for earlier in self._line[:position] if ticket.claim.meets(earlier.claim)]
            if met and all(leader in {earlier, earlier.leader} for earlier in met) and accepts(ticket.claim):
                return ticket
        return None

    def _call(self) -> None:
        """Tell everybody whose turn it is now; the caller holds the lock."""
        for position, ticket in enumerate(self._line):
            if not ticket.come.is_set() and not any(
                ticket.claim.meets(earlier.claim) for earlier in self._line[:position]
            ):
                ticket.come.set()
