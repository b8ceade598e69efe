"""Whose trouble an error is that recovery meets: one branch's, or everybody's.

A branch that cannot be read or judged waits, with a warning, and nobody else waits with it. Trouble of main,
and of the disk or the store itself, stops whoever meets it.
"""

from omnigraph.core.errors import FormatVersionError, InvariantViolation, StorageError
from omnigraph.storage.control.durability import SyncFailed

# What reading a damaged branch raises; rows that are damaged may be no JSON, or no text: a ValueError.
UNREADABLE = (StorageError, InvariantViolation, FormatVersionError, ValueError)
_OF_THE_STORE = frozenset({"transient", "configuration", "precondition"})


def is_its_own(branch: str | None, error: Exception) -> bool:
    """Return whether an error that was met in what belongs to a branch is that branch's trouble alone."""
    if branch is None or isinstance(error, SyncFailed):
        return False
    return not (isinstance(error, StorageError) and error.kind in _OF_THE_STORE)
