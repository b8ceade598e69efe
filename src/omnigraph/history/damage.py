"""A damaged manifest in users' terms: which commits need the file, and what can be done."""

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import StorageError
from omnigraph.history.fold import where_above, where_equal
from omnigraph.history.identity import MAIN, TableIdentity
from omnigraph.history.manifest_rows import COMMIT
from omnigraph.history.state import ManifestState
from omnigraph.storage.damage.manifest_survey import ManifestSurvey, rows_above, survey
from omnigraph.storage.tables.handle import TableAddress


@contextmanager
def damage_explained(address: TableAddress, branch: str) -> Iterator[None]:
    """Add to the error of a damaged manifest the commits that need the file, and the way out."""
    try:
        yield
    except GraphDamaged as error:
        raise explained(error, address, branch) from error


@contextmanager
def table_damage_explained(uri: str, state: ManifestState, identity: TableIdentity) -> Iterator[None]:
    """Add to the error of a damaged table the commit that pinned it, and the way out."""
    try:
        yield
    except GraphDamaged as error:
        pin = state.tables.pins.get(identity)
        commit = None if pin is None else state.commits.head_at(pin.published_at)
        if pin is None or commit is None:
            raise
        raise GraphDamaged(
            file=error.file,
            reason=error.reason,
            dataset=error.dataset,
            versions=error.versions,
            commits=(commit.graph_commit_id,),
            readable=pin.published_at - 1,
            remedy=_remedy(uri, pin.published_at - 1, state.branch.name),
        ) from error


def explained(error: GraphDamaged, address: TableAddress, branch: str) -> GraphDamaged:
    """Return the error with everything that the manifest's files still reveal."""
    if address.local_path is None:
        return error
    try:
        found = survey(address)
        commits = _commits(address, found)
    except StorageError:
        return error  # the second look failed: the first error says what is wrong
    return GraphDamaged(
        file=error.file,
        reason=error.reason,
        dataset=error.dataset,
        versions=tuple(found.versions) or error.versions,
        commits=commits,
        readable=found.readable,
        remedy=_way_out(address, found, branch),
    )


def _commits(address: TableAddress, found: ManifestSurvey) -> tuple[str, ...]:
    """Return the commits above the newest whole version whose rows can still be read, newest first."""
    rows = None if found.readable is None else rows_above(address, found.readable)
    if rows is None:
        return ()
    commits = where_above(where_equal(rows, "object_type", COMMIT), "table_version", found.readable or 0)
    ids = commits.sort_by([("table_version", "descending")])["object_id"].to_pylist()
    return tuple(dict.fromkeys(str(commit_id) for commit_id in ids))


def _way_out(address: TableAddress, found: ManifestSurvey, branch: str) -> str:
    if found.readable is None:
        return "put the file back from a copy; no older version is whole"
    root = TableAddress(address.uri).local_path
    assert root is not None, "a survey is made of local files"
    return _remedy(str(root.parent), found.readable, branch)


def _remedy(uri: str, version: int, branch: str) -> str:
    where = f"{uri} --to {version}" + ("" if branch == MAIN else f" --branch {branch}")
    return (
        f"put the file back from a copy; or give up what needs it with 'omnigraph repair {where}', "
        "which first says what would be lost"
    )
