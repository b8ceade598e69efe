"""One table: its unused forks, its old versions, and the files that no version names.

V1  A fork goes only if nothing names it and it is older than the grace period; children before parents.
V2  A version goes only if it is beyond all limits and nothing retains it; whatever the library says.
V3  A file that no version names goes when it is older than the grace period: a writer may yet name it. What
    a live load has noted stays, however old it is.
V4  What will go is noted first (`retention`), and version files go before what they name.
V5  From a table behind a link, or with a link inside, nothing goes: it may be another graph's.
V6  A fork that somebody names and that the table does not list has lost its listing: nothing of the table
    goes. The library keeps what a fork shares with its source only if the fork is listed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from omnigraph.commit.parts import Parts
from omnigraph.commit.reclaim import ORPHAN_GRACE_S, is_old_ref
from omnigraph.commit.retention import Limits, VersionFiles, hinted_version, note_reclaimed, version_files
from omnigraph.commit.trim import remove_versions
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import InvariantViolation
from omnigraph.core.failpoint import hit
from omnigraph.operations.cleanup.model import CleanupRow
from omnigraph.operations.cleanup.retained import Retained
from omnigraph.operations.progress import Advance
from omnigraph.storage.control.graph_files import graph_files
from omnigraph.storage.control.links import link_error
from omnigraph.storage.control.stored_files import StoredFile, remove_emptied, remove_files
from omnigraph.storage.control.uri import is_temporary
from omnigraph.storage.files.version_file import VERSIONS_DIR
from omnigraph.storage.tables.handle import ref_file, ref_path
from omnigraph.storage.tables.reclaim import Reclaimable, find_reclaimable, named_deletions
from omnigraph.storage.tables.table import RefInfo

# A preview that never became the newest version, and a version that a killed writer had begun.
_NEVER_SHOWN = re.compile(r"d[0-9]+\.manifest|\.tmp[^/]*")


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What one cleanup knows when it goes through the tables.

    `noted` are the files of live loads, `links` are all links in the graph's folder.
    """

    parts: Parts
    retained: Retained
    limits: Limits
    now: int
    noted: frozenset[str] = frozenset()
    takes_loose_files: bool = True
    is_dry_run: bool = False
    links: tuple[str, ...] = ()

    def link_at(self, location: str) -> str | None:
        """Return a link that leads to a folder, or lies in it; `None` without any (V5)."""
        for link in self.links:
            if f"{location}/".startswith(f"{link}/") or link.startswith(f"{location}/"):
                return link
        return None

    def refuse_links(self, location: str) -> None:
        """Refuse to remove something from a folder with links.

        Raises:
            StorageError: it is one, lies behind one, or has one.
        """
        link = self.link_at(location)
        if link is not None:
            raise link_error(link)

    def is_litter_of_age(self, file: StoredFile) -> bool:
        """Return whether a file is older than the grace period."""
        return self.now - file.written_at >= ORPHAN_GRACE_S * 1_000_000


@dataclass(frozen=True, slots=True)
class _Unused:
    """What goes from a table: whole refs and folders, versions with what only they name, and loose files."""

    refs: tuple[str, ...]
    folders: tuple[str, ...]
    versions: Mapping[str, Reclaimable]  # by dataset
    loose: tuple[str, ...]


def clean_table(
    cleaning: Cleaning, location: str, files: Mapping[str, StoredFile], advance: Advance
) -> CleanupRow:
    """Remove what a table no longer needs, or count it; `files` are all that lie below its location.

    `advance` is told how many of them have been dealt with, fork by fork.

    Raises:
        OmnigraphError: it stopped there; what is gone is gone, and the next cleanup goes on.
    """
    hit("cleanup.table_gc")
    cleaning.refuse_links(location)
    known = cleaning.retained.tables.get(location)
    label = location if known is None else known.table_key
    if known is None or known.ended_at is not None:
        gone = _clean_folder(cleaning, location, label, files)
        if gone is not None:
            return gone
    unused = _unused(cleaning, location, files, advance)
    if not cleaning.is_dry_run:
        _remove(cleaning.parts, location, unused, advance)
    return _row(label, unused, files, location)


def leftover_refs(cleaning: Cleaning, location: str) -> tuple[list[RefInfo], list[str]]:
    """Return the refs of a table or manifest, and those that are left over, children before parents (V1)."""
    parts, retained = cleaning.parts, cleaning.retained
    refs = list(parts.store.list_refs(parts.address_of(location, None)))
    hit("cleanup.reconcile_fork")
    unused = {ref.name for ref in refs if ref.name not in retained.refs and is_old_ref(parts, ref.name)}
    parents = {ref.name: ref.parent for ref in refs}
    ordered: list[str] = []
    while True:
        remaining = parents.keys() - set(ordered)
        free = unused & remaining - {parents[name] for name in remaining}
        if not free:
            return refs, ordered
        ordered += sorted(free)


