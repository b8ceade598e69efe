"""What one query may use: time and memory, checked before they are spent.

U1  A query that passes its limits ends with a typed error, between operators or before a big allocation.
U2  The size of an allocation is computed from what is known (degrees, row counts), never by trying.
"""

from time import monotonic

from omnigraph.core.errors import CartesianProductRefused, QueryMemoryExceeded, QueryTimeout

PRODUCT_ROWS_MAX = 10_000_000  # combinations of unconnected parts; more is nearly always a missing clause
SLOT_BYTES = 4  # a slot of a node or edge in the binding table


class Budget:
    """The limits of one running query; `None` is unlimited."""

    __slots__ = ("_deadline", "_held", "_memory", "_started", "_timeout_ms")

    def __init__(self, memory_bytes: int | None = None, timeout_ms: int | None = None) -> None:
        """Start the clock."""
        self._memory = memory_bytes
        self._timeout_ms = timeout_ms
        self._held = 0
        self._started = monotonic()
        self._deadline = None if timeout_ms is None else self._started + timeout_ms / 1_000

    def check(self) -> None:
        """Look at the clock.

        Raises:
            QueryTimeout: the query has taken longer than it may.
        """
        if self._deadline is None:
            return
        now = monotonic()
        if now > self._deadline:
            assert self._timeout_ms is not None
            raise QueryTimeout(limit_ms=self._timeout_ms, elapsed_ms=int((now - self._started) * 1_000))

    def hold(self, size: int) -> None:
        """Say how many bytes the rows between two operators take; they count with what comes next.

        Raises:
            QueryMemoryExceeded: that alone is too much.
            QueryTimeout: the query has taken longer than it may.
        """
        self._held = 0
        self.allow(size)
        self._held = size
        self.check()

    def allow(self, size: int) -> None:
        """Ask for memory before taking it.

        Raises:
            QueryMemoryExceeded: together with what is held it is more than the limit.
        """
        if self._memory is not None and self._held + size > self._memory:
            raise QueryMemoryExceeded(limit=self._memory, needed=self._held + size)

    def allow_product(self, variable: str, left: int, right: int, width: int) -> None:
        """Ask for the combinations of two row sets.

        Raises:
            CartesianProductRefused: there are too many.
            QueryMemoryExceeded: they do not fit.
        """
        if left * right > PRODUCT_ROWS_MAX:
            raise CartesianProductRefused(variable=variable, limit=PRODUCT_ROWS_MAX, estimate=left * right)
        self.allow(left * right * width * SLOT_BYTES)
