"""Every file that live branches need, or that a commit recorded, compared with what is on the disk.

V2  A version is needed while a pin of a live branch names it, present or past, but not below the branch's
    floor. What it names must exist with the length that it gives. What a commit recorded must have that
    length and that checksum; in a copy, what commits from before it recorded may be missing if no needed
    version names it.
V3  One damaged file hides no other: what cannot be followed beyond it is reported, and the rest is compared.
V4  Others may write meanwhile: what looks damaged is looked at again, by what live branches need then. Only
    what both looks find is damage.
V5  A key is in a manifest once; nothing but the publisher makes sure of that, so it is counted here.
V6  What a cleanup has noted and removed is not missing; what no version needs since then is not asked for.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from posixpath import normpath

from omnigraph.commit.parts import RECOVERIES_DATASET, Parts
from omnigraph.commit.recovery.audit import noted_audit_sums
from omnigraph.core.errors import OmnigraphError
from omnigraph.history.branches import trimmed_name
from omnigraph.history.copied import read_copied
from omnigraph.history.identity import BranchIdentity
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.history.recorded_sums import recorded_sums, sums_still_readable
from omnigraph.operations.progress import TableProgressCallback, Tables
from omnigraph.operations.verify.control_files import retention_as_far_as_readable
from omnigraph.operations.verify.report import (
    FileReport,
    FileStatus,
    FindingKind,
    VerifyFinding,
)
from omnigraph.storage.control.graph_files import GraphFiles, graph_files
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.files.version_file import (
    VERSIONS_DIR,
    HollowContent,
    decode_version,
    version_file_name,
    version_of_file_name,
)
from omnigraph.storage.tables.handle import ref_file, ref_path


@dataclass(slots=True)
class _Needs:
    """What a file must be: a length where a version gives one, a sum where a commit recorded one."""

    length: int | None = None
    sum: FileSum | None = None
    is_broken: bool = False  # a version file, or the listing of a ref, that does not say what it should
    is_named: bool = False  # by a version that is needed


@dataclass(slots=True)
class _Look:
    """What some branches need, by path; why some cannot be followed, by name; and repeated keys."""

    branches: tuple[str, ...]
    needs: dict[str, _Needs] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # of the tables at their places
    reclaimed_below: Mapping[str, int] = field(default_factory=dict)  # by dataset (V6)


@dataclass(frozen=True, slots=True)
class ComparedFiles:
    """What became of the files of some branches.

    `needed` are the paths of all files that a present or past pin needs, or that a commit recorded.
    """

    branches: tuple[str, ...]
    files: tuple[FileReport, ...]
    unread: tuple[str, ...]
    repeated: tuple[str, ...]
    needed: frozenset[str]

    def findings(self) -> Iterator[VerifyFinding]:
        """Yield what is wrong."""
        for reason in self.unread:
            branch, _, why = reason.partition(": ")
            yield VerifyFinding.of(FindingKind.MANIFEST, f"branch {branch}", why)
        for reason in self.repeated:
            branch, _, what = reason.partition(": ")
            yield VerifyFinding.of(FindingKind.REPEATED_KEY, f"branch {branch}", what)
        for file in self.files:
            if file.status.is_damage:
                yield VerifyFinding.of_file(file.path, _told(file))


def compare_files(parts: Parts, branch: str | None, progress: TableProgressCallback) -> ComparedFiles:
    """Compare the files of all branches, or of one, with what is recorded about them (V2).

    Raises:
        BranchNotFound: there is no such branch.
        StorageError: something cannot be read, which says nothing about what is in it.
    """
    files = graph_files(parts.root)
    look = _look(parts, files, branch)
    reports = list(_compared(files, look, progress))
    is_whole = not look.unread and not look.repeated
    if is_whole and not any(report.status.is_damage for report in reports):
        return ComparedFiles(look.branches, tuple(reports), (), (), frozenset(look.needs))
    return _looked_at_again(parts, branch, reports, look)


def _compared(files: GraphFiles, look: _Look, progress: TableProgressCallback) -> Iterator[FileReport]:
    """Yield what became of each file, table by table."""
    counts = Counter(map(_dataset_of, look.needs))
    tables = Tables("verify", counts, progress, unit="files", stage="files", names=look.names)
    for dataset, paths in groupby(sorted(look.needs), key=_dataset_of):
        with tables.at(dataset) as advance:
            for path in paths:
                yield _compare(files, path, look.needs[path])
                advance(1)


def _dataset_of(path: str) -> str:
    """Return the folder that has a file: of a table, with all of its forks, or of the manifests."""
    first, *rest = path.split("/")
    return f"{first}/{rest[0]}" if first in {"nodes", "edges"} else first


def _looked_at_again(
    parts: Parts, branch: str | None, reports: list[FileReport], before: _Look
) -> ComparedFiles:
    """Return what both looks find: not what was deleted or folded in the meantime (V4)."""
    files = graph_files(parts.root)
    look = _look(parts, files, branch)
    kept = []
    for file in reports:
        if not file.status.is_damage:
            kept.append(file)
        elif file.path in look.needs:
            kept.append(_compare(files, file.path, look.needs[file.path]))
        elif look.unread:
            kept.append(file)  # what such a branch needs is unknown: it may be this
    unread = tuple(reason for name, reason in look.unread.items() if name in before.unread)
    needed = frozenset((*before.needs, *look.needs))
    return ComparedFiles(look.branches, tuple(kept), unread, tuple(look.repeated), needed)


def _told(file: FileReport) -> str:
    match file.status:
        case FileStatus.MISSING:
            return "is missing"
        case FileStatus.LENGTH:
            return f"has {file.found_length} bytes instead of {file.length}"
        case _:
            return "does not hold what its commit wrote"


def _look(parts: Parts, files: GraphFiles, branch: str | None) -> _Look:
    chosen = parts.branches.live() if branch is None else (parts.branches.resolve(trimmed_name(branch)),)
    look = _Look(tuple(found.name for found in chosen), reclaimed_below=retention_as_far_as_readable(parts))
    for found in chosen:
        _follow(parts, files, found, look)
    if branch is None:
        _add_audit(parts, files, look.needs)
    gone = [path for path, need in look.needs.items() if _is_reclaimed(look, files, path, need)]
    for path in gone:
        del look.needs[path]
    return look


def _is_reclaimed(look: _Look, files: GraphFiles, path: str, need: _Needs) -> bool:
    """Return whether a file is gone with versions that a cleanup removed (V6)."""
    dataset, _, name = path.rpartition(f"/{VERSIONS_DIR}/")
    version = version_of_file_name(name)
    if version is not None:
        below = look.reclaimed_below.get(dataset, 0)
        return version < below and files.length(path) is None
    if "/_refs/" in path:  # the listing of a fork that went with its last version, or with its branch
        return not need.is_named and files.length(path) is None
    places = (path.rpartition(f"/{folder}/")[0] for folder in ("data", "_deletions", "_indices"))
    is_cleaned = any(place in look.reclaimed_below for place in places if place)
    return is_cleaned and not need.is_named and files.length(path) is None


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
        look.names |= {entry.location: entry.table_key for entry in state.tables.entries()}
        pinned = state.pinned_versions(copied.floor)
        keys = Counter(manifest.read(handle, columns=["object_id"])["object_id"].to_pylist())
    except (OmnigraphError, ValueError) as error:  # damaged rows may not be JSON, or not text
        look.unread[branch.name] = f"{branch.name}: {error}"
        _add_sums(files, {} if handle is None else sums_still_readable(manifest, handle), look.needs)
        return
    repeated = sorted((str(key), times) for key, times in keys.items() if times > 1)
    look.repeated += [f"{branch.name}: {key!r} is in the manifest {times} times" for key, times in repeated]
    _add_listing(files, MANIFEST_DIR, branch.ref, look.needs)
    for place, table_ref, version in sorted(pinned, key=str):
        if _add_version(files, ref_path(place, table_ref), version, look.needs):
            _add_listing(files, place, table_ref, look.needs)
    _add_sums(files, recorded, look.needs)


def _add_audit(parts: Parts, files: GraphFiles, needs: dict[str, _Needs]) -> None:
    """Add the newest version of the audit, with what was noted about its files."""
    newest = files.newest_version(RECOVERIES_DATASET)
    if newest is None:
        return
    _add_version(files, RECOVERIES_DATASET, newest, needs)
    for item in noted_audit_sums(parts.adapter):
        if item.path in needs:
            needs[item.path].sum = item


def _add_sums(files: GraphFiles, sums: Mapping[str, FileSum], needs: dict[str, _Needs]) -> None:
    """Add what is recorded about files that are needed, or are there (V2)."""
    for path, item in sums.items():
        if path in needs or files.length(path) is not None:
            needs.setdefault(path, _Needs()).sum = item


def _add_listing(files: GraphFiles, dataset: str, ref: str | None, needs: dict[str, _Needs]) -> None:
    """Add the file by which a dataset lists a ref: without it a cleanup takes what the ref shares.

    That of a manifest is recorded by no commit, and is added only if something is wrong with it.
    """
    if ref is None:
        return
    path = ref_file(dataset, ref)
    if path in needs and needs[path].is_named:
        return
    content = files.read(path)
    is_whole = content is not None and _is_json(content)
    if is_whole and dataset == MANIFEST_DIR:
        return
    need = needs.setdefault(path, _Needs())
    need.is_named = True
    need.is_broken = content is not None and not is_whole


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def _add_version(files: GraphFiles, dataset: str, version: int, needs: dict[str, _Needs]) -> bool:
    """Add the files of one version; those of a version that does not decode are unknown (V3).

    Returns whether the version has a file.
    """
    path = f"{dataset}/{version_file_name(version)}"
    need = needs.setdefault(path, _Needs())
    content = files.read(path)
    if content is None:
        return False
    try:
        decoded = decode_version(content)
        if decoded.version != version:
            raise HollowContent(f"holds version {decoded.version}")
    except HollowContent:
        need.is_broken = True
        return True
    named = [(f"{dataset}/{file.path}", file.size) for file in decoded.files]
    shared = [(normpath(f"{dataset}/{file.path}"), file.size) for file in decoded.shared]
    for name, size in (*named, *shared):
        found = needs.setdefault(name, _Needs())
        found.is_named = True
        found.length = size if found.length is None else found.length
    return True


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
