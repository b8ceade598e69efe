"""Branches as they were when a past commit was the newest one, for copies that end there.

K1  The rows of a manifest that ends at a commit are those published up to it, and a head that names it.
K2  A branch that ends at a commit travels with main up to the last commit of main in the history of that one.
    So nothing in the copy knows what the branch did later: it will use those numbers for commits of its own.
K3  A commit is refused, before anything is written, if the branch has it from the one that it was made from,
    or if a version that it shows is gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.commit.parts import Parts
from omnigraph.core.errors import BadRequest, CommitNotFound
from omnigraph.history.branches import Branch, trimmed_name
from omnigraph.history.commits import GraphCommit
from omnigraph.history.fold import where_at_most, where_equal, where_not_in
from omnigraph.history.identity import MAIN, BranchIdentity, branch_name
from omnigraph.history.lineage import ChainedLog, Lineage
from omnigraph.history.manifest_rows import HEAD, READ_COLUMNS, head_row, rows_table
from omnigraph.history.state import ManifestState
from omnigraph.operations.reclaimed import reclaimed_entry
from omnigraph.storage.control.graph_files import graph_files
from omnigraph.storage.files.version_file import version_file_name
from omnigraph.storage.tables.handle import ref_path


@dataclass(frozen=True, slots=True)
class CutManifest:
    """The rows of a branch's manifest up to a commit, and the number of the version that will hold them."""

    branch: BranchIdentity
    rows: pa.Table
    stamp: dict[str, str]
    version: int


def ending_branches(branches: Sequence[str] | None) -> list[str]:
    """Return the branch beside main in a copy that ends at a commit, if one is chosen.

    Raises:
        BadRequest: several are, or a name is no text.
    """
    others = sorted({trimmed_name(name) for name in branches or ()} - {MAIN})
    if len(others) > 1:
        raise BadRequest(
            f"a copy that ends at a commit has main and the branch of that commit: give one of "
            f"{', '.join(others)}, not {len(others)}"
        )
    return others


def commit_of(state: ManifestState, control: Branch | None, at: str) -> GraphCommit:
    """Return a commit that was made on a branch.

    Raises:
        CommitNotFound: the branch does not show it.
        BadRequest: the branch has it from another one (K3).
    """
    commit = state.commits.find(at)
    if commit is None:
        raise CommitNotFound(at)
    if control is not None and commit.manifest_version <= control.parent_manifest_version:
        made_on = branch_name(commit.manifest_branch)
        raise BadRequest(
            f"commit '{at}' was made on '{made_on}', before '{control.name}' was made: copy it "
            + ("without a branch" if made_on == MAIN else f"with branch '{made_on}'")
        )
    return commit


def last_of_main(main: ManifestState, branch: ManifestState, commit: GraphCommit) -> GraphCommit:
    """Return the last commit of main in the history of a commit of another branch (K2)."""
    own, other = ChainedLog(main.commits), ChainedLog(branch.commits, branch=branch.branch.name)
    lineage = Lineage((own, other))
    while any(lineage.place_merges(log) for log in (own, other)):
        pass
    place = other.find(commit.graph_commit_id)
    assert place is not None, "the branch shows the commit"
    found = (main.commits.find(behind.commit_id) for behind in lineage.reach([place]).values())
    return max((each for each in found if each is not None), key=lambda each: each.lineage_key)


def cut_at(
    parts: Parts, branch: BranchIdentity, version: int, commit: GraphCommit, *, least: int = 0
) -> tuple[ManifestState, CutManifest]:
    """Return a branch as it was when a commit was its newest one (K1), from a version of its manifest.

    The version that will hold it has the number of the commit, or `least` if that is greater.

    Raises:
        HistoricalVersionReclaimed: a version that the commit shows is gone (K3).
    """
    manifest, address = parts.coordinator.manifest, parts.coordinator.address(branch.ref)
    handle = manifest.open_at(address, version)
    rows = manifest.read(handle)
    head = head_row(branch.name, commit.graph_commit_id, commit.parent_commit_id)
    own = rows_table([head]).cast(rows.schema)
    others = where_not_in(where_equal(rows, "object_type", HEAD), own)
    rows = pa.concat_tables([where_at_most(rows, "published_at", commit.manifest_version), others, own])
    number = max(commit.manifest_version, least)
    state = ManifestState(branch, 0).with_rows(rows.select(READ_COLUMNS), version=number, fragments={})
    _refuse_reclaimed(parts, state)
    return state, CutManifest(branch, rows, handle.schema_metadata, number)


def _refuse_reclaimed(parts: Parts, state: ManifestState) -> None:
    files = graph_files(parts.root)
    for entry in state.snapshot().entries.values():
        path = f"{ref_path(entry.location, entry.pin.ref)}/{version_file_name(entry.version)}"
        if files.length(path) is None:
            raise reclaimed_entry(parts, entry, state.head.graph_commit_id)
