"""What maintenance of many tables reports while it runs: the table at hand, and how long the rest takes."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from omnigraph.core.clock import boot_clock


@dataclass(frozen=True, slots=True)
class TableProgress:
    """A table that is begun or done; rows are those of whole tables."""

    operation: str
    table_key: str
    is_done: bool
    tables_done: int
    tables_total: int
    rows_done: int
    rows_total: int
    seconds: float

    @property
    def remaining_s(self) -> float | None:
        """How long the rest takes at this rate; `None` before anything is done."""
        if self.tables_done == self.tables_total:
            return 0.0
        return self.seconds * (self.rows_total - self.rows_done) / self.rows_done if self.rows_done else None


TableProgressCallback = Callable[[TableProgress], None]


def unseen(_progress: TableProgress) -> None:
    """Ignore it."""


class Tables:
    """Counts the tables of one operation; several threads may work on them."""

    def __init__(self, operation: str, rows: Mapping[str, int], tell: TableProgressCallback) -> None:
        """Take the rows of each table, by which the time that is left is estimated."""
        self._operation, self._rows, self._tell = operation, rows, tell
        self._done: set[str] = set()
        self._lock = threading.Lock()
        self._begun = boot_clock()

    @contextmanager
    def at(self, table_key: str) -> Iterator[None]:
        """Report a table that is begun and done; one that fails is not done."""
        self._report(table_key, is_done=False)
        yield
        self._report(table_key, is_done=True)

    def _report(self, table_key: str, *, is_done: bool) -> None:
        with self._lock:
            if is_done:
                self._done.add(table_key)
            self._tell(
                TableProgress(
                    self._operation,
                    table_key,
                    is_done,
                    len(self._done),
                    len(self._rows),
                    sum(self._rows[key] for key in self._done),
                    sum(self._rows.values()),
                    boot_clock() - self._begun,
                )
            )
