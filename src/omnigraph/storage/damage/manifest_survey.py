"""What can still be read of a damaged manifest, on a local disk.

A version needs its own file and every file that it names. Rows are read file by file, bypassing the
library's idea of a dataset: a file that is whole gives its rows, whatever happened to its neighbours.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from lance.file import LanceFileReader

from omnigraph.core.damage import VERSIONS_MAX, GraphDamaged
from omnigraph.core.errors import StorageError
from omnigraph.storage.damage.quarantine import (
    VersionGone,
    find_hollow,
    hollow_file,
    list_versions,
    read_version,
)
from omnigraph.storage.files.version_file import HollowContent, NamedFile, version_file_name
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.lance_errors import LANCE_ERRORS
from omnigraph.storage.versions.newest import MARK, read_mark


@dataclass(frozen=True, slots=True)
class ManifestSurvey:
    """One manifest: its newest version, the newest one that is whole, and what is wrong above that.

    `damage` is the damaged file of the newest version and its fault, `None` if that version is whole.
    """

    newest: int
    readable: int | None
    damage: tuple[str, str] | None

    @property
    def versions(self) -> range:
        """The versions that need something damaged."""
        return range((self.readable or 0) + 1, self.newest + 1)


def survey(address: TableAddress) -> ManifestSurvey:
    """Look at the versions of a manifest, newest first, down to one that is whole.

    Raises:
        StorageError: something cannot be read, which says nothing about its content.
    """
    folder = folder_of(address)
    versions = list_versions(folder)
    newest = max([read_mark(folder).acknowledged, *versions[:1]])
    if versions and newest - versions[0] > VERSIONS_MAX:  # repair counts what is lost one by one
        raise StorageError(
            f"'{folder.name}/{MARK}' says that there was version {newest}, and the newest that is there is "
            f"{versions[0]}: put the graph back from a copy, or remove the note if it is not its own",
            kind="permanent",
        )
    damage: tuple[str, str] | None = None
    if not versions or versions[0] < newest:
        damage = (version_file_name(newest), "is missing")
    known: dict[NamedFile, tuple[str, str] | None] = {}
    for version in versions:
        found = _damage_of(folder, version, known)
        if found is None:
            return ManifestSurvey(newest, version, damage)
        damage = damage or found
    return ManifestSurvey(newest, None, damage)


def damage_at(address: TableAddress, version: int) -> tuple[str, str] | None:
    """Return a damaged file that a version needs, and its fault; `None` for a whole version.

    Raises:
        StorageError: something cannot be read, which says nothing about its content.
    """
    return _damage_of(folder_of(address), version, {})


def rows_above(address: TableAddress, version: int) -> pa.Table | None:
    """Return the rows that came with the versions above the given one, as far as their files are whole.

    The newest version file that can be read says which files those are: what was given up by going back is
    not among them. `version` must be readable. `None` means that no such file is whole.

    Raises:
        StorageError: something cannot be read.
    """
    folder = folder_of(address)
    base = _files(folder, version)
    newer = (_files(folder, number) for number in list_versions(folder) if number > version)
    wanted = next((files for files in newer if files), frozenset[NamedFile]()) - base
    files = [file for file in wanted if file.path.startswith("data/")]
    paths = sorted(file.path for file in files if hollow_file(folder, [file]) is None)
    tables = [rows for path in paths if (rows := _read(folder / path)) is not None]
    return pa.concat_tables(tables) if tables else None


def refuse_damage(address: TableAddress, failed: StorageError) -> None:
    """Say what is wrong with a manifest that could not be read, if its files show it.

    Raises:
        GraphDamaged: a file that published history needs is gone or hollow.
        StorageError: a power cut left the newest version hollow; a read-write open moves it, losing nothing.
    """
    if address.local_path is None or failed.kind in {"transient", "configuration"}:
        return
    root, dataset = root_and_dataset(address)
    if not list_versions(folder_of(address)):
        return  # there is no manifest at all, which the error says
    try:
        hollow = find_hollow(str(root), dataset, durable=proven(folder_of(address)))
        found = survey(address)
    except StorageError as error:
        if isinstance(error, GraphDamaged):
            raise error from failed
        return  # what cannot be read is not hollow: the first error says more
    if hollow:
        remedy = "open the graph read-write to move it aside; it was never acknowledged"
        raise StorageError(
            f"a power cut left the newest version of {dataset} hollow: {remedy}", kind="permanent"
        ) from failed
    if found.damage is not None:
        file, reason = found.damage
        raise GraphDamaged(
            file=_inside(dataset, file), reason=reason, dataset=dataset, versions=found.versions
        ) from failed


def refuse_missing(address: TableAddress, newest: int) -> None:
    """Refuse a manifest whose newest version file is gone: what is left would pass for the newest one.

    Raises:
        GraphDamaged: acknowledged versions are missing.
    """
    if address.local_path is None:
        return
    mark = read_mark(address.local_path).acknowledged
    # It may have been published since the look at the versions; its note comes after it.
    if newest < mark and not (address.local_path / version_file_name(mark)).exists():
        _, dataset = root_and_dataset(address)
        raise GraphDamaged(
            file=f"{dataset}/{version_file_name(mark)}",
            reason="is missing",
            dataset=dataset,
            versions=range(newest + 1, mark + 1),
        )


def proven(folder: Path, *more: int) -> int:
    """Return the newest version that a manifest certainly had: the one noted, or the one it begins with."""
    return max([read_mark(folder).acknowledged, *list_versions(folder)[-1:], *more], default=0)


def root_and_dataset(address: TableAddress) -> tuple[Path, str]:
    """Return the graph's folder, and the path of a manifest inside it."""
    folder = folder_of(address)
    root = folder_of(TableAddress(address.uri)).parent
    return root, str(folder.relative_to(root))


def folder_of(address: TableAddress) -> Path:
    """Return the folder of a manifest on this disk."""
    folder = address.local_path
    assert folder is not None, "only local manifests are looked at file by file"
    return folder


def _damage_of(
    folder: Path, version: int, known: dict[NamedFile, tuple[str, str] | None]
) -> tuple[str, str] | None:
    name = version_file_name(version)
    try:
        found = read_version(folder, version)
    except HollowContent as content:
        return name, str(content)
    except VersionGone:
        return name, "is missing"
    for file in (*found.files, *found.shared):
        if file not in known:
            known[file] = hollow_file(folder, [file])
        if known[file] is not None:
            return known[file]
    return None


def _files(folder: Path, version: int) -> frozenset[NamedFile]:
    try:
        return frozenset(read_version(folder, version).files)
    except (HollowContent, VersionGone):
        return frozenset()


def _read(path: Path) -> pa.Table | None:
    try:
        return LanceFileReader(str(path)).read_all().to_table()
    except LANCE_ERRORS:
        return None  # counted by the caller: its version has no commit among the rows


def _inside(dataset: str, file: str) -> str:
    """Return the path of a file inside the graph; a fork names shared ones by `..`."""
    parts: list[str] = []
    for part in f"{dataset}/{file}".split("/"):
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)
