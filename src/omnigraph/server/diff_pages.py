"""Pages of a comparison: the second page compares the same two commits as the first, whatever moved."""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import orjson

from omnigraph.changes.model import EntityChange
from omnigraph.changes.pages import PageSize
from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import PAGE_TOKEN_BYTES_MAX
from omnigraph.operations.changes.diff import Diff
from omnigraph.operations.pin import PinnedTarget
from omnigraph.wire.requests import DiffQuery

SEEN_MAX = 2**53  # more changes than there are: only a made-up token has seen as many


@dataclass(frozen=True, slots=True)
class DiffPage:
    """Which two sides to compare, and how many changes were already seen."""

    from_target: str
    to_target: str
    seen: int
    filter: tuple[object, ...]

    @staticmethod
    def of(wanted: DiffQuery) -> "DiffPage":
        """Return the page that a request asks for: the first, or the one that a token names.

        Raises:
            BadRequest: the token is damaged, or belongs to another request.
        """
        filter_ = (wanted.from_, wanted.to, [*wanted.kind], [*wanted.type], [*wanted.op])
        if wanted.page_token is None:
            return DiffPage(wanted.from_, wanted.to, 0, filter_)
        match _read(wanted.page_token):
            case [str(before), str(after), int(seen), given] if given == [*filter_] and 0 < seen <= SEEN_MAX:
                return DiffPage(before, after, seen, filter_)
        raise BadRequest("the page token is damaged, or belongs to another request")

    @property
    def from_side(self) -> str | PinnedTarget:
        """The side to compare from, as the caller may ask for it: a later page stays at its commit."""
        return _side(self.filter[0], self.from_target, self.seen)

    @property
    def to_side(self) -> str | PinnedTarget:
        """The side to compare to, likewise."""
        return _side(self.filter[1], self.to_target, self.seen)

    def take(self, found: Diff, limit: int) -> tuple[list[EntityChange], str | None]:
        """Return the changes of this page, and the token of the next if there is one.

        Raises:
            ResourceLimit: the page would have more changes than a page may.
        """
        size = PageSize(limit).changes
        changes = list(islice(_from(found, self.seen), size + 1))
        if len(changes) <= size:
            return changes, None
        ids = [side.head.graph_commit_id for side in (found.from_snapshot, found.to_snapshot)]
        token = base64.urlsafe_b64encode(orjson.dumps([*ids, self.seen + size, self.filter]))
        return changes[:size], token.decode()


def _side(named: object, target: str, seen: int) -> str | PinnedTarget:
    return PinnedTarget(str(named), target) if seen else target


def _from(changes: Iterable[EntityChange], seen: int) -> Iterable[EntityChange]:
    return islice(changes, seen, None)


def _read(token: str) -> object:
    if len(token) > PAGE_TOKEN_BYTES_MAX:
        return None
    try:
        return orjson.loads(base64.urlsafe_b64decode(token.encode()))
    except (binascii.Error, ValueError):
        return None
