"""The file checks that happen by themselves when a graph is opened and read.

L1  An open compares lengths, of the newest files of the newest tables on main: a fixed number of files,
    however large the graph is. That is where a power cut, or copying a graph in use, leaves its traces.
L2  Where checksums are asked for, a version of a table is checked before the handle reads anything from it,
    each file once. What was never recorded is not checked.
L3  A mismatch is a `GraphDamaged`, and nothing of that version is read.
"""

import threading
from enum import StrEnum

from omnigraph.commit.parts import Parts
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.environment import word_setting
from omnigraph.history.fold import TableEntry
from omnigraph.history.recorded_sums import recorded_sums
from omnigraph.history.state import Snapshot
from omnigraph.storage.control.graph_files import GraphFiles, graph_files
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.files.version_file import HollowContent, NamedFile, decode_version, version_file_name
from omnigraph.storage.tables.handle import TableAddress, ref_path

ENVIRONMENT = "OMNIGRAPH_VERIFY"
TABLES_COMPARED_MAX = 8  # with the fragments, about a millisecond: a few percent of an open
FRAGMENTS_COMPARED_MAX = 8


class Level(StrEnum):
    """Which checks happen by themselves."""

    OFF = "off"
    LENGTHS = "lengths"
    CHECKSUMS = "checksums"


def level_from_environment() -> Level:
    """Return what `OMNIGRAPH_VERIFY` asks for: lengths if it is unset, or, with a warning, malformed."""
    return word_setting(ENVIRONMENT, Level.LENGTHS)


def check_files_at_open(parts: Parts, snapshot: Snapshot) -> None:
    """Check what an open checks (L1), and, where that is asked for, what is read from then on (L2).

    Raises:
        GraphDamaged: a file is missing, or has the wrong length.
    """
    level = level_from_environment()
    if level is Level.OFF or not parts.root.is_local:
        return
    files = graph_files(parts.root)
    newest = sorted(snapshot.entries.values(), key=lambda entry: entry.pin.published_at, reverse=True)
    for entry in newest[:TABLES_COMPARED_MAX]:
        _check_lengths(files, entry)
    if level is Level.CHECKSUMS:
        parts.store.before_open = ReadChecks(parts, files).check


def _check_lengths(files: GraphFiles, entry: TableEntry) -> None:
    dataset = ref_path(entry.location, entry.pin.ref)
    for file in _named(files, dataset, entry.version, fragments_max=FRAGMENTS_COMPARED_MAX):
        _check_length(files, f"{dataset}/{file.path}", file.size)


def _named(
    files: GraphFiles, dataset: str, version: int, *, fragments_max: int | None = None
) -> tuple[NamedFile, ...]:
    """Return the files that a version names in its own folder."""
    path = f"{dataset}/{version_file_name(version)}"
    content = files.read(path)
    if content is None:
        raise _damaged(path, "is missing")
    try:
        return decode_version(content, fragments_max=fragments_max).files
    except HollowContent as hollow:
        raise _damaged(path, str(hollow)) from hollow


def _check_length(files: GraphFiles, path: str, expected: int | None) -> None:
    found = files.length(path)
    if found is None:
        raise _damaged(path, "is missing")
    if expected is not None and found != expected:
        raise _damaged(path, f"has {found} bytes instead of {expected}")


def _damaged(path: str, reason: str) -> GraphDamaged:
    way_out = "put the file back from a copy; 'omnigraph verify' lists all such files"
    return GraphDamaged(file=path, reason=reason, dataset=path.partition("/_versions/")[0], remedy=way_out)


class ReadChecks:
    """Compares the files of tables with their checksums the first time a handle opens a version (L2)."""

    def __init__(self, parts: Parts, files: GraphFiles) -> None:
        """Take the graph and its files."""
        self._parts = parts
        self._files = files
        self._sums: dict[str, FileSum] = {}
        self._read_at: dict[str | None, int] = {}  # by manifest ref, the version whose sums are known
        self._done: set[str] = set()
        self._lock = threading.Lock()

    def check(self, address: TableAddress, version: int) -> None:
        """Compare all files of a version of a table, including those that a fork shares with its source.

        Raises:
            GraphDamaged: one is missing, or is not what its commit wrote.
        """
        dataset = address.open_uri.removeprefix(self._parts.root.child(""))
        with self._lock:
            named = [f"{dataset}/{file.path}" for file in _named(self._files, dataset, version)]
            self._compare([f"{dataset}/{version_file_name(version)}", *named])
        start = self._parts.store.ref_start(address) if address.ref is not None else None
        if start is not None:
            self.check(TableAddress(address.uri, start.parent), start.version)

    def _compare(self, paths: list[str]) -> None:
        fresh = [path for path in paths if path not in self._done]
        if any(path not in self._sums for path in fresh):
            self._learn()
        for path in fresh:
            expected = self._sums.get(path)
            _check_length(self._files, path, None if expected is None else expected.length)
            if expected is not None and self._files.checksum(path) != expected.checksum:
                raise _damaged(path, "does not hold what its commit wrote")
            self._done.add(path)

    def _learn(self) -> None:
        """Read the checksums that were recorded since the last time, on every branch."""
        coordinator = self._parts.coordinator
        for ref in (branch.ref for branch in self._parts.branches.live()):
            handle = coordinator.manifest.open_fresh(coordinator.address(ref))
            known = self._read_at.get(ref)
            if known != handle.version:
                self._sums |= recorded_sums(coordinator.manifest, handle, published_after=known)
                self._read_at[ref] = handle.version
