"""Files that are about to be written anew, compared first with what their commits recorded.

N1  What is copied into a new file gets a new checksum. Damage that went along would count as whole from then
    on, and a cleanup would take the only file that shows it.
N2  The comparison is over before there is a sidecar, or anything else to be taken back.
N3  What was never recorded is not compared, and nothing is where `OMNIGRAPH_VERIFY` is `off`.
N4  Files that are gone because their branch is, or because the table has moved on and was cleaned up, are no
    damage: the branch is looked at again before anybody is told of any.
"""

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from posixpath import normpath

from omnigraph.commit.changes import published_version
from omnigraph.commit.parts import Parts
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.environment import word_setting
from omnigraph.core.errors import CommitConflict
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import BranchIdentity
from omnigraph.history.recorded_sums import recorded_sums
from omnigraph.storage.control.graph_files import GraphFiles, graph_files
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.files.version_file import HollowContent, decode_version, version_file_name
from omnigraph.storage.tables.handle import SnapshotHandle, ref_path

VERIFY = "OMNIGRAPH_VERIFY"
RECENT = 512  # publishes: of a table that is tended, they recorded nearly all that a round folds
SHOWN_MAX = 20  # damaged files that an error names

_INSIDE = re.compile(r"(?:.*/)?((?:data|_deletions|_indices)/.*)")  # what a file is called in its own tree

Chosen = Callable[[SnapshotHandle], frozenset[str]]


class Level(StrEnum):
    """Which checks happen by themselves."""

    OFF = "off"
    LENGTHS = "lengths"
    CHECKSUMS = "checksums"


def level_from_environment() -> Level:
    """Return what `OMNIGRAPH_VERIFY` asks for: lengths if it is unset, or, with a warning, malformed."""
    return word_setting(VERIFY, Level.LENGTHS)


def compare_before_rewrite(parts: Parts, branch: BranchIdentity, entry: TableEntry, chosen: Chosen) -> None:
    """Compare the files of a table at its pin that will be written anew, by their names in the table (N1).

    A name that ends in a slash is a folder.

    Raises:
        GraphDamaged: files are missing, or are not what their commits wrote; it names them.
        BranchNotFound, CommitConflict: the branch is gone, or has moved the table on (N4).
        StorageError: something cannot be read.
    """
    if parts.local_root is None or level_from_environment() is Level.OFF:
        return
    names = chosen(parts.open(entry))
    if not names:
        return
    try:
        _compare(parts, branch, entry, names)
    except GraphDamaged:
        parts.branches.confirm(branch)
        if published_version(parts.coordinator.state(branch).tables, entry.identity) != entry.version:
            raise CommitConflict(f"{entry.table_key} has moved on in the meantime: try again") from None
        raise


def _compare(parts: Parts, branch: BranchIdentity, entry: TableEntry, names: frozenset[str]) -> None:
    files = graph_files(parts.root)
    dataset = ref_path(entry.location, entry.pin.ref)
    paths = set(_named(files, dataset, entry.version, names))
    sums = _sums(parts, branch, paths)
    found = {path: reason for path in sorted(paths) if (reason := _fault(files, path, sums.get(path)))}
    if found:
        raise _told(dataset, found)


def damaged(path: str, reason: str) -> GraphDamaged:
    """Return the error for a file that is not what its commit wrote."""
    return _told(path.partition("/_versions/")[0], {path: reason})


def _told(dataset: str, found: dict[str, str]) -> GraphDamaged:
    (path, reason), *others = found.items()
    way_out = "put the file back from a copy; 'omnigraph verify' lists all such files"
    if "/_indices/" in path:
        way_out += "; or build the index anew: 'omnigraph verify --deep' names the command"
    if others:
        shown = ", ".join(f"'{other}' {why}" for other, why in others[: SHOWN_MAX - 1])
        rest = len(others) - (SHOWN_MAX - 1)
        way_out += f". The same goes for {shown}" + (f" and {rest} more" if rest > 0 else "")
    return GraphDamaged(file=path, reason=reason, dataset=dataset, remedy=way_out)


def _named(files: GraphFiles, dataset: str, version: int, names: frozenset[str]) -> Iterator[str]:
    """Yield the paths of those files of a version that have one of the names, of a fork's source too."""
    path = f"{dataset}/{version_file_name(version)}"
    content = files.read(path)
    if content is None:
        raise damaged(path, "is missing")
    try:
        decoded = decode_version(content)
    except HollowContent as hollow:
        raise damaged(path, str(hollow)) from hollow
    folders = tuple(name for name in names if name.endswith("/"))
    for file in (*decoded.files, *decoded.shared):
        name = _INSIDE.fullmatch(file.path)
        if name is not None and (name[1] in names or name[1].startswith(folders)):
            yield normpath(f"{dataset}/{file.path}")


def _sums(parts: Parts, branch: BranchIdentity, paths: set[str]) -> dict[str, FileSum]:
    """Return what is recorded about files; what had to be read is known from then on."""
    known = {path: found for path in paths if (found := parts.recorded.get(path)) is not None}
    missing = paths - known.keys()
    if not missing:
        return known
    read = _read_sums(parts, branch, missing)
    for path in missing & read.keys():
        known[path] = parts.recorded.keep(path, read[path])
    return known


def _read_sums(parts: Parts, branch: BranchIdentity, paths: set[str]) -> dict[str, FileSum]:
    """Read what is recorded about files: the newest publishes of the branch are asked first."""
    coordinator = parts.coordinator
    handle = coordinator.manifest.open_fresh(coordinator.address(branch.ref))
    found: dict[str, FileSum] = {}
    for after in (handle.version - RECENT, None):
        if after is not None and after <= 0:
            continue
        found = recorded_sums(coordinator.manifest, handle, published_after=after)
        if paths <= found.keys():
            return found
    for other in parts.branches.live():  # a merge may have set the branch on files that another one wrote
        if other != branch and not paths <= found.keys():
            handle = coordinator.manifest.open_fresh(coordinator.address(other.ref))
            found = recorded_sums(coordinator.manifest, handle) | found
    return found


def _fault(files: GraphFiles, path: str, expected: FileSum | None) -> str | None:
    length = files.length(path)
    if length is None:
        return "is missing"
    if expected is None:
        return None
    if length != expected.length:
        return f"has {length} bytes instead of {expected.length}"
    return None if files.checksum(path) == expected.checksum else "does not hold what its commit wrote"
