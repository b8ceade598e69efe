"""The only place that reads time."""

import time


def now_micros() -> int:
    """Return microseconds since the Unix epoch; every `created_at` comes from here."""
    micros = time.time_ns() // 1_000
    assert micros > 0, "the clock is set before the Unix epoch"
    return micros


def boot_clock() -> float:
    """Return seconds since the machine started, including time asleep; ages are measured with it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)
