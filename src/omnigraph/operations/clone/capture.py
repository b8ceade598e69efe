"""One moment of a graph: the newest version of every branch, as they were together.

A1  All versions were the newest ones at one instant. They are looked at twice, and equal looks have such an
    instant between them. Otherwise a branch could show commits that the branch it was made from does not.
A2  Nothing is written and no lock is taken: a writer never waits for it, and a read-only place will do.
A3  A branch that is deleted afterwards, before its files were copied, is left out: what others have of it
    they have as from any deleted branch.
A4  Only what is published counts: sidecars, and what unfinished writes have put into tables, are not seen.
A5  Deleted branches are looked at first. What is there later may be a branch that was made since, and what it
    starts from is newer than what the copy shows of main.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.commit.parts import Parts
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import (
    BranchNotFound,
    ConflictError,
    GraphNotFound,
    StorageError,
    UnsupportedError,
)
from omnigraph.history.branches import Branch, trimmed_name
from omnigraph.history.contract import (
    SCHEMA_IR,
    Contract,
    check_against_manifest,
    contract_of,
    current_contract,
)
from omnigraph.history.copied import Copied, read_copied
from omnigraph.history.identity import MAIN, MAIN_BRANCH, BranchIdentity
from omnigraph.history.manifest_rows import MANIFEST_DIR, READ_COLUMNS
from omnigraph.history.numbers import NUMBERS_FILE
from omnigraph.history.recorded_sums import recorded_sums
from omnigraph.history.stamp import supported_stamp
from omnigraph.history.state import ManifestState
from omnigraph.operations.clone.cut import CutManifest, commit_of, cut_at, ending_branches, last_of_main
from omnigraph.storage.files.sums import FileSum

LOOKS_MAX = 64  # a look takes less than a commit, so that a few are enough beside any number of writers


@dataclass(frozen=True, slots=True, eq=False)
class CapturedBranch:
    """A branch at the captured moment; `control` is its control object, which main has not."""

    identity: BranchIdentity
    control: Branch | None
    version: int  # of its manifest
    state: ManifestState
    sums: dict[str, FileSum]  # what commits recorded about files
    noted: tuple[FileSum, ...] = ()  # what the newest publish wrote, which the next one records


@dataclass(frozen=True, slots=True)
class Capture:
    """A graph at one moment: main, then the other branches by name."""

    texts: dict[str, str]  # of the schema files, by name
    branches: tuple[CapturedBranch, ...]
    copied: Copied  # what the graph has of one that it was copied from itself
    cuts: tuple[CutManifest, ...] = ()  # of each branch, where the copy ends at a commit
    kept: tuple[CapturedBranch, ...] = ()  # deleted branches whose commits two others may meet in

    @property
    def main(self) -> CapturedBranch:
        """The branch that every graph has."""
        return self.branches[0]

    @property
    def head(self) -> str:
        """The commit that a copy ends at, else the newest one of main."""
        return self.branches[-1 if self.cuts else 0].state.head.graph_commit_id

    @property
    def versions(self) -> dict[BranchIdentity, int]:
        """The version of each branch."""
        return {branch.identity: branch.version for branch in self.branches}

    @property
    def genesis(self) -> str:
        """What identifies the graph."""
        return self.main.state.commits.genesis_id


def capture(parts: Parts, *, branches: Sequence[str] | None = None, at: str | None = None) -> Capture:
    """Return a graph as it is now (A1), with some of its branches beside main.

    With a commit it is main up to that one, or a branch up to it and main as far as its history has it.

    Raises:
        GraphNotFound: there is no graph.
        BranchNotFound, CommitNotFound: there is no such branch, or it does not show this commit.
        BadRequest: the commit is of another branch than the chosen one.
        HistoricalVersionReclaimed: a version that the commit shows is gone.
        UnsupportedError: a branch has an earlier format.
        ConflictError: branches keep moving.
        GraphDamaged: a branch was lost, or a manifest is damaged.
        FormatVersionError: this build does not read the format.
    """
    if not parts.adapter.exists(MANIFEST_DIR):
        raise GraphNotFound(f"no graph at {parts.root.uri}: nothing to copy")
    contract = current_contract(parts.adapter, parts.coordinator, may_write=False)
    copied = read_copied(parts.adapter)
    wanted = branches if at is None else ending_branches(branches)
    earlier = _all_refs(parts) if wanted is None else {}
    versions = _at_one_moment(parts, wanted)
    found = tuple(_read_live(parts, versions, may_vanish=branches is None))
    if at is not None:
        ended, cuts = zip(*_ended(parts, found, at), strict=True)
        return Capture(_schema_texts(parts, contract, ended[0]), ended, copied, cuts)
    kept = tuple(_read_deleted(parts, earlier, found))
    return Capture(_schema_texts(parts, contract, found[0]), found, copied, kept=kept)


def _schema_texts(parts: Parts, contract: Contract, main: CapturedBranch) -> dict[str, str]:
    """Return the schema files that fit main as it was captured, and the counter of numbers.

    The schema may be another one than that of the files: an older one, or one that came in between.
    """
    if contract.texts[SCHEMA_IR] != main.state.schema.text:
        contract = contract_of(parts.coordinator, main.state)
    check_against_manifest(contract, main.state.snapshot())
    numbers = parts.adapter.read_text_if_exists(NUMBERS_FILE)
    return contract.texts | ({} if numbers is None else {NUMBERS_FILE: numbers})


def without_deleted(parts: Parts, captured: Capture) -> Capture:
    """Return a captured graph without the branches that were deleted since (A3), as they were then (A5)."""
    live = tuple(branch for branch in captured.branches if parts.branches.is_live(branch.identity))
    gone = tuple(branch for branch in captured.branches if branch not in live)
    return replace(captured, branches=live, kept=(*captured.kept, *gone))


def is_gone(error: StorageError) -> bool:
    """Say whether an error is about something that is not there, and may have been a moment ago."""
    return error.kind == "not_found" or (isinstance(error, GraphDamaged) and error.reason == "is missing")


_Look = tuple[tuple[Branch | None, int], ...]


def _at_one_moment(parts: Parts, wanted: Sequence[str] | None) -> _Look:
    """Return the control object and newest version of main and of the wanted branches (A1)."""
    before: _Look | None = None
    for _ in range(LOOKS_MAX):
        after = _look(parts, wanted)
        if after and after == before:
            return after
        before = after
    raise ConflictError(f"the branches of {parts.root.uri} move too fast to be looked at together: try again")


def _look(parts: Parts, wanted: Sequence[str] | None) -> _Look:
    """Return what is there now; nothing if a branch was deleted meanwhile."""
    if wanted is None:
        parts.branches.copies.refuse_lost()
        named: tuple[Branch, ...] = parts.branches.all()
    else:
        names = sorted({trimmed_name(name) for name in wanted} - {MAIN})
        named = tuple(parts.branches.require(name) for name in names)
    controls = [None, *(replace(branch, ending_version=None) for branch in named)]
    addresses = [parts.coordinator.address(_identity(control).ref) for control in controls]
    try:
        versions = parts.store.latest_versions(addresses)
    except StorageError as error:
        if error.kind != "not_found":
            raise
        if all(parts.branches.is_live(branch.identity) for branch in named):
            raise
        return ()
    return tuple(zip(controls, versions, strict=True))


def _identity(control: Branch | None) -> BranchIdentity:
    return MAIN_BRANCH if control is None else control.identity


def _read_live(parts: Parts, look: _Look, *, may_vanish: bool) -> Iterator[CapturedBranch]:
    """Yield the branches of a look, without those that are deleted meanwhile (A3)."""
    for control, version in look:
        identity = _identity(control)
        try:
            yield _read(parts, identity, control, version)
        except StorageError as error:
            if not is_gone(error) or parts.branches.is_live(identity):
                raise
            if not may_vanish:
                raise BranchNotFound(identity.name) from error


def _read(parts: Parts, branch: BranchIdentity, control: Branch | None, version: int) -> CapturedBranch:
    manifest, address = parts.coordinator.manifest, parts.coordinator.address(branch.ref)
    handle = manifest.open_at(address, version)
    stamp = supported_stamp(handle.schema_metadata)
    if stamp < INTERNAL_SCHEMA_VERSION:
        where = f"branch '{branch.name}' of {parts.root.uri}"
        raise UnsupportedError(f"{where} has an earlier format: write to it once, which brings it up")
    rows = manifest.read(handle, columns=READ_COLUMNS)
    state = ManifestState(branch, 0).with_rows(rows, version=version, fragments={})
    noted = manifest.noted_sums(address, version)
    return CapturedBranch(branch, control, version, state, recorded_sums(manifest, handle), noted)


def _ended(
    parts: Parts, found: Sequence[CapturedBranch], at: str
) -> Iterator[tuple[CapturedBranch, CutManifest]]:
    """Yield main as it was when a commit was made, and the branch that it was made on, if that is another."""
    main, branch = found[0], found[-1]
    commit = commit_of(branch.state, branch.control, at)
    ends = {branch.identity: (commit, 0)}
    if branch.control is not None:
        # A branch that was made from main says at which of its versions, and main counts on from there.
        least = 0 if branch.control.parent_branch is not None else branch.control.parent_manifest_version
        ends[main.identity] = last_of_main(main.state, branch.state, commit), least
    for one in found:
        end, least = ends[one.identity]
        state, cut = cut_at(parts, one.identity, one.version, end, least=least)
        yield replace(one, version=cut.version, state=state), cut


def _all_refs(parts: Parts) -> dict[str, int]:
    """Return the newest version of every branch whose manifest is there, deleted ones too, by ref (A5)."""
    found = {}
    for info in parts.store.list_refs(parts.coordinator.address()):
        with suppress(StorageError):  # nothing keeps what a deleted branch left behind
            found[info.name] = parts.store.latest_version(parts.coordinator.address(info.name))
    return found


def _read_deleted(
    parts: Parts, refs: Mapping[str, int], live: Sequence[CapturedBranch]
) -> Iterator[CapturedBranch]:
    """Yield the deleted branches that can still be read: live ones may meet in their commits."""
    for ref in refs.keys() - {branch.identity.ref for branch in live}:
        with suppress(StorageError, BranchNotFound):
            yield _read(parts, BranchIdentity(f"({ref})", ref), None, refs[ref])
