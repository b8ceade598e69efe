"""The stamp: which storage format a graph has, and which ones this build reads.

T1  Floor and ceiling are checked together, at every place that reads a stamp.
"""

from collections.abc import Callable, Mapping

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import FormatVersionError
from omnigraph.history.manifest_rows import STAMP_KEY

MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION = 4
Migration = Callable[[], None]
MIGRATIONS: Mapping[int, Migration] = {}  # source stamp to the step that raises it by one
LOWEST_REGISTERED_MIGRATION_SOURCE = min(MIGRATIONS, default=INTERNAL_SCHEMA_VERSION)

assert LOWEST_REGISTERED_MIGRATION_SOURCE == MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION, (
    "floor and steps go together"
)


def read_stamp(metadata: Mapping[str, str]) -> int:
    """Return the stamp of a manifest; one without a stamp has the oldest, implicit shape.

    Raises:
        FormatVersionError: the stamp is not a number.
    """
    raw = metadata.get(STAMP_KEY)
    if raw is None:
        return 1
    if not raw.isdecimal():
        raise _refusal(f"the format stamp {raw!r} is not a number", raw)
    return int(raw)


def refuse_if_stamp_unsupported(stamp: int) -> None:
    """Refuse a graph that this build cannot serve (T1).

    Raises:
        FormatVersionError: the stamp is above the ceiling or below the floor.
    """
    reads = f"this build reads {MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION} to {INTERNAL_SCHEMA_VERSION}"
    if stamp > INTERNAL_SCHEMA_VERSION:
        raise _refusal(f"graph format {stamp}, {reads}: upgrade omnigraph", stamp)
    if stamp < MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION:
        route = "export it with the build that wrote it, init a new graph and load the export"
        raise _refusal(f"graph format {stamp}, {reads}: {route}", stamp)


def _refusal(message: str, found: object) -> FormatVersionError:
    return FormatVersionError(
        message, found=found, floor=MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION, ceiling=INTERNAL_SCHEMA_VERSION
    )
