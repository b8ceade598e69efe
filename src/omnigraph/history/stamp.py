"""The stamp: which storage format a manifest has, and which formats this build serves.

G4  Floor and ceiling are checked together, at every place that reads a stamp.
G6  What is between them is served: a reader reads it as it is (`older_formats`), a writer brings it up to the
    ceiling first (`migrations`). Each step of the way has a name here, so that a build whose floor and steps
    do not fit together cannot start; the steps themselves are imported by whoever takes one.
"""

from collections.abc import Mapping

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import FormatVersionError
from omnigraph.history.manifest_rows import STAMP_KEY

MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION = 1
STEPS: Mapping[int, str] = {1: "v1_to_v2", 2: "v2_to_v3", 3: "v3_to_v4"}  # by the stamp that each starts from
LOWEST_REGISTERED_MIGRATION_SOURCE = min(STEPS)

assert LOWEST_REGISTERED_MIGRATION_SOURCE == MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION, (
    "floor and steps go together"
)
assert max(STEPS) + 1 == INTERNAL_SCHEMA_VERSION, "floor and steps go together"


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
    """Refuse a graph that this build cannot serve (G4).

    Raises:
        FormatVersionError: the stamp is above the ceiling or below the floor.
    """
    reads = f"this build reads {MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION} to {INTERNAL_SCHEMA_VERSION}"
    if stamp > INTERNAL_SCHEMA_VERSION:
        raise _refusal(f"graph format {stamp}, {reads}: upgrade omnigraph", stamp)
    if stamp < MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION:
        route = "export it with the build that wrote it, init a new graph and load the export"
        raise _refusal(f"graph format {stamp}, {reads}: {route}", stamp)


def supported_stamp(metadata: Mapping[str, str]) -> int:
    """Return the stamp of a manifest that this build serves (G4).

    Raises:
        FormatVersionError: it is not a number, above the ceiling, or below the floor.
    """
    stamp = read_stamp(metadata)
    refuse_if_stamp_unsupported(stamp)
    return stamp


def _refusal(message: str, found: object) -> FormatVersionError:
    return FormatVersionError(
        message, found=found, floor=MIN_SUPPORTED_INTERNAL_SCHEMA_VERSION, ceiling=INTERNAL_SCHEMA_VERSION
    )
