"""Maintenance waits for writers that live, and refuses a graph on which dead ones have left something.

U1  A live writer's sidecar goes by itself: it is awaited, for a bounded time. A dead one's needs recovery.
U2  A sidecar whose writer ended between two looks is looked at again: it may have been finished.
U3  Writers that begin in the meantime are not awaited: on a busy graph there is always one.
"""

import time
from collections.abc import Callable

from omnigraph.commit.parts import Parts
from omnigraph.commit.recovery.pending import list_pending, reread
from omnigraph.core.errors import PendingRecovery

LIVE_WRITER_WAIT_S = 30.0  # a commit takes milliseconds; the publish of a large merge seconds
LOOK_EVERY_S = 0.02


def refuse_pending(
    parts: Parts,
    operation: str,
    *,
    wait_s: float = LIVE_WRITER_WAIT_S,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Return once every sidecar of the first look is gone, and no other one is a dead writer's (U1, U3).

    Raises:
        PendingRecovery: a dead writer has left one, or a live one does not finish.
        StorageError: that cannot be told.
    """
    deadline = clock() + wait_s
    awaited: set[str] | None = None
    while True:
        pending = list_pending(parts)
        stopped = [found for found in pending if not found.is_alive]
        dead = [
            found.operation_id for found in stopped if reread(parts, found.sidecar.name) is not None
        ]  # U2
        here = {found.operation_id for found in pending}
        awaited = here if awaited is None else awaited & here
        if not dead and not awaited:
            return
        if dead or clock() >= deadline:
            raise PendingRecovery(operation, dead or sorted(awaited))
        pause(LOOK_EVERY_S)
