"""Group commit: mutations that wait for the same tables, prepared on each other and committed together.

G1  The members of a group run one after the other, each over what those before it would leave; the result is
    that of running them one by one in this order.
G2  A member that fails fails alone: what it would have written is in nobody's view.
G3  Whether a member failed or matched nothing is said when what it looked at has landed. A group that does
    not land is prepared again; if its outcome is unknown, those without rows in it are prepared again.
G4  The outcome of the commit is the outcome of every member with rows in it, unknown ones included.
G5  Members go together only if all of them build and none has a precondition; each keeps its own time for
    lost races. A table that is in the way of some members keeps those waiting, not the others.
G6  A version that a cleanup has removed is a lost race and no failure: the members are prepared again.
G7  Every member came before a look at the branch that found the state it is prepared on: it sees all that
    was acknowledged before its call, by whomever.
"""

from dataclasses import replace

from omnigraph.catalog.model import Catalog
from omnigraph.commit.finalize import WriteRequest, finalize
from omnigraph.commit.outcome import NoEffect
from omnigraph.commit.sidecar import WriterKind
from omnigraph.core.cancellation import take_back_effects
from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import (
    ExpectedVersionMismatch,
    HistoricalVersionReclaimed,
    ReadSetChanged,
    ResourceLimit,
)
from omnigraph.core.shield import delivering_behind, noting
from omnigraph.exec.mutation import MutationEffect
from omnigraph.exec.pending import PendingTables
from omnigraph.history.commits import GraphCommit
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.member import MutationCall, Prepared
from omnigraph.operations.retry import Lost, retry_on_conflict
from omnigraph.operations.settings import check_ceiling
from omnigraph.operations.turns import Claim, Ticket
from omnigraph.operations.upkeep import after_write
from omnigraph.staging.write_set import WriteSet
from omnigraph.validate.columns import TypedRows

GROUP_MEMBERS_MAX = 64  # with more, the first ones would wait longer for the others than for the disk
GROUP_ROWS_MAX = 1_000  # as many as the quick way of writing by key takes
LINGER_SHARE = 1 / 8  # of what the last group took: how long to wait for as many to come as that one had
LINGER_S_MAX = 0.01


class _SomebodyLeft(Exception):
    """Somebody was interrupted before the commit began: the group is prepared again without it."""


