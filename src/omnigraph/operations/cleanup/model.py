"""What a cleanup was asked for, and what it removed."""

from dataclasses import dataclass
from datetime import timedelta

from omnigraph.commit.retention import Limits
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import is_count, shown

SECONDS_END = 1e15  # more than thirty million years; above it, not every number of seconds exists
KEEP_WARNED_BELOW = 3  # fewer versions than a rollback may want

Age = timedelta | int | float  # numbers are seconds


@dataclass(frozen=True, slots=True)
class CleanupRow:
    """What was removed from one table with its forks, or from the manifests; `error` says what was not.

    A dry run has what would be removed.
    """

    table_key: str
    bytes_removed: int = 0
    old_versions_removed: int = 0
    files_removed: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """One row for each table and one for the manifests, and what else lay around."""

    keep: int | None
    older_than_s: float | None
    is_dry_run: bool
    tables: tuple[CleanupRow, ...]
    leftovers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def bytes_removed(self) -> int:
        """The bytes of all rows."""
        return sum(row.bytes_removed for row in self.tables)

    @property
    def old_versions_removed(self) -> int:
        """The versions of all rows."""
        return sum(row.old_versions_removed for row in self.tables)

    @property
    def failed(self) -> tuple[CleanupRow, ...]:
        """The rows with an error."""
        return tuple(row for row in self.tables if row.error is not None)


def given_limits(keep: object, older_than: object, *, grace_s: float) -> Limits:
    """Return what a caller asks to keep.

    Raises:
        BadRequest: neither is given, or one is not a number of versions or a length of time.
    """
    if keep is None and older_than is None:
        raise BadRequest("cleanup needs to know what to keep: give keep, older_than, or both")
    if keep is not None and not is_count(keep, 1):
        raise BadRequest(f"keep must be a whole number of versions from 1 on, not {shown(keep)}")
    assert keep is None or isinstance(keep, int), "a count"
    return Limits(keep, None if older_than is None else _seconds(older_than), grace_s)


def _seconds(age: object) -> float:
    seconds = age.total_seconds() if isinstance(age, timedelta) else age
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds < SECONDS_END:
        raise BadRequest(f"older_than must be a timedelta or a number of seconds from 0 on, not {shown(age)}")
    return float(seconds)
