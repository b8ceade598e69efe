"""Writers of one graph, one after another: each is killed, and so may be the open that follows it."""

import random
from pathlib import Path
from time import monotonic

from tests.protocol.crash.writer import Opened, WriterProcess

KILL_OPEN_WITHIN_S = 0.06
OPEN_KILLS = 0.3  # of the rounds, the next open is killed as well


class Successors:
    """The writers of a run, and the sidecars that they left."""

    def __init__(self, root: Path, random_: random.Random) -> None:
        """Take the graph and what chance decides with; the first writer starts."""
        self.opens_killed = 0
        self.sidecars: set[str] = set()
        self._root, self._random = root, random_
        self._next = WriterProcess(root)

    def next(self) -> WriterProcess:
        """Return a writer that is about to open; the one after it starts meanwhile."""
        writer, self._next = self._next, WriterProcess(self._root)
        writer.begin()
        return writer

    def kill_opens(self) -> None:
        """Note what a dead writer left; kill perhaps the next one while it opens, and note again."""
        self._note_sidecars()
        while self._random.random() < OPEN_KILLS:
            writer = self.next()
            deadline = monotonic() + self._random.random() * KILL_OPEN_WITHIN_S
            assert writer.receive_until(deadline) in {None, Opened()}
            assert set(writer.kill()) <= {Opened()}
            self.opens_killed += 1
            self._note_sidecars()

    def close(self) -> None:
        """End the writer that waits."""
        self._next.kill()

    def _note_sidecars(self) -> None:
        self.sidecars |= {path.stem for path in (self._root / "__recovery").glob("*.json")}
