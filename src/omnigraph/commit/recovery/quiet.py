"""A graph without unfinished writes, as maintenance needs it.

Q1  A live writer is waited for, never disturbed and never taken for the explanation of drift. One that takes
    too long is named, and nothing was done.
Q2  What a dead writer left is not settled here: a read-write open does that, and says what became of it.
Q3  Who may run beside writers waits only for those it finds, once: on a busy graph there is always one.
"""

import threading
import time
from collections.abc import Callable
from time import monotonic

from omnigraph.commit.parts import Parts
from omnigraph.commit.recovery.pending import list_pending, reread
from omnigraph.core.errors import ConflictError, PendingRecovery

WAIT_S = 30.0  # a commit section takes fractions of a second, on a slow store seconds
POLL_S = 0.02
_pause = threading.Event()


class Patience:
    """How long one operation goes on waiting for writers."""

    def __init__(self, operation: str) -> None:
        """Take what waits, for errors."""
        self._operation = operation
        self._deadline = monotonic() + WAIT_S

    def check(self) -> None:
        """Go on waiting, unless that has taken too long.

        Raises:
            ConflictError: writers come one after the other.
        """
        if monotonic() > self._deadline:
            raise ConflictError(f"{self._operation} found no moment between the writes of others: try again")

    def await_quiet(self, parts: Parts) -> None:
        """Wait until no write is unfinished; the caller holds no queue, for those writes may need it (Q1).

        Raises:
            PendingRecovery: a dead writer left something, or a live one does not finish (Q2).
            StorageError, SidecarCorrupt, SidecarTooNew: it is unknown whether anything is unfinished.
        """
        while not self.is_quiet(parts):
            _pause.wait(POLL_S)

    def is_quiet(self, parts: Parts) -> bool:
        """Return whether no write is unfinished; false means that living writers are at work.

        Raises:
            PendingRecovery: a dead writer left something, or a live one does not finish.
        """
        pending = list_pending(parts)
        if not pending:
            return True
        dead = [found.operation_id for found in pending if not found.is_alive]
        still = {found.operation_id for found in list_pending(parts)}
        if any(operation_id in still for operation_id in dead):
            raise PendingRecovery(self._operation, [found for found in dead if found in still])
        if still and monotonic() > self._deadline:
            raise PendingRecovery(self._operation, sorted(still))
        return False


def refuse_pending(
    parts: Parts,
    operation: str,
    *,
    wait_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Return once every sidecar of the first look is gone, and no other one is a dead writer's (Q1, Q3).

    Raises:
        PendingRecovery: a dead writer has left one, or a live one does not finish.
        StorageError: that cannot be told.
    """
    deadline = clock() + (WAIT_S if wait_s is None else wait_s)
    awaited: set[str] | None = None
    while True:
        pending = list_pending(parts)
        stopped = [found for found in pending if not found.is_alive]
        dead = [found.operation_id for found in stopped if reread(parts, found.sidecar.name) is not None]
        here = {found.operation_id for found in pending}
        awaited = here if awaited is None else awaited & here
        if not dead and not awaited:
            return
        if dead or clock() >= deadline:
            raise PendingRecovery(operation, dead or sorted(awaited))
        pause(POLL_S)
