"""What a graph has noted about itself besides its schema, branches and unfinished writes: is it readable?"""

from collections.abc import Callable, Iterator

from omnigraph.commit.parts import Parts
from omnigraph.commit.retention import RETENTION_NOTE, read_retention
from omnigraph.commit.schema_lock import LOCK_FILE, SchemaLockHolder, living_holder
from omnigraph.core.errors import OmnigraphError
from omnigraph.history.copied import COPIED, read_copied
from omnigraph.history.numbers import NUMBERS_FILE, read_next_number
from omnigraph.operations.verify.report import FindingKind, VerifyFinding


def control_findings(parts: Parts) -> Iterator[VerifyFinding]:
    """Yield a finding for each control file that is there and cannot be read."""
    looks: dict[str, Callable[[], object]] = {
        RETENTION_NOTE: lambda: read_retention(parts.adapter),
        NUMBERS_FILE: lambda: read_next_number(parts.adapter),
        COPIED: lambda: read_copied(parts.adapter),
        LOCK_FILE: lambda: living_holder(parts),
    }
    for name, look in looks.items():
        try:
            look()
        except OmnigraphError as error:
            yield VerifyFinding.of(FindingKind.CONTROL_FILE, name, str(error))


def retention_as_far_as_readable(parts: Parts) -> dict[str, int]:
    """Return what a cleanup has noted; nothing where the note cannot be read, which is a finding."""
    try:
        return read_retention(parts.adapter)
    except OmnigraphError:
        return {}


def holder_as_far_as_readable(parts: Parts) -> SchemaLockHolder | None:
    """Return who is changing the schema; nobody where the lock cannot be read, which is a finding."""
    try:
        return living_holder(parts)
    except OmnigraphError:
        return None
