"""The newest version of a dataset on a local disk, found without listing all of them.

N1  A commit takes the number after the newest one, so versions have no gap. From a version that is there, the
    newest is found by asking for the following ones.
N2  A version seen long ago proves nothing: cleanup may have removed some of those that lead on from it. The
    library's own hint names a newer start in that case, and without a start that is there the library lists.

A directory of 5,000 versions takes milliseconds to list, and every write looks at least five times.
"""

import json
import threading
from collections import OrderedDict
from pathlib import Path

from omnigraph.core.clock import boot_clock
from omnigraph.storage.handle import TableAddress
from omnigraph.storage.version_file import version_file_name

HINT = "_versions/latest_version_hint.json"
TRUSTED_S = 1_800.0  # half the shortest age at which cleanup takes a version of the manifest
KNOWN_MAX = 1_024  # datasets


class NewestVersions:
    """Remembers which versions were seen; safe to share between threads."""

    def __init__(self) -> None:
        """Know nothing."""
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def saw(self, address: TableAddress, version: int) -> None:
        """Remember that a version is there."""
        if address.local_path is None:
            return
        now = boot_clock()
        with self._lock:
            known, _ = self._known.get(address.open_uri, (0, now))
            self._known[address.open_uri] = (max(known, version), now)
            self._known.move_to_end(address.open_uri)
            while len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)

    def find(self, address: TableAddress) -> int | None:
        """Return the newest version, or none where only the library can tell."""
        folder = address.local_path
        start = None if folder is None else self._start(address, folder)
        if folder is None or start is None:
            return None
        while (folder / version_file_name(start + 1)).exists():
            start += 1
        self.saw(address, start)
        return start

    def _start(self, address: TableAddress, folder: Path) -> int | None:
        """Return a version to go on from: the greatest one heard of that is there (N2)."""
        with self._lock:
            known, at = self._known.get(address.open_uri, (0, 0.0))
        if known == 0 or boot_clock() - at > TRUSTED_S:
            return None
        for version in sorted({known, _hinted(folder)}, reverse=True):
            if version and (folder / version_file_name(version)).exists():
                return version
        return None


def _hinted(folder: Path) -> int:
    """Return the version that the library's hint names; 0 for a hint that is missing or damaged."""
    try:
        hint = json.loads((folder / HINT).read_bytes())
        return int(hint["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
