"""`clone`: a copy of a graph as it was at one moment, on any disk or store.

G1  The copy is what was published when its source was captured, whoever writes meanwhile. Unfinished writes,
    locks, leases, quarantine and head notes do not travel.
G2  Files go byte by byte, and are compared on their way with the lengths and checksums that commits recorded.
    So the copy has the history, the commit ids and the identity of its source, and shares nothing with it.
G3  The copy becomes a graph by one file, the last: the version of main's manifest. Until then it opens for
    nobody, and says what it is.
G4  A run that was killed is continued by the next one: what is there and whole is not copied again. The
    source may be another copy of the same graph by then, written apart from it: names that it would use, too,
    prove nothing.
G5  Nothing of the source is changed, and nothing of a place that holds anything else.
G6  What a deletion or a cleanup takes from the source meanwhile is no damage: the copy is begun anew from
    what is there, and goes on with what it has.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from omnigraph.bulk.connect.progress import ProgressCallback, Stage, silent
from omnigraph.commit.parts import Parts
from omnigraph.core.errors import (
    AlreadyExistsError,
    AlreadyInitialized,
    BadRequest,
    ConflictError,
    StorageError,
)
from omnigraph.core.failpoint import hit
from omnigraph.core.together import each
from omnigraph.core.values import is_count, shown
from omnigraph.history.branches import Branch
from omnigraph.history.copied import COPIED
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.operations.clone.capture import (
    Capture,
    capture,
    is_gone,
    without_deleted,
)
from omnigraph.operations.clone.cut import CutManifest, ending_branches
from omnigraph.operations.clone.file_work import FILES_AT_ONCE, work_on
from omnigraph.operations.clone.journal import JOURNAL, Journal, check_journal, is_shown, take_journal
from omnigraph.operations.clone.needs import NeededFile, Needs, needs_of
from omnigraph.operations.init import refuse_managed
from omnigraph.operations.open import make_parts
from omnigraph.storage.control.durability import Durability, setting_from_environment
from omnigraph.storage.control.file_copy import FilePlace, checksum_of, copy_file, file_place
from omnigraph.storage.control.probe import PROBE, probe_store
from omnigraph.storage.control.stored_files import remove_files
from omnigraph.storage.control.uri import GraphRoot, is_temporary, refuse_file
from omnigraph.storage.files.version_file import renumbered, version_file_name, version_of_file_name
from omnigraph.storage.tables.handle import TableAddress, ref_path
from omnigraph.storage.tables.manifest_table import ManifestTable
from omnigraph.storage.tables.refs import refuse_without_refs
from omnigraph.storage.tables.table import TableStore

# Folders of a dataset whose files have random names. Versions are numbered: each copy counts on by itself.
_RANDOM_NAMES = ("data", "_deletions", "_indices", "_transactions")
ATTEMPTS_MAX = 8  # at a source where branches are deleted and versions cleaned up while they are copied


@dataclass(frozen=True, slots=True)
class CloneResult:
    """A finished copy: what it holds, and how much of it this run has copied."""

    source: str
    target: str
    branches: tuple[str, ...]
    head: str
    files: int
    bytes: int
    files_copied: int
    bytes_copied: int
    unreadable: dict[str, int]  # by branch, how many commits are listed and cannot be read


@dataclass(frozen=True, slots=True)
class _Run:
    """One run: from where to where, and who hears of it."""

    source: Parts
    target: Parts
    files: FilePlace  # of the target
    journal: Journal
    progress: ProgressCallback


def clone(
    source: str,
    target: str,
    *,
    branches: Sequence[str] | None = None,
    at: str | None = None,
    depth: int | None = None,
    durability: Durability | None = None,
    progress: ProgressCallback = silent,
) -> CloneResult:
    """Copy a graph to another place: all of it, or main and some branches, or a branch up to a commit.

    A commit is one of main, unless a branch is chosen with it: then the copy has that branch, and main up to
    its last commit in the history of that one. With a depth only the newest commits of each branch can be
    read in the copy; older ones are listed.

    Raises:
        GraphNotFound: there is no graph at the source.
        BranchNotFound, CommitNotFound: there is no such branch, or it does not show this commit.
        HistoricalVersionReclaimed: a version that the commit shows is gone.
        BadRequest: the choice or the places contradict each other.
        AlreadyInitialized, AlreadyExistsError: the target holds a graph, or something else.
        CloneUnfinished: another copy was begun at the target.
        ConflictError: another run has taken over, or the source moves too fast to be captured.
        GraphDamaged: a file of the source is missing, or is not what its commit wrote.
        StorageError: a store failed; the next run goes on from there.
    """
    if depth is not None and not is_count(depth, 1):
        raise BadRequest(f"the depth of a copy must be a whole number from 1 on, not {shown(depth)}")
    if at is not None:
        branches = ending_branches(branches) or None
    from_parts = make_parts(source)
    to_parts = make_parts(target, durability=durability)
    _check_places(from_parts.root, to_parts.root)
    captured = capture(from_parts, branches=branches, at=at)
    chosen = None if branches is None else tuple(sorted({name.strip() for name in branches}))
    journal = Journal(from_parts.root.uri, captured.genesis, chosen, at, depth, to_parts.new_id())
    files = file_place(to_parts.root, durability or setting_from_environment())
    run = _Run(from_parts, to_parts, files, journal, progress)
    if _take(run):
        return _ended_before(run, captured)
    place = file_place(from_parts.root)
    for left in reversed(range(ATTEMPTS_MAX)):
        lengths = place.lengths()
        try:
            return _copied(run, captured, lengths, depth)
        except StorageError as error:
            if not is_gone(error):
                raise
            later = without_deleted(from_parts, captured)
            if branches is not None or later.versions == captured.versions:
                later = capture(from_parts, branches=branches, at=at)
            if later.versions == captured.versions and lengths.keys() <= place.lengths().keys():
                raise  # nobody has removed anything meanwhile (G6)
            if not left:
                raise _too_fast(from_parts.root) from error
            captured = later
    raise AssertionError("unreachable: the loop returns or raises")


def _too_fast(source: GraphRoot) -> ConflictError:
    return ConflictError(
        f"files of {source.uri} were removed each time that they were copied, by cleanups or deletions of "
        "branches: run the same copy again, which goes on with what it has"
    )


def _check_places(source: GraphRoot, target: GraphRoot) -> None:
    """Refuse a target that no graph may be at, or that overlaps the source (G5)."""
    one, other = f"{source.uri.rstrip('/')}/", f"{target.uri.rstrip('/')}/"
    if one.startswith(other) or other.startswith(one):
        raise BadRequest(f"{target.uri} and the graph {source.uri} overlap: choose a place elsewhere")
    refuse_file(target)
    refuse_managed(target)
    refuse_without_refs(target.uri)


def _take(run: _Run) -> bool:
    """Begin, or go on with, the copy; return whether it is whole already (G4, G5)."""
    parts = run.target
    present = run.files.everything()
    link = min((path for path, is_link in present.items() if is_link), default=None)
    if link is not None:
        raise AlreadyExistsError(f"{parts.root.uri} has a link, '{link}': a copy is written through none")
    if JOURNAL not in present and any(not _is_begun(path) for path in present):
        if parts.adapter.exists(MANIFEST_DIR):
            raise AlreadyInitialized(f"{parts.root.uri} already holds a graph")
        raise AlreadyExistsError(f"{parts.root.uri} is not empty: a graph is copied to a place of its own")
    probe_store(parts.adapter, parts.root)
    is_continued = take_journal(parts.adapter, parts.root, run.journal)
    hit("clone.post_journal_pre_copy")
    if is_continued:
        return is_shown(parts.adapter)
    others = {name for name in run.files.everything() if name != JOURNAL and not _is_begun(name)}
    if others:
        parts.adapter.delete(JOURNAL)
        raise AlreadyExistsError(
            f"{parts.root.uri} holds {min(others)} since a moment ago: nothing is copied"
        )
    return False


def _is_begun(path: str) -> bool:
    """Return whether a file is what a run leaves that dies before there is a journal."""
    return path.startswith(PROBE) or (is_temporary(path) and path.startswith(f"{JOURNAL}#"))


def _ended_before(run: _Run, captured: Capture) -> CloneResult:
    """Finish a run that died behind its last file: others may have written to the copy since.

    Raises:
        AlreadyInitialized: what it copied was written apart from this source (G4).
    """
    ours, theirs = captured.main.state, run.target.coordinator.state()
    is_ahead = theirs.commits.find(ours.head.graph_commit_id) is not None
    if not is_ahead and ours.commits.find(theirs.head.graph_commit_id) is None:
        raise AlreadyInitialized(
            f"{run.target.root.uri} holds a copy of a graph that was written apart from {run.source.root.uri}"
        )
    run.files.finish(run.files.lengths())  # it may have died before its last file was on the disk
    run.target.adapter.delete(JOURNAL)
    return _result(run, captured, {}, (), ())


def _copied(run: _Run, captured: Capture, lengths: Mapping[str, int], depth: int | None) -> CloneResult:
    """Copy tables and branches, then what names them, and the version of main's manifest last (G3)."""
    needs = needs_of(run.source, captured, lengths, depth=depth)
    last = f"{MANIFEST_DIR}/{version_file_name(captured.main.version)}"
    lacking = _lacking(run, [file for file in needs.files if file.path != last])
    _copy_files(run, lacking)
    unneeded = _unneeded(run, captured, needs)
    check_journal(run.target.adapter, run.target.root, run.journal)  # nobody has come after us and made these
    remove_files(run.target.root, unneeded)
    ended = [file for cut in captured.cuts if not cut.branch.is_main for file in _write_cut(run, cut)]
    run.files.finish(file.path for file in (*needs.files, *ended) if file.path != last)
    hit("clone.post_files_pre_control")
    check_journal(run.target.adapter, run.target.root, run.journal)
    _write_control(run, captured, needs)
    hit("clone.post_control_pre_manifest")
    check_journal(run.target.adapter, run.target.root, run.journal)
    shown = _show(run, captured, [file for file in needs.files if file.path == last])
    hit("clone.post_manifest_pre_journal_delete")
    _note(run, captured, needs)
    run.target.adapter.delete(JOURNAL)
    every = {file.path: file for file in (*needs.files, *ended, *shown)}
    return _result(run, captured, needs.unreadable, tuple(every.values()), [*lacking, *ended, *shown])


