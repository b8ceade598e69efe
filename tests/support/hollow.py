"""What a power cut leaves of a file that was never synced."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omnigraph.storage.versions.newest import MARK


def empty(path: Path) -> None:
    """Leave the name and nothing of the content."""
    path.write_bytes(b"")


def cut_in_half(path: Path) -> None:
    """Leave the first half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def fill_with_zeros(path: Path) -> None:
    """Leave the length and nothing else."""
    path.write_bytes(bytes(path.stat().st_size))


DAMAGES = {"empty": empty, "cut in half": cut_in_half, "zero-filled": fill_with_zeros}


def lose_notes(root: Path) -> None:
    """Lose the notes of what was synced, as a power cut does: only then may a newest version be hollow."""
    for note in root.rglob(MARK):
        note.unlink()


@contextmanager
def quiet() -> Iterator[None]:
    """Leave warnings out: each damaged version is one or several."""
    logger = logging.getLogger("omnigraph")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
