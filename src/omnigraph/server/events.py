"""New commits of a branch, as a stream of server-sent events.

V1  Every commit after the one a caller names is told once, in order, with its id as the event's id; a caller
    that reconnects names the last it has seen, and misses none.
V2  What a caller costs does not grow with how slow it is: commits wait in one list for each branch, not for
    each caller. A caller that falls behind the list is disconnected, and continues by V1.
V3  However many callers follow a branch, its head is read once in an interval.
V4  A branch that nobody follows any more costs nothing, and a stream has its place until its response ends,
    whether or not it ever began.
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import orjson
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from omnigraph.core.access_errors import RateLimited
from omnigraph.core.errors import BadRequest, OmnigraphError
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import GraphCommit
from omnigraph.operations.commit_log import BranchLog
from omnigraph.server.metrics import Metrics
from omnigraph.server.threads import Threads
from omnigraph.wire.documents import commit_document

EVENT_STREAM = "text/event-stream"
POLL_S = 0.25  # how late a commit of another process may be told
KEEP_ALIVE_S = 15.0  # proxies give up silent connections after 30 to 60 seconds
RECENT_MAX = 1_024  # commits that wait for slow callers
REPLAY_MAX = 10_000  # commits that a caller may have missed
STREAMS_MAX = 256  # of one process: each is a connection that stays open
RETRY_AFTER_S = 10
_log = logging.getLogger("omnigraph.server")


@dataclass(slots=True)
class Followed:
    """One branch that somebody follows: its newest commits, oldest first."""

    log: BranchLog
    threads: Threads
    recent: list[GraphCommit] = field(default_factory=list)
    read_at: float = 0.0
    readers: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def refresh(self) -> None:
        """Read the commits that are new, unless that was done a moment ago (V3)."""
        async with self.lock:
            if time.monotonic() - self.read_at < POLL_S:
                return
            began = time.monotonic()
            self.recent = await self.threads.read(self._read)
            self.read_at = began  # the list has every commit that was made before this

    def after(self, commit_id: str) -> list[GraphCommit] | None:
        """Return the commits after one, or nothing if it is no longer in the list (V2)."""
        for place, commit in enumerate(self.recent):
            if commit.graph_commit_id == commit_id:
                return self.recent[place + 1 :]
        return None

    def _read(self) -> list[GraphCommit]:
        known = self.recent[-1].graph_commit_id if self.recent else None
        if self.log.head().graph_commit_id == known:
            return self.recent
        return self.log.newest(RECENT_MAX)[::-1]


class EventStreams:
    """The streams of one process."""

    def __init__(self) -> None:
        """Follow nothing yet."""
        self.stopping = threading.Event()
        self._followed: dict[tuple[str, str], Followed] = {}
        self._count = 0
        self._lock = threading.Lock()

    def follow(self, graph: Graph, branch: str | None, threads: Threads) -> Followed:
        """Return what is followed of a branch, the same for everybody and for every spelling of its name."""
        log = graph.commit_log(branch=branch)
        with self._lock:
            key = graph.uri, log.branch
            if key not in self._followed:
                self._followed[key] = Followed(log, threads)
            return self._followed[key]

    def reserve(self, followed: Followed) -> None:
        """Count one more stream of a branch, until `release`.

        Raises:
            RateLimited: there are as many as one process may have.
        """
        with self._lock:
            if self._count >= STREAMS_MAX:
                raise RateLimited(
                    f"this server already has {STREAMS_MAX} streams of commits", retry_after_s=RETRY_AFTER_S
                )
            self._count += 1
            followed.readers += 1

    def release(self, followed: Followed) -> None:
        """Count one stream of a branch less; the last one takes the branch along (V4)."""
        with self._lock:
            self._count -= 1
            followed.readers -= 1
            if not followed.readers:
                self._followed = {key: one for key, one in self._followed.items() if one is not followed}


def missed_commits(graph: Graph, branch: str | None, last_id: str | None) -> list[GraphCommit]:
    """Return the commits since the last that a caller has seen; the newest alone for one that names none.

    Raises:
        BadRequest: that commit is not among the newest of the branch.
        BranchNotFound: there is no such branch.
    """
    if last_id is None:
        return graph.commits(branch=branch, limit=1)
    found = graph.commits(branch=branch, limit=REPLAY_MAX + 1)
    for place, commit in enumerate(found):
        if commit.graph_commit_id == last_id:
            return found[place::-1]
    raise BadRequest(
        f"Last-Event-ID names none of the newest {REPLAY_MAX} commits of the branch: "
        "read /commits, and begin anew without it"
    )


async def event_lines(
    streams: EventStreams, followed: Followed, missed: list[GraphCommit], metrics: Metrics
) -> AsyncGenerator[bytes, None]:
    """Yield events: first what was missed, then what is new, and a comment where nothing was for a while."""
    with metrics.streaming():
        last_id, began = missed[0].graph_commit_id, time.monotonic()
        yield b": following\n\n"
        for commit in missed[1:]:
            yield event_of(commit)
            last_id = commit.graph_commit_id
        told_at = time.monotonic()
        while not streams.stopping.is_set():
            try:
                await followed.refresh()
            except OmnigraphError as error:
                _log.warning("a stream of commits ends: %s", type(error).__name__)
                return  # whoever reconnects is told why: the branch is gone, or the store fails
            # A list that was read before this reader came may be older than what the reader knows.
            new = followed.after(last_id) if followed.read_at > began else []
            if new is None:
                return  # too far behind: the caller reconnects, and names what it has seen (V2)
            for commit in new:
                yield event_of(commit)
                last_id = commit.graph_commit_id
            if new:
                told_at = time.monotonic()
            elif time.monotonic() - told_at >= KEEP_ALIVE_S:
                yield b": still here\n\n"
                told_at = time.monotonic()
            await asyncio.sleep(POLL_S)


class EventResponse(StreamingResponse):
    """The answer to one who follows a branch; its place is given back when it ends (V4)."""

    def __init__(self, streams: EventStreams, followed: Followed, lines: AsyncGenerator[bytes, None]) -> None:
        """Take a stream whose place is reserved."""
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(lines, media_type=EVENT_STREAM, headers=headers)
        self._streams, self._followed = streams, followed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or find that the caller has gone before the first event."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.release(self._followed)


def event_of(commit: GraphCommit) -> bytes:
    """Return a commit as one event."""
    document = orjson.dumps(commit_document(commit))
    return b"id: %b\nevent: commit\ndata: %b\n\n" % (commit.graph_commit_id.encode(), document)
