"""Whether the graph at a place is still the one that was opened.

A folder that was removed and made anew has another graph, perhaps with the same names and versions. The open
descriptors keep the numbers of the first one's folders from being given to others.
"""

import os
from contextlib import suppress
from pathlib import Path

from omnigraph.core.regular_file import GRAPH_MARK


class Origin:
    """The folders of a graph on a disk, as they were when it was opened; of one in a store, nothing."""

    def __init__(self, root: str, *, is_local: bool) -> None:
        """Take hold of the folder of the graph and that of its history."""
        places = [Path(root), Path(root, GRAPH_MARK)] if is_local else []
        self._held = {place: os.open(place, os.O_RDONLY | os.O_CLOEXEC) for place in places}

    def is_there(self) -> bool:
        """Say whether the same folders are at the same places."""
        try:
            return all(os.path.samestat(place.stat(), os.fstat(held)) for place, held in self._held.items())
        except OSError:
            return False

    def close(self) -> None:
        """Let go."""
        for held in self._held.values():
            with suppress(OSError):
                os.close(held)
        self._held = {}
