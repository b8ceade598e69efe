"""What the last sweep of a handle had to leave, so that the drift guard can refuse the tables concerned.

Some sidecars belong to commits that may or may not be on the disk; others wait for the restore that only a
read-write open makes. Every other one is settled by another process, or by the next sweep.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from omnigraph.core.errors import RecoveryRequired

if TYPE_CHECKING:
    from omnigraph.commit.sidecar import Sidecar
    from omnigraph.history.fold import TableEntry


class Doubts:
    """These sidecars, as the last sweep of this handle found them."""

    def __init__(self) -> None:
        """Begin without a doubt."""
        self._kept: dict[str, tuple[Sidecar, str]] = {}
        self.waiting: frozenset[str] = frozenset()

    def keep(self, sidecar: "Sidecar", reason: str) -> None:
        """Refuse the tables of a sidecar from now on."""
        self._kept[sidecar.operation_id] = (sidecar, reason)

    def learn(self, *, left: Collection[str], waiting: Collection[str]) -> None:
        """Forget what has been settled since; remember what waits for a read-write open."""
        self.waiting = frozenset(waiting)
        self._kept = {key: kept for key, kept in self._kept.items() if key in left}

    def refuse(self, entry: "TableEntry") -> None:
        """Refuse a table whose newest commit is in doubt.

        Raises:
            RecoveryRequired: a person must decide first; the message says how.
        """
        for sidecar, reason in tuple(self._kept.values()):
            if sidecar.names(entry.identity, entry.pin.ref):
                raise RecoveryRequired(sidecar.operation_id, reason)
