"""Where the refs of tables start, remembered: it never changes, because a ref name is never used again.

Asking for it again costs a read for every ref of a table, however many branches there are.
"""

import threading
from typing import NamedTuple, final

from omnigraph.storage.tables.handle import TableAddress


class RefStart(NamedTuple):
    """The ref, or main, that a ref was forked from, and at which version."""

    parent: str | None
    version: int


@final
class RefStarts:
    """Starts of refs by their addresses; safe to share between threads."""

    def __init__(self) -> None:
        """Know none."""
        self._lock = threading.Lock()
        self._starts: dict[TableAddress, RefStart] = {}

    def find(self, address: TableAddress) -> RefStart | None:
        """Return where a ref starts, if that is known."""
        return self._starts.get(address)

    def learn(self, address: TableAddress, start: RefStart) -> None:
        """Keep where a ref starts."""
        with self._lock:
            self._starts[address] = start

    def forget(self, address: TableAddress) -> None:
        """Drop what is kept about a ref that is gone."""
        with self._lock:
            self._starts.pop(address, None)