def _lacking(run: _Run, files: Sequence[NeededFile]) -> list[NeededFile]:
    """Return the files that are not there, or are there with another length or content (G4)."""
    place, source = run.files, file_place(run.source.root)
    present, is_local = place.lengths(), run.target.root.is_local

    def is_there(file: NeededFile) -> bool:
        if present.get(file.path) != file.length:
            return False
        if not is_local and _is_of_one_writer(file.path):
            return True  # a store keeps checksums of its own: what it shows under a name is what was sent
        if file.sum is not None:
            return checksum_of(place, file.path) == file.sum.checksum
        return _is_of_one_writer(file.path) or checksum_of(place, file.path) == checksum_of(source, file.path)

    found = each(is_there, files, at_once=True, most=FILES_AT_ONCE)
    return [file for file, is_found in zip(files, found, strict=True) if not is_found]


def _unneeded(run: _Run, captured: Capture, needs: Needs) -> list[str]:
    """Return version files that an earlier attempt has copied and that the source has lost since (G6).

    What such a version names may not have been copied, and a version that is listed is whole. Those that a
    copy writes itself are not among them: a later run writes them, too.
    """
    needed = {file.path for file in needs.files} | {_version_path(cut) for cut in captured.cuts}
    names = (path for path in run.files.lengths() if path not in needed)
    return [path for path in names if version_of_file_name(path.rpartition("/")[2]) is not None]


