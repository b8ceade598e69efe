"""Reads that meet what a cleanup, perhaps of another process, has removed under them.

R1  What a branch shows is never removed. So a read of the present that meets a removed version began with
    what is the past by now: it is run again on what the branch shows then.
R2  A read of a chosen past says which commit can no longer be read, what has become of it, and what to do.
R3  What this handle keeps of a removed version is dropped: the next read of it says the same.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from omnigraph.commit.parts import Parts
from omnigraph.commit.retention import read_retention
from omnigraph.core.errors import HistoricalVersionReclaimed, OmnigraphError
from omnigraph.history.copied import read_copied
from omnigraph.history.fold import TableEntry
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.storage.tables.handle import ref_path

READS_MAX = 4  # each must outlast the grace for readers and a cleanup after it to be disturbed again
ReadRows = TypeVar("ReadRows")

_CLEANED = (
    "was cleaned up, or removed by a change of the schema with --allow-data-loss",
    "read a newer commit or the branch itself; what cleanup keeps is said by its --keep and --older-than, "
    "for readers of other processes by OMNIGRAPH_READER_GRACE",
)
_LEFT_BEHIND = (
    "stayed behind when this graph was copied",
    "read it in the graph that was copied, or copy with a greater depth",
)
_UNNOTED = ("is gone, and no cleanup has noted that", "'omnigraph verify' says what is missing")


def at_head(
    graph: OpenGraph, look: Callable[[], ManifestState], read: Callable[[ManifestState], ReadRows]
) -> ReadRows:
    """Read what a branch shows now, and again where it was removed meanwhile because the branch moved (R1).

    Raises:
        HistoricalVersionReclaimed: it happened every time, or what the branch shows is not there.
    """
    state = look()
    for left in reversed(range(READS_MAX)):
        try:
            return read(state)
        except HistoricalVersionReclaimed as error:
            newer = look()
            if not left or newer.sequence == state.sequence:
                raise _told(graph, error, (state.snapshot(),)) from error
            state = newer
    raise AssertionError("unreachable: the loop returns or raises")


@contextmanager
def reading_of(graph: OpenGraph, *snapshots: Snapshot) -> Iterator[None]:
    """Have a version of these snapshots that was removed be told with its commit (R2, R3).

    Raises:
        HistoricalVersionReclaimed: a version was removed.
    """
    try:
        yield
    except HistoricalVersionReclaimed as error:
        if error.commit_id is not None:
            raise
        raise _told(graph, error, snapshots) from error


def _told(
    graph: OpenGraph, error: HistoricalVersionReclaimed, snapshots: Iterable[Snapshot]
) -> HistoricalVersionReclaimed:
    """Return the error with the commit that shows the version, and forget the version (R2, R3)."""
    for snapshot in snapshots:
        for entry in snapshot.entries.values():
            if error.version == entry.version and error.table_key in {entry.table_key, entry.location}:
                graph.parts.store.forget_versions(graph.parts.address(entry), [entry.version])
                graph.forget_past()
                return reclaimed_entry(graph.parts, entry, snapshot.commit_id)
    return error


def reclaimed_entry(parts: Parts, entry: TableEntry, commit_id: str) -> HistoricalVersionReclaimed:
    """Return the error of a commit that shows a version which is gone (R2)."""
    cause, remedy = _cause(parts, entry)
    told = f"{cause}, so commit '{commit_id}' can no longer be read: {remedy}"
    return HistoricalVersionReclaimed(
        table_key=entry.table_key, version=entry.version, commit_id=commit_id, told=told
    )


def _cause(parts: Parts, entry: TableEntry) -> tuple[str, str]:
    """Return what has become of a version, and what to do."""
    try:
        if entry.version < read_retention(parts.adapter).get(ref_path(entry.location, entry.pin.ref), 0):
            return _CLEANED
        return _LEFT_BEHIND if read_copied(parts.adapter).extents else _UNNOTED
    except OmnigraphError:  # a note that is damaged: `verify` tells of it too
        return _UNNOTED
