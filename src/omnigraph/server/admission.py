"""How much one actor may have in the works at once.

A1  Looking and reserving are one step: of 32 requests at the same time against a limit of 16, 16 are let in.
A2  What was reserved is given back when the work ends, however it ends.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.core.access_errors import RateLimited

RETRY_AFTER_S = 60
ANONYMOUS = "anonymous"  # who a caller without a token is


@dataclass(slots=True)
class _Share:
    requests: int = 0
    bytes: int = 0


class Admission:
    """The writes of every actor that are in the works."""

    def __init__(self, *, requests_max: int, bytes_max: int) -> None:
        """Take the limits of one actor."""
        self._requests_max, self._bytes_max = requests_max, bytes_max
        self._lock = threading.Lock()
        self._shares: dict[str, _Share] = {}

    def reserve(self, actor: str | None, weight: int) -> Callable[[], None]:
        """Take a share for a write that is estimated at so many bytes; return what gives it back (A2).

        Raises:
            RateLimited: the actor has as much in the works as one may.
        """
        name = ANONYMOUS if actor is None else actor
        self._reserve(name, weight)
        return lambda: self._release(name, weight)

    def _reserve(self, name: str, weight: int) -> None:
        with self._lock:
            share = self._shares.setdefault(name, _Share())
            if share.requests >= self._requests_max:
                raise RateLimited(
                    f"actor in-flight cap {self._requests_max} reached", retry_after_s=RETRY_AFTER_S
                )
            if share.bytes + weight > self._bytes_max:
                if not share.requests:
                    del self._shares[name]
                raise RateLimited(f"actor byte cap {self._bytes_max} reached", retry_after_s=RETRY_AFTER_S)
            share.requests += 1
            share.bytes += weight

    def _release(self, name: str, weight: int) -> None:
        with self._lock:
            share = self._shares[name]
            share.requests -= 1
            share.bytes -= weight
            if not share.requests:
                del self._shares[name]  # actors come and go
