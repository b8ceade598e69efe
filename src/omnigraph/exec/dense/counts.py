"""How often each thing was derived: counted, because tests assert counts and never times."""

import threading
from collections import Counter as Tally
from dataclasses import dataclass, fields
from typing import final


@dataclass(frozen=True, slots=True)
class DerivedCounts:
    """Builds read a table, advances its changes, loads a file."""

    slot_rebuilds: int = 0
    slot_advances: int = 0
    slot_refusals: int = 0  # changes that were in doubt, each followed by a rebuild
    slot_loads: int = 0
    id_builds: int = 0
    id_advances: int = 0
    id_loads: int = 0
    csr_builds: int = 0
    csr_overlays: int = 0
    csr_loads: int = 0
    column_builds: int = 0
    column_advances: int = 0
    vector_builds: int = 0
    vector_advances: int = 0


@final
class Counter:
    """The counts of one graph, from any thread."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._lock = threading.Lock()
        self._tally: Tally[str] = Tally()

    def add(self, name: str) -> None:
        """Count one."""
        with self._lock:
            self._tally[name] += 1

    def counts(self) -> DerivedCounts:
        """Return the counts so far."""
        with self._lock:
            return DerivedCounts(**{field.name: self._tally[field.name] for field in fields(DerivedCounts)})
