"""`check-copy`: whether two graphs are the same, and where not.

X1  Nothing is written, and neither graph is opened for writing; each is looked at as it is at one moment.
X2  History is compared by rows: branches, heads, commits, and the versions of tables that they pin.
X3  Files are those that the second graph needs. They must have the length that they have in the first, and on
    a disk the checksum that a commit recorded; on request all are read on both sides.
X4  What the second graph says it left behind, when it was copied, is no difference. Nor is a version of the
    past that neither has any more, as a cleanup or a hard drop leaves both.
X5  A copy that ends at a commit is compared with the source as it was at that commit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from omnigraph.bulk.connect.progress import ProgressCallback, Stage, silent
from omnigraph.commit.parts import Parts
from omnigraph.core.errors import StorageError
from omnigraph.history.contract import SCHEMA_IR
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.operations.clone.capture import Capture, CapturedBranch, capture
from omnigraph.operations.clone.file_work import work_on
from omnigraph.operations.clone.journal import refuse_unfinished
from omnigraph.operations.clone.needs import NeededFile, needs_and_lacks
from omnigraph.operations.open import make_parts
from omnigraph.storage.control.file_copy import FilePlace, checksum_of, file_place
from omnigraph.storage.control.uri import refuse_file

COMMITS_NAMED_MAX = 5  # of those that only one graph has; the count says how many there are


class DifferenceKind(StrEnum):
    """What differs between two graphs."""

    GENESIS = "genesis"  # they do not begin with the same commit
    SCHEMA = "schema"
    BRANCH = "branch"  # only one has it
    HEAD = "head"
    COMMITS = "commits"  # only one has some
    PINS = "pins"  # the same commits, with other versions of tables
    MISSING = "missing"  # a file that the second graph needs and one of them lacks
    LENGTH = "length"
    CONTENT = "content"


@dataclass(frozen=True, slots=True)
class CopyDifference:
    """One difference: of what, and what each of the two has."""

    kind: DifferenceKind
    what: str
    source: str | None
    target: str | None


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What a comparison found, and how much was compared."""

    source: str
    target: str
    branches: tuple[str, ...]
    commits: int
    files: int
    bytes: int
    differences: tuple[CopyDifference, ...]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def check_copy(
    source: str,
    target: str,
    *,
    branches: Sequence[str] | None = None,
    at: str | None = None,
    deep: bool = False,
    progress: ProgressCallback = silent,
) -> CopyReport:
    """Compare two graphs: all branches, or main and some (X1), or with the first one as it was then (X5).

    Raises:
        GraphNotFound: there is no graph at one of the places.
        CloneUnfinished: one of them is not whole yet.
        BranchNotFound, CommitNotFound: the source has no such branch, or it does not show this commit.
        BadRequest: the commit is of another branch than the chosen one.
        HistoricalVersionReclaimed: a version that the commit shows is gone from the source.
        GraphDamaged: a manifest cannot be read.
        StorageError: a store failed.
    """
    first, second = _captured(source, branches, at), _captured(target)
    chosen = {branch.identity.name for branch in first.capture.branches}
    found = _chosen(second.capture, None if branches is None else chosen)
    differences = [*_history(first.capture, found)]
    lengths = first.place.lengths(), second.place.lengths()
    needed, lacking = needs_and_lacks(second.parts, found, lengths[1])
    files = [file for file in needed if not file.path.startswith(f"{MANIFEST_DIR}/")]
    differences += [
        CopyDifference(DifferenceKind.MISSING, path, _if(path in lengths[0]), None)
        for path in lacking
        if any(path in side for side in lengths)  # X4
    ]
    differences += _files(first, second, files, lengths[0], deep=deep, progress=progress)
    return CopyReport(
        source=first.parts.root.uri,
        target=second.parts.root.uri,
        branches=tuple(branch.identity.name for branch in found.branches),
        commits=len({*_commits(found.branches)}),
        files=len(files),
        bytes=sum(file.length for file in files),
        differences=tuple(differences),
    )


@dataclass(frozen=True, slots=True)
class _Side:
    parts: Parts
    capture: Capture
    place: FilePlace


