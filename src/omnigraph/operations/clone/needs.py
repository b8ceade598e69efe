"""Which files a captured graph consists of.

B1  Needed are the captured version of each manifest, every version that a pin in reach names, and the version
    that each of their forks starts from, where it is still there: their version files, and all files that
    these name, shared ones too. A fork names all that it shows, so it is read without its start.
B2  In reach is the past that the source still has, or what the newest commits of each branch show, with the
    commit that the branch was made from: two branches must still be able to meet there. A past with gaps, as
    a cleanup or a hard drop leaves it where branches need some of it, is copied with its gaps.
B3  A file that a version names and that is not there is told before anything is copied. So is a version that
    a head needs; one of the past may have been cleaned up, and the copy says from where on it has all.
"""

import posixpath
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from omnigraph.commit.parts import RECOVERIES_DATASET, Parts
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.together import each
from omnigraph.history.copied import Copied, Extent
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.operations.clone.capture import Capture, CapturedBranch
from omnigraph.storage.control.graph_files import graph_files
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.files.version_file import HollowContent, decode_version, version_file_name
from omnigraph.storage.tables.handle import TableAddress, ref_file, ref_path

Pin = tuple[str, str | None, int]  # place of a table, ref, version


@dataclass(frozen=True, slots=True)
class NeededFile:
    """A file below the root, with its length, and its checksum where a commit recorded one."""

    path: str
    length: int
    sum: FileSum | None


@dataclass(frozen=True, slots=True)
class Needs:
    """The files of a captured graph, and what they are of each branch.

    `unreadable` are, by branch, the commits that are listed and cannot be read, or need not with a depth.
    """

    files: tuple[NeededFile, ...]
    copied: Copied
    unreadable: dict[str, int]


def needs_of(
    parts: Parts, captured: Capture, lengths: Mapping[str, int], *, depth: int | None = None
) -> Needs:
    """Return what a captured graph consists of (B1).

    Raises:
        GraphDamaged: a file that a version names is not there, or a version file is damaged (B3).
        StorageError: the store failed.
    """
    reader = _Floors(lengths, captured.copied, depth)
    floors = {branch: reader.floor(branch) for branch in captured.branches}
    collected = _Collected(parts, captured, lengths)
    collected.add(_versions(parts, captured, lengths, floors))
    for branch, floor in floors.items():
        collected.add_if_whole(_with_starts(parts, lengths, _start(branch, floor)))
        for pin in branch.state.pinned_versions() if floor and depth is None else ():
            if _version_file(pin) in lengths:  # before the floor there are gaps (B2)
                collected.add_if_whole(_with_starts(parts, lengths, [pin]))
    for ref in (cut.branch.ref for cut in captured.cuts):
        if ref is not None and ref_file(MANIFEST_DIR, ref) in lengths:
            collected.add_file(ref_file(MANIFEST_DIR, ref))  # its manifest is written anew
    for branch in captured.kept:
        collected.add_if_whole(_with_starts(parts, lengths, _everything(branch)))
    extents = {branch.identity.name: Extent(branch.version, floor) for branch, floor in floors.items()}
    unreadable = {
        branch.identity.name: sum(
            depth is not None or collected.lacks(branch, commit.manifest_version)
            for commit in branch.state.commits.newest_first(floor - 1)
        )
        for branch, floor in floors.items()
    }
    return Needs(collected.sorted(), Copied(extents), unreadable)


def needs_and_lacks(
    parts: Parts, captured: Capture, lengths: Mapping[str, int]
) -> tuple[tuple[NeededFile, ...], tuple[str, ...]]:
    """Return the files of a captured graph as they are, and those that it lacks or cannot read.

    Raises:
        StorageError: the store failed.
    """
    floors = {branch: captured.copied.of(branch.identity.name).floor for branch in captured.branches}
    collected = _Collected(parts, captured, lengths, lacking=set())
    collected.add(_versions(parts, captured, lengths, floors))
    return collected.sorted(), tuple(sorted(collected.lacking or ()))


def _versions(
    parts: Parts, captured: Capture, lengths: Mapping[str, int], floors: Mapping[CapturedBranch, int]
) -> set[Pin]:
    """Return the versions that branches show from their floors on, and what belongs to them (B1)."""
    pins = {pin for branch, floor in floors.items() for pin in branch.state.pinned_versions(floor)}
    versions = _with_starts(parts, lengths, pins)
    if not captured.cuts:
        versions |= {(MANIFEST_DIR, branch.identity.ref, branch.version) for branch in captured.branches}
        versions |= {*_audit(parts)}
    return versions


class _Floors:
    """Finds out from which manifest version on a branch can be read (B2)."""

    def __init__(self, lengths: Mapping[str, int], copied: Copied, depth: int | None) -> None:
        self._lengths, self._copied, self._depth = lengths, copied, depth

    def floor(self, branch: CapturedBranch) -> int:
        """Return the version; zero where all can be read."""
        floor = max(self._copied.of(branch.identity.name).floor, self._chosen(branch))
        floor = min(floor, branch.state.sequence)  # a copy may end below what the source has left behind
        if self._has_all(branch, floor):
            return floor
        later = [commit.manifest_version for commit in branch.state.commits.oldest_first(above=floor)]
        first = bisect_left(later, True, key=lambda version: self._has_all(branch, version))
        return later[min(first, len(later) - 1)]  # a head that lacks something is damaged (B3)

    def _chosen(self, branch: CapturedBranch) -> int:
        commits, depth = branch.state.commits, self._depth
        if depth is None or depth >= len(commits):
            return 0
        return next(islice(commits.newest_first(), depth - 1, None)).manifest_version

    def _has_all(self, branch: CapturedBranch, version: int) -> bool:
        """Say whether every version that the branch shows from some version on is there."""
        return all(_version_file(pin) in self._lengths for pin in branch.state.pinned_versions(version))