class WriteGroup:
    """What one leader carries out in its turn: its own mutation, and those it takes along."""

    def __init__(self, graph: OpenGraph, branch: str, leader: Ticket) -> None:
        """Begin with the leader alone."""
        self._graph, self._branch, self._leader = graph, branch, leader
        self._along: list[Ticket] = []
        self._prepared: list[tuple[Ticket, Prepared]] = []
        self._idle: list[tuple[Ticket, MutationEffect | Exception]] = []
        self._avoided: set[str] = set()
        self._came = graph.turns.came  # whoever has a number up to this came before the last look (G7)
        self._is_alone = not _member(leader).may_go_with_others
        self._is_out = False  # whether the commit section has begun, and not ended without effect

    def run(self) -> None:
        """Carry out the leader's mutation, and those that are taken along; each member gets its end."""
        leader, landed = _member(self._leader), None
        begun = boot_clock()
        with delivering_behind():  # an interrupt that came too late is raised when everybody knows
            try:
                landed = retry_on_conflict(
                    self._graph, self._branch, self._attempt, time=leader.time, lost=self._lose
                )
            except Exception as error:  # noqa: BLE001 - raised by those whose it is
                self._fail(error)
            finally:
                self._graph.turns.serve(ticket for ticket in self._along if _has_ended(ticket))
        if landed is None:
            return
        before, commit, rows = landed
        self._graph.turns.note(self._branch, self._size, boot_clock() - begun)
        with noting(f"the mutation had already landed, as commit {commit.graph_commit_id}"):
            after_write(self._graph, before, commit, rows=rows)

    # One attempt

    def _attempt(self, state: ManifestState) -> tuple[Snapshot, GraphCommit, int] | None:
        """Prepare the members on one state and commit them; None if nobody has anything to write."""
        while True:
            self._is_out = False
            try:
                return self._try(state)
            except _SomebodyLeft:
                continue
            except (ExpectedVersionMismatch, ReadSetChanged):
                raise
            except HistoricalVersionReclaimed:
                if self._is_out or not self._along:
                    raise
                self._go_alone()  # the others prepare theirs on a newer state (G6)
            except Exception:
                # Without effect, it may be the trouble of one of the others: each finds out for itself.
                if self._is_out or len(self._prepared) < 2:
                    raise
                self._go_alone()

    def _try(self, state: ManifestState) -> tuple[Snapshot, GraphCommit, int] | None:
        snapshot = state.snapshot()
        write_set, rows = self._prepare(state, snapshot)
        commit = None
        if self._prepared:
            request = self._request(snapshot)
            parts, publisher = self._graph.parts, self._graph.publisher
            commit = finalize(parts, publisher, request, write_set, rows, made=[self]).commit
        for ticket, prepared in self._prepared:
            _member(ticket).end(snapshot.branch, prepared.effect, commit)
        self._end_idle(snapshot)
        if commit is None:
            return None
        return snapshot, commit, sum(prepared.row_count for _, prepared in self._prepared)

    def _prepare(self, state: ManifestState, snapshot: Snapshot) -> tuple[WriteSet, dict[str, TypedRows]]:
        """Run the members one after the other, each over what is pending (G1, G2)."""
        graph, catalog = self._graph, self._graph.catalog_of(state)
        view = PendingTables(snapshot, graph.parts.store, graph.parts.pinned)
        waiting = [ticket for ticket in self._along if not ticket.is_withdrawn]
        self._along, self._prepared, self._idle = [], [], []
        try:
            return self._prepare_all(state, catalog, view, waiting)
        except HistoricalVersionReclaimed:
            self._along += waiting  # nobody is forgotten: they are prepared again, or wait on
            raise

    def _prepare_all(
        self, state: ManifestState, catalog: Catalog, view: PendingTables, waiting: list[Ticket]
    ) -> tuple[WriteSet, dict[str, TypedRows]]:
        graph = self._graph
        own = self._made(self._leader, state, catalog, view)
        if own is None or self._is_alone:
            _release(graph, waiting)
            return (WriteSet({}), {}) if own is None else (own.effect.write_set, own.rows)
        view.add(own.effect.write_set, own.rows)
        linger_until = boot_clock() + min(graph.turns.last(self._branch)[1] * LINGER_SHARE, LINGER_S_MAX)
        while self._size < GROUP_MEMBERS_MAX and view.row_count <= GROUP_ROWS_MAX:
            ticket = waiting.pop(0) if waiting else self._another(state, linger_until)
            if ticket is None:
                break
            self._along.append(ticket)
            done = self._made(ticket, state, catalog, view)
            if done is not None and not _has_room(view, done):
                self._prepared.pop()
                waiting.insert(0, self._along.pop())
                break
            if done is not None:
                view.add(done.effect.write_set, done.rows)
        _release(graph, waiting)
        return view.write()

    def _made(
        self, ticket: Ticket, state: ManifestState, catalog: Catalog, view: PendingTables
    ) -> Prepared | None:
        """Prepare one member; None if it has failed or has nothing to write (G2)."""
        try:
            done = _member(ticket).prepare(state, catalog, view)
        except HistoricalVersionReclaimed:
            raise  # G6
        except Exception as error:  # noqa: BLE001 - it is this member's own
            self._idle.append((ticket, error))
            return None
        if not isinstance(done, Prepared):
            self._idle.append((ticket, done))
            return None
        self._prepared.append((ticket, done))
        return done

    @property
    def _size(self) -> int:
        return len(self._prepared) + len(self._idle)

    def _another(self, state: ManifestState, linger_until: float) -> Ticket | None:
        """Return the next who is taken along; if the last group was larger, wait a moment for one."""
        turns = self._graph.turns
        wait_s = linger_until - boot_clock() if self._size < turns.last(self._branch)[0] else 0.0
        ticket = turns.take_along(self._leader, self._accepts, wait_s)
        if ticket is None or ticket.number <= self._came or self._is_newest(state):
            return ticket
        # Something landed, and its caller may know of it: it waits for a leader that looks anew.
        turns.release(ticket)
        return None

    def _is_newest(self, state: ManifestState) -> bool:
        """Look whether a state is still the newest; if so, those who came meanwhile may go with it (G7)."""
        came = self._graph.turns.came  # before the look: nobody counts who came during it
        newest = self._graph.state(self._branch)
        if (newest.branch, newest.sequence) != (state.branch, state.sequence):
            return False
        self._came = came
        return True

    def _accepts(self, claim: Claim) -> bool:
        return not any(claim.touches(table_key) for table_key in self._avoided)

    def _request(self, snapshot: Snapshot) -> WriteRequest:
        members = [_member(ticket) for ticket, _ in self._prepared]
        request = WriteRequest(
            WriterKind.MUTATION,
            snapshot,
            _common([member.actor for member in members]),
            _common([member.message for member in members]),
            members[0].if_commit,
        )
        if len(members) == 1:
            return request
        operations = (_member(ticket).operation(done.effect) for ticket, done in self._prepared)
        return replace(request, operations=tuple(operations))

    # The beginning of the commit, and its end without effect

    def hand_over(self) -> None:
        """Keep the members from leaving: from here on a durable record may name what they write."""
        if not self._graph.turns.seal(self._along):
            take_back_effects()  # the leader may leave, too
            raise _SomebodyLeft
        self._is_out = True

    def take_back(self, _end: NoEffect, /) -> None:
        """Let them leave again: nothing of it had an effect."""
        self._is_out = False
        self._graph.turns.unseal(self._along)

    # Ends

    def _end_idle(self, snapshot: Snapshot) -> None:
        """Tell those without rows what became of them: what they looked at has landed (G3)."""
        for ticket, end in self._idle:
            if isinstance(end, Exception):
                _member(ticket).error = end
            else:
                _member(ticket).end(snapshot.branch, end, None)

    def _lose(self, conflict: Lost) -> None:
        """Before a lost race is run again: let those go whose time has passed, or whose table is taken."""
        taken = conflict.table_key if isinstance(conflict, ExpectedVersionMismatch) else conflict.member
        is_in_the_way = not self._leader.claim.touches(taken)
        if is_in_the_way:
            self._avoided.add(taken)
        for ticket in list(self._along):
            if _member(ticket).time.is_over:
                self._end_with(ticket, conflict)
                self._graph.turns.serve([ticket])
            elif is_in_the_way and ticket.claim.touches(taken):
                self._graph.turns.release(ticket)
            else:
                continue
            self._along.remove(ticket)

    def _fail(self, error: Exception) -> None:
        """End the leader with an error; the others too if its outcome is theirs (G4)."""
        _member(self._leader).error = error
        writing = {ticket for ticket, _ in self._prepared}
        is_lost = isinstance(error, ExpectedVersionMismatch | ReadSetChanged)
        for ticket in self._along:
            is_over = is_lost and _member(ticket).time.is_over
            if is_over or (self._is_out and ticket in writing):
                self._end_with(ticket, error)

    def _end_with(self, ticket: Ticket, error: Exception) -> None:
        """End a member with an error of the group, as an object of its own: each thread raises it."""
        twin = type(error).__new__(type(error), *error.args)
        twin.__dict__.update(error.__dict__)
        twin.__cause__ = error
        _member(ticket).error = twin

    def _go_alone(self) -> None:
        self._is_alone = True
        _release(self._graph, self._along)


def _member(ticket: Ticket) -> MutationCall:
    assert isinstance(ticket.passenger, MutationCall)
    return ticket.passenger


def _release(graph: OpenGraph, tickets: list[Ticket]) -> None:
    """Let some wait on; the list is empty afterwards, so that nobody goes twice."""
    for ticket in tickets:
        graph.turns.release(ticket)
    tickets.clear()


def _has_room(view: PendingTables, more: Prepared) -> bool:
    """Return whether a group may take one more, by its rows and by the ceilings for one commit."""
    if view.row_count + more.row_count > GROUP_ROWS_MAX:
        return False
    for table_key, rows in more.rows.items():
        pending_rows, pending_bytes = view.sizes(table_key)
        try:
            check_ceiling(table_key, rows=rows.count + pending_rows, size=rows.table.nbytes + pending_bytes)
        except ResourceLimit:
            return False
    return True


def _has_ended(ticket: Ticket) -> bool:
    member = _member(ticket)
    return member.error is not None or member.result is not None


def _common(values: list[str | None]) -> str | None:
    """Return what all have, or None if they differ."""
    return values[0] if len(set(values)) == 1 else None
