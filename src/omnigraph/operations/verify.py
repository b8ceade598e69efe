"""`verify`: compare every file that live branches need, or that a commit recorded, with what is on the disk.

V1  Nothing is written and nothing is healed; a graph that does not open can still be verified.
V2  A version is needed while a pin of a live branch names it, present or past, but not below the branch's
    floor. What it names must exist with the length that it gives. What a commit recorded must have that
    length and that checksum; in a copy, what commits from before it recorded may be missing if no needed
    version names it.
V3  One damaged file hides no other: what cannot be followed beyond it is reported, and the rest is compared.
V4  Others may write meanwhile: what looks damaged is looked at again, by what live branches need then. Only
    what both looks find is damage.
V5  A key is in a manifest once; nothing but the publisher makes sure of that, so it is counted here.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.commit.parts import Parts
from omnigraph.core.errors import GraphNotFound, OmnigraphError
from omnigraph.history.branches import trimmed_name
from omnigraph.history.copied import read_copied
from omnigraph.history.identity import BranchIdentity
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.history.recorded_sums import recorded_sums, sums_still_readable
from omnigraph.operations.clone.journal import refuse_unfinished
from omnigraph.operations.open import make_parts
from omnigraph.storage.control.graph_files import GraphFiles, graph_files
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.files.version_file import HollowContent, decode_version, version_file_name
from omnigraph.storage.tables.handle import ref_path


class FileStatus(StrEnum):
    """What became of a file since its commit."""

    OK = "ok"
    MISSING = "missing"
    LENGTH = "length"
    CHECKSUM = "checksum"
    NOT_RECORDED = "not_recorded"  # it exists, and what it should hold is unknown

    @property
    def is_damage(self) -> bool:
        """Whether something is wrong with the file."""
        return self not in {FileStatus.OK, FileStatus.NOT_RECORDED}


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file: what it should be, and what it is."""

    path: str
    status: FileStatus
    length: int | None
    found_length: int | None


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a verification found.

    `unread` gives the branches whose manifest cannot be followed, and why; `repeated` the keys that a
    manifest has more than once.
    """

    branches: tuple[str, ...]
    files: tuple[FileReport, ...]
    unread: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()

    @property
    def damaged(self) -> tuple[FileReport, ...]:
        """The files with something wrong."""
        return tuple(file for file in self.files if file.status.is_damage)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.damaged and not self.unread and not self.repeated

    @property
    def counts(self) -> dict[str, int]:
        """How many files have each status."""
        found = dict.fromkeys((status.value for status in FileStatus), 0)
        for file in self.files:
            found[file.status.value] += 1
        return found


@dataclass(frozen=True, slots=True)
class VerifyProgress:
    """The progress of a verification."""

    files_done: int
    files_total: int


Progress = Callable[[VerifyProgress], None]


@dataclass(slots=True)
class _Needs:
    """What a file must be: a length where a version gives one, a sum where a commit recorded one."""

    length: int | None = None
    sum: FileSum | None = None
    is_broken: bool = False  # a version file that does not say what it should


@dataclass(slots=True)
class _Look:
    """What some branches need, by path; why some cannot be followed, by name; and repeated keys."""

    branches: tuple[str, ...]
    needs: dict[str, _Needs] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)


def verify(parts: Parts, *, branch: str | None = None, progress: Progress = lambda _: None) -> VerifyReport:
    """Compare the files of all branches, or of one, with what is recorded about them (V1, V2).

    Raises:
        BranchNotFound: there is no such branch.
        StorageError: something cannot be read, which says nothing about what is in it.
    """
    files = graph_files(parts.root)
    look = _look(parts, files, branch)
    reports = []
    for number, path in enumerate(sorted(look.needs), start=1):
        reports.append(_compare(files, path, look.needs[path]))
        progress(VerifyProgress(number, len(look.needs)))
    unread = tuple(look.unread.values())
    report = VerifyReport(look.branches, tuple(reports), unread, tuple(look.repeated))
    return report if report.is_whole else _looked_at_again(parts, branch, report, look.unread)


def _looked_at_again(
    parts: Parts, branch: str | None, report: VerifyReport, unread: dict[str, str]
) -> VerifyReport:
    """Return a report without what was deleted or folded in the meantime (V4)."""
    files = graph_files(parts.root)
    look = _look(parts, files, branch)
    reports = []
    for file in report.files:
        if not file.status.is_damage:
            reports.append(file)
        elif file.path in look.needs:
            reports.append(_compare(files, file.path, look.needs[file.path]))
        elif look.unread:
            reports.append(file)  # what such a branch needs is unknown: it may be this
    reasons = tuple(reason for name, reason in look.unread.items() if name in unread)
    return VerifyReport(look.branches, tuple(reports), reasons, tuple(look.repeated))


def _look(parts: Parts, files: GraphFiles, branch: str | None) -> _Look:
    chosen = parts.branches.live() if branch is None else (parts.branches.resolve(trimmed_name(branch)),)
    look = _Look(tuple(found.name for found in chosen))
    for found in chosen:
        _follow(parts, files, found, look)
    return look


def verify_place(uri: str, *, branch: str | None = None, progress: Progress = lambda _: None) -> VerifyReport:
    """Verify the graph at a place without opening it (V1).

    Raises:
        GraphNotFound: there is no graph at this place.
        CloneUnfinished: there is a part of a copy of one.
        BranchNotFound: there is no such branch.
        StorageError: something cannot be read, which says nothing about what is in it.
    """
    parts = make_parts(uri)
    refuse_unfinished(parts.adapter, parts.root)
    if not parts.adapter.exists(MANIFEST_DIR):
        raise GraphNotFound(f"no graph at {parts.root.uri}: nothing to verify")
    return verify(parts, branch=branch, progress=progress)


def _follow(parts: Parts, files: GraphFiles, branch: BranchIdentity, look: _Look) -> None:
    """Add what a branch needs, or why its manifest cannot be followed (V3), and keys that it repeats (V5)."""
    dataset = ref_path(MANIFEST_DIR, branch.ref)
    newest = files.newest_version(dataset)
    manifest, address = parts.coordinator.manifest, parts.coordinator.address(branch.ref)
    if newest is not None:
        _add_version(files, dataset, newest, look.needs)
        for item in manifest.noted_sums(address, newest):
            look.needs.setdefault(item.path, _Needs()).sum = item
    handle = None
    try:
        handle = manifest.open_fresh(address)
        copied = read_copied(parts.adapter).of(branch.name)
        recorded = recorded_sums(manifest, handle)
        made_here = recorded_sums(manifest, handle, published_after=copied.at) if copied.at else recorded
        for path, item in made_here.items():
            look.needs.setdefault(path, _Needs()).sum = item
        state = parts.coordinator.advance(branch, handle)
        pinned = state.pinned_versions(copied.floor)
        keys = Counter(manifest.read(handle, columns=["object_id"])["object_id"].to_pylist())
    except (OmnigraphError, ValueError) as error:  # damaged rows may not be JSON, or not text
        look.unread[branch.name] = f"{branch.name}: {error}"
        _add_sums(files, {} if handle is None else sums_still_readable(manifest, handle), look.needs)
        return
    repeated = sorted((str(key), times) for key, times in keys.items() if times > 1)
    look.repeated += [f"{branch.name}: {key!r} is in the manifest {times} times" for key, times in repeated]
    for place, table_ref, version in sorted(pinned, key=str):
        _add_version(files, ref_path(place, table_ref), version, look.needs)
    _add_sums(files, recorded, look.needs)


def _add_sums(files: GraphFiles, sums: Mapping[str, FileSum], needs: dict[str, _Needs]) -> None:
    """Add what is recorded about files that are needed, or are there (V2)."""
    for path, item in sums.items():
        if path in needs or files.length(path) is not None:
            needs.setdefault(path, _Needs()).sum = item


def _add_version(files: GraphFiles, dataset: str, version: int, needs: dict[str, _Needs]) -> None:
    """Add the files of one version; those of a version that does not decode are unknown (V3)."""
    path = f"{dataset}/{version_file_name(version)}"
    need = needs.setdefault(path, _Needs())
    content = files.read(path)
    if content is None:
        return
    try:
        decoded = decode_version(content)
        if decoded.version != version:
            raise HollowContent(f"holds version {decoded.version}")
    except HollowContent:
        need.is_broken = True
        return
    for file in decoded.files:
        found = needs.setdefault(f"{dataset}/{file.path}", _Needs())
        found.length = file.size if found.length is None else found.length


def _compare(files: GraphFiles, path: str, need: _Needs) -> FileReport:
    expected = need.length if need.sum is None else need.sum.length
    found = files.length(path)
    return FileReport(path, _status(files, path, need, expected, found), expected, found)


def _status(
    files: GraphFiles, path: str, need: _Needs, expected: int | None, found: int | None
) -> FileStatus:
    if found is None:
        return FileStatus.MISSING
    if expected is not None and found != expected:
        return FileStatus.LENGTH
    if need.is_broken or (need.sum is not None and files.checksum(path) not in {need.sum.checksum, None}):
        return FileStatus.CHECKSUM
    return FileStatus.OK if need.sum is not None else FileStatus.NOT_RECORDED
