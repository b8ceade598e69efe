"""What a copy of a graph left behind: old versions of manifests, and perhaps the older past of the tables.

O1  A graph without this object was made by `init`, or copied as a folder: it has all that its commits made,
    as far as `cleanup` left it.
O2  Commits from before the copy are all listed. What they wrote to the manifest for versions that are not
    shown any more may be missing, which is no damage: history is in the rows.
O3  Versions of tables that only commits below a branch's floor show may be missing; reading one is
    `HistoricalVersionReclaimed`.
O4  A branch that is not named was made later, from one that is: the greatest numbers hold for it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from omnigraph.core.errors import InvariantViolation
from omnigraph.core.values import read_json
from omnigraph.storage.control.object_store import StorageAdapter

COPIED = "__copied.json"
FORMAT = 1


class Extent(NamedTuple):
    """How much of a branch a copy has: manifest versions, zero where nothing was left behind."""

    at: int = 0  # what the branch showed when it was copied
    floor: int = 0  # from where on its past can be read


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy has of each branch, by name."""

    extents: Mapping[str, Extent] = field(default_factory=dict)

    def of(self, branch: str) -> Extent:
        """Return what there is of a branch (O1, O4)."""
        found = self.extents.get(branch)
        if found is not None or not self.extents:
            return found or Extent()
        return Extent(*map(max, zip(*self.extents.values(), strict=True)))

    def to_text(self) -> str:
        """Return the text of the object."""
        branches = {name: extent._asdict() for name, extent in self.extents.items()}
        return json.dumps({"format": FORMAT, "branches": branches}, ensure_ascii=False)


def read_copied(adapter: StorageAdapter) -> Copied:
    """Return what a graph has of the one that it was copied from (O1).

    Raises:
        InvariantViolation: the object says something else.
        StorageError: it cannot be read.
    """
    text = adapter.read_text_if_exists(COPIED)
    if text is None:
        return Copied()
    try:
        document = read_json(text)
        if document["format"] != FORMAT:
            raise ValueError("another format")
        extents = {name: Extent(**extent) for name, extent in document["branches"].items()}
        is_whole = all(type(number) is int and number >= 0 for pair in extents.values() for number in pair)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _unreadable() from error
    if not is_whole:
        raise _unreadable()
    return Copied(extents)


def _unreadable() -> InvariantViolation:
    return InvariantViolation(f"'{COPIED}' does not say what a copy has of each branch")
