"""The newest version of a dataset on a local disk, found without listing all of them.

N1  A commit takes the number after the newest one, so versions have no gap. From a version that is there, the
    newest is found by asking for the following ones.
N2  A version seen long ago proves nothing: cleanup may have removed some of those that lead on from it. The
    library's own hint names a newer start in that case, and without a start that is there the library lists.
N3  A folder whose modification time is unchanged has the same newest version, if that time was well past
    when the version was looked for (two commits may share one tick of the file system: some milliseconds, or
    one or two seconds) and if the version after it is not there (the file system's clock need not be ours).

A directory of 5,000 versions takes milliseconds to list, and every write looks at least five times.
"""

import os
import threading
import time
from dataclasses import dataclass
from itertools import count

from omnigraph.core.clock import boot_clock
from omnigraph.core.json_text import read_json
from omnigraph.core.recent import Recent
from omnigraph.core.regular_file import read_control_file
from omnigraph.storage.files.version_file import VERSIONS_DIR, version_file_name
from omnigraph.storage.tables.handle import TableAddress

HINT = f"{VERSIONS_DIR}/latest_version_hint.json"
TRUSTED_S = 1_800.0  # half the shortest age at which cleanup takes a version of the manifest
SETTLED_NS = 200_000_000  # many times the tick of a file system that keeps fractions of a second
SETTLED_COARSE_NS = 2_000_000_000 + SETTLED_NS  # FAT counts in two seconds; small inodes of ext4, HFS+ in one
KNOWN_MAX = 1_024  # datasets


@dataclass(frozen=True, slots=True)
class _SeenVersion:
    """A version that was there, when, and the modification time of its folder if it was the newest then."""

    version: int
    at: float
    settled_ns: int | None = None


class NewestVersions:
    """Remembers which versions were seen; safe to share between threads."""

    def __init__(self) -> None:
        """Know nothing."""
        self._lock = threading.Lock()
        self._seen: Recent[str, _SeenVersion] = Recent(KNOWN_MAX)

    def saw(self, address: TableAddress, version: int) -> None:
        """Remember that a version is there."""
        if address.local_path is not None:
            self._remember(address.open_uri, version, None)

    def forget(self, address: TableAddress) -> None:
        """Know nothing of a place that is gone."""
        self._seen.forget(lambda uri: uri == address.open_uri)

    def find(self, address: TableAddress) -> int | None:
        """Return the newest version, or `None` where only the library can tell."""
        uri = address.open_uri
        seen = self._seen.get(uri)  # what is on an object store was never seen
        if seen is None or boot_clock() - seen.at > TRUSTED_S:
            return None
        root = str(address.local_path) if ":" in uri else uri
        try:
            changed_ns = os.stat(f"{root}/{VERSIONS_DIR}").st_mtime_ns  # noqa: PTH116 - asked by every query
        except OSError:
            return None
        if seen.settled_ns == changed_ns and not _is_there(root, seen.version + 1):
            return seen.version
        looked_ns = time.time_ns()
        newest = _walk(root, seen.version)
        if newest is not None:
            is_settled = looked_ns - changed_ns > _settles_in(changed_ns)
            self._remember(uri, newest, changed_ns if is_settled else None)
        return newest

    def _remember(self, uri: str, version: int, settled_ns: int | None) -> None:
        now = boot_clock()
        with self._lock:
            known = self._seen.get(uri)
            if known is not None and known.version > version:
                version, settled_ns = known.version, None
            self._seen.put(uri, _SeenVersion(version, now, settled_ns))


def _settles_in(changed_ns: int) -> int:
    """Return how long after a modification time no further commit can have the same one.

    A time without a fraction is taken for that of a file system that keeps none. Where it is chance, that
    only costs a few more looks.
    """
    return SETTLED_NS if changed_ns % 1_000_000_000 else SETTLED_COARSE_NS


def _walk(root: str, known: int) -> int | None:
    """Return the newest version, from the greatest one heard of that is there (N1, N2)."""
    for start in sorted({known, _hinted(root)}, reverse=True):
        if start and _is_there(root, start):
            return next(version for version in count(start) if not _is_there(root, version + 1))
    return None


def _is_there(root: str, version: int) -> bool:
    return os.access(f"{root}/{version_file_name(version)}", os.F_OK)  # no exception inside: every query asks


def _hinted(root: str) -> int:
    """Return the version that the library's hint names; 0 for a hint that is missing or damaged."""
    try:
        return int(read_json(read_control_file(f"{root}/{HINT}"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
