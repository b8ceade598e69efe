"""How much memory and disk the derived structures may take, and where their files are."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from omnigraph.core.environment import number_setting

CACHE_DIR, CACHE_BYTES, GRAPH_CACHE = "OMNIGRAPH_CACHE_DIR", "OMNIGRAPH_CACHE_BYTES", "OMNIGRAPH_GRAPH_CACHE"

DISK_BYTES = 2 * 1024**3
MEMORY_BYTES = 2 * 1024**3  # both directions of 5M edges and the ids of 1M nodes take a tenth of it
VIEWS_MAX = 8  # snapshots of one table that stay derived; each later one costs its changes only
DISK_ROWS_MIN = 20_000  # below this, rebuilding is as quick as reading a file


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Limits of one open graph; without a directory nothing is kept on disk."""

    directory: Path | None = None
    disk_bytes: int = DISK_BYTES
    memory_bytes: int = MEMORY_BYTES
    views_max: int = VIEWS_MAX
    disk_rows_min: int = DISK_ROWS_MIN

    @staticmethod
    def from_environment() -> "CacheSettings":
        """Return the settings of this process; a malformed one becomes its default, with a warning."""
        return CacheSettings(
            directory=_directory(),
            disk_bytes=number_setting(CACHE_BYTES, DISK_BYTES),
            views_max=max(1, number_setting(GRAPH_CACHE, VIEWS_MAX)),
        )


def _directory() -> Path | None:
    """Return the folder of cache files: as set (empty for no folder), else below the user's cache folder."""
    chosen = os.environ.get(CACHE_DIR)
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home directory
        return None
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "omnigraph"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "omnigraph"