def _is_of_one_writer(path: str) -> bool:
    """Return whether nobody else can have written a file of this name: a part of it was drawn at random."""
    return any(f"/{folder}/" in path for folder in _RANDOM_NAMES)


def _copy_files(run: _Run, files: Sequence[NeededFile]) -> None:
    source = file_place(run.source.root)

    def copy(file: NeededFile) -> None:
        hit("clone.before_file")
        copy_file(source, run.files, file.path, length=file.length, expected=file.sum)

    work_on(files, copy, Stage.COPY, run.progress)


def _write_control(run: _Run, captured: Capture, needs: Needs) -> None:
    """Write the schema and the control objects of branches; those of an earlier run's other ones go."""
    adapter, branches = run.target.adapter, run.target.branches
    for name, text in captured.texts.items():
        adapter.write_text(name, text)
    adapter.write_text(COPIED, needs.copied.to_text())
    controls = {one.control.file: one.control for one in captured.branches if one.control is not None}
    _end_others(run.target, controls)
    for control in controls.values():
        adapter.write_text(control.file, control.to_text())
        branches.copies.keep(control.ref, control.file, control.to_text())
    for branch in captured.kept:
        if branch.identity.ref is not None:
            branches.copies.end(branch.identity.ref)


def _end_others(parts: Parts, controls: Mapping[str, Branch]) -> None:
    """End the branches that an earlier run has written and that are deleted since, as a deletion does."""
    for branch in parts.branches.all():
        if controls.get(branch.file) != branch:
            parts.branches.copies.end(branch.ref)
            parts.adapter.delete(branch.file)


