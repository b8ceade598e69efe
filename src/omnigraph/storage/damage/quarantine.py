"""Moving aside what a power cut left of a dataset's newest versions, on a local disk.

Q1  Only unreadable versions above every whole one are moved, and only where nothing proves them durable: in
    full durability they were never acknowledged. A whole version proves those below it: it was made after
    they had been synced.
Q2  Everything else that is hollow is damage: nothing is moved, and the error names the file.
Q3  A file that cannot be read is not a hollow file: permission and device errors are loud, nothing is moved.
Q4  A version is judged by its own files, those that no older version names: it is not hollow because
    something older rotted.
Q5  What no manifest ever named was never acknowledged: above its pin a table may lose whole versions too,
    where they were built on a hollow one.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import StorageError
from omnigraph.core.failpoint import hit
from omnigraph.storage.control.durability import sync_path
from omnigraph.storage.control.links import refuse_link_on
from omnigraph.storage.control.os_errors import storage_error
from omnigraph.storage.files.version_file import (
    VERSIONS_DIR,
    HollowContent,
    NamedFile,
    VersionFile,
    check_file,
    decode_version,
    refuse_special,
    version_file_name,
    version_of_file_name,
)

QUARANTINE_DIR = "__quarantine"
NEWEST_CHECKED_MAX = (
    16  # more commits than one writer makes before it syncs them, compaction retries included
)
LOOKS_MAX = 100  # at a folder that others change at the same time


@dataclass(frozen=True, slots=True)
class HollowVersion:
    """A version to move, and which file of it is damaged, and how."""

    version: int
    reason: str
    culprit: str

    @property
    def file(self) -> str:
        """The version file, inside its dataset."""
        return version_file_name(self.version)


class VersionGone(Exception):
    """A version file went away between listing and reading it."""


def find_hollow(root: str, dataset: str, *, durable: int) -> tuple[HollowVersion, ...]:
    """Return the versions of a manifest or an audit that must be moved aside, newest first (Q1).

    `durable` is the newest version that something proves to be on the disk; 0 if nothing does.

    Raises:
        GraphDamaged: a version that is proven durable is hollow or missing, or no version is whole (Q2).
        StorageError: something cannot be read (Q3).
    """
    return _settled(lambda: _trailing(Path(root, dataset), dataset, durable), dataset)


def find_unpublished(root: str, dataset: str, *, pin: int) -> tuple[HollowVersion, ...]:
    """Return the versions of a table above its pin that must be moved aside, newest first (Q5).

    `pin` is the newest version that a manifest names; 0 if none does.

    Raises:
        GraphDamaged: the pinned version is hollow or missing (Q2).
        StorageError: something cannot be read (Q3).
    """
    return _settled(lambda: _above(Path(root, dataset), dataset, pin), dataset)


def move_to_quarantine(
    root: str, dataset: str, versions: Sequence[int], quarantine_id: str
) -> tuple[str, ...]:
    """Rename version files into `__quarantine/<id>/<dataset>/`; `dataset` is its path inside the graph.

    Returns the new paths inside the graph of what this call moved. Fewer than asked for means that another
    process moved the rest, and that the caller should look again.

    Raises:
        StorageError: the system failed.
    """
    hit("quarantine.pre_move")
    refuse_link_on(Path(root), f"{QUARANTINE_DIR}/{quarantine_id}/{dataset}")
    refuse_link_on(Path(root), f"{dataset}/{VERSIONS_DIR}")
    moved: list[str] = []
    with translated(f"quarantine versions of '{dataset}'"):
        folder = Path(root, QUARANTINE_DIR, quarantine_id, dataset)
        folder.mkdir(parents=True, exist_ok=True)
        for version in versions:
            source = Path(root, dataset, version_file_name(version))
            try:
                source.rename(folder / source.name)
            except FileNotFoundError:
                continue
            moved.append(f"{QUARANTINE_DIR}/{quarantine_id}/{dataset}/{source.name}")
        # Sync where they are now, then where they were: a second power cut must not lose them altogether.
        new_folders = [folder, *folder.parents]
        for synced in new_folders[: new_folders.index(Path(root)) + 1]:
            sync_path(synced)
        sync_path(Path(root, dataset, VERSIONS_DIR))
    return tuple(moved)


def list_versions(folder: Path) -> list[int]:
    """Return the versions of a dataset, newest first; none where there is no dataset.

    Raises:
        StorageError: the folder cannot be read.
    """
    with translated(f"list the versions of '{folder.name}'"):
        try:
            names = [path.name for path in (folder / VERSIONS_DIR).iterdir()]
        except FileNotFoundError:
            return []
    return sorted(
        (version for name in names if (version := version_of_file_name(name)) is not None), reverse=True
    )


def read_version(folder: Path, version: int) -> VersionFile:
    """Return one version, decoded.

    Raises:
        HollowContent: its file is damaged.
        VersionGone: it has no file.
        StorageError: the file cannot be read.
    """
    file = version_file_name(version)
    with translated(f"read '{folder.name}/{file}'"):
        try:
            refuse_special(folder / file)
            data = (folder / file).read_bytes()
        except FileNotFoundError:
            raise VersionGone(f"version {version}") from None
    decoded = decode_version(data)
    if decoded.version != version:
        raise HollowContent(f"holds version {decoded.version}")
    return decoded


def hollow_file(folder: Path, files: Sequence[NamedFile]) -> tuple[str, str] | None:
    """Return the first file that was not written to its end, and what is wrong with it.

    Raises:
        StorageError: one cannot be read.
    """
    for file in files:
        with translated(f"read '{file.path}' of '{folder.name}'"):
            try:
                check_file(folder, file)
            except HollowContent as content:
                return file.path, str(content)
    return None


def version_damage(folder: Path, version: int) -> tuple[str, str] | None:
    """Return a damaged file that a version needs, and its fault; `None` for a whole version.

    Raises:
        VersionGone: it has no file.
        StorageError: something cannot be read, which says nothing about its content.
    """
    try:
        found = read_version(folder, version)
    except HollowContent as content:
        return version_file_name(version), str(content)
    return hollow_file(folder, [*found.files, *found.shared])


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn errors of the system into ours."""
    try:
        yield
    except OSError as error:
        raise storage_error(doing, error) from error


