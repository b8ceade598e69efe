"""What an error that recovery meets affects: one branch, or everything.

A branch that cannot be read or judged waits, with a warning, and nothing else waits with it. Trouble with
main, or with the disk or the store itself, stops every operation that meets it.
"""

from omnigraph.core.errors import FormatVersionError, InvariantViolation, StorageError
from omnigraph.history.identity import BranchIdentity
from omnigraph.storage.control.durability import SyncFailed

# What reading a damaged branch raises; damaged rows may not be JSON, or not text: a ValueError.
UNREADABLE = (StorageError, InvariantViolation, FormatVersionError, ValueError)
_OF_THE_STORE = frozenset({"transient", "configuration", "precondition"})


def is_its_own(branch: BranchIdentity, error: Exception) -> bool:
    """Return whether an error met in something that belongs to a branch affects that branch alone."""
    if branch.is_main or isinstance(error, SyncFailed):
        return False
    return not (isinstance(error, StorageError) and error.kind in _OF_THE_STORE)