def _show(run: _Run, captured: Capture, last: Sequence[NeededFile]) -> list[NeededFile]:
    """Write the version of main's manifest, which makes the copy a graph (G3); return what was written."""
    if captured.cuts:
        written = _write_cut(run, captured.cuts[0])
    else:
        source, written = file_place(run.source.root), list(last)
        for file in written:
            copy_file(source, run.files, file.path, length=file.length, expected=file.sum)
    run.files.finish(file.path for file in written)
    return written


def _write_cut(run: _Run, cut: CutManifest) -> list[NeededFile]:
    """Write a manifest that ends at a commit: its rows, and then the version under its own number."""
    place, written = ref_path(MANIFEST_DIR, cut.branch.ref), []

    def write(path: str, content: bytes) -> None:
        run.files.write(path, iter([content]))
        written.append(NeededFile(path, len(content), None))

    with tempfile.TemporaryDirectory() as folder:
        made = TableAddress(f"{folder}/{MANIFEST_DIR}")
        number = ManifestTable(TableStore()).create(made, cut.rows, cut.stamp)
        for path in sorted(Path(made.uri).glob("data/*")):
            write(f"{place}/data/{path.name}", path.read_bytes())
        run.files.finish([file.path for file in written])  # on the disk before the version that names them
        content = (Path(made.uri) / version_file_name(number)).read_bytes()
        write(_version_path(cut), renumbered(content, cut.version, cut.branch.ref))
    return written


def _version_path(cut: CutManifest) -> str:
    return f"{ref_path(MANIFEST_DIR, cut.branch.ref)}/{version_file_name(cut.version)}"


def _note(run: _Run, captured: Capture, needs: Needs) -> None:
    """Note that the manifests are on the disk, with the checksums of what their newest publishes wrote."""
    target, present = run.target.coordinator, {file.path for file in needs.files}
    for branch in captured.branches if not captured.cuts else ():
        # The note of the source may tell of a publish that came after the look.
        sums = [item for item in branch.noted if item.path in present]
        address, is_synced = target.address(branch.identity.ref), run.target.syncer.is_active
        target.manifest.note(address, branch.version, is_synced=is_synced, sums=sums)


def _result(
    run: _Run,
    captured: Capture,
    unreadable: Mapping[str, int],
    files: Sequence[NeededFile],
    files_copied: Sequence[NeededFile],
) -> CloneResult:
    return CloneResult(
        source=run.source.root.uri,
        target=run.target.root.uri,
        branches=tuple(branch.identity.name for branch in captured.branches),
        head=captured.head,
        files=len(files),
        bytes=sum(file.length for file in files),
        files_copied=len(files_copied),
        bytes_copied=sum(file.length for file in files_copied),
        unreadable={name: count for name, count in unreadable.items() if count},
    )
