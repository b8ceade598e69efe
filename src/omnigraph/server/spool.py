"""Bodies that go to a file as they arrive: memory does not grow with them.

P1  The next piece of a body is asked for when the disk has taken the last one: the sender waits for the disk.
P2  The file is removed when the work on it has ended, or will never begin; if the body does not come to its
    end, at once.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from omnigraph.core.errors import StorageError

PREFIX = "omnigraph-load-"  # of the files, in the folder for temporary files


@dataclass(slots=True)
class SpooledBody:
    """A body in a file, with its length in bytes."""

    path: Path
    size: int = 0

    def remove(self) -> None:
        """Remove the file (P2)."""
        self.path.unlink(missing_ok=True)


async def spooled(pieces: AsyncIterator[bytes]) -> SpooledBody:
    """Return a body in a file, which the caller removes.

    Raises:
        StorageError: the disk of the server does not take it.
    """
    with _understood():
        file = tempfile.NamedTemporaryFile(prefix=PREFIX, delete=False)  # noqa: SIM115 - closed on both ways
    body = SpooledBody(Path(file.name))
    try:
        async for piece in pieces:
            with _understood():
                await asyncio.to_thread(file.write, piece)  # P1
            body.size += len(piece)
        with _understood():
            file.close()
    except BaseException:
        with suppress(OSError):  # what is left in the buffer is not wanted
            file.close()
        body.remove()
        raise
    return body


@contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot hold a body in a file: {error}", kind="unknown") from error
