"""Moving aside what a power cut left of a dataset's newest versions, on a local disk.

Q1  Only unreadable versions above every readable one are moved: in full durability nobody was told of them.
Q2  A version at or below a published pin is never moved; if it is unreadable, that is loud.
Q3  A file that cannot be read is not a hollow file: permission and device errors are loud, nothing is moved.
Q4  Files that an older readable version names were synced with it, and are not looked at again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from omnigraph.core.errors import StorageError
from omnigraph.core.failpoint import hit
from omnigraph.storage.durability import sync_path
from omnigraph.storage.os_errors import storage_error
from omnigraph.storage.version_file import (
    VERSIONS_DIR,
    HollowContent,
    NamedFile,
    VersionFile,
    check_file,
    decode_version,
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
    """A version to move, and what is wrong with it."""

    version: int
    reason: str

    @property
    def file(self) -> str:
        """The version file, inside its dataset."""
        return version_file_name(self.version)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with a dataset: versions to move, newest first, or one that is broken and must stay."""

    move: tuple[int, ...]
    broken: int | None = None


def decide(states: Sequence[tuple[int, bool]], *, pin: int, has_readable_below: bool) -> Verdict:
    """Say which of the newest versions to move, given whether each is readable (Q1, Q2).

    Where nothing at all is readable there is nothing to go back to, unless the pin is 0: then no version of
    the dataset was ever published, and a dataset without versions is what was there before.
    """
    newest_readable = max((version for version, readable in states if readable), default=None)
    unreadable = sorted((version for version, readable in states if not readable), reverse=True)
    is_last_resort = newest_readable is None and not has_readable_below and pin > 0
    for version in unreadable:
        is_under_readable = newest_readable is not None and version < newest_readable
        if version <= pin or is_under_readable or is_last_resort:
            return Verdict((), broken=version)
    return Verdict(tuple(unreadable))


def find_hollow(dataset_path: str, ref: str | None = None, *, pin: int) -> tuple[HollowVersion, ...]:
    """Return the versions of a dataset, or of one ref of it, that must be moved aside, newest first.

    `pin` is the newest version that is known to be published; 0 says that none is.

    Raises:
        StorageError: a version that must stay is hollow, or something cannot be read (Q2, Q3).
    """
    folder = Path(dataset_path) if ref is None else Path(dataset_path) / "tree" / ref
    for _ in range(LOOKS_MAX):
        try:
            return _find(folder, pin)
        except _Moved:
            continue
    raise StorageError(f"the versions of '{folder.name}' change too fast to be checked", kind="transient")


def move_to_quarantine(
    root: str, dataset: str, versions: Sequence[HollowVersion], quarantine_id: str
) -> tuple[str, ...]:
    """Rename version files into `__quarantine/<id>/<dataset>/`; `dataset` is its path inside the graph.

    Returns the new paths inside the graph of what this call moved. Fewer than asked for means that another
    process was faster with the rest, and that the caller should look again.

    Raises:
        StorageError: the system failed.
    """
    hit("quarantine.pre_move")
    moved: list[str] = []
    with _translated(f"quarantine versions of '{dataset}'"):
        folder = Path(root, QUARANTINE_DIR, quarantine_id, dataset)
        folder.mkdir(parents=True, exist_ok=True)
        for hollow in versions:
            source = Path(root, dataset, hollow.file)
            try:
                source.rename(folder / source.name)
            except FileNotFoundError:
                continue
            moved.append(f"{QUARANTINE_DIR}/{quarantine_id}/{dataset}/{source.name}")
        # First where they are now, then where they were: a second power cut must not lose them altogether.
        new_folders = [folder, *folder.parents]
        for synced in new_folders[: new_folders.index(Path(root)) + 1]:
            sync_path(synced)
        sync_path(Path(root, dataset, VERSIONS_DIR))
    return tuple(moved)


class _Moved(Exception):
    """A version file went away between listing and reading it."""


def _find(folder: Path, pin: int) -> tuple[HollowVersion, ...]:
    versions = _list_versions(folder)
    window = [version for version in versions[:NEWEST_CHECKED_MAX] if version >= pin] or versions[:1]
    base = _newest_decodable(folder, versions[len(window) :])
    known = frozenset[NamedFile]() if base is None else frozenset(base.files)
    reasons: dict[int, str] = {}
    for version in reversed(window):
        try:
            decoded = _read_version(folder, version)
            for file in decoded.files:
                if file not in known:
                    with _translated(f"read '{file.path}' of '{folder.name}'"):
                        check_file(folder, file)
        except HollowContent as content:
            reasons[version] = str(content)
        else:
            known = frozenset(decoded.files)
    states = [(version, version not in reasons) for version in window]
    verdict = decide(states, pin=pin, has_readable_below=base is not None)
    if verdict.broken is not None:
        name = f"{folder.name}/{version_file_name(verdict.broken)}"
        reason = f"{name} is hollow ({reasons[verdict.broken]}) and must not be moved aside"
        raise StorageError(f"{reason}: version {pin} is published", kind="permanent")
    return tuple(HollowVersion(version, reasons[version]) for version in verdict.move)


def _list_versions(folder: Path) -> list[int]:
    with _translated(f"list the versions of '{folder.name}'"):
        try:
            names = [path.name for path in (folder / VERSIONS_DIR).iterdir()]
        except FileNotFoundError:
            return []
    return sorted(
        (version for name in names if (version := version_of_file_name(name)) is not None), reverse=True
    )


def _newest_decodable(folder: Path, versions: Sequence[int]) -> VersionFile | None:
    for version in versions:
        try:
            return _read_version(folder, version)
        except HollowContent:
            continue
    return None


def _read_version(folder: Path, version: int) -> VersionFile:
    file = version_file_name(version)
    with _translated(f"read '{folder.name}/{file}'"):
        try:
            data = (folder / file).read_bytes()
        except FileNotFoundError:
            raise _Moved from None
    decoded = decode_version(data)
    if decoded.version != version:
        raise HollowContent(f"holds version {decoded.version}")
    return decoded


@contextmanager
def _translated(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(doing, error) from error