def _settled(look: Callable[[], tuple[HollowVersion, ...]], dataset: str) -> tuple[HollowVersion, ...]:
    for _ in range(LOOKS_MAX):
        try:
            return look()
        except VersionGone:
            continue
    raise StorageError(f"the versions of '{dataset}' change too fast to be checked", kind="transient")


def _trailing(folder: Path, dataset: str, durable: int) -> tuple[HollowVersion, ...]:
    versions = list_versions(folder)
    _refuse_missing(dataset, versions, durable)
    hollow: list[HollowVersion] = []
    for at in range(len(versions)):
        found = _judge(folder, versions, at)
        if found is None:
            return tuple(hollow)
        if found.version <= durable:
            raise _damaged(dataset, found, range(found.version, versions[0] + 1))
        hollow.append(found)
    if hollow and durable > 0:
        raise _damaged(dataset, hollow[-1], range(hollow[-1].version, versions[0] + 1))
    return tuple(hollow)


def _above(folder: Path, dataset: str, pin: int) -> tuple[HollowVersion, ...]:
    versions = list_versions(folder)
    if versions:
        _refuse_missing(dataset, versions, pin)
    above = sum(version > pin for version in versions)
    if pin in versions and (found := _judge(folder, versions, above)) is not None:
        raise _damaged(dataset, found, [pin])
    judged = [_judge(folder, versions, at) for at in range(above)]
    lowest = max((at for at, found in enumerate(judged) if found is not None), default=-1)
    return tuple(
        found or HollowVersion(versions[at], f"is built on version {versions[lowest]}", "")
        for at, found in enumerate(judged[: lowest + 1])
    )


def _judge(folder: Path, versions: Sequence[int], at: int) -> HollowVersion | None:
    """Return what is wrong with a version's own files; `None` for a whole version (Q4)."""
    version = versions[at]
    try:
        decoded = read_version(folder, version)
    except HollowContent as content:
        return HollowVersion(version, str(content), version_file_name(version))
    base = _newest_decodable(folder, versions[at + 1 :])
    known = frozenset[NamedFile]() if base is None else frozenset(base.files)
    found = hollow_file(folder, [file for file in decoded.files if file not in known])
    return None if found is None else HollowVersion(version, found[1], found[0])


def _newest_decodable(folder: Path, versions: Sequence[int]) -> VersionFile | None:
    for version in versions:
        try:
            return read_version(folder, version)
        except HollowContent:
            continue
    return None


def _refuse_missing(dataset: str, versions: Sequence[int], needed: int) -> None:
    newest = versions[0] if versions else 0
    if newest < needed:
        missing = HollowVersion(needed, "is missing", version_file_name(needed))
        raise _damaged(dataset, missing, range(newest + 1, needed + 1))


def _damaged(dataset: str, found: HollowVersion, needed: Sequence[int]) -> GraphDamaged:
    return GraphDamaged(
        file=f"{dataset}/{found.culprit}", reason=found.reason, dataset=dataset, versions=needed
    )
