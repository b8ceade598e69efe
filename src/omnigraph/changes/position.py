"""A place between two changes of one commit, small enough for a token.

Q1  A position names the last change that was delivered; what comes after it in the order of ids remains. Ids
    are unique in a table, so the place is unambiguous.
Q2  A long id is given by its beginning and its digest: tokens stay small, and the place stays exact.
"""

import hashlib
from bisect import bisect_left
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.core.errors import ChangeCursorRejected

ID_BYTES_MAX = 256  # of an id that is in a token in full


@dataclass(frozen=True, slots=True)
class Position:
    """The last delivered change: its table, by kind and opaque type id, and its id (Q2)."""

    kind: str
    type_id: str
    prefix: str
    digest: str | None = None

    @staticmethod
    def of(kind: str, type_id: str, entity_id: str) -> "Position":
        """Return the position after a change."""
        encoded = entity_id.encode()
        if len(encoded) <= ID_BYTES_MAX:
            return Position(kind, type_id, entity_id)
        prefix = encoded[:ID_BYTES_MAX].decode(errors="ignore")
        return Position(kind, type_id, prefix, _digest(encoded))

    def place_in(self, ids: pa.StringArray) -> int:
        """Return where the change is among the ascending ids of its table.

        Raises:
            ChangeCursorRejected: none of them is the id that the position names.
        """
        prefix = self.prefix.encode()
        place = bisect_left(range(len(ids)), prefix, key=lambda at: str(ids[at]).encode())
        while place < len(ids):
            encoded = str(ids[place]).encode()
            if not encoded.startswith(prefix):
                break
            if (encoded == prefix) if self.digest is None else (_digest(encoded) == self.digest):
                return place
            if self.digest is None:
                break
            place += 1
        raise ChangeCursorRejected("it names a change that this commit does not have")


def _digest(encoded: bytes) -> str:
    return hashlib.sha256(encoded).hexdigest()
