"""Figures for people."""

from collections.abc import Iterable, Sequence
from statistics import median

from bench.support.counting import Counts, Sample


def wall_ms(samples: Iterable[Sample]) -> float:
    """Return the median time by the clock."""
    return median(sample.wall_ms for sample in samples)


def cpu_ms(samples: Iterable[Sample]) -> float:
    """Return the median time on the processors, which a busy machine disturbs less."""
    return median(sample.cpu_ms for sample in samples)


def sum_counts(samples: Sequence[Sample]) -> Counts:
    """Return the requests of several commits together."""
    total = Counts()
    for sample in samples:
        total += sample.counts
    return total


def verdict(ratio: float, bar: float) -> str:
    """Say whether a ratio is within its bar."""
    return f"{ratio:.2f}x (bar {bar}x): {'ok' if ratio <= bar else 'MISSED'}"
