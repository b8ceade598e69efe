"""Which versions of a table or manifest are old, and the note of what cleanup has removed.

A1  A version ages from the moment it was replaced, not from when it was made: before that moment it was what
    everybody read. The newest one never ages.
A2  From the version that the library's hint names on, no number is left out: whoever looks for the newest
    version goes on from there. So nothing from that version on is old.
A3  What will be removed is noted first: a version that is missing below the noted number was reclaimed, any
    other one was lost. `verify` tells them apart by it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.core.errors import InvariantViolation, StorageError
from omnigraph.core.values import read_json
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.control.stored_files import StoredFile, stored_files
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.files.version_file import VERSIONS_DIR, check_relative_path, version_of_file_name

RETENTION_NOTE = "__retention.json"
FORMAT = 1
TRIES_MAX = 10  # of two cleanups that note something at the same time
HINT_FILE = "latest_version_hint.json"


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """The version files of one table, ref or manifest, and whatever else lies beside them."""

    dataset: str
    files: Mapping[str, StoredFile]
    versions: tuple[int, ...]  # newest first

    @property
    def newest(self) -> int:
        """The newest version; 0 where there is none."""
        return self.versions[0] if self.versions else 0

    def replaced_at(self) -> dict[int, int]:
        """Return when each version but the newest was replaced, in microseconds (A1)."""
        written = {
            version: file.written_at
            for path, file in self.files.items()
            if (version := version_of_file_name(path.rpartition("/")[2])) is not None
        }
        ages = zip(self.versions, self.versions[1:], strict=False)
        return {older: written[newer] for newer, older in ages}


def version_files(root: GraphRoot, dataset: str) -> VersionFiles:
    """List the version files of a dataset.

    Raises:
        StorageError: they cannot be listed.
    """
    files = stored_files(root, f"{dataset}/{VERSIONS_DIR}")
    found = (version_of_file_name(path.rpartition("/")[2]) for path in files)
    versions = sorted((version for version in found if version is not None), reverse=True)
    return VersionFiles(dataset, files, tuple(versions))


@dataclass(frozen=True, slots=True)
class Limits:
    """What makes a version old: so many newer ones, and replaced so long ago; `None` is no limit.

    `grace_s` is for readers that nobody can ask, and applies always.
    """

    keep: int | None
    older_than_s: float | None
    grace_s: float

    def old(self, found: VersionFiles, now: int, *, hinted: int, ended_at: int | None = None) -> set[int]:
        """Return the versions beyond all limits (A1, A2); `ended_at` is when the table itself was dropped.

        A dropped table has one version more: the one without it.
        """
        replaced = found.replaced_at()
        if ended_at is not None and found.versions:
            replaced[found.newest] = ended_at
        shown = found.versions if ended_at is None else (found.newest + 1, *found.versions)
        kept = set(shown[: self.keep or 1])
        age_s = max(self.older_than_s or 0.0, self.grace_s)
        return {
            version
            for version, at in replaced.items()
            if version not in kept
            and now - at >= age_s * 1_000_000
            and (ended_at is not None or version < hinted)
        }


def hinted_version(adapter: StorageAdapter, found: VersionFiles) -> int:
    """Return the version that the library's hint names, at most the newest; without a hint the newest (A2).

    Raises:
        StorageError: the hint cannot be read.
    """
    text = adapter.read_text_if_exists(f"{found.dataset}/{VERSIONS_DIR}/{HINT_FILE}")
    try:
        document = None if text is None else read_json(text)
    except ValueError:
        document = None
    version = document.get("version") if isinstance(document, dict) else None
    return min(version, found.newest) if type(version) is int else found.newest


def read_retention(adapter: StorageAdapter) -> dict[str, int]:
    """Return, by dataset, the version below which versions may have been reclaimed (A3).

    Raises:
        InvariantViolation: the note is not one.
        StorageError: it cannot be read.
    """
    text = adapter.read_text_if_exists(RETENTION_NOTE)
    return {} if text is None else _decoded(text)


def note_reclaimed(adapter: StorageAdapter, below: Mapping[str, int]) -> None:
    """Note that versions below some numbers are about to go (A3).

    Raises:
        InvariantViolation: the present note is not one.
        StorageError: it cannot be noted: nothing may be removed.
    """
    for _ in range(TRIES_MAX):
        found = adapter.read_text_versioned(RETENTION_NOTE)
        before = {} if found is None else _decoded(found[0])
        after = before | {name: max(number, before.get(name, 0)) for name, number in below.items()}
        if after == before:
            return
        text = json.dumps({"format": FORMAT, "reclaimed_below": dict(sorted(after.items()))})
        is_written = (
            adapter.write_text_if_absent(RETENTION_NOTE, text)
            if found is None
            else adapter.write_text_if_match(RETENTION_NOTE, text, found[1])
        )
        if is_written:
            return
    raise StorageError(f"'{RETENTION_NOTE}' changes too often to be written: try again", kind="transient")


def _decoded(text: str) -> dict[str, int]:
    try:
        document = read_json(text)
    except ValueError as error:
        raise InvariantViolation(f"'{RETENTION_NOTE}' is not JSON") from error
    is_ours = isinstance(document, dict) and document.get("format") == FORMAT
    below = document.get("reclaimed_below") if is_ours else None
    if not isinstance(below, dict) or not all(type(number) is int for number in below.values()):
        raise InvariantViolation(f"'{RETENTION_NOTE}' is not the note of a cleanup that this build can read")
    return {check_relative_path(name, f"'{RETENTION_NOTE}'"): number for name, number in below.items()}
