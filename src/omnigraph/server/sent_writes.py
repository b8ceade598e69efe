"""What became of writes: their answers, kept for callers who may not have got them.

K1  A caller names a write in a header. Its answer, also a refusal of the engine, can be asked for by that
    name: by the same actor, for the same graph, in the process that carried the write out.
K2  A write that is under way or was carried out is not carried out again under its name, nor one of which a
    part waits for recovery: it may still land.
K3  What is kept is bounded: the oldest answers go first, and a name that is gone is unknown, not refused. A
    write that is under way keeps its name: there are no more of them than are let in at once.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from starlette.responses import Response

from omnigraph.core.errors import BadRequest

KEPT_MAX = 4_096  # writes of a process: at a hundred a second, callers have most of a minute to ask
ANSWER_BYTES_MAX = 64 * 1024  # an answer to a write is a commit and some counts


class WriteState(StrEnum):
    """What is known of a write."""

    UNDER_WAY = "under_way"
    DONE = "done"  # the answer says what it did, or why not
    NOT_BEGUN = "not_begun"  # its caller had gone before it had effects: it never happens


@dataclass(frozen=True, slots=True)
class WriteName:
    """A write, as its caller names it (K1)."""

    actor: str | None
    graph_id: str
    write_id: str


@dataclass(frozen=True, slots=True)
class SentWrite:
    """What is known of one write; `content` is the body of its answer, None if that was too long to keep."""

    state: WriteState
    status: int | None = None
    content: bytes | None = None
    headers: Mapping[str, str] | None = None
    had_no_effect: bool = False  # for sure, so that its name may be used again


class SentWrites:
    """The writes of one process that have names."""

    def __init__(self, *, kept_max: int = KEPT_MAX) -> None:
        """Begin without any."""
        self._kept_max = kept_max
        self._lock = threading.Lock()
        self._writes: OrderedDict[WriteName, SentWrite] = OrderedDict()

    def begin(self, name: WriteName) -> Callable[[], None]:
        """Note that a write waits to be carried out; return what is called when it has ended, or never will.

        Raises:
            BadRequest: the write of this name is under way, or done (K2).
        """
        with self._lock:
            known = self._writes.get(name)
            if known is not None and not known.had_no_effect:
                raise BadRequest(f"the write '{name.write_id}' was sent before: ask what became of it")
            self._put(name, SentWrite(WriteState.UNDER_WAY))
        return lambda: self._never_began(name)

    def answered(self, name: WriteName, answer: Response, *, had_no_effect: bool = False) -> None:
        """Keep the answer of a write."""
        content = bytes(answer.body)
        kept = content if 0 < len(content) <= ANSWER_BYTES_MAX else None
        with self._lock:
            headers = dict(answer.headers)
            self._put(name, SentWrite(WriteState.DONE, answer.status_code, kept, headers, had_no_effect))

    def find(self, name: WriteName) -> SentWrite | None:
        """Return what is known of a write."""
        with self._lock:
            return self._writes.get(name)

    def _never_began(self, name: WriteName) -> None:
        with self._lock:
            known = self._writes.get(name)
            if known is not None and known.state is WriteState.UNDER_WAY:
                self._put(name, SentWrite(WriteState.NOT_BEGUN, had_no_effect=True))

    def _put(self, name: WriteName, write: SentWrite) -> None:
        self._writes[name] = write
        self._writes.move_to_end(name)
        if len(self._writes) > self._kept_max:
            over = (key for key, kept in self._writes.items() if kept.state is not WriteState.UNDER_WAY)  # K3
            oldest = next(over, None)
            if oldest is not None:
                del self._writes[oldest]