def _version_file(pin: Pin) -> str:
    place, ref, version = pin
    return f"{ref_path(place, ref)}/{version_file_name(version)}"


def _start(branch: CapturedBranch, floor: int) -> set[Pin]:
    """Return the versions that a branch was made from, where they are below its floor (B2)."""
    if branch.control is None or branch.control.parent_manifest_version >= floor:
        return set()
    shown = branch.state.snapshot_at(branch.control.parent_manifest_version).entries.values()
    return {(entry.location, entry.pin.ref, entry.version) for entry in shown}


def _everything(branch: CapturedBranch) -> set[Pin]:
    return {*branch.state.pinned_versions(), (MANIFEST_DIR, branch.identity.ref, branch.version)}


def _audit(parts: Parts) -> Iterator[Pin]:
    """Yield the newest version of the record of recoveries, if there is one."""
    version = graph_files(parts.root).newest_version(RECOVERIES_DATASET)
    if version is not None:
        yield RECOVERIES_DATASET, None, version


def _with_starts(parts: Parts, lengths: Mapping[str, int], pins: Iterable[Pin]) -> set[Pin]:
    """Return versions together with those that their forks start from, and these from, and so on.

    A start that no branch shows any more may have been cleaned up, and is left out.
    """
    found: set[Pin] = set()
    waiting = list(pins)
    while waiting:
        pin = waiting.pop()
        if pin in found:
            continue
        found.add(pin)
        place, ref, _ = pin
        start = None if ref is None else parts.store.ref_start(TableAddress(parts.root.child(place), ref))
        if start is None:
            continue
        begun = (place, start.parent, start.version)
        if _version_file(begun) in lengths:
            waiting.append(begun)
    return found


class _Collected:
    """The files of versions, each once."""

    def __init__(
        self, parts: Parts, captured: Capture, lengths: Mapping[str, int], *, lacking: set[str] | None = None
    ) -> None:
        """Take the graph; with a set, what is missing or damaged goes there instead of being raised."""
        self.files: dict[str, NeededFile] = {}
        self.lacking = lacking
        self._files, self._lengths, self._is_local = graph_files(parts.root), lengths, parts.root.is_local
        self._sums = {item.path: item for branch in captured.branches for item in branch.noted}
        for branch in captured.branches:
            self._sums |= branch.sums

    def sorted(self) -> tuple[NeededFile, ...]:
        """Return the files by path."""
        return tuple(sorted(self.files.values(), key=lambda file: file.path))

    def lacks(self, branch: CapturedBranch, manifest_version: int) -> bool:
        """Return whether a branch showed a table then at a version that was not added."""
        shown = branch.state.snapshot_at(manifest_version).entries.values()
        pins = ((entry.location, entry.pin.ref, entry.version) for entry in shown)
        return any(_version_file(pin) not in self.files for pin in pins)

    def add(self, versions: Iterable[Pin]) -> None:
        """Add the files of versions, and the files of their refs (B1).

        Raises:
            GraphDamaged: one is missing, or is no version (B3).
        """
        ordered = sorted(versions, key=str)
        for paths in each(self._paths, ordered, at_once=not self._is_local):
            for path, length in paths:
                self.add_file(path, length)

    def add_if_whole(self, versions: Iterable[Pin]) -> None:
        """Add the files of versions if all of them are there, and none otherwise."""
        before = len(self.files)
        try:
            self.add(versions)
        except GraphDamaged:
            while len(self.files) > before:
                self.files.popitem()

    def _paths(self, pin: Pin) -> list[tuple[str, int | None]]:
        place, ref, version = pin
        dataset, path = ref_path(place, ref), _version_file(pin)
        content = self._files.read(path)
        if content is None:
            return self._lacks(path, "is missing")
        try:
            decoded = decode_version(content)
            if decoded.version != version:
                raise HollowContent(f"holds version {decoded.version}")
        except HollowContent as hollow:
            return self._lacks(path, str(hollow))
        named = [*decoded.files, *decoded.shared]
        # A ref is readable without the file that lists it, so one may be missing.
        listed = "" if ref is None else ref_file(place, ref)
        refs = [(listed, None)] if listed in self._lengths else []
        inside = [(posixpath.normpath(f"{dataset}/{file.path}"), file.size) for file in named]
        return [(path, len(content)), *refs, *inside]

    def add_file(self, path: str, length: int | None = None) -> None:
        """Add a file, once.

        Raises:
            GraphDamaged: it is missing, or has another length than it should have (B3).
        """
        if path in self.files:
            return
        found = self._lengths.get(path)
        if found is None:
            self._lacks(path, "is missing")
            return
        if found == 0 and self.lacking is None:
            self._files.length(path)  # no file of a graph is empty: it may be a pipe, which this refuses
        expected = self._sums.get(path)
        wanted = expected.length if expected is not None else found if length is None else length
        if found != wanted and self.lacking is None:
            self._lacks(path, f"has {found} bytes instead of {wanted}")
        self.files[path] = NeededFile(path, found, expected)

    def _lacks(self, path: str, reason: str) -> list[tuple[str, int | None]]:
        """Tell of a file that is not what it should be (B3), or note it."""
        if self.lacking is None:
            raise GraphDamaged(file=path, reason=reason, dataset=posixpath.dirname(path))
        self.lacking.add(path)
        return []
