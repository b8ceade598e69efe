"""What a bulk operation reports while it runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.core.clock import boot_clock


class Stage(StrEnum):
    """The stages of a bulk operation, in order; where no row can be left out, rows are written early."""

    START = "start"
    SURVEY = "count lines"
    READ = "read and parse"
    VALUES = "value checks"
    KEYS = "keys and duplicates"
    ENDPOINTS = "endpoints"
    CARDINALITY = "cardinality"
    WRITE = "write fragments"
    EMBED = "embed"
    STAGE = "stage"
    COMMIT = "commit"
    INDEX = "index"
    COPY = "copy files"
    COMPARE = "compare files"


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """The progress of a stage; totals are zero where they are unknown.

    A load in process tells how many rows of each table it has read; elsewhere `tables` is None.
    `seconds` is how long the stage has been running. Where tasks do the work of several stages in one go,
    each of them gets its share of that time when all are done.
    """

    stage: Stage
    tasks_done: int = 0
    tasks_total: int = 0
    rows: int = 0
    bytes_done: int = 0
    bytes_total: int = 0
    is_done: bool = False
    seconds: float = 0.0
    tables: tuple[tuple[str, int], ...] | None = None

    @property
    def rows_per_s(self) -> float | None:
        """How many rows went through in a second, where both are known."""
        return self.rows / self.seconds if self.rows and self.seconds > 0 else None

    @property
    def bytes_per_s(self) -> float | None:
        """How many bytes went through in a second, where both are known."""
        return self.bytes_done / self.seconds if self.bytes_done and self.seconds > 0 else None

    @property
    def remaining_s(self) -> float | None:
        """How long the rest takes at this rate; `None` before anything is done."""
        if self.is_done:
            return 0.0
        done, total = self.bytes_done, self.bytes_total
        if not total:
            done, total = self.tasks_done, self.tasks_total
        return self.seconds * (total - done) / done if done else None


ProgressCallback = Callable[[ProgressEvent], None]


def silent(_event: ProgressEvent) -> None:
    """Ignore the event."""


@contextmanager
def told(
    progress: ProgressCallback, stage: Stage, *, tables: tuple[tuple[str, int], ...] | None = None
) -> Iterator[None]:
    """Report that a stage begins and that it has ended; a stage that fails does not end."""
    begun, rows = boot_clock(), sum(count for _, count in tables or ())
    progress(ProgressEvent(stage, rows=rows, tables=tables))
    yield
    progress(ProgressEvent(stage, rows=rows, is_done=True, seconds=boot_clock() - begun, tables=tables))


class Laps:
    """Divides the time of one task among the stages that it works for."""

    def __init__(self) -> None:
        """Start now."""
        self.seconds: dict[Stage, float] = {}
        self._since = boot_clock()

    def end(self, stage: Stage) -> None:
        """Count the time since the last call for a stage."""
        now = boot_clock()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._since
        self._since = now


def added_up(tasks: Iterable[Mapping[Stage, float]]) -> dict[Stage, float]:
    """Return the seconds of several tasks together."""
    total: dict[Stage, float] = {}
    for seconds in tasks:
        for stage, spent in seconds.items():
            total[stage] = total.get(stage, 0.0) + spent
    return total
