"""Bodies in files: a piece in memory at a time, and no file that outlives its body."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.requests import ClientDisconnect

from omnigraph.core.errors import StorageError
from omnigraph.server import spool

PIECE = b"x" * 65_536


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.case("surfaces", 831)
def test_a_piece_is_asked_for_when_the_disk_has_taken_the_last_one(folder: Path) -> None:
    on_disk: list[int] = []

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(8):
            on_disk.append(sum(file.stat().st_size for file in folder.iterdir()))
            yield PIECE

    body = asyncio.run(spool.spooled(pieces()))

    assert on_disk == [number * len(PIECE) for number in range(8)]
    assert (body.size, body.path.read_bytes()) == (8 * len(PIECE), 8 * PIECE)
    assert body.path.stat().st_mode & 0o077 == 0  # nobody else reads what somebody sent
    body.remove()
    assert not list(folder.iterdir())


@pytest.mark.case("surfaces", 831)
def test_a_body_that_does_not_come_to_its_end_leaves_no_file(folder: Path) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield PIECE
        raise ClientDisconnect

    with pytest.raises(ClientDisconnect):
        asyncio.run(spool.spooled(pieces()))

    assert not list(folder.iterdir())


@pytest.mark.case("surfaces", 831)
def test_a_request_that_is_given_up_leaves_no_file(folder: Path) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield PIECE
        assert list(folder.iterdir())
        raise asyncio.CancelledError

    async def main() -> None:
        with pytest.raises(asyncio.CancelledError):
            await spool.spooled(pieces())

    asyncio.run(main())

    assert not list(folder.iterdir())


def test_a_disk_that_is_full_is_a_failure_of_the_store_and_leaves_no_file(folder: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("only Linux has a disk that is always full")

    async def pieces() -> AsyncIterator[bytes]:
        yield PIECE

    class Full:
        """A temporary file on a disk without room."""

        def __init__(self, **_: object) -> None:
            (folder / "made").touch()
            self.name, self._file = str(folder / "made"), full.open("wb")
            self.write, self.close = self._file.write, self._file.close

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "NamedTemporaryFile", Full)
        with pytest.raises(StorageError, match="cannot hold a body"):
            asyncio.run(spool.spooled(pieces()))

    assert not list(folder.iterdir())