def leftover_trees(
    cleaning: Cleaning, location: str, refs: Iterable[RefInfo], files: Iterable[str]
) -> tuple[str, ...]:
    """Return folders of refs that are not there: of forks that were made or dropped by halves.

    Raises:
        GraphDamaged: a fork that somebody names is among them (V6).
    """
    start, listed = f"{location}/tree/", {ref.name for ref in refs}
    _refuse_unlisted(cleaning.retained, location, listed, files)
    names = {path.removeprefix(start).partition("/")[0] for path in files if path.startswith(start)}
    stray = names - listed - cleaning.retained.refs
    return tuple(f"{start}{name}" for name in sorted(stray) if is_old_ref(cleaning.parts, name))


def _refuse_unlisted(retained: Retained, location: str, listed: Set[str], files: Iterable[str]) -> None:
    start, versions = f"{location}/tree/", f"/{VERSIONS_DIR}/"
    inside = (path.removeprefix(start) for path in files if path.startswith(start))
    forks = {path.partition(versions)[0] for path in inside if versions in path}
    for ref in sorted(forks & retained.refs - listed):
        raise GraphDamaged(file=ref_file(location, ref), reason="is missing", dataset=location)


def _unused(cleaning: Cleaning, location: str, files: Mapping[str, StoredFile], advance: Advance) -> _Unused:
    parts = cleaning.parts
    refs, leftover = leftover_refs(cleaning, location)
    stray = leftover_trees(cleaning, location, refs, files)
    versions: dict[str, Reclaimable] = {}
    staying: dict[str, list[int]] = {}
    loose: list[str] = []
    for ref in (None, *(ref.name for ref in refs if ref.name not in leftover)):
        dataset = ref_path(location, ref)
        found = version_files(parts.root, dataset)
        if not found.versions:
            continue
        chosen = cleaning.retained.removable(
            (location, ref),
            found,
            cleaning.limits,
            now=cleaning.now,
            hinted=hinted_version(parts.adapter, found),
        )
        reclaimable = find_reclaimable(parts.store, parts.address_of(location, ref), chosen - {found.newest})
        _refuse_retained(cleaning.retained, (location, ref), found, reclaimable)
        versions[dataset] = reclaimable
        staying[dataset] = [version for version in found.versions if version not in reclaimable.versions]
        loose += _loose(cleaning, found, reclaimable, files)
        advance(len(found.versions))
    loose += _loose_deletions(cleaning, staying, versions, files)
    return _Unused(tuple(leftover), stray, versions, tuple(dict.fromkeys(loose)))


def _loose_deletions(
    cleaning: Cleaning,
    staying: Mapping[str, Iterable[int]],
    versions: Mapping[str, Reclaimable],
    files: Mapping[str, StoredFile],
) -> list[str]:
    """Return the old deletion files that no version names which stays (V3)."""
    folders = tuple(f"{dataset}/_deletions/" for dataset in staying)
    going = {f"{dataset}/{path}" for dataset, found in versions.items() for path in found.named}
    old = [
        path
        for path, file in files.items()
        if path.startswith(folders) and path not in cleaning.noted and cleaning.is_litter_of_age(file)
    ]
    if not cleaning.takes_loose_files or not set(old) - going:
        return []
    named = named_deletions(graph_files(cleaning.parts.root), staying)
    return [path for path in old if path not in named and path not in going]


def _refuse_retained(
    retained: Retained, place: tuple[str, str | None], found: VersionFiles, reclaimable: Reclaimable
) -> None:
    """Make sure once more, of what is about to go, that nothing of it is retained (V2)."""
    floor, exact = retained.floors.get(place, found.newest), retained.exact.get(place, set())
    going = reclaimable.versions.keys()
    if any(version >= floor for version in going) or not exact.isdisjoint(going):
        raise InvariantViolation(f"{place[0]}: cleanup was about to remove a version that is needed")


def loose_files(
    cleaning: Cleaning, location: str, ref: str | None, files: Mapping[str, StoredFile]
) -> list[str]:
    """Return the files of a table, manifest or ref that no version names, and that are old enough (V3)."""
    found = version_files(cleaning.parts.root, ref_path(location, ref))
    if not found.versions:
        return []
    address = cleaning.parts.address_of(location, ref)
    return _loose(cleaning, found, find_reclaimable(cleaning.parts.store, address, ()), files)


