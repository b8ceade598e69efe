"""The bytes of one Blob property behind a server: how many at once, which of them when they are asked for.

B1  What is in memory does not grow with the value: one piece, which is one request.
B2  A blob is read from the commit that it was found in, and each piece only if the ETag is still that of the
    value: pieces of two values never become one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from omnigraph.client.access import BlobCall
from omnigraph.client.served import ServedAccess
from omnigraph.client.understood import understood
from omnigraph.core.blob_errors import NOT_FOLLOWED, ExternalBlobError
from omnigraph.core.errors import EntityNotFound, PolicyDenied
from omnigraph.core.values import is_text
from omnigraph.operations.blob import PIECE_BYTES, BlobCell, byte_span, check_cell


@dataclass(frozen=True, slots=True)
class RemoteBlob:
    """The bytes of a property: how many, under which strong ETag, and parts of them on demand."""

    kind: Literal["managed", "external"]
    size: int | None
    etag: str
    uri: str | None
    commit_id: str = field(compare=False)
    _served: ServedAccess = field(repr=False, compare=False)
    _call: BlobCall = field(repr=False, compare=False)  # as it was found: on a branch, or in a snapshot

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes from one position to another, or to the end of the value.

        An end behind that of the value stands for it. All bytes are held at once: `stream` holds a piece.

        Raises:
            BadRequest: a position is not a whole number from 0 on, or the end comes before the start.
            BlobRangeError: the value ends before the start.
            ExternalBlobError: the value is a reference.
        """
        return b"".join(self.stream(start, end))

    def stream(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Return the bytes in pieces of at most 4 MiB, each asked for when it is taken.

        Raises:
            BadRequest, BlobRangeError, ExternalBlobError: as `read`, before the first piece.
        """
        if self.uri is not None:
            raise ExternalBlobError(uri=self.uri, reason=NOT_FOLLOWED)
        assert self.size is not None, "of bytes it is known how many they are"
        first, last = byte_span(start, end, self.size)
        return self._pieces(first, last)

    def save(self, path: str | Path) -> None:
        """Write all bytes to a file, which appears when it is complete.

        Raises:
            BadRequest: it cannot be written.
            ExternalBlobError: the value is a reference.
        """
        from omnigraph.bulk.files import whole_file

        pieces = self.stream()
        with whole_file(path) as file:
            file.writelines(pieces)

    def _pieces(self, start: int, end: int) -> Iterator[bytes]:
        for at in range(start, end, PIECE_BYTES):
            yield self._piece(at, min(at + PIECE_BYTES, end))

    def _piece(self, start: int, end: int) -> bytes:
        pinned = replace(self._call, branch=None, snapshot=self.commit_id)
        try:
            return self._served.blob_piece(pinned, start, end, self.etag)
        except PolicyDenied:  # of the branch on which the commit landed, of which this one was made
            if self._call.snapshot is not None:
                raise
        return self._served.blob_piece(self._call, start, end, self.etag)


def remote_blob(served: ServedAccess, call: BlobCall) -> RemoteBlob:
    """Find a value on a branch now, or in a past snapshot; none of its bytes is read.

    Raises:
        BadRequest: there is no such type or property, or it is not a Blob.
        EntityNotFound: there is no such node or edge.
        NotFoundError: its value is null, or there is no such branch or snapshot.
    """
    check_cell(BlobCell(call.entity, call.type_name, call.id, call.property))
    if not is_text(call.id):  # half of a surrogate pair is in no address, and in no graph either
        raise EntityNotFound(call.type_name, call.id)
    document = served.blob(call)
    with understood():
        return RemoteBlob(
            document["kind"],
            document["size"],
            str(document["etag"]),
            document["uri"],
            str(document["graph_commit_id"]),
            served,
            call,
        )