def _captured(uri: str, branches: Sequence[str] | None = None, at: str | None = None) -> _Side:
    parts = make_parts(uri)
    refuse_file(parts.root)
    refuse_unfinished(parts.adapter, parts.root)
    return _Side(parts, capture(parts, branches=branches, at=at), file_place(parts.root))


def _chosen(found: Capture, names: set[str] | None) -> Capture:
    """Return a graph without the branches that were not asked for."""
    if names is None:
        return found
    return replace(found, branches=tuple(one for one in found.branches if one.identity.name in names))


def _history(first: Capture, second: Capture) -> Iterator[CopyDifference]:
    """Yield what differs in the rows of two graphs (X2)."""
    if first.genesis != second.genesis:
        yield CopyDifference(DifferenceKind.GENESIS, "first commit", first.genesis, second.genesis)
    if first.texts.get(SCHEMA_IR) != second.texts.get(SCHEMA_IR):
        yield CopyDifference(DifferenceKind.SCHEMA, SCHEMA_IR, None, None)
    ours, theirs = ({branch.identity.name: branch for branch in side.branches} for side in (first, second))
    for name in sorted(ours.keys() ^ theirs.keys()):
        yield CopyDifference(DifferenceKind.BRANCH, name, _if(name in ours), _if(name in theirs))
    for name in sorted(ours.keys() & theirs.keys()):
        yield from _branch(name, ours[name], theirs[name])


def _branch(name: str, first: CapturedBranch, second: CapturedBranch) -> Iterator[CopyDifference]:
    heads = (first.state.head.graph_commit_id, second.state.head.graph_commit_id)
    if heads[0] != heads[1]:
        yield CopyDifference(DifferenceKind.HEAD, name, *heads)
    ours, theirs = set(_commits([first])), set(_commits([second]))
    if ours != theirs:
        yield CopyDifference(DifferenceKind.COMMITS, name, _named(ours - theirs), _named(theirs - ours))
    elif first.state.pinned_versions() != second.state.pinned_versions():
        yield CopyDifference(DifferenceKind.PINS, name, None, None)


def _commits(branches: Iterable[CapturedBranch]) -> Iterator[str]:
    for branch in branches:
        yield from map(str, branch.state.commits.rows()["object_id"].to_pylist())


def _named(commits: set[str]) -> str | None:
    """Name a few commits, newest first, and say how many there are."""
    if not commits:
        return None
    shown = ", ".join(sorted(commits, reverse=True)[:COMMITS_NAMED_MAX])
    return f"{len(commits)} more: {shown}" + (", …" if len(commits) > COMMITS_NAMED_MAX else "")


def _if(is_there: bool) -> str | None:
    return "there" if is_there else None


def _files(
    first: _Side,
    second: _Side,
    files: Sequence[NeededFile],
    lengths: Mapping[str, int],
    *,
    deep: bool,
    progress: ProgressCallback,
) -> list[CopyDifference]:
    """Return what differs in files, by path (X3); `lengths` are those of the first graph."""

    def compare(file: NeededFile) -> CopyDifference | None:
        return _compared(first, second, file, lengths.get(file.path), deep=deep)

    found = [one for one in work_on(files, compare, Stage.COMPARE, progress) if one is not None]
    return sorted(found, key=lambda difference: difference.what)


def _compared(
    first: _Side, second: _Side, file: NeededFile, length: int | None, *, deep: bool
) -> CopyDifference | None:
    if length is None:
        return CopyDifference(DifferenceKind.MISSING, file.path, None, _if(True))
    if length != file.length:
        return CopyDifference(DifferenceKind.LENGTH, file.path, str(length), str(file.length))
    sums = [_sum(side, file, deep=deep) for side in (first, second)]
    recorded = None if file.sum is None else file.sum.checksum
    known = {found for found in (*sums, recorded) if found is not None}
    return None if len(known) < 2 else CopyDifference(DifferenceKind.CONTENT, file.path, sums[0], sums[1])


def _sum(side: _Side, file: NeededFile, *, deep: bool) -> str | None:
    """Return the checksum of a file of one side, where it is worth reading."""
    if not deep and (file.sum is None or not side.parts.root.is_local):
        return None
    try:
        return checksum_of(side.place, file.path)
    except StorageError as error:
        if error.kind != "not_found":
            raise
        return "gone"
