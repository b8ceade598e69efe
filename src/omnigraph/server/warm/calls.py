"""What one connection asks for, carried out one call after the other.

C1  `taken` is said before a call begins, and only if it will be carried out: a caller that has not heard it
    carries the call out itself.
C2  Answers, errors and warnings are those of the engine. A defect is logged and answered with nothing: the
    caller of a read then does it itself, the caller of a write says that nobody knows.
C3  A server that had to warn of its own settings is of no use any more: every command warns of them.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

from omnigraph.client.access import DiffAnswer
from omnigraph.client.embedded import EmbeddedAccess
from omnigraph.client.warm.link import Link, PeerGone, packed
from omnigraph.core.errors import OmnigraphError
from omnigraph.graph.graph import Graph

READS = frozenset(
    {"query", "branches", "snapshot", "commits", "commit", "commit_changes", "poll_changes", "schema"}
)
WRITES = frozenset({"mutate", "create_branch", "delete_branch", "merge"})
_PAGE_CHANGES = 500  # of a comparison: in one frame, so that a reader sees the first ones early
_OF_SETTINGS = frozenset({"environment", "config"})  # the modules that warn of settings
_log = logging.getLogger("omnigraph.server")


class Calls:
    """The calls of one connection."""

    def __init__(self, graph: Graph, link: Link, may_begin: Callable[[], bool]) -> None:
        """Take the open graph, the connection, and what says whether another call may begin."""
        self._graph, self._link, self._may_begin = graph, link, may_begin
        self._compared: DiffAnswer | None = None
        self.is_writing = False

    def serve(self) -> None:
        """Carry out calls until the other end has no more."""
        try:
            while True:
                uri, name, args, given = self._link.receive()
                self.is_writing = name in WRITES  # before the question: the end waits for it
                if not self._may_begin():
                    self._link.say(taken=False)
                    return
                self._link.say(taken=True)  # C1
                self._answer(uri, name, args, given)
                self.is_writing = False
        except PeerGone:
            return
        except Exception:  # noqa: BLE001 - the outermost edge: a defect ends the connection (C2)
            _log.exception("a call could not be answered")

    def _answer(self, uri: str, name: str, args: tuple[Any, ...], given: dict[str, Any]) -> None:
        try:
            with _told_to(self._link):
                self._carry_out(EmbeddedAccess(self._graph, uri), name, args, given)
        except OmnigraphError as error:
            self._link.send(("error", packed(error)))

    def _carry_out(
        self, access: EmbeddedAccess, name: str, args: tuple[Any, ...], given: dict[str, Any]
    ) -> None:
        """Send the answer to one call, or the pieces of it."""
        match name:
            case "diff":
                self._compared = access.diff(*args, **given)
                self._link.send(("answer", None))
            case "diff_summary":
                self._link.send(("answer", self._comparison().summary()))
            case "diff_changes":
                changes = self._comparison().changes()
                while page := list(islice(changes, _PAGE_CHANGES)):
                    self._link.send(("answer", page))
                self._link.send(("end", None))
            case _:
                assert name in READS | WRITES, "the other end is the same program"
                self._link.send(("answer", getattr(access, name)(*args, **given)))

    def _comparison(self) -> DiffAnswer:
        assert self._compared is not None, "a comparison is asked for first"
        return self._compared


_telling = threading.local()


@contextmanager
def _told_to(link: Link) -> Iterator[None]:
    """Send the warnings of this thread to a caller."""
    _telling.link = link
    try:
        yield
    finally:
        _telling.link = None


class Warnings(logging.Handler):
    """Sends the engine's warnings to the caller for whom it works, and notes those about settings (C3)."""

    def __init__(self, of_settings: Callable[[], None]) -> None:
        """Take whom to tell that the settings have mistakes."""
        super().__init__(logging.WARNING)
        self._of_settings = of_settings

    def emit(self, record: logging.LogRecord) -> None:
        """Pass one warning on."""
        if record.module in _OF_SETTINGS:
            self._of_settings()
        link: Link | None = getattr(_telling, "link", None)
        if link is not None:
            with suppress(PeerGone):  # the work goes on, also when nobody waits for it
                link.send(("warning", record.getMessage()))
