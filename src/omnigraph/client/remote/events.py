"""The commits of a branch as they are made: server-sent events, over as many connections as it takes.

S1  Every commit is told once, in order: a connection that ends is made again, after the last commit it told.
S2  What the server refuses is raised; so is a connection that cannot be made, after the usual attempts, and
    an answer that is none of events.
S3  Connections that tell no commit are made again later and later. Several on which nothing at all was said
    are an error: a server begins each with a comment.
"""

from collections.abc import Generator, Iterator

import orjson

from omnigraph.client.http import BACKOFF_MAX_S, FIRST_WAIT_S, BrokenAnswer, Http
from omnigraph.client.remote.read_back import commit_of
from omnigraph.client.understood import NOT_OF_THIS_API, check_document, understood
from omnigraph.core.access_errors import TransportError
from omnigraph.history.commits import GraphCommit
from omnigraph.wire.responses import CommitListOutput, CommitOutput

EVENT_STREAM = "text/event-stream"
LAST_EVENT_ID = "Last-Event-ID"
SILENT_MAX = 4  # connections in a row: one may end before its first byte, as when a server stops
EVENT_BYTES_MAX = 1024 * 1024  # a commit has at most a message and its operations


def events(http: Http, branch: str | None, after: str | None) -> Generator[GraphCommit]:
    """Yield the commits of a branch after one, or from now on.

    Raises:
        OmnigraphError: the server refuses, or cannot be reached.
    """
    last = after if after is not None else _head(http, branch)
    vain = silent = 0  # connections in a row that told no commit, and nothing at all
    while True:
        headers = {"Accept": EVENT_STREAM, LAST_EVENT_ID: last}
        # A stream that has begun may end at any time: the server was told to stop, or a network failed.
        may_end = False
        vain, silent = vain + 1, silent + 1
        try:
            with http.stream("GET", "/events", params={"branch": branch}, headers=headers) as answer:
                if answer.media_type != EVENT_STREAM:
                    raise TransportError(NOT_OF_THIS_API)
                may_end = True
                for line in _lines(answer.pieces):
                    silent = 0
                    may_end = False
                    commit = _told(line, last)
                    may_end = True
                    if commit is not None:
                        vain, last = 0, commit.graph_commit_id
                        yield commit
        except TransportError:
            if not may_end:
                raise
        if silent > SILENT_MAX:
            raise TransportError(f"{http.url} ended {silent} streams of events in a row without a word")
        if vain:
            http.pause(min(FIRST_WAIT_S * 3 ** min(vain - 1, 9), BACKOFF_MAX_S))


def _head(http: Http, branch: str | None) -> str:
    """Return the newest commit: what is made between this and the first connection is told by it (S1)."""
    document = http.get("/commits", CommitListOutput, {"branch": branch, "limit": 1})
    with understood():
        return str(document["commits"][0]["graph_commit_id"])


def _told(line: bytes, last: str) -> GraphCommit | None:
    """Return the commit that a line tells, if it is one of data.

    Raises:
        TransportError: it tells another thing, or the last commit again.
    """
    name, _, data = line.partition(b":")
    if name != b"data":
        return None
    with understood():
        commit = commit_of(check_document(orjson.loads(data), CommitOutput))
    if commit.graph_commit_id == last:
        raise TransportError(NOT_OF_THIS_API)
    return commit


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream that are not empty.

    Raises:
        BrokenAnswer: one has no end.
    """
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > EVENT_BYTES_MAX:
            raise BrokenAnswer("an event has no end")
        yield from filter(None, (line.rstrip(b"\r") for line in lines))
