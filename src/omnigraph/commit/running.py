"""The operations of this process that are inside their commit section.

On an object store no lock tells whether a writer is alive; one process writes there, and it knows.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_running: set[str] = set()
_lock = threading.Lock()


@contextmanager
def running(operation_id: str) -> Iterator[None]:
    """Count an operation as alive for the duration of a block."""
    with _lock:
        _running.add(operation_id)
    try:
        yield
    finally:
        with _lock:
            _running.discard(operation_id)


def is_running(operation_id: str) -> bool:
    """Return whether an operation of this process is inside its commit section."""
    with _lock:
        return operation_id in _running
