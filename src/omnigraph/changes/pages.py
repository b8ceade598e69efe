"""How much of a stream of changes fits on one page.

L1  A page has at most as many changes as asked for. Its size in bytes is a target, so one change that is
    larger than a page gets a page to itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from omnigraph.changes.documents import change_document
from omnigraph.changes.model import EntityChange
from omnigraph.changes.position import Position
from omnigraph.core.errors import BadRequest, ResourceLimit
from omnigraph.core.limits import (
    PAGE_BYTES,
    PAGE_BYTES_MAX,
    PAGE_CHANGES,
    PAGE_CHANGES_MAX,
    POLL_COMMITS,
    POLL_COMMITS_MAX,
)
from omnigraph.core.values import named


@dataclass(frozen=True, slots=True)
class PageSize:
    """What one page holds, and how many commits one poll goes over."""

    changes: int = PAGE_CHANGES
    bytes: int = PAGE_BYTES
    commits: int = POLL_COMMITS

    def __post_init__(self) -> None:
        """Refuse impossible sizes.

        Raises:
            BadRequest: a part is not a number, or below one.
            ResourceLimit: a part is above its ceiling.
        """
        ceilings = {"changes": PAGE_CHANGES_MAX, "bytes": PAGE_BYTES_MAX, "commits": POLL_COMMITS_MAX}
        for name, ceiling in ceilings.items():
            wanted = getattr(self, name)
            if type(wanted) is not int:
                raise BadRequest(
                    f"the number of {name} of a page must be a whole number, not {named(wanted)}"
                )
            if wanted < 1:
                raise BadRequest(f"the number of {name} of a page must be at least 1, not {wanted}")
            if wanted > ceiling:
                raise ResourceLimit(resource=f"{name} of a page", limit=ceiling, actual=wanted)


class Page:
    """A page that is being filled (L1)."""

    def __init__(self, size: PageSize) -> None:
        """Begin an empty page."""
        self._size = size
        self._count = 0
        self._bytes = 0

    def take(self, changes: Iterator[EntityChange]) -> tuple[tuple[EntityChange, ...], bool]:
        """Take as many changes of one commit as fit; return them, and whether that is all of them."""
        taken: list[EntityChange] = []
        for change in changes:
            length = len(orjson.dumps(change_document(change)))
            if self._count and not self._fits(length):
                return tuple(taken), False
            taken.append(change)
            self._count += 1
            self._bytes += length
        return tuple(taken), True

    def _fits(self, length: int) -> bool:
        return self._count < self._size.changes and self._bytes + length <= self._size.bytes


def behind(changes: Sequence[EntityChange]) -> Position:
    """Return the position after the last of some changes."""
    last = changes[-1]
    return Position.of(last.kind, last.type.id, last.id)
