"""What is in quarantine, and putting it back.

F1  Only what fits goes back: directly above the newest version present, and whole. A version number that has
    been taken since stays taken.
F2  The oldest version goes back first: after a crash the rest still fits.
F3  Versions of a table go back after the manifest that names them. One that no manifest names was undone by
    recovery long ago, and would only block every write.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from omnigraph.commit.parts import RECOVERIES_DATASET, Parts
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import AlreadyExistsError, ConflictError, NotFoundError, UnsupportedError
from omnigraph.core.ids import ulid_millis
from omnigraph.core.temporal import moment_of_micros
from omnigraph.core.values import shown
from omnigraph.history.identity import MAIN_BRANCH
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.storage.control.durability import sync_path
from omnigraph.storage.control.links import refuse_link_on
from omnigraph.storage.damage.quarantine import QUARANTINE_DIR, hollow_file, list_versions, translated
from omnigraph.storage.files.version_file import (
    VERSIONS_DIR,
    HollowContent,
    decode_version,
    version_file_name,
    version_of_file_name,
)
from omnigraph.storage.versions.newest import write_mark


@dataclass(frozen=True, slots=True)
class QuarantinedVersions:
    """Versions of one dataset, by its path inside the graph, oldest first."""

    dataset: str
    versions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One folder of the quarantine: when it was filled after a power cut, and with what.

    `obstacle` says why it cannot be put back; it is None if it can.
    """

    quarantine_id: str
    created_at_micros: int
    datasets: tuple[QuarantinedVersions, ...]
    obstacle: str | None

    @property
    def created_at(self) -> datetime:
        """When it was filled, in UTC."""
        return moment_of_micros(self.created_at_micros)


def list_quarantined(parts: Parts) -> tuple[Quarantined, ...]:
    """Return what is in quarantine, newest first; nothing on an object store.

    Raises:
        StorageError: the folders cannot be read.
    """
    root = parts.local_root
    if root is None:
        return ()
    with translated("list the quarantine"):
        return tuple(found for path in _folders(root) if (found := _describe(parts, root, path)).datasets)


def restore_quarantined(parts: Parts, quarantine_id: str) -> Quarantined:
    """Put a folder of the quarantine back; return what it held. The caller holds the gates and locks.

    Raises:
        UnsupportedError: the graph is on an object store.
        NotFoundError: there is no such folder.
        AlreadyExistsError: something was published over it (F1).
        ConflictError: no published version names it (F3).
        GraphDamaged: what would come back is itself damaged (F1).
        StorageError: the system failed; the same call continues from there.
    """
    root = parts.local_root
    if root is None:
        raise UnsupportedError("there is no quarantine on an object store")
    # Looked for among the names that are there: what is given may lead elsewhere, or be no name at all.
    folder = next((path for path in _folders(root) if path.name == quarantine_id), None)
    if folder is None:
        raise NotFoundError(f"there is nothing in quarantine under the id {shown(quarantine_id)}")
    found = _describe(parts, root, folder)
    if not found.datasets:
        raise NotFoundError(f"there is nothing in quarantine under the id {shown(quarantine_id)}")
    for part in found.datasets:
        _refuse_misfit(parts, root, folder, part)
    for part in found.datasets:
        refuse_link_on(root, f"{QUARANTINE_DIR}/{quarantine_id}/{part.dataset}")
        refuse_link_on(root, f"{part.dataset}/{VERSIONS_DIR}")
    for part in found.datasets:
        _put_back(root, folder, part)
    parts.adapter.delete_prefix(f"{QUARANTINE_DIR}/{quarantine_id}")
    parts.coordinator.forget()
    return found


def _folders(root: Path) -> list[Path]:
    """Return the folders of the quarantine, newest first."""
    with translated("list the quarantine"):
        try:
            found = list((root / QUARANTINE_DIR).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted((path for path in found if path.is_dir()), reverse=True)


def _describe(parts: Parts, root: Path, folder: Path) -> Quarantined:
    versions: dict[str, list[int]] = {}
    with translated("list the quarantine"):
        files = list(folder.rglob("*.manifest"))
    for path in files:
        version = version_of_file_name(path.name)
        if version is not None:
            versions.setdefault(str(path.parent.relative_to(folder)), []).append(version)
    datasets = tuple(
        QuarantinedVersions(dataset, tuple(sorted(found))) for dataset, found in sorted(versions.items())
    )
    return Quarantined(
        folder.name,
        (ulid_millis(folder.name) or 0) * 1_000,
        datasets,
        _obstacle(parts, root, folder, datasets),
    )


def _obstacle(parts: Parts, root: Path, folder: Path, datasets: Sequence[QuarantinedVersions]) -> str | None:
    try:
        for part in datasets:
            _refuse_misfit(parts, root, folder, part)
    except (ConflictError, AlreadyExistsError, GraphDamaged) as error:
        return str(error)
    return None


def _refuse_misfit(parts: Parts, root: Path, folder: Path, part: QuarantinedVersions) -> None:
    """Refuse what something was published over, what is damaged (F1), and what no manifest names (F3)."""
    present = list_versions(root / part.dataset)
    newest, first, last = (present[0] if present else 0), part.versions[0], part.versions[-1]
    if newest + 1 != first:
        raise AlreadyExistsError(
            f"version {first} of {part.dataset} cannot be put back: version {newest} is the newest there"
        )
    if not part.dataset.startswith((MANIFEST_DIR, RECOVERIES_DATASET)) and not _is_named(parts, part):
        raise ConflictError(f"no published version names version {last} of {part.dataset}")
    file = folder / part.dataset / Path(version_file_name(last)).name
    damage: tuple[str, str] | None
    try:
        decoded = decode_version(file.read_bytes())
        damage = hollow_file(root / part.dataset, [*decoded.files, *decoded.shared])
    except HollowContent as content:
        damage = (version_file_name(last), str(content))
    if damage is not None:
        raise GraphDamaged(
            file=f"{part.dataset}/{damage[0]}", reason=damage[1], dataset=part.dataset, versions=[last]
        )


def _is_named(parts: Parts, part: QuarantinedVersions) -> bool:
    """Return whether the newest manifest of some branch pins a table at the version or above it."""
    place, _, ref = part.dataset.partition("/tree/")
    branches, _ = parts.branches.readable()
    for branch in (MAIN_BRANCH, *(found.identity for found in branches)):
        for entry in parts.coordinator.state(branch).tables.entries():
            is_it = (entry.location, entry.pin.ref or "") == (place, ref)
            if is_it and entry.version >= part.versions[-1]:
                return True
    return False


def _put_back(root: Path, folder: Path, part: QuarantinedVersions) -> None:
    with translated(f"put back versions of '{part.dataset}'"):
        for version in part.versions:
            target = root / part.dataset / version_file_name(version)
            (folder / part.dataset / target.name).rename(target)
            sync_path(root / part.dataset / VERSIONS_DIR)
    if part.dataset.startswith(MANIFEST_DIR):
        write_mark(root / part.dataset, part.versions[-1], is_synced=False)