def _loose(
    cleaning: Cleaning, found: VersionFiles, reclaimable: Reclaimable, files: Mapping[str, StoredFile]
) -> list[str]:
    if not cleaning.takes_loose_files:
        return []
    dataset = found.dataset
    unnamed = [f"{dataset}/{path}" for path in reclaimable.loose]
    never_shown = [path for path in found.files if _NEVER_SHOWN.fullmatch(path.rpartition("/")[2])]
    unfinished = [
        path
        for path in files
        if path.startswith(f"{dataset}/")
        and "/tree/" not in path.removeprefix(dataset)
        and is_temporary(path.rpartition("/")[2])
    ]
    known = {**files, **found.files}
    return [
        path
        for path in sorted({*unnamed, *never_shown, *unfinished})
        if path in known and path not in cleaning.noted and cleaning.is_litter_of_age(known[path])
    ]


def _remove(parts: Parts, location: str, unused: _Unused, advance: Advance) -> None:
    parts.check_writer()
    for ref in unused.refs:
        parts.refs.drop(parts.address_of(location, ref))
    for folder in unused.folders:
        parts.adapter.delete_prefix(folder)
    going = {dataset: found for dataset, found in unused.versions.items() if found.versions}
    if going:
        below = {dataset: max(found.versions) + 1 for dataset, found in going.items()}
        note_reclaimed(parts.adapter, below)  # V4
    for dataset, found in going.items():
        remove_versions(parts, dataset, found)
        parts.store.forget_versions(parts.address_of(location, _ref(location, dataset)), found.versions)
        advance(len(found.named))
    remove_files(parts.root, unused.loose)
    named = [f"{dataset}/{path}" for dataset, found in going.items() for path in found.named]
    remove_emptied(parts.root, sorted({_own_folder(path) for path in (*named, *unused.loose)} - {""}))


def _own_folder(path: str) -> str:
    """Return the folder that a file of an index or a blob has to itself; an empty text for other files."""
    folder = path.rpartition("/")[0]
    return folder if folder.rpartition("/")[0].endswith(("/_indices", "/data")) else ""


def _clean_folder(
    cleaning: Cleaning, location: str, label: str, files: Mapping[str, StoredFile]
) -> CleanupRow | None:
    """Remove the folder of a table that no branch has any more; `None` if something in it is still needed.

    One that every branch has dropped goes with its last version. One that no branch knows, left by a change
    of the schema that came to nothing, goes after the grace period.
    """
    parts, retained = cleaning.parts, cleaning.retained
    datasets = sorted(
        {path.partition(f"/{VERSIONS_DIR}/")[0] for path in files if f"/{VERSIONS_DIR}/" in path}
    )
    if any(place == location for place, _ in (*retained.floors, *retained.exact)):
        return None
    below: dict[str, int] = {}
    for dataset in datasets:
        place, found = (location, _ref(location, dataset)), version_files(parts.root, dataset)
        below[dataset] = found.newest + 1
        removable = retained.removable(place, found, cleaning.limits, now=cleaning.now, hinted=0)
        if location in retained.tables and removable != set(found.versions):
            return None
    if location not in retained.tables and not all(map(cleaning.is_litter_of_age, files.values())):
        return CleanupRow(label)
    if not cleaning.is_dry_run:
        parts.check_writer()
        note_reclaimed(parts.adapter, below)  # V4
        remove_files(parts.root, sorted(path for path in files if f"/{VERSIONS_DIR}/" in path))
        hit("cleanup.post_versions_pre_files")
        parts.adapter.delete_prefix(location)
        for dataset in datasets:
            parts.store.forget(parts.address_of(location, _ref(location, dataset)))
    sizes = sum(file.size for file in files.values())
    versions = sum(len(_version_names(dataset, files)) for dataset in datasets)
    return CleanupRow(label, sizes, versions, len(files))


def _ref(location: str, dataset: str) -> str | None:
    return dataset.removeprefix(location).removeprefix("/tree/") or None


def _version_names(dataset: str, files: Iterable[str]) -> Sequence[str]:
    """Return the version files of a dataset among some paths."""
    start = f"{dataset}/{VERSIONS_DIR}/"
    return [path for path in files if path.startswith(start) and path.endswith(".manifest")]


def _row(label: str, unused: _Unused, files: Mapping[str, StoredFile], location: str) -> CleanupRow:
    trees = tuple(f"{location}/tree/{ref}/" for ref in unused.refs) + tuple(f"{f}/" for f in unused.folders)
    in_trees = [file for path, file in files.items() if trees and path.startswith(trees)]
    found = unused.versions.values()
    sizes = [size for one in found for size in (*one.versions.values(), *one.named.values())]
    sizes += [files[path].size for path in unused.loose if path in files] + [file.size for file in in_trees]
    return CleanupRow(
        label,
        bytes_removed=sum(sizes),
        old_versions_removed=sum(len(one.versions) for one in found),
        files_removed=len(sizes),
    )
